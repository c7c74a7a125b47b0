"""Schema: public knowledge about a table. Read from, and written to, schema.toml."""

import difflib
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from deniable.data.attributes import LARGEST, Attribute, Outside, Value, show
from deniable.data.codec import Codec
from deniable.errors import OutputError, SchemaError

FORMAT = 1
ROWS_MAX = 10_000_000
_WIDTH = 100

_TOP_KEYS = ("format", "rows_max", "attribute")
_COMMON_KEYS = ("name", "type", "buckets", "missing", "outside", "confirmed")

# Part of the format, understood by a later version: not a typing error of its writer.
_LATER_TOP_KEYS = ("unit", "max_rows_per_unit", "constraint")
_LATER_KEYS = ("decimals", "date_format")
_LATER_TYPES = ("ordered", "real", "boolean", "date", "datetime", "text", "identifier", "constant")


@dataclass(frozen=True)
class Schema:
    """What every column of a table may hold.

    Attributes:
        attributes: One per column; their order is that of the columns of codes.
        rows_max: A public guess of the table's size. It steers noise, never the guarantee.
    """

    attributes: tuple[Attribute, ...]
    rows_max: int = ROWS_MAX
    codec: Codec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "codec", Codec(self.attributes))
        if type(self.rows_max) is not int or self.rows_max < 1:
            raise SchemaError("rows_max is a whole number, at least 1: a guess of the table's size")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' numbers of codes."""
        return tuple(attribute.size for attribute in self.attributes)

    @classmethod
    def read(cls, path: str | Path) -> "Schema":
        """Return the schema in a TOML file.

        Raises:
            SchemaError: There is no such file, or it does not hold a schema.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise SchemaError(
                f"{path}: there is no such file; describe the table's columns there (README.md)"
            ) from None
        except UnicodeDecodeError as error:
            raise SchemaError(
                f"{path}: byte {error.start:,} is not UTF-8; save the file as UTF-8"
            ) from None
        except OSError as error:
            raise SchemaError(f"{path}: cannot be read ({error.strerror})") from None
        try:
            return cls.parse(text)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text: str) -> "Schema":
        """Return the schema that a TOML text says.

        Raises:
            SchemaError: It is not TOML, not a schema, or contradicts itself.
        """
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"not TOML: {error}. Correct the text there") from None
        if document.get("format") != FORMAT:
            newer = "; another number is for another version of deniable"
            raise SchemaError(f"its first line must be: format = {FORMAT}{newer}")
        _require_keys(document, _TOP_KEYS, later=_LATER_TOP_KEYS, place="the schema")
        tables = document.get("attribute", [])
        if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
            raise SchemaError("attribute is not a list of tables: begin each with [[attribute]]")
        attributes = [_read_attribute(table, i + 1) for i, table in enumerate(tables)]
        return cls(tuple(attributes), rows_max=document.get("rows_max", ROWS_MAX))

    def write(self, path: str | Path) -> None:
        """Write the schema to a TOML file.

        Raises:
            OutputError: It cannot be written there.
        """
        try:
            Path(path).write_text(self.text(), encoding="utf-8", newline="\n")
        except OSError as error:
            raise OutputError(
                f"{path} cannot be written ({error.strerror}). Make room, or choose a folder that "
                "exists and that you may write to."
            ) from None

    def text(self) -> str:
        """Return the schema as TOML that reads back equal."""
        head = f"format = {FORMAT}\nrows_max = {self.rows_max:_}\n"
        return "\n".join([head, *map(_write_attribute, self.attributes)])


def _require_keys(
    table: Mapping[str, Any], known: Sequence[str], *, later: Sequence[str], place: str
) -> None:
    for key in table:
        if key in later:
            raise SchemaError(f'{place}: "{key}" is not supported yet; remove it')
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"it may have: {', '.join(known)}"
            raise SchemaError(f'{place}: unknown key "{key}"; {hint}')


def _read_attribute(table: Mapping[str, Any], number: int) -> Attribute:
    """Return the attribute that the ``number``-th table describes."""
    name = table.get("name")
    if type(name) is not str or not name:
        raise SchemaError(f"attribute number {number} has no name: set it to the column's header")
    kind, place = table.get("type"), f'attribute "{name}"'
    if kind in _LATER_TYPES:
        raise SchemaError(f'{place}: type = "{kind}" is not supported yet; use "categorical"')
    if type(kind) is not str or kind not in _KINDS:
        raise SchemaError(f"{place}: set type to one of: {', '.join(map(show, _KINDS))}")
    read, keys, _ = _KINDS[kind]
    _require_keys(table, (*_COMMON_KEYS, *keys), later=_LATER_KEYS, place=place)
    attribute = replace(
        read(table, place),
        missing=tuple(_list(table.get("missing", []), f"{place}: missing")),
        outside=_outside(table.get("outside", "error"), place),
        confirmed=_boolean(table.get("confirmed", True), f"{place}: confirmed"),
        groups=(),
    )
    return _bucketed(attribute, table["buckets"]) if "buckets" in table else attribute


def _read_categorical(table: Mapping[str, Any], place: str) -> Attribute:
    values = _list(table.get("values", []), f"{place}: values")
    return Attribute(name=table["name"], kind="categorical", values=tuple(values))


def _read_integer(table: Mapping[str, Any], place: str) -> Attribute:
    ends = [table.get("min"), table.get("max")]
    if not all(type(end) is int and abs(end) < LARGEST for end in ends):
        raise SchemaError(f"{place}: an integer needs min and max, whole numbers below 2^62")
    return Attribute(name=table["name"], kind="integer", values=range(ends[0], ends[1] + 1))  # type: ignore[arg-type,operator]


def _write_categorical(attribute: Attribute) -> list[str]:
    return [f"values = {_write_items(map(_write_value, attribute.values))}"]


def _write_integer(attribute: Attribute) -> list[str]:
    return [f"min = {attribute.values[0]}", f"max = {attribute.values[-1]}"]


_Reader = Callable[[Mapping[str, Any], str], Attribute]
_Writer = Callable[[Attribute], list[str]]

# How each type is read, the keys that it alone has, and how they are written.
_KINDS: dict[str, tuple[_Reader, tuple[str, ...], _Writer]] = {
    "categorical": (_read_categorical, ("values",), _write_categorical),
    "integer": (_read_integer, ("min", "max"), _write_integer),
}


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise SchemaError(f"{what} is not a list; write it in [brackets]")
    if any(isinstance(item, list | dict) for item in value):
        raise SchemaError(f"{what} is a list of single values; remove the inner brackets")
    return value


def _boolean(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"{what} is true or false, without quotes")
    return value


def _outside(value: object, place: str) -> Outside:
    for known in get_args(Outside):
        if value == known:
            outside: Outside = known
            return outside
    raise SchemaError(f'{place}: outside is "error", "drop" or (integers) "clip"')


def _bucketed(attribute: Attribute, buckets: object) -> Attribute:
    if isinstance(buckets, dict):
        if list(buckets) != ["width"]:
            raise attribute.error("buckets as a table has one key: buckets = { width = … }")
        return attribute.with_bucket_width(buckets["width"])
    if not (isinstance(buckets, list) and all(isinstance(group, list) for group in buckets)):
        raise attribute.error("buckets is { width = … }, or a list of lists of values")
    what = f'attribute "{attribute.name}": each of its buckets'
    return attribute.with_bucket_groups([_list(group, what) for group in buckets])


def _write_attribute(attribute: Attribute) -> str:
    write = _KINDS[attribute.kind][2]
    lines = ["[[attribute]]", f"name = {_write_value(attribute.name)}"]
    lines += [f'type = "{attribute.kind}"', *write(attribute)]
    if attribute.is_bucketed:
        lines.append(_write_buckets(attribute))
    if attribute.missing:
        lines.append(f"missing = {_write_items(map(_write_value, attribute.missing))}")
    if attribute.outside != "error":
        lines.append(f'outside = "{attribute.outside}"')
    if not attribute.confirmed:
        lines.append("confirmed = false")
    return "\n".join(lines) + "\n"


def _write_buckets(attribute: Attribute) -> str:
    width = attribute.groups.count(0)
    if attribute.kind == "integer" and attribute == attribute.with_bucket_width(width):
        return f"buckets = {{ width = {width} }}"
    groups: list[list[Value]] = [[] for _ in range(attribute.buckets)]
    for value, bucket in zip(attribute.values, attribute.groups, strict=False):
        groups[bucket].append(value)
    texts = (_write_items(map(_write_value, group), indent=1) for group in groups if group)
    return f"buckets = {_write_items(texts)}"


def _write_items(items: Iterable[str], *, indent: int = 0) -> str:
    """Return a TOML list: on one line if it fits, else filled lines of its items."""
    texts, margin = list(items), " " * 4 * (indent + 1)
    whole = f"[{', '.join(texts)}]"
    if len(whole) <= _WIDTH - 20 and "\n" not in whole:
        return whole
    lines = [margin]
    for text in texts:
        if lines[-1] != margin and (len(lines[-1]) + len(text) + 2 > _WIDTH or "\n" in text):
            lines.append(margin)
        lines[-1] += f"{' ' if lines[-1] != margin else ''}{text},"
        if "\n" in text:
            lines.append(margin)
    return "\n".join(["[", *filter(str.strip, lines), " " * 4 * indent + "]"])


def _write_value(value: Value) -> str:
    # JSON escapes all that TOML asks for, except DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
