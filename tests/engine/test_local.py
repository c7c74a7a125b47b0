"""Counting on one machine: whatever the size of tables, wherever the rows are, on any workers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.arrays import CODE
from deniable.data import bulk
from deniable.data.attributes import Attribute
from deniable.data.bulk import Spool, Spooled
from deniable.engine import local
from deniable.engine.local import count, count_prefixes, remember
from deniable.errors import ConfigError
from deniable.model.cells import Axis, tally
from deniable.release.counts import PrefixCounts
from worlds import property_test

SIZES = (60, 4, 900, 2)
ATTRIBUTES = tuple(
    Attribute(name=f"a{i}", kind="integer", values=range(size)).with_bucket_width(3)
    for i, size in enumerate(SIZES)
)
AXES = [Axis(i, bucketed) for i in range(len(SIZES)) for bucketed in (False, True)]
queries = st.lists(
    st.lists(st.sampled_from(AXES), min_size=1, max_size=3).map(tuple), min_size=0, max_size=6
)


def codes_of(rows, key=1):
    rng = np.random.default_rng(key)
    return np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1).astype(CODE, order="F")


def spooled(codes):
    spool = Spool(codes.shape[1])
    spool.add(codes)
    return spool.codes()


@property_test
@given(
    queries,
    st.integers(0, 400),
    st.sampled_from([1, 2, 5]),
    st.booleans(),
    st.sampled_from([64, local._FEW_CELLS]),
)
def test_counts_are_those_of_the_definition(asked, rows, workers, in_file, few):
    """Tables of up to 60 · 900 · 900 cells: some fit in a walk, some are counted by themselves."""
    codes = codes_of(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "_FEW_CELLS", few)
        patch.setattr(local, "_TOGETHER", 70)
        patch.setattr(local, "_MANY_ROWS", 150)
        patch.setattr(local, "_MOST_CELLS", 100)
        patch.setattr(bulk, "MOST_IN_MEMORY", 0 if in_file else 2**30)
        held = spooled(codes)
        assert isinstance(held, Spooled) == (in_file and rows > 0)
        found = count(ATTRIBUTES, held, asked, workers=workers)
    assert len(found) == len(asked)
    for one, query in zip(found, asked, strict=True):
        wanted = tally(ATTRIBUTES, codes, query)
        assert one.shape == wanted.shape
        assert np.array_equal(one.cells, wanted.cells)
        assert np.array_equal(one.counts, wanted.counts)
        assert one.counts.dtype == np.int64


def test_a_table_beyond_all_reason_is_refused():
    wide = tuple(Attribute(name=f"a{i}", kind="integer", values=range(60_000)) for i in range(4))
    codes = np.zeros((3, 4), dtype=CODE, order="F")
    with pytest.raises(ConfigError, match="too large to count"):
        count(wide, codes, [tuple(map(Axis, range(4)))], workers=1)


def test_what_was_counted_is_remembered():
    asked = []

    def exactly(new):
        asked.append(list(new))
        return count(ATTRIBUTES, codes_of(50), new, workers=1)

    ask = remember(exactly)
    one, two, three = (Axis(0),), (Axis(1),), (Axis(0), Axis(1))
    first = ask([one, two, one])
    again = ask([two, three])
    assert asked == [[one, two], [three]]
    assert first[0] is first[2]
    assert again[0] is first[1]
    assert again[1].shape == (60, 4)


@pytest.mark.parametrize("lengths", [[1], [2], [1, 3], [2, 3, 4]])
@pytest.mark.parametrize("small", [2**20, 1])
@pytest.mark.parametrize("most", [0, 2**20])
def test_prefixes_are_counted_alike_wherever_the_seeds_are(monkeypatch, lengths, small, most):
    codes, order = codes_of(500), (1, 3, 0, 2)
    monkeypatch.setattr(bulk, "MOST_IN_MEMORY", most)
    monkeypatch.setattr(bulk, "SMALL_TABLE", small)
    monkeypatch.setattr(local, "SMALL_TABLE", small)
    monkeypatch.setattr(bulk.stretches, "__defaults__", (60,))
    seeds, counts = count_prefixes(spooled(codes), order, lengths, SIZES)
    wanted = PrefixCounts.of(codes, order, lengths, SIZES)
    assert not isinstance(seeds, Spooled)
    in_own_order = counts.order == tuple(range(max(lengths)))
    assert in_own_order == (most == 0 or small > 1)
    assert counts.levels == wanted.levels == tuple(lengths)
    for at, length in enumerate(lengths):
        assert np.array_equal(counts.sizes[at], wanted.sizes[at])
        prefixes = np.unique(codes[:, order[:length]], axis=0)
        # Groups are numbered in the order of their prefixes, whoever stands for them.
        one_of_each = np.empty(len(prefixes), dtype=int)
        one_of_each[counts.groups[at]] = np.arange(len(seeds))
        assert np.array_equal(seeds[one_of_each][:, counts.order[:length]], prefixes)
