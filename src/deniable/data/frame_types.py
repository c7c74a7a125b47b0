"""The type that each column of a frame gets back: the input's own, if it holds every value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import polars as pl

from deniable.data.amounts import LARGEST_IN_FLOAT
from deniable.data.attributes import Attribute
from deniable.data.beside import Constant, Described
from deniable.data.cells import boolean_numbers
from deniable.data.codec import text_of
from deniable.data.columns import dtypes_of


@dataclass(frozen=True)
class Target:
    """A column that is given back, and the type that it gets.

    Attributes:
        name: The column's name.
        dtype: What polars holds it as.
        attribute: What it may hold; None of an identifier or a computed column.
    """

    name: str
    dtype: pl.DataType
    attribute: Attribute | None = None

    def expression(self) -> pl.Expr:
        """Return finished cells as the input had them."""
        cell, attribute = pl.col(self.name), self.attribute
        if attribute is None:
            return cell.cast(self.dtype)
        if is_text(self.dtype):
            return text_of(attribute).cast(self.dtype)
        if attribute.kind == "boolean" and self.dtype.is_numeric():
            no, yes = boolean_numbers(attribute)
            return pl.when(cell).then(yes).when(~cell).then(no).cast(self.dtype).alias(self.name)
        if isinstance(self.dtype, pl.Datetime) and self.dtype.time_zone is not None:
            utc = cell.cast(pl.Datetime(self.dtype.time_unit)).dt.replace_time_zone("UTC")
            return utc.dt.convert_time_zone(self.dtype.time_zone)
        return cell.cast(self.dtype)


def targets_of(
    columns: Sequence[Described], found: Mapping[str, pl.DataType]
) -> tuple[Target, ...]:
    """Return the columns to give back: those of the input first, in its order."""
    natural = dtypes_of(columns)
    attribute_of = {
        column.name: column.attribute if isinstance(column, Constant) else column
        for column in columns
        if isinstance(column, Constant | Attribute)
    }
    targets = []
    for name in [*(name for name in found if name in natural), *natural]:
        attribute = attribute_of.get(name)
        wanted = natural[name]
        if name in found and attribute is not None:
            wanted = _polars_dtype(attribute, found[name], wanted)
        targets.append(Target(name, wanted, attribute))
    return tuple(dict.fromkeys(targets))


def is_text(dtype: pl.DataType) -> bool:
    """Whether a type is one of texts."""
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def is_listed(attribute: Attribute) -> bool:
    """Whether the values can be listed: categories are theirs."""
    plain = attribute.kind == "integer" and not attribute.is_binned
    return plain or not (attribute.is_numeric or attribute.kind == "boolean")


def ends_of(attribute: Attribute) -> tuple[int, int]:
    """Return the smallest and the largest number that is written."""
    if attribute.kind == "boolean":
        no, yes = boolean_numbers(attribute)
        return min(no, yes), max(no, yes)
    numbers = cast("Sequence[int]", attribute.values)
    step = attribute.unit.step if attribute.unit is not None else 1
    ends = (numbers[0], numbers[-1]) if isinstance(numbers, range) else (min(numbers), max(numbers))
    return int(ends[0] * step), int(ends[1] * step)


def _polars_dtype(attribute: Attribute, found: pl.DataType, natural: pl.DataType) -> pl.DataType:
    """Return the input's own type if it holds every value; else the one that records have."""
    if isinstance(found, pl.Enum):
        listed = not attribute.is_numeric and natural == pl.String
        return pl.Enum([str(value) for value in attribute.values]) if listed else pl.String()
    if is_text(found):
        return found if isinstance(found, pl.String) else pl.Categorical()
    fits = found == natural or (
        _fits_dates(found, natural) if natural.is_temporal() else _fits_numbers(attribute, found)
    )
    return found if fits else natural


def _fits_dates(found: pl.DataType, natural: pl.DataType) -> bool:
    return isinstance(found, pl.Datetime) or (found == pl.Date and natural == pl.Date)


def _fits_numbers(attribute: Attribute, found: pl.DataType) -> bool:
    decimals = attribute.unit.decimals if attribute.unit is not None else 0
    if not found.is_numeric() or not (attribute.is_whole or attribute.kind in ("real", "boolean")):
        return False
    low, high = ends_of(attribute)
    if isinstance(found, pl.Decimal):
        digits = (found.precision or 0) - found.scale
        return found.scale >= decimals and max(abs(low), abs(high)) < 10**digits
    if found.is_float():
        exact = 2**24 if found == pl.Float32 else LARGEST_IN_FLOAT
        return attribute.kind == "real" or max(abs(low), abs(high)) <= exact
    bits = int(str(found).lstrip("UInt"))
    least, end = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1)) if found.is_signed_integer() else (0, 2**bits)
    )
    return decimals == 0 and least <= low and high < end
