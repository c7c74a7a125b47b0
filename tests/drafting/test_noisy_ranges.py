"""Bounds from noisy counts: logarithmic intervals, fine intervals, and decimals."""

import datetime as dt

import polars as pl
import pytest

from deniable.drafting.column_profile import ColumnProfile, open_table
from deniable.drafting.noisy_histograms import HistogramMeasurer, count_classes
from deniable.drafting.noisy_ranges import (
    count_log_intervals,
    count_numbers,
    draft_dates,
    draft_numbers,
    draft_omitted,
    log_bounds,
)
from deniable.privacy.noise_laws import truncated_geometric
from deniable.randomness import Keyed

REACH = 5


def read(cells) -> ColumnProfile:
    return open_table(pl.DataFrame({"x": cells})).read()[0]


def measurer() -> HistogramMeasurer:
    return HistogramMeasurer(truncated_geometric(2.0, REACH), Keyed(3).at("noise"), 9)


def bounds(draft) -> tuple:
    fields = {field.key: field.value for field in draft.fields}
    return fields["min"], fields["max"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([*range(1, 13)] * 50, (1, 12)),
        ([*range(1990, 2021)] * 50, (1900, 2100)),
        ([*range(0, 90_000, 100)] * 50, (0, 100_000)),
        ([*range(-30, 1)] * 50, (-50, 1)),
    ],
)
def test_bounds_of_frequent_numbers_are_narrow(cells, expected):
    column = read(cells)
    low, high = bounds(draft_numbers(column, measurer(), count_classes(column)))
    assert (low, high) == expected


def test_a_single_far_number_does_not_widen_the_bounds():
    column = read([*range(1, 13)] * 50 + [10**9])
    assert bounds(draft_numbers(column, measurer(), count_classes(column))) == (1, 12)


def test_bounds_from_a_small_part_of_the_numbers_are_widened_with_a_note():
    column = read([*range(10, 20)] * 30)
    exact = count_log_intervals(column, count_classes(column))
    assert log_bounds(exact, total=300) == (10, 20, ())
    low, high, notes = log_bounds(exact, total=3_000)
    assert (low, high) == (0, 200)
    assert "guess" in notes[0]


def test_too_few_numbers_are_omitted():
    column = read([1, 2, 3])
    draft = draft_numbers(column, measurer(), count_classes(column))
    assert draft.kind == "identifier"
    assert not draft.is_modelled


def test_bounds_of_dates_are_the_frequent_years():
    days = [dt.date(year, 5, 5) for year in range(2003, 2018)] * 40 + [dt.date(1900, 1, 1)]
    draft = draft_dates(read(days), measurer(), None, "date")
    assert bounds(draft) == (dt.date(2003, 1, 1), dt.date(2017, 12, 31))


def test_numbers_are_counted_and_texts_are_not():
    assert count_numbers(count_classes(read(["1", "2.5", "7.0", "1e5", "oak", "", "007"]))) == 4


@pytest.mark.parametrize(("fresh", "release"), [(True, "fresh"), (False, "omit")])
def test_an_omitted_column_gives_its_reason(fresh, release):
    draft = draft_omitted("x", "a reason", fresh=fresh)
    assert [field.value for field in draft.fields] == [release]
    [note] = draft.notes
    assert note.startswith("a reason:")
