"""``deniable`` and ``python -m deniable``: run a command, turn errors into words and exit codes."""

import os
import signal
import sys
import threading
import traceback
from pathlib import Path

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; never show a traceback, which might show what must not be shown."""
    sys.exit(run())


def run() -> int:
    """Run the command line and return its exit code."""
    from deniable.cli.studies import app
    from deniable.errors import DeniableError

    if threading.current_thread() is threading.main_thread():
        # To be ended by a scheduler is to be interrupted: nothing half-written stays behind.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            kept = "what is finished is kept" if "reproduce" in sys.argv else "nothing was written"
            _complain(f"interrupted: {kept}")
        return _code_of(end)
    except DeniableError as error:
        _complain(f"{type(error).__name__}: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted: nothing was written")
        return _INTERRUPTED
    except OSError as fault:
        return _unprinted(fault)
    except Exception as error:
        _complain(_bug(error))
        return 4
    return 0


def _code_of(end: SystemExit) -> int:
    """Return the exit code, once what was printed has really been taken.

    1 means that a verification failed, and only that: where the command line library means that
    nobody reads what is printed, it is 2.
    """
    try:
        sys.stdout.flush()
    except OSError as fault:
        return _unprinted(fault)
    code = end.code if isinstance(end.code, int) else 0
    return 2 if code == 1 else code


def _unprinted(fault: OSError) -> int:
    """Say that nobody takes what is printed, or that a file is out of reach."""
    sys.stdout = None  # so that the interpreter does not try again
    _complain(f"OutputError: something could not be written ({fault.strerror}); make room for it")
    return 2


def _bug(error: Exception) -> str:
    """Say where a bug is, without its message, which might quote a cell."""
    if os.environ.get("DENIABLE_DEBUG"):
        return "".join(traceback.format_exception(error))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a bug: {type(error).__name__} in {Path(frame.filename).name}:{frame.lineno} (its "
        "message is not shown, as it may quote the table). Nothing was released. Please report it; "
        "DENIABLE_DEBUG=1 shows all, to you alone."
    )


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    main()
