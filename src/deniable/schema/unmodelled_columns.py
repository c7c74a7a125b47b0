"""Columns the model does not learn: identifiers, constants, and computed columns.

A released record gets a new identifier, the constant's value, and computed values that follow
from its other columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from string import Formatter
from typing import ClassVar, Literal, TypeAlias

from deniable.errors import SchemaError
from deniable.library_imports import pl
from deniable.schema.attribute import Attribute, Confirmed, Outside
from deniable.schema.formula import Formula
from deniable.schema.grid import MAX_DECIMALS, Grid
from deniable.schema.value_map import ValueMap

IdentifierRelease = Literal["fresh", "omit"]
ConstantValue = str | int | float | bool

_MAX_CONSTANT_DECIMALS = 15
# Content of the braces in an identifier's format: the number of digits, padded with zeros.
_DIGITS_SPEC = re.compile(r"(0(?P<digits>[1-9]\d?))?d?")


@dataclass(frozen=True, kw_only=True)
class Identifier:
    """A column that identifies a record or a person. Values of the table are never released.

    Attributes:
        name: The column's name in the table.
        release: ``"fresh"``: each record gets a new identifier. ``"omit"``: no column is released.
        format: ``"number"``, ``"uuid"``, or a text with one ``{}`` such as ``"P{:08d}"``.
        missing: The texts that mean missing; used if the column is the schema's ``unit``.
        outside: Treatment of a missing cell of the unit: raise an error, or drop its record.
        confirmed: Whether a person, or a private draft, has confirmed that this is public.
    """

    kind: ClassVar[str] = "identifier"
    name: str
    release: IdentifierRelease = "fresh"
    format: str = "number"
    missing: tuple[str, ...] = ()
    outside: Outside = "error"
    confirmed: Confirmed = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", tuple(self.missing))
        if self.release not in ("fresh", "omit"):
            raise self._error('release must be "fresh" or "omit"')
        _require_error_or_drop(self.name, self.outside)
        if self.format not in ("number", "uuid"):
            _ = self.format_parts

    @property
    def format_parts(self) -> tuple[str, int, str]:
        """The text before the number, the minimum number of digits, and the text after it."""
        try:
            pieces = list(Formatter().parse(self.format))
        except (ValueError, TypeError):
            pieces = []
        fields = [at for at, piece in enumerate(pieces) if piece[1] is not None]
        if len(fields) == 1:
            _, name, spec, conversion = pieces[fields[0]]
            digits = _DIGITS_SPEC.fullmatch(spec or "")
            if not name and conversion is None and digits is not None:
                before = "".join(literal for literal, *_ in pieces[: fields[0] + 1])
                after = "".join(literal for literal, *_ in pieces[fields[0] + 1 :])
                return before, int(digits["digits"] or 0), after
        raise self._error(
            'format must be "number", "uuid", or a text with one {} such as "P{:08d}"'
        )

    def _error(self, what: str) -> SchemaError:
        return SchemaError(f'attribute "{self.name}": {what}')


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A column with the same value in every record.

    Attributes:
        name: The column's name in the table.
        value: The value; the empty text for a column that is always missing.
        outside: Treatment of another value: raise an error, or drop its record.
        confirmed: Whether a person, or a private draft, has confirmed that this is public.
    """

    kind: ClassVar[str] = "constant"
    name: str
    value: ConstantValue
    outside: Outside = "error"
    confirmed: Confirmed = True
    attribute: Attribute = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require_error_or_drop(self.name, self.outside)
        object.__setattr__(self, "attribute", self._as_attribute())

    @property
    def code(self) -> int:
        """The code of the value in ``attribute``."""
        return int(self.value) if isinstance(self.value, bool) else int(self.is_empty)

    @property
    def is_empty(self) -> bool:
        """Whether the column is always missing."""
        return self.value == ""

    def _as_attribute(self) -> Attribute:
        """Build the attribute that encodes cells, to compare them with the value."""
        if isinstance(self.value, bool):
            texts = ("false", "true")
            return Attribute(name=self.name, kind="boolean", values=texts, outside=self.outside)
        if isinstance(self.value, float):
            return self._as_real(self.value)
        if type(self.value) not in (str, int):
            raise SchemaError(
                f'attribute "{self.name}": value must be a text, a number, true or false: the only '
                "value of the column"
            )
        return Attribute(
            name=self.name,
            kind="categorical",
            values=("(empty)",) if self.is_empty else (self.value,),
            missing=("",) if self.is_empty else (),
            outside=self.outside,
        )

    def _as_real(self, value: float) -> Attribute:
        if not isfinite(value):
            raise SchemaError(f'attribute "{self.name}": value must be a finite number')
        exponent = min(0, int(Decimal(repr(value)).normalize().as_tuple().exponent))
        if -exponent > _MAX_CONSTANT_DECIMALS:
            raise SchemaError(
                f'attribute "{self.name}": value has too many digits; write it as text'
            )
        grid = Grid(kind="real", step=Decimal(1).scaleb(exponent))
        position = int(grid.position_of(value))
        return Attribute(
            name=self.name,
            kind="real",
            values=range(position, position + 1),
            grid=grid,
            outside=self.outside,
        )


