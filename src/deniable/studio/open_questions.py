"""Questions that a draft leaves to its reader, with answers that are one click away.

A draft lists them as numbered comments at the top of schema.toml, each with the columns that it is
about. A question is open as long as one of its columns is not confirmed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from deniable.files import parse_toml

_START = re.compile(r"#\s*To decide:")
_ITEM = re.compile(r"#\s+(\d+)\.\s+(.*)")
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')
_AND_MORE = re.compile(r" and (\d+) more: ")
_MANY_ROWS = re.compile(r"many rows have (\S+): if it means missing", re.IGNORECASE)


@dataclass(frozen=True)
class OpenQuestion:
    """One note of a draft.

    Attributes:
        text: The note, without the names in front.
        columns: The columns it is about; empty if it is about the table.
        hidden: The number of further columns, which the note does not name.
    """

    text: str
    columns: tuple[str, ...]
    hidden: int = 0


@dataclass(frozen=True)
class Answer:
    """One answer to a question about a column.

    Attributes:
        name: The answer, as the form sends it.
        label: The words on its button.
    """

    name: str
    label: str


def read_questions(text: str) -> list[OpenQuestion]:
    """Read the numbered notes at the top of a draft."""
    items: list[str] = []
    is_list = False
    for line in text.splitlines():
        if _START.match(line):
            is_list = True
        elif not line.startswith("#"):
            if is_list:
                break
        elif is_list and (found := _ITEM.match(line)):
            items.append(found[2])
        elif is_list and items:
            items[-1] += f" {line.removeprefix('#').strip()}"
    return [_parse(item) for item in items]


def _parse(item: str) -> OpenQuestion:
    """Split a note into the names of its columns and its text."""
    names: list[str] = []
    rest = item
    while found := _NAME.match(rest):
        after = rest[found.end() :]
        if not after.startswith((", ", ": ", " and ")):
            break
        try:
            names.append(str(parse_toml(f"name = {found.group()}")["name"]))
        except ValueError:
            break
        if after.startswith(": "):
            return OpenQuestion(_sentence(after[2:]), tuple(names))
        if more := _AND_MORE.match(after):
            return OpenQuestion(_sentence(after[more.end() :]), tuple(names), int(more[1]))
        rest = after.removeprefix(", ")
    return OpenQuestion(_sentence(item), ())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


_KEEP = Answer("keep", "Correct as it is")
# A phrase of a note, and the answers to it. The first confirms the column as it is.
_ANSWERS: tuple[tuple[str, tuple[Answer, ...]], ...] = (
    (
        "taken for an identifier",
        (Answer("keep", "It is one: make up new ones"), Answer("omit", "Leave the column out")),
    ),
    (
        "almost every row has its own value",
        (Answer("keep", "It is a measurement"), Answer("identifier", "It identifies a person")),
    ),
    (
        "does it identify persons",
        (
            Answer("keep", "No: it is a value"),
            Answer("unit", "Yes: it identifies whose rows these are"),
        ),
    ),
    (
        "if it means missing",
        (Answer("keep", "It is a value"), Answer("missing", "It means missing")),
    ),
    (
        'taken to have an order ("ordered")',
        (Answer("keep", "They have this order"), Answer("categorical", "They have no order")),
    ),
    (
        "every row has the same value",
        (Answer("keep", "All records shall have it"), Answer("omit", "Leave the column out")),
    ),
    ("listing them discloses", (Answer("keep", "The whole list is public"),)),
    ("it is computed from", (Answer("keep", "It follows from the other column"),)),
)


def answers_to(question: OpenQuestion) -> list[Answer]:
    """The answers to a question about a column; the first confirms the column as it is."""
    text = question.text.lower()
    return list(next((found for phrase, found in _ANSWERS if phrase in text), (_KEEP,)))


def apply_answer(
    name: str, column: Mapping[str, Any], questions: Sequence[OpenQuestion]
) -> dict[str, object]:
    """The keys of an ``[[attribute]]`` that an answer sets, and confirms.

    Args:
        name: The answer.
        column: The attribute, as TOML.
        questions: The questions about this column.

    Returns:
        Values by key; None removes a key.
    """
    drop = {key: None for key in column if key not in ("name", "type", "missing", "outside")}
    if name == "omit":
        return {**drop, "type": "identifier", "release": "omit", "missing": None, "confirmed": True}
    if name in ("identifier", "unit"):
        return {**drop, "type": "identifier", "confirmed": True}
    if name == "categorical":
        return {"type": "categorical", "confirmed": True}
    if name == "missing":
        codes = [code for each in questions if (code := code_of(each))]
        known = [*column.get("missing", []), *codes]
        # Not confirmed: the new bound is only the next number, and should be looked at.
        return {"missing": list(dict.fromkeys(known)), **_without_codes(column, codes)}
    return {"confirmed": True}


def code_of(question: OpenQuestion) -> str:
    """The number of which a note asks whether it means missing; "" for other notes."""
    found = _MANY_ROWS.search(question.text)
    return found[1] if found else ""


def _without_codes(column: Mapping[str, Any], codes: Sequence[str]) -> dict[str, object]:
    """Move the bounds of a column so that codes at their ends lie outside."""
    low, high = (Decimal(str(column.get(key, 0))) for key in ("min", "max"))
    step = Decimal(1).scaleb(-int(column.get("decimals", 0)))
    for code in codes:
        number = Decimal(code)
        if low <= number <= high and number > (low + high) / 2:
            high = number - step
        elif low <= number <= high:
            low = number + step
    bounds = {"min": low, "max": high}
    whole = column.get("type") == "integer"
    return {key: int(value) if whole else value for key, value in bounds.items()}
