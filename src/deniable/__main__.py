"""``deniable`` and ``python -m deniable``: run a command, turn errors into exit codes."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deniable.cli.library_messages import withheld_messages
from deniable.cli.progress_file import append_line
from deniable.cli.terminal import GuardedStream, guarded_streams, open_missing_streams, print_error
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

        failure = None
        try:
            app()
        except BaseException as error:
            # Includes panics of polars, which are not Exceptions: no traceback may be shown.
            failure = _failure_of(error, tracker)
        if failure is not None:
            _report(failure, tracker, output)
        output.flush()
        if tracker.is_complete:
            return 0
        if failure is not None:
            return failure.exit_code
        if output.fault is not None:
            print_error(f"OutputError: {_describe_fault(output.fault)}")
            return 2
        return 0


@dataclass(frozen=True, kw_only=True)
class _Failure:
    """Why a command ended: its exit code, what --json says, and what the terminal shows.

    Attributes:
        code: The name of the error, such as ``SchemaError``.
        exit_code: The exit code.
        message: What is wrong, where, and what to do.
        what_to_do: What to do about any error of this name.
        shown: The lines on standard error; none if the command line library has printed them.
    """

    code: str
    exit_code: int
    message: str
    what_to_do: str
    shown: Sequence[str] = ()


def _failure_of(error: BaseException, tracker: OutputTracker) -> _Failure | None:
    """Describe what went wrong; None if nothing did."""
    from deniable.errors import DeniableError, InvariantError, OutputError

    if isinstance(error, KeyboardInterrupt):
        error = SystemExit(_INTERRUPTED)
    if isinstance(error, SystemExit):
        return _ending(error, tracker)
    if isinstance(error, OSError):
        error = OutputError(_describe_fault(error))
    if isinstance(error, DeniableError):
        name = type(error).__name__
        return _Failure(
            code=name,
            exit_code=error.exit_code,
            message=str(error),
            what_to_do=error.what_to_do,
            shown=(f"{name}: {error}", *_written_lines(tracker)),
        )
    message = _describe_bug(error, tracker)
    is_asked = bool(os.environ.get("DENIABLE_DEBUG"))
    traced = "".join(traceback.format_exception(error)) if is_asked else message
    return _Failure(
        code=InvariantError.__name__,
        exit_code=InvariantError.exit_code,
        message=message,
        what_to_do=InvariantError.what_to_do,
        shown=traced.splitlines(),
    )


def _ending(end: SystemExit, tracker: OutputTracker) -> _Failure | None:
    """Describe an interruption, or what the command line library has refused; None if neither.

    1 is reserved for a failed verification. The library uses it for an aborted dialogue; here that
    is 2.
    """
    code = end.code if isinstance(end.code, int) else 0
    if code == _INTERRUPTED:
        kept = "finished parts are kept" if _is_resumable(sys.argv[1:]) else "nothing was written"
        message = "interrupted" if tracker.paths else f"interrupted: {kept}"
        return _Failure(
            code="Interrupted",
            exit_code=code,
            message=message,
            what_to_do="start the command again",
            shown=(message, *_written_lines(tracker)),
        )
    refused = getattr(end.__context__, "format_message", None)
    if code == 0:
        return None
    return _Failure(
        code="UsageError",
        exit_code=2 if code == 1 else code,
        message=refused() if refused else "the command was ended before it was done",
        what_to_do="see the --help of the command",
    )


def _report(failure: _Failure, tracker: OutputTracker, output: GuardedStream) -> None:
    """Print what went wrong; with --json also as the one object on standard output."""
    for line in failure.shown:
        print_error(line)
    if "--json" in sys.argv[1:] and not output.is_used:
        from deniable.cli.output import print_json

        error = {name: getattr(failure, name) for name in ("code", "message", "what_to_do")}
        print_json(error=error, written=[str(path) for path in tracker.paths])


def _is_resumable(arguments: Sequence[str]) -> bool:
    """Whether this command saves finished parts in its folder."""
    given = {argument.partition("=")[0] for argument in arguments}
    if arguments[:1] == ["audit"]:
        return "--out" in given and bool({"--mechanism", "--schema"} & given)
    return arguments[:1] == ["reproduce"]


def _describe_fault(fault: OSError) -> str:
    return f"something could not be written ({fault.strerror}); free some space"


def _written_lines(tracker: OutputTracker) -> list[str]:
    """Name the outputs that are in place in spite of what went wrong."""
    return [_describe_written(tracker)] if tracker.paths else []


def _describe_written(tracker: OutputTracker) -> str:
    written = ", ".join(map(str, tracker.paths))
    rest = "Everything is" if tracker.is_complete else "Not everything was written, but this is"
    return f"{rest} in place, and its cost is spent: {written}"


def _describe_bug(error: BaseException, tracker: OutputTracker) -> str:
    """Describe where a bug is, without its message, which might quote a cell."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    outcome = _describe_written(tracker) if tracker.paths else "Nothing was released"
    return (
        f"bug: {type(error).__name__} in {Path(frame.filename).name}:{frame.lineno} (its "
        f"message is not shown, as it may quote the table). {outcome}. Please report it; "
        "DENIABLE_DEBUG=1 shows the whole traceback, which is confidential."
    )


if __name__ == "__main__":
    main()
