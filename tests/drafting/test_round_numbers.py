"""Nice numbers: rounding up, down, outward, and public edges."""

from hypothesis import given
from hypothesis import strategies as st

from deniable.drafting.round_numbers import (
    nice_above,
    nice_below,
    nice_edges,
    nice_near,
    round_outward,
)


@given(st.integers(1, 10**15))
def test_nice_numbers_are_on_the_right_side_and_within_a_factor_of_two_and_a_half(number):
    assert number / 2.5 <= nice_below(number) <= number <= nice_above(number) <= number * 2.5
    assert nice_near(number) in (nice_below(number), nice_above(number))
    assert str(nice_above(number)).rstrip("0") in ("1", "2", "5")


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9))
def test_bounds_are_rounded_outward_and_never_across_zero(low, span):
    low_end, high_end = round_outward(low, low + span)
    assert low_end <= low
    assert low + span <= high_end
    assert (high_end - low_end) <= span + 2 * max(1, span / 10)
    assert (low_end >= 0) == (low >= 0)


def test_a_short_range_keeps_its_ends():
    assert round_outward(1, 12) == (1, 12)
    assert round_outward(17, 90) == (15, 90)


def test_nice_edges_include_zero_and_both_signs():
    assert nice_edges(-10, 20) == [-10, -5, -2, -1, 0, 1, 2, 5, 10, 20]
