"""The cells of one column → codes, as polars expressions; and what is wrong with a cell.

A cell that has no code becomes ``NO_CODE``. Which fault it has is asked only then, in a second
pass over its column: tables that fit their schema pay for one comparison a cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import polars as pl

from deniable.arrays import MOST_VALUES
from deniable.data.amounts import LARGEST, Unit, whole_number
from deniable.data.attributes import Attribute, show, show_some
from deniable.data.bin_heaps import Heaps
from deniable.data.bins import equal_starts
from deniable.errors import DataError

# No attribute has this many codes, so none of them is this one.
NO_CODE = MOST_VALUES

FaultKind = Literal["missing", "malformed", "outside"]
FAULT_KINDS: tuple[FaultKind, ...] = ("missing", "malformed", "outside")

_NOT_SHOWN = "(not shown: input records are confidential)"

# Typed cells say missing by null; CSV cells, which may all arrive as text, by a declared text.
Origin = Literal["typed", "csv"]

_INTEGER = Unit(kind="integer")

# What a column of each sort holds, in a message.
_SORTS = {
    "integer": "whole numbers",
    "real": "numbers",
    "date": "dates",
    "datetime": "times",
    "boolean": "true and false",
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a given type, to be read as an attribute.

    Attributes:
        attribute: What the column may hold.
        dtype: What polars holds it as. Text is read as a cell of a CSV file would be.
        origin: ``"csv"``: no cell is null, and an empty one is the text "".
        only: Where it is given, the one code that a cell may have.
        heaps: Where they are given, the code asked for is how round a number is: every cell has it.
    """

    attribute: Attribute
    dtype: pl.DataType
    origin: Origin = "typed"
    only: int | None = None
    heaps: Heaps | None = None

    def __post_init__(self) -> None:
        if not (self.dtype == pl.Null or self._is_always_missing or _fits(self)):
            raise DataError(_describe_misfit(self.attribute, self.dtype))

    @property
    def is_text(self) -> bool:
        """Whether the cells are text."""
        return isinstance(self.dtype, pl.String | pl.Categorical | pl.Enum)

    @property
    def unit(self) -> Unit | None:
        """How a cell says a number or a date; None where it is text, or true or false."""
        return self.attribute.unit or (_INTEGER if self.attribute.is_whole else None)

    def code(self) -> pl.Expr:
        """Return each cell's code, or ``NO_CODE``; 16 bits, named like the column."""
        if self.heaps is not None and self.unit is not None:
            position = self.unit.positions(_said(self, self.unit))
            return self.heaps.level(position, _bin(self.attribute, position))
        coded = self._coded()
        if self.only is not None:
            coded = pl.when(coded == self.only).then(coded)
        return coded.fill_null(NO_CODE).cast(pl.UInt16).alias(self.attribute.name)

    def fault(self) -> pl.Expr:
        """Return each cell's fault, as a place in ``FAULT_KINDS``; null where it has a code."""
        empty = _is_empty(self)
        formed = _said(self, self.unit).is_not_null() if self._is_measured else pl.lit(value=True)
        kind = pl.when(empty).then(0).when(~formed).then(1).otherwise(2)
        name = self.attribute.name
        return pl.when(self.code() == NO_CODE).then(kind).cast(pl.UInt8).alias(name)

    def _coded(self) -> pl.Expr:
        """Return each cell's code; null or ``NO_CODE`` where it has none."""
        if self._is_always_missing:
            return pl.when(_is_empty(self)).then(self.only)
        if self.unit is not None:
            return _code_of_amount(self, self.unit)
        if self.attribute.kind == "boolean":
            return _code_of_boolean(self)
        return _code_of_text(self)

    @property
    def _is_always_missing(self) -> bool:
        return self.only is not None and self.only == self.attribute.missing_code

    @property
    def _is_measured(self) -> bool:
        return self.unit is not None and not self._is_always_missing


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
    for number, kind in enumerate(FAULT_KINDS):
        rows = (faults == number).fill_null(value=False).arg_true()
        if len(rows):
            found.append(Fault(attribute=attribute, kind=kind, row=rows[0], count=len(rows)))
    return found


def _fits(column: Column) -> bool:
    """Whether cells of this type may be those of the attribute."""
    dtype, kind = column.dtype, column.attribute.kind
    if column.is_text:
        return True
    if kind in ("date", "datetime"):
        return dtype in (pl.Date, pl.Datetime)
    if kind == "boolean":
        return dtype == pl.Boolean or dtype.is_numeric()
    return column.unit is not None and dtype.is_numeric()


