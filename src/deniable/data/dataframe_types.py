"""Column types of returned data frames: the input's type if it can hold every value of the schema.

Otherwise the column gets the type that decoded records have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import polars as pl

from deniable.data.codec import format_values
from deniable.data.column_encoder import boolean_numbers
from deniable.data.complete_records import record_dtypes
from deniable.schema.attribute import Attribute
from deniable.schema.grid import FLOAT_INTEGER_LIMIT
from deniable.schema.unmodelled_columns import Constant, SchemaColumn


@dataclass(frozen=True)
class OutputColumn:
    """A column of a returned data frame.

    Attributes:
        name: The name of the column.
        dtype: Its polars type.
        attribute: The attribute of a learnt or constant column; None for other columns.
    """

    name: str
    dtype: pl.DataType
    attribute: Attribute | None = None

    def expression(self) -> pl.Expr:
        """Convert decoded cells to the type of this column."""
        cell, attribute = pl.col(self.name), self.attribute
        if attribute is None:
            return cell.cast(self.dtype)
        if is_text_dtype(self.dtype):
            return format_values(attribute).cast(self.dtype)
        if attribute.kind == "boolean" and self.dtype.is_numeric():
            false, true = boolean_numbers(attribute)
            number = pl.when(cell).then(true).when(~cell).then(false)
            return number.cast(self.dtype).alias(self.name)
        if isinstance(self.dtype, pl.Datetime) and self.dtype.time_zone is not None:
            utc = cell.cast(pl.Datetime(self.dtype.time_unit)).dt.replace_time_zone("UTC")
            return utc.dt.convert_time_zone(self.dtype.time_zone)
        return cell.cast(self.dtype)


def output_columns(
    columns: Sequence[SchemaColumn], input_dtypes: Mapping[str, pl.DataType]
) -> tuple[OutputColumn, ...]:
    """Return the columns of the returned frame: those of the input first, in its order."""
    decoded_dtypes = record_dtypes(columns)
    attribute_of = {
        column.name: column.attribute if isinstance(column, Constant) else column
        for column in columns
        if isinstance(column, Constant | Attribute)
    }
    outputs = []
    for name in [*(name for name in input_dtypes if name in decoded_dtypes), *decoded_dtypes]:
        attribute = attribute_of.get(name)
        dtype = decoded_dtypes[name]
        if name in input_dtypes and attribute is not None:
            dtype = _output_dtype(attribute, input_dtypes[name], dtype)
        outputs.append(OutputColumn(name, dtype, attribute))
    return tuple(dict.fromkeys(outputs))


def is_text_dtype(dtype: pl.DataType) -> bool:
    """Whether a polars type holds text."""
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def has_listed_values(attribute: Attribute) -> bool:
    """Whether the schema lists all values, so that they can be categories."""
    is_unbinned = attribute.kind == "integer" and not attribute.is_binned
    return is_unbinned or not (attribute.is_numeric or attribute.kind == "boolean")


def value_range(attribute: Attribute) -> tuple[int, int]:
    """Return the smallest and the largest number that the attribute can hold."""
    if attribute.kind == "boolean":
        false, true = boolean_numbers(attribute)
        return min(false, true), max(false, true)
    numbers = cast("Sequence[int]", attribute.values)
    step = attribute.grid.step if attribute.grid is not None else 1
    ends = (numbers[0], numbers[-1]) if isinstance(numbers, range) else (min(numbers), max(numbers))
    return int(ends[0] * step), int(ends[1] * step)


def _output_dtype(attribute: Attribute, dtype: pl.DataType, decoded: pl.DataType) -> pl.DataType:
    """Return the input's ``dtype`` if it can hold every value, else the ``decoded`` type."""
    if isinstance(dtype, pl.Enum):
        is_listed = not attribute.is_numeric and decoded == pl.String
        return pl.Enum([str(value) for value in attribute.values]) if is_listed else pl.String()
    if is_text_dtype(dtype):
        return dtype if isinstance(dtype, pl.String) else pl.Categorical()
    fits = dtype == decoded or (
        _holds_dates(dtype, decoded) if decoded.is_temporal() else _holds_numbers(attribute, dtype)
    )
    return dtype if fits else decoded


def _holds_dates(dtype: pl.DataType, decoded: pl.DataType) -> bool:
    return isinstance(dtype, pl.Datetime) or (dtype == pl.Date and decoded == pl.Date)


def _holds_numbers(attribute: Attribute, dtype: pl.DataType) -> bool:
    decimals = attribute.grid.decimals if attribute.grid is not None else 0
    if not dtype.is_numeric() or not (attribute.is_whole or attribute.kind in ("real", "boolean")):
        return False
    low, high = value_range(attribute)
    if isinstance(dtype, pl.Decimal):
        digits = (dtype.precision or 0) - dtype.scale
        return dtype.scale >= decimals and max(abs(low), abs(high)) < 10**digits
    if dtype.is_float():
        exact = 2**24 if dtype == pl.Float32 else FLOAT_INTEGER_LIMIT
        return attribute.kind == "real" or max(abs(low), abs(high)) <= exact
    bits = int(str(dtype).lstrip("UInt"))
    least, end = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1)) if dtype.is_signed_integer() else (0, 2**bits)
    )
    return decimals == 0 and least <= low and high < end
