"""Cells as texts: each by its own value, the same for every type that can hold it."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.drafting.cell_patterns import CLASS_NAMES, UNSUPPORTED_CELL, classify_cells
from deniable.drafting.cell_texts import (
    CountedTexts,
    are_calendar_dates,
    count_texts,
)
from deniable.drafting.object_texts import texts_of_objects

pytestmark = pytest.mark.slow


def counted(cells: pl.Series, *, is_csv: bool = False) -> dict[str | None, int]:
    """The rows of each text; those without a value under None."""
    found = count_texts(cells, is_csv=is_csv)
    texts = dict(zip(found.texts, found.counts.tolist(), strict=True))
    return texts | ({None: found.nulls} if found.nulls else {})


def class_of(cell: object) -> str:
    """The class of a cell in a typed column."""
    column = count_texts(pl.Series([cell]), is_csv=False)
    return CLASS_NAMES[column.classes[0]]


@pytest.mark.parametrize(
    ("cell", "text", "name"),
    [
        (7.0, "7", "decimals 0"),
        (-0.0, "0", "bit"),
        (1.0, "1", "bit"),
        (2.5, "2.5", "decimals 1"),
        (0.1 + 0.2, "0.3", "decimals 1"),
        (1e-7, "0.0000001", "decimals 7"),
        (1 / 3, "0.3333333333333333", "long"),
        (5e-324, "1e-99", "long"),
        (1e19, "1e+19", "long"),
        (-1e300, "-1e+99", "long"),
        (float("inf"), "inf", "text"),
        (True, "True", "pair False/True"),
        (b"oak", "oak", "text"),
        (b"\xff", UNSUPPORTED_CELL, "unsupported"),
        ("45.0", "45", "decimals 0"),
        ("1e5", "100000", "decimals 0"),
        ("007", "007", "zeros"),
        (" 7", "7", "decimals 0"),
        ("1.", "1", "bit"),
        ("oak", "oak", "text"),
        (dt.date(2020, 1, 31), "2020-01-31", "date %Y-%m-%d"),
        (dt.datetime(2020, 1, 31, 9, 8, 7, 6), "2020-01-31T09:08:07", "datetime %Y-%m-%dT%H:%M:%S"),
        (dt.date(999, 12, 31), UNSUPPORTED_CELL, "unsupported"),
        (dt.timedelta(1), UNSUPPORTED_CELL, "unsupported"),
        ([1], UNSUPPORTED_CELL, "unsupported"),
    ],
)
def test_a_typed_cell_has_the_text_of_its_value(cell, text, name):
    assert counted(pl.Series([cell, None])) == {text: 1, None: 1}
    assert counted(texts_of_objects("x", [cell, None])) == {text: 1, None: 1}
    assert class_of(cell) == name


@pytest.mark.parametrize(
    "cells",
    [
        [0.0, 1.0, 7.0, -3.0, 2.5, 0.1 + 0.2, 1e-7, 1 / 3, 1e-300, 1e18, 1e19, 1e300, 123456.789],
        [dt.date(1000, 1, 1), dt.date(1999, 2, 3), dt.date(9999, 12, 31)],
        [dt.datetime(1970, 1, 1), dt.datetime(2020, 12, 31, 23, 59, 59, 999_999)],
        [True, False],
    ],
)
def test_the_class_of_a_typed_cell_is_that_of_its_text(cells):
    column = count_texts(pl.Series(cells), is_csv=False)
    assert column.classes.tolist() == classify_cells(column.texts).tolist()
    again = count_texts(column.texts, is_csv=False)
    assert dict(zip(again.texts, again.classes, strict=True)) == dict(
        zip(column.texts, column.classes, strict=True)
    )


def test_cells_of_a_csv_file_stay_as_they_are_written():
    assert counted(pl.Series(["7.0", " 7", "1e5", ""]), is_csv=True) == dict.fromkeys(
        ["7.0", " 7", "1e5", ""], 1
    )


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.floats(), st.integers(-(2**70), 2**70)))
def test_an_object_counts_as_the_float_that_pandas_may_make_of_it(number):
    typed = counted(pl.Series([float(number)]))
    assert counted(texts_of_objects("x", [number])) == typed
    assert counted(texts_of_objects("x", [np.float64(number)])) == typed
    assert sum(typed.values()) == 1


@settings(max_examples=30, deadline=None)
@given(st.decimals(-(10**9), 10**9, places=3))
def test_a_decimal_counts_the_same_at_any_scale(number):
    narrow, wide = (pl.Series([number], dtype=pl.Decimal(38, scale)) for scale in (3, 20))
    assert counted(narrow) == counted(wide) == counted(texts_of_objects("x", [number]))
    assert counted(narrow) == counted(pl.Series([float(number)]))


@settings(max_examples=30, deadline=None)
@given(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), st.integers(-14, 14))
def test_a_time_counts_the_same_in_any_unit_and_zone(moment, hours):
    zone = dt.timezone(dt.timedelta(hours=hours))
    zoned = (moment + dt.timedelta(hours=hours)).replace(tzinfo=zone)
    expected = {moment.replace(microsecond=0).isoformat(): 1}
    for unit in ("ms", "us", "ns"):
        assert counted(pl.Series([moment], dtype=pl.Datetime(unit))) == expected
        assert counted(pl.Series([zoned]).cast(pl.Datetime(unit, "UTC"))) == expected
    for cell in (moment, zoned, pd.Timestamp(moment), pd.Timestamp(zoned), np.datetime64(moment)):
        assert counted(texts_of_objects("x", [cell])) == expected


@pytest.mark.parametrize("days", [2**31 - 1, -(2**31), 2_932_897, -719_529])
def test_dates_that_no_calendar_has_count_as_unsupported(days):
    """Year 10,000 and later, year 0 and earlier; polars panics on some of them."""
    stored = pl.Series([days], dtype=pl.Int32).cast(pl.Date)
    assert counted(stored) == {UNSUPPORTED_CELL: 1}
    assert not are_calendar_dates(stored)
    times = pl.Series([days * 86_400_000], dtype=pl.Int64).cast(pl.Datetime("ms"))
    assert counted(times) == {UNSUPPORTED_CELL: 1}
    assert not are_calendar_dates(times)
    object_cell = np.datetime64(days, "D")
    assert counted(texts_of_objects("x", [object_cell])) == {UNSUPPORTED_CELL: 1}


@pytest.mark.parametrize("day", [dt.date.min, dt.date(1000, 1, 1), dt.date.max])
def test_dates_of_python_are_calendar_dates(day):
    assert are_calendar_dates(pl.Series([day]))


def test_values_with_the_same_text_are_counted_together():
    texts = count_texts(pl.Series(["7", "7.0", "07", None, "7 "]), is_csv=False)
    assert texts.texts.to_list() == ["07", "7"]
    assert (texts.counts.tolist(), texts.nulls) == ([1, 3], 1)


def test_a_selection_has_no_nulls():
    texts = count_texts(pl.Series(["a", "b", None]), is_csv=True)
    chosen = texts.select(np.array([False, True]))
    assert isinstance(chosen, CountedTexts)
    assert (chosen.texts.to_list(), chosen.counts.tolist(), chosen.nulls) == (["b"], [1], 0)


@pytest.mark.parametrize("dtype", [pl.Null, pl.Int64, pl.String, pl.Date, pl.List(pl.Int8)])
def test_a_column_without_rows_has_no_texts(dtype):
    assert counted(pl.Series([], dtype=dtype)) == {}
