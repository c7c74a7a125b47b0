"""``deniable`` and ``python -m deniable``: run a command, turn errors into exit codes."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

from deniable.cli.library_messages import withheld_messages
from deniable.cli.progress_file import append_line
from deniable.cli.terminal import guarded_streams, open_missing_streams, print_error
from deniable.files import OutputTracker, tracked_outputs

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. No traceback is shown: it might quote confidential cells.

    Neither is what a library prints itself, such as a panic of polars.
    """
    open_missing_streams()
    append_line(pid=os.getpid())
    with withheld_messages():
        code = run()
    append_line(exit=code)
    sys.exit(code)


def run() -> int:
    """Run the command line and return its exit code.

    Once everything that a command writes is in place, it has succeeded: an output that cannot be
    printed, an interruption or a bug is reported, and the exit code is 0.
    """
    if threading.current_thread() is threading.main_thread():
        # SIGTERM, as from a scheduler, is an interrupt: nothing half-written stays behind.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    with guarded_streams() as output, tracked_outputs() as tracker:
        from deniable.cli.commands import app

        code = 0
        try:
            app()
        except BaseException as error:
            # Includes panics of polars, which are not Exceptions: no traceback may be shown.
            code = _report_error(error, tracker)
        output.flush()
        if tracker.is_complete:
            return 0
        if code == 0 and output.fault is not None:
            print_error(_describe_fault(output.fault))
            return 2
        return code


def _report_error(error: BaseException, tracker: OutputTracker) -> int:
    """Print what went wrong, and return the exit code."""
    from deniable.errors import DeniableError

    if isinstance(error, KeyboardInterrupt):
        error = SystemExit(_INTERRUPTED)
    if isinstance(error, SystemExit):
        return _code_of(error, tracker)
    if isinstance(error, DeniableError):
        print_error(f"{type(error).__name__}: {error}")
        _report_written(tracker)
        return error.exit_code
    if isinstance(error, OSError):
        print_error(_describe_fault(error))
        _report_written(tracker)
        return 2
    for line in _bug(error, tracker).splitlines():
        print_error(line)
    return 4


def _code_of(end: SystemExit, tracker: OutputTracker) -> int:
    """Return the exit code of the command line library; report an interruption.

    1 is reserved for a failed verification. The library uses it for an aborted dialogue; here that
    is 2.
    """
    code = end.code if isinstance(end.code, int) else 0
    if code == _INTERRUPTED:
        kept = "finished parts are kept" if _is_resumable(sys.argv[1:]) else "nothing was written"
        print_error("interrupted" if tracker.paths else f"interrupted: {kept}")
        _report_written(tracker)
    return 2 if code == 1 else code


def _is_resumable(arguments: Sequence[str]) -> bool:
    """Whether this command saves finished parts in its folder."""
    given = {argument.partition("=")[0] for argument in arguments}
    if arguments[:1] == ["audit"]:
        return "--out" in given and bool({"--mechanism", "--schema"} & given)
    return arguments[:1] == ["reproduce"]


def _describe_fault(fault: OSError) -> str:
    return f"OutputError: something could not be written ({fault.strerror}); free some space"


def _report_written(tracker: OutputTracker) -> None:
    """Name the outputs that are in place in spite of what went wrong."""
    if tracker.paths:
        print_error(_describe_written(tracker))


def _describe_written(tracker: OutputTracker) -> str:
    written = ", ".join(map(str, tracker.paths))
    rest = "Everything is" if tracker.is_complete else "Not everything was written, but this is"
    return f"{rest} in place, and its cost is spent: {written}"


def _bug(error: BaseException, tracker: OutputTracker) -> str:
    """Describe where a bug is, without its message, which might quote a cell."""
    if os.environ.get("DENIABLE_DEBUG"):
        return "".join(traceback.format_exception(error))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    outcome = _describe_written(tracker) if tracker.paths else "Nothing was released"
    return (
        f"bug: {type(error).__name__} in {Path(frame.filename).name}:{frame.lineno} (its "
        f"message is not shown, as it may quote the table). {outcome}. Please report it; "
        "DENIABLE_DEBUG=1 shows the whole traceback, which is confidential."
    )


if __name__ == "__main__":
    main()
