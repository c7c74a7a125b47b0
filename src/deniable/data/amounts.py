"""Unit: how a position on the grid of a numeric attribute becomes a number, a day or a time.

Whole numbers, reals, dates and times are all kept as whole numbers inside: positions on a public
grid. Here is the one place that knows what a position means, for single values and for columns.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
import polars as pl

from deniable.arrays import Counts
from deniable.errors import SchemaError

NumericKind = Literal["integer", "real", "date", "datetime"]
Amount = int | float | date

# Beyond it, a whole number may be one that was cut to fit 64 bits on its way in.
LARGEST = 2**62
# Beyond it, a float does not tell a number from the next.
LARGEST_IN_FLOAT = 2**53

_DAY_0 = date(1970, 1, 1)
_SECOND_0 = datetime(1970, 1, 1)  # of a table's clock: it has no zone, or is in UTC
_MICRO = 1_000_000
_FORMATS: dict[NumericKind, str] = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S"}
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What a position on a grid means.

    Attributes:
        kind: What the values are.
        step: How far two positions are apart: a number for reals, seconds for times, else 1.
        format: How a date or a time is written in text, as in ``strftime``; left out, ISO 8601.
    """

    kind: NumericKind
    step: Decimal = Decimal(1)
    format: str = ""

    def __post_init__(self) -> None:
        if not (self.step.is_finite() and self.step > 0):
            raise SchemaError("the step of a grid is a number above 0")
        if self.kind in ("integer", "date") and self.step != 1:
            raise SchemaError(f"the grid of a column of type {self.kind} has step 1")
        if self.kind == "datetime" and self.step != int(self.step):
            raise SchemaError("step_seconds is a whole number")
        if self.format and self.kind not in _FORMATS:
            raise SchemaError("format is for dates and times")
        object.__setattr__(self, "format", self.format or _FORMATS.get(self.kind, ""))

    @property
    def decimals(self) -> int:
        """How many digits after the point a number of this grid is written with: the step's."""
        exponent = self.step.as_tuple().exponent
        return max(0, -int(exponent))

    @property
    def is_default_format(self) -> bool:
        """Whether dates or times are written as ISO 8601 says."""
        return self.format == _FORMATS.get(self.kind, "")

    def value_at(self, position: int) -> Amount:
        """Return the value at a position."""
        if self.kind == "integer":
            return position
        if self.kind == "date":
            return _DAY_0 + timedelta(days=position)
        if self.kind == "datetime":
            return _SECOND_0 + timedelta(seconds=position * int(self.step))
        return float(position * Fraction(self.step))

    def place_of(self, value: Amount) -> Fraction:
        """Return where a value lies on the grid; between two positions, perhaps.

        Raises:
            TypeError: The value is not of this kind.
        """
        if self.kind in _FORMATS:
            return Fraction(self._seconds(value), 86_400 if self.kind == "date" else int(self.step))
        if type(value) not in (int, float):
            raise TypeError
        # As it is written: the nearest float of 0.1 is not a tenth.
        return Fraction(repr(value)) / Fraction(self.step)

    def _seconds(self, value: Amount) -> int:
        if not isinstance(value, date):
            raise TypeError
        moment = datetime(*value.timetuple()[:6])
        if isinstance(value, datetime) and value.tzinfo is not None:
            moment = value.astimezone(UTC).replace(tzinfo=None)
        return int((moment - _SECOND_0).total_seconds() // 1)

    def length_of(self, width: object) -> int | None:
        """Return how many positions a width has: in numbers, days or seconds; None: not so many.

        A width is one position at least, and no fraction of it.
        """
        if not (isinstance(width, int | float) and type(width) is not bool and width > 0):
            return None
        if width == float("inf"):
            return None
        length = Fraction(repr(width)) / Fraction(self.step)
        return int(length) if length.denominator == 1 else None

    def show(self, position: int) -> str:
        """Return the value at a position as a schema writes it."""
        value = self.value_at(position)
        if isinstance(value, date):
            return value.isoformat()
        return f"{position * self.step:.{self.decimals}f}" if self.kind == "real" else str(value)

    def show_width(self, positions: int) -> str:
        """Return so many positions as a schema writes a width: in numbers, days or seconds."""
        return f"{positions * self.step:.{self.decimals}f}"

    # Columns

    @property
    def dtype(self) -> pl.DataType:
        """The type of the values of a column."""
        if self.kind == "date":
            return pl.Date()
        if self.kind == "datetime":
            return pl.Datetime("us")
        return pl.Int64() if self.kind == "integer" else pl.Float64()

    def values(self, positions: Counts) -> pl.Series:
        """Return the values at positions."""
        if self.kind == "date":
            return pl.Series(positions.astype(np.int32)).cast(pl.Date)
        if self.kind == "datetime":
            return pl.Series(positions * (int(self.step) * _MICRO)).cast(pl.Datetime("us"))
        if self.kind == "integer":
            return pl.Series(positions)
        step = Fraction(self.step)
        # One division of whole numbers: the float nearest to the value that is meant. In NumPy:
        # polars multiplies by the reciprocal, and 29.9 comes out as 29.900000000000002.
        return pl.Series((positions * step.numerator).astype(np.float64) / step.denominator)

    def texts(self, values: pl.Expr) -> pl.Expr:
        """Return how values are written in a CSV file."""
        if self.kind == "real":
            return fixed(values, self.decimals)
        if self.kind not in _FORMATS:
            return values.cast(pl.String)
        zoned = values.dt.replace_time_zone("UTC") if self._is_zoned else values
        return zoned.dt.to_string(self._format)

    def from_text(self, text: pl.Expr) -> pl.Expr:
        """Return what texts say: a number, or the position of a date; null where it is none."""
        if self.kind == "integer":
            whole = text.cast(pl.Int64, strict=False)
            # Only where that failed: pandas writes 5.0 for the 5 of a column with missing cells.
            return pl.coalesce(whole, whole_numbers(text.cast(pl.Float64, strict=False)))
        if self.kind == "real":
            return _finite(text.cast(pl.Float64, strict=False))
        if self.kind == "date":
            day = text.str.to_date(self._format, strict=False)
            return self.from_typed(day, pl.Date())
        moment = text.str.to_datetime(
            self._format, strict=False, time_unit="us", time_zone="UTC" if self._is_zoned else None
        )
        return self.from_typed(moment, pl.Datetime("us"))

    def from_typed(self, cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        """Return what typed cells say: a number, or the position of a date or a time."""
        if self.kind == "integer":
            return _whole_of_type(cell, dtype)
        if self.kind == "real":
            return _finite(cell.cast(pl.Float64))
        days = dtype == pl.Date
        if self.kind == "date" and days:
            return cell.cast(pl.Int32).cast(pl.Int64)
        ticks = _MICRO * (86_400 if self.kind == "date" else int(self.step))
        # With a time zone or without, polars keeps the time in UTC.
        return cell.cast(_micro(dtype)).cast(pl.Int64) // ticks

    def positions(self, said: pl.Expr) -> pl.Expr:
        """Return the positions of what cells say: of reals, the nearest ones."""
        if self.kind != "real":
            return said
        step = Fraction(self.step)
        place = (said * float(step.denominator) / float(step.numerator)).round()
        return place.clip(-LARGEST, LARGEST).cast(pl.Int64)

    def numbers(self, texts: Sequence[str]) -> list[int | float]:
        """Return what those of ``texts`` say that say anything, as ``from_text`` does."""
        if self.kind in ("integer", "real"):
            read = whole_number if self.kind == "integer" else _real_number
            return [number for text in texts if (number := read(text)) is not None]
        series = pl.Series("text", texts, dtype=pl.String)
        said = series.to_frame().select(self.from_text(pl.col("text"))).to_series()
        return [int(number) for number in said.drop_nulls()]

    def require_format(self, positions: Sequence[int]) -> None:
        """Refuse a format that loses part of a date or a time.

        Raises:
            SchemaError: Some of ``positions``, written and read, is not itself.
        """
        if self.kind not in _FORMATS:
            return
        moments = self.values(np.array(positions, dtype=np.int64)).to_frame("moment")
        try:
            back = moments.select(self.from_text(self.texts(pl.col("moment")))).to_series()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            raise SchemaError(f'format = "{self.format}" is none that strftime knows') from None
        if back.to_list() != list(positions):
            raise SchemaError(
                f'format = "{self.format}" loses part of a {self.kind}: written so, it cannot be '
                "read back. Use one that says all of it, as in "
                f'"{_FORMATS[self.kind]}"'
            )

    @property
    def _is_zoned(self) -> bool:
        return "%z" in self.format or "%:z" in self.format

    @property
    def _format(self) -> str:
        # polars counts nanoseconds where Python counts microseconds.
        return re.sub("%(%|f)", lambda m: "%6f" if m[1] == "f" else m[0], self.format)


def fixed(values: pl.Expr, decimals: int) -> pl.Expr:
    """Return numbers as text with so many digits after the point."""
    return values.cast(pl.Decimal(38, decimals)).cast(pl.String)


def whole_numbers(reals: pl.Expr) -> pl.Expr:
    """Return the floats that are whole, as integers cut to 64 bits; null for all others."""
    is_whole = reals.is_finite() & (reals == reals.floor())
    return pl.when(is_whole).then(reals.clip(-LARGEST, LARGEST)).cast(pl.Int64)


def whole_number(text: str) -> int | None:
    """Return the whole number that ``text`` says, as a cell of a CSV file would; else None."""
    try:
        return int(text) if "_" not in text else None
    except ValueError:
        return None


def _real_number(text: str) -> float | None:
    number = float(text) if _REAL.fullmatch(text) else None
    return number if number is not None and abs(number) < float("inf") else None


def _finite(reals: pl.Expr) -> pl.Expr:
    return pl.when(reals.is_finite()).then(reals)


def _whole_of_type(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype.is_float() or dtype.is_decimal():
        return whole_numbers(cell.cast(pl.Float64))
    if dtype in (pl.UInt64, pl.UInt128, pl.Int128):
        low = 0 if dtype.is_unsigned_integer() else -LARGEST
        return cell.clip(low, LARGEST).cast(pl.Int64)
    return cell.cast(pl.Int64)


def _micro(dtype: pl.DataType) -> pl.DataType:
    return pl.Datetime("us", dtype.time_zone if isinstance(dtype, pl.Datetime) else None)
