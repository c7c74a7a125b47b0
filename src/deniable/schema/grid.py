"""Grid: convert the values of numeric attributes to integer positions on a public grid, and back.

Integers, reals, dates and times are all represented by positions. Only this module converts
between positions, values and text, for single values and for whole columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np

from deniable.arrays import Counts
from deniable.errors import SchemaError
from deniable.library_imports import pl

NumericKind = Literal["integer", "real", "date", "datetime"]
GridValue = int | float | date

# Larger integers in a table are clipped to this limit, so they cannot be told apart.
INTEGER_LIMIT = 2**62
# Above this limit, not every integer is a float.
FLOAT_INTEGER_LIMIT = 2**53
# Decimals that a schema may ask for.
MAX_DECIMALS = 9

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)  # without a time zone: times are local to the table, or in UTC
_MICROSECONDS_PER_SECOND = 1_000_000
# By the first letter of a time unit of polars: milli-, micro- and nanoseconds.
_TICKS_PER_SECOND = {"m": 1_000, "u": 1_000_000, "n": 1_000_000_000}
_DEFAULT_FORMATS: dict[NumericKind, str] = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S"}
_PADDED_FORMAT = re.compile(r"\{:0(?P<digits>[1-9]\d?)d\}", re.ASCII)
_REAL_PATTERN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Equally spaced values of one type, numbered by integer positions.

    Attributes:
        kind: The type of the values.
        step: The distance between neighbouring values: a number for reals, seconds for times,
            otherwise 1.
        format: The ``strftime`` format of dates or times in text; ISO 8601 by default. Of
            integers, such as ``{:07d}``: the number of digits, padded with zeros.
    """

    kind: NumericKind
    step: Decimal = Decimal(1)
    format: str = ""

    def __post_init__(self) -> None:
        if not (self.step.is_finite() and self.step > 0):
            raise SchemaError("the step of a grid must be a number above 0")
        if self.kind in ("integer", "date") and self.step != 1:
            raise SchemaError(f"the grid of a column of type {self.kind} must have step 1")
        if self.kind == "datetime" and self.step != int(self.step):
            raise SchemaError("step_seconds must be a whole number")
        if self.format and self.kind == "real":
            raise SchemaError("format is only for integers, dates and times")
        if self.format and self.kind == "integer" and not _PADDED_FORMAT.fullmatch(self.format):
            raise SchemaError(
                'format of an integer must be such as "{:07d}": its digits, padded with zeros'
            )
        object.__setattr__(self, "format", self.format or _DEFAULT_FORMATS.get(self.kind, ""))

    @property
    def decimals(self) -> int:
        """The number of digits after the decimal point: that of the step."""
        exponent = self.step.as_tuple().exponent
        return max(0, -int(exponent))

    @property
    def is_default_format(self) -> bool:
        """Whether dates or times are written in ISO 8601, and integers without padding."""
        return self.format == _DEFAULT_FORMATS.get(self.kind, "")

    def value_at(self, position: int) -> GridValue:
        """Convert a position to its value."""
        if self.kind == "integer":
            return position
        if self.kind == "date":
            return _EPOCH_DAY + timedelta(days=position)
        if self.kind == "datetime":
            return _EPOCH + timedelta(seconds=position * int(self.step))
        return float(position * Fraction(self.step))

    def position_of(self, value: GridValue) -> Fraction:
        """Convert a value to its position, which is fractional for a value between grid points.

        Raises:
            TypeError: The value has another type.
        """
        if self.kind in _DEFAULT_FORMATS:
            return self._seconds(value) / (86_400 if self.kind == "date" else int(self.step))
        if type(value) not in (int, float):
            raise TypeError
        # The decimal as written: the float 0.1 is not exactly a tenth.
        return Fraction(repr(value)) / Fraction(self.step)

    def _seconds(self, value: GridValue) -> Fraction:
        if not isinstance(value, date):
            raise TypeError
        if not isinstance(value, datetime):
            return Fraction((value - _EPOCH_DAY).days * 86_400)
        # The offset is subtracted from the difference: the time in UTC may be before year 1.
        since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or timedelta(0))
        return Fraction(since // timedelta(microseconds=1), _MICROSECONDS_PER_SECOND)

    def width_in_positions(self, width: object) -> int | None:
        """Convert a width, in numbers, days or seconds, to a number of positions.

        None if the width is not a positive multiple of the step.
        """
        if not (isinstance(width, int | float) and type(width) is not bool and width > 0):
            return None
        if width == float("inf"):
            return None
        length = Fraction(repr(width)) / Fraction(self.step)
        return int(length) if length.denominator == 1 else None

    def format_position(self, position: int) -> str:
        """Format the value at a position as it is written in a schema."""
        value = self.value_at(position)
        if isinstance(value, date):
            return value.isoformat()
        return f"{position * self.step:.{self.decimals}f}" if self.kind == "real" else str(value)

    def format_width(self, positions: int) -> str:
        """Format a number of positions as a width in a schema: in numbers, days or seconds."""
        return f"{positions * self.step:.{self.decimals}f}"

    # Columns

    @property
    def dtype(self) -> pl.DataType:
        """The polars type of a column of values."""
        if self.kind == "date":
            return pl.Date()
        if self.kind == "datetime":
            return pl.Datetime("us")
        return pl.Int64() if self.kind == "integer" else pl.Float64()

    def values(self, positions: Counts) -> pl.Series:
        """Convert a column of positions to values."""
        if self.kind == "date":
            return pl.Series(positions.astype(np.int32)).cast(pl.Date)
        if self.kind == "datetime":
            return pl.Series(positions * (int(self.step) * _MICROSECONDS_PER_SECOND)).cast(
                pl.Datetime("us")
            )
        if self.kind == "integer":
            return pl.Series(positions)
        step = Fraction(self.step)
        # A single division of integers gives the float nearest to the decimal. Done in NumPy, as
        # polars multiplies by the reciprocal, which gives 29.900000000000002 for 29.9.
        return pl.Series((positions * step.numerator).astype(np.float64) / step.denominator)

    def to_text(self, values: pl.Expr) -> pl.Expr:
        """Format a column of values as text for a CSV file."""
        if self.kind == "real":
            return format_decimals(values, self.decimals)
        if self.kind not in _DEFAULT_FORMATS:
            text = values.cast(pl.String)
            padded = _PADDED_FORMAT.fullmatch(self.format)
            return text if padded is None else text.str.zfill(int(padded["digits"]))
        zoned = values.dt.replace_time_zone("UTC") if self._is_zoned else values
        return zoned.dt.to_string(self._format)

    def from_text(self, text: pl.Expr) -> pl.Expr:
        """Parse a column of text as numbers, or as positions of dates; null if invalid."""
        if self.kind == "integer":
            whole = text.cast(pl.Int64, strict=False)
            # The fallback: pandas writes 5 as 5.0 in a column with missing cells.
            return pl.coalesce(whole, whole_floats_to_integers(text.cast(pl.Float64, strict=False)))
        if self.kind == "real":
            return _finite_or_null(text.cast(pl.Float64, strict=False))
        if self.kind == "date":
            day = text.str.to_date(self._format, strict=False)
            return self.from_typed(day, pl.Date())
        moment = text.str.to_datetime(
            self._format, strict=False, time_unit="us", time_zone="UTC" if self._is_zoned else None
        )
        return self.from_typed(moment, pl.Datetime("us"))

    def from_typed(self, cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        """Convert a typed column to numbers, or to positions of dates or times."""
        if self.kind == "integer":
            if dtype.is_float() or dtype.is_decimal():
                return whole_floats_to_integers(cell.cast(pl.Float64))
            if dtype in (pl.UInt64, pl.UInt128, pl.Int128):
                low = 0 if dtype.is_unsigned_integer() else -INTEGER_LIMIT
                cell = cell.clip(low, INTEGER_LIMIT)
            return cell.cast(pl.Int64)
        if self.kind == "real":
            return _finite_or_null(cell.cast(pl.Float64))
        if self.kind == "date" and dtype == pl.Date:
            return cell.cast(pl.Int32).cast(pl.Int64)
        return _to_seconds(cell, dtype) // (86_400 if self.kind == "date" else int(self.step))

    def positions(self, numbers: pl.Expr) -> pl.Expr:
        """Convert parsed cells to positions; reals are rounded to the nearest one."""
        if self.kind != "real":
            return numbers
        step = Fraction(self.step)
        position = (numbers * float(step.denominator) / float(step.numerator)).round()
        return position.clip(-INTEGER_LIMIT, INTEGER_LIMIT).cast(pl.Int64)

    def parse_texts(self, texts: Sequence[str]) -> list[int | float]:
        """Parse the texts that are numbers or dates, as ``from_text`` does; skip the others."""
        if self.kind in ("integer", "real"):
            parse = parse_integer if self.kind == "integer" else _parse_real
            return [number for text in texts if (number := parse(text)) is not None]
        series = pl.Series("text", texts, dtype=pl.String)
        positions = series.to_frame().select(self.from_text(pl.col("text"))).to_series()
        return [int(position) for position in positions.drop_nulls()]

    def require_format(self, positions: Sequence[int]) -> None:
        """Check that dates or times, not numbers, survive being written and parsed in the format.

        Raises:
            SchemaError: Some of ``positions`` does not, or the format is invalid, or a date is
                outside the years 1 to 9999.
        """
        try:
            _ = self.value_at(min(positions)), self.value_at(max(positions))
        except OverflowError:
            raise SchemaError(
                f"a {self.kind} of its range is before year 1 or after year 9999, in UTC; narrow "
                "the range"
            ) from None
        moments = self.values(np.array(positions, dtype=np.int64)).to_frame("moment")
        try:
            back = moments.select(self.from_text(self.to_text(pl.col("moment")))).to_series()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            raise SchemaError(f'format = "{self.format}" is not a valid strftime format') from None
        if back.to_list() != list(positions):
            raise SchemaError(
                f'format = "{self.format}" omits part of a {self.kind}, so values cannot be read '
                f'back. Use a complete format, such as "{_DEFAULT_FORMATS[self.kind]}"'
            )

    @property
    def _is_zoned(self) -> bool:
        return "%z" in self.format or "%:z" in self.format

    @property
    def _format(self) -> str:
        # %f means nanoseconds in polars, microseconds in Python.
        return re.sub("%(%|f)", lambda m: "%6f" if m[1] == "f" else m[0], self.format)


def format_decimals(values: pl.Expr, decimals: int) -> pl.Expr:
    """Format a column of numbers with a fixed number of decimals."""
    return values.cast(pl.Decimal(38, decimals)).cast(pl.String)


def whole_floats_to_integers(reals: pl.Expr) -> pl.Expr:
    """Convert whole floats to integers, clipped to ``INTEGER_LIMIT``; null for other floats."""
    is_whole = reals.is_finite() & (reals == reals.floor())
    return pl.when(is_whole).then(reals.clip(-INTEGER_LIMIT, INTEGER_LIMIT)).cast(pl.Int64)


def parse_integer(text: str) -> int | None:
    """Parse a whole number as in a CSV cell; None if the text is not one."""
    try:
        return int(text) if "_" not in text else None
    except ValueError:
        return None


def _parse_real(text: str) -> float | None:
    number = float(text) if _REAL_PATTERN.fullmatch(text) else None
    return number if number is not None and abs(number) < float("inf") else None


def _finite_or_null(reals: pl.Expr) -> pl.Expr:
    return pl.when(reals.is_finite()).then(reals)


def _to_seconds(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Convert dates or times to whole seconds since 1970, rounded down; in UTC if zoned.

    Integer arithmetic on the stored numbers: a cast to another time unit would panic on dates far
    outside every calendar, and polars then may end the query as if the table had no more rows.
    """
    stored = cell.to_physical().cast(pl.Int64)
    if isinstance(dtype, pl.Datetime):
        return stored // _TICKS_PER_SECOND[dtype.time_unit[0]]
    return stored * 86_400
