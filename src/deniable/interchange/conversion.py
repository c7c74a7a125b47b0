"""One ``[[attribute]]`` of a schema, told by SDV metadata to be of another type.

Both are plain tables here, as TOML and JSON give them; ``Schema.parse`` checks what comes out.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from math import ceil, floor
from typing import Any

from deniable.data.beside import Identifier
from deniable.errors import SchemaError

Table = dict[str, Any]
Said = Mapping[str, Any]

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

# A list of values is made of a range of whole numbers up to this many.
_MOST_LISTED = 1_000

_COMMON = ("name", "missing", "outside", "confirmed")
_NUMERIC = frozenset({"integer", "real", "date", "datetime"})
_LISTED = frozenset({"categorical", "ordered", "boolean", "text"})
_TIME = re.compile("%[-#]?[HIMSfpXcTRs]")

# Letters that stand for themselves in a regular expression, one number, letters again.
_PLAIN = r"(?:[^\\\[\](){}.*+?^$|]|\\\W)*"
_NUMBERED = re.compile(
    rf"\^?(?P<before>{_PLAIN})(?:\[0-9\]|\\d)(?:\{{(?P<digits>\d+)\}}|\+)(?P<after>{_PLAIN})\$?"
)


def convert_column(table: Table, said: Said, *, is_key: bool) -> Table:
    """Return a schema's table of a column with the type that SDV metadata says.

    Args:
        table: The ``[[attribute]]``; what its type allows is kept.
        said: What the metadata says of the column.
        is_key: Whether the column tells records apart.

    Raises:
        SchemaError: The schema does not have what the type needs.
    """
    sdtype, kind = said.get("sdtype"), table["type"]
    if kind in ("constant", "computed"):
        return table
    if is_key or sdtype == "id" or (sdtype not in _CONVERSIONS and said.get("pii", True)):
        return _to_identifier(table, said)
    return _CONVERSIONS[sdtype](table, said) if sdtype in _CONVERSIONS else table


def _to_number(table: Table, said: Said) -> Table:
    representation = said.get("computer_representation")
    if representation is None:
        target = table["type"] if table["type"] in ("integer", "real") else "integer"
    else:
        target = "real" if representation == "Float" else "integer"
    if table["type"] == target:
        return table
    low, high = _ends(table, said)
    if target == "integer":
        return _changed(table, "integer", min=floor(low), max=ceil(high))
    return _changed(table, "real", min=low, max=high, decimals=0)


def _ends(table: Table, said: Said) -> tuple[float, float]:
    """Return the lowest and the highest number that a column holds."""
    if table["type"] in ("integer", "real"):
        return table["min"], table["max"]
    values = table.get("values", ())
    if table["type"] == "boolean" and values == ["0", "1"]:
        return 0, 1
    if table["type"] in _LISTED and all(type(value) is int for value in values):
        return min(values), max(values)
    raise _unknown(table, said, "min and max")


def _to_listed(table: Table, said: Said) -> Table:
    order, order_by = said.get("order"), said.get("order_by")
    if order is None and order_by is None:
        return table if table["type"] in _LISTED else _listed(table, said, "categorical")
    if order is None:
        order = sorted(_listed(table, said, "ordered")["values"])
    if table["type"] == "ordered" and table["values"] == order:
        return table
    # A width counts values in their order, which is another one now.
    keep = ("buckets",) if isinstance(table.get("buckets"), list) else ()
    return _changed(table, "ordered", values=list(order), keep=keep)


def _listed(table: Table, said: Said, kind: str) -> Table:
    """Return a column as a list of its values."""
    if table["type"] in _LISTED:
        values = table.get("values", ["false", "true"])
        return _changed(table, kind, values=values, keep=("buckets",))
    if table["type"] == "integer" and table["max"] - table["min"] < _MOST_LISTED:
        return _changed(table, kind, values=list(range(table["min"], table["max"] + 1)))
    raise _unknown(table, said, "values")


def _to_boolean(table: Table, said: Said) -> Table:
    if table["type"] == "boolean":
        return table
    values = _listed(table, said, "categorical")["values"]
    if len(values) != 2:
        raise _unknown(table, said, "values, the texts for false and true")
    return _changed(table, "boolean", values=[str(value) for value in values])


def _to_time(table: Table, said: Said) -> Table:
    shape = said.get("datetime_format")
    if table["type"] not in ("date", "datetime"):
        raise _unknown(table, said, "min and max")
    if shape is None:
        return table
    target = "datetime" if _TIME.search(shape) else "date"
    if table["type"] == target:
        return table | {"format": shape}
    first, last = (date.fromisoformat(str(table[end])[:10]) for end in ("min", "max"))
    if target == "date":
        return _changed(table, "date", min=first, max=last, format=shape)
    end = f"{last}T23:59:59"
    return _changed(table, "datetime", min=f"{first}T00:00:00", max=end, format=shape)


def _to_identifier(table: Table, said: Said) -> Table:
    shape = identifier_format(said.get("regex_format", ""))
    told: Table = {} if shape is None else {"format": shape}
    if table["type"] == "identifier":
        return table | told
    return _changed(table, "identifier", **told)


def identifier_format(regex: str) -> str | None:
    """Return the format of identifiers that a regular expression describes; None: too much."""
    if regex == UUID:
        return "uuid"
    found = _NUMBERED.fullmatch(regex)
    if found is None:
        return None
    before, after = (
        re.sub(r"\\(\W)", r"\1", found[part]).replace("{", "{{").replace("}", "}}")
        for part in ("before", "after")
    )
    digits = f":0{int(found['digits'])}d" if found["digits"] else ""
    return f"{before}{{{digits}}}{after}"


def identifier_regex(shape: str) -> str | None:
    """Return the regular expression of an identifier's format; None where it is any number."""
    if shape in ("number", "uuid"):
        return UUID if shape == "uuid" else None
    before, digits, after = Identifier(name="x", format=shape).parts
    length = f"{{{digits}}}" if digits else "+"
    return f"{re.escape(before)}[0-9]{length}{re.escape(after)}"


def _changed(table: Table, kind: str, *, keep: tuple[str, ...] = (), **fields: Any) -> Table:
    """Return a table of another type: what every type has, the given fields, and what to keep."""
    kept = {key: table[key] for key in (*_COMMON, *keep) if key in table}
    if kept.get("outside") == "clip" and kind not in _NUMERIC:
        del kept["outside"]
    return kept | {"type": kind} | fields


def _unknown(table: Table, said: Said, needed: str) -> SchemaError:
    return SchemaError(
        f'column "{table["name"]}": SDV calls it {said.get("sdtype")}, the schema '
        f"{table['type']}, which leaves open its {needed}. Give these in the schema, with the "
        "type that has them, or change the metadata"
    )


_CONVERSIONS: dict[Any, Callable[[Table, Said], Table]] = {
    "boolean": _to_boolean,
    "categorical": _to_listed,
    "datetime": _to_time,
    "numerical": _to_number,
}
