"""Systematic sampling: each record has its own law, and frequencies are as near as can be."""

import tracemalloc
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import assert_distribution
from deniable.arrays import CODE
from deniable.model.alias_sampling import alias_tables
from deniable.model.bundled_sampling import Bundle, TableDraw, make_sampling_plan
from deniable.model.systematic_sampling import (
    SystematicSampler,
    draw_from_rows,
    sort_by_parents,
    strengths_of_effects,
    strengths_of_table,
)
from deniable.randomness import Keyed
from worlds import property_test

KEY = 5


def draw(one, cumulative):
    """Draw from cumulative weights, values by records."""
    records = cumulative.shape[1]
    return one.draw(np.ascontiguousarray(cumulative).ravel(), np.arange(records), records)


def sampler(values, key=KEY):
    return SystematicSampler(values, Keyed(key).at("records"))


def weights_of(shape, key):
    """Random integer weights, some of them 0, values by records; and their cumulative sums."""
    rng = np.random.default_rng(key)
    weights = rng.integers(0, 1000, size=shape) * (rng.uniform(size=shape) < 0.8)
    weights[rng.integers(shape[0]), :] += 1
    return weights, np.cumsum(weights, axis=0)


def draw_literally(cumulative, starts):
    """One record after the other, with exact fractions, by the words of the module's docstring."""
    values, records = cumulative.shape
    sums: dict[tuple[int, int], int] = {}
    drawn = []
    for record in range(records):
        low, high, level, node = 0, values, 0, 0
        while high - low > 1:
            middle = (low + high) // 2
            before = int(cumulative[low - 1, record]) if low else 0
            left = int(cumulative[middle - 1, record]) - before
            total = int(cumulative[high - 1, record]) - before
            sums.setdefault((level, node), int(starts[level][node]))
            # Rounded down to units of 2^-32, as stated.
            step = int(Fraction(left / total) * 2**32) if total else 0
            after = sums[level, node] + step
            goes_left = after // 2**32 > sums[level, node] // 2**32
            sums[level, node] = after
            low, high = (low, middle) if goes_left else (middle, high)
            level, node = level + 1, 2 * node + (not goes_left)
        drawn.append(low)
    return drawn


@property_test
@given(st.integers(1, 20), st.integers(0, 60), st.integers(0, 10**6), st.integers(1, 60))
def test_records_follow_the_literal_rule_in_batches_of_any_size(values, records, key, batch):
    _, cumulative = weights_of((values, records), key)
    one = sampler(values)
    starts = [sums.copy() for sums in one._sums]
    parts = [draw(one, cumulative[:, at : at + batch]) for at in range(0, records, batch)]
    found = [value for part in parts for value in part.tolist()]
    assert found == draw_literally(cumulative, starts)


def nodes(low, high):
    """The first value of each node, its first to the right, and its end."""
    if high - low > 1:
        middle = (low + high) // 2
        return [(low, middle, high), *nodes(low, middle), *nodes(middle, high)]
    return []


@property_test
@given(st.integers(2, 40), st.integers(0, 10**6))
def test_as_many_records_go_left_as_expected_up_to_one(values, key):
    weights, cumulative = weights_of((values, 500), key)
    drawn = draw(sampler(values, key), cumulative)
    assert (weights[drawn, np.arange(500)] > 0).all()
    for low, middle, high in nodes(0, values):
        reached = np.flatnonzero((drawn >= low) & (drawn < high))
        left = weights[low:middle, reached].sum(axis=0)
        expected = (left / weights[low:high, reached].sum(axis=0)).sum()
        assert abs(int((drawn[reached] < middle).sum()) - expected) <= 1


def test_equal_records_get_their_frequencies_in_every_stretch():
    """Any 64 of records with eight equal values have eight of each, up to three."""
    cumulative = np.repeat(np.arange(1, 9)[:, None], 1_000, axis=1)
    drawn = draw(sampler(8), cumulative)
    for start in range(0, 900, 7):
        counts = np.bincount(drawn[start : start + 64], minlength=8)
        assert np.abs(counts - 8).max() <= 3


