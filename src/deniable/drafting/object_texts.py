"""Python objects as texts, each by its own value and without loss.

A private draft needs two texts of a cell: one that is counted, in which a time ends with the
second, and one that distinguishes units, which has every digit. Both are kept in one lossless text:
the counted text and, where it loses something, a mark and the rest.
"""

import math
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from deniable.data.object_columns import to_real_number
from deniable.drafting.cell_patterns import UNSUPPORTED_CELL

# Separates the counted text from what it loses.
_REST_MARK = "\0rest\0"
# Longer integers and decimals are not counted as numbers: Python writes at most 4,300 digits.
_MAX_DIGITS = 400

_EPOCH = datetime(1970, 1, 1)
_SECONDS_PER_DAY = 86_400
# Years of four digits, as ``cell_patterns.parse_dates`` accepts them.
FIRST_SECOND = (datetime(1000, 1, 1) - _EPOCH) // timedelta(seconds=1)
LAST_SECOND = (datetime(9999, 12, 31, 23, 59, 59) - _EPOCH) // timedelta(seconds=1)

# Attoseconds are the shortest unit of NumPy, so times of all libraries are whole numbers of them.
_ATTOSECONDS_PER_SECOND = 10**18
ATTOSECONDS: dict[str, int] = {
    "W": 604_800 * _ATTOSECONDS_PER_SECOND,
    "D": 86_400 * _ATTOSECONDS_PER_SECOND,
    "h": 3_600 * _ATTOSECONDS_PER_SECOND,
    "m": 60 * _ATTOSECONDS_PER_SECOND,
    # Seconds, and their thousandths down to attoseconds.
    **{f"{prefix}s": 10 ** (18 - 3 * n) for n, prefix in enumerate(["", *"munpfa"])},
}


def texts_of_objects(name: str, cells: Iterable[Any]) -> pl.Series:
    """Convert Python objects to lossless texts, each by its own value; null if it is missing.

    A cell without a counted text gets ``UNSUPPORTED_CELL``. Texts, numbers, dates, times, durations
    and UUIDs have lossless texts that differ, so different persons keep different identifiers.
    Other objects are all equal: not even their ``repr`` need be the same for equal ones.
    """
    return pl.Series(name, [_text_of_object(cell) for cell in cells], dtype=pl.String)


def counted_texts(texts: pl.Series) -> pl.Series:
    """Cut lossless texts to the texts that are counted."""
    if not texts.str.contains(_REST_MARK, literal=True).any():
        return texts
    return texts.str.splitn(_REST_MARK, 2).struct.field("field_0").alias(texts.name)


def text_of_date(days: int) -> str:
    """Write a date, given in days since 1970."""
    seconds = days * _SECONDS_PER_DAY
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        return _unsupported(f"date {days}")
    return (_EPOCH + timedelta(days=days)).date().isoformat()


def text_of_time(attoseconds: int) -> str:
    """Write a date with a time of day in UTC, given in attoseconds since 1970."""
    seconds, fraction = divmod(attoseconds, _ATTOSECONDS_PER_SECOND)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        return _unsupported(f"time {attoseconds}")
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    return text + (_REST_MARK + f"{fraction:018d}".rstrip("0") if fraction else "")


def text_of_duration(attoseconds: int) -> str:
    """Write a duration, which has no counted text."""
    return _unsupported(f"duration {attoseconds}")


def text_of_clock(attoseconds: int, offset: timedelta | None = None) -> str:
    """Write a time of day, which has no counted text."""
    return _unsupported(f"clock {attoseconds}" + ("" if offset is None else f" {offset}"))


def _unsupported(rest: str) -> str:
    return UNSUPPORTED_CELL + _REST_MARK + rest


