"""Prefix counts equal the number of seeds that share each prefix, counted one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import definitions
from deniable.counting import prefix_counts as module
from deniable.counting.local import distinct_prefixes
from deniable.counting.prefix_counts import PrefixCounts, SeedGroups
from worlds import codes_of, property_test, schemas, tables

pytestmark = pytest.mark.slow


def shared(table, x, order, length) -> int:
    """N_ℓ(x), record by record (guarantee.md, Theorem 6)."""
    return sum(definitions.shared_prefix(d, x, order) >= length for d in table)


@st.composite
def trees(draw):
    """A table of seeds, an order, some prefix lengths, and records to look up."""
    schema = draw(schemas())
    m = len(schema)
    order = draw(st.permutations(range(m)))
    levels = draw(st.lists(st.integers(0, m), min_size=1, unique=True))
    seeds, others = draw(tables(schema, least=1)), draw(tables(schema, least=1))
    return [a.size for a in schema], order, levels, seeds, seeds + others


@property_test
@given(trees(), st.booleans())
def test_look_up_counts_the_seeds_that_share_each_prefix(tree, small):
    """Both by dense array and by binary search, which a limit of 0 forces."""
    sizes, order, levels, seeds, records = tree
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(module, "_MAX_DENSE_CHILDREN", 0)
        counts = PrefixCounts.of(codes_of(seeds, len(sizes)), order, levels, sizes)
    assert counts.levels == tuple(sorted(levels))
    found = counts.look_up(codes_of(records, len(sizes)))
    for x, row in zip(records, found.tolist(), strict=True):
        assert row == [shared(seeds, x, order, length) for length in counts.levels]


@property_test
@given(trees(), st.booleans())
def test_every_seed_has_the_count_of_its_own_prefix(tree, small):
    sizes, order, levels, seeds, _ = tree
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(module, "_MAX_DENSE_CHILDREN", 0)
        counts = PrefixCounts.of(codes_of(seeds, len(sizes)), order, levels, sizes)
    for at, length in enumerate(counts.levels):
        expected = [shared(seeds, d, order, length) for d in seeds]
        assert counts.of_seeds[at].tolist() == expected


class EveryRank:
    """Draws each integer of the range once."""

    def integers(self, high: int, size: int) -> np.ndarray:
        assert size == 0
        return np.arange(high)


@property_test
@given(trees(), st.integers(1, 3))
def test_groups_of_all_lengths_are_drawn_as_often_as_they_have_seeds(tree, floor):
    sizes, order, levels, seeds, _ = tree
    codes, levels = codes_of(seeds, len(sizes)), sorted(levels)
    counts = PrefixCounts.of(codes, order, levels, sizes)
    frequent = [
        distinct_prefixes(codes, counts, at, length).at_least(floor)
        for at, length in enumerate(levels)
    ]
    groups = SeedGroups.of(frequent, order, columns=len(sizes))
    there = Counter((n, tuple(x[c] for c in order[:n])) for x in seeds for n in levels)
    expected = {prefix: shared for prefix, shared in there.items() if shared >= floor}
    drawn = Counter(
        (n, tuple(int(groups.rows[group][c]) for c in order[:n]))
        for group in groups.draw(0, EveryRank()).tolist()
        for n in [int(groups.lengths[group])]
    )
    assert drawn == expected
    assert sorted(groups.shared.tolist()) == sorted(expected.values())


def test_levels_far_apart_in_a_sparse_domain():
    """Four attributes of 60,000 values and 3,000 seeds: binary search without a lowered limit."""
    rng = np.random.default_rng(12)
    seeds = rng.integers(0, 60_000, (3000, 4), dtype=np.uint16)
    seeds[1000:2000, :3] = seeds[:1000, :3]
    seeds[:500, 0] = 59_999
    order, levels, sizes = (0, 3, 2, 1), (0, 1, 4), (60_000,) * 4
    counts = PrefixCounts.of(seeds, order, levels, sizes)
    assert any(step.dense_index is None for step in counts._steps)  # the path this test is about
    records = np.concatenate([seeds[:50], rng.integers(0, 60_000, (50, 4), dtype=np.uint16)])
    table = [tuple(row) for row in seeds.tolist()]
    for x, row in zip(records.tolist(), counts.look_up(records).tolist(), strict=True):
        assert row == [shared(table, tuple(x), order, length) for length in levels]


def test_repr_hides_the_counts():
    counts = PrefixCounts.of(codes_of([(0, 1), (0, 1)], 2), (0, 1), (1, 2), (2, 2))
    assert "array" not in repr(counts)
