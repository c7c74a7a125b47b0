"""RootFolder: the one folder that the studio may read. No path leaves it, not even by a link."""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from deniable.data.complete_records import record_bytes
from deniable.errors import ConfigError, DataError, OutputError
from deniable.release.generation import format_size
from deniable.schema.schema import Schema

TABLE_SUFFIXES = (".csv", ".csv.gz", ".parquet")
STATE_FOLDER = ".deniable-studio"
# Entries of a folder that are listed; more would make no page.
_MAX_ENTRIES = 2000
# Folders of one level that are searched for releases.
_MAX_SEARCHED = 200
# How a manifest of ours begins, and the bytes that are read to see it.
_MANIFEST = re.compile(rb'\s*\{\s*"format":\s*"deniable manifest ')
_MANIFEST_START = 2**8
# How much larger a record may be in memory than in a file; no file is smaller than that.
_MEMORY_PER_FILE_BYTE = {"csv": 4, "parquet": 32}


class PathError(DataError):
    """A path that leaves the folder, is hidden, or goes through a link."""


@dataclass(frozen=True)
class Entry:
    """One entry of a folder.

    Attributes:
        path: Its path below the root.
        kind: "folder", "table", "schema", "release" (or an artefact), "link", or "odd": its name is
            not plain text, so no page can name it.
        size: Its bytes; 0 for a folder.
    """

    path: str
    kind: str
    size: int = 0

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name


class RootFolder:
    """A folder, and the files below it that may be opened.

    Hidden names and symbolic links are refused: the first may hold keys, or the studio's own
    state; the second may lead anywhere.

    Raises:
        ConfigError: It is not a folder.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self.path = folder.resolve(strict=True)
        except OSError:
            raise ConfigError(f"--root {folder}: there is no such folder") from None
        if not self.path.is_dir():
            raise ConfigError(f"--root {folder}: not a folder")
        if not str(self.path).isprintable():
            raise ConfigError(
                f"--root {_shown(str(folder))}: rename it: its path is not plain text"
            )

    def parts(self, written: str) -> tuple[str, ...]:
        """Split a path from a page into names.

        Raises:
            PathError: It is absolute, has a parent, hidden or odd name, or is no text for a path.
        """
        if not _is_plain(written) or written.startswith("/"):
            raise PathError("this path cannot be opened here: it must lie in the studio's folder")
        names = tuple(name for name in written.split("/") if name not in ("", "."))
        if any(name.startswith(".") for name in names):
            raise PathError(
                "this path cannot be opened here: hidden names and parent folders are not shown"
            )
        return names

    def locate(self, written: str) -> Path:
        """The path of an existing file or folder, none of whose parts is a link.

        Raises:
            PathError: It leaves the root, or goes through a link.
            FileNotFoundError: It is not there.
        """
        names = self.parts(written)
        with self._opened_parent(names) as (parent, name):
            if name and stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                raise PathError(f"{written} is a link; links are not followed here")
        return self.path.joinpath(*names)

    def new_path(self, written: str) -> Path:
        """The path of a file or folder to be written, in an existing folder of the root.

        Raises:
            PathError: It leaves the root, or goes through a link.
        """
        names = self.parts(written)
        if not names:
            raise PathError("give the name of a file or folder to write")
        with self._opened_parent(names):
            return self.path.joinpath(*names)

    @contextmanager
    def open(self, written: str) -> Iterator[int]:
        """Open a regular file for reading; yield its number. No part of its path is a link."""
        with self._opened_parent(self.parts(written)) as (parent, name):
            file = _open_without_links(name, os.O_RDONLY | os.O_NONBLOCK, parent, written)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise PathError(f"{written} is not a regular file")
                yield file
            finally:
                os.close(file)

    @contextmanager
    def _opened_parent(self, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """Open folder after folder, none by a link; yield the last one, and the name in it."""
        opened = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in names[:-1]:
                inner = _open_without_links(name, os.O_RDONLY | os.O_DIRECTORY, opened, name)
                os.close(opened)
                opened = inner
            yield opened, names[-1] if names else ""
        finally:
            os.close(opened)

    def relative(self, path: Path) -> str:
        """The path below the root, as pages and commands write it.

        Raises:
            PathError: It is not below the root.
        """
        try:
            return path.absolute().relative_to(self.path).as_posix()
        except ValueError:
            raise PathError(f"{path} is not in {self.path}; choose another --root") from None

    def entries(self, written: str = "") -> list[Entry]:
        """List folders, releases and tables of a folder; links are named, but not followed."""
        folder = self.locate(written)
        if not folder.is_dir():
            raise PathError(f"{written} is not a folder")
        found = []
        with os.scandir(folder) as listed:
            for at, entry in enumerate(listed):
                if at >= _MAX_ENTRIES:
                    break
                path = "/".join((*self.parts(written), _shown(entry.name)))
                if (kind := _kind_of(entry)) is not None:
                    size = entry.stat(follow_symlinks=False).st_size if kind == "table" else 0
                    found.append(Entry(path, kind, size))
        return sorted(found, key=lambda each: (each.kind == "table", each.name.lower()))

    def find_releases(self) -> list[str]:
        """List release folders down to three levels below the root."""
        found: list[str] = []
        level = [""]
        for _ in range(3):
            below: list[str] = []
            for folder in level:
                with suppress(OSError, PathError):
                    listed = self.entries(folder)
                    found += [each.path for each in listed if each.kind == "release"]
                    below += [each.path for each in listed if each.kind == "folder"]
            level = below[:_MAX_SEARCHED]
        return sorted(found)


def _is_plain(name: str) -> bool:
    """Whether a page can name this; not if it has bytes that are no UTF-8, or a backslash."""
    return name.isprintable() and "\\" not in name


def _shown(name: str) -> str:
    """A name as text that any page can show."""
    return name.encode("utf-8", "backslashreplace").decode()


def _kind_of(entry: "os.DirEntry[str]") -> str | None:
    if entry.name.startswith("."):
        return None
    if entry.is_symlink():
        return "link"
    if not _is_plain(entry.name):
        return "odd"
    if entry.is_dir(follow_symlinks=False):
        return "release" if _has_manifest(entry.path) else "folder"
    if not entry.is_file(follow_symlinks=False):
        return None
    ends = {".toml": "schema", **dict.fromkeys(TABLE_SUFFIXES, "table")}
    return next((kind for end, kind in ends.items() if entry.name.lower().endswith(end)), None)


def _has_manifest(folder: str) -> bool:
    """Whether a folder is a release or an artefact: other programs write a manifest.json, too."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(Path(folder, "manifest.json"), flags)
    except OSError:
        return False
    try:
        is_file = stat.S_ISREG(os.fstat(file).st_mode)
        return is_file and _MANIFEST.match(os.read(file, _MANIFEST_START)) is not None
    finally:
        os.close(file)


def _open_without_links(name: str, flags: int, parent: int, shown: str) -> int:
    try:
        return os.open(name or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError:
        raise PathError(f"{shown} is a link, or not a folder; links are not followed") from None


def require_disk_space(root: Path, schema: Schema, *, records: int, file_format: str) -> None:
    """Refuse more records than the disk of the root holds; nothing is written to find out.

    Raises:
        OutputError: Even a low estimate of the file is larger than what is free.
    """
    needed = records * record_bytes(schema.columns) // _MEMORY_PER_FILE_BYTE[file_format]
    free = shutil.disk_usage(root).free
    if needed > free:
        raise OutputError(
            f"{records:,} records need at least {format_size(needed)} of disk, and "
            f"{format_size(free)} are free: ask for fewer records, or free some space"
        )
