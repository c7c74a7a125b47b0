"""Contingency tables: count records by the values of a few columns.

Entropies, conditional tables and distances are all computed from such group-by counts. A ``Query``
names the columns, bucketed or not; a ``ContingencyTable`` holds the counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.arrays import Codes, Counts, Indices
from deniable.errors import ConfigError
from deniable.schema.attribute import Attribute

# Counting into a dense array is fastest while the array fits in the cache or is shorter than the
# rows.
_CACHED_TABLE_CELLS = 2**20


@dataclass(frozen=True)
class QueryAxis:
    """One column of a query: an attribute's codes, or their buckets."""

    attribute: int
    bucketed: bool = False


Query = tuple[QueryAxis, ...]


@dataclass(frozen=True)
class ContingencyTable:
    """Sparse contingency table: the non-empty cells and their counts. Confidential.

    Attributes:
        shape: The number of values of each column.
        cells: Indices of the non-empty cells in the flattened table (C order), ascending.
        counts: The number of records in each of these cells.
    """

    shape: tuple[int, ...]
    cells: Counts
    counts: Counts

    @property
    def records(self) -> int:
        """The number of records counted."""
        return int(self.counts.sum())

    def dense(self) -> Counts:
        """Return the dense table, empty cells included."""
        table = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        table[self.cells] = self.counts
        return table.reshape(self.shape)

    def coarsen(self, axis: int, groups: Indices) -> Self:
        """Replace each value v of ``axis`` by ``groups[v]`` and add up the merged cells."""
        shape = list(self.shape)
        shape[axis] = int(groups.max()) + 1
        indices = list(np.unravel_index(self.cells, self.shape))
        indices[axis] = groups[indices[axis]]
        cells = np.ravel_multi_index(tuple(indices), tuple(shape)).astype(np.int64)
        return type(self)(tuple(shape), *_sum_by_cell(cells, self.counts))

    def margin(self, axis: int) -> Self:
        """Return the one-way margin of ``axis``: all other columns summed out."""
        index = np.unravel_index(self.cells, self.shape)[axis].astype(np.int64)
        return type(self)((self.shape[axis],), *_sum_by_cell(index, self.counts))

    def __add__(self, other: Self) -> Self:
        cells = np.concatenate([self.cells, other.cells])
        counts = np.concatenate([self.counts, other.counts])
        return type(self)(self.shape, *_sum_by_cell(cells, counts))


# Callback that counts the rows for each query: all that the model sees of the data.
CountQueries = Callable[[Sequence[Query]], Sequence[ContingencyTable]]


def table_shape(attributes: Sequence[Attribute], query: Query) -> tuple[int, ...]:
    """Return the shape of a query's table: the number of values of each column."""
    return tuple(
        attributes[axis.attribute].buckets if axis.bucketed else attributes[axis.attribute].size
        for axis in query
    )


def cell_indices(attributes: Sequence[Attribute], codes: Codes, query: Query) -> Counts:
    """Return the index of each record's cell in the flattened table of ``query``."""
    indices = np.zeros(len(codes), dtype=np.int64)
    for axis, length in zip(query, table_shape(attributes, query), strict=True):
        column = codes[:, axis.attribute]
        if len(query) > 1:
            indices *= length
        indices += attributes[axis.attribute].bucket_of[column] if axis.bucketed else column
    return indices


def count_cells(attributes: Sequence[Attribute], codes: Codes, query: Query) -> ContingencyTable:
    """Count the records in each cell of ``query``.

    Raises:
        ConfigError: The table has too many cells to index.
    """
    shape = table_shape(attributes, query)
    size = int(np.prod(shape, dtype=object))
    if size >= 2**62:
        raise ConfigError(f"a table of {size:.3g} cells is too large to count; lower max_cost")
    indices = cell_indices(attributes, codes, query)
    if size <= max(_CACHED_TABLE_CELLS, 2 * len(codes)):
        table = np.bincount(indices, minlength=1)
        cells = np.flatnonzero(table)
        return ContingencyTable(shape, cells, table[cells])
    cells, counts = np.unique(indices, return_counts=True)
    return ContingencyTable(shape, cells, counts)


def _sum_by_cell(cells: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Add up the counts of equal cells; return the cells in ascending order."""
    unique, inverse = np.unique(cells, return_inverse=True)
    sums = np.zeros(len(unique), dtype=np.int64)
    np.add.at(sums, inverse, counts)
    return unique, sums
