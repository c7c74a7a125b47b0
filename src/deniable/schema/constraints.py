"""Constraint: a public restriction on the values of one record, as written in schema.toml.

This module parses and writes constraints; ``constraint_solver.py`` enforces them on released
records. Rows of the input table are not checked: they may violate a constraint.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal, get_args

from deniable.errors import SchemaError

ConstraintKind = Literal["forbid", "allow", "less", "at_most"]
Bound = Literal["below", "at_most", "above", "at_least"]

# A value in a constraint. In Python, a datetime is also a date, and True is also an int.
ConstraintValue = str | int | float | date

_KINDS: tuple[ConstraintKind, ...] = get_args(ConstraintKind)
_BOUNDS: tuple[Bound, ...] = get_args(Bound)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Condition of a ``forbid`` on one column: listed values, bounds, or missingness.

    A missing cell meets only ``{ missing = true }`` and lists that contain a text for missing.

    Attributes:
        values: The values that meet the condition; None if it is not a list.
        bounds: Bounds and their values; a cell has to satisfy all of them.
        missing: Whether the cell has to be missing or present; None if it may be either.
    """

    values: tuple[ConstraintValue, ...] | None = None
    bounds: tuple[tuple[Bound, ConstraintValue], ...] = ()
    missing: bool | None = None

    def to_toml(self) -> list[ConstraintValue] | dict[str, ConstraintValue]:
        """Convert the condition to its value in schema.toml."""
        if self.values is not None:
            return list(self.values)
        return dict(self.bounds) if self.missing is None else {"missing": self.missing}


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """One restriction on the values of a record.

    Attributes:
        kind: ``"forbid"``: no record meets all conditions. ``"allow"``: only the listed
            combinations occur. ``"less"``, ``"at_most"``: first column < or ≤ second column.
        columns: The constrained attributes.
        conditions: For ``forbid``: one condition per column.
        rows: For ``allow``: the combinations, with one value per column.
        confirmed: Whether a person has confirmed that this is public knowledge, not read off the
            data.
    """

    kind: ConstraintKind
    columns: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    rows: tuple[tuple[ConstraintValue, ...], ...] = ()
    confirmed: bool = True

    @property
    def title(self) -> str:
        """The kind and the columns, as messages name them."""
        return _location(self.kind, self.columns)

    def to_toml(self) -> dict[str, Any]:
        """Convert the constraint to a table of schema.toml: its kind, and whether confirmed."""
        confirmed = {} if self.confirmed else {"confirmed": False}
        return self._content() | confirmed

    def _content(self) -> dict[str, Any]:
        if self.kind == "forbid":
            pairs = zip(self.columns, self.conditions, strict=True)
            return {"forbid": {name: condition.to_toml() for name, condition in pairs}}
        if self.kind == "allow":
            rows = [list(row) for row in self.rows]
            return {"allow": {"columns": list(self.columns), "rows": rows}}
        return {self.kind: list(self.columns)}

    def error(self, what: str) -> SchemaError:
        """Build an error that names this constraint."""
        return SchemaError(f"{self.title}: {what}")


def parse_constraint(table: Mapping[str, Any], names: Sequence[str]) -> Constraint:
    """Parse one ``[[constraint]]`` table of schema.toml.

    ``ConstraintSolver`` checks the values against the domains of the columns.

    Args:
        table: The parsed TOML table.
        names: The names of learnt attributes; other columns cannot be constrained.

    Raises:
        SchemaError: The table does not have exactly one known key, or its value is malformed.
    """
    confirmed = table.get("confirmed", True)
    if not isinstance(confirmed, bool):
        raise SchemaError("a [[constraint]]: confirmed must be true or false, without quotes")
    stated = {key: value for key, value in table.items() if key != "confirmed"}
    if len(stated) != 1:
        raise SchemaError(
            f"a [[constraint]] needs exactly one of the keys {', '.join(_KINDS)}; this one has "
            f"{', '.join(map(_quote, stated)) or 'none'}. Begin a new [[constraint]] for each"
        )
    [(kind, content)] = stated.items()
    if kind not in _KINDS:
        raise SchemaError(f"a [[constraint]] has {_unknown_key(kind, (*_KINDS, 'confirmed'))}")
    if kind == "forbid":
        constraint = _parse_forbid(content)
    elif kind == "allow":
        constraint = _parse_allow(content)
    else:
        constraint = _parse_inequality(kind, content)
    _require_columns(constraint, names)
    return replace(constraint, confirmed=confirmed)


