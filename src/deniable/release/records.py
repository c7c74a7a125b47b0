"""What leaves, on disk: the whole release or none of it.

Everything is written under a temporary name beside its place and renamed at the end, so that
after a crash, a full disk or Ctrl-C nothing half-written stands where a release should be.
"""

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Codes
from deniable.data.schema import Schema
from deniable.data.tables import write_table
from deniable.errors import OutputError
from deniable.randomness import Randomness


@contextmanager
def staged_folder(target: Path, *, mode: int = 0o777) -> Iterator[Path]:
    """Yield a new folder that becomes ``target`` if all goes well, and vanishes if not."""
    require_free(target)
    stage = _beside(target)
    try:
        with _as_output_error(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            stage.mkdir(mode=mode)
        yield stage
        with _as_output_error(target):
            stage.rename(target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def staged_file(target: Path) -> Iterator[Path]:
    """Yield a path whose file becomes ``target`` if all goes well, and vanishes if not."""
    require_free(target)
    stage = _beside(target)
    try:
        with _as_output_error(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        yield stage
        with _as_output_error(target):
            stage.rename(target)
    finally:
        with suppress(OSError):
            stage.unlink(missing_ok=True)


def require_free(target: Path) -> None:
    """Refuse a target that holds something already."""
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise OutputError(f"{target} exists and is not empty; remove it, or choose another name")


def write_records(
    path: Path, blocks: Iterable[Codes], schema: Schema, randomness: Randomness
) -> None:
    """Write released records as values, block by block, in the format of the path's suffix."""
    with _as_output_error(path):
        write_table(path, decode_blocks(blocks, schema, randomness), schema)


def decode_blocks(
    blocks: Iterable[Codes], schema: Schema, randomness: Randomness
) -> Iterator[pl.DataFrame]:
    """Yield whole records, numbered through all blocks.

    Where a code stands for several values one is drawn: from public bins, whatever the data, so
    nothing but repeatability asks for ``randomness``.
    """
    done = 0
    salt = randomness.at("identifiers").words(2).tobytes()
    for number, block in enumerate(blocks):
        rng = randomness.at("values", number)
        yield schema.records(block, rng, first_record=done + 1, salt=salt)
        done += len(block)


def writer() -> str:
    """Return what decides the bytes of a Parquet file, beside its content."""
    return f"polars {pl.__version__}"


def write_text(path: Path, text: str) -> None:
    """Write one text to a new file: all of it, or nothing."""
    with staged_file(path) as stage, _as_output_error(path):
        stage.write_text(text, encoding="utf-8", newline="\n")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write small files into a folder."""
    with _as_output_error(folder):
        for name, content in files.items():
            (folder / name).write_bytes(content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write one JSON file."""
    with _as_output_error(path):
        path.write_bytes(as_json(content))


def as_json(content: Mapping[str, Any]) -> bytes:
    """Return JSON as every file of ours writes it: readable, one way only, and strict."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the arrays as NumPy's .npz: the same bytes for the same arrays, never a pickle."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return packed.getvalue()


def hashes_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, by its path there."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in paths}


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _beside(target: Path) -> Path:
    # The name stays last: its suffixes tell the format of a table.
    return target.with_name(f".partial.{os.getpid()}.{target.name}")


@contextmanager
def _as_output_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        why = os.strerror(fault.errno) if fault.errno else type(fault).__name__
        raise OutputError(
            f"{path} cannot be written ({why}); free some space, or choose another place"
        ) from None
