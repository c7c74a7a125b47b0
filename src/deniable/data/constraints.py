"""Constraint: what cannot occur in one record, known to everybody, as schema.toml says it.

Here a constraint is read and written; ``rules.py`` keeps records to it. No row is ever checked
against it: a table may break what its schema calls impossible, and the released records will not.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, get_args

from deniable.errors import SchemaError

ConstraintKind = Literal["forbid", "allow", "less", "at_most"]
Bound = Literal["below", "at_most", "above", "at_least"]

# What a schema may write for a value; a datetime is a date, and True is a whole number.
Given = str | int | float | date

_KINDS: tuple[ConstraintKind, ...] = get_args(ConstraintKind)
_BOUNDS: tuple[Bound, ...] = get_args(Bound)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a ``forbid`` asks of one column: listed values, bounds, or whether the cell is missing.

    A missing cell meets no condition but ``{ missing = true }`` and a list that has a text which
    means missing.

    Attributes:
        values: The values that meet it; None where it is not a list.
        bounds: Each bound with its value; a cell meets the condition if it keeps all of them.
        missing: Whether the cell is missing; None where that is not asked.
    """

    values: tuple[Given, ...] | None = None
    bounds: tuple[tuple[Bound, Given], ...] = ()
    missing: bool | None = None

    def table(self) -> list[Given] | dict[str, Given]:
        """Return the condition as a schema writes it."""
        if self.values is not None:
            return list(self.values)
        return dict(self.bounds) if self.missing is None else {"missing": self.missing}


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """One thing that cannot occur, or one choice of what can.

    Attributes:
        kind: ``"forbid"``: no record meets all conditions. ``"allow"``: only the listed
            combinations occur. ``"less"``, ``"at_most"``: the first column is below the second,
            or not above it.
        columns: The attributes it speaks of.
        conditions: Of a ``forbid``: one for each column.
        rows: Of an ``allow``: the combinations, a value for each column.
    """

    kind: ConstraintKind
    columns: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    rows: tuple[tuple[Given, ...], ...] = ()

    def table(self) -> dict[str, Any]:
        """Return the constraint as a table of schema.toml: one key, its kind."""
        if self.kind == "forbid":
            pairs = zip(self.columns, self.conditions, strict=True)
            return {"forbid": {name: condition.table() for name, condition in pairs}}
        if self.kind == "allow":
            rows = [list(row) for row in self.rows]
            return {"allow": {"columns": list(self.columns), "rows": rows}}
        return {self.kind: list(self.columns)}

    def error(self, what: str) -> SchemaError:
        """Return the error that says ``what`` is wrong with this constraint."""
        return SchemaError(f"{_place(self.kind, self.columns)}: {what}")


def parse_constraint(table: Mapping[str, Any], names: Sequence[str]) -> Constraint:
    """Return the constraint that one ``[[constraint]]`` table says.

    Whether its values are values of the columns is asked by ``Rules``, which knows the attributes.

    Args:
        table: As TOML gives it.
        names: The attributes that are learnt: no other column can be constrained.

    Raises:
        SchemaError: It has not exactly one known key, or what stands there is of another shape.
    """
    if len(table) != 1:
        raise SchemaError(
            f"a [[constraint]] has exactly one key of: {', '.join(_KINDS)}; this one has "
            f"{', '.join(map(_quoted, table)) or 'none'}. Begin a new [[constraint]] for each"
        )
    [(kind, content)] = table.items()
    if kind not in _KINDS:
        raise SchemaError(f"a [[constraint]] has {_unknown(kind, _KINDS)}")
    if kind == "forbid":
        constraint = _parse_forbid(content)
    elif kind == "allow":
        constraint = _parse_allow(content)
    else:
        constraint = _parse_inequality(kind, content)
    _require_columns(constraint, names)
    return constraint


