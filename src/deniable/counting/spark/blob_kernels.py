"""Kernels that count the codes of blobs, in tasks: tallies of tables, and prefixes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Codes, Counts
from deniable.counting.contingency import ContingencyTable
from deniable.counting.spark.code_blobs import BlobReader
from deniable.counting.tallies import TallyPlan, sum_cells
from deniable.data.spooled_codes import count_distinct_rows

TALLY_TYPES = pa.schema(
    {
        "number": pa.int32(),
        "chunk": pa.int64(),
        "cells": pa.binary(),
        "counts": pa.binary(),
        "fault": pa.string(),
    }
)
TALLY_SCHEMA = "number int, chunk long, cells binary, counts binary, fault string"
PREFIX_TYPES = pa.schema(
    {"length": pa.int32(), "prefix": pa.binary(), "shared": pa.int64(), "fault": pa.string()}
)
PREFIX_SCHEMA = "length int, prefix binary, shared long, fault string"
RESULT_TYPES = pa.schema({"result": pa.binary(), "fault": pa.string()})
RESULT_SCHEMA = "result binary, fault string"

# In place of the number of a table, or of a prefix's length: the row lists blobs that were seen.
SEEN = -1
# Cells of a table that one task adds up.
_CELLS_PER_CHUNK = 2**20
# Bytes of a code in a prefix; the most significant comes first, so that prefixes sort as codes do.
_PREFIX_CODE = np.dtype(">u2")


@dataclass(frozen=True)
class TallyKernel:
    """Count all tables of a plan in the blobs of a partition."""

    reader: BlobReader
    plan: TallyPlan = field(repr=False)
    types: Any = TALLY_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the non-empty cells of each table, in chunks, and the blobs that were seen."""
        seen: list[int] = []
        for number, table in enumerate(self.plan.count(self.reader.iter_codes(batches, seen))):
            yield from tally_batches(number, table)
        yield seen_batch(seen)


@dataclass(frozen=True)
class RowCountKernel:
    """Count the rows of each blob: a tally whose cells are the numbers of the blobs."""

    reader: BlobReader
    types: Any = TALLY_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the number of rows of each blob, and the blobs that were seen."""
        seen: list[int] = []
        rows = [len(codes) for codes in self.reader.iter_codes(batches, seen)]
        order = np.argsort(seen)
        yield _tally_batch(0, 0, np.array(seen, np.int64)[order], np.array(rows, np.int64)[order])
        yield seen_batch(seen)


@dataclass(frozen=True)
class SumKernel:
    """Add up tallies of other tasks, chunk by chunk."""

    types: Any = TALLY_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the sum of each chunk; pass faults on."""
        totals: dict[tuple[int, int], tuple[Counts, Counts]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                if row["fault"] is not None:
                    yield pa.RecordBatch.from_pylist([row], schema=TALLY_TYPES)
                    continue
                add_tally(totals, (row["number"], row["chunk"]), row["cells"], row["counts"])
        for (number, chunk), (cells, counts) in totals.items():
            yield _tally_batch(number, chunk, cells, counts)


def add_tally(
    totals: dict[Any, tuple[Counts, Counts]], key: Any, cells: bytes, counts: bytes
) -> None:
    """Add the cells and counts of a tally to the totals."""
    more = np.frombuffer(cells, np.int64), np.frombuffer(counts, np.int64)
    if key not in totals:
        totals[key] = more
    elif len(totals[key][0]) == len(more[0]) and np.array_equal(totals[key][0], more[0]):
        totals[key] = more[0], totals[key][1] + more[1]
    else:
        joined = [np.concatenate(pair) for pair in zip(totals[key], more, strict=True)]
        totals[key] = sum_cells(*joined)


def tally_batches(number: int, table: ContingencyTable) -> Iterator[Any]:
    """Yield the cells of a table in chunks, each of a fixed range of cells."""
    chunks = table.cells // _CELLS_PER_CHUNK
    starts = np.flatnonzero(np.diff(chunks, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(chunks)], strict=True):
        cells, counts = table.cells[start:end], table.counts[start:end]
        yield _tally_batch(number, int(chunks[start]), cells, counts)


def _tally_batch(number: int, chunk: int, cells: Counts, counts: Counts) -> Any:
    columns = {
        "number": [number],
        "chunk": [chunk],
        "cells": [cells.astype(np.int64).tobytes()],
        "counts": [counts.astype(np.int64).tobytes()],
        "fault": [None],
    }
    return pa.RecordBatch.from_pydict(columns, schema=TALLY_TYPES)


def seen_batch(seen: list[int]) -> Any:
    """Make the tally of the blobs that a task has seen: its cells are their numbers."""
    cells, counts = np.unique(np.array(seen, dtype=np.int64), return_counts=True)
    return _tally_batch(SEEN, 0, cells, counts)


@dataclass(frozen=True)
class PrefixKernel:
    """Count the rows of each prefix, blob by blob; Spark adds them up."""

    reader: BlobReader
    order: tuple[int, ...]
    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    types: Any = PREFIX_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the distinct prefixes of each blob with the number of rows that share them."""
        seen: list[int] = []
        for codes in self.reader.iter_codes(batches, seen):
            for length in self.lengths:
                columns = list(self.order[:length])
                values = [self.sizes[column] for column in columns]
                prefixes, shared = count_distinct_rows(codes, columns, values)
                if len(shared):
                    yield _prefix_batch(length, prefixes, shared)
        for blob in seen:
            row = {"length": SEEN, "prefix": blob.to_bytes(8), "shared": 1, "fault": None}
            yield pa.RecordBatch.from_pylist([row], schema=PREFIX_TYPES)


def _prefix_batch(length: int, prefixes: Codes, shared: Counts) -> Any:
    packed = pack_prefixes(prefixes)
    fixed = pa.binary(_PREFIX_CODE.itemsize * length)
    names = pa.Array.from_buffers(fixed, len(shared), [None, pa.py_buffer(packed)])
    arrays = [
        pa.array(np.full(len(shared), length, dtype=np.int32)),
        names.cast(pa.binary()),
        pa.array(shared.astype(np.int64)),
        pa.nulls(len(shared), pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PREFIX_TYPES)


def pack_prefixes(prefixes: Codes) -> bytes:
    """Pack the codes of prefixes one after the other, so that bytes sort as codes do."""
    return np.ascontiguousarray(prefixes).astype(_PREFIX_CODE).tobytes()


def unpack_prefixes(packed: bytes, length: int) -> Codes:
    """Return the codes of prefixes that were packed one after the other."""
    codes = np.frombuffer(packed, dtype=_PREFIX_CODE).reshape(-1, length)
    return np.asfortranarray(codes.astype(np.uint16))


@dataclass(frozen=True)
class BlockKernel:
    """Run a callable for each numbered block; report what it returns."""

    kernel: Any = field(repr=False)
    types: Any = RESULT_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the result of each block."""
        for batch in batches:
            for block in batch.column(0).to_pylist():
                columns = {"result": [self.kernel(block)], "fault": [None]}
                yield pa.RecordBatch.from_pydict(columns, schema=RESULT_TYPES)