def _is_empty(column: Column) -> pl.Expr:
    cell = pl.col(column.attribute.name)
    # In a CSV file NaN is a text like another: it means missing where the schema says so.
    if column.dtype.is_float() and column.origin == "typed":
        return cell.is_null() | cell.is_nan()
    if column.is_text:
        return cell.is_null() | (_text(column) == "")
    return cell.is_null()


def _text(column: Column) -> pl.Expr:
    """Return the text of a cell; around a number or a date, blanks are no part of it.

    What a cell means must not depend on what the other cells of the table made polars do: a
    number column that is read as numbers has lost its blanks, so one read as text loses them too.
    """
    text = pl.col(column.attribute.name).cast(pl.String)
    is_listed = column.unit is None and column.attribute.kind != "boolean"
    return text if is_listed else text.str.strip_chars(" \t")


def _said(column: Column, unit: Unit | None) -> pl.Expr:
    """Return what each cell says, as its unit reads it; null where it says nothing of the kind."""
    measure = unit or _INTEGER
    if column.is_text:
        return measure.from_text(_text(column))
    if column.dtype == pl.Null:
        return pl.lit(None, dtype=pl.Float64 if measure.kind == "real" else pl.Int64)
    return measure.from_typed(pl.col(column.attribute.name), column.dtype)


def _code_of_amount(column: Column, unit: Unit) -> pl.Expr:
    attribute, said = column.attribute, _said(column, unit)
    code = _bin(attribute, unit.positions(said)) if attribute.is_numeric else _place(column, said)
    if not attribute.missing:
        return code
    missing = _is_missing(column)
    for meant in attribute.missing_numbers:
        missing = missing | said.eq_missing(meant)
    return pl.when(missing).then(attribute.missing_code).otherwise(code)


def _bin(attribute: Attribute, position: pl.Expr) -> pl.Expr:
    """Return the bin of each position; null outside the grid, unless that is clipped."""
    low, high = cast("int", attribute.values[0]), cast("int", attribute.values[-1])
    if attribute.outside == "clip":
        position = position.clip(low, high)
    starts, values = attribute.starts, cast("range", attribute.values)
    if not isinstance(starts, range):
        count, positions = len(starts), len(values)
        if positions * count < LARGEST and starts == tuple(equal_starts(values, count)):
            # The last i with floor(i · positions / count) at or below the place.
            code = ((position - low + 1) * count - 1) // positions
        else:
            edges = pl.lit(pl.Series(starts, dtype=pl.Int64))
            code = edges.search_sorted(position, side="right").cast(pl.Int64) - 1
    elif starts.step > 1:
        code = (position - low) // starts.step
    else:
        code = position - low
    return _within(position, low, high, code)


def _place(column: Column, number: pl.Expr) -> pl.Expr:
    """Return where each whole number stands in the list."""
    values = cast("Sequence[int]", column.attribute.values)
    low, high = values[0], values[-1]
    if all(value == low + i for i, value in enumerate(values)):
        return _within(number, low, high, number - low)
    return number.replace_strict(
        pl.Series(values, dtype=pl.Int64),
        pl.Series(range(len(values)), dtype=pl.UInt16),
        default=NO_CODE,
        return_dtype=pl.UInt16,
    )


def _within(number: pl.Expr, low: int, high: int, code: pl.Expr) -> pl.Expr:
    """Return codes where a number is between two others, else null.

    Codes are short before they are chosen, which takes half the time; those that do not fit are
    not chosen.
    """
    short = code.cast(pl.UInt16, wrap_numerical=True)
    return pl.when(number.is_between(low, high)).then(short)


def _is_missing(column: Column) -> pl.Expr:
    """Return which cells mean missing, but for those that say it by a number."""
    cell, texts = pl.col(column.attribute.name), list(column.attribute.missing)
    if column.is_text:
        text = cell.cast(pl.String)
        declared = text.is_in(texts) | _text(column).is_in(texts)
        return declared | cell.is_null() if column.origin == "typed" else declared
    if column.origin == "typed" or "" in texts:
        return _is_empty(column)
    return pl.lit(value=False)


