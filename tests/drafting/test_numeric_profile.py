"""Numeric profiles: decimals, merging on a grid, quantiles and skew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.drafting.numeric_profile import NumericProfile, count_decimals, max_decimals


def profile(positions) -> NumericProfile:
    counts = np.ones(len(positions), dtype=np.int64)
    return NumericProfile.from_positions(np.array(positions), counts, 0)


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 4)), min_size=1))
def test_decimals_are_those_of_the_shortest_notation(numbers):
    values = np.array([number / 10**decimals for number, decimals in numbers])
    written = [f"{value:.4f}".rstrip("0").rstrip(".").partition(".")[2] for value in values]
    assert count_decimals(values, limit=6).tolist() == [len(digits) for digits in written]


def test_too_many_decimals_and_infinities_are_beyond_the_limit():
    values = np.array([np.pi, np.inf, -np.inf, 0.1 + 0.2])
    assert count_decimals(values, limit=3).tolist() == [4, 4, 4, 1]
    assert max_decimals(np.array([0.25, 3.0])) == 2
    assert max_decimals(np.array([0.25, np.pi])) is None


def test_equal_positions_are_merged():
    merged = NumericProfile.from_positions(np.array([5, 2, 5]), np.array([1, 2, 3]), 1)
    assert (merged.positions.tolist(), merged.counts.tolist()) == ([2, 5], [2, 4])
    assert (merged.low, merged.high, merged.rows) == (2, 5, 6)


def test_many_decimals_are_rounded_to_about_a_thousand_positions():
    values = np.linspace(0, 1, 501) * np.pi
    rounded = NumericProfile.from_floats(values, np.ones(501, dtype=np.int64), decimals=None)
    assert rounded.is_rounded
    assert rounded.decimals == 3


def test_large_numbers_lose_decimals_that_a_double_cannot_hold():
    values, counts = np.array([0.5, 1e13]), np.array([1, 1])
    rounded = NumericProfile.from_floats(values, counts, decimals=3)
    assert (rounded.decimals, rounded.is_rounded) == (2, True)


@pytest.mark.parametrize(
    ("positions", "skewed"),
    [(range(1, 1_000), False), ([*range(100), 10**6], True), ([2**i for i in range(30)], True)],
)
def test_skew_is_a_long_tail(positions, skewed):
    assert profile(list(positions)).is_skewed == skewed


def test_quantiles_count_rows_not_distinct_numbers():
    weighted = NumericProfile.from_positions(np.array([1, 2, 3]), np.array([90, 5, 5]), 0)
    assert [weighted.quantile(share) for share in (0.0, 0.5, 0.92, 1.0)] == [1, 1, 2, 3]
