"""Count rows on one machine, in memory or spooled to a file, with all cores.

Small queries are merged into larger tables, so that fewer passes over the rows are needed. Each
query is then a margin of the table that contains it. A query with too many cells is counted on its
own.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain, permutations
from operator import add

import numpy as np
import polars as pl

from deniable.arrays import CODE, Codes, Counts, Mask
from deniable.counting.contingency import (
    ContingencyTable,
    Query,
    QueryAxis,
    count_cells,
    table_shape,
)
from deniable.counting.prefix_counts import FrequentPrefixes, PrefixCounts
from deniable.counting.rows import Rows
from deniable.data.partition import limit_rows_per_unit, split_records
from deniable.data.spooled_codes import (
    MAX_DENSE_COMBINATIONS,
    SpooledCodes,
    count_distinct_rows,
    row_batches,
)
from deniable.errors import ConfigError, InvariantError
from deniable.randomness import Randomness
from deniable.schema.attribute import Attribute
from deniable.workers import count_cores, map_in_order

# Small tables stay in the cache while rows are counted, and a cell index fits in 16 bits, like a
# code. Larger tables are counted one at a time.
_MAX_SMALL_TABLE_CELLS = 2**15
# Rows per batch. For small tables: few enough for the cache, many enough that threads rarely meet.
_ROWS_PER_SMALL_BATCH = 2**17
_ROWS_PER_LARGE_BATCH = 2**22
# More queries, and queries of more axes, are not merged: planning would take longer than counting.
_MAX_MERGED_QUERIES = 5000
_MAX_MERGED_AXES = 3
# Cells, over all its small tables, that a worker fills in one pass over the rows.
_MAX_CELLS_PER_WORKER = 2**20


@dataclass(frozen=True)
class LocalRows:
    """Rows on this machine: an array of codes, in memory or spooled to a file. See ``Rows``.

    Attributes:
        codes: The encoded rows.
        workers: Threads that count; None: one for each core.
        units: The unit of each row: equal numbers mean the same unit. None without a unit.
    """

    codes: Codes = field(repr=False)
    workers: int | None = None
    units: Counts | None = field(repr=False, default=None)

    @property
    def number(self) -> int:
        """The number of rows."""
        return len(self.codes)

    def count(
        self, attributes: Sequence[Attribute], queries: Sequence[Query]
    ) -> list[ContingencyTable]:
        """Count the rows for each query.

        Raises:
            ConfigError: A query has too many cells to index.
        """
        codes, workers = self.codes, self.workers or count_cores()
        small, large = separate_queries(attributes, queries)
        merged_query = assign_tables(attributes, small)
        distinct = list(dict.fromkeys(merged_query.values()))
        counted = _count_small_tables(attributes, codes, distinct, workers)
        count_large = partial(_count_large_table, attributes, codes)
        tables = dict(zip(large, map_in_order(count_large, large, workers=workers), strict=True))
        for query, merged in merged_query.items():
            table = counted[merged]
            tables[query] = table if merged == query else extract_margin(table, merged, query)
        return [tables[query] for query in queries]

    def split(
        self, fractions: Mapping[str, float], randomness: Randomness
    ) -> dict[str, "LocalRows"]:
        """Assign each row independently to one of the named parts, or to none."""
        parts = split_records(self.codes, fractions, randomness)
        return {part: LocalRows(codes, self.workers) for part, codes in parts.items()}

    def limit_per_unit(self, randomness: Randomness, *, max_rows: int) -> "LocalRows":
        """Keep at most ``max_rows`` rows of each unit, at random."""
        if self.units is None:
            raise InvariantError("the rows have no units")
        codes = limit_rows_per_unit(self.codes, self.units, randomness, max_rows=max_rows)
        return LocalRows(codes, self.workers)

    def close(self) -> None:
        """Do nothing: the array is freed with its last reference."""

    def empty(self) -> "LocalRows":
        """Return a table with the same columns and no rows."""
        return LocalRows(self.codes[:0], self.workers)

    def frequent_prefixes(
        self, order: Sequence[int], lengths: Sequence[int], sizes: Sequence[int], *, floor: int
    ) -> list[FrequentPrefixes]:
        """Find the prefixes that at least ``floor`` rows share, for each length."""
        seeds, counts = count_prefixes(self.codes, order, lengths, sizes)
        return [
            distinct_prefixes(seeds, counts, at, length).at_least(floor)
            for at, length in enumerate(counts.levels)
        ]


class LocalEngine:
    """Runs blocks in threads of this process. See ``BlockEngine``."""

    def run_blocks(self, kernel: Callable[[int], bytes], blocks: int) -> Iterator[bytes]:
        """Run the kernel for each block; yield what it returns."""
        return map_in_order(kernel, range(blocks), workers=count_cores())

    def frame(self, kernel: Callable[[int], pl.DataFrame], blocks: int) -> None:  # noqa: ARG002
        """Return None: this engine has no data frames of its own."""
        return


def local_codes(rows: Rows, *, purpose: str) -> Codes:
    """Return the codes of rows on this machine.

    Raises:
        ConfigError: The rows are on a cluster.
    """
    if not isinstance(rows, LocalRows):
        raise ConfigError(
            f"{purpose} is not available on Spark: it reads all rows one by one. Use --engine local"
        )
    return rows.codes


def count(
    attributes: Sequence[Attribute], codes: Codes, queries: Sequence[Query], *, workers: int
) -> list[ContingencyTable]:
    """Count the records of ``codes`` for each query. See ``LocalRows.count``."""
    return LocalRows(codes, workers).count(attributes, queries)


def count_prefixes(
    seeds: Codes, order: Sequence[int], lengths: Sequence[int], sizes: Sequence[int]
) -> tuple[Codes, PrefixCounts]:
    """Count the seeds that share each prefix, that is, their first attributes in the order σ.

    Returns:
        The seeds and their prefix counts. If few prefixes are possible, or the seeds are spooled to
        a file, the seeds are reduced to one row per distinct longest prefix, with only its columns,
        in the order σ. The counts are the same.
    """
    columns = list(order[: max(lengths)])
    values = [sizes[column] for column in columns]
    if math.prod(values) > MAX_DENSE_COMBINATIONS and not isinstance(seeds, SpooledCodes):
        return seeds, PrefixCounts.of(seeds, order, lengths, sizes)
    prefixes, multiplicity = count_distinct_rows(seeds, columns, values)
    counts = PrefixCounts.of_weighted(prefixes, multiplicity, range(len(columns)), lengths, values)
    return prefixes, counts


def distinct_prefixes(seeds: Codes, counts: PrefixCounts, at: int, length: int) -> FrequentPrefixes:
    """List the distinct prefixes of one length in ascending order, with their exact counts."""
    groups = counts.groups[at]
    sizes = counts.sizes[at]
    representative = np.empty(len(sizes), dtype=np.intp)
    representative[groups] = np.arange(len(seeds))
    columns: Sequence[int] = counts.order[:length]
    return FrequentPrefixes(seeds[representative][:, columns], sizes)


def separate_queries(
    attributes: Sequence[Attribute], queries: Sequence[Query]
) -> tuple[list[Query], list[Query]]:
    """Separate queries with few cells, which are merged, from those with many."""
    small: list[Query] = []
    large: list[Query] = []
    for query in queries:
        cells = math.prod(table_shape(attributes, query))
        (small if cells <= _MAX_SMALL_TABLE_CELLS else large).append(query)
    return small, large


def assign_tables(attributes: Sequence[Attribute], queries: Sequence[Query]) -> dict[Query, Query]:
    """Map each query to the merged query that contains it, or to itself."""
    if len(queries) > _MAX_MERGED_QUERIES:
        return {query: query for query in queries}
    sizes = {axis: table_shape(attributes, (axis,))[0] for axis in chain.from_iterable(queries)}
    mergeable = [query for query in queries if len(query) == len(set(query)) <= _MAX_MERGED_AXES]
    merged = merge_queries(mergeable, sizes, max_cells=_MAX_SMALL_TABLE_CELLS)
    lengths = {len(query) for query in mergeable}
    table_of = {
        margin: table for table in merged for n in lengths for margin in permutations(table, n)
    }
    return {query: table_of.get(query, query) for query in queries}


def merge_queries(
    queries: Sequence[Query], sizes: Mapping[QueryAxis, int], *, max_cells: int
) -> list[Query]:
    """Merge queries of one, two or three axes into queries of at most ``max_cells`` cells.

    Every given query is a margin of a returned one. A query with more than ``max_cells`` cells
    stays on its own.
    """
    axes = list(dict.fromkeys(chain.from_iterable(queries)))
    lengths = np.array([sizes[axis] for axis in axes])
    groups: list[list[int]] = []
    for order in range(_MAX_MERGED_AXES, 1, -1):
        # Marks each set of axes that is asked for and not yet covered, in every order.
        is_open = np.zeros((len(axes),) * order, dtype=bool)
        for query in (query for query in queries if len(query) == order):
            for places in permutations(map(axes.index, query)):
                is_open[places] = True
        for group in groups:
            is_open[np.ix_(*[group] * order)] = False
        while is_open.any():
            groups.append(_grow_group(is_open, lengths, max_cells))
            is_open[np.ix_(*[groups[-1]] * order)] = False
    single = set(range(len(axes))).difference(*groups)
    packed = _pack_axes([axes[at] for at in sorted(single)], sizes, max_cells)
    return [tuple(axes[at] for at in group) for group in groups] + [tuple(own) for own in packed]


def _grow_group(is_open: Mask, lengths: Counts, max_cells: int) -> list[int]:
    """Grow a group of axes that covers many open sets, until no further axis fits. Greedy.

    Args:
        is_open: Marks the sets to cover: an array with one dimension per member of a set.
        lengths: The number of values of each axis.
        max_cells: The most cells of a group that has more members than a set.
    """
    group: list[int] = []
    while True:
        if len(group) < is_open.ndim:
            gain = is_open[tuple(group)].sum(axis=tuple(range(is_open.ndim - 1 - len(group))))
        else:
            others = is_open[np.ix_(*[group] * (is_open.ndim - 1))]
            gain = others.sum(axis=tuple(range(is_open.ndim - 1)))
            gain[lengths * math.prod(lengths[group].tolist()) > max_cells] = 0
        gain[group] = 0
        if not gain.any():
            return group
        # Ties go to the axis with fewer values, which leaves room for others, then to the first.
        group.append(int(np.lexsort((lengths, -gain))[0]))


def _pack_axes(
    axes: Sequence[QueryAxis], sizes: Mapping[QueryAxis, int], max_cells: int
) -> list[list[QueryAxis]]:
    """Pack axes into groups of at most ``max_cells`` cells each (first fit)."""
    packed: list[list[QueryAxis]] = []
    for axis in axes:
        for group in packed:
            if math.prod(sizes[other] for other in group) * sizes[axis] <= max_cells:
                group.append(axis)
                break
        else:
            packed.append([axis])
    return packed


def _count_small_tables(
    attributes: Sequence[Attribute], codes: Codes, queries: Sequence[Query], workers: int
) -> dict[Query, ContingencyTable]:
    """Count small tables in parallel: workers split the rows, or the tables if rows are few."""
    shapes = {query: table_shape(attributes, query) for query in queries}
    parts = max(min(workers, math.ceil(len(codes) / _ROWS_PER_SMALL_BATCH)), 1)
    total_cells = sum(map(math.prod, shapes.values()))
    passes = max(math.ceil(workers / parts), math.ceil(total_cells / _MAX_CELLS_PER_WORKER))
    jobs = [(queries[i::passes], part) for i in range(passes) for part in range(parts)]
    tables = {query: np.zeros(math.prod(shape), np.int64) for query, shape in shapes.items()}

    def run(job: tuple[Sequence[Query], int]) -> list[Counts]:
        return count_in_batches(attributes, codes, job[0], part=job[1], parts=parts)

    # A single job needs no thread, which would take longer to start than to count a small table.
    found = map(run, jobs) if len(jobs) == 1 else map_in_order(run, jobs, workers=workers)
    for (subset, _), counted in zip(jobs, found, strict=True):
        for query, counts in zip(subset, counted, strict=True):
            tables[query] += counts
    sparse = {}
    for query, table in tables.items():
        cells = np.flatnonzero(table)
        sparse[query] = ContingencyTable(shapes[query], cells, table[cells])
    return sparse


def count_in_batches(
    attributes: Sequence[Attribute],
    codes: Codes,
    queries: Sequence[Query],
    *,
    part: int,
    parts: int,
) -> list[Counts]:
    """Count several small tables in one pass over every ``parts``-th batch of rows.

    Cell indices are 16-bit, like codes, so that NumPy can use wide vector instructions.
    """
    shapes = [table_shape(attributes, query) for query in queries]
    tables = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
    axes = set(chain.from_iterable(queries))
    buckets = {
        axis: attributes[axis.attribute].bucket_of.astype(CODE)
        for axis in axes
        if axis.bucketed and attributes[axis.attribute].is_bucketed
    }
    rows = _ROWS_PER_SMALL_BATCH
    for start in range(part * rows, len(codes) if queries else 0, parts * rows):
        batch = codes[start : start + rows]
        column = {axis: batch[:, axis.attribute] for axis in axes}
        column |= {axis: bucket.take(column[axis]) for axis, bucket in buckets.items()}
        for i, (query, shape) in enumerate(zip(queries, shapes, strict=True)):
            indices = column[query[0]]
            for axis, length in zip(query[1:], shape[1:], strict=True):
                indices = indices * CODE(length)
                indices += column[axis]
            tables[i] += np.bincount(indices, minlength=len(tables[i]))
    return tables


def extract_margin(table: ContingencyTable, query: Query, wanted: Query) -> ContingencyTable:
    """Return the margin ``wanted`` of the table of ``query``, which has all its axes."""
    other = tuple(i for i, axis in enumerate(query) if axis not in wanted)
    dense = table.dense().sum(axis=other)
    kept = [axis for axis in query if axis in wanted]
    dense = dense.transpose([kept.index(axis) for axis in wanted])
    cells = np.flatnonzero(dense)
    return ContingencyTable(dense.shape, cells, dense.ravel()[cells])


def _count_large_table(
    attributes: Sequence[Attribute], codes: Codes, query: Query
) -> ContingencyTable:
    """Count one table with many cells, most of them empty."""
    if len(codes) <= _ROWS_PER_LARGE_BATCH:
        return count_cells(attributes, codes, query)
    batches = row_batches(codes, _ROWS_PER_LARGE_BATCH)
    return reduce(add, (count_cells(attributes, batch, query) for batch in batches))
