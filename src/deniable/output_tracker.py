"""Which outputs of a running command are in place, so that no message claims otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class OutputTracker:
    """The outputs of a command that are in place.

    Attributes:
        paths: Files and folders that were renamed into place.
        expected: The number of outputs after which the command has done its work.
    """

    paths: list[Path] = field(default_factory=list)
    expected: int = 1

    @property
    def is_complete(self) -> bool:
        """Whether everything that the command writes is in place."""
        return len(self.paths) >= self.expected


_TRACKER: ContextVar[OutputTracker | None] = ContextVar("tracker", default=None)


@contextmanager
def tracked_outputs() -> Iterator[OutputTracker]:
    """Record which outputs the block puts in place."""
    tracker = OutputTracker()
    token = _TRACKER.set(tracker)
    try:
        yield tracker
    finally:
        _TRACKER.reset(token)


def current_tracker() -> OutputTracker:
    """The tracker of the running command; a new one, which nothing reads, outside of one."""
    return _TRACKER.get() or OutputTracker()
