"""One cell of another type changes neither the texts nor the units of the other cells.

Every list of cells is read as a pandas, polars or Arrow column, alone and with one more cell, in
each way of building the longer column that keeps the values of the others.
"""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.drafting.cell_texts import count_texts
from deniable.drafting.column_profile import open_table
from deniable.drafting.unit_numbers import number_units

NOON = dt.datetime(2020, 1, 31, 12, 30, 15)
ROME = dt.timezone(dt.timedelta(hours=1))
MICROSECOND = dt.timedelta(microseconds=1)
NAN, INFINITE = float("nan"), float("inf")

CELLS: dict[str, list[Any]] = {
    "integers": [7, 0, 1, -3, 10**15],
    "long integers": [2**53 + 1, 2**53 + 2, 2**62],
    "huge integers": [2**70, 2**70 + 1, 3],
    "whole floats": [7.0, -0.0, 1.0, 1e15],
    "floats": [2.5, 0.1 + 0.2, 1 / 3, 1e300, 5e-324, 7.0],
    "floats that are no numbers": [2.5, NAN, INFINITE, -INFINITE],
    "booleans": [True, False],
    "numeric texts": ["7", "7.0", "1e5", "007", " 7", "inf", "nan"],
    "texts": ["oak", "True", "2020-01-31", "", "NA", "\ud7ff"],
    "bytes": [b"oak", b"\xff", b"\xfe", b"7"],
    "dates": [dt.date(2020, 1, 31), dt.date(999, 1, 1), dt.date(998, 1, 1), dt.date(9999, 12, 31)],
    "times": [NOON, NOON + MICROSECOND, NOON + 2 * MICROSECOND, NOON - 10**6 * MICROSECOND],
    "early times": [dt.datetime(999, 1, 1), dt.datetime(999, 1, 1, 0, 0, 1), NOON],
    "times in a zone": [x.replace(tzinfo=ROME) for x in (NOON, NOON + MICROSECOND)],
    "durations": [dt.timedelta(1), dt.timedelta(2), MICROSECOND],
    "times of day": [dt.time(1), dt.time(1, 0, 0, 1), dt.time(23)],
    "decimals": [Decimal("1.50"), Decimal("2.00"), Decimal("-0.125"), Decimal(0)],
    "lists": [[1], [2]],
    "nothing": [None, None],
}
ODD: dict[str, Any] = {
    "integer": 35,
    "huge integer": 2**80,
    "fraction": 0.75,
    "nan": NAN,
    "infinite": INFINITE,
    "boolean": True,
    "text": "A",
    "numeric text": "35.0",
    "bytes": b"A",
    "bad bytes": b"\xfd",
    "date": dt.date(2001, 2, 3),
    "early date": dt.date(1, 2, 3),
    "time": dt.datetime(2001, 2, 3, 4, 5, 6, 7),
    "zoned time": dt.datetime(2001, 2, 3, 4, 5, 6, 7, tzinfo=dt.UTC),
    "nanosecond": pd.Timestamp(1),
    "duration": dt.timedelta(seconds=5),
    "time of day": dt.time(4, 5),
    "decimal": Decimal("0.001"),
    "long decimal": Decimal("1." + "1" * 50),
    "complex": 2j,
    "real complex": 35 + 0j,
    "long double": np.longdouble("0.1"),
    "uuid": uuid.UUID(int=5),
    "list": [3],
    "missing": None,
}
# Types to which polars widens a column of numbers because of a cell.
WIDER = {
    "integer": pl.Int64,
    "huge integer": pl.Int128,
    "fraction": pl.Float64,
    "decimal": pl.Decimal(38, 9),
}


def read(frame: object) -> pl.Series:
    """The column of a frame, as a private draft reads it."""
    [column] = open_table(frame, private=True)._read_columns(lambda *_: None)
    return column


