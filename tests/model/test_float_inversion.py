"""Bins found in floats: those of the integers wherever they are said to be certain."""

import numpy as np
import pytest

from deniable.model import float_inversion as module
from deniable.model.float_inversion import FloatInversion, LaneLayout
from deniable.model.loglinear_conditional import (
    LogLinearConditional,
    invert_weights,
    scale_words,
)
from deniable.randomness import Keyed


def conditional_of(key, bins, spread, sizes=(40, 30, 7)):
    """Effects of a normal distribution, in units of 2^-12."""
    rng = np.random.default_rng(key)
    effects = [rng.normal(0, spread, (size, bins)).astype(np.int32) for size in sizes]
    return LogLinearConditional(
        base=rng.normal(0, spread, bins).astype(np.int32),
        effects=tuple(effects),
        bins=np.arange(bins),
        within=np.full(bins, 2**32),
    )


def inversion_of(conditional, bin_groups=None):
    tables = [table.effects for table in conditional.tables]
    tables[0] = tables[0] + conditional.base
    groups = np.zeros(len(conditional.base), dtype=np.intp) if bin_groups is None else bin_groups
    return FloatInversion.of(tables, [], groups)


def rows_of(conditional, key, records):
    rng = np.random.default_rng(key)
    return [rng.integers(0, len(table.effects), records) for table in conditional.tables]


def words_at_bounds(weights, key):
    """For each record, a word at the bound of some bin, or a few units from it."""
    rng = np.random.default_rng(key)
    cumulative = np.cumsum(weights, axis=0)
    chosen = rng.integers(0, len(weights), weights.shape[1])
    bound = cumulative[chosen, np.arange(weights.shape[1])] / cumulative[-1] * 2**32
    moved = bound.astype(np.int64) + rng.integers(-3, 4, len(bound))
    return np.clip(moved, 0, 2**32 - 1).astype(np.uint32)


@pytest.mark.parametrize("bins", [1, 2, 7, 8, 9, 59, 130])
@pytest.mark.parametrize("spread", [0, 2_000, 40_000])
def test_certain_bins_are_those_of_the_integers(bins, spread):
    """Of random words nearly all are certain; of words at bounds hardly any, and none is wrong."""
    conditional, records = conditional_of(1, bins, spread), 4_000
    inversion, rows = inversion_of(conditional), rows_of(conditional, 2, records)
    weights = conditional.weights_at(rows, [])
    work = inversion.buffers(records)
    for words, least in (
        (Keyed(3).at("records").half_words(records), 0.95),
        (words_at_bounds(weights, 4), 0.0),
    ):
        found, is_certain = inversion.find(rows, [], words, work)
        expected = invert_weights(weights.copy(), words)
        assert found[is_certain].tolist() == expected[is_certain].tolist()
        assert is_certain.mean() >= least


def test_the_error_of_cumulative_weights_is_far_below_the_tolerance():
    """Words at bounds show it: a wrong bin that is called certain needs the whole tolerance."""
    conditional, records = conditional_of(5, 59, 6_000), 20_000
    inversion, rows = inversion_of(conditional), rows_of(conditional, 6, records)
    weights = conditional.weights_at(rows, [])
    words = words_at_bounds(weights, 7)
    found, is_certain = inversion.find(rows, [], words, inversion.buffers(records))
    assert not is_certain[found != invert_weights(weights.copy(), words)].any()
    # With a tolerance of a sixteenth, the same holds; with none at all, it does not.
    for factor, is_wrong in ((1 / 16, False), (0.0, True)):
        other = FloatInversion(
            inversion.layout, inversion.factors, (), np.float32(inversion.tolerance * factor)
        )
        found, is_certain = other.find(rows, [], words, inversion.buffers(records))
        wrong = found != invert_weights(weights.copy(), words)
        assert bool(is_certain[wrong].any()) == is_wrong


@pytest.mark.parametrize("bin_groups", [[0] * 12, [0, 0, 1, 1, 1, 2] * 2, [*range(12)], [3, 0] * 6])
def test_lanes_have_consecutive_bins_of_one_group(bin_groups):
    layout = LaneLayout.of(np.array(bin_groups))
    lanes = layout.bins.transpose(0, 2, 1).reshape(-1, layout.bins.shape[1]).tolist()
    filled = [[own for own in lane if own < 12] for lane in lanes]
    assert [own for lane in filled for own in lane] == list(range(12))
    assert [lane[0] for lane in filled if lane] == layout.first.tolist()
    for lane, group in zip(filled, layout.groups.ravel().tolist(), strict=True):
        assert {bin_groups[own] for own in lane} <= {group}


@pytest.mark.parametrize("bin_groups", [[0] * 10, [0] * 3 + [1] * 5 + [0] * 2, [*range(10)]])
def test_effects_of_pairs_multiply_whole_lanes(bin_groups):
    conditional, groups = conditional_of(8, 10, 5_000), np.array(bin_groups)
    records, rng = 3_000, np.random.default_rng(9)
    joint = rng.normal(0, 5_000, (25, groups.max() + 1)).astype(np.int32)
    tables = [conditional.tables[0].effects + conditional.base, *(
        table.effects for table in conditional.tables[1:])]  # fmt: skip
    inversion = FloatInversion.of(tables, [joint], groups)
    rows, pairs = rows_of(conditional, 10, records), rng.integers(0, 25, records)
    words = Keyed(11).at("records").half_words(records)
    found, is_certain = inversion.find(rows, [pairs], words, inversion.buffers(records))
    logarithms = sum(table[row] for table, row in zip(tables, rows, strict=True))
    logarithms = logarithms + joint[pairs][:, groups]
    weights = np.exp2((logarithms - logarithms.max(axis=1, keepdims=True)) / 4096) * 2**30
    expected = invert_weights(weights.astype(np.int64).T.copy(), words)
    assert is_certain.mean() > 0.99
    assert found[is_certain].tolist() == expected[is_certain].tolist()


def test_where_parents_contradict_each_other_nothing_is_certain():
    """Each parent allows one bin, and all forbid those of the others: every product is tiny."""
    apart = np.array([[0, -(2**20)], [-(2**20), 0]], dtype=np.int32)
    inversion = FloatInversion.of([apart, apart], [], np.zeros(2, dtype=np.intp))
    rows = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    words = np.full(4, 2**31, dtype=np.uint32)
    found, is_certain = inversion.find(rows, [], words, inversion.buffers(4))
    assert is_certain.tolist() == [True, False, False, True]
    assert found[is_certain].tolist() == [0, 1]
    assert module._MIN_TOTAL > module._MIN_FACTOR


def test_buffers_can_be_used_again():
    conditional = conditional_of(12, 20, 3_000)
    inversion, rows = inversion_of(conditional), rows_of(conditional, 13, 500)
    words = Keyed(14).at("records").half_words(500)
    work = inversion.buffers(500)
    first = inversion.find(rows, [], words, work)
    inversion.find([row[::-1] for row in rows], [], words, work)
    again = inversion.find(rows, [], words, work)
    assert first[0].tolist() == again[0].tolist()
    assert first[1].tolist() == again[1].tolist()


def test_scaled_words_are_whole_parts_of_the_total():
    total = np.array([2**46 - 1, 12_345, 2**30])
    words = np.array([2**32 - 1, 2**31 + 1, 7], dtype=np.uint32)
    expected = [int(t) * int(w) >> 32 for t, w in zip(total, words, strict=True)]
    assert scale_words(total, words).tolist() == expected
