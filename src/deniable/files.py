"""Input and output files of a command.

Inputs must be regular files: a pipe, device or socket may block or never end. Anyone may have
written a TOML document, so excessive ones are refused. Outputs are tracked once they are in place,
so that no message claims otherwise.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deniable.errors import ConfigError, InputError

_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}

# Most parts of a dotted key, such as a.b.c. The parser's time is quadratic in their number, which
# would be minutes for a key of 100 kilobytes. Our own documents have keys of two parts.
MAX_KEY_PARTS = 100

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
# A key with too many parts, or a string or comment, in which dots mean nothing. A bare part is not
# entered in its middle: the search is linear in the length of the text.
_LONG_KEY = re.compile(
    r'"""(?:[^\\]|\\.)*?"""'
    r"|'''.*?'''"
    rf"|(?P<key>(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}})"
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|#[^\n]*+""",
    re.DOTALL,
)


def as_path(value: object, what: str) -> Path:
    """Convert a text or path object to a path.

    Raises:
        ConfigError: It is of another type; ``what`` names it.
    """
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{what} is a {type(value).__name__}: give its path")
    return Path(value)


def require_regular_file(
    path: Path, error: type[InputError], *, absent: str = "there is no such file; check the path"
) -> None:
    """Raise ``error`` unless ``path``, or what it links to, is a regular file.

    Args:
        path: The file to be opened.
        error: The class of the error.
        absent: What the message says where there is no such file.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise error(f"{path}: {absent}") from None
    except OSError as cause:
        raise error(f"{path}: cannot be read ({cause.strerror})") from None
    except ValueError:
        raise error("a path contains a null byte; correct it") from None
    if not stat.S_ISREG(mode):
        kind = _OTHER_KINDS.get(stat.S_IFMT(mode), "something else")
        raise error(f"{path} is {kind}, not a regular file. Save its content as a file first.")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Raises:
        ValueError: The text is not TOML, or has excessive nesting, keys or numbers. The message
            states the fault and its place. It is part of a sentence: no capital, no full stop.
    """
    for found in _LONG_KEY.finditer(text):
        if found["key"] is not None:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts (at line {line})")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    except (RecursionError, ValueError):
        raise ValueError(
            "lists are nested too deeply, or a number has too many digits; no document needs that"
        ) from None


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
