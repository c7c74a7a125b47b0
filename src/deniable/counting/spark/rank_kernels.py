"""Kernels that look up single rows, in tasks: which prefix a rank has, and how many rows share it.

They draw nothing. The driver draws ranks and candidates, and asks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.arrays import CODE, Codes, Counts
from deniable.counting.contingency import ContingencyTable
from deniable.counting.spark.blob_kernels import (
    SEEN,
    TALLY_TYPES,
    pack_prefixes,
    seen_batch,
    tally_batches,
)
from deniable.counting.spark.code_blobs import BlobReader
from deniable.data.spooled_codes import count_distinct_rows

RANK_TYPES = pa.schema({"first": pa.int64(), "codes": pa.binary(), "fault": pa.string()})
RANK_SCHEMA = "first long, codes binary, fault string"


@dataclass(frozen=True)
class RankKernel:
    """Find the rows of some ranks: some of their columns.

    Attributes:
        reader: Reads codes from blobs.
        starts: The rank of the first row of each blob.
        ranks: Ranks, ascending and distinct.
        columns: The columns to return.
    """

    reader: BlobReader
    starts: Mapping[int, int] = field(repr=False)
    ranks: Counts = field(repr=False)
    columns: tuple[int, ...]
    types: Any = RANK_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the rows of each blob, with the place of the first of them in ``ranks``."""
        seen: list[int] = []
        for codes in self.reader.iter_codes(batches, seen):
            start = self.starts[seen[-1]]
            first, last = np.searchsorted(self.ranks, [start, start + len(codes)])
            if last > first:
                rows = codes[self.ranks[first:last] - start][:, list(self.columns)]
                yield _rank_batch(int(first), np.ascontiguousarray(rows).tobytes())
        yield _rank_batch(SEEN, np.array(seen, dtype=np.int64).tobytes())


def _rank_batch(first: int, content: bytes) -> Any:
    columns = {"first": [first], "codes": [content], "fault": [None]}
    return pa.RecordBatch.from_pydict(columns, schema=RANK_TYPES)


def unpack_rows(packed: bytes, columns: int) -> Codes:
    """Return the codes of rows that ``RankKernel`` found."""
    return np.frombuffer(packed, dtype=CODE).reshape(-1, columns)


@dataclass(frozen=True)
class SharedKernel:
    """Count the rows that share given prefixes: a tally for each length.

    Attributes:
        reader: Reads codes from blobs.
        order: σ.
        sizes: The number of values of each attribute.
        wanted: By length, the prefixes as ``prefix_keys``, ascending and distinct.
    """

    reader: BlobReader
    order: tuple[int, ...]
    sizes: tuple[int, ...]
    wanted: Mapping[int, npt.NDArray[np.bytes_]] = field(repr=False)
    types: Any = TALLY_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the number of rows of each prefix that some row has; cells are their places."""
        seen: list[int] = []
        totals = {length: np.zeros(len(keys), np.int64) for length, keys in self.wanted.items()}
        for codes in self.reader.iter_codes(batches, seen):
            for length, keys in self.wanted.items():
                columns = list(self.order[:length])
                values = [self.sizes[column] for column in columns]
                prefixes, shared = count_distinct_rows(codes, columns, values)
                found = prefix_keys(prefixes)
                place = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
                same = keys[place] == found
                totals[length][place[same]] += shared[same]
        for length, counts in totals.items():
            cells = np.flatnonzero(counts)
            yield from tally_batches(length, ContingencyTable(counts.shape, cells, counts[cells]))
        yield seen_batch(seen)


def prefix_keys(prefixes: Codes) -> npt.NDArray[np.bytes_]:
    """Return prefixes as fixed strings of bytes, which sort as their codes do."""
    width = 2 * prefixes.shape[1]
    return np.frombuffer(pack_prefixes(prefixes), dtype=f"S{width}")
