"""The form of one column: from its TOML keys to fields of a page, and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from deniable.errors import SchemaError

# Types in the words of a page, in the order in which they are offered.
TYPES = {
    "categorical": "categories",
    "ordered": "categories with an order",
    "boolean": "two values",
    "integer": "whole number",
    "real": "number with decimals",
    "date": "date",
    "datetime": "date and time",
    "text": "texts: frequent ones, and “other”",
    "identifier": "identifier: not learnt",
    "constant": "constant",
    "computed": "computed from other columns",
}
_LISTED = ("categorical", "ordered", "boolean", "text")
_RANGED = ("integer", "real", "date", "datetime")
# Keys of each type that the form shows, besides missing and outside.
FORM_KEYS: dict[str, tuple[str, ...]] = {
    "categorical": ("values",),
    "ordered": ("values",),
    "boolean": ("values",),
    "text": ("values", "other"),
    "integer": ("min", "max"),
    "real": ("min", "max", "decimals"),
    "date": ("min", "max", "format"),
    "datetime": ("min", "max", "format"),
    "identifier": ("release", "format"),
    "constant": ("value",),
    "computed": (),
}
# Keys that a change of the type keeps, where the new type has them too.
_KEPT = ("name", "type", "missing", "outside", "confirmed")
OUTSIDE = {
    "error": "stop with an error",
    "drop": "drop the row",
    "clip": "move it to the nearest bound",
}
# Values shown in the summary of a column.
_MAX_SUMMARY = 6
# Pairs shown of a column that follows from another.
_MAX_PAIRS = 3


@dataclass(frozen=True, kw_only=True)
class ColumnForm:
    """The fields of a column's form, as texts.

    Attributes:
        kind: The type.
        fields: The texts of the keys of this type.
        missing: The codes that mean missing, one a line, without the empty one.
        empty_is_missing: Whether an empty cell means missing.
        outside: What is done with a cell out of range.
        confirmed: Whether the column is confirmed.
        has_odd_values: Whether a value has a line break, so that a list by lines cannot hold it.
    """

    kind: str
    fields: Mapping[str, str]
    missing: str = ""
    empty_is_missing: bool = False
    outside: str = "error"
    confirmed: bool = False
    has_odd_values: bool = False

    @classmethod
    def of(cls, column: Mapping[str, Any]) -> "ColumnForm":
        """The form of a column, given as TOML."""
        kind = str(column.get("type", ""))
        missing = [str(each) for each in column.get("missing", [])]
        shown = {key: _write(column[key]) for key in FORM_KEYS.get(kind, ()) if key in column}
        listed = [*missing, *map(str, column.get("values", []))]
        return cls(
            kind=kind,
            fields=shown,
            missing="\n".join(each for each in missing if each),
            empty_is_missing="" in missing,
            outside=str(column.get("outside", "error")),
            confirmed=column.get("confirmed", True) is True,
            has_odd_values=any("\n" in each or "\r" in each for each in listed),
        )

    @classmethod
    def sent(cls, form: Mapping[str, str]) -> "ColumnForm":
        """The form that a page sent."""
        kind = form.get("type", "")
        keys = FORM_KEYS.get(kind, ())
        return cls(
            kind=kind,
            fields={key: _lines(form[key]) for key in keys if form.get(key, "") != ""},
            missing=_lines(form.get("missing", "")),
            empty_is_missing="empty_is_missing" in form,
            outside=form.get("outside", "error"),
            confirmed="confirmed" in form,
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the type."""
        return FORM_KEYS.get(self.kind, ())

    def values(self, column: Mapping[str, Any]) -> dict[str, object]:
        """The keys to set on a column; None removes one.

        Args:
            column: The column as it is, as TOML.

        Raises:
            SchemaError: A text cannot be read as what its key needs.
        """
        if self.kind not in FORM_KEYS:
            raise SchemaError("choose one of the types")
        found: dict[str, object] = {"type": self.kind}
        if self.kind != column.get("type"):
            found |= {key: None for key in column if key not in _KEPT}
        found |= {key: self._parse(key, column) for key in self.keys}
        codes = [line for line in self.missing.split("\n") if line]
        empty = [""] if self.empty_is_missing else []
        found["missing"] = _in_old_order([*empty, *codes], column.get("missing", [])) or None
        found["outside"] = None if self.outside == "error" else self.outside
        if self.outside == "error" and column.get("outside") == "error":
            found["outside"] = "error"
        # What a private draft found stays its own until a person says that it is public knowledge.
        drafted = column.get("confirmed") == "draft"
        found["confirmed"] = True if self.confirmed else "draft" if drafted else False
        if self.kind in ("constant", "computed"):
            found.pop("outside")
        return found

    def differs(self, column: Mapping[str, Any]) -> bool:
        """Whether it would change a column, given as TOML, or cannot be saved."""
        try:
            found = self.values(column)
        except SchemaError:
            return True
        old = {"confirmed": True, "release": "fresh", **column}
        return any(old.get(key) != value for key, value in found.items())

    def _parse(self, key: str, column: Mapping[str, Any]) -> object:
        """Read the text of a key; None if it is left empty."""
        text = self.fields.get(key, "")
        if key == "values":
            lines = [line for line in text.split("\n") if line != ""]
            return _as_before(lines, column.get("values", [])) or None
        if text == "":
            return None
        old = column.get(key)
        if key in ("min", "max"):
            return _unless_equal(_BOUNDS[self.kind](text.strip(), key), old)
        if key == "decimals":
            return _whole_number(text.strip(), key)
        if key == "value":
            return _as_before([text], [old])[0] if old is not None else text
        return text