@pytest.mark.slow
def test_each_record_has_its_own_law():
    """20,000 samplers draw three records with different laws; the last one is compared."""
    weights = np.array([[1, 5, 2], [3, 1, 1], [4, 1, 7]])
    cumulative = np.cumsum(weights, axis=0)
    found: Counter = Counter()
    for key in range(20_000):
        found[int(draw(sampler(3, key), cumulative)[2])] += 1
    assert_distribution(found, {0: 0.2, 1: 0.1, 2: 0.7})


def test_rows_of_a_table_are_drawn_in_the_given_order():
    probabilities = np.array([[1.0, 0.0], [0.25, 0.75]])
    rows = np.array([0, 1] * 5_000)
    order = np.argsort(rows, kind="stable")
    drawn = draw_from_rows(probabilities, rows, order, Keyed(KEY).at("records"))
    assert not drawn[rows == 0].any()
    of_second = drawn[np.flatnonzero(rows)]
    for start in range(0, 4_900, 101):
        assert of_second[start : start + 100].sum() == pytest.approx(75, abs=1)


@pytest.mark.parametrize("values", [1, 2, 3, 59, 1000])
def test_one_possible_value_is_always_drawn(values):
    weights = np.zeros((values, 50), dtype=np.int64)
    weights[values // 2] = 7
    assert (draw(sampler(values), np.cumsum(weights, axis=0)) == values // 2).all()


def test_a_table_of_many_values_needs_no_memory_for_each_record():
    """20,000 values and 50,000 records: all weights of all records would be 8 GB."""
    probabilities = np.full((1, 20_000), 1 / 20_000)
    rows, order = np.zeros(50_000, dtype=np.intp), np.arange(50_000)
    tracemalloc.start()
    try:
        drawn = draw_from_rows(probabilities, rows, order, Keyed(KEY).at("records"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**24
    assert np.bincount(drawn, minlength=20_000).max() <= 4


# Order of the records


def variance_of(rows_of_groups, group):
    """The variance of a group's numbers over records, summed over columns, by definition."""
    own = np.array(rows_of_groups, dtype=float)[group]
    return float(((own - own.mean(axis=0)) ** 2).sum())


def test_the_strength_of_a_parent_is_the_variance_of_its_effects_over_records():
    rng = np.random.default_rng(3)
    effects = [rng.integers(-30_000, 30_000, (k, 7)).astype(np.int32) for k in (2, 5, 1, 9)]
    groups = [rng.integers(0, max(len(each) - 1, 1), 4_000) for each in effects]
    found = strengths_of_effects(effects, groups)
    assert found[2] == 0
    for at in (0, 1, 3):
        expected = variance_of(effects[at] / 2**6, groups[at])
        assert found[at] == pytest.approx(expected, rel=1e-2)


def test_the_strength_of_a_tables_parent_is_the_variance_of_distributions_given_it_alone():
    rng = np.random.default_rng(4)
    sizes = (3, 4, 2)
    table = rng.dirichlet([0.5] * 6, 24)
    rows = rng.integers(0, 20, 5_000)
    configurations = np.unravel_index(rows, sizes)
    found = strengths_of_table(table, rows, sizes)
    for at, size in enumerate(sizes):
        given = [table[rows[configurations[at] == g]].mean(axis=0) for g in range(size)]
        expected = variance_of(given, configurations[at]) * 2**40
        assert found[at] == pytest.approx(expected, rel=1e-3)
    assert strengths_of_table(table[:1], np.zeros(9, dtype=np.intp), ()) == []


def test_strengths_of_a_whole_block_do_not_overflow():
    """The largest effects, of a log-linear distribution with many bins, and certain values."""
    records = 2**18
    effect = np.full((2, 4_096), 2**20, dtype=np.int32)
    effect[1] *= -1
    [found] = strengths_of_effects([effect], [np.arange(records) % 2])
    assert found == records * 4_096 * (2**14) ** 2
    table = np.repeat(np.eye(2), 3, axis=0)
    strong, weak = strengths_of_table(table, np.arange(records) % 6, (2, 3))
    assert weak < 1e-9 * strong
    assert strong == pytest.approx(records * 2 * 2.0**38, rel=1e-4)


def test_records_are_sorted_by_the_strongest_parents():
    rng = np.random.default_rng(5)
    columns = [rng.integers(0, 3, 500) for _ in range(3)]
    order = rng.permutation(500)
    place = np.argsort(order)
    found = sort_by_parents(order, columns, [5, 9, 5])
    # The first of two equally strong parents counts more; then the given order.
    assert np.array_equal(found, np.lexsort((place, columns[2], columns[0], columns[1])))
    many = [rng.integers(0, 2, 500) for _ in range(12)]
    found = sort_by_parents(order, many, list(range(12)))
    assert np.array_equal(found, np.lexsort((place, *many[4:])))


# Bundles: mixed-radix indices of combinations, their offsets, and draws that depend on them

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def bundle_of(sizes, first=0) -> Bundle:
    return Bundle(attributes=tuple(range(first, first + len(sizes))), sizes=tuple(sizes))


def every_combination(sizes) -> np.ndarray:
    return np.array(list(product(*map(range, sizes))), dtype=CODE, order="F")


@property_test
@given(SIZES)
def test_indices_of_combinations_ascend_and_round_trip(sizes):
    bundle, every = bundle_of(sizes), every_combination(sizes)
    found = bundle.indices(every)
    assert found.tolist() == list(range(len(every)))
    again = np.zeros_like(every)
    bundle.write(found, again)
    assert again.tolist() == every.tolist()


@property_test
@given(SIZES)
def test_offsets_sum_to_the_index(sizes):
    bundle, every = bundle_of(sizes), every_combination(sizes)
    total = sum(step[every[:, i]] for i, step in bundle.code_offsets())
    assert total.tolist() == bundle.indices(every).tolist()
    assert (
        bundle.combination_offsets(bundle.code_offsets()).tolist() == bundle.indices(every).tolist()
    )


def test_a_bundle_of_other_attributes_has_no_offsets():
    other = bundle_of((2, 3), first=2)
    assert bundle_of((2, 3)).combination_offsets(other.code_offsets()) is None


def test_each_bundle_is_drawn_given_the_one_before():
    """A deterministic chain of 30: after 0 comes 1, after 1 comes 2, after 2 comes 0."""
    sure = alias_tables(np.eye(3)[[1, 2, 0]])
    links = [bundle_of((3,), first=i) for i in range(30)]
    pairs = pairwise(links)
    plan = make_sampling_plan(
        links[:1], [TableDraw(link, sure, before.code_offsets()) for before, link in pairs]
    )
    codes = np.zeros((5, 30), dtype=CODE, order="F")
    codes[:, 0] = [0, 1, 2, 0, 1]
    plan.fill(codes, Keyed(1).at("records"))
    for i in range(30):
        assert codes[:, i].tolist() == [(x + i) % 3 for x in codes[:, 0].tolist()]
    assert plan._last_use == {at: at + 1 for at in range(29)}, (
        "indices are deleted after their last use"
    )


def test_indices_needed_later_are_kept():
    """The last is the sum of the first two, modulo 2."""
    first, second, between, last = (bundle_of((2,), first=i) for i in range(4))
    fair, sum_of = alias_tables(np.full((1, 2), 0.5)), alias_tables(np.eye(2)[[0, 1, 1, 0]])
    code_offsets = [(0, np.array([0, 2])), (1, np.array([0, 1]))]
    plan = make_sampling_plan(
        [first],
        [
            TableDraw(second, fair, []),
            TableDraw(between, fair, []),
            TableDraw(last, sum_of, code_offsets),
        ],
    )
    codes = np.zeros((1000, 4), dtype=CODE, order="F")
    codes[::3, 0] = 1
    plan.fill(codes, Keyed(1).at("records"))
    assert (codes[:, 3] == codes[:, 0] ^ codes[:, 1]).all()
    assert 0 < codes[:, 1].mean() < 1
