"""The cells of one column → codes, as polars expressions; and what is wrong with a cell.

A cell that has no code becomes ``NO_CODE``. Which fault it has is asked only then, in a second
pass over its column: tables that fit their schema pay for one comparison a cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import polars as pl

from deniable.arrays import MOST_VALUES
from deniable.data.attributes import LARGEST, Attribute, show, show_some
from deniable.errors import DataError

# No attribute has this many codes, so none of them is this one.
NO_CODE = MOST_VALUES

FaultKind = Literal["missing", "not whole", "outside"]
_KINDS: tuple[FaultKind, ...] = ("missing", "not whole", "outside")

_NOT_SHOWN = "(not shown: input records are confidential)"

# Typed cells say missing by null; CSV cells, which may all arrive as text, by a declared text.
Origin = Literal["typed", "csv"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a given type, to be read as an attribute.

    Attributes:
        attribute: What the column may hold.
        dtype: What polars holds it as.
        origin: ``"csv"``: text may stand for a number, and an empty cell is the text "".
    """

    attribute: Attribute
    dtype: pl.DataType
    origin: Origin = "typed"

    def __post_init__(self) -> None:
        if self.attribute.is_numeric:
            fits = self.dtype.is_numeric() or (self.origin == "csv" and self.dtype == pl.String)
        else:
            fits = isinstance(self.dtype, pl.String | pl.Categorical | pl.Enum)
        if not (fits or self.dtype == pl.Null):
            raise DataError(_describe_misfit(self.attribute, self.dtype))

    def code(self) -> pl.Expr:
        """Return each cell's code, or ``NO_CODE``; 16 bits, named like the column."""
        coded = _code_of_number(self) if self.attribute.is_numeric else _code_of_text(self)
        return coded.fill_null(NO_CODE).cast(pl.UInt16).alias(self.attribute.name)

    def fault(self) -> pl.Expr:
        """Return each cell's fault, as a place in ``_KINDS``; null where it has a code."""
        empty = _is_empty(self)
        whole = _number(self).is_not_null() if self.attribute.is_numeric else pl.lit(value=True)
        kind = pl.when(empty).then(0).when(~whole).then(1).otherwise(2)
        name = self.attribute.name
        return pl.when(self.code() == NO_CODE).then(kind).cast(pl.UInt8).alias(name)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with some cells of one column: how many, and the row of the first."""

    attribute: Attribute
    kind: FaultKind
    row: int
    count: int

    def describe(self, *, where: str, unit: str) -> str:
        """Return what is wrong, where, how often, and what to do. Shows no cell."""
        what, cure = _WORDS[self.kind](self.attribute)
        often = f"{self.count:,} {unit}s have" if self.count > 1 else f"1 {unit} has"
        return f'column "{self.attribute.name}", {where}: {what}. {often} this fault. {cure}'


def find_faults(attribute: Attribute, faults: pl.Series) -> list[Fault]:
    """Return the faults of one column, a kind each, from what ``Column.fault`` returned."""
    found = []
    for number, kind in enumerate(_KINDS):
        rows = (faults == number).fill_null(value=False).arg_true()
        if len(rows):
            found.append(Fault(attribute=attribute, kind=kind, row=rows[0], count=len(rows)))
    return found


def _is_empty(column: Column) -> pl.Expr:
    cell = pl.col(column.attribute.name)
    if column.dtype.is_float():
        return cell.is_null() | cell.is_nan()
    if column.origin == "csv" and column.dtype == pl.String:
        return _text(column) == ""
    return cell.is_null()


def _text(column: Column) -> pl.Expr:
    """Return the text of a CSV cell; around a number, blanks are no part of it.

    What a cell means must not depend on what the other cells of the table made polars do: a
    number column that is read as numbers has lost its blanks, so one read as text loses them too.
    """
    cell = pl.col(column.attribute.name)
    return cell.str.strip_chars(" \t") if column.attribute.is_numeric else cell


def _number(column: Column) -> pl.Expr:
    """Return the cells' whole numbers, cut to 64 bits; null where a cell is no whole number."""
    cell, dtype = pl.col(column.attribute.name), column.dtype
    if dtype == pl.String:
        text = _text(column)
        whole = text.cast(pl.Int64, strict=False)
        # Only where that failed: pandas writes 5.0 for the 5 of a column with missing cells.
        return pl.coalesce(whole, _whole(text.cast(pl.Float64, strict=False)))
    if dtype.is_float() or dtype.is_decimal():
        return _whole(cell.cast(pl.Float64))
    if dtype in (pl.UInt64, pl.UInt128, pl.Int128):
        low = 0 if dtype.is_unsigned_integer() else -LARGEST
        return cell.clip(low, LARGEST).cast(pl.Int64)
    return cell.cast(pl.Int64)


