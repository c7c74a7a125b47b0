"""Open questions of a draft, with answers that a page offers as buttons.

A draft lists them as numbered comments at the top of schema.toml, each with the columns that it is
about. A question is open as long as one of its columns is not confirmed.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from deniable.files import parse_toml
from deniable.studio.column_form import mapped_pairs
from deniable.studio.note_words import without_keys

_START = re.compile(r"#\s*To decide:")
_ITEM = re.compile(r"#\s+(\d+)\.\s+(.*)")
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')
_AND_MORE = re.compile(r" and (\d+) more: ")
_MAYBE_MISSING = re.compile(r"many rows have (\S+): if it means missing", re.IGNORECASE)
_TAKEN_FOR_MISSING = re.compile(r"(-?\d+(?: and -?\d+)*) (?:is|are) taken to mean missing")
# Names of the value that stands for all rare ones; the first that is free is taken.
_OTHER = ("other", "(other)", *(f"(other {number})" for number in range(2, 1000)))
# How a note, which must not quote a cell, begins that is about a text among numbers.
_ONE_TEXT = "One text among its numbers"
# Codes that one click lists as categories.
_MAX_CODES = 200


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

    @property
    def plain_text(self) -> str:
        """The note for a reader who does not see the file: without its keys."""
        return without_keys(self.text)


def question_text(question: OpenQuestion, column: Mapping[str, Any]) -> str:
    """A note as the page of its column shows it: with the text that was taken for missing."""
    codes = [each for each in column.get("missing", []) if each]
    named = f"“{codes[0]}” among its numbers" if len(codes) == 1 else _ONE_TEXT
    return question.plain_text.replace(_ONE_TEXT, named)


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


# What a note says of values that few rows have.
_RARE = "listing them discloses"
# What a note says of free text. Its columns are texts, or identifiers if no text is frequent.
_FREE_TEXT = "different texts"
_OMIT = Answer("omit", "Leave the column out")
# The question about texts that no note is about. They are listed with it.
TEXTS = OpenQuestion("These texts would be published with the schema.", ())
# What a note says of a column that follows from another.
_COMPUTED = "it is computed from"
_KEEP = Answer("keep", "Correct as it is")
CODES = Answer("codes", "Codes without an order")
# A phrase of a note, and the answers to it. The first confirms the column as it is.
_ANSWERS: tuple[tuple[str, tuple[Answer, ...]], ...] = (
    (
        "taken for an identifier",
        (Answer("keep", "It is one: make up new ones"), _OMIT),
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
        "among its numbers",  # some texts, which the note does not show
        (Answer("keep", "Yes, it means missing"), Answer("edit", "No: edit the column")),
    ),
    (
        "taken to mean missing",
        (Answer("keep", "Yes, it means missing"), Answer("value", "No, it is a value")),
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
        (Answer("keep", "All records shall have it"), _OMIT),
    ),
    (
        "codes without an order",
        (Answer("keep", "Quantities, or in this order"), CODES),
    ),
    (
        _RARE,
        (Answer("keep", "The whole list is public"), Answer("frequent", "Gather the rare values")),
    ),
    (
        _COMPUTED,
        (
            Answer("keep", "It always follows from it"),
            Answer("own", "No: it is a column of its own"),
        ),
    ),
    (
        "its numbers look like codes",
        (
            Answer("keep", "Codes, and their list is public"),
            Answer("edit", "Amounts: edit the column"),
        ),
    ),
    (
        "only these numbers occur",
        (
            Answer("keep", "Only these can occur"),
            Answer("edit", "Others can occur: edit it"),
            CODES,
        ),
    ),
)


def questions_about(
    column: Mapping[str, Any], questions: Sequence[OpenQuestion]
) -> list[OpenQuestion]:
    """The open questions about a column; whether texts are public is always one.

    Args:
        column: The attribute, as TOML.
        questions: The questions of the draft.
    """
    if column.get("confirmed", True) is True:
        return []
    about = [each for each in questions if column.get("name") in each.columns]
    found = [each for each in about if not is_settled(each, column)]
    is_asked = any(_FREE_TEXT in each.text for each in found)
    return found if is_asked or column.get("type") != "text" else [*found, TEXTS]


def answers_to(question: OpenQuestion, column: Mapping[str, Any] | None = None) -> list[Answer]:
    """The answers to a question about a column; the first is that of most columns.

    Args:
        question: The question.
        column: The attribute, as TOML: an answer that it cannot take is left out.
    """
    given = column or {}
    text = question.text.lower()
    if question == TEXTS or _FREE_TEXT in text:
        is_text = given.get("type") == "text"
        keep = "All of them are public: keep them" if is_text else "Keep it, with made-up texts"
        return [_OMIT, Answer("keep", keep)]
    found = next((found for phrase, found in _ANSWERS if phrase in text), (_KEEP,))
    return [each for each in found if each.name != "codes" or codes_of(given)]


def codes_of(column: Mapping[str, Any]) -> list[int]:
    """The whole numbers of a column, as categories; none if they are too many, or not whole."""
    low, high = column.get("min"), column.get("max")
    found = column.get("values", [])
    if type(low) is int and type(high) is int and 0 <= high - low < _MAX_CODES:
        found = range(low, high + 1)
    if column.get("type") not in ("integer", "ordered") or any(
        type(each) is not int for each in found
    ):
        return []
    missing = column.get("missing", [])
    return [each for each in found if str(each) not in missing]


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
    if name in ("identifier", "unit", "omit"):
        omitted = {"release": "omit", "missing": None} if name == "omit" else {}
        return {**drop, **omitted, "type": "identifier", "confirmed": True}
    if name in ("categorical", "codes"):
        # Numbers that the draft did not list are to be looked at.
        listed = {**drop, "values": codes_of(column)} if name == "codes" else {}
        clip = {"outside": None} if column.get("outside") == "clip" else {}
        return {**listed, **clip, "type": "categorical", "confirmed": name != "codes"}
    if name == "missing":
        codes = [code for each in questions if (code := code_of(each))]
        known = [*column.get("missing", []), *codes]
        # Not confirmed: the new bound is only the next number, and should be looked at.
        return {"missing": list(dict.fromkeys(known)), **_without_codes(column, codes)}
    if name == "value":
        codes = [code for each in questions for code in taken_codes(each)]
        kept = [each for each in column.get("missing", []) if each not in codes]
        # Not confirmed, for the same reason.
        return {"missing": kept or None, **_with_codes(column, codes)}
    return {} if name == "edit" else {"confirmed": True}


def gather_rare(column: Mapping[str, Any], frequent: Collection[str]) -> dict[str, object]:
    """The keys of an ``[[attribute]]`` whose rare values become one: the answer "frequent".

    It is not confirmed: which values are frequent was read off the data.

    Args:
        column: The attribute, as TOML.
        frequent: Its values that are not rare.
    """
    dropped = {key: None for key in column if key not in ("name", "missing")}
    kept = [each for each in column.get("values", []) if each in frequent]
    taken = {*kept, *column.get("missing", [])}
    other = next(each for each in _OTHER if each not in taken)
    return {**dropped, "type": "text", "values": kept, "other": other, "confirmed": False}


def own_column(column: Mapping[str, Any]) -> dict[str, object]:
    """The keys of a computed ``[[attribute]]`` that does not follow from another: answer "own".

    It is not confirmed: its values or bounds were read off the data.
    """
    missing = column.get("missing", [])
    found = list(
        dict.fromkeys(each for _, each in mapped_pairs(column) if str(each) not in missing)
    )
    dropped = {key: None for key in column if key not in ("name", "missing")}
    if all(type(each) in (int, float, Decimal) for each in found):
        numbers = [Decimal(str(each)) for each in found]
        digits = max((-int(each.as_tuple().exponent) for each in numbers), default=0)
        low, high = min(numbers, default=Decimal(0)), max(numbers, default=Decimal(0))
        if digits <= 0:
            bounds = {"type": "integer", "min": int(low), "max": int(high)}
        else:
            bounds = {"type": "real", "min": low, "max": high, "decimals": digits}
        return {**dropped, **bounds, "confirmed": False}
    texts = sorted(map(str, found))
    return {**dropped, "type": "categorical", "values": texts, "confirmed": False}


def taken_codes(question: OpenQuestion) -> tuple[str, ...]:
    """The numbers that the draft took for codes of missing, according to a note."""
    found = _TAKEN_FOR_MISSING.search(question.text)
    return tuple(found[1].split(" and ")) if found else ()


def is_settled(question: OpenQuestion, column: Mapping[str, Any]) -> bool:
    """Whether a question was answered: by the type of the column, or what it takes for missing."""
    missing = column.get("missing", [])
    if _RARE in question.text:
        return column.get("type") == "text"
    if _COMPUTED in question.text.lower():
        return column.get("type") != "computed"
    if code := code_of(question):
        return code in missing
    codes = taken_codes(question)
    return bool(codes) and not set(codes) & set(missing)


def code_of(question: OpenQuestion) -> str:
    """The number of which a note asks whether it means missing; "" for other notes."""
    found = _MAYBE_MISSING.search(question.text)
    return found[1] if found else ""


def _with_codes(column: Mapping[str, Any], codes: Sequence[str]) -> dict[str, object]:
    """Widen the bounds or the list of a column so that codes are among its values."""
    if "values" in column:
        listed = list(column["values"])
        if all(isinstance(each, int) for each in listed):
            return {"values": sorted({*listed, *map(int, codes)})}
        return {"values": [*listed, *(code for code in codes if code not in listed)]}
    if "min" not in column or "max" not in column:
        return {}
    numbers = [Decimal(code) for code in codes]
    low = min([Decimal(str(column["min"])), *numbers])
    high = max([Decimal(str(column["max"])), *numbers])
    whole = column.get("type") == "integer"
    return {"min": int(low) if whole else low, "max": int(high) if whole else high}


def _without_codes(column: Mapping[str, Any], codes: Sequence[str]) -> dict[str, object]:
    """Lower the upper bound of a column so that codes at it lie outside."""
    low, high = (Decimal(str(column.get(key, 0))) for key in ("min", "max"))
    step = Decimal(str(column.get("step", Decimal(1).scaleb(-int(column.get("decimals", 0))))))
    for code in codes:
        number = Decimal(code)
        if low <= number <= high and number > (low + high) / 2:
            high = number - step
    bounds = {"min": low, "max": high}
    whole = column.get("type") == "integer"
    changed = {key: int(value) if whole else value for key, value in bounds.items()}
    return {**changed, **_bins_within(column, low, high)}


def _bins_within(column: Mapping[str, Any], low: Decimal, high: Decimal) -> dict[str, object]:
    """The bins of a column, without edges and values alone that are outside of new bounds."""
    bins = dict(column.get("bins", {}))
    for key in {"edges", "alone"} & set(bins):
        numbers = {each: Decimal(str(each)) for each in bins[key]}
        least = low if key == "alone" else low.next_plus()
        bins[key] = [each for each, number in numbers.items() if least <= number <= high]
    return {"bins": {key: value for key, value in bins.items() if value != []} or None}
