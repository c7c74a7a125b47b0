"""One-way counts: bins of neighbours, wavelet smoothing, empty ends of a range."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model.pairwise import one_way
from deniable.model.pairwise.one_way import (
    choose_bins,
    choose_groups,
    estimate_records,
    group_bins,
    merge_light_values,
    occupied_values,
    smooth_counts,
    sum_blocks,
    sum_groups,
    sum_row_groups,
    to_distribution,
    value_distributions,
)
from deniable.schema.attribute import Attribute
from worlds import plain_attribute, property_test

# Integer weights: sums are exact, so that "equal" means equal.
weights = st.lists(st.integers(0, 40), min_size=1, max_size=30).map(
    lambda listed: np.array(listed, dtype=np.float64)
)


def members(bins, bin_):
    return np.flatnonzero(bins == bin_)


@property_test
@given(weights, st.integers(1, 60))
def test_bins_hold_neighbours_and_are_numbered_upwards(weights, least):
    bins = merge_light_values(weights, min_share=least)
    steps = np.diff(bins)
    assert bins[0] == 0
    assert set(steps.tolist()) <= {0, 1}


@property_test
@given(weights, st.integers(1, 60))
def test_two_neighbouring_bins_together_have_the_minimum_share(weights, least):
    """So there are at most 2 · (total weight) / least + 1 bins."""
    sums = sum_groups(merge_light_values(weights, min_share=least), weights)
    assert (sums[1:] + sums[:-1] >= least).all()
    assert len(sums) <= 2 * weights.sum() / least + 1


@property_test
@given(weights, st.integers(1, 60))
def test_a_heavy_value_is_alone_except_for_a_light_tail(weights, least):
    bins = merge_light_values(weights, min_share=least)
    for value in np.flatnonzero(weights >= least):
        inside = members(bins, bins[value])
        assert inside[0] == value
        assert weights[inside[1:]].sum() < least / 2


@property_test
@given(weights, st.integers(1, 60))
def test_no_more_is_merged_than_needed(weights, least):
    """A merged bin exceeds the target by at most half, plus a light tail."""
    bins = merge_light_values(weights, min_share=least)
    for bin_ in range(bins.max() + 1):
        inside = members(bins, bin_)
        if len(inside) > 1 and weights[inside[0]] < least:
            assert weights[inside].sum() <= 2 * least


def test_weights_of_zero_become_one_bin():
    assert merge_light_values(np.zeros(7), min_share=0.1).tolist() == [0] * 7


@property_test
@given(weights, st.integers(1, 12), st.booleans())
def test_groups_are_about_as_many_as_requested(weights, most, apart):
    groups = group_bins(weights, max_groups=most, separate_last=apart)
    if len(weights) <= most:
        assert groups.tolist() == list(range(len(weights)))
        return
    assert set(np.diff(groups).tolist()) <= {0, 1}
    if weights[: len(weights) - apart].sum() > 0:
        assert groups.max() + 1 <= 2 * most + 1 + apart


@property_test
@given(weights.filter(lambda listed: len(listed) > 1), st.integers(1, 12))
def test_the_bin_of_missing_cells_stays_separate(weights, most):
    """However light or heavy it is."""
    groups = group_bins(weights, max_groups=most, separate_last=True)
    assert (groups == groups[-1]).sum() == 1


@property_test
@given(weights, st.data())
def test_sums_by_group_lose_no_weight(weights, data):
    labels = st.lists(st.integers(0, 5), min_size=len(weights), max_size=len(weights))
    groups = np.sort(np.array(data.draw(labels)))
    sums = sum_groups(groups, weights)
    for group in range(len(sums)):
        assert sums[group] == weights[groups == group].sum()
    assert sums.dtype == np.float64


@property_test
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 3))
def test_rows_of_a_group_are_summed(lengths, columns):
    groups = np.repeat(np.arange(len(lengths)), lengths)
    table = np.arange(len(groups) * columns, dtype=float).reshape(-1, columns) ** 2
    expected = [table[groups == group].sum(axis=0).tolist() for group in range(len(lengths))]
    assert sum_row_groups(groups, table).tolist() == expected


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
def test_bins_by_hand(weights, bins):
    """The target is 10; a bin of 16 would be too heavy, and a tail of 4 is too light."""
    assert merge_light_values(np.array(weights, dtype=float), min_share=10).tolist() == bins


tables = st.lists(st.integers(-500, 5_000), min_size=1, max_size=70)


@property_test
@given(tables)
def test_without_noise_nothing_changes(counts):
    np.testing.assert_array_equal(smooth_counts(np.array(counts), 0.0), counts)


@property_test
@given(tables)
def test_coefficients_above_the_threshold_are_kept(counts):
    """Almost no noise: the inverse transform restores the counts."""
    np.testing.assert_allclose(smooth_counts(np.array(counts), 1e-9), counts, atol=1e-6)


def test_a_constant_offset_does_not_change_smoothing():
    rng = np.random.default_rng(6)
    counts = rng.normal(0, 30, 79)
    np.testing.assert_allclose(
        smooth_counts(counts + 1_000, 20.0), smooth_counts(counts, 20.0) + 1_000
    )


@pytest.mark.parametrize("size", [4, 5, 16, 79, 99, 951])
def test_flat_counts_become_nearly_flat(size):
    """Noise of σ = 10 is reduced to 4.5, or 7.5 for few values; 40 rows."""
    rng = np.random.default_rng(size)
    noisy = 100 + rng.normal(0, 10, (40, size))
    rest = np.array([smooth_counts(row, 10.0) for row in noisy]) - 100
    assert np.sqrt((rest**2).mean()) < (7.5 if size < 8 else 4.5)


@pytest.mark.parametrize(("sigma", "believed"), [(0.99, True), (1.01, False)])
def test_the_threshold_is_two_standard_deviations(monkeypatch, sigma, believed):
    """8 values of 0 and 8 of 1, one shift: the coefficient is 8 / √16 = 2."""
    monkeypatch.setattr(one_way, "_MAX_SHIFTS", 1)
    step = np.repeat([0.0, 1.0], 8)
    expected = step if believed else np.full(16, 0.5)
    np.testing.assert_allclose(smooth_counts(step, sigma), expected, atol=1e-9)


def details_of(*, outstanding, others, places=64):
    """Coefficients of one length: one of them, and others of equal size and alternating sign."""
    details = np.where(np.arange(places) % 2, others, -others)[None, :].astype(np.float64)
    details[0, 0] = outstanding
    return details


@pytest.mark.parametrize(
    ("outstanding", "others", "kept"),
    [
        (2.5, 0.9, 0),  # Noise explains a sum of squares of 58, of 64 coefficients.
        (3.2, 0.9, 1),  # But not a coefficient above √(2 ln 128) = 3.115.
        (3.0, 0.9, 0),
        (2.5, 1.1, 1),  # 82 is more than 64 + √128 = 75.3: two standard deviations are enough.
        (2.0, 1.1, 0),
    ],
)
def test_where_noise_explains_all_coefficients_only_the_largest_are_kept(outstanding, others, kept):
    for sigma, shifts in ((1.0, 1), (20.0, 16)):
        details = sigma * details_of(outstanding=outstanding, others=others)
        details = np.repeat(details, shifts, axis=0)
        found = one_way._threshold_details(details, sigma)
        assert np.count_nonzero(found) == kept * shifts
        assert found[0, 0] == (details[0, 0] if kept else 0.0)


def test_a_peak_stays_and_its_neighbours_become_flat():
    """Such as 40 hours a week: 50 σ high, among values that differ only by noise."""
    rng = np.random.default_rng(4)
    truth = np.full(99, 200.0)
    truth[39] = 700.0
    noisy = truth + rng.normal(0, 10, 99)
    found = smooth_counts(noisy, 10.0)
    assert found[39] == pytest.approx(700, abs=40)
    assert np.abs(found - truth).sum() < 0.7 * np.abs(noisy - truth).sum()


def test_smoothing_lowers_the_error_of_a_smooth_curve():
    rng = np.random.default_rng(5)
    truth = 600 * np.exp(-(((np.arange(79) - 30) / 20) ** 2))
    noisy = truth + rng.normal(0, 100, (20, 79))
    far = [np.abs(smooth_counts(row, 100.0) - truth).sum() for row in noisy]
    assert np.mean(far) < 0.65 * np.abs(noisy - truth).sum(axis=1).mean()


# Empty ends


def literal_end(counts, sigma):
    """The number of empty values at the end, by the definition: every start is tried."""

    def held(start, length):
        return sum(counts[start : start + length]) / (sigma * length**0.5)

    lengths = [2**i for i in range(10)]
    for begin in range(len(counts)):
        rest = len(counts) - begin
        within = [(i, n) for i in range(begin, len(counts)) for n in lengths]
        within = [(i, n) for i, n in within if i + n <= len(counts)]
        surely = any(held(i, n) > 3.5 for i, n in within)
        first = [held(begin, n) for n in [*lengths, rest] if n <= rest]
        if not surely and max(first) <= 0.5:
            return rest
    return 0


@property_test
@given(
    st.lists(st.integers(-20, 30), min_size=1, max_size=20),
    st.sampled_from([3.0, 7.0, 15.0]),
)
def test_an_end_is_empty_by_the_definition(counts, sigma):
    high, low = literal_end(counts, sigma), literal_end(counts[::-1], sigma)
    wanted = [low <= i < len(counts) - high for i in range(len(counts))]
    if low + high >= len(counts):
        wanted = [True] * len(counts)
    assert occupied_values(np.array(counts), sigma).tolist() == wanted


def test_without_noise_no_end_is_empty():
    assert occupied_values(np.array([0, 0, 5, 0, 0]), 0.0).all()


@pytest.mark.parametrize("place", [5, 40, 62])
def test_an_isolated_peak_is_kept(place):
    counts = np.array([900, 400, *[-2] * 61])
    counts[place] = 50
    there = occupied_values(counts, 8.0)
    assert there[: place + 1].all()
    assert not there[place + 1 :].any()


def test_the_standard_deviation_of_a_skewed_column_survives_noise():
    """Fixed key: 20,000 exponential numbers on a grid that extends far beyond them."""
    rng = np.random.default_rng(11)
    exact = np.bincount(rng.exponential(30, 20_000).astype(int), minlength=1_000)
    places = np.arange(len(exact))

    def deviation(counts):
        share = np.maximum(counts, 0) / np.maximum(counts, 0).sum()
        return math.sqrt(share @ places**2 - (share @ places) ** 2)

    ratios = []
    for _ in range(40):
        noisy = exact + rng.normal(0, 5, len(exact))
        even = smooth_counts(noisy, 5.0)
        ratios.append([deviation(even), deviation(even * occupied_values(noisy, 5.0))])
    with_ends, without = np.median(ratios, axis=0) / deviation(exact)
    assert with_ends > 2, "or there would be no error to reduce"
    assert 0.9 < without < 1 + (with_ends - 1) / 2


# Distributions of values, bins and groups


def test_the_least_noisy_table_decides_the_number_of_records():
    sure, unsure = np.array([500, 510]), np.array([100] * 9)
    assert estimate_records([sure, unsure], [0.5, 50.0]) == pytest.approx(1010, abs=1)
    assert estimate_records([sure, unsure], [50.0, 0.5]) == pytest.approx(900, abs=1)
    assert estimate_records([-sure], [1.0]) == 1.0


def test_noisy_counts_become_a_distribution():
    noisy = np.array([40, -7, 12, 0, 3])
    share = to_distribution(noisy, 50.0)
    assert share.sum() == pytest.approx(1)
    assert (share >= 0).all()
    np.testing.assert_allclose(to_distribution(np.array([1, 2, 5]), 8.0), [1 / 8, 2 / 8, 5 / 8])


def test_only_the_values_of_numbers_are_smoothed_and_missing_cells_are_not():
    """Noise of σ = 30 on 16 values of 100: flat if neighbours are meaningful."""
    noisy = 100 + np.tile([20, -20, 10, -10], 4)
    gone = np.append(noisy, 900)
    number = Attribute(name="n", kind="integer", values=range(16))
    with_gaps = replace(number, missing=("?",), groups=())
    listed = plain_attribute("c", 16)
    tables = (noisy, gone, noisy)
    smoothed, gaps, plain = value_distributions((number, with_gaps, listed), tables, (30.0,) * 3)
    np.testing.assert_allclose(smoothed, 1 / 16)
    assert np.ptp(gaps[:-1]) == pytest.approx(0)
    assert gaps[-1] > 4 * gaps[0]
    assert np.argmax(plain) % 4 == 0
    assert np.ptp(plain) > 0.01
    exactly = value_distributions((number,), (noisy,), (0.0,))[0]
    np.testing.assert_allclose(exactly, noisy / noisy.sum())


def test_bins_have_the_share_that_the_noise_of_a_cell_asks_for():
    """max(1/160, ½ √(σ / records)) of the records; missing cells are one more bin."""
    number = Attribute(name="n", kind="integer", values=range(1_000))
    with_gaps = replace(number, missing=("?",), groups=())
    shares = [np.full(1_000, 1e-3), np.append(np.full(1_000, 0.9e-3), 0.1)]
    for sigma, at_least in ((0.0, 1 / 160), (100.0, 0.05), (400.0, 0.1)):
        plain, gaps = choose_bins((number, with_gaps), shares, records=10_000.0, sigma=sigma)
        inside = sum_groups(plain, shares[0])
        # The last bin may have half of it, or half more.
        assert at_least - 1e-9 <= inside[:-1].min() <= inside[:-1].max() < at_least + 2e-3
        assert at_least / 2 - 1e-9 <= inside[-1] < 1.5 * at_least + 2e-3
        assert (gaps == gaps[-1]).sum() == 1


@property_test
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(2, 14), st.booleans())
def test_groups_are_at_most_as_many_as_asked_for_and_numbered_by_their_first_bin(
    listed, number, has_missing
):
    shares, missing = np.array([*listed, 0.1]), ("?",) if has_missing else ()
    values = [f"v{i}" for i in range(len(shares) - has_missing)]
    for kind in ("categorical", "ordered"):
        attribute = Attribute(name="x", kind=kind, values=values, missing=missing)
        groups = choose_groups(attribute, shares, number)
        _, first = np.unique(groups, return_index=True)
        assert first.tolist() == sorted(first.tolist())
        assert groups.max() + 1 == len(first) <= number + has_missing
        if has_missing:
            assert (groups == groups[-1]).sum() == 1
        if kind == "ordered":
            assert set(np.diff(groups).tolist()) <= {0, 1}
        if len(values) <= number:
            assert groups.tolist() == list(range(len(shares)))


def test_groups_of_categories_join_the_rare_ones_and_those_of_numbers_neighbours():
    shares = np.array([0.02, 0.4, 0.03, 0.35, 0.05, 0.15])
    listed = plain_attribute("c", 6)
    ordered = replace(listed, kind="ordered")
    assert choose_groups(listed, shares, 3).tolist() == [0, 1, 0, 2, 0, 0]
    assert choose_groups(ordered, shares, 3).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_value_that_most_rows_have_leaves_the_other_groups_to_the_rest():
    """By equal shares of all rows, the last tenth would be one group."""
    shares = np.array([0.9, *[0.01] * 10])
    listed = plain_attribute("c", 11)
    ordered = replace(listed, kind="ordered")
    for attribute in (listed, ordered):
        assert choose_groups(attribute, shares, 6).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    backwards = choose_groups(ordered, shares[::-1], 6)
    assert backwards.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]


@property_test
@given(st.lists(st.integers(0, 50), min_size=4, max_size=9), st.integers(2, 3))
def test_no_other_groups_of_neighbours_are_more_even(listed, number):
    """By trying all: the sum of squared weights is the least."""
    shares = np.array(listed, dtype=float)
    ordered = replace(plain_attribute("c", len(shares)), kind="ordered")
    sums = sum_groups(choose_groups(ordered, shares, number), shares)
    least = min(
        sum(part.sum() ** 2 for part in np.split(shares, ends))
        for ends in combinations(range(1, len(shares)), number - 1)
    )
    assert np.square(sums).sum() == pytest.approx(least)


def test_a_category_stays_alone_at_a_third_of_the_share_that_a_number_needs():
    """Its neighbours in the list are not alike, so that its own effect would be lost in their bin.

    But never below 1/160 of the records.
    """
    shares = np.array([0.002, 0.002, 0.02, 0.002, 0.002, 0.004, 0.968])
    categories = plain_attribute("c", 7)
    numbers = replace(categories, kind="ordered")
    for sigma, alone in ((100.0, {2, 6}), (900.0, {6}), (0.0, {2, 6})):
        bins = choose_bins((categories, numbers), [shares] * 2, records=10_000.0, sigma=sigma)
        sizes = np.bincount(bins[0])[bins[0]]
        assert set(np.flatnonzero(sizes == 1).tolist()) == alone
        assert set(np.diff(bins[0]).tolist()) <= {0, 1}
    assert np.bincount(bins[1]).tolist() == [2, 1, 3, 1]


def test_blocks_are_sums_over_groups_of_rows_and_columns():
    table = np.arange(12.0).reshape(3, 4)
    found = sum_blocks(np.array([0, 1, 0]), np.array([1, 0, 0, 1]), table)
    assert found.tolist() == [
        [table[[0, 2]][:, [1, 2]].sum(), table[[0, 2]][:, [0, 3]].sum()],
        [table[1, [1, 2]].sum(), table[1, [0, 3]].sum()],
    ]
