"""Released records: an object that can be read any number of times, and its way into a file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from deniable.arrays import Codes
from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records
from deniable.data.spooled_codes import CodeSpool, row_batches
from deniable.data.table_io import write_table
from deniable.errors import InvariantError
from deniable.randomness import Randomness
from deniable.release.atomic_files import as_output_error, make_file
from deniable.schema.schema import Schema
from deniable.workers import Progress, no_progress


class Records(Protocol):
    """Encoded records of a release. Every reading yields the same records."""

    @property
    def number(self) -> int:
        """The number of records."""

    def blocks(self) -> Iterator[Codes]:
        """Yield all records, block by block."""


@dataclass(frozen=True)
class KeptRecords:
    """Records that cannot be drawn again, kept: in memory, or in a temporary file when many."""

    codes: Codes = field(repr=False)

    @classmethod
    def collect(cls, blocks: Iterable[Codes], *, columns: int) -> "KeptRecords":
        """Keep the records of all blocks."""
        spool = CodeSpool(columns)
        for block in blocks:
            spool.add(block)
        return cls(spool.codes())

    @property
    def number(self) -> int:
        """The number of records."""
        return len(self.codes)

    def blocks(self) -> Iterator[Codes]:
        """Yield the records in blocks of equal size, unrelated to those they were drawn in."""
        return row_batches(self.codes)


def decode_blocks(
    records: Records, schema: Schema, randomness: Randomness, progress: Progress = no_progress
) -> Iterator[pl.DataFrame]:
    """Decode records block by block: complete records, numbered from 1.

    Args:
        records: The encoded records.
        schema: Their schema.
        randomness: Draws values within bins and salts identifiers. Bins are public, so it matters
            for repeatability only.
        progress: Called after each block.
    """
    codec, done = Codec(schema), 0
    salt = randomness.at("identifiers").words(2).tobytes()
    progress("records", 0, records.number)
    for number, block in enumerate(records.blocks()):
        rng = randomness.at("values", number)
        yield decode_records(codec, block, rng, first_record=done + 1, salt=salt)
        done += len(block)
        progress("records", done, records.number)
    if done != records.number:
        raise InvariantError(f"{done:,} records were generated, not {records.number:,}")


def write_records(
    path: Path,
    records: Records,
    schema: Schema,
    randomness: Randomness,
    progress: Progress = no_progress,
) -> None:
    """Decode records and write them to a file, in the format of its suffix.

    A new file is as private as its folder; an existing, empty one keeps its mode.
    """
    make_file(path)
    with as_output_error(path):
        write_table(path, decode_blocks(records, schema, randomness, progress), schema)
