"""The text of a draft: TOML with comments that a person reads from top to bottom."""

import json
import textwrap
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from deniable.drafting.attributes import Described, Plain, Toml

_WIDTH = 100
_COMMENT_AT = 34
_MOST_NAMES = 12


def write_attribute(described: Described) -> str:
    """Return the ``[[attribute]]`` of one column."""
    lines = ["[[attribute]]"]
    lines += _line("name", described.name)
    lines += _line("type", described.kind)
    for field in described.fields:
        lines += _line(field.key, field.value, field.why)
    lines += _line("confirmed", described.confirmed, described.why)
    for remark in described.remarks:
        lines += comment(remark)
    return "\n".join(lines) + "\n"


def comment(text: str, *, indent: str = "") -> list[str]:
    """Return a comment, in as many lines as it needs."""
    # A name may hold anything; TOML allows no control characters in a comment.
    return textwrap.wrap(
        "".join(sign if sign.isprintable() else " " for sign in text),
        _WIDTH,
        initial_indent=f"# {indent}",
        subsequent_indent=f"# {' ' * len(indent)}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def by_note(attributes: Iterable[Described]) -> list[str]:
    """Return what is to be decided, with the columns that each of it is about."""
    names: dict[str, list[str]] = {}
    for described in attributes:
        for note in described.notes:
            names.setdefault(note, []).append(write_value(described.name))
    return [
        f"{', '.join(about[:_MOST_NAMES])}"
        f"{f' and {len(about) - _MOST_NAMES} more' if len(about) > _MOST_NAMES else ''}: {note}."
        for note, about in names.items()
    ]


def numbered(notes: Iterable[str]) -> list[str]:
    """Return notes as a numbered list of comments."""
    lines: list[str] = []
    for number, note in enumerate(notes, 1):
        lines += comment(note, indent=f"{number:>3}. ")
    return lines


def _line(key: str, value: Toml, why: str = "") -> list[str]:
    written = f"{key} = {write_value(value)}"
    if not why:
        return written.split("\n")
    if "\n" in written or len(written) + len(why) + 4 > _WIDTH:
        return [f"# {key}: {why}", *written.split("\n")]
    return [f"{written:<{_COMMENT_AT - 2}}  # {why}"]


def write_value(value: Toml) -> str:
    """Return a value as TOML."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {write_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return _write_list([_write_plain(item) for item in value])
    return _write_plain(value)


def _write_list(items: Sequence[str]) -> str:
    """Return a list: on one line if it fits, else on filled lines."""
    whole = f"[{', '.join(items)}]"
    if len(whole) <= _WIDTH - 20:
        return whole
    lines = ["   "]
    for item in items:
        if len(lines[-1]) + len(item) + 2 > _WIDTH and lines[-1].strip():
            lines.append("   ")
        lines[-1] += f" {item},"
    return "\n".join(["[", *lines, "]"])


def _write_plain(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _write_decimal(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, date):
        return value.isoformat()
    # JSON escapes all that TOML asks for, except DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _write_decimal(value: Decimal) -> str:
    text = f"{value:f}"
    if "." not in text:
        return f"{text}.0"
    text = text.rstrip("0")
    return f"{text}0" if text.endswith(".") else text
