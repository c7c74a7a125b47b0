"""Smoothed counts: level where only noise differs, heaps kept, nothing lost or won."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model import haar
from deniable.model.haar import occupied, smooth
from worlds import property_test

tables = st.lists(st.integers(-500, 5_000), min_size=1, max_size=70)


@property_test
@given(tables)
def test_without_noise_nothing_changes(counts):
    np.testing.assert_array_equal(smooth(np.array(counts), 0.0), counts)


@property_test
@given(tables)
def test_differences_that_are_all_believed_stay(counts):
    """Noise of next to nothing: what is taken apart comes back together."""
    np.testing.assert_allclose(smooth(np.array(counts), 1e-9), counts, atol=1e-6)


def test_counts_that_are_all_higher_are_smoothed_alike():
    rng = np.random.default_rng(6)
    counts = rng.normal(0, 30, 79)
    np.testing.assert_allclose(smooth(counts + 1_000, 20.0), smooth(counts, 20.0) + 1_000)


@pytest.mark.parametrize("size", [4, 5, 16, 79, 99, 951])
def test_level_counts_become_nearly_level(size):
    """Of noise of 10 no more than 6 remains, or 7.5 of few values; 40 keys."""
    rng = np.random.default_rng(size)
    noisy = 100 + rng.normal(0, 10, (40, size))
    rest = np.array([smooth(row, 10.0) for row in noisy]) - 100
    assert np.sqrt((rest**2).mean()) < (7.5 if size < 8 else 6.0)


@pytest.mark.parametrize(("sigma", "believed"), [(0.99, True), (1.01, False)])
def test_a_difference_is_believed_from_two_deviations_on(monkeypatch, sigma, believed):
    """8 values of 0 and 8 of 1, of one beginning: their difference is 8 / √16 = 2."""
    monkeypatch.setattr(haar, "_SHIFTS", 1)
    step = np.repeat([0.0, 1.0], 8)
    expected = step if believed else np.full(16, 0.5)
    np.testing.assert_allclose(smooth(step, sigma), expected, atol=1e-9)


def test_a_heap_stays_and_its_neighbours_become_level():
    """As 40 hours a week: 50 deviations high, beside values that noise alone makes differ."""
    rng = np.random.default_rng(4)
    truth = np.full(99, 200.0)
    truth[39] = 700.0
    noisy = truth + rng.normal(0, 10, 99)
    found = smooth(noisy, 10.0)
    assert found[39] == pytest.approx(700, abs=40)
    assert np.abs(found - truth).sum() < 0.7 * np.abs(noisy - truth).sum()


def test_a_smooth_curve_is_known_better():
    rng = np.random.default_rng(5)
    truth = 600 * np.exp(-(((np.arange(79) - 30) / 20) ** 2))
    noisy = truth + rng.normal(0, 100, (20, 79))
    far = [np.abs(smooth(row, 100.0) - truth).sum() for row in noisy]
    assert np.mean(far) < 0.65 * np.abs(noisy - truth).sum(axis=1).mean()


# The ends


def literal_end(counts, sigma):
    """How many of the last values are empty: every beginning is tried, by the definition."""

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
def test_an_end_is_empty_if_noise_alone_speaks_for_it(counts, sigma):
    high, low = literal_end(counts, sigma), literal_end(counts[::-1], sigma)
    wanted = [low <= i < len(counts) - high for i in range(len(counts))]
    if low + high >= len(counts):
        wanted = [True] * len(counts)
    assert occupied(np.array(counts), sigma).tolist() == wanted


def test_without_noise_no_end_is_empty():
    assert occupied(np.array([0, 0, 5, 0, 0]), 0.0).all()


@pytest.mark.parametrize("place", [5, 40, 62])
def test_a_heap_far_out_stays_however_empty_it_is_around_it(place):
    counts = np.array([900, 400, *[-2] * 61])
    counts[place] = 50
    there = occupied(counts, 8.0)
    assert there[: place + 1].all()
    assert not there[place + 1 :].any()


def test_the_deviation_of_a_skewed_column_survives_its_noise():
    """With a fixed key: 20,000 exponential numbers on a grid that is mostly far beyond them."""
    rng = np.random.default_rng(11)
    exact = np.bincount(rng.exponential(30, 20_000).astype(int), minlength=1_000)
    places = np.arange(len(exact))

    def deviation(counts):
        share = np.maximum(counts, 0) / np.maximum(counts, 0).sum()
        return math.sqrt(share @ places**2 - (share @ places) ** 2)

    ratios = []
    for _ in range(40):
        noisy = exact + rng.normal(0, 5, len(exact))
        even = smooth(noisy, 5.0)
        ratios.append([deviation(even), deviation(even * occupied(noisy, 5.0))])
    with_ends, without = np.median(ratios, axis=0) / deviation(exact)
    assert with_ends > 2, "or there would be nothing to mend"
    assert 0.9 < without < 1 + (with_ends - 1) / 2
