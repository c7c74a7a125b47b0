"""TOML writer: columns, constraints and values as the text of schema.toml."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from deniable.schema.attribute import Attribute, Value
from deniable.schema.bins import bins_as_toml, buckets_as_toml
from deniable.schema.fallback import fallback_value
from deniable.schema.unmodelled_columns import Computed, Constant, Identifier, SchemaColumn
from deniable.schema.value_map import ValueMap

_LINE_WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def write_column(column: SchemaColumn) -> str:
    """Write a column as an ``[[attribute]]`` table."""
    lines = ["[[attribute]]", f"name = {write_value(column.name)}", f'type = "{column.kind}"']
    if isinstance(column, Attribute):
        lines += [*_WRITERS[column.kind](column), *_write_buckets(column)]
    elif isinstance(column, Identifier):
        lines += _write_identifier(column)
    elif isinstance(column, Constant):
        lines.append(f"value = {write_value(column.value)}")
    else:
        lines += _write_computed(column)
    if not isinstance(column, Constant) and column.missing:
        lines.append(f"missing = {write_list(map(write_value, column.missing))}")
    if not isinstance(column, Computed) and column.outside != "error":
        lines.append(f'outside = "{column.outside}"')
    if isinstance(column, Attribute) and column.fallback is not None:
        lines.append(f"fallback = {write_value(fallback_value(column))}")
    if column.confirmed is not True:
        lines.append(f"confirmed = {write_value(column.confirmed)}")
    return "\n".join(lines) + "\n"


def write_constraint(table: Mapping[str, Any]) -> str:
    """Write a constraint as a ``[[constraint]]`` table."""
    lines = [f"{_write_key(key)} = {write_value(value)}" for key, value in table.items()]
    return "\n".join(["[[constraint]]", *lines]) + "\n"


def write_value(value: object) -> str:
    """Write a value in TOML: a text, number, boolean, date, list, or inline table."""
    if isinstance(value, dict):
        pairs = (f"{_write_key(key)} = {write_value(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return write_list(map(write_value, value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return _write_decimal(value)
    # JSON escapes every character that TOML requires, except DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def write_list(items: Iterable[str], *, indent: int = 0) -> str:
    """Write a TOML list on one line if it fits, otherwise on wrapped lines."""
    texts, margin = list(items), " " * 4 * (indent + 1)
    whole = f"[{', '.join(texts)}]"
    if len(whole) <= _LINE_WIDTH - 20 and "\n" not in whole:
        return whole
    lines = [margin]
    for text in texts:
        if lines[-1] != margin and (len(lines[-1]) + len(text) + 2 > _LINE_WIDTH or "\n" in text):
            lines.append(margin)
        lines[-1] += f"{' ' if lines[-1] != margin else ''}{text},"
        if "\n" in text:
            lines.append(margin)
    return "\n".join(["[", *filter(str.strip, lines), " " * 4 * indent + "]"])


def _write_decimal(value: Decimal) -> str:
    """Write a decimal in full, with at least one digit after the point: 1.50 as 1.5, 20 as 20.0."""
    text = f"{value:f}"
    if "." not in text:
        return f"{text}.0"
    text = text.rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def _write_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else write_value(key)


def _write_listed(attribute: Attribute) -> list[str]:
    return [f"values = {write_list(map(write_value, attribute.values))}"]


def _write_boolean(attribute: Attribute) -> list[str]:
    return [] if attribute.values == ("false", "true") else _write_listed(attribute)


def _write_text(attribute: Attribute) -> list[str]:
    is_last = attribute.values[-1] == attribute.other
    listed = attribute.values[:-1] if is_last else attribute.values
    values = f"values = {write_list(map(write_value, listed))}"
    return [values, f"other = {write_value(attribute.other)}"]


def _write_numeric(attribute: Attribute) -> list[str]:
    grid = attribute.grid
    if grid is None:
        return []
    lines = [
        f"{key} = {grid.format_position(int(attribute.values[i]))}"
        for key, i in (("min", 0), ("max", -1))
    ]
    if grid.kind == "real":
        is_power_of_ten = grid.step == Decimal(1).scaleb(-grid.decimals)
        lines.append(
            f"decimals = {grid.decimals}" if is_power_of_ten else f"step = {attribute.step_text}"
        )
    if grid.kind == "datetime" and grid.step != 1:
        lines.append(f"step_seconds = {int(grid.step)}")
    if not grid.is_default_format:
        lines.append(f"format = {write_value(grid.format)}")
    if bins := bins_as_toml(attribute):
        lines.append(f"bins = {_write_rule(bins)}")
    if attribute.heaps:
        lines.append(f"heaps = {write_list(map(grid.format_width, attribute.heaps))}")
    if attribute.model != "histogram":
        lines.append(f'model = "{attribute.model}"')
    return lines


def _write_rule(rule: Mapping[str, str | list[str]]) -> str:
    written = (
        f"{key} = {write_list(value) if isinstance(value, list) else value}"
        for key, value in rule.items()
    )
    return f"{{ {', '.join(written)} }}"


def _write_buckets(attribute: Attribute) -> list[str]:
    if rule := buckets_as_toml(attribute):
        return [f"buckets = {_write_rule(rule)}"]
    if attribute.is_numeric and (attribute.kind != "integer" or attribute.is_binned):
        return []
    if not attribute.is_bucketed:
        return []
    groups: list[list[Value]] = [[] for _ in range(attribute.buckets)]
    for value, bucket in zip(attribute.values, attribute.groups, strict=False):
        groups[bucket].append(value)
    texts = (write_list(map(write_value, group), indent=1) for group in groups if group)
    return [f"buckets = {write_list(texts)}"]


def _write_identifier(column: Identifier) -> list[str]:
    lines = [f'release = "{column.release}"'] if column.release != "fresh" else []
    if column.format != "number":
        lines.append(f"format = {write_value(column.format)}")
    return lines


def _write_computed(column: Computed) -> list[str]:
    rule = column.rule
    if isinstance(rule, ValueMap):
        results = [
            (own, column.missing[0] if result is None else result) for own, result in rule.pairs
        ]
        pairs = write_list(f"[{', '.join(map(write_value, pair))}]" for pair in results)
        lines = [f"from = {write_value(rule.source)}", f"{rule.key} = {pairs}"]
    else:
        lines = [f"formula = {write_value(rule.text)}"]
    return lines if column.decimals is None else [*lines, f"decimals = {column.decimals}"]


_WRITERS: dict[str, Callable[[Attribute], list[str]]] = {
    "categorical": _write_listed,
    "ordered": _write_listed,
    "boolean": _write_boolean,
    "text": _write_text,
    "integer": _write_numeric,
    "real": _write_numeric,
    "date": _write_numeric,
    "datetime": _write_numeric,
}
