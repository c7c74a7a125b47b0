"""Atomic writes of files and folders, deterministic encodings, and file hashes.

Everything is written under a temporary name in the target's folder, flushed to the disk, and
renamed at the end. So a crash, a full disk or Ctrl-C never leaves a partial release. Confidential
output is readable by its owner only, from its creation on. A process holds a lock on what it has
under a temporary name: what nobody holds was left by a killed one, and may be removed.
"""

import errno
import hashlib
import io
import json
import os
import re
import shutil
import stat
import time
import zipfile
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.errors import ArtefactError, OutputError
from deniable.files import current_tracker, require_regular_file

# Locks of files, where the system has them.
_LOCKS = import_module("fcntl") if os.name == "posix" else None
# Modes of confidential output. Other output has the modes that the umask leaves.
_OWNER_FOLDER, _OWNER_FILE = 0o700, 0o600
_GROUP_AND_OTHERS = 0o077
# Attempts to remove a folder that a task is still writing to, and the pause between two.
_MAX_REMOVALS, _REMOVAL_SECONDS = 20, 0.25
# Errors of file systems that do not flush single files or folders.
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
# Attempts to lock what another process may only be looking at, and the pause between two.
_MAX_LOCKS, _LOCK_SECONDS = 10, 0.05
# Attempts to create what another process may take for litter until it is locked.
_MAX_CREATIONS = 5


