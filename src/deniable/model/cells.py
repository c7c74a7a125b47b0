"""Counting records by the cells of a table: the one question the model asks of the data.

Entropies, conditional tables, distances: each is a group-by on a few columns, some of them
bucketed. A query says which; a tally is its answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.arrays import Codes, Counts, Indices
from deniable.data.attributes import Attribute
from deniable.errors import ConfigError

# Counting by array is fastest while the array fits the cache or is no longer than the rows.
_SMALL_TABLE = 2**20


@dataclass(frozen=True)
class Axis:
    """One column of a query: an attribute, or its bucket."""

    attribute: int
    bucketed: bool = False


Query = tuple[Axis, ...]


@dataclass(frozen=True)
class Tally:
    """The non-empty cells of a table and how many records each holds. Confidential.

    Cells are numbered row by row (C order) in a table of this shape, in ascending order.
    """

    shape: tuple[int, ...]
    cells: Counts
    counts: Counts

    @property
    def records(self) -> int:
        """How many records were counted."""
        return int(self.counts.sum())

    def dense(self) -> Counts:
        """Return the whole table, empty cells included."""
        table = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        table[self.cells] = self.counts
        return table.reshape(self.shape)

    def merge(self, axis: int, groups: Indices) -> Self:
        """Return the coarser table in which value v of ``axis`` has become ``groups[v]``."""
        shape = list(self.shape)
        shape[axis] = int(groups.max()) + 1
        places = list(np.unravel_index(self.cells, self.shape))
        places[axis] = groups[places[axis]]
        cells = np.ravel_multi_index(tuple(places), tuple(shape)).astype(np.int64)
        return type(self)(tuple(shape), *_sum_by_cell(cells, self.counts))

    def margin(self, axis: int) -> Self:
        """Return the one-column table of ``axis``: every other column summed out."""
        place = np.unravel_index(self.cells, self.shape)[axis].astype(np.int64)
        return type(self)((self.shape[axis],), *_sum_by_cell(place, self.counts))

    def __add__(self, other: Self) -> Self:
        cells = np.concatenate([self.cells, other.cells])
        counts = np.concatenate([self.counts, other.counts])
        return type(self)(self.shape, *_sum_by_cell(cells, counts))


# What the model knows of the data: it asks queries, and somebody who has the rows answers.
Count = Callable[[Sequence[Query]], Sequence[Tally]]


def shape_of(attributes: Sequence[Attribute], query: Query) -> tuple[int, ...]:
    """Return how many values each column of a query has."""
    return tuple(
        attributes[axis.attribute].buckets if axis.bucketed else attributes[axis.attribute].size
        for axis in query
    )


def number_cells(attributes: Sequence[Attribute], codes: Codes, query: Query) -> Counts:
    """Return, for each record, the number of its cell in the table of ``query``."""
    numbers = np.zeros(len(codes), dtype=np.int64)
    for axis, length in zip(query, shape_of(attributes, query), strict=True):
        column = codes[:, axis.attribute]
        if len(query) > 1:
            numbers *= length
        numbers += attributes[axis.attribute].bucket_of[column] if axis.bucketed else column
    return numbers


def tally(attributes: Sequence[Attribute], codes: Codes, query: Query) -> Tally:
    """Count the records of each non-empty cell of ``query``."""
    shape = shape_of(attributes, query)
    size = int(np.prod(shape, dtype=object))
    if size >= 2**62:
        raise ConfigError(f"a table of {size:.3g} cells is too large to count; lower max_cost")
    numbers = number_cells(attributes, codes, query)
    if size <= max(_SMALL_TABLE, 2 * len(codes)):
        table = np.bincount(numbers, minlength=1)
        cells = np.flatnonzero(table)
        return Tally(shape, cells, table[cells])
    cells, counts = np.unique(numbers, return_counts=True)
    return Tally(shape, cells, counts)


def _sum_by_cell(cells: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Add up the counts of equal cells; return the cells in ascending order."""
    unique, place = np.unique(cells, return_inverse=True)
    sums = np.zeros(len(unique), dtype=np.int64)
    np.add.at(sums, place, counts)
    return unique, sums
