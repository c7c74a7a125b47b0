"""Units of a column: the same for a typed column and for Python objects."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deniable.drafting.unit_numbers import number_units, unit_texts
from draft_replay import record_draft

NOON = dt.datetime(2020, 1, 1, 12)
# Numbers of days that no calendar of Python has; polars panics on some of them.
FAR_DAYS = [2**31 - 1, -(2**31), 2_932_897, -719_529]


def test_units_are_numbered_and_missing_ones_are_not():
    cells = pl.Series(["b", "a", "", None, "b", "NA", "inf", "\0unsupported"])
    assert number_units(cells).tolist() == [2, 1, -1, -1, 2, -1, -1, -1]
    categories = pl.Series(["b", "a"], dtype=pl.Categorical)
    assert len(set(number_units(categories).tolist())) == 2


@pytest.mark.parametrize("dtype", [pl.Null, pl.Int64, pl.Float32, pl.String, pl.Date, pl.Time])
def test_a_column_without_units(dtype):
    assert number_units(pl.Series([], dtype=dtype)).tolist() == []
    assert number_units(pl.Series([None, None], dtype=dtype)).tolist() == [-1, -1]


@pytest.mark.parametrize("cells", [[[1], [1], None], [{"a": 1}, {"a": 2}, None]])
def test_lists_and_structs_name_no_unit_typed_or_not(cells):
    for held in (pl.Series(cells), pl.Series(cells, dtype=pl.Object)):
        assert number_units(held).tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    "cells",
    [
        [7, -1, 2**53 + 1, None],
        [7.0, 2.5, -0.0, 1e300, 5e-324, 0.1 + 0.2, float("inf"), float("-inf"), float("nan"), None],
        [True, False, None],
        [Decimal("1.50"), Decimal("1.51"), Decimal("200.00"), Decimal("-0.10"), Decimal(0), None],
        ["7", "7.0", " a", "a", "NaN", " ", "inf", None],
        [b"7", b"\xff", b"\xfe", b"", None],
        [dt.date(2020, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
        [NOON, NOON + dt.timedelta(microseconds=1), dt.datetime.min, dt.datetime.max, None],
        [dt.timedelta(0), dt.timedelta(microseconds=1), dt.timedelta(-5), None],
        [dt.time(0), dt.time(1, 2, 3, 4), dt.time(23, 59, 59, 999_999), None],
    ],
    ids=lambda cells: type(cells[0]).__name__,
)
def test_typed_cells_and_objects_name_the_same_units(cells):
    typed = unit_texts(pl.Series(cells))
    assert typed.to_list() == unit_texts(pl.Series(cells, dtype=pl.Object)).to_list()
    assert typed.drop_nulls().n_unique() == len(typed.drop_nulls())


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_every_digit_and_every_year_of_a_typed_time_counts(unit):
    for dtype in (pl.Datetime(unit), pl.Datetime(unit, "Europe/Rome"), pl.Duration(unit)):
        ticks = pl.Series([0, 1, -1, 2**63 - 1, -(2**63)]).cast(dtype)
        assert sorted(number_units(ticks).tolist()) == [1, 2, 3, 4, 5]
    stored = pl.Series([0, 1, -1, 2**62]).cast(pl.Datetime(unit))
    objects = [np.datetime64(n, unit) for n in (0, 1, -1, 2**62)]
    assert unit_texts(stored).to_list() == unit_texts(pl.Series(objects, dtype=pl.Object)).to_list()


def test_dates_that_no_calendar_has_are_units():
    days = pl.Series(FAR_DAYS, dtype=pl.Int32).cast(pl.Date)
    assert sorted(number_units(days).tolist()) == [1, 2, 3, 4]


def test_a_unit_of_another_type_does_not_change_the_draft():
    """5,000 units with two rows each: another unit turns their times into objects."""
    units = [NOON + dt.timedelta(microseconds=n // 2) for n in range(10_000)]
    answers = ["a", "b"] * 5_000
    typed = pd.DataFrame({"who": pd.to_datetime(pd.Series(units)), "answer": answers})
    mixed = pd.DataFrame({"who": pd.Series([*units, "A"], dtype=object), "answer": [*answers, "a"]})
    assert typed["who"].dtype.kind == "M"
    first, second = (
        record_draft(frame, epsilon=10.0, unit="who", max_rows_per_unit=2)
        for frame in (typed, mixed)
    )
    assert 'values = ["a", "b"]' in first.text
    assert "rows_max = 10_000" in first.text
    moved = [a.distance(b) for a, b in zip(first.questions, second.questions, strict=True)]
    assert moved == [1, 0, 1, 1]  # rows, distinct answers, their types, their texts