@dataclass(frozen=True, kw_only=True)
class Target:
    """A file or folder to write.

    Attributes:
        path: Its final path.
        is_folder: Whether it is a folder.
        confidential: Whether only its owner may read it.
    """

    path: Path
    is_folder: bool = False
    confidential: bool = False

    @cached_property
    def place(self) -> Path:
        """The path by the target's own name, also for the current folder."""
        return self.path.resolve() if self.path.name in ("", "..") else self.path

    @property
    def stage(self) -> Path:
        """The temporary path. The name stays last: its suffixes determine a table's format."""
        return self.place.with_name(f".partial.{os.getpid()}.{self.place.name}")

    def create(self) -> None:
        """Create the empty file or folder under its temporary name."""
        with as_output_error(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.is_folder:
                _make_folder(self.stage, confidential=self.confidential)
            else:
                _make_file(self.stage, os.O_EXCL, confidential=self.confidential)

    def put_in_place(self) -> None:
        """Rename the temporary file or folder; never over another file."""
        if not self.is_folder:
            _require_absent(self.path)
        with as_output_error(self.path):
            self.stage.rename(self.place)

    def remove(self) -> None:
        """Remove the temporary file or folder, if it is still there."""
        if self.is_folder:
            shutil.rmtree(self.stage, ignore_errors=True)
        else:
            with suppress(OSError):
                self.stage.unlink(missing_ok=True)


@contextmanager
def staged(*targets: Target) -> Iterator[tuple[Path, ...]]:
    """Yield temporary paths; rename all of them on success, remove all on failure.

    Everything is flushed to the disk before the first rename, so that no power failure leaves a
    target with missing content.
    """
    require_free(*(target.path for target in targets))
    locks = ExitStack()
    try:
        for target in targets:
            _create(target, locks)
        yield tuple(target.stage for target in targets)
        for target in targets:
            with as_output_error(target.path):
                _flush_tree(target.stage)
        _put_in_place(targets)
        for parent in {target.place.parent for target in targets}:
            with suppress(OSError):  # the output is in place: nothing that follows may fail
                flush(parent)
    finally:
        for target in targets:
            target.remove()
        locks.close()


def _create(target: Target, locks: ExitStack) -> None:
    """Create a temporary file or folder and lock it, anew if a ``--clean`` removed it before that.

    A lock keeps others from removing it as litter, no more: without one the run goes on.
    """
    for _ in range(_MAX_CREATIONS):
        target.create()
        try:
            locks.callback(os.close, _lock(target.stage))
        except FileNotFoundError:
            continue
        except OSError:
            return
        return
    with as_output_error(target.path):
        raise FileNotFoundError(errno.ENOENT, "removed")


def _lock(path: Path) -> int:
    """Lock a temporary file or folder; return its open file, which holds the lock until its end.

    Raises:
        FileNotFoundError: Another process has removed it.
        OSError: Another process holds it, or it cannot be locked.
    """
    if _LOCKS is None:
        raise OSError(errno.ENOTSUP, "no locks")
    mode = path.lstat().st_mode
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise OSError(errno.ENOTSUP, "neither a file nor a folder")
    access = os.O_RDONLY if stat.S_ISDIR(mode) else os.O_RDWR  # NFS locks what can be written
    file = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _wait_for_lock(file, _LOCKS)
        if not os.path.samestat(os.fstat(file), path.lstat()):
            raise FileNotFoundError(errno.ENOENT, "removed")
        if stat.S_ISREG(mode):
            _require_accessible(path)
    except OSError:
        os.close(file)
        raise
    return file


def _wait_for_lock(file: int, locks: ModuleType) -> None:
    """Lock an open file; a process that only looks whether it is litter holds it for a moment."""
    operation = locks.LOCK_EX | locks.LOCK_NB
    for _ in range(_MAX_LOCKS - 1):
        try:
            locks.flock(file, operation)
        except BlockingIOError:
            time.sleep(_LOCK_SECONDS)
        else:
            return
    locks.flock(file, operation)


def _require_accessible(path: Path) -> None:
    """Raise an OSError if a lock keeps its own process from the file, as locks of CIFS do."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.read(file, 1)
    finally:
        os.close(file)


def remove_litter(out: Path) -> None:
    """Remove what killed commands with this ``--out`` left; what a process holds stays.

    Only temporary names are removed: of the target, of its internal folder, and of manifests.
    """
    for path in _leftovers(out, others=r"(\.internal)?(\.manifest\.json)?"):
        try:
            file = _lock(path)
        except OSError:
            continue
        try:
            with as_output_error(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(file)


def _put_in_place(targets: tuple[Target, ...]) -> None:
    """Rename all targets and record it; undo everything if one fails or Ctrl-C is pressed."""
    in_place = current_tracker().paths
    renamed, before = list[Target](), list(in_place)
    try:
        for target in targets:
            target.put_in_place()
            renamed.append(target)
        in_place.extend(target.path for target in targets)
    except BaseException:
        for target in renamed:
            with suppress(OSError):
                target.place.rename(target.stage)
        in_place[:] = before
        raise


@contextmanager
def staged_folder(target: Path, *, confidential: bool = False) -> Iterator[Path]:
    """Yield a new folder; rename it to ``target`` on success, remove it on failure."""
    with staged(Target(path=target, is_folder=True, confidential=confidential)) as (stage,):
        yield stage


@contextmanager
def new_folder(target: Path, *, confidential: bool) -> Iterator[None]:
    """Create a folder that the block fills where it is; remove it if the block fails.

    For folders that other machines write to: some file systems cannot rename a folder. What makes
    the folder complete must be written last.
    """
    with as_output_error(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            target.rmdir()
        _make_folder(target, confidential=confidential)
    try:
        yield
        with as_output_error(target):
            _flush_tree(target)
        current_tracker().paths.append(target)
    except BaseException:
        _remove_folder(target)
        raise


def _remove_folder(folder: Path) -> None:
    """Remove a folder that tasks may still be writing to."""
    for _ in range(_MAX_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_REMOVAL_SECONDS)


def file_mode() -> int:
    """The mode of a new file: what the umask leaves."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def staged_file(target: Path, *, confidential: bool = False) -> Iterator[Path]:
    """Yield the path of a new, empty file; rename it to ``target`` on success, else remove it."""
    with staged(Target(path=target, confidential=confidential)) as (stage,):
        yield stage


def require_free(*targets: Path, clean: bool = False) -> None:
    """Refuse targets that exist and are not empty folders; refuse the remains of a killed run.

    Args:
        targets: What will be written.
        clean: Whether to remove the remains first.

    Raises:
        OutputError: A target is not free; the message names what is in the way.
    """
    for target in targets if clean else ():
        remove_litter(target)
    for target in targets:
        with as_output_error(target):
            is_empty_folder = target.is_dir() and not any(target.iterdir())
        if not is_empty_folder:
            _require_absent(target)
    _require_no_leftovers(targets)


def _require_no_leftovers(targets: Sequence[Path]) -> None:
    leftovers = [path for target in targets for path in _leftovers(target)]
    if not leftovers:
        return
    listed = " ".join(map(str, leftovers))
    if all(map(_is_litter, leftovers)):
        raise OutputError(
            f"an unfinished run into {targets[0]} left {listed}: it was killed. The remains may be "
            "as confidential as the table. Start again with --clean, which removes them, or delete "
            f"them (rm -r {listed}); or choose another name"
        )
    raise OutputError(
        f"another run into {targets[0]} has not ended: {listed}. Wait for it, or choose another "
        "name. If none is running, because this file system has no locks or the run was of another "
        f"user, delete them (rm -r {listed})"
    )


def _is_litter(path: Path) -> bool:
    """Whether no process holds a temporary file or folder."""
    try:
        os.close(_lock(path))
    except OSError:
        return False
    return True


def _require_absent(target: Path) -> None:
    with as_output_error(target):
        is_there = target.exists() or target.is_symlink()
    if is_there:
        raise OutputError(f"{target} exists and is not empty; remove it, or choose another name")


def _leftovers(target: Path, *, others: str = "") -> list[Path]:
    """List the temporary files and folders of other runs into a target.

    Args:
        target: The target.
        others: A pattern of what may follow its name.
    """
    place = Target(path=target).place
    pattern = re.compile(rf"\.partial\.\d+\.{re.escape(place.name)}{others}")
    try:
        return sorted(path for path in place.parent.iterdir() if pattern.fullmatch(path.name))
    except OSError:
        return []


def make_folder(path: Path) -> None:
    """Create a folder that is as private as the folder it is in."""
    with as_output_error(path):
        _make_folder(path, confidential=_is_private(path.parent))


def make_file(path: Path, *, confidential: bool = False) -> None:
    """Create an empty file; an existing file keeps its mode.

    Args:
        path: The file.
        confidential: Whether only its owner may read it. In a private folder, always so.
    """
    with as_output_error(path):
        _make_file(path, confidential=confidential or _is_private(path.parent))


@contextmanager
def new_file(path: Path) -> Iterator[None]:
    """Create an empty file, which the block writes; raise an ``OutputError`` if it cannot.

    A new file is as private as its folder; an existing, empty one keeps its mode.
    """
    make_file(path)
    with as_output_error(path):
        yield


def _is_private(folder: Path) -> bool:
    """Whether only its owner can enter a folder."""
    return not folder.stat().st_mode & _GROUP_AND_OTHERS


def _make_folder(path: Path, *, confidential: bool) -> None:
    path.mkdir(mode=_OWNER_FOLDER if confidential else 0o777)
    if confidential:
        with suppress(FileNotFoundError):  # a --clean of another process may have removed it
            path.chmod(_OWNER_FOLDER)  # an unusual umask may have taken rights from the owner


def _make_file(path: Path, flags: int = 0, *, confidential: bool) -> None:
    mode = _OWNER_FILE if confidential else 0o666
    is_new = not path.exists()
    file = os.open(path, os.O_CREAT | os.O_WRONLY | flags, mode)
    try:
        if confidential and is_new:
            os.fchmod(file, mode)  # as above
    finally:
        os.close(file)


def _flush_tree(path: Path) -> None:
    """Flush a file, or a folder and everything in it, to the disk."""
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            _flush_tree(inner)
    flush(path)


def flush(path: Path) -> None:
    """Flush a file or the entries of a folder to the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as fault:
        if fault.errno not in _CANNOT_FLUSH:
            raise
    finally:
        os.close(file)


def parquet_writer() -> str:
    """Name the Parquet writer and its version, which determine a file's bytes for given content."""
    return f"polars {pl.__version__}"


def write_text(path: Path, text: str, *, confidential: bool = False) -> None:
    """Write a text to a new file, atomically."""
    with staged_file(path, confidential=confidential) as stage, as_output_error(path):
        stage.write_text(text, encoding="utf-8", newline="\n")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write small files into a folder; they are as private as the folder."""
    with as_output_error(folder):
        for name, content in files.items():
            make_file(folder / name)
            (folder / name).write_bytes(content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file; it is as private as its folder."""
    make_file(path)
    with as_output_error(path):
        path.write_bytes(encode_json(content))


def encode_json(content: Mapping[str, Any]) -> bytes:
    """Encode JSON in the one form of all our files: indented, UTF-8, without NaN or infinity."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def pack_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Pack arrays as NumPy's .npz: equal bytes for equal arrays, without pickles."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return packed.getvalue()


def hash_files(folder: Path, *, leave_out: Container[str] = ()) -> dict[str, str]:
    """Compute the SHA-256 hash of every file in a folder tree, by its relative path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in paths}
    return {name: file_hash(path) for name, path in named.items() if name not in leave_out}


def file_hash(path: Path) -> str:
    """Compute the SHA-256 hash of a regular file, in constant memory.

    Raises:
        ArtefactError: It is something else, such as a pipe, which would block.
    """
    require_regular_file(path, ArtefactError)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def as_output_error(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into an ``OutputError`` for this path."""
    try:
        yield
    except OSError as fault:
        why = os.strerror(fault.errno) if fault.errno else type(fault).__name__
        raise OutputError(
            f"{path} cannot be written ({why}); free some space, or choose another path"
        ) from None
