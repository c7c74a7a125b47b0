"""Fallback: the value that replaces every invalid cell of a column, as TOML.

A cell is invalid if it is missing and the schema declares no ``missing``, if it cannot be parsed,
or if it is none of the values. Each cell is replaced by its own content and the schema alone, so
no row can stop a run, and a row changes no other record.
"""

from bisect import bisect_right
from dataclasses import replace
from datetime import date

from deniable.schema.attribute import Attribute
from deniable.schema.bins import parse_position


def parse_fallback(attribute: Attribute, value: object) -> Attribute:
    """Add the fallback of an attribute, given as in a schema; None for none.

    Args:
        attribute: The attribute, with its values, bins and texts that mean missing.
        value: A value of the attribute, or one of its texts that mean missing.

    Raises:
        SchemaError: It is neither, or rows with an invalid cell are to be dropped.
    """
    if value is None:
        return attribute
    if attribute.outside == "drop":
        raise attribute.error('outside = "drop" drops rows with an invalid cell; remove fallback')
    code = _code_of(attribute, value)
    if code is None:
        raise attribute.error(
            "fallback replaces invalid cells: set it to one of the values, or to a text of missing"
        )
    return replace(attribute, fallback=code)


def fallback_value(attribute: Attribute) -> str | int | date | float | None:
    """The fallback as ``parse_fallback`` reads it; the first value of its bin. None if not set."""
    code = attribute.fallback
    if code is None:
        return None
    if code == attribute.missing_code:
        return attribute.missing[0]
    if attribute.grid is None:
        return attribute.values[code]
    return attribute.grid.value_at(attribute.positions(code)[0])


def _code_of(attribute: Attribute, value: object) -> int | None:
    if isinstance(value, str) and value in attribute.missing:
        return attribute.missing_code
    if attribute.grid is None:
        if isinstance(value, bool):
            return int(value) if attribute.kind == "boolean" else None
        return next((i for i, each in enumerate(attribute.values) if each == value), None)
    position = parse_position(value, attribute.grid)
    if position is None or position not in attribute.values:
        return None
    return bisect_right(attribute.starts, position) - 1
