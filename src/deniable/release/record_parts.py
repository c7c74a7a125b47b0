"""Releases in parts: one file per block of records, each written and hashed by one task.

A part depends on nothing but its number, the artefact and the key. So a task that is run again, on
whatever machine, writes the same bytes; and all parts but the last have the same number of records.
"""

import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records
from deniable.data.table_io import write_table
from deniable.errors import InvariantError, OutputError
from deniable.randomness import Keyed
from deniable.release.atomic_files import as_output_error, file_hash, flush
from deniable.release.generation import BLOCK, BlockRecords
from deniable.schema.schema import Schema

# Begins the name of a part that is being written.
_UNFINISHED = ".partial."


def part_name(number: int, suffix: str) -> str:
    """Name a part: part-00000.csv. Up to 100,000 parts, names sort as the records are ordered."""
    return f"part-{number:05d}{suffix}"


def by_number(part: Path) -> int:
    """Return the number of a part, to sort by: part-100000 comes after part-99999."""
    return int(part.name.removeprefix("part-").partition(".")[0])


def count_parts(records: int) -> int:
    """Return the number of parts of a release."""
    return -(-records // BLOCK)


@dataclass(frozen=True, kw_only=True)
class PartDecoder:
    """Kernel of a part: draw its records and decode them.

    Attributes:
        records: The encoded records, drawn block by block.
        schema: Their schema.
        randomness: Draws values within bins and salts identifiers.
    """

    records: BlockRecords = field(repr=False)
    schema: Schema = field(repr=False)
    randomness: Keyed = field(repr=False)

    def __call__(self, part: int) -> pl.DataFrame:
        """Decode the records of one part: complete records, as ``decode_blocks`` has them."""
        first = part * BLOCK
        codes = self.records.draw_block(part)[: self.records.number - first]
        return decode_records(
            Codec(self.schema),
            codes,
            self.randomness.at("values", part),
            first_record=first + 1,
            salt=self.randomness.at("identifiers").words(2).tobytes(),
        )


@dataclass(frozen=True, kw_only=True)
class PartWriter:
    """Kernel of a part: write its file into a folder that all tasks see.

    Attributes:
        decode: Makes the records of a part.
        folder: The folder.
        suffix: The format of the files: .csv or .parquet.
        mode: The mode of the files.
    """

    decode: PartDecoder = field(repr=False)
    folder: Path
    suffix: str
    mode: int

    def __call__(self, part: int) -> bytes:
        """Write one part; return its name and its hash as JSON.

        It is written under another name and renamed. Two tasks that write the same part, or one
        that is run again, write the same bytes, so that the last rename changes nothing.
        """
        name = part_name(part, self.suffix)
        frame = self.decode(part)
        with as_output_error(self.folder):
            handle, unfinished = tempfile.mkstemp(f".{name}", _UNFINISHED, self.folder)
            os.close(handle)
        path = Path(unfinished)
        try:
            write_table(path, [frame], self.decode.schema)
            with as_output_error(path):
                path.chmod(self.mode)
                flush(path)
                written = {"name": name, "sha256": file_hash(path)}
                path.replace(self.folder / name)
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        return json.dumps(written).encode()


def collect_parts(folder: Path, written: Iterable[bytes], *, parts: int) -> dict[str, str]:
    """Return the hash of each part, by name; remove what failed tasks left in the folder.

    Raises:
        OutputError: A part that a task has written is not there: the folder is not shared.
        InvariantError: Tasks reported other parts than expected.
    """
    reports = [json.loads(report) for report in written]
    hashes = {report["name"]: report["sha256"] for report in sorted(reports, key=_by_number)}
    if len(hashes) != parts:
        raise InvariantError(f"tasks reported {len(hashes):,} parts, not {parts:,}")
    with as_output_error(folder):
        for path in folder.iterdir():
            if path.name.startswith(_UNFINISHED):
                path.unlink(missing_ok=True)
        found = {path.name for path in folder.iterdir()}
    if missing := [name for name in hashes if name not in found]:
        raise OutputError(
            f"{folder} does not have {missing[0]}, which a task wrote: executors have another "
            "folder of this name. Choose a folder that all machines share"
        )
    return hashes


def _by_number(report: dict[str, str]) -> int:
    return by_number(Path(report["name"]))
