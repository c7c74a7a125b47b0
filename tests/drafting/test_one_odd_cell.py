"""One cell of another type changes neither the texts nor the units of the other cells.

Every list of cells is read as a pandas, polars or Arrow column, alone and with one more cell, in
each way of building the longer column that keeps the values of the others.
"""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.drafting import cell_texts
from deniable.drafting.cell_patterns import CellClasses, classify_cells
from deniable.drafting.column_profile import open_table
from deniable.drafting.unit_numbers import number_units

pytestmark = pytest.mark.slow

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


def read(frame: object) -> pl.Series:
    """The column of a frame, as a private draft reads it."""
    [column] = open_table(frame, private=True)._read_columns(lambda *_: None)
    return column


CLASSES: dict[str, int] = {}


@pytest.fixture(autouse=True)
def _classify_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classify a text when it is first seen, as that is slow for short columns."""

    def classify(texts: pl.Series) -> CellClasses:
        new = texts.filter(~texts.is_in(list(CLASSES)))
        if len(new):
            CLASSES.update(zip(new, classify_cells(new).tolist(), strict=True))
        return np.array([CLASSES[text] for text in texts], dtype=np.uint8)

    monkeypatch.setattr(cell_texts, "classify_cells", classify)


def texts_and_units(column: pl.Series) -> tuple[Counter[object], tuple[int, ...]]:
    """The rows of each text and class, and the unit of each row by its first row; -1 for none."""
    counted = cell_texts.count_texts(column, is_csv=False)
    keys = zip(counted.texts, counted.classes.tolist(), strict=True)
    texts: Counter[object] = Counter(dict(zip(keys, counted.counts.tolist(), strict=True)))
    texts[None] = counted.nulls
    numbers = number_units(column).tolist()
    return texts, tuple(-1 if x < 0 else numbers.index(x) for x in numbers)


def kind_of(cell: Any) -> str:
    """What a cell is, whatever library holds it."""
    if cell is None or (pd.api.types.is_scalar(cell) and pd.isna(cell)):
        return "missing"
    if isinstance(cell, bool | np.bool_):
        return "boolean"
    if isinstance(cell, int | float | complex | Decimal | np.number):
        return "number"
    bases = (dt.datetime, dt.date, dt.timedelta)
    return next((base.__name__ for base in bases if isinstance(cell, base)), type(cell).__name__)


def are_kept(before: list[Any], after: list[Any]) -> bool:
    """Whether a library kept the values when it built a longer column, as a draft assumes."""
    return all(
        kind_of(a) == kind_of(b) and (kind_of(b) == "missing" or a == b)
        for b, a in zip(before, after, strict=False)
    )


def pandas_frames(plain: pd.DataFrame, odd: Any) -> Iterator[pd.DataFrame]:
    """Pandas frames with one row more: joined, inferred anew, and of objects."""
    cells = plain["x"].tolist()
    built = [pd.Series([*cells, odd], dtype=object)]
    for build in (
        lambda: pd.concat([plain["x"], pd.Series([odd])]),
        lambda: pd.Series([*cells, odd]),
    ):
        with suppress(TypeError, ValueError, OverflowError):
            built.append(build())
    for column in {column.dtype: column for column in built}.values():
        if are_kept(cells, column.tolist()):
            yield pd.DataFrame({"x": column})


def polars_frames(plain: pl.DataFrame, odd: Any) -> Iterator[pl.DataFrame]:
    """Polars frames with one row more: of objects, and of a wider type of numbers."""
    column = plain["x"]
    cells = column.to_list()
    yield pl.DataFrame({"x": pl.Series([*cells, odd], dtype=pl.Object)})
    wider = [pl.Int128, pl.Float64, pl.Decimal(38, 9)] if column.dtype.is_numeric() else []
    for dtype in wider if kind_of(odd) in ("number", "missing") else []:
        with suppress(
            TypeError, ValueError, RuntimeError, OverflowError, pl.exceptions.PolarsError
        ):
            wide = column.cast(dtype).append(pl.Series([odd], dtype=dtype))
            if are_kept(cells, wide.to_list()):
                yield pl.DataFrame({"x": wide})


def arrow_tables(plain: pa.Table, odd: Any) -> Iterator[pa.Table]:
    """An Arrow table with one row more, if Arrow finds a type that holds all cells."""
    cells = plain["x"].to_pylist()
    with suppress(TypeError, ValueError, OverflowError, pa.ArrowException):
        table = pa.table({"x": [*cells, odd]})
        if are_kept(cells, table["x"].to_pylist()):
            yield table


@pytest.mark.parametrize("name", CELLS)
def test_one_odd_cell_leaves_the_texts_and_units_of_the_others(name, capfd):
    cells = {"x": [*CELLS[name], CELLS[name][0], None]}
    makers: list[tuple[Any, Any]] = [
        (pd.DataFrame, pandas_frames),
        (pl.DataFrame, polars_frames),
        (pa.table, arrow_tables),
    ]
    for make, longer in makers:
        try:
            plain = make(cells)
        except OverflowError:  # Arrow has no integers of over 64 bits
            continue
        texts, units = texts_and_units(read(plain))
        for kind, odd in ODD.items():
            for frame in longer(plain, odd):
                more_texts, more_units = texts_and_units(read(frame))
                assert (more_texts - texts).total() == 1, (kind, make)
                assert (texts - more_texts).total() == 0, (kind, make)
                assert more_units[:-1] == units, (kind, make)
    assert capfd.readouterr() == ("", "")
