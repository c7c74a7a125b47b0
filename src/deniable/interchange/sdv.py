"""SDV metadata (JSON, version V1) ↔ schema.toml.

SDV's metadata says what each column means, and nothing about its values: which there are, from
where to where. So it is merged with a schema, drafted or written by hand: the types are SDV's, the
domains are the schema's. Where the schema's type says the same more precisely, it stays.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.data.notation import write_value
from deniable.data.schema import Schema
from deniable.errors import SchemaError
from deniable.interchange.conversion import Table, convert_column, identifier_regex

# The one table at the top, as SDV 1.0 to 1.16 wrote it; or tables by name.
_SINGLE, _NAMED = "SINGLE_TABLE_V1", ("V1", "MULTI_TABLE_V1")
_KIND_OF_CONSTANT = {str: "categorical", int: "integer", float: "real", bool: "boolean"}
_DEFAULT_FORMATS = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S"}


@dataclass(frozen=True, kw_only=True)
class SdvTable:
    """One table of SDV metadata.

    Attributes:
        columns: What it says of each column: its ``sdtype``, and what belongs to that.
        keys: The columns that tell records apart: the primary key and its alternatives.
    """

    columns: Mapping[str, Mapping[str, Any]]
    keys: tuple[str, ...] = ()


def read_sdv(source: str | Path | Mapping[str, Any], *, table: str | None = None) -> SdvTable:
    """Return what SDV metadata says of one table.

    Args:
        source: The path of a JSON file, or the metadata as ``Metadata.to_dict`` gives them.
        table: Its name; needed where there are several.

    Raises:
        SchemaError: It cannot be read, is not SDV metadata of version V1, or has no such table.
    """
    metadata = source if isinstance(source, Mapping) else _read_json(Path(source))
    version = metadata.get("METADATA_SPEC_VERSION")
    if version not in (_SINGLE, *_NAMED):
        raise SchemaError(
            f"METADATA_SPEC_VERSION is {version!r}, not V1: these are no SDV metadata, or of "
            "another version. Save them again with an SDV of version 1"
        )
    chosen = metadata if "tables" not in metadata else _choose(metadata["tables"], table)
    columns = chosen.get("columns")
    if not (isinstance(columns, Mapping) and columns):
        raise SchemaError("the SDV metadata describe no columns")
    for name, said in columns.items():
        if not (isinstance(said, Mapping) and isinstance(said.get("sdtype"), str)):
            raise SchemaError(f'SDV metadata, column "{name}": it has no sdtype; give it one')
    keys = [chosen.get("primary_key"), *chosen.get("alternate_keys", ())]
    return SdvTable(columns=columns, keys=tuple(key for key in keys if isinstance(key, str)))


def merge_sdv(metadata: SdvTable, draft: Schema | str) -> Schema:
    """Return a schema with SDV's types and a draft's domains.

    - keys, ids and personal data (``pii``): identifiers, made anew for every record; an id's
      ``regex_format`` becomes their format where it is a text around one number;
    - numerical: an integer or a real, by ``computer_representation``;
    - categorical: a list of values, with the order that the metadata give; a drafted ordered,
      boolean or text column is one already;
    - boolean; datetime: a date or a time, by ``datetime_format``;
    - of any other sdtype without ``pii``, and what is constant or computed: as drafted.

    All else is the draft's: missing cells, buckets where they still fit, constraints, and who
    vouches for it.

    Args:
        metadata: As ``read_sdv`` returns them.
        draft: A schema, or its text, of the same columns.

    Raises:
        SchemaError: They are about other columns, or the draft lacks what a type needs.
    """
    schema = Schema.parse(draft) if isinstance(draft, str) else draft
    document = tomllib.loads(schema.text())
    tables: list[Table] = document["attribute"]
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


def write_sdv(schema: Schema, *, table: str = "table") -> dict[str, Any]:
    """Return a schema as SDV metadata, version V1, of one table; for ``Metadata.load_from_dict``.

    Domains and constraints have no place there. Columns that are not released are left out.

    Args:
        schema: What the columns may hold.
        table: What to call the table.
    """
    document = tomllib.loads(schema.text())
    released = [each for each in document["attribute"] if each.get("release") != "omit"]
    described: dict[str, Any] = {"columns": {each["name"]: _describe(each) for each in released}}
    # Whose record it is does not tell records apart: one person may have several.
    keys = [
        each["name"]
        for each in released
        if each["type"] == "identifier" and each["name"] != document.get("unit")
    ]
    if keys:
        described["primary_key"] = keys[0]
    if keys[1:]:
        described["alternate_keys"] = keys[1:]
    return {"METADATA_SPEC_VERSION": "V1", "tables": {table: described}, "relationships": []}


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SchemaError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except ValueError:
        raise SchemaError(f"{path}: not JSON; save the SDV metadata again") from None
    if not isinstance(content, dict):
        raise SchemaError(f"{path}: SDV metadata are a JSON object; this is something else")
    return content


def _choose(tables: object, name: str | None) -> Mapping[str, Any]:
    if not isinstance(tables, Mapping):
        raise SchemaError("the SDV metadata have no tables by name; save them again")
    if name is None and len(tables) == 1:
        name = next(iter(tables))
    chosen = tables.get(name)
    if not isinstance(chosen, Mapping):
        known = ", ".join(f'"{each}"' for each in tables)
        raise SchemaError(f"the SDV metadata have the tables {known}; say which one with table")
    return chosen


def _require_columns(metadata: SdvTable, tables: list[Table]) -> None:
    drafted = {table["name"]: table for table in tables}
    if absent := [name for name in metadata.columns if name not in drafted]:
        raise SchemaError(
            f'SDV describes column "{absent[0]}", and the schema does not ({len(absent)} such '
            "columns). Add an [[attribute]] for it, or remove it from the metadata"
        )
    foreign = [
        name
        for name, table in drafted.items()
        if name not in metadata.columns and table.get("release") != "omit"
    ]
    if foreign:
        raise SchemaError(
            f'the schema describes column "{foreign[0]}", and SDV does not ({len(foreign)} such '
            "columns). Add it to the metadata, or remove it from the schema"
        )


def _describe(table: Table) -> dict[str, Any]:
    """Return what SDV's metadata say of a column."""
    kind = table["type"]
    if kind == "constant":
        kind = _KIND_OF_CONSTANT[type(table["value"])]
    if kind in _DEFAULT_FORMATS:
        shape = table.get("format", _DEFAULT_FORMATS[kind])
        return {"sdtype": "datetime", "datetime_format": shape}
    if kind == "identifier":
        regex = identifier_regex(table.get("format", "number"))
        return {"sdtype": "id"} if regex is None else {"sdtype": "id", "regex_format": regex}
    if kind in ("integer", "real", "computed"):
        representation = "Int64" if kind == "integer" else "Float"
        return {"sdtype": "numerical", "computer_representation": representation}
    if kind == "ordered":
        return {"sdtype": "categorical", "order": table["values"]}
    # Other texts for false and true are texts to SDV.
    is_boolean = kind == "boolean" and table.get("values", ["false", "true"]) == ["false", "true"]
    return {"sdtype": "boolean" if is_boolean else "categorical"}
