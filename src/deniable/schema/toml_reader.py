"""TOML reader: parse the ``[[attribute]]`` tables of schema.toml into columns.

Errors name the attribute and the key, and how to fix them.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute, Confirmed, ModelKind, Outside, format_value
from deniable.schema.bins import parse_bins, parse_buckets, parse_position
from deniable.schema.fallback import parse_fallback
from deniable.schema.formula import Formula
from deniable.schema.grid import INTEGER_LIMIT, MAX_DECIMALS, Grid, NumericKind
from deniable.schema.unmodelled_columns import Computed, Constant, Identifier, SchemaColumn
from deniable.schema.value_map import ValueMap, parse_value_map

_Table = Mapping[str, Any]

_COMMON_KEYS = ("name", "type", "missing", "outside", "confirmed")
_ATTRIBUTE_KEYS = (*_COMMON_KEYS, "fallback", "buckets")
_BOUND_FORMATS: dict[NumericKind, str] = {
    "integer": "whole numbers",
    "real": "numbers",
    "date": "dates such as 2024-12-31",
    "datetime": "times such as 2024-12-31T23:59:00",
}


def require_keys(table: _Table, known: Sequence[str], *, place: str) -> None:
    """Reject an unknown key, and suggest a similar known one."""
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"known keys: {', '.join(known)}"
            raise SchemaError(f'{place}: unknown key "{key}"; {hint}')


def parse_column(table: _Table, number: int) -> SchemaColumn:
    """Parse the ``number``-th ``[[attribute]]`` table."""
    name = table.get("name")
    if type(name) is not str or not name:
        raise SchemaError(f"attribute number {number} has no name: set name to the column header")
    kind, place = table.get("type"), f'attribute "{name}"'
    if type(kind) is not str or kind not in (*_ATTRIBUTE_PARSERS, *_UNMODELLED_PARSERS):
        known = ", ".join(map(format_value, (*_ATTRIBUTE_PARSERS, *_UNMODELLED_PARSERS)))
        raise SchemaError(f"{place}: set type to one of: {known}")
    if kind in _UNMODELLED_PARSERS:
        parse_unmodelled, keys = _UNMODELLED_PARSERS[kind]
        require_keys(table, (*_COMMON_KEYS, *keys), place=place)
        return parse_unmodelled(table, place)
    parse, keys = _ATTRIBUTE_PARSERS[kind]
    require_keys(table, (*_ATTRIBUTE_KEYS, *keys), place=place)
    attribute = replace(parse(table, place), missing=_parse_missing(table, place), groups=())
    attribute = replace(
        attribute, outside=_parse_outside(table, place), confirmed=parse_confirmed(table, place)
    )
    attribute = parse_buckets(attribute, table.get("buckets"))
    return parse_fallback(attribute, table["fallback"]) if "fallback" in table else attribute


def parse_list(value: object, what: str) -> list[Any]:
    """Check that a TOML value is a flat list."""
    if not isinstance(value, list):
        raise SchemaError(f"{what} must be a list; write it in [brackets]")
    if any(isinstance(item, list | dict) for item in value):
        raise SchemaError(f"{what} must be a list of single values; remove the inner brackets")
    return value


def _parse_listed(table: _Table, place: str) -> Attribute:
    values = parse_list(table.get("values", []), f"{place}: values")
    return Attribute(name=table["name"], kind=table["type"], values=tuple(values))


def _parse_boolean(table: _Table, place: str) -> Attribute:
    values = parse_list(table.get("values", ["false", "true"]), f"{place}: values")
    return Attribute(name=table["name"], kind="boolean", values=tuple(values))


def _parse_text(table: _Table, place: str) -> Attribute:
    values = parse_list(table.get("values", []), f"{place}: values")
    other = table.get("other", "")
    return Attribute(name=table["name"], kind="text", values=tuple(values), other=other)


def _parse_integer_column(table: _Table, place: str) -> Attribute:
    ends = [table.get("min"), table.get("max")]
    if not all(type(end) is int and abs(end) < INTEGER_LIMIT for end in ends):
        raise SchemaError(f"{place}: an integer needs min and max, whole numbers below 2^62")
    try:
        grid = Grid(kind="integer", format=_parse_format(table, place))
    except SchemaError as error:
        raise SchemaError(f"{place}: {error}") from None
    return _parse_numeric(table, place, grid)


def _parse_real_column(table: _Table, place: str) -> Attribute:
    if ("decimals" in table) == ("step" in table):
        raise SchemaError(f"{place}: a real needs either decimals or a step")
    decimals, step = table.get("decimals", 0), table.get("step", 1)
    if type(decimals) is not int or not 0 <= decimals <= MAX_DECIMALS:
        raise SchemaError(f"{place}: decimals must be a whole number from 0 to {MAX_DECIMALS}")
    size = Decimal(repr(step)) if type(step) in (int, float) else Decimal("NaN")
    if not (
        size.is_finite() and size > 0 and -int(size.normalize().as_tuple().exponent) <= MAX_DECIMALS
    ):
        raise SchemaError(
            f"{place}: step must be a number above 0, of at most {MAX_DECIMALS} decimals"
        )
    return _parse_numeric(table, place, Grid(kind="real", step=size.scaleb(-decimals)))


def _parse_date(table: _Table, place: str) -> Attribute:
    return _parse_numeric(table, place, Grid(kind="date", format=_parse_format(table, place)))


def _parse_datetime(table: _Table, place: str) -> Attribute:
    step = table.get("step_seconds", 1)
    if type(step) is not int or step < 1:
        raise SchemaError(f"{place}: step_seconds must be a whole number, at least 1")
    grid = Grid(kind="datetime", step=Decimal(step), format=_parse_format(table, place))
    return _parse_numeric(table, place, grid)


def _parse_numeric(table: _Table, place: str, grid: Grid) -> Attribute:
    low, high = (_parse_bound(table, key, grid, place) for key in ("min", "max"))
    values = range(low, high + 1)
    if not values:
        raise SchemaError(f"{place}: min is above max; swap them")
    return Attribute(
        name=table["name"],
        kind=grid.kind,
        values=values,
        grid=grid,
        starts=parse_bins(table.get("bins"), values, grid, place),
        model=_parse_model(table, place),
        heaps=_parse_heaps(table, grid, place),
    )


def _parse_heaps(table: _Table, grid: Grid, place: str) -> tuple[int, ...]:
    """Parse ``heaps``, the steps at whose multiples numbers cluster, into positions."""
    steps = parse_list(table.get("heaps", []), f"{place}: heaps")
    lengths = [grid.width_in_positions(step) for step in steps]
    found = tuple(length for length in lengths if length is not None)
    if len(found) < len(lengths):
        raise SchemaError(f"{place}: heaps must be multiples of {grid.format_width(1)}")
    return found


def _parse_bound(table: _Table, key: str, grid: Grid, place: str) -> int:
    """Parse ``min`` or ``max`` into a position."""
    position = parse_position(table.get(key), grid)
    if position is None:
        step = f", multiples of {grid.format_width(1)}" if grid.step != 1 else ""
        if grid.kind == "datetime" and step:
            step = f", multiples of step_seconds counted from {grid.format_position(0)}"
        what = f"{place}: min and max must be {_BOUND_FORMATS[grid.kind]}{step}; correct {key}"
        raise SchemaError(what)
    if abs(position) >= INTEGER_LIMIT:
        raise SchemaError(f"{place}: {key} is too large for the grid; use a coarser grid")
    return position


def _parse_format(table: _Table, place: str) -> str:
    text = table.get("format", "")
    if type(text) is not str or ("format" in table and not text):
        raise SchemaError(f'{place}: format must be a text such as "%d/%m/%Y"')
    return text


def _parse_model(table: _Table, place: str) -> ModelKind:
    for known in get_args(ModelKind):
        if table.get("model", "histogram") == known:
            model: ModelKind = known
            return model
    raise SchemaError(f'{place}: model must be "histogram", "normal" or "regression"')


def _parse_identifier(table: _Table, place: str) -> Identifier:
    text = table.get("format", "number")
    if type(text) is not str:
        raise SchemaError(f'{place}: format must be "number", "uuid" or a text such as "P{{:08d}}"')
    return Identifier(
        name=table["name"],
        release=table.get("release", "fresh"),
        format=text,
        missing=_parse_missing(table, place),
        outside=_parse_outside(table, place),
        confirmed=parse_confirmed(table, place),
    )


def _parse_constant(table: _Table, place: str) -> Constant:
    if "value" not in table:
        raise SchemaError(f"{place}: a constant needs a value")
    if table.get("missing"):
        raise SchemaError(
            f"{place}: a constant is never missing; remove the key missing, or use type = "
            '"categorical"'
        )
    return Constant(
        name=table["name"],
        value=table["value"],
        outside=_parse_outside(table, place),
        confirmed=parse_confirmed(table, place),
    )


def _parse_computed(table: _Table, place: str) -> Computed:
    _parse_outside(table, place)
    return Computed(
        name=table["name"],
        rule=_parse_rule(table, place),
        decimals=table.get("decimals"),
        missing=_parse_missing(table, place),
        confirmed=parse_confirmed(table, place),
    )


def _parse_rule(table: _Table, place: str) -> Formula | ValueMap:
    if not {"from", "map", "steps"} & set(table):
        try:
            return Formula(table.get("formula", ""))
        except SchemaError as error:
            raise SchemaError(f"{place}: {error}") from None
    if "formula" in table:
        raise SchemaError(f"{place}: give either a formula, or from and map (or steps)")
    return parse_value_map(table, place)


def _parse_missing(table: _Table, place: str) -> tuple[str, ...]:
    texts = parse_list(table.get("missing", []), f"{place}: missing")
    if not all(type(text) is str for text in texts):
        raise SchemaError(f'{place}: missing must be a list of texts; quote numbers, as in ["-8"]')
    return tuple(texts)


def parse_confirmed(table: _Table, place: str, key: str = "confirmed") -> Confirmed:
    """Parse whether an entry is confirmed; without the key it is."""
    value = table.get(key, True)
    if value == "draft":
        return "draft"
    if not isinstance(value, bool):
        raise SchemaError(
            f'{place}: {key} must be true or false, without quotes, or "draft" in a private draft'
        )
    return value


def _parse_outside(table: _Table, place: str) -> Outside:
    for known in get_args(Outside):
        if table.get("outside", "error") == known:
            outside: Outside = known
            return outside
    raise SchemaError(
        f'{place}: outside must be "error", "drop" or (integers, reals, dates) "clip"'
    )


# The parser of each type, and the keys that are specific to it.
_ATTRIBUTE_PARSERS: dict[str, tuple[Callable[[_Table, str], Attribute], tuple[str, ...]]] = {
    "categorical": (_parse_listed, ("values",)),
    "ordered": (_parse_listed, ("values",)),
    "integer": (_parse_integer_column, ("min", "max", "format", "bins", "heaps", "model")),
    "real": (_parse_real_column, ("min", "max", "decimals", "step", "bins", "heaps", "model")),
    "boolean": (_parse_boolean, ("values",)),
    "date": (_parse_date, ("min", "max", "format", "bins", "model")),
    "datetime": (_parse_datetime, ("min", "max", "format", "step_seconds", "bins", "model")),
    "text": (_parse_text, ("values", "other")),
}
_UNMODELLED_PARSERS: dict[str, tuple[Callable[[_Table, str], SchemaColumn], tuple[str, ...]]] = {
    "identifier": (_parse_identifier, ("release", "format")),
    "constant": (_parse_constant, ("value",)),
    "computed": (_parse_computed, ("formula", "from", "map", "steps", "decimals")),
}
