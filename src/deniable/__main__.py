"""``deniable`` and ``python -m deniable``: run a command, turn errors into exit codes."""

import os
import signal
import sys
import threading
import traceback
from pathlib import Path

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. No traceback is shown: it might quote confidential cells."""
    sys.exit(run())


def run() -> int:
    """Run the command line and return its exit code."""
    from deniable.cli.commands import app
    from deniable.errors import DeniableError

    if threading.current_thread() is threading.main_thread():
        # SIGTERM, as from a scheduler, is an interrupt: nothing half-written stays behind.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            kept = "finished parts are kept" if "reproduce" in sys.argv else "nothing was written"
            _print_error(f"interrupted: {kept}")
        return _code_of(end)
    except DeniableError as error:
        _print_error(f"{type(error).__name__}: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _print_error("interrupted: nothing was written")
        return _INTERRUPTED
    except OSError as fault:
        return _unprinted(fault)
    except Exception as error:
        _print_error(_bug(error))
        return 4
    return 0


def _code_of(end: SystemExit) -> int:
    """Flush the output, then return the exit code.

    1 is reserved for a failed verification. The command line library uses it for a closed output;
    here that is 2.
    """
    try:
        sys.stdout.flush()
    except OSError as fault:
        return _unprinted(fault)
    code = end.code if isinstance(end.code, int) else 0
    return 2 if code == 1 else code


def _unprinted(fault: OSError) -> int:
    """Report that the output is closed, or that a file cannot be reached."""
    sys.stdout = None  # so that the interpreter does not try again
    _print_error(f"OutputError: something could not be written ({fault.strerror}); free some space")
    return 2


def _bug(error: Exception) -> str:
    """Describe where a bug is, without its message, which might quote a cell."""
    if os.environ.get("DENIABLE_DEBUG"):
        return "".join(traceback.format_exception(error))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"bug: {type(error).__name__} in {Path(frame.filename).name}:{frame.lineno} (its "
        "message is not shown, as it may quote the table). Nothing was released. Please report it; "
        "DENIABLE_DEBUG=1 shows the whole traceback, which is confidential."
    )


def _print_error(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    main()
