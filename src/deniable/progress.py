"""Progress of long stages, reported through a callback."""

from collections.abc import Callable

# Called with the name of a stage, the work done and the total work.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, of: int) -> None:
    """No-op progress callback."""