def _code_of_boolean(column: Column) -> pl.Expr:
    attribute, cell = column.attribute, pl.col(column.attribute.name)
    no, yes = map(str, attribute.values)
    code: pl.Expr
    if column.is_text:
        # Whatever their case: pandas writes True where polars writes true.
        text = _text(column).str.to_lowercase()
        code = pl.when(text == no.lower()).then(0).when(text == yes.lower()).then(1)
    elif column.dtype == pl.Boolean:
        code = cell.cast(pl.Int64)
    else:
        numbers = boolean_numbers(attribute)
        code = pl.when(cell == numbers[0]).then(0).when(cell == numbers[1]).then(1)
    if not attribute.missing:
        return code
    return pl.when(_is_missing(column)).then(2).otherwise(code)


def boolean_numbers(attribute: Attribute) -> tuple[int, int]:
    """Return the numbers for false and true: 0 and 1, unless its texts are two others."""
    no, yes = (whole_number(str(text)) for text in attribute.values)
    return (no, yes) if no is not None and yes is not None else (0, 1)


def _code_of_text(column: Column) -> pl.Expr:
    attribute = column.attribute
    known = pl.Enum([*map(str, attribute.values), *attribute.missing])
    text = pl.col(attribute.name).cast(pl.String)
    code = text.cast(known, strict=False).to_physical().cast(pl.UInt32)
    if attribute.kind == "text":
        other = list(attribute.values).index(attribute.other)
        code = pl.when(code.is_null() & ~_is_empty(column)).then(other).otherwise(code)
    if not attribute.missing:
        return code
    code = code.clip(upper_bound=attribute.missing_code)  # whichever text it was
    if column.origin == "csv":
        return code
    return pl.when(text.is_null()).then(attribute.missing_code).otherwise(code)


def _describe_misfit(attribute: Attribute, dtype: pl.DataType) -> str:
    """Return why a column of this type cannot be this attribute, and what to do."""
    sort = "integer" if attribute.is_whole else attribute.kind
    says = (
        f'column "{attribute.name}" is of type {dtype}, but the schema describes '
        f"{_SORTS.get(sort, 'text')}. Convert the column"
    )
    if sort not in _SORTS and dtype.is_numeric():
        return f"{says}, or write its values as whole numbers (without quotes) in the schema."
    if dtype.is_numeric():
        return f'{says}, or describe it as type = "integer" or "real".'
    for kind, fitting in (("boolean", pl.Boolean), ("date", pl.Date), ("datetime", pl.Datetime)):
        if dtype == fitting:
            return f'{says}, or describe it as type = "{kind}".'
    return f"{says}: columns of type {dtype} cannot be described."


def _say_missing(attribute: Attribute) -> tuple[str, str]:
    if attribute.missing:
        what = f"the cell is empty, but only {show_some(attribute.missing)} means missing"
        return what, 'Add "" to its missing, or set outside = "drop".'
    cure = 'Declare missing = [""] for this column, or set outside = "drop".'
    return "the cell is missing, and the schema declares no missing", cure


def _say_malformed(attribute: Attribute) -> tuple[str, str]:
    known = f" ({show_some(attribute.missing)} means missing)" if attribute.missing else ""
    unit = attribute.unit or _INTEGER
    wanted = {
        "integer": "a whole number",
        "real": "a number",
        "date": f'a date of the form "{unit.format}"',
        "datetime": f'a time of the form "{unit.format}"',
    }[unit.kind]
    what = f"the value is not {wanted}{known} {_NOT_SHOWN}"
    return what, 'Correct it, add it to missing if that is what it means, or set outside = "drop".'


def _say_outside(attribute: Attribute) -> tuple[str, str]:
    if attribute.unit is not None:
        low, high = (attribute.unit.show(cast("int", attribute.values[i])) for i in (0, -1))
        cure = 'Widen min or max if the data dictionary does, or set outside = "drop" or "clip".'
        return f"the value is outside {low}..{high} {_NOT_SHOWN}", cure
    count = len(attribute.values)
    if count == 1:
        what = f"the value is not {show(attribute.values[0])} {_NOT_SHOWN}"
        return what, 'Correct it or the schema, or set outside = "drop".'
    what = f"the value is none of the {count:,} in the schema {_NOT_SHOWN}"
    cure = (
        "If the data dictionary has it, add it to values, or to missing if that is what it means; "
        'otherwise correct it, or set outside = "drop".'
    )
    return what, cure


_WORDS = {"missing": _say_missing, "malformed": _say_malformed, "outside": _say_outside}
