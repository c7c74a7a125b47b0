"""Dates of a private draft: bounds are frequent years."""

import datetime as dt

import pytest

from deniable.drafting.noisy_dates import draft_dates
from drafted_columns import parse_column
from noisy_columns import measured_column, values_of


def drafted(cells, text_format="%Y-%m-%d", kind="date"):
    draft = draft_dates(measured_column(cells), text_format, kind)
    parse_column(draft)
    return values_of(draft)


def test_bounds_are_the_frequent_years_and_one_far_date_is_clipped():
    days = [dt.date(year, 5, 5) for year in range(2003, 2018)] * 90 + [dt.date(1900, 1, 1)]
    found = drafted(days)
    assert (found["min"], found["max"]) == (dt.date(2003, 1, 1), dt.date(2017, 12, 31))
    assert found["outside"] == "clip"
    assert found["min"] <= found["fallback"] <= found["max"]


def test_years_with_few_rows_each_are_seen_together():
    """Twelve rows a year are three times the noise; the years together are far more."""
    days = [dt.date(year, 5, 5) for year in range(1930, 2010)] * 12
    found = drafted(days)
    assert found["min"] <= dt.date(1935, 1, 1)
    assert found["max"] >= dt.date(2004, 12, 31)


@pytest.mark.parametrize(("year", "low", "high"), [(1650, 1600, 1699), (9500, 9150, 9649)])
def test_years_far_from_now_are_counted_in_centuries(year, low, high):
    found = drafted([dt.date(year, 1, 1)] * 900)
    assert (found["min"].year, found["max"].year) == (low, high)


def test_times_have_a_grid_that_their_format_can_write():
    cells = [f"0{x % 9 + 1}/05/2020 12:30" for x in range(900)]
    found = drafted(cells, "%d/%m/%Y %H:%M", "datetime")
    assert found["step_seconds"] == 60
    assert found["fallback"] == dt.date(2020, 1, 1)


def test_missing_dates_are_declared_and_are_the_fallback():
    found = drafted([dt.date(2020, 1, 1)] * 900 + [None] * 300)
    assert (found["missing"], found["fallback"]) == ([""], "")
