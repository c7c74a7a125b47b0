"""Merge SDV metadata (JSON, version V1) with a schema.

SDV metadata has the type of each column, but no domain: no list of values, no range. So it is
merged with a schema, drafted or written by hand: types come from SDV, domains from the schema.
A schema type that is compatible and more precise is kept.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from math import ceil, floor
from pathlib import Path
from typing import Any

from deniable.errors import SchemaError
from deniable.files import require_regular_file
from deniable.schema.schema import Schema
from deniable.schema.toml_writer import write_value

# One [[attribute]] of schema.toml, and one column of SDV metadata.
AttributeTable = dict[str, Any]
ColumnMetadata = Mapping[str, Any]

# SDV 1.0 to 1.16 wrote a single table at the top level as SINGLE_TABLE_V1.
_SPEC_VERSIONS = ("SINGLE_TABLE_V1", "V1", "MULTI_TABLE_V1")

UUID_REGEX = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

# Largest range of integers that is converted to a list of values.
_MAX_LISTED_VALUES = 1_000

# Keys of an [[attribute]] of any type.
_COMMON_KEYS = ("name", "missing", "outside", "confirmed")
_NUMERIC_TYPES = frozenset({"integer", "real", "date", "datetime"})
_LISTED_TYPES = frozenset({"categorical", "ordered", "boolean", "text"})
_TIME_DIRECTIVE = re.compile("%[-#]?[HIMSfpXcTRs]")

# A regular expression for literal text, one number and literal text.
_LITERAL_REGEX = r"(?:[^\\\[\](){}.*+?^$|]|\\\W)*"
_NUMBERED_REGEX = re.compile(
    rf"\^?(?P<before>{_LITERAL_REGEX})(?:\[0-9\]|\\d)(?:\{{(?P<digits>\d+)\}}|\+)"
    rf"(?P<after>{_LITERAL_REGEX})\$?"
)


@dataclass(frozen=True, kw_only=True)
class SdvTable:
    """One table of SDV metadata.

    Attributes:
        columns: The metadata of each column: its ``sdtype`` and that type's options.
        keys: Columns that identify a record: the primary key and the alternate keys.
    """

    columns: Mapping[str, ColumnMetadata]
    keys: tuple[str, ...] = ()


def read_sdv(source: str | Path | Mapping[str, Any], *, table: str | None = None) -> SdvTable:
    """Read the SDV metadata of one table.

    Args:
        source: The path of a JSON file, or the metadata as returned by ``Metadata.to_dict``.
        table: The table's name; needed if there are several.

    Raises:
        SchemaError: It cannot be read, is not SDV metadata of version V1, or has no such table.
    """
    metadata = source if isinstance(source, Mapping) else _read_json(Path(source))
    version = metadata.get("METADATA_SPEC_VERSION")
    if version not in _SPEC_VERSIONS:
        raise SchemaError(
            f"METADATA_SPEC_VERSION is {version!r}, not V1: this is not SDV metadata, or of "
            "another version. Save it again with SDV 1.x"
        )
    chosen = metadata if "tables" not in metadata else _choose_table(metadata["tables"], table)
    columns = chosen.get("columns")
    if not (isinstance(columns, Mapping) and columns):
        raise SchemaError("the SDV metadata has no columns")
    for name, column in columns.items():
        if not (isinstance(column, Mapping) and isinstance(column.get("sdtype"), str)):
            raise SchemaError(f'SDV metadata, column "{name}": it has no sdtype; add one')
    keys = [chosen.get("primary_key"), *chosen.get("alternate_keys", ())]
    return SdvTable(columns=columns, keys=tuple(key for key in keys if isinstance(key, str)))


def merge_sdv(metadata: SdvTable, draft: Schema | str) -> Schema:
    """Merge SDV's column types with a draft's domains into a schema.

    - keys, ids and personal data (``pii``) become identifiers, generated for every record; an
      id's ``regex_format`` becomes their format if it is literal text around one number;
    - numerical becomes integer or real, by ``computer_representation``;
    - categorical becomes a list of values, in the metadata's order if it has one; drafted
      ordered, boolean and text columns stay as they are;
    - boolean becomes boolean; datetime becomes date or datetime, by ``datetime_format``;
    - columns of another sdtype without ``pii``, constants and computed columns stay as drafted.

    Everything else comes from the draft: missing cells, buckets if they still fit, constraints,
    and whether an attribute is confirmed.

    Args:
        metadata: The result of ``read_sdv``.
        draft: A schema, or its text, with the same columns.

    Raises:
        SchemaError: The columns differ, or the draft lacks a domain that a type needs.
    """
    schema = Schema.parse(draft) if isinstance(draft, str) else draft
    document = tomllib.loads(schema.text())
    tables: list[AttributeTable] = document["attribute"]
    _require_columns(metadata, tables)
    document["attribute"] = [
        convert_column(table, metadata.columns[name], is_key=name in metadata.keys)
        if (name := table["name"]) in metadata.columns
        else table
        for table in tables
    ]
    return Schema.parse(
        "\n".join(f"{key} = {write_value(value)}" for key, value in document.items())
    )


def _read_json(path: Path) -> Mapping[str, Any]:
    require_regular_file(path, SchemaError, absent="cannot be read (no such file); check the path")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SchemaError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError):
        raise SchemaError(
            f"{path}: not JSON, or nested too deeply; save the SDV metadata again"
        ) from None
    if not isinstance(content, dict):
        raise SchemaError(f"{path}: not a JSON object; save the SDV metadata again")
    return content


def _choose_table(tables: object, name: str | None) -> Mapping[str, Any]:
    if not isinstance(tables, Mapping):
        raise SchemaError("the SDV metadata has no tables by name; save it again")
    if name is None and len(tables) == 1:
        name = next(iter(tables))
    chosen = tables.get(name)
    if not isinstance(chosen, Mapping):
        known = ", ".join(f'"{each}"' for each in tables)
        raise SchemaError(f"the SDV metadata has the tables {known}; choose one with table")
    return chosen


def _require_columns(metadata: SdvTable, tables: list[AttributeTable]) -> None:
    drafted = {table["name"]: table for table in tables}
    if absent := [name for name in metadata.columns if name not in drafted]:
        raise SchemaError(
            f'column "{absent[0]}" is in the SDV metadata but not in the schema ({len(absent)} '
            "such columns). Add an [[attribute]] for it, or remove it from the metadata"
        )
    foreign = [
        name
        for name, table in drafted.items()
        if name not in metadata.columns and table.get("release") != "omit"
    ]
    if foreign:
        raise SchemaError(
            f'column "{foreign[0]}" is in the schema but not in the SDV metadata ({len(foreign)} '
            "such columns). Add it to the metadata, or remove it from the schema"
        )


def convert_column(
    table: AttributeTable, column: ColumnMetadata, *, is_key: bool
) -> AttributeTable:
    """Convert a column's ``[[attribute]]`` to the type in its SDV metadata.

    Args:
        table: The ``[[attribute]]``; settings that the new type allows are kept.
        column: The SDV metadata of the column.
        is_key: Whether the column identifies a record.

    Raises:
        SchemaError: The schema lacks a domain that the type needs.
    """
    sdtype, kind = column.get("sdtype"), table["type"]
    if kind in ("constant", "computed"):
        return table
    if is_key or sdtype == "id" or (sdtype not in _CONVERSIONS and column.get("pii", True)):
        return _to_identifier(table, column)
    return _CONVERSIONS[sdtype](table, column) if sdtype in _CONVERSIONS else table


def _to_number(table: AttributeTable, column: ColumnMetadata) -> AttributeTable:
    representation = column.get("computer_representation")
    if representation is None:
        target = table["type"] if table["type"] in ("integer", "real") else "integer"
    else:
        target = "real" if representation == "Float" else "integer"
    if table["type"] == target:
        return table
    low, high = _numeric_range(table, column)
    if target == "integer":
        return _change_type(table, "integer", min=floor(low), max=ceil(high))
    return _change_type(table, "real", min=low, max=high, decimals=0)


def _numeric_range(table: AttributeTable, column: ColumnMetadata) -> tuple[float, float]:
    """Find the smallest and the largest number in a column's domain."""
    if table["type"] in ("integer", "real"):
        return table["min"], table["max"]
    values = table.get("values", ())
    if table["type"] == "boolean" and values == ["0", "1"]:
        return 0, 1
    if table["type"] in _LISTED_TYPES and all(type(value) is int for value in values):
        return min(values), max(values)
    raise _incomplete_domain(table, column, "min and max")


