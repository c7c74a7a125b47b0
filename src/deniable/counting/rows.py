"""Rows of a confidential table: the operations that learning may ask of an engine.

An engine holds the rows where they are, on this machine or on a cluster, and answers with counts.
It draws no noise and knows no model. See docs/adr/0011-engine-seam.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import polars as pl

from deniable.counting.contingency import ContingencyTable, Query
from deniable.counting.prefix_counts import FrequentPrefixes
from deniable.data.batches import AdjustedCounts
from deniable.data.dataframes import Foreign, FrameKind
from deniable.randomness import Randomness
from deniable.schema.attribute import Attribute


@dataclass(frozen=True)
class TableRows:
    """A table that was read: its rows, and what does not depend on the engine.

    Attributes:
        rows: The encoded rows.
        kind: The kind of data frame in which to return synthetic records.
        adjusted: Confidential: how many cells the schema adjusted, by column.
        engine: The cluster that has the rows; None: this machine.
        moved: Confidential: the columns of which the schema moves many cells.
    """

    rows: "Rows" = field(repr=False)
    kind: FrameKind = field(repr=False)
    adjusted: AdjustedCounts = field(repr=False)
    engine: "BlockEngine | None" = field(repr=False, default=None)
    moved: tuple[str, ...] = field(repr=False, default=())


class BlockEngine(Protocol):
    """Runs a task for each numbered block: a thread here, or a task on a cluster."""

    def run_blocks(self, kernel: Callable[[int], bytes], blocks: int) -> Iterable[bytes]:
        """Run the kernel for each block; yield what it returns, in any order.

        A kernel may run more than once for a block, and must then do the same.
        """

    def frame(self, kernel: Callable[[int], pl.DataFrame], blocks: int) -> Foreign | None:
        """Return the frames of all blocks as a data frame of the engine; None if it has none."""


class Rows(Protocol):
    """Encoded rows of a table, or of one part of it. Confidential, their number included."""

    @property
    def number(self) -> int:
        """The number of rows."""

    def count(
        self, attributes: Sequence[Attribute], queries: Sequence[Query]
    ) -> Sequence[ContingencyTable]:
        """Count the rows for each query.

        Args:
            attributes: The attributes of the rows, with the buckets to count by.
            queries: The columns of each table.
        """

    def split(self, fractions: Mapping[str, float], randomness: Randomness) -> Mapping[str, Self]:
        """Assign each row independently to one of the named parts, or to none.

        Args:
            fractions: The probability of each part; they sum to at most 1.
            randomness: Draws the part of each row, block by block of the rows.

        Privacy: as ``data.partition.split_records``, for every engine.
        """

    def limit_per_unit(self, randomness: Randomness, *, max_rows: int) -> Self:
        """Keep at most ``max_rows`` rows of each unit, at random.

        Privacy: as ``data.partition.limit_rows_per_unit``, for every engine.
        """

    def close(self) -> None:
        """Free what the engine holds for these rows; they are not read again."""

    def empty(self) -> Self:
        """Return a table with the same columns and no rows."""

    def frequent_prefixes(
        self, order: Sequence[int], lengths: Sequence[int], sizes: Sequence[int], *, floor: int
    ) -> Sequence[FrequentPrefixes]:
        """Find the prefixes that at least ``floor`` rows share, for each length.

        Args:
            order: σ: a prefix is the first attributes in this order.
            lengths: The lengths of prefixes, ascending, each at least 1.
            sizes: The number of values of each attribute.
            floor: Prefixes that fewer rows share stay with the engine.
        """
