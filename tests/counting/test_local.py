"""Local counts equal the definition: small and large tables, memory and file, any workers."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.arrays import CODE
from deniable.counting import local
from deniable.counting.contingency import QueryAxis, count_cells
from deniable.counting.local import (
    count,
    count_prefixes,
    extract_margin,
    merge_queries,
)
from deniable.counting.prefix_counts import PrefixCounts
from deniable.data import spooled_codes
from deniable.data.spooled_codes import CodeSpool, SpooledCodes
from deniable.errors import ConfigError
from deniable.schema.attribute import Attribute
from worlds import property_test

SIZES = (60, 4, 900, 2)
ATTRIBUTES = tuple(
    Attribute(name=f"a{i}", kind="integer", values=range(size)).with_bucket_width(3)
    for i, size in enumerate(SIZES)
)
AXES = [QueryAxis(i, bucketed) for i in range(len(SIZES)) for bucketed in (False, True)]
queries = st.lists(
    st.lists(st.sampled_from(AXES), min_size=1, max_size=3).map(tuple), min_size=0, max_size=6
)


def codes_of(rows, key=1):
    rng = np.random.default_rng(key)
    return np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1).astype(CODE, order="F")


def spooled(codes):
    spool = CodeSpool(codes.shape[1])
    spool.add(codes)
    return spool.codes()


@property_test
@given(
    queries,
    st.integers(0, 400),
    st.sampled_from([1, 2, 5]),
    st.booleans(),
    st.sampled_from([64, local._MAX_SMALL_TABLE_CELLS]),
)
def test_counts_are_those_of_the_definition(asked, rows, workers, in_file, few):
    """Tables of up to 60 · 900 · 900 cells: some are merged, some are counted on their own."""
    codes = codes_of(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "_MAX_SMALL_TABLE_CELLS", few)
        patch.setattr(local, "_ROWS_PER_SMALL_BATCH", 70)
        patch.setattr(local, "_ROWS_PER_LARGE_BATCH", 150)
        patch.setattr(local, "_MAX_CELLS_PER_WORKER", 100)
        patch.setattr(spooled_codes, "MAX_BYTES_IN_MEMORY", 0 if in_file else 2**30)
        held = spooled(codes)
        assert isinstance(held, SpooledCodes) == (in_file and rows > 0)
        found = count(ATTRIBUTES, held, asked, workers=workers)
    assert len(found) == len(asked)
    for one, query in zip(found, asked, strict=True):
        wanted = count_cells(ATTRIBUTES, codes, query)
        assert one.shape == wanted.shape
        assert np.array_equal(one.cells, wanted.cells)
        assert np.array_equal(one.counts, wanted.counts)
        assert one.counts.dtype == np.int64


def test_a_table_with_too_many_cells_is_refused():
    wide = tuple(Attribute(name=f"a{i}", kind="integer", values=range(60_000)) for i in range(4))
    codes = np.zeros((3, 4), dtype=CODE, order="F")
    with pytest.raises(ConfigError, match="too large to count"):
        count(wide, codes, [tuple(map(QueryAxis, range(4)))], workers=1)


def test_many_queries_are_counted_one_by_one(monkeypatch):
    pairs = [tuple(map(QueryAxis, pair)) for pair in combinations(range(len(ATTRIBUTES)), 2)]
    codes = codes_of(500)
    merged = count(ATTRIBUTES, codes, pairs, workers=2)
    monkeypatch.setattr(local, "_MAX_MERGED_QUERIES", 1)
    monkeypatch.setattr(local, "merge_queries", None)  # calling it would raise an error
    alone = count(ATTRIBUTES, codes, pairs, workers=2)
    for one, other in zip(merged, alone, strict=True):
        np.testing.assert_array_equal(one.dense(), other.dense())


@pytest.mark.parametrize("lengths", [[1], [2], [1, 3], [2, 3, 4]])
@pytest.mark.parametrize("small", [2**20, 1])
@pytest.mark.parametrize("most", [0, 2**20])
def test_prefixes_are_counted_alike_wherever_the_seeds_are(monkeypatch, lengths, small, most):
    codes, order = codes_of(500), (1, 3, 0, 2)
    monkeypatch.setattr(spooled_codes, "MAX_BYTES_IN_MEMORY", most)
    monkeypatch.setattr(spooled_codes, "MAX_DENSE_COMBINATIONS", small)
    monkeypatch.setattr(local, "MAX_DENSE_COMBINATIONS", small)
    monkeypatch.setattr(spooled_codes.row_batches, "__defaults__", (60,))
    seeds, counts = count_prefixes(spooled(codes), order, lengths, SIZES)
    wanted = PrefixCounts.of(codes, order, lengths, SIZES)
    assert not isinstance(seeds, SpooledCodes)
    in_own_order = counts.order == tuple(range(max(lengths)))
    assert in_own_order == (most == 0 or small > 1)
    assert counts.levels == wanted.levels == tuple(lengths)
    for at, length in enumerate(lengths):
        assert np.array_equal(counts.sizes[at], wanted.sizes[at])
        prefixes = np.unique(codes[:, order[:length]], axis=0)
        # Groups are numbered in the order of their prefixes, whichever seed represents them.
        one_of_each = np.empty(len(prefixes), dtype=int)
        one_of_each[counts.groups[at]] = np.arange(len(seeds))
        assert np.array_equal(seeds[one_of_each][:, counts.order[:length]], prefixes)


@st.composite
def questions(draw):
    """Some axes with their sizes, and queries of one to three of them."""
    sizes = {
        QueryAxis(i, bucketed=draw(st.booleans())): draw(st.integers(1, 9))
        for i in range(draw(st.integers(1, 8)))
    }
    every = [(a,) for a in sizes] + list(combinations(sizes, 2)) + list(combinations(sizes, 3))
    asked = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    return sizes, [q[::-1] if draw(st.booleans()) else q for q in asked]


@property_test
@given(questions(), st.integers(1, 600))
def test_every_query_is_a_margin_of_a_merged_query(asked, most):
    sizes, queries = asked
    merged = merge_queries(queries, sizes, max_cells=most)
    for query in queries:
        assert any(set(query) <= set(table) for table in merged)
    for table in merged:
        assert len(set(table)) == len(table)
        # A query that is too large stays a table of its own.
        fits = np.prod([sizes[axis] for axis in table]) <= most
        assert fits or len(table) <= 3
        assert fits or len(table) < 3 or set(table) in map(set, queries)


def test_all_pairs_of_eleven_attributes_merge_into_a_quarter_as_many_tables():
    axes = [QueryAxis(i, bucketed=True) for i in range(11)]
    pairs = list(combinations(axes, 2))
    merged = merge_queries(pairs, dict.fromkeys(axes, 10), max_cells=10_000)
    assert len(merged) <= len(pairs) / 4
    assert merge_queries(pairs, dict.fromkeys(axes, 10), max_cells=10_000) == merged


def test_all_triples_of_eleven_attributes_merge_into_a_tenth_as_many_tables():
    axes = [QueryAxis(i, bucketed=True) for i in range(11)]
    triples = list(combinations(axes, 3))
    merged = merge_queries(triples, dict.fromkeys(axes, 5), max_cells=2**15)
    assert len(merged) <= len(triples) / 10
    assert merge_queries(triples, dict.fromkeys(axes, 5), max_cells=2**15) == merged


def test_pairs_that_are_too_large_stay_pairs():
    axes = [QueryAxis(i) for i in range(4)]
    pairs = list(combinations(axes, 2))
    merged = merge_queries(pairs, dict.fromkeys(axes, 100), max_cells=10_000)
    assert sorted(map(sorted_axes, merged)) == sorted(map(sorted_axes, pairs))


def sorted_axes(query):
    return sorted(axis.attribute for axis in query)


@property_test
@given(st.data())
def test_a_margin_has_the_counts_of_its_own_query(data):
    values = [data.draw(st.integers(1, 5)) for _ in range(4)]
    attributes = [
        Attribute(name=f"a{i}", kind="integer", values=range(n)).with_bucket_width(2)
        for i, n in enumerate(values)
    ]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    codes = np.stack([rng.integers(0, n, 30) for n in values], axis=1).astype(np.uint16)
    table = tuple(QueryAxis(i, bucketed=i % 2 == 1) for i in data.draw(st.permutations(range(4))))
    wanted = tuple(data.draw(st.lists(st.sampled_from(table), min_size=1, unique=True)))
    found = extract_margin(count_cells(attributes, codes, table), table, wanted)
    alone = count_cells(attributes, codes, wanted)
    assert found.shape == alone.shape
    assert found.cells.tolist() == alone.cells.tolist()
    assert found.counts.tolist() == alone.counts.tolist()
