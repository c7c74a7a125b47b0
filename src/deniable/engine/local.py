"""One machine: the rows are an array in memory or in a file, counted by every core."""

import math
from collections.abc import Sequence
from functools import partial, reduce
from itertools import chain, permutations
from operator import add

import numpy as np

from deniable.arrays import CODE, Codes, Counts
from deniable.data.attributes import Attribute
from deniable.data.bulk import SMALL_TABLE, Spooled, distinct_rows, stretches
from deniable.model.cells import Count, Query, Tally, shape_of, tally
from deniable.model.joint import join, take_out
from deniable.release.counts import PrefixCounts
from deniable.workers import in_order

# A table of at most so many cells stays in the cache while it is counted by, and a cell's number is
# no longer than a code. A larger one is counted by itself, in a longer stretch of rows.
_FEW_CELLS = 2**15
_MANY_ROWS = 2**22
# Rows that are counted together: few enough for the cache, so many that threads seldom meet.
_TOGETHER = 2**17
# Cells of all tables that one worker fills while it walks down the rows.
_MOST_CELLS = 2**20


def count(
    attributes: Sequence[Attribute], codes: Codes, queries: Sequence[Query], *, workers: int
) -> list[Tally]:
    """Count the records of ``codes`` for each query."""
    sizes = [int(np.prod(shape_of(attributes, query), dtype=object)) for query in queries]
    small = [query for query, size in zip(queries, sizes, strict=True) if size <= _FEW_CELLS]
    large = [query for query, size in zip(queries, sizes, strict=True) if size > _FEW_CELLS]
    within = _join(attributes, small)
    tables = list(dict.fromkeys(within.values()))
    counted = _count_tables(attributes, codes, tables, workers)
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
    joined = join(short, length, most=_FEW_CELLS)
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


def _count_tables(
    attributes: Sequence[Attribute], codes: Codes, queries: Sequence[Query], workers: int
) -> dict[Query, Tally]:
    """Count by small tables: rows are shared out among workers, or tables where rows are few."""
    shapes = {query: shape_of(attributes, query) for query in queries}
    parts = max(min(workers, math.ceil(len(codes) / _TOGETHER)), 1)
    cells = sum(map(math.prod, shapes.values()))
    walks = max(math.ceil(workers / parts), math.ceil(cells / _MOST_CELLS))
    jobs = [(queries[walk::walks], part) for walk in range(walks) for part in range(parts)]
    tables = {query: np.zeros(math.prod(shape), np.int64) for query, shape in shapes.items()}

    def run(job: tuple[Sequence[Query], int]) -> list[Counts]:
        return _walk(attributes, codes, job[0], part=job[1], parts=parts)

    for (some, _), counted in zip(jobs, in_order(run, jobs, workers=workers), strict=True):
        for query, counts in zip(some, counted, strict=True):
            tables[query] += counts
    found = {}
    for query, table in tables.items():
        there = np.flatnonzero(table)
        found[query] = Tally(shapes[query], there, table[there])
    return found


def _walk(
    attributes: Sequence[Attribute],
    codes: Codes,
    queries: Sequence[Query],
    *,
    part: int,
    parts: int,
) -> list[Counts]:
    """Count by several small tables in one walk down a part of the rows, every so many stretches.

    The numbers of cells are as short as codes, so that the processor reckons with many at once.
    """
    shapes = [shape_of(attributes, query) for query in queries]
    tables = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
    asked = set(chain.from_iterable(queries))
    buckets = {
        axis: attributes[axis.attribute].bucket_of.astype(CODE)
        for axis in asked
        if axis.bucketed and attributes[axis.attribute].is_bucketed
    }
    for at in range(part * _TOGETHER, len(codes) if queries else 0, parts * _TOGETHER):
        some = codes[at : at + _TOGETHER]
        column = {axis: some[:, axis.attribute] for axis in asked}
        column |= {axis: bucket.take(column[axis]) for axis, bucket in buckets.items()}
        for place, (query, shape) in enumerate(zip(queries, shapes, strict=True)):
            numbers = column[query[0]]
            for axis, length in zip(query[1:], shape[1:], strict=True):
                numbers = numbers * CODE(length)
                numbers += column[axis]
            tables[place] += np.bincount(numbers, minlength=len(tables[place]))
    return tables


def _count_alone(attributes: Sequence[Attribute], codes: Codes, query: Query) -> Tally:
    """Count by one table, which may have many cells, most of them empty."""
    if len(codes) <= _MANY_ROWS:
        return tally(attributes, codes, query)
    return reduce(add, map(partial(tally, attributes, query=query), stretches(codes, _MANY_ROWS)))
