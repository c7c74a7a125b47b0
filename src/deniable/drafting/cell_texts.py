"""Cells of a column as texts, counted: all that a private draft reads of a table.

The type of a typed column can hang on one row: pandas turns integers into floats because of one
missing cell, and into objects because of one text. So a private draft uses no column type. Each
cell becomes a text by its own value: 7 and 7.0 become "7", true becomes "True", a date becomes
"2020-01-31". Another row adds its own text and leaves the others as they are.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from deniable.arrays import Counts, Mask, Reals
from deniable.drafting.cell_patterns import (
    CLASS_INDEX,
    MAX_CLASSIFIED_DECIMALS,
    MISSING_TEXTS,
    UNSUPPORTED_CELL,
    classify_cells,
    strip_blanks,
)
from deniable.drafting.numeric_profile import count_decimals
from deniable.schema.grid import format_decimals

# Whole numbers of a smaller absolute value are written with all their digits.
_WHOLE_LIMIT = 1e18
# Relative error of doubles that were computed: 0.1 + 0.2 counts as 0.3.
_ROUNDING_ERROR = 1e-13
# Other numbers are written with an exponent of at most two digits, as ``cell_patterns`` expects.
_LEAST_WRITTEN, _LARGEST_WRITTEN = 1e-99, 1e99
# Longer integers and decimals have no text: Python writes at most 4,300 digits.
_MAX_DIGITS = 400
# Any decimal number but those with a leading zero, which are codes.
_NUMBER = r"^[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"

_DATE_CLASS, _TIME_CLASS = "date %Y-%m-%d", "datetime %Y-%m-%dT%H:%M:%S"
_EPOCH = datetime(1970, 1, 1)
_SECONDS_PER_DAY = 86_400
_TICKS_PER_SECOND = {"us": 10**6, "ns": 10**9}
_MILLISECONDS_PER_SECOND = 1_000
_YEAR_ONE = (datetime.min - _EPOCH) // timedelta(seconds=1)
# Years of four digits, as ``cell_patterns.parse_dates`` accepts them.
_FIRST_SECOND = (datetime(1000, 1, 1) - _EPOCH) // timedelta(seconds=1)
_LAST_SECOND = (datetime(9999, 12, 31, 23, 59, 59) - _EPOCH) // timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class CountedTexts:
    """The distinct texts of a column, with the number of rows of each. Confidential.

    Attributes:
        name: The column's header.
        texts: The distinct texts.
        classes: Class of each text, an index into ``cell_patterns.CLASS_NAMES``.
        counts: Number of rows with each text.
        nulls: Number of rows without a value.
    """

    name: str
    texts: pl.Series = field(repr=False)
    classes: Counts = field(repr=False)
    counts: Counts = field(repr=False)
    nulls: int = field(repr=False)

    def select(self, which: Mask) -> "CountedTexts":
        """Keep the texts in a mask, and no nulls."""
        return CountedTexts(
            name=self.name,
            texts=self.texts.filter(pl.Series(which)),
            classes=self.classes[which],
            counts=self.counts[which],
            nulls=0,
        )


def count_texts(cells: pl.Series, *, is_csv: bool) -> CountedTexts:
    """Convert the cells of a column to texts and count them.

    Args:
        cells: The cells, of any type.
        is_csv: Whether they are cells of a CSV file, whose texts are counted as they are written.

    Privacy:
        Neighbours: add or remove one row, whatever type that gives the column. One count, or
            ``nulls``, moves by one; a text without rows is left out.
        Assumes: the other cells keep their values. A library that widens a column (integers to
            floats or objects, 32 to 64 bits, null to any type) keeps them.
    """
    is_object = cells.dtype in (pl.Object, pl.Binary)
    held = texts_of_objects(cells.name, cells.to_list()) if is_object else cells
    if _is_unsupported(held.dtype):
        counted = pl.DataFrame({"value": [None], "count": [len(held) - held.null_count()]})
        texts, classes = _unsupported(1)
    elif isinstance(held.dtype, pl.Date | pl.Datetime):
        # polars panics on dates that no calendar has, so only the stored numbers are touched.
        counted = _count_distinct(held.to_physical())
        texts, classes = _texts_of_moments(counted["value"], held.dtype)
    else:
        counted = _count_distinct(held.fill_nan(None) if held.dtype.is_float() else held)
        texts, classes = _texts_of_values(counted["value"], is_csv=is_csv)
    # Several values may have the same text, and then have the same class.
    merged = pl.DataFrame({"text": texts, "class": classes, "count": counted["count"]})
    merged = merged.group_by("text", maintain_order=True).agg(
        pl.col("class").first(), pl.col("count").sum()
    )
    merged = merged.filter(pl.col("count") > 0)
    counts = merged["count"].cast(pl.Int64).to_numpy()
    return CountedTexts(
        name=cells.name,
        texts=merged["text"],
        classes=merged["class"].to_numpy(),
        counts=counts,
        nulls=len(cells) - int(counts.sum()),
    )


def texts_of_objects(name: str, cells: Iterable[Any]) -> pl.Series:
    """Convert Python objects to texts, each by its own value; null if it is missing.

    Numbers keep all their digits, so that different persons keep different identifiers.
    """
    return pl.Series(name, [_text_of_object(cell) for cell in cells], dtype=pl.String)


def number_units(cells: pl.Series) -> Counts:
    """Number the units of a column, one number for each row; -1 if the cell names no unit."""
    is_object = cells.dtype in (pl.Object, pl.Binary)
    held = texts_of_objects(cells.name, cells.to_list()) if is_object else cells
    dtype = held.dtype
    if dtype.is_temporal() or dtype == pl.Boolean:
        known = held.to_physical().cast(pl.Int64)
    elif dtype.is_float():
        known = held.set(~held.is_finite(), None)
    elif dtype.is_integer():
        known = held
    elif _is_unsupported(dtype):
        known = pl.Series([None] * len(held), dtype=pl.Int64)
    else:
        text = held.cast(pl.String)
        known = text.set(strip_blanks(text).is_in([*MISSING_TEXTS, UNSUPPORTED_CELL]), None)
    return known.rank("dense").cast(pl.Int64).fill_null(-1).to_numpy()


def _is_unsupported(dtype: pl.DataType) -> bool:
    """Whether cells of a type have no text: lists, durations and the like."""
    text = isinstance(dtype, pl.String | pl.Binary | pl.Categorical | pl.Enum)
    return not (text or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null, pl.Date, pl.Datetime))


def _count_distinct(cells: pl.Series) -> pl.DataFrame:
    """Count the distinct values, in ascending order, without null."""
    counted = pl.DataFrame({"value": cells}).group_by("value").len("count").sort("value")
    return counted.filter(pl.col("value").is_not_null())


def _texts_of_values(values: pl.Series, *, is_csv: bool) -> tuple[pl.Series, Counts]:
    """Convert distinct values, without null, to texts; also return the class of each."""
    if values.dtype == pl.Boolean:
        texts = values.replace_strict({False: "False", True: "True"}, return_dtype=pl.String)
        return texts, classify_cells(texts).astype(np.int64)
    if values.dtype.is_numeric():
        # Decimals through their digits: the same number has the same text at any scale.
        exact = values.cast(pl.String) if values.dtype.is_decimal() else values
        return _texts_of_numbers(exact.cast(pl.Float64).to_numpy())
    texts = values.cast(pl.String)
    classes = classify_cells(texts).astype(np.int64)
    if is_csv:
        return texts, classes
    stripped = strip_blanks(texts)
    numbers = stripped.cast(pl.Float64, strict=False)
    numeric = stripped.str.contains(_NUMBER) & numbers.is_not_null()
    if numeric.any():
        written, of_numbers = _texts_of_numbers(numbers.filter(numeric).to_numpy())
        texts = texts.scatter(numeric.arg_true(), written)
        classes[numeric.to_numpy()] = of_numbers
    return texts, classes


def _texts_of_numbers(numbers: Reals) -> tuple[pl.Series, Counts]:
    """Write doubles as decimal numbers: whole ones without a point, others with few decimals."""
    limit = MAX_CLASSIFIED_DECIMALS
    decimals = count_decimals(numbers, limit=limit, tolerance=_ROUNDING_ERROR)
    # A run accepts no double as an integer that is only close to one.
    is_close = (decimals == 0) & (numbers != np.rint(numbers))
    decimals[is_close | ~(np.abs(numbers) < _WHOLE_LIMIT)] = limit + 1
    size = np.clip(np.abs(numbers), _LEAST_WRITTEN, _LARGEST_WRITTEN)
    written = np.where(np.isinf(numbers), numbers, np.copysign(size, numbers))
    whole = decimals == 0
    texts = pl.Series(np.where(decimals <= limit, 0.5, written)).cast(pl.String)
    if whole.any():
        integers = pl.Series(np.rint(numbers[whole]).astype(np.int64)).cast(pl.String)
        texts = texts.scatter(np.flatnonzero(whole), integers)
    for d in range(1, limit + 1):
        if (which := decimals == d).any():
            values = pl.DataFrame({"value": numbers[which]})
            fixed = values.select(format_decimals(pl.col("value"), d)).to_series()
            texts = texts.scatter(np.flatnonzero(which), fixed)
    classes = np.where(decimals <= limit, CLASS_INDEX["decimals 0"] + decimals, CLASS_INDEX["long"])
    classes[np.isin(numbers, (0.0, 1.0))] = CLASS_INDEX["bit"]
    classes[np.isinf(numbers)] = CLASS_INDEX["text"]
    return texts, classes


def _unsupported(number: int) -> tuple[pl.Series, Counts]:
    texts = pl.Series([UNSUPPORTED_CELL] * number, dtype=pl.String)
    return texts, np.full(number, CLASS_INDEX["unsupported"], dtype=np.int64)


def _texts_of_moments(stored: pl.Series, dtype: pl.Date | pl.Datetime) -> tuple[pl.Series, Counts]:
    """Write dates, or times in UTC, by the numbers that polars stores for them.

    Years without four digits are unsupported.
    """
    is_date = isinstance(dtype, pl.Date)
    seconds = _to_seconds(stored, dtype)
    inside = (seconds >= _FIRST_SECOND) & (seconds <= _LAST_SECOND)
    texts, classes = _unsupported(len(seconds))
    if inside.any():
        moments = seconds[inside].astype("datetime64[s]")
        written = np.datetime_as_string(moments, unit="D" if is_date else "s")
        texts = texts.scatter(np.flatnonzero(inside), pl.Series(written, dtype=pl.String))
        classes[inside] = CLASS_INDEX[_DATE_CLASS if is_date else _TIME_CLASS]
    return texts, classes


def _to_seconds(stored: pl.Series, dtype: pl.Date | pl.Datetime) -> Counts:
    """Convert the stored numbers of dates or times to seconds since 1970."""
    numbers = stored.cast(pl.Int64).to_numpy()
    if isinstance(dtype, pl.Datetime):
        return numbers // _TICKS_PER_SECOND.get(dtype.time_unit, _MILLISECONDS_PER_SECOND)
    return numbers * _SECONDS_PER_DAY


def are_calendar_dates(moments: pl.Series) -> bool:
    """Whether dates or times, without null, are all in the years 1 to 9999, which Python has."""
    dtype = moments.dtype
    if not isinstance(dtype, pl.Date | pl.Datetime):
        raise TypeError(f"a column of type {dtype} has no years")
    seconds = _to_seconds(moments.to_physical(), dtype)
    return bool(((seconds >= _YEAR_ONE) & (seconds <= _LAST_SECOND)).all())


def _text_of_object(cell: Any) -> str | None:
    """Convert one Python object to text; None if it is missing."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, np.generic) and cell.dtype.kind != "M":
        cell = cell.item()
    if isinstance(cell, str | bytes):
        return _valid_text(cell)
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, int | float | Decimal):
        return _text_of_number(cell)
    return _text_of_moment(cell) if isinstance(cell, date | np.datetime64) else UNSUPPORTED_CELL


