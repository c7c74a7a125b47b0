"""Texts of typed cells: equal numbers have equal texts, in Python and in polars."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import polars as pl
import pytest

from deniable.data.typed_texts import decimal_texts, has_text, moment_text, number_text

INF = float("inf")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((7, 7.0, Decimal("7.00"), Decimal("0.7E+1")), "7"),
        ((0, 0.0, -0.0, Decimal("-0.0")), "0"),
        ((2.5, Decimal("2.50")), "2.5"),
        ((10**20, 1e20, Decimal("1E20")), "1" + 20 * "0"),
        ((INF, Decimal("Infinity")), "inf"),
        ((-INF,), "-inf"),
    ],
)
def test_equal_numbers_have_one_text(numbers, text):
    assert [number_text(number) for number in numbers] == [text] * len(numbers)


def test_one_instant_has_one_text():
    tokyo = timezone(timedelta(hours=9))
    same = [datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)]
    same.append(datetime(2020, 1, 1, 9, tzinfo=tokyo))
    assert {moment_text(moment) for moment in same} == {"2020-01-01T00:00:00"}
    assert moment_text(date(2020, 1, 1)) == "2020-01-01"


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([0, 9, 2**62, None]),
        pl.Series([0, 2**63, 2**64 - 1, None], dtype=pl.UInt64),
        pl.Series([0.0, -0.0, 9.0, 2.5, 1e-7, 1e20, 2.0**53, INF, -INF, None]),
        pl.Series([0.5, 0.25, None], dtype=pl.Float32),
        pl.Series([True, False, None]),
        pl.Series([Decimal("2.50"), Decimal("10.00"), Decimal("0.00"), None]),
        pl.Series([date(2020, 1, 1), date(1900, 1, 1), None]),
        pl.Series([datetime(2020, 1, 1), datetime(1900, 1, 1, 5, 6, 7, 8), None]),
        pl.Series([datetime(2020, 1, 1), None], dtype=pl.Datetime("ms")),
        pl.Series([datetime(2020, 1, 1), None], dtype=pl.Datetime("ns")),
        pl.Series(["a", "", None]),
    ],
)
def test_a_typed_cell_has_its_own_text_and_no_other(cells):
    frame = cells.to_frame("x")

    def with_text(text):
        found = frame.select(found=has_text(pl.col("x"), cells.dtype, [text, "?"])).to_series()
        return found.fill_null(value=False).to_list() if len(found) > 1 else [found.item()]

    for cell in cells.drop_nulls():
        text = text_of(cell)
        expected = [other is not None and text_of(other) == text for other in cells]
        assert with_text(text) == expected
    for text in (f"{2**53 + 1}", "09", "9.0", "1e3", "NaN", "2020-01-01 00:00:00", "9" * 400):
        assert not any(with_text(text))


def text_of(cell):
    if isinstance(cell, bool | str):
        return str(cell)
    return moment_text(cell) if isinstance(cell, date) else number_text(cell)


def test_decimals_are_written_as_in_python():
    cells = pl.Series("x", [Decimal("2.50"), Decimal("10.00"), Decimal("0.00"), None])
    written = cells.to_frame().select(decimal_texts(pl.col("x"), cells.dtype)).to_series()
    assert written.to_list() == ["2.5", "10", "0", None]
    whole = pl.Series("x", [Decimal(100)], dtype=pl.Decimal(9, 0))
    assert whole.to_frame().select(decimal_texts(pl.col("x"), whole.dtype)).item() == "100"