def _whole(real: pl.Expr) -> pl.Expr:
    is_whole = real.is_finite() & (real == real.floor())
    return pl.when(is_whole).then(real.clip(-LARGEST, LARGEST)).cast(pl.Int64)


def _code_of_number(column: Column) -> pl.Expr:
    attribute, number = column.attribute, _number(column)
    values = cast("Sequence[int]", attribute.values)
    low, high = values[0], values[-1]
    if attribute.outside == "clip":
        code = number.clip(low, high) - low
    elif all(value == low + i for i, value in enumerate(values)):
        code = pl.when(number.is_between(low, high)).then(number - low)
    else:
        code = number.replace_strict(
            pl.Series(values, dtype=pl.Int64),
            pl.Series(range(len(values)), dtype=pl.UInt16),
            default=NO_CODE,
            return_dtype=pl.UInt16,
        )
    if not attribute.missing:
        return code
    return pl.when(_is_missing(column, number)).then(attribute.missing_code).otherwise(code)


def _is_missing(column: Column, number: pl.Expr) -> pl.Expr:
    attribute = column.attribute
    missing = pl.lit(value=False)
    for meant in attribute.missing_numbers:
        missing = missing | number.eq_missing(meant)
    if column.origin == "csv" and column.dtype == pl.String:
        texts = list(attribute.missing)
        return missing | pl.col(attribute.name).is_in(texts) | _text(column).is_in(texts)
    if column.origin == "typed" or "" in attribute.missing:
        return missing | _is_empty(column)
    return missing


def _code_of_text(column: Column) -> pl.Expr:
    attribute = column.attribute
    known = pl.Enum([*map(str, attribute.values), *attribute.missing])
    text = pl.col(attribute.name).cast(pl.String)
    code = text.cast(known, strict=False).to_physical().cast(pl.UInt32)
    if not attribute.missing:
        return code
    code = code.clip(upper_bound=attribute.missing_code)  # whichever text it was
    if column.origin == "csv":
        return code
    return pl.when(text.is_null()).then(attribute.missing_code).otherwise(code)


def _describe_misfit(attribute: Attribute, dtype: pl.DataType) -> str:
    """Return why a column of this type cannot be this attribute, and what to do."""
    name = attribute.name
    if attribute.is_numeric:
        wanted, other = "whole numbers", "list its values as text in the schema"
    else:
        wanted, other = "text", "write its values as whole numbers (without quotes) in the schema"
    says = f'column "{name}" is of type {dtype}, but the schema describes {wanted}. '
    if dtype.is_numeric() or dtype == pl.String:
        return f"{says}Convert the column, or {other}."
    return f"{says}Convert the column: columns of type {dtype} cannot be described yet."


def _say_missing(attribute: Attribute) -> tuple[str, str]:
    if attribute.missing:
        what = f"the cell is empty, but only {show_some(attribute.missing)} means missing"
        return what, 'Add "" to its missing, or set outside = "drop".'
    cure = 'Declare missing = [""] for this column, or set outside = "drop".'
    return "the cell is missing, and the schema declares no missing", cure


def _say_not_whole(attribute: Attribute) -> tuple[str, str]:
    known = f" ({show_some(attribute.missing)} means missing)" if attribute.missing else ""
    what = f"the value is not a whole number{known} {_NOT_SHOWN}"
    return what, 'Correct it, add it to missing if that is what it means, or set outside = "drop".'


def _say_outside(attribute: Attribute) -> tuple[str, str]:
    if attribute.kind == "integer":
        low, high = attribute.values[0], attribute.values[-1]
        cure = 'Widen min or max, or set outside = "drop" or "clip".'
        return f"the value is outside {show(low)}..{show(high)} {_NOT_SHOWN}", cure
    count = len(attribute.values)
    what = f"the value is none of the {count:,} in the schema {_NOT_SHOWN}"
    return what, 'Add it to values, to missing if that is what it means, or set outside = "drop".'


_WORDS = {"missing": _say_missing, "not whole": _say_not_whole, "outside": _say_outside}
