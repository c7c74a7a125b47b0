"""Encode the cells of one column as codes, with polars expressions, and diagnose invalid cells.

An invalid cell is encoded as ``NO_CODE``, or as the fallback of its attribute. The kind of a fault
is found in a second pass, so a table that matches its schema costs only one comparison per cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import polars as pl

from deniable.arrays import MAX_DOMAIN_SIZE
from deniable.data.typed_texts import TEXT_TYPES, decimal_texts, has_text
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.bins import equal_bin_starts
from deniable.schema.grid import (
    FLOAT_INTEGER_LIMIT,
    INTEGER_LIMIT,
    Grid,
    parse_integer,
    whole_floats_to_integers,
)
from deniable.schema.heaping import Heaping

# Code of an invalid cell: above every attribute's codes.
NO_CODE = MAX_DOMAIN_SIZE

# In typed cells null means missing; in CSV cells, which may all be read as text, a declared text.
CellOrigin = Literal["typed", "csv"]

# The time zones of a column whose times are read as they are.
_WITHOUT_ZONE = (None, "UTC", "Etc/UTC")

_INTEGER_GRID = Grid(kind="integer")

# Contents of a column of each type, for messages.
_TYPE_DESCRIPTIONS = {
    "integer": "whole numbers",
    "real": "numbers",
    "date": "dates",
    "datetime": "times",
    "boolean": "true and false",
}


@dataclass(frozen=True, kw_only=True)
class ColumnEncoder:
    """Encoder of one column, of a given polars type, as an attribute.

    Attributes:
        attribute: The attribute that describes the column.
        dtype: The polars type of the column. Text is parsed like the cells of a CSV file.
        origin: In a ``"csv"`` column no cell is null, and an empty cell is the text "".
        required_code: The only valid code, for a constant column.
        heaping: If given, encode the roundness of the numbers instead; every cell has one.
        is_text: Whether the cells are text.
        is_lenient: Whether every cell of every type has a code.
        is_always_missing: Whether the only valid cell is a missing one.
        grid: Grid that parses numbers and dates; None for text and booleans.
    """

    attribute: Attribute
    dtype: pl.DataType
    origin: CellOrigin = "typed"
    required_code: int | None = None
    heaping: Heaping | None = None
    is_text: bool = field(init=False, repr=False, compare=False)
    is_lenient: bool = field(init=False, repr=False, compare=False)
    is_always_missing: bool = field(init=False, repr=False, compare=False)
    grid: Grid | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        attribute = self.attribute
        grid = attribute.grid or (_INTEGER_GRID if attribute.is_whole else None)
        object.__setattr__(self, "is_text", isinstance(self.dtype, TEXT_TYPES))
        object.__setattr__(self, "is_lenient", attribute.fallback is not None)
        object.__setattr__(self, "grid", grid)
        always_missing = self.required_code is not None
        always_missing &= self.required_code == attribute.missing_code
        object.__setattr__(self, "is_always_missing", always_missing)
        always_fits = self.dtype == pl.Null or self.is_always_missing or self.is_lenient
        if not (always_fits or _accepts_dtype(self)):
            raise DataError(_describe_wrong_dtype(self.attribute, self.dtype))

    @property
    def is_parsed(self) -> bool:
        """Whether the type of the column fits the attribute; else its cells have texts only."""
        return self.dtype == pl.Null or _accepts_dtype(self)

    def code(self, *, use_fallback: bool = True) -> pl.Expr:
        """Encode each cell as a 16-bit code, ``NO_CODE`` if invalid; named like the column.

        Args:
            use_fallback: Whether invalid cells have the attribute's fallback, if it has one.
        """
        if self.heaping is not None and self.grid is not None:
            if not self.is_parsed:
                return pl.lit(0, dtype=pl.UInt16).alias(self.heaping.attribute.name)
            position = self.grid.positions(parse_cells(self, self.grid))
            return self.heaping.roundness(position, _encode_bin(self.attribute, position))
        code: pl.Expr
        if self.is_always_missing:
            code = pl.when(_is_empty(self)).then(self.required_code)
        elif not self.is_parsed:
            code = _encode_other_type(self)
        elif self.grid is not None:
            code = _encode_number(self, self.grid)
        elif self.attribute.kind == "boolean":
            code = _encode_boolean(self)
        else:
            code = _encode_category(self)
        if self.required_code is not None:
            code = pl.when(code == self.required_code).then(code)
        if use_fallback and self.is_lenient:
            is_invalid = code.is_null() | (code == NO_CODE)
            code = pl.when(is_invalid).then(self.attribute.fallback).otherwise(code)
        return code.fill_null(NO_CODE).cast(pl.UInt16).alias(self.attribute.name)

    def fault(self) -> pl.Expr:
        """Diagnose each cell: the index of its fault in ``FAULT_KINDS``, null if it is valid."""
        is_well_formed = pl.lit(value=True)
        if self.grid is not None and not self.is_always_missing:
            is_well_formed = parse_cells(self, self.grid).is_not_null()
        kind = pl.when(_is_empty(self)).then(0).when(~is_well_formed).then(1).otherwise(2)
        name = self.attribute.name
        return pl.when(self.code() == NO_CODE).then(kind).cast(pl.UInt8).alias(name)


def _accepts_dtype(column: ColumnEncoder) -> bool:
    """Whether a column of this type can hold values of the attribute."""
    dtype, kind = column.dtype, column.attribute.kind
    if column.is_text:
        return True
    if kind in ("date", "datetime"):
        return dtype in (pl.Date, pl.Datetime) and (column.is_lenient or not is_zoned(dtype))
    if dtype.is_float() and _exceeds_floats(column.attribute) and not column.is_lenient:
        return False
    if kind == "boolean":
        return dtype == pl.Boolean or dtype.is_numeric()
    return column.grid is not None and dtype.is_numeric()


def is_zoned(dtype: pl.DataType) -> bool:
    """Whether a column of times has a time zone other than UTC."""
    return isinstance(dtype, pl.Datetime) and dtype.time_zone not in _WITHOUT_ZONE


def _exceeds_floats(attribute: Attribute) -> bool:
    """Whether an attribute has whole numbers that floats cannot represent exactly.

    A column of floats is then refused: pandas converts a column of integers to floats if a single
    cell is missing, which may change the other numbers.
    """
    if not (attribute.is_whole or attribute.kind == "boolean"):
        return False
    values = attribute.values
    ends = (values[0], values[-1]) if attribute.is_numeric else values
    numbers = (parse_integer(str(text)) for text in (*ends, *attribute.missing))
    return any(number is not None and abs(number) >= FLOAT_INTEGER_LIMIT for number in numbers)


def _is_empty(column: ColumnEncoder) -> pl.Expr:
    cell = pl.col(column.attribute.name)
    # In a CSV file, NaN is text like any other: it is missing only if the schema declares it so.
    if column.dtype.is_float() and column.origin == "typed":
        return cell.is_null() | cell.is_nan()
    if column.is_text:
        return cell.is_null() | (_cell_text(column) == "")
    return cell.is_null()


def _cell_text(column: ColumnEncoder) -> pl.Expr:
    """Return the text of each cell, without surrounding blanks for numbers, dates and booleans.

    The meaning of a cell must not depend on other cells. polars strips blanks when it reads a
    column as numbers, so they are stripped as well when other cells make it read text.
    """
    text = pl.col(column.attribute.name).cast(pl.String)
    is_listed = column.grid is None and column.attribute.kind != "boolean"
    return text if is_listed else text.str.strip_chars(" \t")


def parse_cells(column: ColumnEncoder, grid: Grid) -> pl.Expr:
    """Parse each cell as a number or date of the grid; null if it is neither.

    Where invalid cells have a fallback, a fraction among whole numbers is rounded.
    """
    parsed = parse_exactly(column, grid)
    if not (column.is_lenient and grid.kind == "integer") or column.dtype.is_integer():
        return parsed
    cell = _cell_text(column) if column.is_text else pl.col(column.attribute.name)
    return pl.coalesce(
        parsed, whole_floats_to_integers(cell.cast(pl.Float64, strict=False).round())
    )


def parse_exactly(column: ColumnEncoder, grid: Grid) -> pl.Expr:
    """Parse each cell as ``parse_cells`` does, but round none."""
    if column.is_text:
        return grid.from_text(_cell_text(column))
    if column.dtype.is_decimal():  # as text, which keeps all digits
        return grid.from_text(decimal_texts(pl.col(column.attribute.name), column.dtype))
    if column.dtype == pl.Null:
        return pl.lit(None, dtype=pl.Float64 if grid.kind == "real" else pl.Int64)
    return grid.from_typed(pl.col(column.attribute.name), column.dtype)


def _encode_number(column: ColumnEncoder, grid: Grid) -> pl.Expr:
    attribute, parse = column.attribute, parse_cells if column.is_lenient else parse_exactly
    parsed = parse(column, grid)
    if attribute.is_numeric:
        code = _encode_bin(attribute, grid.positions(parsed))
    else:
        code = _encode_listed_integer(column, parsed)
    if not attribute.missing:
        return code
    missing = _is_missing(column)
    for number in attribute.missing_numbers:
        # Larger integers are clipped, and are compared as texts.
        if grid.kind != "integer" or abs(number) < INTEGER_LIMIT:
            missing = missing | parsed.eq_missing(number)
    return pl.when(missing).then(attribute.missing_code).otherwise(code)


def _encode_bin(attribute: Attribute, position: pl.Expr) -> pl.Expr:
    """Find the bin of each position; null outside the range, unless the attribute clips."""
    low, high = cast("int", attribute.values[0]), cast("int", attribute.values[-1])
    if attribute.outside == "clip":
        position = position.clip(low, high)
    starts, values = attribute.starts, cast("range", attribute.values)
    if not isinstance(starts, range):
        count, positions = len(starts), len(values)
        if positions * count < INTEGER_LIMIT and starts == tuple(equal_bin_starts(values, count)):
            # The largest i with floor(i · positions / count) ≤ position - low.
            code = ((position - low + 1) * count - 1) // positions
        else:
            edges = pl.lit(pl.Series(starts, dtype=pl.Int64))
            code = edges.search_sorted(position, side="right").cast(pl.Int64) - 1
    elif starts.step > 1:
        code = (position - low) // starts.step
    else:
        code = position - low
    return _where_between(position, low, high, code)


def _encode_listed_integer(column: ColumnEncoder, number: pl.Expr) -> pl.Expr:
    """Find the index of each whole number in the list of values."""
    values = cast("Sequence[int]", column.attribute.values)
    low, high = values[0], values[-1]
    if all(value == low + i for i, value in enumerate(values)):
        return _where_between(number, low, high, number - low)
    return number.replace_strict(
        pl.Series(values, dtype=pl.Int64),
        pl.Series(range(len(values)), dtype=pl.UInt16),
        default=NO_CODE,
        return_dtype=pl.UInt16,
    )


def _where_between(number: pl.Expr, low: int, high: int, code: pl.Expr) -> pl.Expr:
    """Return ``code`` where ``low`` ≤ ``number`` ≤ ``high``, else null.

    Codes are cast to 16 bits first, which halves the time. Codes that wrap around are outside the
    range anyway.
    """
    narrow = code.cast(pl.UInt16, wrap_numerical=True)
    return pl.when(number.is_between(low, high)).then(narrow)


def _is_missing(column: ColumnEncoder) -> pl.Expr:
    """Whether each cell is null, empty or has a declared text that means missing.

    Numbers that mean missing are also compared elsewhere, in all their spellings.
    """
    cell, texts = pl.col(column.attribute.name), list(column.attribute.missing)
    if column.is_text:
        text = cell.cast(pl.String)
        declared = text.is_in(texts) | _cell_text(column).is_in(texts)
        return declared | cell.is_null() if column.origin == "typed" else declared
    if column.origin == "typed":
        # Dates are compared elsewhere: their texts have the format of the schema.
        is_number = column.dtype.is_numeric()
        return _is_empty(column) | (has_text(cell, column.dtype, texts) if is_number else False)
    if "" in texts:
        return _is_empty(column)
    return pl.lit(value=False)


def _encode_boolean(column: ColumnEncoder) -> pl.Expr:
    attribute, cell = column.attribute, pl.col(column.attribute.name)
    false, true = (str(text).lower() for text in attribute.values)
    code: pl.Expr
    if column.is_text:
        # Case-insensitive: pandas writes True where polars writes true.
        text = _cell_text(column).str.to_lowercase()
        code = pl.when(text == false).then(0).when(text == true).then(1)
    elif column.dtype == pl.Boolean:
        code = cell.cast(pl.Int64)
    else:
        return _encode_boolean_number(column, (false, true))
    if not attribute.missing:
        return code
    return pl.when(_is_missing(column)).then(2).otherwise(code)


def _encode_boolean_number(column: ColumnEncoder, texts: tuple[str, str]) -> pl.Expr:
    """Encode numbers: those for false and true, or else by their texts, as in a column of text."""
    attribute, cell = column.attribute, pl.col(column.attribute.name)
    codes = [pl.when(_is_empty(column)).then(attribute.missing_code)]
    for value, number in enumerate(boolean_numbers(attribute)):
        codes.append(pl.when(cell == number).then(value))
    if attribute.missing:
        codes.append(pl.when(has_text(cell, column.dtype, attribute.missing)).then(2))
    for value, text in enumerate(texts):
        codes.append(pl.when(has_text(cell, column.dtype, [text])).then(value))
    return pl.coalesce(codes)


def boolean_numbers(attribute: Attribute) -> tuple[int, int]:
    """Return the numbers for false and true: its two texts if they are numbers, else 0 and 1."""
    false, true = (parse_integer(str(text)) for text in attribute.values)
    return (false, true) if false is not None and true is not None else (0, 1)


def _encode_category(column: ColumnEncoder) -> pl.Expr:
    attribute = column.attribute
    known = pl.Enum([*map(str, attribute.values), *attribute.missing])
    text = pl.col(attribute.name).cast(pl.String)
    code = text.cast(known, strict=False).to_physical().cast(pl.UInt32)
    if attribute.kind == "text":
        other = list(attribute.values).index(attribute.other)
        code = pl.when(code.is_null() & ~_is_empty(column)).then(other).otherwise(code)
    if not attribute.missing:
        return code
    code = code.clip(upper_bound=attribute.missing_code)  # one code for all missing texts
    if column.origin == "csv":
        return code
    return pl.when(text.is_null()).then(attribute.missing_code).otherwise(code)


def _encode_other_type(column: ColumnEncoder) -> pl.Expr:
    """Encode typed cells by their texts, where the type does not fit; null if none is listed.

    The same as in a column of text, to which one row of another type would convert them.
    """
    attribute, cell, dtype = column.attribute, pl.col(column.attribute.name), column.dtype
    codes = [pl.when(_is_empty(column)).then(attribute.missing_code)]
    if attribute.missing:
        codes.append(pl.when(has_text(cell, dtype, attribute.missing)).then(attribute.missing_code))
    if column.grid is None:
        listed = ((i, str(value)) for i, value in enumerate(attribute.values))
        codes += [pl.when(has_text(cell, dtype, [text])).then(i) for i, text in listed]
    if attribute.kind == "text":
        other = list(attribute.values).index(attribute.other)
        codes.append(pl.when(~_is_empty(column)).then(other))
    return pl.coalesce(codes)


def _describe_wrong_dtype(attribute: Attribute, dtype: pl.DataType) -> str:
    """Explain why a column of this type cannot be this attribute, and how to fix it."""
    described = "integer" if attribute.is_whole else attribute.kind
    if dtype.is_float() and _exceeds_floats(attribute):
        return (
            f'column "{attribute.name}" is of type {dtype}, which does not hold all whole numbers '
            "of 2^53 or more. Read it as text, or as whole numbers (in pandas: Int64)."
        )
    if is_zoned(dtype) and attribute.kind in ("date", "datetime"):
        return zone_fault(attribute.name, dtype)
    message = (
        f'column "{attribute.name}" is of type {dtype}, but the schema describes '
        f"{_TYPE_DESCRIPTIONS.get(described, 'text')}. Convert the column"
    )
    if described not in _TYPE_DESCRIPTIONS and dtype.is_numeric():
        return f"{message}, or write its values as whole numbers (without quotes) in the schema."
    if dtype.is_numeric():
        return f'{message}, or describe it as type = "integer" or "real".'
    for kind, fitting in (("boolean", pl.Boolean), ("date", pl.Date), ("datetime", pl.Datetime)):
        if dtype == fitting:
            return f'{message}, or describe it as type = "{kind}".'
    return f"{message}: a schema cannot describe columns of type {dtype}."


def zone_fault(name: str, dtype: pl.DataType) -> str:
    """Explain that records have no time zone, and how to choose the times that they have."""
    return (
        f'column "{name}" has times of the zone {getattr(dtype, "time_zone", "")}, and records '
        "have none: decide what their times mean. In pandas, for local times, "
        f'frame["{name}"].dt.tz_localize(None), or for UTC frame["{name}"].dt.tz_convert("UTC"); '
        'in polars .dt.replace_time_zone(None), or .dt.convert_time_zone("UTC")'
    )
