"""A table of schema.toml → a column. Says what is wrong with it, and what to do."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

from deniable.data.amounts import LARGEST, NumericKind, Unit
from deniable.data.arithmetic import Formula
from deniable.data.attributes import Attribute, ModelKind, Outside, show
from deniable.data.beside import Computed, Constant, Described, Identifier
from deniable.data.bins import read_amount, read_bins, read_buckets
from deniable.errors import SchemaError

_Table = Mapping[str, Any]

_COMMON_KEYS = ("name", "type", "missing", "outside", "confirmed")
_MOST_DECIMALS = 9


def require_keys(table: _Table, known: Sequence[str], *, place: str) -> None:
    """Refuse a key that is not known; say which one may be meant."""
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"it may have: {', '.join(known)}"
            raise SchemaError(f'{place}: unknown key "{key}"; {hint}')


def read_column(table: _Table, number: int) -> Described:
    """Return the column that the ``number``-th ``[[attribute]]`` describes."""
    name = table.get("name")
    if type(name) is not str or not name:
        raise SchemaError(f"attribute number {number} has no name: set it to the column's header")
    kind, place = table.get("type"), f'attribute "{name}"'
    if type(kind) is not str or kind not in (*_READERS, *_BESIDE):
        known = ", ".join(map(show, (*_READERS, *_BESIDE)))
        raise SchemaError(f"{place}: set type to one of: {known}")
    if kind in _BESIDE:
        read_beside, keys = _BESIDE[kind]
        require_keys(table, (*_COMMON_KEYS, *keys), place=place)
        return read_beside(table, place)
    read, keys = _READERS[kind]
    require_keys(table, (*_COMMON_KEYS, "buckets", *keys), place=place)
    attribute = replace(read(table, place), missing=_missing(table, place), groups=())
    attribute = replace(
        attribute, outside=_outside(table, place), confirmed=_confirmed(table, place)
    )
    return read_buckets(attribute, table.get("buckets"))


def read_list(value: object, what: str) -> list[Any]:
    """Return a list without lists inside."""
    if not isinstance(value, list):
        raise SchemaError(f"{what} is not a list; write it in [brackets]")
    if any(isinstance(item, list | dict) for item in value):
        raise SchemaError(f"{what} is a list of single values; remove the inner brackets")
    return value


def _read_listed(table: _Table, place: str) -> Attribute:
    values = read_list(table.get("values", []), f"{place}: values")
    return Attribute(name=table["name"], kind=table["type"], values=tuple(values))


def _read_boolean(table: _Table, place: str) -> Attribute:
    values = read_list(table.get("values", ["false", "true"]), f"{place}: values")
    return Attribute(name=table["name"], kind="boolean", values=tuple(values))


def _read_text(table: _Table, place: str) -> Attribute:
    values = read_list(table.get("values", []), f"{place}: values")
    other = table.get("other", "")
    return Attribute(name=table["name"], kind="text", values=tuple(values), other=other)


def _read_integer(table: _Table, place: str) -> Attribute:
    ends = [table.get("min"), table.get("max")]
    if not all(type(end) is int and abs(end) < LARGEST for end in ends):
        raise SchemaError(f"{place}: an integer needs min and max, whole numbers below 2^62")
    return _numeric(table, place, Unit(kind="integer"))


def _read_real(table: _Table, place: str) -> Attribute:
    if ("decimals" in table) == ("step" in table):
        raise SchemaError(f"{place}: a real needs decimals, or a step; one of them")
    decimals, step = table.get("decimals", 0), table.get("step", 1)
    if type(decimals) is not int or not 0 <= decimals <= _MOST_DECIMALS:
        raise SchemaError(f"{place}: decimals is a whole number from 0 to {_MOST_DECIMALS}")
    size = Decimal(repr(step)) if type(step) in (int, float) else Decimal("NaN")
    if not (size.is_finite() and size > 0 and -int(size.normalize().as_tuple().exponent) <= 9):
        raise SchemaError(f"{place}: step is a number above 0, of at most 9 decimals")
    return _numeric(table, place, Unit(kind="real", step=size.scaleb(-decimals)))


def _read_date(table: _Table, place: str) -> Attribute:
    return _numeric(table, place, Unit(kind="date", format=_format(table, place)))


def _read_datetime(table: _Table, place: str) -> Attribute:
    step = table.get("step_seconds", 1)
    if type(step) is not int or step < 1:
        raise SchemaError(f"{place}: step_seconds is a whole number, at least 1")
    unit = Unit(kind="datetime", step=Decimal(step), format=_format(table, place))
    return _numeric(table, place, unit)


def _numeric(table: _Table, place: str, unit: Unit) -> Attribute:
    low, high = (_end(table, key, unit, place) for key in ("min", "max"))
    values = range(low, high + 1)
    if not values:
        raise SchemaError(f"{place}: min is above max; exchange them")
    return Attribute(
        name=table["name"],
        kind=unit.kind,
        values=values,
        unit=unit,
        starts=read_bins(table.get("bins"), values, unit, place),
        model=_model(table, place),
        heaps=_heaps(table, unit, place),
    )


def _heaps(table: _Table, unit: Unit, place: str) -> tuple[int, ...]:
    """Return the steps at whose multiples numbers crowd, in positions."""
    steps = read_list(table.get("heaps", []), f"{place}: heaps")
    lengths = [unit.length_of(step) for step in steps]
    found = tuple(length for length in lengths if length is not None)
    if len(found) < len(lengths):
        raise SchemaError(f"{place}: heaps are multiples of {unit.show_width(1)}")
    return found


_ENDS: dict[NumericKind, str] = {
    "integer": "whole numbers",
    "real": "numbers",
    "date": "dates, as in 2024-12-31",
    "datetime": "times, as in 2024-12-31T23:59:00",
}


def _end(table: _Table, key: str, unit: Unit, place: str) -> int:
    """Return the position of ``min`` or ``max``."""
    position = read_amount(table.get(key), unit)
    if position is None:
        step = f" and are multiples of {unit.show_width(1)}" if unit.step != 1 else ""
        if unit.kind == "datetime" and step:
            step = f" and are multiples of step_seconds, counted from {unit.show(0)}"
        what = f"{place}: its min and max are {_ENDS[unit.kind]}{step}; correct its {key}"
        raise SchemaError(what)
    if abs(position) >= LARGEST:
        raise SchemaError(f"{place}: its {key} is too large for its grid; use a coarser one")
    return position


def _format(table: _Table, place: str) -> str:
    text = table.get("format", "")
    if type(text) is not str or ("format" in table and not text):
        raise SchemaError(f'{place}: format is a text, as in "%d/%m/%Y"')
    return text


def _model(table: _Table, place: str) -> ModelKind:
    for known in get_args(ModelKind):
        if table.get("model", "histogram") == known:
            model: ModelKind = known
            return model
    raise SchemaError(f'{place}: model is "histogram", "normal" or "regression"')


def _read_identifier(table: _Table, place: str) -> Identifier:
    text = table.get("format", "number")
    if type(text) is not str:
        raise SchemaError(f'{place}: format is "number", "uuid" or a text, as in "P{{:08d}}"')
    return Identifier(
        name=table["name"],
        release=table.get("release", "fresh"),
        format=text,
        missing=_missing(table, place),
        outside=_outside(table, place),
        confirmed=_confirmed(table, place),
    )


def _read_constant(table: _Table, place: str) -> Constant:
    if "value" not in table:
        raise SchemaError(f"{place}: a constant needs its value")
    if table.get("missing"):
        raise SchemaError(
            f"{place}: a constant is never missing; remove missing, or list value and missing in "
            'a column of type "categorical"'
        )
    return Constant(
        name=table["name"],
        value=table["value"],
        outside=_outside(table, place),
        confirmed=_confirmed(table, place),
    )


def _read_computed(table: _Table, place: str) -> Computed:
    _outside(table, place)
    try:
        formula = Formula(table.get("formula", ""))
    except SchemaError as error:
        raise SchemaError(f"{place}: {error}") from None
    return Computed(
        name=table["name"],
        formula=formula,
        decimals=table.get("decimals"),
        missing=_missing(table, place),
        confirmed=_confirmed(table, place),
    )


def _missing(table: _Table, place: str) -> tuple[str, ...]:
    texts = read_list(table.get("missing", []), f"{place}: missing")
    if not all(type(text) is str for text in texts):
        raise SchemaError(f'{place}: missing is a list of texts; quote its numbers, as in ["-8"]')
    return tuple(texts)


def _confirmed(table: _Table, place: str) -> bool:
    value = table.get("confirmed", True)
    if not isinstance(value, bool):
        raise SchemaError(f"{place}: confirmed is true or false, without quotes")
    return value


def _outside(table: _Table, place: str) -> Outside:
    for known in get_args(Outside):
        if table.get("outside", "error") == known:
            outside: Outside = known
            return outside
    raise SchemaError(f'{place}: outside is "error", "drop" or (integers, reals, dates) "clip"')


# How each type is read, and the keys that it alone has.
_READERS: dict[str, tuple[Callable[[_Table, str], Attribute], tuple[str, ...]]] = {
    "categorical": (_read_listed, ("values",)),
    "ordered": (_read_listed, ("values",)),
    "integer": (_read_integer, ("min", "max", "bins", "heaps", "model")),
    "real": (_read_real, ("min", "max", "decimals", "step", "bins", "heaps", "model")),
    "boolean": (_read_boolean, ("values",)),
    "date": (_read_date, ("min", "max", "format", "bins", "model")),
    "datetime": (_read_datetime, ("min", "max", "format", "step_seconds", "bins", "model")),
    "text": (_read_text, ("values", "other")),
}
_BESIDE: dict[str, tuple[Callable[[_Table, str], Described], tuple[str, ...]]] = {
    "identifier": (_read_identifier, ("release", "format")),
    "constant": (_read_constant, ("value",)),
    "computed": (_read_computed, ("formula", "decimals")),
}
