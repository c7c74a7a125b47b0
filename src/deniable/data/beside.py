"""Columns beside the learnt ones: identifiers, constants, and what follows from other columns.

Nothing is learnt of them. An identifier is made anew for every record, a constant is always the
same, a computed column is written from the others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from string import Formatter
from typing import ClassVar, Literal, TypeAlias

from deniable.data.amounts import LARGEST, Unit
from deniable.data.arithmetic import Formula
from deniable.data.attributes import Attribute, Outside
from deniable.errors import SchemaError

Release = Literal["fresh", "omit"]
Fixed = str | int | float | bool

_MOST_DECIMALS = 9
_MOST_DIGITS = 15
# What stands in the braces of an identifier's format: how many digits, zeros in front.
_DIGITS = re.compile(r"(0(?P<digits>[1-9]\d?))?d?")


@dataclass(frozen=True, kw_only=True)
class Identifier:
    """A column that names a record or a person. The table's own names never leave.

    Attributes:
        name: The column's name in the table.
        release: ``"fresh"``: each record gets a new one. ``"omit"``: the column is left out.
        format: ``"number"``, ``"uuid"``, or a text with one ``{}``, as in ``"P{:08d}"``.
        missing: The texts that mean missing, where the column says whose record it is.
        outside: What a missing cell does there: fails, or drops its record.
        confirmed: Whether a human vouches for this description.
    """

    kind: ClassVar[str] = "identifier"
    name: str
    release: Release = "fresh"
    format: str = "number"
    missing: tuple[str, ...] = ()
    outside: Outside = "error"
    confirmed: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", tuple(self.missing))
        if self.release not in ("fresh", "omit"):
            raise self._error('release is "fresh" or "omit"')
        _require_no_clip(self.name, self.outside)
        if self.format not in ("number", "uuid"):
            _ = self.parts

    @property
    def parts(self) -> tuple[str, int, str]:
        """What stands before the number, how many digits it has at least, what follows."""
        try:
            pieces = list(Formatter().parse(self.format))
        except (ValueError, TypeError):
            pieces = []
        fields = [at for at, piece in enumerate(pieces) if piece[1] is not None]
        if len(fields) == 1:
            _, name, spec, conversion = pieces[fields[0]]
            digits = _DIGITS.fullmatch(spec or "")
            if not name and conversion is None and digits is not None:
                before = "".join(literal for literal, *_ in pieces[: fields[0] + 1])
                after = "".join(literal for literal, *_ in pieces[fields[0] + 1 :])
                return before, int(digits["digits"] or 0), after
        raise self._error('format is "number", "uuid", or a text with one {}, as in "P{:08d}"')

    def _error(self, what: str) -> SchemaError:
        return SchemaError(f'attribute "{self.name}": {what}')


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A column that holds the same value in every record.

    Attributes:
        name: The column's name in the table.
        value: What it holds. The empty text stands for a column that is always missing.
        outside: What another value does: fails, or drops its record.
        confirmed: Whether a human vouches for this description.
    """

    kind: ClassVar[str] = "constant"
    name: str
    value: Fixed
    outside: Outside = "error"
    confirmed: bool = True
    attribute: Attribute = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require_no_clip(self.name, self.outside)
        object.__setattr__(self, "attribute", self._described())

    @property
    def code(self) -> int:
        """The code, in ``attribute``, of every cell."""
        return int(self.value) if isinstance(self.value, bool) else int(self.is_empty)

    @property
    def is_empty(self) -> bool:
        """Whether the column is always missing."""
        return self.value == ""

    def _described(self) -> Attribute:
        """Return the attribute by which cells are compared with the value."""
        if isinstance(self.value, bool):
            texts = ("false", "true")
            return Attribute(name=self.name, kind="boolean", values=texts, outside=self.outside)
        if isinstance(self.value, float):
            return self._real(self.value)
        if type(self.value) not in (str, int):
            raise SchemaError(
                f'attribute "{self.name}": value is a text, a number, true or false: what the '
                "column always holds"
            )
        return Attribute(
            name=self.name,
            kind="categorical",
            values=("(empty)",) if self.is_empty else (self.value,),
            missing=("",) if self.is_empty else (),
            outside=self.outside,
        )

    def _real(self, value: float) -> Attribute:
        if not isfinite(value):
            raise SchemaError(f'attribute "{self.name}": value is a finite number')
        exponent = min(0, int(Decimal(repr(value)).normalize().as_tuple().exponent))
        if -exponent > _MOST_DIGITS:
            raise SchemaError(f'attribute "{self.name}": value has too many digits; write a text')
        unit = Unit(kind="real", step=Decimal(1).scaleb(exponent))
        place = int(unit.place_of(value))
        return Attribute(
            name=self.name,
            kind="real",
            values=range(place, place + 1),
            unit=unit,
            outside=self.outside,
        )


@dataclass(frozen=True, kw_only=True)
class Computed:
    """A column that follows from the others of its record.

    Attributes:
        name: The column's name in the table.
        formula: How, over columns of numbers; a date counts as its day, a time as its second.
        decimals: To how many digits after the point it is rounded; None: it is not.
        missing: The texts that mean missing; the first is written where a cell it needs is.
        confirmed: Whether a human vouches for this description.
    """

    kind: ClassVar[str] = "computed"
    name: str
    formula: Formula
    decimals: int | None = None
    missing: tuple[str, ...] = ()
    confirmed: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", tuple(self.missing))
        whole = self.decimals is None or type(self.decimals) is int
        if not whole or not 0 <= (self.decimals or 0) <= _MOST_DECIMALS:
            raise SchemaError(f'attribute "{self.name}": decimals is from 0 to {_MOST_DECIMALS}')


Described: TypeAlias = Attribute | Identifier | Constant | Computed


def is_whole(column: Described, others: Sequence[Described]) -> bool:
    """Whether a column's numbers are whole: as ``Computed`` is written, and counted with."""
    if isinstance(column, Attribute):
        return column.is_whole or column.kind in ("date", "datetime")
    if isinstance(column, Constant):
        return type(column.value) is int and abs(column.value) < LARGEST
    if isinstance(column, Identifier):
        return column.format == "number"
    if column.decimals is not None or column.formula.divides:
        return column.decimals == 0
    named = [other for other in others if other.name in column.formula.names]
    return all(is_whole(other, others) for other in named)


def require_formulas(columns: Sequence[Described]) -> None:
    """Refuse a computed column that needs what is no number, or what is not there before it."""
    known: set[str] = {column.name for column in columns if _is_number(column)}
    declared = {column.name for column in columns}
    for column in columns:
        if not isinstance(column, Computed):
            continue
        for name in column.formula.names:
            if name in known:
                continue
            why = "is no column of numbers" if name in declared else "is not declared"
            if name in declared and any(
                isinstance(other, Computed) and other.name == name for other in columns
            ):
                why = "is computed too, and does not come before it"
            raise SchemaError(f'attribute "{column.name}": its formula needs "{name}", which {why}')
        known.add(column.name)


def _is_number(column: Described) -> bool:
    if isinstance(column, Attribute):
        return column.is_numeric or column.is_whole
    return isinstance(column, Constant) and type(column.value) in (int, float)


def _require_no_clip(name: str, outside: Outside) -> None:
    if outside not in ("error", "drop"):
        raise SchemaError(f'attribute "{name}": outside is "error" or "drop"')