@dataclass(frozen=True, kw_only=True)
class Computed:
    """A column that is computed from other columns of the record.

    Attributes:
        name: The column's name in the table.
        rule: How it is computed. A formula is an expression over numeric columns; dates are in
            days, times in seconds. A value map lists the result for each value of one column.
        decimals: The number of decimals to round to; None for no rounding.
        missing: The texts that mean missing; the first is used if an operand is missing.
        confirmed: Whether a person, or a private draft, has confirmed that this is public.
    """

    kind: ClassVar[str] = "computed"
    name: str
    rule: Formula | ValueMap
    decimals: int | None = None
    missing: tuple[str, ...] = ()
    confirmed: Confirmed = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", tuple(self.missing))
        is_valid_type = self.decimals is None or type(self.decimals) is int
        if not is_valid_type or not 0 <= (self.decimals or 0) <= MAX_DECIMALS:
            raise SchemaError(f'attribute "{self.name}": decimals must be from 0 to {MAX_DECIMALS}')
        is_map = isinstance(self.rule, ValueMap)
        if is_map and self.rule.has_missing_results and not self.missing:  # type: ignore[union-attr]
            raise SchemaError(
                f'attribute "{self.name}": a result of its map is missing; set missing = [""]'
            )
        maps_no_reals = isinstance(self.rule, ValueMap) and self.rule.dtype != pl.Float64()
        if self.decimals is not None and maps_no_reals:
            raise SchemaError(f'attribute "{self.name}": decimals are for a map to fractions only')


SchemaColumn: TypeAlias = Attribute | Identifier | Constant | Computed


def has_whole_numbers(column: SchemaColumn, others: Sequence[SchemaColumn]) -> bool:
    """Check that all numbers of a column are whole, so that it is written as integers."""
    return _has_whole_numbers(column, {other.name: other for other in others}, {})


def _has_whole_numbers(
    column: SchemaColumn, others: Mapping[str, SchemaColumn], known: dict[str, bool]
) -> bool:
    """As ``has_whole_numbers``; the answers for columns of formulas are kept in ``known``."""
    if isinstance(column, Attribute):
        return column.is_whole or column.kind in ("date", "datetime")
    if isinstance(column, Constant):
        return type(column.value) is int
    if isinstance(column, Identifier):
        return column.format == "number"
    if isinstance(column.rule, ValueMap):
        return column.rule.is_whole
    if column.decimals is not None or column.rule.may_be_fractional:
        return column.decimals == 0
    for name in column.rule.names:
        if name in others and name not in known:
            known[name] = _has_whole_numbers(others[name], others, known)
    return all(known.get(name, True) for name in column.rule.names)


def in_order_of_computation(columns: Sequence[SchemaColumn]) -> list[Computed]:
    """List the computed columns: value maps, which need learnt columns only, then formulas."""
    computed = [column for column in columns if isinstance(column, Computed)]
    return sorted(computed, key=lambda column: not isinstance(column.rule, ValueMap))


def require_formulas(columns: Sequence[SchemaColumn]) -> None:
    """Check the columns that computed columns need.

    A value map uses one learnt column. A formula uses numeric columns, value maps to numbers, and
    formulas that precede it.
    """
    known: set[str] = {column.name for column in columns if _is_numeric(column)}
    declared = {column.name: column for column in columns}
    for column in in_order_of_computation(columns):
        if isinstance(column.rule, ValueMap):
            _require_source(column.name, column.rule, declared)
            if column.rule.dtype.is_numeric():
                known.add(column.name)
            continue
        for name in column.rule.names:
            if name in known:
                continue
            why = "is not a numeric column" if name in declared else "is not declared"
            other = declared.get(name)
            if isinstance(other, Computed) and not isinstance(other.rule, ValueMap):
                why = "is also computed and does not come before it"
            raise SchemaError(f'attribute "{column.name}": its formula needs "{name}", which {why}')
        known.add(column.name)


def _require_source(name: str, rule: ValueMap, declared: Mapping[str, SchemaColumn]) -> None:
    source = declared.get(rule.source)
    if not isinstance(source, Attribute):
        raise SchemaError(
            f'attribute "{name}": from = "{rule.source}" must name a learnt column of the schema'
        )
    try:
        rule.require_source(source)
    except SchemaError as error:
        raise SchemaError(f'attribute "{name}": {error}') from None


def _is_numeric(column: SchemaColumn) -> bool:
    if isinstance(column, Attribute):
        return column.is_numeric or column.is_whole
    return isinstance(column, Constant) and type(column.value) in (int, float)


def _require_error_or_drop(name: str, outside: Outside) -> None:
    if outside not in ("error", "drop"):
        raise SchemaError(f'attribute "{name}": outside must be "error" or "drop"')