def texts_and_units(column: pl.Series) -> tuple[Counter[str | None], tuple[int, ...]]:
    """The rows of each text, and the unit of each row by its first row; -1 if it has none."""
    counted = count_texts(column, is_csv=False)
    texts: Counter[str | None] = Counter(dict(zip(counted.texts, counted.counts, strict=True)))
    texts[None] = counted.nulls
    numbers = number_units(column).tolist()
    return texts, tuple(-1 if x < 0 else numbers.index(x) for x in numbers)


def is_kept(before: list[Any], after: list[Any]) -> bool:
    """Whether a library kept the values, and did not make other ones of them."""
    kinds = [int | float | Decimal | np.number | complex, dt.datetime, dt.date]
    return all(
        (a is None or a != a)
        if b is None or b != b
        else a == b
        and isinstance(a, bool | np.bool_) == isinstance(b, bool | np.bool_)
        and (
            type(a) is type(b)
            or isinstance(a, type(b))
            or any(isinstance(a, kind) and isinstance(b, kind) for kind in kinds[:1])
        )
        for b, a in zip(before, after, strict=False)
    )


def pandas_frames(cells: list[Any], odd: Any) -> Iterator[tuple[object, object]]:
    """A pandas frame, and frames with one more row: inferred, joined and as objects."""
    plain = pd.Series(cells)
    longer = [pd.Series([*plain.astype(object), odd], dtype=object)]
    for build in (
        lambda: pd.concat([plain, pd.Series([odd])], ignore_index=True),
        lambda: pd.Series([*cells, odd]),
    ):
        try:
            longer.append(build())
        except (TypeError, ValueError, OverflowError):
            continue
    for column in longer:
        if is_kept(plain.tolist(), column.tolist()):
            yield pd.DataFrame({"x": plain}), pd.DataFrame({"x": column})


def polars_frames(cells: list[Any], odd: Any, name: str) -> Iterator[tuple[object, object]]:
    """A polars frame, and frames with one more row: objects, and a wider type of numbers."""
    plain = pl.Series("x", cells)
    more = pl.Series("x", [*cells, odd], dtype=pl.Object)
    yield plain.to_frame(), more.to_frame()
    if name == "missing":
        yield plain.to_frame(), pl.Series("x", [*cells, None]).to_frame()
    if name in WIDER and (plain.dtype.is_integer() or plain.dtype.is_decimal()):
        wide = plain.cast(WIDER[name], strict=False)
        if wide.to_list() == cells:
            yield plain.to_frame(), wide.append(pl.Series([odd], dtype=wide.dtype)).to_frame()


def arrow_tables(cells: list[Any], odd: Any) -> Iterator[tuple[object, object]]:
    """An Arrow table, and one with one more row, if Arrow finds a type that holds all cells."""
    try:
        plain, longer = pa.array(cells), pa.array([*cells, odd])
    except (TypeError, ValueError, OverflowError, NotImplementedError, pa.ArrowException):
        return
    if is_kept(plain.to_pylist(), longer.to_pylist()):
        yield pa.table({"x": plain}), pa.table({"x": longer})


@pytest.mark.parametrize("name", CELLS)
def test_one_odd_cell_leaves_the_texts_and_units_of_the_others(name, capfd):
    cells = [*CELLS[name], CELLS[name][0], None]
    tried = 0
    for kind, odd in ODD.items():
        pairs = [*pandas_frames(cells, odd), *polars_frames(cells, odd, kind)]
        for before, after in [*pairs, *arrow_tables(cells, odd)]:
            texts, units = texts_and_units(read(before))
            more_texts, more_units = texts_and_units(read(after))
            assert (more_texts - texts).total() == 1, (kind, type(before))
            assert (texts - more_texts).total() == 0, (kind, type(before))
            assert more_units[:-1] == units, (kind, type(before))
            tried += 1
    assert tried >= 2 * len(ODD)
    assert capfd.readouterr() == ("", "")
