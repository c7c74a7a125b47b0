"""Python objects as texts: counted ones and lossless ones."""

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deniable.drafting.cell_patterns import UNSUPPORTED_CELL
from deniable.drafting.object_texts import counted_texts, texts_of_objects


def lossless(cell: object) -> str | None:
    """The lossless text of an object."""
    [text] = texts_of_objects("x", [cell])
    return text


def counted(cell: object) -> str | None:
    """The counted text of an object."""
    [text] = counted_texts(texts_of_objects("x", [cell]))
    return text


@pytest.mark.parametrize(
    "cell",
    [
        *(pd.NaT, pd.NA, None, float("nan"), np.float32("nan"), Decimal("nan")),
        *(np.datetime64("NaT"), np.timedelta64("NaT"), np.longdouble("nan")),
        *(complex("nan"), complex(1, float("nan")), np.clongdouble("nan")),
    ],
)
def test_missing_objects_are_null(cell):
    assert lossless(cell) is None


class BrokenZone(dt.tzinfo):
    """A time zone that fails."""

    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        raise NotImplementedError

    dst = utcoffset

    def tzname(self, _: dt.datetime | None) -> str:
        return "broken"


@pytest.mark.parametrize(
    "cell",
    [
        *({}, [1], (1, 2), 2j, np.clongdouble(2j), object(), pd.Period("2020-01")),
        *(dt.time(1), dt.timedelta(1), 10**5_000, "\ud800", b"\xff", Decimal("1e5000")),
        *(np.timedelta64(5, "ns"), np.timedelta64(5, "M"), np.timedelta64(5), uuid.UUID(int=1)),
        dt.datetime(2020, 1, 1, tzinfo=BrokenZone()),
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_other_objects_are_unsupported(cell):
    assert counted(cell) == UNSUPPORTED_CELL


def test_infinite_decimals_are_texts():
    assert [lossless(Decimal("inf")), lossless(Decimal("-inf"))] == ["inf", "-inf"]


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ([7, 7.0, np.int8(7), np.float32(7), np.longdouble(7), Decimal("7.00"), 7 + 0j], "7"),
        ([0, 0.0, -0.0, Decimal("-0.0"), Decimal("0E+3"), Decimal("0E-900"), 0j], "0"),
        ([2.5, np.longdouble(2.5), Decimal("2.50"), np.complex64(2.5), np.clongdouble(2.5)], "2.5"),
        ([2**53 + 1, np.longdouble(2**53 + 1), Decimal(2**53 + 1)], str(2**53 + 1)),
        ([float("inf"), np.longdouble("inf"), complex("inf")], "inf"),
        ([True, np.bool_(True)], "True"),
        (["oak", b"oak", np.str_("oak")], "oak"),
    ],
)
def test_the_same_value_has_the_same_text_in_every_type(cells, text):
    assert {lossless(cell) for cell in cells} == {text}


def test_the_same_moment_has_the_same_text_in_every_type():
    moment = dt.datetime(2020, 1, 31, 9, 8, 7, 60)
    zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
    zoned = (moment + dt.timedelta(hours=5, minutes=30)).replace(tzinfo=zone)
    cells = [moment, zoned, pd.Timestamp(moment), pd.Timestamp(zoned), np.datetime64(moment)]
    assert len({lossless(cell) for cell in [*cells, np.datetime64(moment, "as")]} - {None}) == 2
    assert {counted(cell) for cell in cells} == {"2020-01-31T09:08:07"}
    duration = dt.timedelta(days=-3, microseconds=7)
    cells = [duration, pd.Timedelta(duration), np.timedelta64(duration)]
    assert len({lossless(cell) for cell in cells}) == 1


@pytest.mark.parametrize(
    "cells",
    [
        [dt.datetime(2020, 1, 1, microsecond=n) for n in range(3)],
        [pd.Timestamp(n) for n in range(3)],
        [np.datetime64(n, "as") for n in range(3)],
        [np.datetime64(n, "Y") for n in (-(2**40), 0, 2**40)],
        [dt.datetime(1, 1, 1), dt.date(1, 1, 1), dt.datetime(1, 1, 1, microsecond=1)],
        [dt.timedelta(n) for n in range(3)],
        [dt.time(1), dt.time(1, microsecond=1), dt.time(1, tzinfo=dt.UTC)],
        [10**5_000, 10**5_000 + 1, -(10**5_000)],
        [Decimal("1e5000"), Decimal("-1e5000"), Decimal("1e-5000"), Decimal("1.5e5000")],
        ["\ud800", "\ud801", b"\xff", b"\xfe"],
        [uuid.UUID(int=1), uuid.UUID(int=2)],
    ],
    ids=lambda cells: type(cells[0]).__name__,
)
def test_different_values_have_different_lossless_texts(cells):
    assert len({lossless(cell) for cell in cells}) == len(cells)


def test_equal_objects_without_a_text_are_not_told_apart():
    """A unit whose rows hold equal objects must not become several units."""
    assert lossless(object()) == lossless(object()) == UNSUPPORTED_CELL


def test_texts_without_a_rest_are_counted_as_they_are():
    texts = pl.Series("x", ["a", None, "\0rest", ""])
    assert counted_texts(texts).to_list() == texts.to_list()