def _to_categorical(table: AttributeTable, column: ColumnMetadata) -> AttributeTable:
    order, order_by = column.get("order"), column.get("order_by")
    if order is None and order_by is None:
        return (
            table if table["type"] in _LISTED_TYPES else _list_values(table, column, "categorical")
        )
    if order is None:
        order = sorted(_list_values(table, column, "ordered")["values"])
    if table["type"] == "ordered" and table["values"] == order:
        return table
    # Buckets by width depend on the old order of the values, so they are dropped.
    keep = ("buckets",) if isinstance(table.get("buckets"), list) else ()
    return _change_type(table, "ordered", values=list(order), keep=keep)


def _list_values(table: AttributeTable, column: ColumnMetadata, kind: str) -> AttributeTable:
    """Convert a column to a list of its values."""
    if table["type"] in _LISTED_TYPES:
        values = table.get("values", ["false", "true"])
        return _change_type(table, kind, values=values, keep=("buckets",))
    if table["type"] == "integer" and table["max"] - table["min"] < _MAX_LISTED_VALUES:
        return _change_type(table, kind, values=list(range(table["min"], table["max"] + 1)))
    raise _incomplete_domain(table, column, "values")


def _to_boolean(table: AttributeTable, column: ColumnMetadata) -> AttributeTable:
    if table["type"] == "boolean":
        return table
    values = _list_values(table, column, "categorical")["values"]
    if len(values) != 2:
        raise _incomplete_domain(table, column, "values, the texts for false and true")
    return _change_type(table, "boolean", values=[str(value) for value in values])