def _parse_forbid(content: object) -> Constraint:
    if not (isinstance(content, dict) and content):
        raise SchemaError(
            'constraint forbid: write a condition for each column, as in forbid = { "a" = ["x"], '
            '"b" = { below = 25 } }'
        )
    columns = tuple(content)
    place = _place("forbid", columns)
    conditions = tuple(_parse_condition(content[name], name, place) for name in columns)
    return Constraint(kind="forbid", columns=columns, conditions=conditions)


def _parse_condition(content: object, name: str, place: str) -> Condition:
    place = f'{place}: column "{name}"'
    if isinstance(content, list):
        if not content:
            raise SchemaError(f"{place}: its list is empty; list the values, or leave it out")
        return Condition(values=tuple(_given(value, place) for value in content))
    if not (isinstance(content, dict) and content):
        raise SchemaError(
            f"{place}: a condition is a list of values, or {{ below = … }} (also at_most, above, "
            "at_least), or { missing = true }"
        )
    if "missing" in content:
        if len(content) > 1 or type(content["missing"]) is not bool:
            raise SchemaError(f"{place}: write missing alone, as {{ missing = true }} or false")
        return Condition(missing=content["missing"])
    for key in content:
        if key not in _BOUNDS:
            raise SchemaError(f"{place}: {_unknown(key, (*_BOUNDS, 'missing'))}")
    return Condition(bounds=tuple((key, _given(content[key], place)) for key in content))


def _parse_allow(content: object) -> Constraint:
    shape = 'write allow = { columns = ["a", "b"], rows = [["x", "y"], …] }'
    if not (isinstance(content, dict) and set(content) == {"columns", "rows"}):
        raise SchemaError(f"constraint allow: {shape}")
    columns = _texts(content["columns"], f"constraint allow: columns: {shape}")
    place, rows = _place("allow", columns), content["rows"]
    if not (isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows)):
        raise SchemaError(f"{place}: rows is a list of lists, one at least; {shape}")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise SchemaError(
                f"{place}: row {number:,} has {len(row)} values for {len(columns)} columns; "
                "give one for each"
            )
    given = tuple(tuple(_given(value, place) for value in row) for row in rows)
    return Constraint(kind="allow", columns=columns, rows=given)


def _parse_inequality(kind: Literal["less", "at_most"], content: object) -> Constraint:
    shape = f'constraint {kind}: name two columns, as in {kind} = ["from", "to"]'
    columns = _texts(content, shape)
    if len(columns) != 2:
        raise SchemaError(f"{shape}; for three, write two constraints")
    return Constraint(kind=kind, columns=columns)


def _require_columns(constraint: Constraint, names: Sequence[str]) -> None:
    columns = constraint.columns
    if len(set(columns)) < len(columns):
        raise constraint.error("it names a column twice; name each once")
    for name in columns:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {_quoted(near[0])}?" if near else "correct the name"
            raise constraint.error(
                f"there is no learnt attribute {_quoted(name)}; {hint} (identifiers, constants "
                "and computed columns cannot be constrained)"
            )


def _given(value: object, place: str) -> Given:
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise SchemaError(f"{place}: a time with an offset; write it without, as in the table")
    if not isinstance(value, Given) or (isinstance(value, float) and not math.isfinite(value)):
        raise SchemaError(f"{place}: a value is one text, finite number, true, false or date")
    return value


def _texts(content: object, shape: str) -> tuple[str, ...]:
    if not (isinstance(content, list) and content and all(type(text) is str for text in content)):
        raise SchemaError(shape)
    return tuple(content)


def _place(kind: ConstraintKind, columns: Sequence[str]) -> str:
    return f"constraint {kind} on {', '.join(map(_quoted, columns))}"


def _unknown(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {_quoted(near[0])}?" if near else f"it may have: {', '.join(known)}"
    return f"unknown key {_quoted(key)}; {hint}"


def _quoted(name: object) -> str:
    return f'"{name}"'
