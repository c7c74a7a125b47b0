"""Bounds from noisy counts: logarithmic intervals, fine intervals, and decimals."""

import datetime as dt

import polars as pl
import pytest

from deniable.drafting.cell_patterns import CLASS_INDEX
from deniable.drafting.cell_texts import CountedTexts, count_texts
from deniable.drafting.column_profile import open_table
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
from drafted_columns import parse_column

REACH = 5


def read(cells) -> CountedTexts:
    return open_table(pl.DataFrame({"x": cells}), private=True).read_texts()[0]


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
    draft = draft_dates(read(days), measurer(), "%Y-%m-%d", "date")
    assert bounds(draft) == (dt.date(2003, 1, 1), dt.date(2017, 12, 31))


def test_numbers_are_counted_and_texts_are_not():
    assert count_numbers(count_classes(read(["1", "2.5", "7.0", "1e5", "oak", "", "007"]))) == 4


@pytest.mark.parametrize("cell", ["1e19", "-1e19", "1e18", "-1e18", "0.5e19"])
@pytest.mark.parametrize("others", [[], ["1"], ["0.25"], ["0.123456789012"]])
def test_numbers_of_any_size_are_drafted_or_omitted(cell, others):
    """10^18 and above is the last interval, which has no upper edge."""
    column = read([cell] * 300 + others * 300)
    draft = draft_numbers(column, measurer(), count_classes(column))
    if draft.is_modelled:
        low, high = bounds(draft)
        assert low < high
        parse_column(draft)
    else:
        assert "too large" in draft.notes[0]


def test_bounds_of_the_last_interval_are_its_lower_edge():
    column = read(["1e19"] * 300 + ["1"] * 300)
    counts = count_log_intervals(column, count_classes(column))
    # On a grid of millionths, as half of the numbers are in scientific notation.
    assert log_bounds(counts, total=600) == (10**6, 10**18, ())
    low, high, notes = log_bounds(counts, total=10_000)
    assert (low, high) == (0, 10**18)
    assert notes


def test_a_grid_that_doubles_cannot_tell_apart_is_coarsened():
    cells = pl.Series("x", ["0.25"] * 300 + ["90000000000000.25"] * 300)
    column = count_texts(cells, is_csv=True)
    classes = count_classes(column)
    assert classes[CLASS_INDEX["decimals 2"]] == 600
    draft = draft_numbers(column, measurer(), classes)
    [decimals] = [field.value for field in draft.fields if field.key == "decimals"]
    assert decimals == 1
    parse_column(draft)


@pytest.mark.parametrize(("fresh", "release"), [(True, "fresh"), (False, "omit")])
def test_an_omitted_column_gives_its_reason(fresh, release):
    draft = draft_omitted("x", "a reason", fresh=fresh)
    assert [field.value for field in draft.fields] == [release]
    [note] = draft.notes
    assert note.startswith("a reason:")
