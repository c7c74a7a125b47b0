"""Columns of text: a list of values, or the frequent ones and the rest."""

import math
import re
from collections.abc import Sequence

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.attributes import READ, Described, Field, Plain

# Up to here a list of values is one that somebody may read.
_SHORT = 200
# More values than this have no buckets of their own accord.
MOST_UNGROUPED = 30
# A value of fewer rows is rare: to name it in a schema says that somebody has it.
RARE = 10
# Text of which people write a sentence.
_LONG = 40
_MOST_FREQUENT = 500

# 16-24, 25 to 34, 65+, < 5: ranges have an order; codes that hold digits have none.
_RANGE = re.compile(r"^[<>≤≥]?\s*(\d[\d.,]*)\s*(?:(?:-|–|to)\s*(\d[\d.,]*)|\D*)$")
# 18:46, 6:46PM, 18:46:51.250
_CLOCK = re.compile(r"^\d{1,2}:[0-5]\d(:[0-5]\d([.,]\d+)?)?\s?([AaPp]\.?[Mm]\.?)?$")


def describe_texts(
    name: str, values: Sequence[str], counts: Counts, missing: Sequence[str]
) -> Described:
    """Return what a draft says of a column of text, by its distinct values."""
    if _is_free(values, counts):
        return _describe_free(name, values, counts, missing)
    ordered = _in_order(values)
    fields = [Field("values", [*(ordered or sorted(values))], READ)]
    if missing:
        fields.append(Field("missing", [*missing], READ))
    notes = []
    if len(values) > MOST_UNGROUPED:
        notes.append(
            f"it has {len(values):,} values and no buckets: give groups of values "
            "(buckets = [[…], …]) if it is to predict other columns; which belong together only "
            "you can say"
        )
    if rare := int((counts < RARE).sum()):
        notes.append(
            f"{rare:,} of its {len(values):,} values {'is' if rare == 1 else 'are'} rare (fewer "
            f"than {RARE} rows): a list that names them tells that somebody has them. Take the "
            'list from the data dictionary, or make it "text" with the frequent values'
        )
    if ordered:
        notes.append('its values are taken to be in order ("ordered"): check the order')
    return Described(
        name=name,
        kind="ordered" if ordered else "categorical",
        fields=tuple(fields),
        notes=tuple(notes),
    )


def are_times(texts: Sequence[str]) -> bool:
    """Return whether all texts are times of day."""
    return bool(texts) and all(_CLOCK.match(text.strip()) for text in texts)


def _is_free(values: Sequence[str], counts: Counts) -> bool:
    """Whether people wrote what they liked: long texts, or so many that most are rare."""
    if len(values) <= RARE:
        return False
    rows = int(counts.sum())
    length = int(np.array([len(value) for value in values]) @ counts) / rows
    if length > _LONG and len(values) > _SHORT:
        return True
    if 2 * len(values) > rows:
        return True
    rare = int(counts[counts < RARE].sum())
    return len(values) > _SHORT and 2 * rare > rows


def _describe_free(
    name: str, values: Sequence[str], counts: Counts, missing: Sequence[str]
) -> Described:
    rows = int(counts.sum())
    order = np.argsort(-counts, kind="stable")[:_MOST_FREQUENT]
    frequent = [values[i] for i in order if counts[i] >= max(2 * RARE, rows // 1_000)]
    if not frequent:
        return Described(
            name=name,
            kind="identifier",
            fields=(Field("release", "omit", "left out: hardly two rows have the same text"),),
            notes=(_left_out_note(values),),
        )
    covered = sum(int(counts[i]) for i in order[: len(frequent)]) / rows
    return describe_open_list(
        name,
        sorted(frequent),
        missing,
        notes=(
            f"{len(values):,} different texts, most of them rare: the {len(frequent):,} frequent "
            f"ones, {covered:.0%} of the rows, are values, the others become one. If there is a "
            "public list, make it categorical; if people wrote what they liked, remove the column",
        ),
    )


def _left_out_note(values: Sequence[str]) -> str:
    if are_times(values):
        return (
            f"times of day, {len(values):,} different ones, none of them frequent: it is left "
            "out. If it is needed, cut it to minutes or hours in the table"
        )
    return (
        f"text, {len(values):,} different ones, none of them frequent: it is left out. If there "
        "is a public list, make it categorical; if nobody needs it, remove the column"
    )


def describe_open_list(
    name: str,
    values: Sequence[str],
    missing: Sequence[str],
    *,
    why: str = READ,
    notes: tuple[str, ...] = (),
) -> Described:
    """Return a column of text with the values to keep, and one for all others."""
    taken = {*values, *missing}
    other = next(word for word in _OTHERS if word not in taken)
    fields = [Field("values", [*values], why), Field("other", other, "stands for all other texts")]
    if missing:
        fields.append(Field("missing", [*missing], why))
    return Described(name=name, kind="text", fields=tuple(fields), notes=notes)


_OTHERS = ("other", "(other)", "(another)", *(f"(other {i})" for i in range(2**16)))


def _in_order(values: Sequence[str]) -> list[Plain] | None:
    """Return texts that are ranges of numbers, like ages, in their order; else None."""
    matches = [_RANGE.match(value) for value in values]
    ends = [_ends(match) for match in matches if match]
    if len(values) < 3 or len(ends) < len(values):
        return None
    ranges = [pair for pair in ends if pair[1] is not None]
    if 2 * len(ranges) < len(values) or any(low >= (high or 0) for low, high in ranges):
        return None
    lows = [low for low, _ in ends]
    if len(set(lows)) < len(values):
        return None  # two that begin with the same number have no order that we know
    return [value for _, value in sorted(zip(lows, values, strict=True))]


def _ends(match: re.Match[str]) -> tuple[float, float | None]:
    """Return where a range begins and ends; a code with a leading zero begins beyond its end."""
    low, high = match[1], match[2]
    if low.startswith("0") and low.strip("0") != "":
        return math.inf, 0.0
    as_number = [float(text.replace(",", "").rstrip(".") or "nan") for text in (low, high or "0")]
    return as_number[0], as_number[1] if high else None
