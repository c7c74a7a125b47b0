"""Choose rows at random on a cluster: the parts of a split, and the rows of each unit.

A task draws, from a secret of the run and the numbers of its rows, what one machine would draw. So
a task that is run again chooses the same rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Counts, Mask, Reals, Words
from deniable.counting.spark.code_blobs import NO_ROW, OWNER_BYTES, BlobReader
from deniable.data.partition import ROWS_PER_STREAM, choose_parts, keep_lowest_words
from deniable.randomness import Randomness, Stage

UNIT_TYPES = pa.schema(
    {
        "owner": pa.binary(),
        "word": pa.int64(),
        "blob": pa.int64(),
        "at": pa.int32(),
        "fault": pa.string(),
    }
)
UNIT_SCHEMA = "owner binary, word long, blob long, at int, fault string"
_SIGN = np.uint64(2**63)


class RowStreams:
    """The words of rows, by their numbers in the table; remembers the stream it has drawn last."""

    def __init__(self, randomness: Randomness, stage: Stage) -> None:
        self._randomness = randomness
        self._stage: Stage = stage
        self._block = -1
        self._words: Words = np.empty(0, dtype=np.uint64)

    def words(self, start: int, stop: int) -> Words:
        """Return the words of rows ``start`` to ``stop``, as ``draw_row_words`` draws them."""
        drawn = [np.empty(0, dtype=np.uint64)]
        for block in range(start // ROWS_PER_STREAM, -(-stop // ROWS_PER_STREAM)):
            if block != self._block:
                self._words = self._randomness.at(self._stage, block).words(ROWS_PER_STREAM)
                self._block = block
            first = block * ROWS_PER_STREAM
            drawn.append(self._words[max(start - first, 0) : stop - first])
        return np.concatenate(drawn)


@dataclass(frozen=True)
class PartSelection:
    """The rows of one part of a split.

    Attributes:
        bounds: The cumulative probabilities of the parts.
        part: The number of the part.
        starts: The number, in the table, of the first row of each blob.
        randomness: Draws the part of each row, the same in every task.
    """

    bounds: Reals = field(repr=False)
    part: int
    starts: Mapping[int, int] = field(repr=False)
    randomness: Randomness = field(repr=False)

    def streams(self) -> RowStreams:
        """Open the streams of the rows, once a task."""
        return RowStreams(self.randomness, "split")

    def mask(self, streams: RowStreams, blob: int, rows: int) -> Mask:
        """Mask the rows of a blob that are in the part."""
        start = self.starts[blob]
        chosen: Mask = choose_parts(streams.words(start, start + rows), self.bounds) == self.part
        return chosen


@dataclass(frozen=True)
class UnitKernel:
    """Draw a word for each row; keep the lowest of each unit in a blob, so that no unit is skewed.

    Attributes:
        reader: Reads the owners of blobs.
        starts: The number, in the table, of the first row of each blob.
        randomness: Draws the words, the same in every task.
        max_rows: The number of rows of a unit to keep.
    """

    reader: BlobReader
    starts: Mapping[int, int] = field(repr=False)
    randomness: Randomness = field(repr=False)
    max_rows: int
    types: Any = UNIT_TYPES

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the candidates of each blob: hashed owner, word, and place; and that it was seen.

        That is a row of a unit of its own, which is always kept.
        """
        streams = RowStreams(self.randomness, "units")
        for blob, owners in self.reader.iter_owners(batches):
            words = streams.words(self.starts[blob], self.starts[blob] + len(owners))
            yield self._candidates(owners, words, blob)
            row = {"owner": blob.to_bytes(8), "word": 0, "blob": blob, "at": NO_ROW, "fault": None}
            yield pa.RecordBatch.from_pylist([row], schema=UNIT_TYPES)

    def _candidates(self, owners: Words, words: Words, blob: int) -> Any:
        _, units = np.unique(owners, axis=0, return_inverse=True)
        kept = np.flatnonzero(
            keep_lowest_words(units.reshape(-1).astype(np.int64), words, max_rows=self.max_rows)
        )
        chosen = np.ascontiguousarray(owners[kept])
        packed = pa.Array.from_buffers(
            pa.binary(OWNER_BYTES), len(kept), [None, pa.py_buffer(chosen.tobytes())]
        )
        arrays = [
            packed.cast(pa.binary()),
            pa.array((words[kept] ^ _SIGN).view(np.int64)),
            pa.array(np.full(len(kept), blob, dtype=np.int64)),
            pa.array(kept.astype(np.int32)),
            pa.nulls(len(kept), pa.string()),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=UNIT_TYPES)


def row_starts(rows: Mapping[int, int]) -> dict[int, int]:
    """Return the number, in the table, of the first row of each blob, from the rows of each."""
    blobs = sorted(rows)
    ends: Counts = np.cumsum([rows[blob] for blob in blobs], dtype=np.int64)
    return {blob: int(end) - rows[blob] for blob, end in zip(blobs, ends, strict=True)}
