"""Tallies: contingency tables of a part of the rows, summed over parts by an engine.

Every task counts the same tables, those that one machine would count, and reports the non-empty
cells. A tally's size follows from the tables, never from the number of rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Codes, Counts
from deniable.counting.contingency import ContingencyTable, Query, count_cells, table_shape
from deniable.counting.local import (
    assign_tables,
    count_in_batches,
    extract_margin,
    separate_queries,
)
from deniable.schema.attribute import Attribute

# Bytes of codes that are counted at once: adding up a table costs as much as counting some rows.
_BYTES_PER_PASS = 2**24


@dataclass(frozen=True)
class TallyPlan:
    """The tables that answer some queries in one pass over the rows.

    Attributes:
        attributes: The attributes of the rows, with the buckets to count by.
        queries: The queries.
        containing: For each small query, the table that it is a margin of.
        small: The distinct small tables.
        large: The tables with many cells, which are counted one at a time.
    """

    attributes: tuple[Attribute, ...] = field(repr=False)
    queries: tuple[Query, ...] = field(repr=False)
    containing: Mapping[Query, Query] = field(repr=False)
    small: tuple[Query, ...] = field(repr=False)
    large: tuple[Query, ...] = field(repr=False)

    @classmethod
    def of(cls, attributes: Sequence[Attribute], queries: Sequence[Query]) -> "TallyPlan":
        """Plan the tables, as one machine would."""
        small, large = separate_queries(attributes, queries)
        containing = assign_tables(attributes, small)
        distinct = tuple(dict.fromkeys(containing.values()))
        return cls(tuple(attributes), tuple(queries), containing, distinct, tuple(large))

    def count(self, batches: Iterable[Codes]) -> list[ContingencyTable]:
        """Count the rows of all batches in each table: the small ones, then the large ones."""
        dense: list[Counts] = []
        sparse: list[ContingencyTable] = []
        for codes in _joined(batches):
            counted = count_in_batches(self.attributes, codes, self.small, part=0, parts=1)
            dense = [one + two for one, two in zip(dense, counted, strict=False)] or counted
            wide = [count_cells(self.attributes, codes, query) for query in self.large]
            sparse = [one + two for one, two in zip(sparse, wide, strict=False)] or wide
        return [*(self._sparse(*pair) for pair in zip(self.small, dense, strict=False)), *sparse]

    def _sparse(self, query: Query, counts: Counts) -> ContingencyTable:
        cells = np.flatnonzero(counts)
        return ContingencyTable(table_shape(self.attributes, query), cells, counts[cells])

    def resolve(self, totals: Mapping[int, tuple[Counts, Counts]]) -> list[ContingencyTable]:
        """Answer the queries, given the cells and counts of each table over all rows.

        Args:
            totals: By the number of the table in ``count``; absent if no row was counted.
        """
        none = np.empty(0, np.int64)
        tables: dict[Query, ContingencyTable] = {}
        for number, query in enumerate((*self.small, *self.large)):
            cells, counts = totals.get(number, (none, none))
            tables[query] = ContingencyTable(table_shape(self.attributes, query), cells, counts)
        answers = []
        for query in self.queries:
            whole = self.containing.get(query, query)
            table = tables[whole]
            answers.append(table if whole == query else extract_margin(table, whole, query))
        return answers


def _joined(batches: Iterable[Codes]) -> Iterator[Codes]:
    """Join batches until they are worth a pass over all tables."""
    held: list[Codes] = []
    size = 0
    for codes in batches:
        held.append(codes)
        size += codes.nbytes
        if size >= _BYTES_PER_PASS:
            yield np.concatenate(held)
            held, size = [], 0
    if held:
        yield np.concatenate(held)


def sum_cells(cells: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Add up the counts of equal cells; cells ascending."""
    distinct, place = np.unique(cells, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, place, counts)
    return distinct.astype(np.int64), total
