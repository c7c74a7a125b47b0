"""One machine: the rows are an array in memory or in a file, counted by every core."""

import math
from collections.abc import Sequence
from functools import partial, reduce
from itertools import chain, permutations
from operator import add

import numpy as np

from deniable.arrays import Codes, Counts
from deniable.data.attributes import Attribute
from deniable.data.bulk import SMALL_TABLE, Spooled, distinct_rows, stretches
from deniable.model.cells import Axis, Count, Query, Tally, shape_of, tally
from deniable.model.joint import join, take_out
from deniable.release.counts import PrefixCounts
from deniable.workers import in_order

# Rows that are counted together: with their numbers and a table of as many cells they stay in the
# cache. A larger table is counted by itself, in a longer stretch of rows.
_FEW_ROWS = 2**15
_MANY_ROWS = 2**22
# Cells of all tables that one worker fills while it walks down the rows.
_MOST_CELLS = 2**22


def count(
    attributes: Sequence[Attribute], codes: Codes, queries: Sequence[Query], *, workers: int
) -> list[Tally]:
    """Count the records of ``codes`` for each query."""
    sizes = [int(np.prod(shape_of(attributes, query), dtype=object)) for query in queries]
    small = [query for query, size in zip(queries, sizes, strict=True) if size <= _FEW_ROWS]
    large = [query for query, size in zip(queries, sizes, strict=True) if size > _FEW_ROWS]
    within = _join(attributes, small)
    tables = list(dict.fromkeys(within.values()))
    cells = sum(math.prod(shape_of(attributes, table)) for table in tables)
    walks = max(workers, math.ceil(cells / _MOST_CELLS))
    jobs = [tables[walk::walks] for walk in range(walks)]
    counted: dict[Query, Tally] = {}
    for some in in_order(partial(_walk, attributes, codes), jobs, workers=workers):
        counted |= some
    by_itself = partial(_count_alone, attributes, codes)
    found = dict(zip(large, in_order(by_itself, large, workers=workers), strict=True))
    for query, table in within.items():
        whole = counted[table]
        found[query] = whole if table == query else take_out(whole, table, query)
    return [found[query] for query in queries]


def _join(attributes: Sequence[Attribute], queries: Sequence[Query]) -> dict[Query, Query]:
    """Return, for each query, a table to count by that it is a margin of, or is itself."""
    length = {axis: shape_of(attributes, (axis,))[0] for axis in chain.from_iterable(queries)}
    short = [query for query in queries if len(query) == len(set(query)) in (1, 2)]
    joined = join(short, length, most=_FEW_ROWS)
    inside = {part: table for table in joined for n in (1, 2) for part in permutations(table, n)}
    return {query: inside.get(query, query) for query in queries}


def remember(count_exactly: Count) -> Count:
    """Return the same answers, each counted once, however often it is asked for."""
    known: dict[Query, Tally] = {}

    def answer(queries: Sequence[Query]) -> list[Tally]:
        new = [query for query in dict.fromkeys(queries) if query not in known]
        known.update(zip(new, count_exactly(new), strict=True))
        return [known[query] for query in queries]

    return answer


def count_prefixes(
    seeds: Codes, order: Sequence[int], lengths: Sequence[int], sizes: Sequence[int]
) -> tuple[Codes, PrefixCounts]:
    """Return seeds, and how many share their first attributes in the order σ.

    Where there are few prefixes, or the seeds are in a file, one seed stands for all who share the
    longest prefix, and has its columns alone, in the order σ. What is counted is the same.
    """
    columns = list(order[: max(lengths)])
    values = [sizes[column] for column in columns]
    if math.prod(values) > SMALL_TABLE and not isinstance(seeds, Spooled):
        return seeds, PrefixCounts.of(seeds, order, lengths, sizes)
    prefixes, shared = distinct_rows(seeds, columns, values)
    return prefixes, PrefixCounts.of_several(prefixes, shared, range(len(columns)), lengths, values)


def _walk(
    attributes: Sequence[Attribute], codes: Codes, queries: Sequence[Query]
) -> dict[Query, Tally]:
    """Count by several small tables in one walk down the rows."""
    shapes = [shape_of(attributes, query) for query in queries]
    tables = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
    asked = set(chain.from_iterable(queries))
    for some in stretches(codes, _FEW_ROWS) if queries else ():
        column = {axis: _numbers(attributes, some, axis) for axis in asked}
        for at, (query, shape) in enumerate(zip(queries, shapes, strict=True)):
            numbers = column[query[0]]
            for axis, length in zip(query[1:], shape[1:], strict=True):
                numbers = numbers * length
                numbers += column[axis]
            tables[at] += np.bincount(numbers, minlength=len(tables[at]))
    cells = [np.flatnonzero(table) for table in tables]
    counts = [table[there] for table, there in zip(tables, cells, strict=True)]
    return dict(zip(queries, map(Tally, shapes, cells, counts), strict=True))


def _numbers(attributes: Sequence[Attribute], codes: Codes, axis: Axis) -> Counts:
    """Return the codes of a column, or their buckets, as numbers to reckon with."""
    column = codes[:, axis.attribute]
    if axis.bucketed:
        return attributes[axis.attribute].bucket_of[column].astype(np.int64, copy=False)
    return column.astype(np.int64)


def _count_alone(attributes: Sequence[Attribute], codes: Codes, query: Query) -> Tally:
    """Count by one table, which may have many cells, most of them empty."""
    if len(codes) <= _MANY_ROWS:
        return tally(attributes, codes, query)
    return reduce(add, map(partial(tally, attributes, query=query), stretches(codes, _MANY_ROWS)))
