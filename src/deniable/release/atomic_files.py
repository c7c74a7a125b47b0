"""Atomic writes of files and folders, deterministic encodings, and file hashes.

Everything is written under a temporary name in the target's folder and renamed at the end. So a
crash, a full disk or Ctrl-C never leaves a partial release.
"""

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.errors import OutputError


@contextmanager
def staged_folder(target: Path, *, mode: int = 0o777) -> Iterator[Path]:
    """Yield a new folder; rename it to ``target`` on success, remove it on failure."""
    require_free(target)
    stage = _stage_path(target)
    try:
        with as_output_error(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            stage.mkdir(mode=mode)
        yield stage
        with as_output_error(target):
            stage.rename(target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def staged_file(target: Path) -> Iterator[Path]:
    """Yield a path for a new file; rename it to ``target`` on success, remove it on failure."""
    require_free(target)
    stage = _stage_path(target)
    try:
        with as_output_error(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        yield stage
        with as_output_error(target):
            stage.rename(target)
    finally:
        with suppress(OSError):
            stage.unlink(missing_ok=True)


def require_free(target: Path) -> None:
    """Refuse a target that exists and is not an empty folder."""
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise OutputError(f"{target} exists and is not empty; remove it, or choose another name")


def parquet_writer() -> str:
    """Name the Parquet writer and its version, which determine a file's bytes for given content."""
    return f"polars {pl.__version__}"


def write_text(path: Path, text: str) -> None:
    """Write a text to a new file, atomically."""
    with staged_file(path) as stage, as_output_error(path):
        stage.write_text(text, encoding="utf-8", newline="\n")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write small files into a folder."""
    with as_output_error(folder):
        for name, content in files.items():
            (folder / name).write_bytes(content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file."""
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


def hash_files(folder: Path) -> dict[str, str]:
    """Compute the SHA-256 hash of every file in a folder tree, by its relative path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in paths}


def file_hash(path: Path) -> str:
    """Compute the SHA-256 hash of a file, in constant memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stage_path(target: Path) -> Path:
    # The target's name stays last, because its suffixes determine the table's format.
    return target.with_name(f".partial.{os.getpid()}.{target.name}")


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