def _valid_text(cell: str | bytes) -> str:
    try:
        return (cell if isinstance(cell, bytes) else cell.encode()).decode()
    except UnicodeError:  # lone surrogates, or bytes that are no text
        return UNSUPPORTED_CELL


def _text_of_number(cell: int | float | Decimal) -> str | None:
    if isinstance(cell, Decimal):
        if cell.is_nan():
            return None
        if cell.is_infinite():
            return "inf" if cell > 0 else "-inf"
        return f"{cell:f}" if abs(cell.adjusted()) < _MAX_DIGITS else UNSUPPORTED_CELL
    if isinstance(cell, float):
        if math.isnan(cell):
            return None
        return str(int(cell)) if cell.is_integer() else repr(cell)
    return str(cell) if abs(cell) < 10**_MAX_DIGITS else UNSUPPORTED_CELL


def _text_of_moment(cell: date | np.datetime64) -> str | None:
    if isinstance(cell, np.datetime64):
        if np.isnat(cell):
            return None
        return _text_of_seconds(int(cell.astype("datetime64[s]").astype(np.int64)), has_time=True)
    if not isinstance(cell, datetime):
        days = (cell - _EPOCH.date()).days
        return _text_of_seconds(days * _SECONDS_PER_DAY, has_time=False)
    try:
        # The offset is subtracted from the difference: the time in UTC may be before year 1.
        since = cell.replace(tzinfo=None) - _EPOCH - (cell.utcoffset() or timedelta(0))
        return _text_of_seconds(since // timedelta(seconds=1), has_time=True)
    except (ValueError, OverflowError):  # pandas has times that Python cannot subtract
        return UNSUPPORTED_CELL


def _text_of_seconds(seconds: int, *, has_time: bool) -> str:
    """Write one date or time, as ``_texts_of_moments`` does."""
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return UNSUPPORTED_CELL
    moment = _EPOCH + timedelta(seconds=seconds)
    return moment.isoformat() if has_time else moment.date().isoformat()
