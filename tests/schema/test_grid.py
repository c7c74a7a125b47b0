"""Grids: conversion between positions, values and text."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from deniable.errors import SchemaError
from deniable.schema.grid import (
    INTEGER_LIMIT,
    Grid,
    format_decimals,
    parse_integer,
    whole_floats_to_integers,
)
from deniable.schema.schema import Schema

TENTHS = Grid(kind="real", step=Decimal("0.1"))


def select(expression, **columns):
    return pl.DataFrame(columns).select(expression).to_series().to_list()


@pytest.mark.parametrize(
    ("grid", "position", "value", "shown"),
    [
        (Grid(kind="integer"), -5, -5, "-5"),
        (Grid(kind="real", step=Decimal("0.01")), 2990, 29.9, "29.90"),
        (Grid(kind="real", step=Decimal("0.25")), -1, -0.25, "-0.25"),
        (Grid(kind="real", step=Decimal(20)), 3, 60.0, "60"),
        (Grid(kind="date"), 18_262, date(2020, 1, 1), "2020-01-01"),
        (
            Grid(kind="datetime", step=Decimal(3600)),
            -1,
            datetime(1969, 12, 31, 23),
            "1969-12-31T23:00:00",
        ),
    ],
)
def test_a_position_is_converted_to_its_value_and_back(grid, position, value, shown):
    assert grid.value_at(position) == value
    assert type(grid.value_at(position)) is type(value)
    assert grid.position_of(value) == position
    assert grid.format_position(position) == shown
    assert grid.values(np.array([position])).to_list() == [value]
    with pytest.raises(TypeError):
        grid.position_of("3")


def test_a_value_may_lie_between_two_positions():
    assert TENTHS.position_of(0.25) == Fraction(5, 2)
    assert Grid(kind="date").position_of(datetime(1970, 1, 2, 12)) == Fraction(3, 2)
    noon = datetime(1970, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert Grid(kind="datetime").position_of(noon) == 12 * 3600
    assert noon.astimezone(UTC).hour == 12
    late = datetime(2020, 1, 1, 0, 0, 0, 900_000)
    assert Grid(kind="datetime").position_of(late) == 1_577_836_800 + Fraction(9, 10)
    first = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    assert Grid(kind="datetime").position_of(first) == -62_135_614_800


@pytest.mark.parametrize("line", ["min = 2020-01-01T00:00:00.9", "min = 0001-01-01T00:00:00+05:00",
                                  "max = 2030-01-01T00:00:00.5",
                                  "max = 9999-12-31T23:59:59-05:00"])  # fmt: skip
def test_a_bound_off_the_grid_or_outside_the_calendar_is_refused(line):
    other = "max = 2021-01-01" if line.startswith("min") else "min = 2019-01-01"
    text = f'format = 1\n[[attribute]]\nname = "x"\ntype = "datetime"\n{line}\n{other}\n'
    with pytest.raises(SchemaError, match=r'attribute "x": .*(such as|in UTC)'):
        Schema.parse(text)


@pytest.mark.parametrize(
    ("width", "positions"),
    [(0.3, 3), (1, 10), (0.25, None), (0, None), (-1, None), (True, None), ("1", None)],
)
def test_a_width_is_a_positive_multiple_of_the_step(width, positions):
    assert TENTHS.width_in_positions(width) == positions
    assert TENTHS.width_in_positions(float("inf")) is None


def test_reals_are_the_floats_nearest_to_their_decimals():
    """Multiplying by the step would give 29.900000000000002 for 29.9."""
    positions = np.arange(-1_000, 1_000)
    expected = [float(f"{position / 10:.1f}") for position in positions]
    assert TENTHS.values(positions).to_list() == expected


@pytest.mark.parametrize(
    ("grid", "texts", "parsed"),
    [
        (Grid(kind="integer"), ["7", "5.0", "2.5", "x", "", str(10**30)], [7, 5, INTEGER_LIMIT]),
        (TENTHS, ["2.5", "1e3", ".5", "nan", "inf", "x"], [2.5, 1000.0, 0.5]),
        (Grid(kind="date"), ["1970-01-03", "1970-02-30", "x"], [2]),
        (Grid(kind="date", format="%d/%m/%Y"), ["03/01/1970", "1970-01-03"], [2]),
        (Grid(kind="datetime", step=Decimal(60)), ["1970-01-01T00:02:00", "x"], [2]),
    ],
)
def test_text_is_parsed_or_null(grid, texts, parsed):
    found = select(grid.from_text(pl.col("t")), t=texts)
    assert [value for value in found if value is not None] == parsed


def test_single_texts_are_parsed_like_a_column():
    assert Grid(kind="integer").parse_texts(["7", "-8", "x", "1_000"]) == [7, -8]
    assert TENTHS.parse_texts(["2.5", "inf", "x"]) == [2.5]
    assert Grid(kind="date").parse_texts(["1970-01-03", "x"]) == [2]


def test_times_with_an_offset_are_converted_to_utc():
    grid = Grid(kind="datetime", format="%Y-%m-%dT%H:%M:%S%z")
    assert select(grid.from_text(pl.col("t")), t=["1970-01-01T02:00:00+0200"]) == [0]
    moments = pl.Series([datetime(1970, 1, 1, 2)]).dt.replace_time_zone("Europe/Warsaw")
    assert select(grid.from_typed(pl.col("t"), moments.dtype), t=moments) == [3600]


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (pl.Series([1.0, 2.5, float("nan"), 1e300]), [1, None, None, INTEGER_LIMIT]),
        (pl.Series([5, 2**64 - 1], dtype=pl.UInt64), [5, INTEGER_LIMIT]),
        (pl.Series([5, -7], dtype=pl.Int8), [5, -7]),
    ],
)
def test_typed_cells_are_converted_to_integers_within_the_limit(series, expected):
    assert select(Grid(kind="integer").from_typed(pl.col("n"), series.dtype), n=series) == expected


def test_reals_are_rounded_to_the_nearest_position():
    assert select(TENTHS.positions(pl.col("n")), n=[0.14, 0.16, -0.16, 1e300]) == [
        1,
        2,
        -2,
        INTEGER_LIMIT,
    ]


def test_numbers_are_formatted_with_their_decimals():
    assert select(TENTHS.to_text(pl.col("n")), n=[2.0, -0.5]) == ["2.0", "-0.5"]
    assert select(format_decimals(pl.col("n"), 3), n=[1.5]) == ["1.500"]
    assert Grid(kind="real", step=Decimal("0.25")).format_width(3) == "0.75"


def test_whole_floats_become_integers_and_others_null():
    floats = [3.0, 3.5, float("inf"), -1e30]
    assert select(whole_floats_to_integers(pl.col("n")), n=floats) == [
        3,
        None,
        None,
        -INTEGER_LIMIT,
    ]


@pytest.mark.parametrize(
    ("text", "number"), [("42", 42), (" -7", -7), ("1_0", None), ("4.0", None)]
)
def test_whole_numbers_are_parsed_without_underscores(text, number):
    assert parse_integer(text) == number
