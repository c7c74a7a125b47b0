"""Paths and regular files: refuse pipes, devices and sockets, which may block or never end."""

import os
import stat
from pathlib import Path

from deniable.errors import ConfigError, InputError

_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


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
