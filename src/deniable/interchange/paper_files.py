"""The files of the tool that the paper's authors published.

Six CSV files share a prefix. Attributes are numbered from 1, in the order of ``attrs``.

    attrs     a line an attribute: its name, then its values
    grps      a line an attribute: the bucket of each of its values
    dag       a line an attribute: the numbers of its parents, then the merit of them together
    order     line i: the number of the attribute that is visited i-th
    records   the part that seeds are drawn from, with a header
    stats     the part that the model is learnt from, with a header
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from deniable.data.amounts import whole_number
from deniable.data.attributes import Attribute, Value
from deniable.data.schema import Schema
from deniable.errors import ConfigError, InputError, OutputError, SchemaError

PaperFile = Literal["attrs", "grps", "dag", "order", "records", "stats"]

_PARTS: tuple[PaperFile, PaperFile] = ("records", "stats")

# What a cell of these files cannot hold: their reader splits lines at commas, and knows no quotes.
_SEPARATORS = frozenset(',"\r\n')


@dataclass(frozen=True, kw_only=True)
class PaperFiles:
    """What the six files say.

    Attributes:
        schema: The attributes, each a list of values, with their buckets.
        graph: The parents of each attribute, as ``Config.graph`` has them.
        order: The attributes in the order in which they are visited, as ``Config.order``.
        merits: What ``dag`` says beside the parents of each attribute; nothing here reads it.
        records: The table that seeds are drawn from; None where there is no such file.
        stats: The table that the model is learnt from; None where there is no such file.
    """

    schema: Schema
    graph: Mapping[str, list[str]]
    order: list[str]
    merits: Mapping[str, float] = field(default_factory=dict)
    records: Path | None = None
    stats: Path | None = None


def read_paper_files(folder: str | Path, *, prefix: str | None = None) -> PaperFiles:
    """Return what the files in a folder say: domains, buckets, graph, order, where the rows are.

    ``attrs`` and ``grps`` must be there. Without ``dag``, and without ``order``, there is no
    graph and no order. No row is read.

    Args:
        folder: Where the files are.
        prefix: What stands before ``_attrs.csv``; left out: what the one such file has.

    Raises:
        InputError: A file is absent, or two of them contradict each other.
    """
    folder = Path(folder)
    start = f"{_find_prefix(folder) if prefix is None else prefix}_"
    paths = {name: folder / f"{start}{name}.csv" for name in get_args(PaperFile)}
    schema = _read_schema(paths["attrs"], paths["grps"])
    graph: dict[str, list[str]] = {}
    merits: dict[str, float] = {}
    order: list[str] = []
    if paths["dag"].is_file():
        graph, merits = _read_dag(paths["dag"], schema.names)
    if paths["order"].is_file():
        order = _read_order(paths["order"], schema.names)
    records, stats = (paths[name] if paths[name].is_file() else None for name in _PARTS)
    return PaperFiles(
        schema=schema, graph=graph, order=order, merits=merits, records=records, stats=stats
    )


def write_paper_files(
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
    """Write the six files, for the authors' tool to read.

    Args:
        folder: Where to; made if it is not there. Two of the files hold the rows: confidential.
        schema: Its attributes must be lists of values, without missing cells.
        graph: The parents of each attribute; one that is absent has none.
        order: All attributes, in the order in which they are to be visited.
        records: The rows that seeds are drawn from.
        stats: The rows that the model is learnt from.
        merits: The merit of each attribute's parents; their tool prints it only. Left out: 0.
        prefix: What the files' names begin with.

    Raises:
        SchemaError: The schema has something that those files cannot say.
        ConfigError: Graph or order are not about the schema's attributes.
        OutputError: They cannot be written there.
    """
    merits = {} if merits is None else merits
    number = {name: str(at) for at, name in enumerate(schema.names, start=1)}
    _require_names(graph, order, number)
    lines = {
        "attrs": [[a.name, *_listed(a)] for a in schema.attributes],
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
            frame.select(schema.names).write_csv(f"{start}{name}.csv")
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written to ({error.strerror}). Make room, or choose a folder that "
            "you may write to."
        ) from None


def _find_prefix(folder: Path) -> str:
    found = sorted(path.name.removesuffix("_attrs.csv") for path in folder.glob("*_attrs.csv"))
    if len(found) != 1:
        raise SchemaError(
            f"{folder}: {len(found)} files end in _attrs.csv, where one is needed. Correct the "
            "folder, or say which with prefix"
        )
    return found[0]


def _read_lines(path: Path, error: type[InputError]) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as cause:
        raise error(
            f"{path}: cannot be read ({type(cause).__name__}); check that it is there, and UTF-8"
        ) from None
    return rows


def _read_schema(attrs: Path, grps: Path) -> Schema:
    named, grouped = _read_lines(attrs, SchemaError), _read_lines(grps, SchemaError)
    if len(named) != len(grouped):
        raise SchemaError(
            f"{attrs.name} has {len(named)} lines and {grps.name} {len(grouped)}; give each "
            "attribute one in both"
        )
    attributes = []
    for line, ((name, *texts), groups) in enumerate(zip(named, grouped, strict=True), start=1):
        if len(texts) != len(groups):
            raise SchemaError(
                f"{grps.name}, line {line}: {len(groups)} buckets for the {len(texts)} values of "
                f'"{name}"; give each value one'
            )
        attribute = Attribute(name=name, kind="categorical", values=_values(texts))
        buckets: dict[str, list[Value]] = {}
        for value, bucket in zip(attribute.values, groups, strict=True):
            buckets.setdefault(bucket, []).append(value)
        attributes.append(attribute.with_bucket_groups(list(buckets.values())))
    return Schema(tuple(attributes))


def _values(texts: Sequence[str]) -> tuple[Value, ...]:
    """Return whole numbers where all texts are, written as a number is; else the texts."""
    numbers = [whole_number(text) for text in texts]
    if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
        return tuple(number for number in numbers if number is not None)
    return tuple(texts)


def _read_dag(path: Path, names: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, float]]:
    lines = _read_lines(path, ConfigError)
    if len(lines) != len(names):
        raise ConfigError(f"{path.name} has {len(lines)} lines for {len(names)} attributes")
    graph, merits = {}, {}
    for at, (name, (*parents, merit)) in enumerate(zip(names, lines, strict=True), start=1):
        graph[name] = [_named(parent, names, f"{path.name}, line {at}") for parent in parents]
        try:
            merits[name] = float(merit)
        except ValueError:
            raise ConfigError(
                f"{path.name}, line {at}: it must end in a merit, a number; without parents, in 0"
            ) from None
    return graph, merits


def _read_order(path: Path, names: Sequence[str]) -> list[str]:
    lines = _read_lines(path, ConfigError)
    order = [
        _named(line[0], names, f"{path.name}, line {at}") for at, line in enumerate(lines, start=1)
    ]
    if sorted(order) != sorted(names):
        raise ConfigError(f"{path.name}: name each of the {len(names)} attributes once")
    return order


def _named(number: str, names: Sequence[str], place: str) -> str:
    at = whole_number(number)
    if at is None or not 1 <= at <= len(names):
        raise ConfigError(f"{place}: an attribute is a number from 1 to {len(names)}; correct it")
    return names[at - 1]


def _listed(attribute: Attribute) -> list[str]:
    """Return an attribute's values as cells; refuse what the files cannot say."""
    if attribute.missing:
        raise attribute.error(
            "the authors' tool knows no missing cells; write them as a value of their own first"
        )
    if attribute.is_numeric and (attribute.kind != "integer" or attribute.is_binned):
        raise attribute.error(
            "the authors' tool knows lists of values only; leave the column out, or group it into "
            "whole numbers first"
        )
    texts = [str(value) for value in attribute.values]
    if any(_SEPARATORS & set(text) for text in (attribute.name, *texts)):
        raise attribute.error(
            "a name or a value has a comma, a quote or a line break, where the authors' tool "
            "would split it; write it without"
        )
    return texts


def _require_names(
    graph: Mapping[str, Sequence[str]], order: Sequence[str], known: Mapping[str, str]
) -> None:
    named = {*graph, *(parent for parents in graph.values() for parent in parents)}
    if foreign := sorted(named - set(known)):
        raise ConfigError(f'the graph names "{foreign[0]}", which is no attribute; correct it')
    if sorted(order) != sorted(known):
        raise ConfigError(f"order must name each of the {len(known)} attributes once")