def _text_of_object(cell: Any) -> str | None:
    """Convert one Python object to text; None if it is missing."""
    cell = _to_python(cell)
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, str | bytes):
        return _valid_text(cell)
    if isinstance(cell, int | float | Decimal):
        return str(cell) if isinstance(cell, bool) else _text_of_number(cell)
    # By name, as nothing but ``randomness`` may import a module that draws.
    if f"{type(cell).__module__}.{type(cell).__name__}" == "uuid.UUID":
        return _unsupported(f"uuid {cell}")
    try:
        return _text_of_temporal(cell)
    except (ValueError, OverflowError, TypeError, NotImplementedError):  # a broken time zone
        return UNSUPPORTED_CELL


def _text_of_temporal(cell: Any) -> str | None:
    """Write a date, time, time of day or duration; other objects are unsupported."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return _text_of_ticks(cell)
    if isinstance(cell, datetime):
        # The offset is subtracted from the difference: the time in UTC may be before year 1.
        since = cell.replace(tzinfo=None) - _EPOCH - (cell.utcoffset() or timedelta(0))
        return text_of_time(_to_attoseconds(since))
    if isinstance(cell, date):
        return text_of_date((cell - _EPOCH.date()).days)
    if isinstance(cell, timedelta):
        return text_of_duration(_to_attoseconds(cell))
    if isinstance(cell, time):
        clock = timedelta(hours=cell.hour, minutes=cell.minute, seconds=cell.second)
        clock += timedelta(microseconds=cell.microsecond)
        return text_of_clock(_to_attoseconds(clock), cell.utcoffset())
    return UNSUPPORTED_CELL


def _text_of_ticks(cell: np.datetime64 | np.timedelta64) -> str | None:
    """Write a time or duration of NumPy."""
    if np.isnat(cell):
        return None
    is_time = isinstance(cell, np.datetime64)
    if is_time and np.datetime_data(cell.dtype)[0] in ("Y", "M"):
        cell = cell.astype("datetime64[D]")
    unit, step = np.datetime_data(cell.dtype)
    if unit not in ATTOSECONDS:  # durations in months or without a unit, which no column holds
        return UNSUPPORTED_CELL
    attoseconds = int(cell.astype(np.int64)) * step * ATTOSECONDS[unit]
    return text_of_time(attoseconds) if is_time else text_of_duration(attoseconds)


def _to_attoseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1) * ATTOSECONDS["us"]


def _to_python(cell: Any) -> Any:
    """Convert numbers of NumPy to those of Python, and times of pandas to those of NumPy."""
    if isinstance(cell, datetime | timedelta):
        return getattr(cell, "asm8", cell)  # pandas keeps nanoseconds there
    cell = to_real_number(cell)
    if isinstance(cell, np.generic) and cell.dtype.kind not in "Mm":
        return cell.item()
    return cell


def _valid_text(cell: str | bytes) -> str:
    held = cell if isinstance(cell, bytes) else cell.encode(errors="surrogatepass")
    try:
        return held.decode()
    except UnicodeError:  # lone surrogates, or bytes that are not text
        return _unsupported(f"bytes {held.hex()}")


def _text_of_number(cell: int | float | Decimal) -> str | None:
    """Write a number in the same way for every type that holds it: 7, 7.0 and 7.00 as "7"."""
    if isinstance(cell, Decimal):
        return _text_of_decimal(cell)
    if isinstance(cell, float):
        if math.isnan(cell):
            return None
        return str(int(cell)) if cell.is_integer() else repr(float(cell))
    return str(int(cell)) if abs(cell) < 10**_MAX_DIGITS else _unsupported(hex(cell))


def _text_of_decimal(cell: Decimal) -> str | None:
    if cell.is_nan():
        return None
    if cell.is_infinite():
        return "inf" if cell > 0 else "-inf"
    if not cell:
        return "0"
    if abs(cell.adjusted()) >= _MAX_DIGITS:
        sign, digits, _ = cell.as_tuple()
        figures = "".join(map(str, digits)).rstrip("0")
        return _unsupported(f"decimal {sign} {figures} {cell.adjusted()}")
    text = f"{cell:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
