"""Texts of typed cells: the text that a typed cell has in a column of several types.

One row can turn a column of numbers into a column of texts. So a text that a schema declares, such
as a text that means missing, must mean the same for both: a typed cell is compared by the text
that ``object_columns`` would write for it.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite

import polars as pl

from deniable.schema.grid import parse_integer

# The types of a column whose cells are text.
TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum)

# Precedes the digits of bytes that are not text.
_UNDECODED = "\0bytes "

_EPOCH = datetime(1970, 1, 1)
# Ticks per second, by the first letter of a time unit of polars.
_TICKS = {"m": 1_000, "u": 1_000_000, "n": 1_000_000_000}
# Larger integers are in no column of integers, and not compared with floats.
_LARGEST_INTEGER = 2**127
_LARGEST_FLOAT = 2**1023


def number_text(number: float | Decimal) -> str:
    """Write a number; equal numbers of all types, such as 7, 7.0 and Decimal("7.00"), alike."""
    if isinstance(number, int):
        return str(int(number))
    if not isfinite(number):
        return str(float(number))
    if number == int(number):
        return str(int(number))
    # Not str: it depends on the scale of a Decimal.
    return f"{number:f}".rstrip("0") if isinstance(number, Decimal) else str(number)


def moment_text(moment: date) -> str:
    """Write a date or time in ISO 8601; a time with a zone in UTC, like one without a zone."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    return (moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta(0))).isoformat()


def decimal_texts(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Write a column of decimals as ``number_text`` does."""
    text = cell.cast(pl.String)
    if isinstance(dtype, pl.Decimal) and dtype.scale:
        text = text.str.strip_chars_end("0").str.strip_chars_end(".")
    return text


def texts_of_bytes(name: str) -> pl.Expr:
    """Decode a column of bytes; a cell that is not UTF-8 gets a text of its own.

    One cell of bytes turns a column of texts into bytes; the other cells must keep their meaning.
    """
    return pl.col(name).map_batches(_decode_cells, return_dtype=pl.String, is_elementwise=True)


def _decode_cells(cells: pl.Series) -> pl.Series:
    texts = [None if cell is None else text_of_bytes(cell) for cell in cells.to_list()]
    return pl.Series(cells.name, texts, dtype=pl.String)


def text_of_bytes(cell: bytes) -> str:
    """Decode one cell, as ``texts_of_bytes`` does."""
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return _UNDECODED + cell.hex()


def has_text(cell: pl.Expr, dtype: pl.DataType, texts: Sequence[str]) -> pl.Expr:
    """Whether the text of each cell is one of ``texts``; null or false for a null cell."""
    if isinstance(dtype, TEXT_TYPES):
        return cell.cast(pl.String).is_in(list(texts))
    if dtype.is_decimal():
        return decimal_texts(cell, dtype).is_in(list(texts))
    equal: list[pl.Expr] = []
    if dtype.is_integer():
        whole = (number for number in _numbers(texts) if isinstance(number, int))
        equal = [cell == number for number in whole if abs(number) < _LARGEST_INTEGER]
    elif dtype.is_float():
        # A whole number that no float equals is the text of no float.
        reals = (float(number) for number in _numbers(texts) if abs(number) <= _LARGEST_FLOAT)
        exact = (real for real in reals if number_text(real) in texts)
        infinities = (float(text) for text in texts if text in ("inf", "-inf"))
        equal = [cell.cast(pl.Float64) == real for real in (*exact, *infinities)]
    elif dtype == pl.Boolean:
        equal = [cell == (text == "True") for text in texts if text in ("True", "False")]
    elif isinstance(dtype, pl.Datetime):
        ticks = _TICKS[dtype.time_unit[0]]
        equal = [
            cell.to_physical().cast(pl.Int64) == microseconds * ticks // 1_000_000
            for microseconds in _times(texts)
            if microseconds * ticks % 1_000_000 == 0
        ]
    elif dtype == pl.Date:
        equal = [cell == day for day in _dates(texts)]
    return pl.any_horizontal(equal) if equal else pl.lit(value=False)


def _numbers(texts: Sequence[str]) -> list[int | float]:
    """Parse the texts that ``number_text`` writes for finite numbers; skip the others."""
    numbers: list[int | float] = []
    for text in texts:
        number = parse_integer(text)
        parsed = _parse_float(text) if number is None else number
        if parsed is not None and number_text(parsed) == text:
            numbers.append(parsed)
    return numbers


def _parse_float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _dates(texts: Sequence[str]) -> list[date]:
    days = []
    for text in texts:
        try:
            day = date.fromisoformat(text)
        except ValueError:
            continue
        if moment_text(day) == text:
            days.append(day)
    return days


def _times(texts: Sequence[str]) -> list[int]:
    """Parse the texts that ``moment_text`` writes for times: microseconds since 1970."""
    times = []
    for text in texts:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            continue
        if moment.tzinfo is None and moment_text(moment) == text:
            times.append((moment - _EPOCH) // timedelta(microseconds=1))
    return times