def _to_time(table: AttributeTable, column: ColumnMetadata) -> AttributeTable:
    format_ = column.get("datetime_format")
    if table["type"] not in ("date", "datetime"):
        raise _incomplete_domain(table, column, "min and max")
    if format_ is None:
        return table
    target = "datetime" if _TIME_DIRECTIVE.search(format_) else "date"
    if table["type"] == target:
        return table | {"format": format_}
    first, last = (date.fromisoformat(str(table[end])[:10]) for end in ("min", "max"))
    if target == "date":
        return _change_type(table, "date", min=first, max=last, format=format_)
    end = f"{last}T23:59:59"
    return _change_type(table, "datetime", min=f"{first}T00:00:00", max=end, format=format_)


def _to_identifier(table: AttributeTable, column: ColumnMetadata) -> AttributeTable:
    format_ = identifier_format(column.get("regex_format", ""))
    fields: AttributeTable = {} if format_ is None else {"format": format_}
    if table["type"] == "identifier":
        return table | fields
    return _change_type(table, "identifier", **fields)


def identifier_format(regex: str) -> str | None:
    """Convert a regular expression to an identifier format; None if it is too general."""
    if regex == UUID_REGEX:
        return "uuid"
    found = _NUMBERED_REGEX.fullmatch(regex)
    if found is None:
        return None
    before, after = (
        re.sub(r"\\(\W)", r"\1", found[part]).replace("{", "{{").replace("}", "}}")
        for part in ("before", "after")
    )
    digits = f":0{int(found['digits'])}d" if found["digits"] else ""
    return f"{before}{{{digits}}}{after}"


def _change_type(
    table: AttributeTable, kind: str, *, keep: tuple[str, ...] = (), **fields: Any
) -> AttributeTable:
    """Change the type of an ``[[attribute]]``: common keys, keys to keep, and new fields."""
    kept = {key: table[key] for key in (*_COMMON_KEYS, *keep) if key in table}
    if kept.get("outside") == "clip" and kind not in _NUMERIC_TYPES:
        del kept["outside"]
    return kept | {"type": kind} | fields


def _incomplete_domain(table: AttributeTable, column: ColumnMetadata, needed: str) -> SchemaError:
    return SchemaError(
        f'column "{table["name"]}" is {column.get("sdtype")} in the SDV metadata and '
        f"{table['type']} in the schema, which does not give its {needed}. Add them to the schema, "
        "with a type that has them, or change the metadata"
    )


_CONVERSIONS: dict[Any, Callable[[AttributeTable, ColumnMetadata], AttributeTable]] = {
    "boolean": _to_boolean,
    "categorical": _to_categorical,
    "datetime": _to_time,
    "numerical": _to_number,
}
