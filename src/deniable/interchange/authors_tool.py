"""Read and write the files of the tool published by the paper's authors.

Six CSV files share a prefix. Attributes are numbered from 1, in the order of ``attrs``.

    attrs     one line per attribute: its name, then its values
    grps      one line per attribute: the bucket of each value
    dag       one line per attribute: the numbers of its parents, then their joint merit
    order     line i: the number of the i-th attribute in the order
    records   the table that seeds are drawn from, with a header
    stats     the table that the model is learnt from, with a header
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from deniable.errors import ConfigError, InputError, OutputError, SchemaError
from deniable.files import require_regular_file
from deniable.release.atomic_files import make_file
from deniable.schema.attribute import Attribute, Value
from deniable.schema.grid import parse_integer
from deniable.schema.schema import Schema

AuthorsFile = Literal["attrs", "grps", "dag", "order", "records", "stats"]

_ROW_FILES: tuple[AuthorsFile, AuthorsFile] = ("records", "stats")

# Characters that a cell cannot contain: the authors' tool splits lines at commas, without quoting.
_SEPARATORS = frozenset(',"\r\n')


@dataclass(frozen=True, kw_only=True)
class AuthorsToolFiles:
    """Content of the six files.

    Attributes:
        schema: The attributes, each with a list of values and their buckets.
        graph: The parents of each attribute, in the form of ``Config.graph``.
        order: The attributes in the order σ, in the form of ``Config.order``.
        merits: The merit of each attribute's parents; kept for writing only.
        records: Path of the table that seeds are drawn from; None if there is no such file.
        stats: Path of the table that the model is learnt from; None if there is no such file.
    """

    schema: Schema
    graph: Mapping[str, list[str]]
    order: list[str]
    merits: Mapping[str, float] = field(default_factory=dict)
    records: Path | None = None
    stats: Path | None = None


def read_authors_files(folder: str | Path, *, prefix: str | None = None) -> AuthorsToolFiles:
    """Read domains, buckets, graph and order from a folder, and locate the tables.

    ``attrs`` and ``grps`` are required; ``dag`` and ``order`` are optional. Tables are not read.

    Args:
        folder: The folder of the files.
        prefix: File name before ``_attrs.csv``; None: taken from the only such file.

    Raises:
        InputError: A file is missing, or two files contradict each other.
    """
    folder = Path(folder)
    start = f"{_find_prefix(folder) if prefix is None else prefix}_"
    paths = {name: folder / f"{start}{name}.csv" for name in get_args(AuthorsFile)}
    schema = _read_schema(paths["attrs"], paths["grps"])
    graph: dict[str, list[str]] = {}
    merits: dict[str, float] = {}
    order: list[str] = []
    if paths["dag"].is_file():
        graph, merits = _read_dag(paths["dag"], schema.names)
    if paths["order"].is_file():
        order = _read_order(paths["order"], schema.names)
    records, stats = (paths[name] if paths[name].is_file() else None for name in _ROW_FILES)
    return AuthorsToolFiles(
        schema=schema, graph=graph, order=order, merits=merits, records=records, stats=stats
    )


def write_authors_files(
    folder: str | Path,
    schema: Schema,
    graph: Mapping[str, Sequence[str]],
    order: Sequence[str],
    *,
    records: pl.DataFrame,
    stats: pl.DataFrame,
    merits: Mapping[str, float] | None = None,
    prefix: str = "table",
) -> None:
    """Write the six files for the authors' tool.

    Args:
        folder: The target folder, created if needed. Two files hold the rows: confidential, and
            readable by their owner only.
        schema: Its attributes must be lists of values, without missing cells.
        graph: The parents of each attribute; an absent attribute has none.
        order: All attributes, in the order σ.
        records: The rows that seeds are drawn from.
        stats: The rows that the model is learnt from.
        merits: The merit of each attribute's parents, 0 by default; the tool only prints it.
        prefix: Start of the file names.

    Raises:
        SchemaError: The schema has something that these files cannot express.
        ConfigError: Graph or order do not match the schema's attributes.
        OutputError: The files cannot be written.
    """
    merits = {} if merits is None else merits
    number = {name: str(at) for at, name in enumerate(schema.names, start=1)}
    _require_names(graph, order, number)
    lines = {
        "attrs": [[a.name, *_value_cells(a)] for a in schema.attributes],
        "grps": [[str(bucket + 1) for bucket in a.groups] for a in schema.attributes],
        "dag": [
            [*(number[parent] for parent in graph.get(name, ())), f"{merits.get(name, 0):.5g}"]
            for name in schema.names
        ],
        "order": [[number[name]] for name in order],
    }
    start = Path(folder) / f"{prefix}_"
    try:
        start.parent.mkdir(parents=True, exist_ok=True)
        for name, rows in lines.items():
            text = "".join(",".join(row) + "\n" for row in rows)
            Path(f"{start}{name}.csv").write_text(text, encoding="utf-8", newline="\n")
        for name, frame in (("records", records), ("stats", stats)):
            make_file(Path(f"{start}{name}.csv"), confidential=True)
            frame.select(schema.names).write_csv(f"{start}{name}.csv")
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written to ({error.strerror}). Free some space, or choose another "
            "folder"
        ) from None


def _find_prefix(folder: Path) -> str:
    found = sorted(path.name.removesuffix("_attrs.csv") for path in folder.glob("*_attrs.csv"))
    if len(found) != 1:
        raise SchemaError(
            f"{folder}: {len(found)} files end in _attrs.csv, but exactly one is needed. Choose "
            "another folder, or one file with prefix"
        )
    return found[0]


def _read_lines(path: Path, error: type[InputError]) -> list[list[str]]:
    require_regular_file(path, error, absent="cannot be read; check that it exists")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as cause:
        raise error(
            f"{path}: cannot be read ({type(cause).__name__}); check that it exists and is UTF-8"
        ) from None
    return rows


def _read_schema(attrs: Path, grps: Path) -> Schema:
    named, grouped = _read_lines(attrs, SchemaError), _read_lines(grps, SchemaError)
    if len(named) != len(grouped):
        raise SchemaError(
            f"{attrs.name} has {len(named)} lines and {grps.name} has {len(grouped)}; both need "
            "one line per attribute"
        )
    attributes = []
    for line, ((name, *texts), groups) in enumerate(zip(named, grouped, strict=True), start=1):
        if len(texts) != len(groups):
            raise SchemaError(
                f"{grps.name}, line {line}: {len(groups)} buckets for the {len(texts)} values of "
                f'"{name}"; each value needs one'
            )
        attribute = Attribute(name=name, kind="categorical", values=_parse_values(texts))
        buckets: dict[str, list[Value]] = {}
        for value, bucket in zip(attribute.values, groups, strict=True):
            buckets.setdefault(bucket, []).append(value)
        attributes.append(attribute.with_bucket_groups(list(buckets.values())))
    return Schema(tuple(attributes))


def _parse_values(texts: Sequence[str]) -> tuple[Value, ...]:
    """Parse values as integers if all are integers in plain notation; otherwise keep the texts."""
    numbers = [parse_integer(text) for text in texts]
    if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
        return tuple(number for number in numbers if number is not None)
    return tuple(texts)


def _read_dag(path: Path, names: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, float]]:
    lines = _read_lines(path, ConfigError)
    if len(lines) != len(names):
        raise ConfigError(f"{path.name} has {len(lines)} lines for {len(names)} attributes")
    graph, merits = {}, {}
    for at, (name, (*parents, merit)) in enumerate(zip(names, lines, strict=True), start=1):
        graph[name] = [
            _parse_attribute(parent, names, f"{path.name}, line {at}") for parent in parents
        ]
        try:
            merits[name] = float(merit)
        except ValueError:
            raise ConfigError(
                f"{path.name}, line {at}: the last cell must be a number, the merit of the parents "
                "(0 without parents)"
            ) from None
    return graph, merits


def _read_order(path: Path, names: Sequence[str]) -> list[str]:
    lines = _read_lines(path, ConfigError)
    order = [
        _parse_attribute(line[0], names, f"{path.name}, line {at}")
        for at, line in enumerate(lines, start=1)
    ]
    if sorted(order) != sorted(names):
        raise ConfigError(f"{path.name}: list each of the {len(names)} attributes once")
    return order


def _parse_attribute(number: str, names: Sequence[str], place: str) -> str:
    at = parse_integer(number)
    if at is None or not 1 <= at <= len(names):
        raise ConfigError(f"{place}: attributes are numbered from 1 to {len(names)}; correct it")
    return names[at - 1]


def _value_cells(attribute: Attribute) -> list[str]:
    """Format an attribute's values as cells; refuse values that the files cannot express."""
    if attribute.missing:
        raise attribute.error(
            "the authors' tool does not support missing cells; replace them by a value first"
        )
    if attribute.is_numeric and (attribute.kind != "integer" or attribute.is_binned):
        raise attribute.error(
            "the authors' tool supports lists of values only; leave the column out, or bin it to "
            "integers first"
        )
    texts = [str(value) for value in attribute.values]
    if any(_SEPARATORS & set(text) for text in (attribute.name, *texts)):
        raise attribute.error(
            "its name or a value has a comma, a quote or a line break, which the authors' tool "
            "cannot read; remove it"
        )
    return texts


def _require_names(
    graph: Mapping[str, Sequence[str]], order: Sequence[str], known: Mapping[str, str]
) -> None:
    named = {*graph, *(parent for parents in graph.values() for parent in parents)}
    if foreign := sorted(named - set(known)):
        raise ConfigError(f'"{foreign[0]}" in the graph is not an attribute; correct it')
    if sorted(order) != sorted(known):
        raise ConfigError(f"order must list each of the {len(known)} attributes once")
