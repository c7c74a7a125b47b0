"""Nice numbers: rounding up, down, outward, and public edges."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.drafting.round_numbers import (
    coarser_numbers,
    coarser_times,
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


@given(st.decimals(-(10**9), 10**9, places=2), st.decimals("0.01", 10**9, places=2), st.booleans())
def test_coarser_bounds_are_outward_and_on_grids_of_the_column(number, span, up):
    """The first grid has two digits of the number, or of a range that is shorter."""
    found = list(coarser_numbers(number, span=span, unit=Decimal("0.01"), up=up))
    assert all(bound >= number if up else bound <= number for bound in found)
    assert all(bound % Decimal("0.01") == 0 for bound in found)
    if found:
        coarse = max(Decimal("0.01"), min(abs(number), span) / 10)
        assert abs(found[0] - number) <= coarse


def test_a_year_keeps_its_digits_where_the_range_is_short():
    """A year in 60 of them is no amount: two digits of the range, not of the year."""
    year, one = Decimal(1987), Decimal(1)
    assert next(coarser_numbers(year, span=Decimal(60), unit=one, up=False)) == 1987
    assert next(coarser_numbers(year, span=Decimal(9000), unit=one, up=True)) == 2000


@given(st.datetimes(), st.booleans())
def test_coarser_times_are_outward_and_begin_an_hour(moment, up):
    for bound in coarser_times(moment, up=up):
        assert bound >= moment if up else bound <= moment
        assert bound.strftime("%M %S %f") == "00 00 000000"
    for day in coarser_times(moment.date(), up=up):
        assert type(day) is dt.date
        assert day >= moment.date() if up else day <= moment.date()


@pytest.mark.parametrize(("end", "up"), [(dt.date.min, False), (dt.date.max, True)])
def test_coarser_dates_stay_in_the_calendar(end, up):
    assert next(coarser_times(end, up=up)) == end
