"""Bins: neighbours only, heavy values alone, no two light bins side by side, missing apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model.coarse import merge_light, merge_to, sum_by, sum_rows
from worlds import property_test

# Whole weights: sums are exact, so that "equal" means equal.
weights = st.lists(st.integers(0, 40), min_size=1, max_size=30).map(
    lambda listed: np.array(listed, dtype=np.float64)
)


def members(bins, bin_):
    return np.flatnonzero(bins == bin_)


@property_test
@given(weights, st.integers(1, 60))
def test_bins_hold_neighbours_and_are_numbered_upwards(weights, least):
    bins = merge_light(weights, least=least)
    steps = np.diff(bins)
    assert bins[0] == 0
    assert set(steps.tolist()) <= {0, 1}


@property_test
@given(weights, st.integers(1, 60))
def test_two_neighbouring_bins_never_weigh_less_than_one_should(weights, least):
    """Or they would be one: so there are at most 2 · (all weight) / least + 1 bins to noise."""
    sums = sum_by(merge_light(weights, least=least), weights)
    assert (sums[1:] + sums[:-1] >= least).all()
    assert len(sums) <= 2 * weights.sum() / least + 1


@property_test
@given(weights, st.integers(1, 60))
def test_what_is_heavy_enough_stands_alone_but_for_a_light_tail(weights, least):
    bins = merge_light(weights, least=least)
    for value in np.flatnonzero(weights >= least):
        inside = members(bins, bins[value])
        assert inside[0] == value
        assert weights[inside[1:]].sum() < least / 2


@property_test
@given(weights, st.integers(1, 60))
def test_no_more_is_merged_than_needed(weights, least):
    """What was merged weighs at most half more than it should; a light tail may come on top."""
    bins = merge_light(weights, least=least)
    for bin_ in range(bins.max() + 1):
        inside = members(bins, bin_)
        if len(inside) > 1 and weights[inside[0]] < least:
            assert weights[inside].sum() <= 2 * least


def test_weights_of_zero_become_one_bin():
    assert merge_light(np.zeros(7), least=0.1).tolist() == [0] * 7


@property_test
@given(weights, st.integers(1, 12), st.booleans())
def test_groups_are_about_as_few_as_asked_for(weights, most, apart):
    groups = merge_to(weights, most=most, apart=apart)
    if len(weights) <= most:
        assert groups.tolist() == list(range(len(weights)))
        return
    assert set(np.diff(groups).tolist()) <= {0, 1}
    if weights[: len(weights) - apart].sum() > 0:
        assert groups.max() + 1 <= 2 * most + 1 + apart


@property_test
@given(weights.filter(lambda listed: len(listed) > 1), st.integers(1, 12))
def test_the_last_bin_stays_apart_where_it_is_that_of_missing_cells(weights, most):
    """However light it is, and however heavy."""
    groups = merge_to(weights, most=most, apart=True)
    assert (groups == groups[-1]).sum() == 1


@property_test
@given(weights, st.data())
def test_sums_by_group_lose_no_weight(weights, data):
    labels = st.lists(st.integers(0, 5), min_size=len(weights), max_size=len(weights))
    groups = np.sort(np.array(data.draw(labels)))
    sums = sum_by(groups, weights)
    for group in range(len(sums)):
        assert sums[group] == weights[groups == group].sum()
    assert sums.dtype == np.float64


@property_test
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 3))
def test_rows_of_a_group_are_summed(lengths, columns):
    groups = np.repeat(np.arange(len(lengths)), lengths)
    table = np.arange(len(groups) * columns, dtype=float).reshape(-1, columns) ** 2
    expected = [table[groups == group].sum(axis=0).tolist() for group in range(len(lengths))]
    assert sum_rows(groups, table).tolist() == expected


@pytest.mark.parametrize(
    ("weights", "bins"),
    [
        ([5, 5, 5, 5], [0, 0, 1, 1]),
        ([20, 1, 20, 1], [0, 1, 2, 2]),
        ([10, 10, 10], [0, 1, 2]),
        ([1, 1, 1], [0, 0, 0]),
        ([4, 4, 4, 4], [0, 0, 0, 0]),
        ([4, 4, 4, 12, 7], [0, 0, 0, 1, 2]),
        ([8, 9, 9], [0, 1, 2]),
    ],
)
def test_bins_that_were_worked_out_by_hand(weights, bins):
    """Bins should weigh 10; one of 16 would be too heavy, and a tail of 4 is too light."""
    assert merge_light(np.array(weights, dtype=float), least=10).tolist() == bins
