"""Cells of a column as texts, counted: all that a private draft reads of a table.

The type of a typed column can hang on one row: pandas turns integers into floats because of one
missing cell, and into objects because of one text. So a private draft uses no column type. Each
cell becomes a text by its own value: 7 and 7.0 become "7", true becomes "True", a date becomes
"2020-01-31". Another row adds its own text and leaves the others as they are.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from deniable.arrays import Counts, Mask, Reals
from deniable.drafting.cell_patterns import (
    CLASS_INDEX,
    MAX_CLASSIFIED_DECIMALS,
    UNSUPPORTED_CELL,
    classify_cells,
    strip_blanks,
)
from deniable.drafting.numeric_profile import count_decimals
from deniable.drafting.object_texts import (
    FIRST_SECOND,
    LAST_SECOND,
    counted_texts,
    texts_of_objects,
)
from deniable.schema.grid import format_decimals

# Whole numbers of a smaller absolute value are written with all their digits.
_WHOLE_LIMIT = 1e18
# Relative error of doubles that were computed: 0.1 + 0.2 counts as 0.3.
_ROUNDING_ERROR = 1e-13
# Other numbers are written with an exponent of at most two digits, as ``cell_patterns`` expects.
_LEAST_WRITTEN, _LARGEST_WRITTEN = 1e-99, 1e99
# Any decimal number but those with a leading zero, which are codes.
_NUMBER = r"^[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"

_DATE_CLASS, _TIME_CLASS = "date %Y-%m-%d", "datetime %Y-%m-%dT%H:%M:%S"
_EPOCH = datetime(1970, 1, 1)
_SECONDS_PER_DAY = 86_400
_TICKS_PER_SECOND = {"us": 10**6, "ns": 10**9}
_MILLISECONDS_PER_SECOND = 1_000
_YEAR_ONE = (datetime.min - _EPOCH) // timedelta(seconds=1)


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
    written = values.cast(pl.String)
    texts = written if is_csv else counted_texts(written)
    classes = classify_cells(texts).astype(np.int64)
    if is_csv:
        return texts, classes
    stripped = strip_blanks(texts)
    numbers = stripped.cast(pl.Float64, strict=False)
    numeric = stripped.str.contains(_NUMBER) & numbers.is_not_null()
    if numeric.any():
        decimals, of_numbers = _texts_of_numbers(numbers.filter(numeric).to_numpy())
        texts = texts.scatter(numeric.arg_true(), decimals)
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
    inside = (seconds >= FIRST_SECOND) & (seconds <= LAST_SECOND)
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
    return bool(((seconds >= _YEAR_ONE) & (seconds <= LAST_SECOND)).all())