def _parse_forbid(content: object) -> Constraint:
    if not (isinstance(content, dict) and content):
        raise SchemaError(
            'constraint forbid: write a condition for each column, as in forbid = { "a" = ["x"], '
            '"b" = { below = 25 } }'
        )
    columns = tuple(content)
    place = _location("forbid", columns)
    conditions = tuple(_parse_condition(content[name], name, place) for name in columns)
    return Constraint(kind="forbid", columns=columns, conditions=conditions)


def _parse_condition(content: object, name: str, place: str) -> Condition:
    place = f'{place}: column "{name}"'
    if isinstance(content, list):
        if not content:
            raise SchemaError(f"{place}: its list is empty; list values, or remove the column")
        return Condition(values=tuple(_check_value(value, place) for value in content))
    if not (isinstance(content, dict) and content):
        raise SchemaError(
            f"{place}: a condition must be a list of values, {{ below = … }} (or at_most, above, "
            "at_least), or { missing = true }"
        )
    if "missing" in content:
        if len(content) > 1 or type(content["missing"]) is not bool:
            raise SchemaError(f"{place}: use missing alone, as {{ missing = true }} or false")
        return Condition(missing=content["missing"])
    for key in content:
        if key not in _BOUNDS:
            raise SchemaError(f"{place}: {_unknown_key(key, (*_BOUNDS, 'missing'))}")
    return Condition(bounds=tuple((key, _check_value(content[key], place)) for key in content))


def _parse_allow(content: object) -> Constraint:
    shape = 'write allow = { columns = ["a", "b"], rows = [["x", "y"], …] }'
    if not (isinstance(content, dict) and set(content) == {"columns", "rows"}):
        raise SchemaError(f"constraint allow: {shape}")
    columns = _check_names(content["columns"], f"constraint allow: columns: {shape}")
    place, rows = _location("allow", columns), content["rows"]
    if not (isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows)):
        raise SchemaError(f"{place}: rows must be a list of at least one list; {shape}")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise SchemaError(
                f"{place}: row {number:,} has {len(row)} values for {len(columns)} columns; "
                "give one value per column"
            )
    checked = tuple(tuple(_check_value(value, place) for value in row) for row in rows)
    return Constraint(kind="allow", columns=columns, rows=checked)


def _parse_inequality(kind: Literal["less", "at_most"], content: object) -> Constraint:
    shape = f'constraint {kind}: name two columns, as in {kind} = ["from", "to"]'
    columns = _check_names(content, shape)
    if len(columns) != 2:
        raise SchemaError(f"{shape}; for three, write two constraints")
    return Constraint(kind=kind, columns=columns)


def _require_columns(constraint: Constraint, names: Sequence[str]) -> None:
    columns = constraint.columns
    if len(set(columns)) < len(columns):
        raise constraint.error("it names a column twice; name each column once")
    for name in columns:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {_quote(near[0])}?" if near else "correct the name"
            raise constraint.error(
                f"no learnt attribute {_quote(name)}; {hint} (identifiers, constants and computed "
                "columns cannot be constrained)"
            )


def _check_value(value: object, place: str) -> ConstraintValue:
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise SchemaError(f"{place}: a time must not have an offset; write it as in the table")
    if not isinstance(value, ConstraintValue) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise SchemaError(f"{place}: a value must be a text, finite number, true, false or date")
    return value


def _check_names(content: object, shape: str) -> tuple[str, ...]:
    if not (isinstance(content, list) and content and all(type(text) is str for text in content)):
        raise SchemaError(shape)
    return tuple(content)


def _location(kind: ConstraintKind, columns: Sequence[str]) -> str:
    return f"constraint {kind} on {', '.join(map(_quote, columns))}"


def _unknown_key(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {_quote(near[0])}?" if near else f"known keys: {', '.join(known)}"
    return f"unknown key {_quote(key)}; {hint}"


def _quote(name: object) -> str:
    return f'"{name}"'
