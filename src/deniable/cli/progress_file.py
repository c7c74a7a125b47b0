"""Progress for other programs: JSON lines, appended to the file that DENIABLE_PROGRESS names.

The first line has the process ID, then one line for each report of a stage, and the last one has
the exit code. Nothing in it is a cell of the table. Only its owner can read the file: how fast a
run gets on says something about the rows.
"""

import json
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

VARIABLE = "DENIABLE_PROGRESS"

# Seconds between two reports of one stage; its first and its last are always written.
_MIN_INTERVAL = 0.2
# No link is followed, and nothing waits for the reader of a pipe, where the system can do that.
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_FLAGS |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def append_line(**content: Any) -> None:
    """Append a JSON line, if the variable is set. A file that cannot be written is no error."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    with suppress(OSError), os.fdopen(_open_private(path), "a", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")


def _open_private(path: str) -> int:
    """Open a file that only its owner can read, also if it was there before; a device as it is."""
    file = os.open(path, _FLAGS, 0o600)
    try:
        if hasattr(os, "fchmod") and stat.S_ISREG(os.fstat(file).st_mode):
            os.fchmod(file, 0o600)
    except OSError:
        os.close(file)
        raise
    return file


def file_progress() -> Callable[[str, int, int], None] | None:
    """The progress callback that writes to the file; None if the variable is not set."""
    if not os.environ.get(VARIABLE):
        return None
    written: dict[str, float] = {}

    def report(stage: str, done: int, of: int) -> None:
        now = time.monotonic()
        is_due = now - written.get(stage, -_MIN_INTERVAL) >= _MIN_INTERVAL
        if is_due or done >= of:
            written[stage] = now
            append_line(stage=stage, done=done, of=of)

    return report