def summarize(column: Mapping[str, Any]) -> str:
    """The values or the range of a column, in one line."""
    kind = column.get("type")
    if kind in _RANGED:
        return f"{_write(column.get('min', ''))} to {_write(column.get('max', ''))}"
    if kind in _LISTED:
        return _summarize_list(column)
    if kind == "identifier":
        return "left out" if column.get("release") == "omit" else "new ones are made up"
    if kind == "constant":
        return str(column.get("value", ""))
    if "from" not in column:
        return str(column.get("formula", ""))
    pairs = [f"{one} → {two}" for one, two in mapped_pairs(column)]
    more = f" and {len(pairs) - _MAX_PAIRS} more" if len(pairs) > _MAX_PAIRS else ""
    shown = f": {', '.join(pairs[:_MAX_PAIRS])}{more}" if pairs else ""
    return f"from {column['from']}{shown}"


def _summarize_list(column: Mapping[str, Any]) -> str:
    listed = [str(each) for each in column.get("values", ["false", "true"])]
    if not listed:
        return f"no value was frequent enough: all become “{column.get('other', 'other')}”"
    more = f" and {len(listed) - _MAX_SUMMARY} more" if len(listed) > _MAX_SUMMARY else ""
    return ", ".join(listed[:_MAX_SUMMARY]) + more


def mapped_pairs(column: Mapping[str, Any]) -> list[tuple[object, object]]:
    """What follows from what in a column that another one determines; odd entries are skipped."""
    found = column.get("map", column.get("steps"))
    listed = found if isinstance(found, list) else []
    return [(each[0], each[1]) for each in listed if isinstance(each, list) and len(each) == 2]


def convert(column: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Fill the fields of another type from what is known of a column, as far as it goes."""
    values = [str(each) for each in column.get("values", [])]
    found: dict[str, str] = {}
    if kind in _LISTED and values:
        found["values"] = "\n".join(values)
    elif (
        kind in _LISTED
        and isinstance(column.get("min"), int)
        and isinstance(column.get("max"), int)
    ):
        low, high = column["min"], column["max"]
        if high - low < 200:
            found["values"] = "\n".join(map(str, range(low, high + 1)))
    if kind in ("integer", "real"):
        numbers = [number for each in values if (number := _decimal(each)) is not None]
        if numbers:
            found |= {"min": f"{min(numbers):f}", "max": f"{max(numbers):f}"}
        found |= {key: _write(column[key]) for key in ("min", "max") if key in column}
    if kind == "text":
        found["other"] = "other"
    if kind == "real":
        found["decimals"] = "2"
    if kind == "identifier":
        found["release"] = "fresh"
    return found


def _write(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(str, value))
    if isinstance(value, datetime):
        return value.isoformat(sep="T")
    return value.isoformat() if isinstance(value, date) else str(value)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _in_old_order(codes: list[str], old: object) -> list[str]:
    """Keep the order of codes that were there: the first one is written back."""
    before = [code for code in old if code in codes] if isinstance(old, list) else []
    return [*before, *(code for code in dict.fromkeys(codes) if code not in before)]


def _as_before(lines: list[str], old: list[Any]) -> list[object]:
    """Give values the type that they had: numbers stay numbers, texts stay texts."""
    known = {str(each): each for each in old}
    are_whole = bool(old) and all(type(each) is int for each in old)
    return [known[line] if line in known else _guess(line, whole=are_whole) for line in lines]


def _guess(line: str, *, whole: bool) -> object:
    try:
        return int(line) if whole else line
    except ValueError:
        return line


def _unless_equal(new: object, old: object) -> object:
    """The old number if the new one equals it, so that it stays as it is written."""
    if type(old) in (int, float) and isinstance(new, Decimal | int) and float(new) == float(old):  # type: ignore[arg-type]
        return old
    return new


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _whole_number(text: str, key: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SchemaError(f"{key}: write a whole number, such as 0 or 120") from None


def _real_number(text: str, key: str) -> Decimal:
    if (number := _decimal(text)) is None:
        raise SchemaError(f"{key}: write a number, such as 0.5 or 120")
    return number


def _date(text: str, key: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SchemaError(f"{key}: write a date such as 2024-12-31") from None


def _datetime(text: str, key: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise SchemaError(f"{key}: write a time such as 2024-12-31T23:59:00") from None


_BOUNDS: dict[str, Callable[[str, str], object]] = {
    "integer": _whole_number,
    "real": _real_number,
    "date": _date,
    "datetime": _datetime,
}
