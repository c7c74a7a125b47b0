"""Text columns of a draft: a list of values, or the frequent values and one for the rest."""

import math
import re
from collections.abc import Sequence

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.description import FROM_DATA, ColumnDraft, DraftField, Note, TomlScalar

# Longest list of values that a person can review.
_MAX_REVIEWABLE_VALUES = 200
# A value with fewer rows is rare: naming it in a schema discloses that some row has it.
MIN_FREQUENT_ROWS = 10
# Fewer distinct texts are never free text. Texts longer than this on average are sentences.
_MIN_FREE_TEXTS = 11
_MIN_FREE_TEXT_LENGTH = 40
_MAX_KEPT_TEXTS = 500
# What records have where no text is learnt: the format of an identifier.
_PLACEHOLDER = "text {}"
# Candidates for the value that replaces all others; the first that is not taken is used.
_OTHER_LABELS = ("other", "(other)", "(another)", *(f"(other {i})" for i in range(2**16)))

# Ranges have an order: 16-24, 25 to 34, 65+, < 5.
_NUMBER_RANGE = re.compile(r"^[<>≤≥]?\s*(\d[\d.,]*)\s*(?:(?:-|–|to)\s*(\d[\d.,]*)|\D*)$")


def describe_texts(
    name: str, values: Sequence[str], counts: Counts, missing: Sequence[str]
) -> ColumnDraft:
    """Describe a text column, given its distinct values."""
    if _is_free_text(values, counts):
        return _describe_free_text(name, values, counts, missing)
    ordered = _sort_number_ranges(values)
    fields = [DraftField("values", [*(ordered or sorted(values))], FROM_DATA)]
    if missing:
        fields.append(DraftField("missing", [*missing], FROM_DATA))
    notes: list[str] = []
    if rare := int((counts < MIN_FREQUENT_ROWS).sum()):
        notes.append(
            Note(
                f"{rare:,} of its {len(values):,} values {'is' if rare == 1 else 'are'} rare "
                f"(fewer than {MIN_FREQUENT_ROWS} rows); listing them discloses that they occur. "
                'Take the list from the data dictionary, or make the column "text" with the '
                "frequent values",
                priority=6,
            )
        )
    if ordered:
        notes.append('its values are taken to have an order ("ordered"): please check it')
    return ColumnDraft(
        name=name,
        kind="ordered" if ordered else "categorical",
        fields=tuple(fields),
        notes=tuple(notes),
    )


def _is_free_text(values: Sequence[str], counts: Counts) -> bool:
    """Whether a column is free text: long texts, or mostly rare ones."""
    if len(values) < _MIN_FREE_TEXTS:
        return False
    rows = int(counts.sum())
    length = int(np.array([len(value) for value in values]) @ counts) / rows
    if length > _MIN_FREE_TEXT_LENGTH and len(values) > _MAX_REVIEWABLE_VALUES:
        return True
    if 2 * len(values) > rows:
        return True
    rare = int(counts[counts < MIN_FREQUENT_ROWS].sum())
    return len(values) > _MAX_REVIEWABLE_VALUES and 2 * rare > rows


def _describe_free_text(
    name: str, values: Sequence[str], counts: Counts, missing: Sequence[str]
) -> ColumnDraft:
    rows = int(counts.sum())
    order = np.argsort(-counts, kind="stable")[:_MAX_KEPT_TEXTS]
    frequent = [values[i] for i in order if counts[i] >= max(2 * MIN_FREQUENT_ROWS, rows // 1_000)]
    if not frequent:
        return ColumnDraft(
            name=name,
            kind="identifier",
            fields=(
                DraftField("release", "fresh", 'made-up texts; "omit" leaves the column out'),
                DraftField("format", _PLACEHOLDER, "almost every text is different"),
            ),
            notes=(Note(_placeholder_note(len(values)), priority=2),),
        )
    covered = sum(int(counts[i]) for i in order[: len(frequent)]) / rows
    return describe_open_list(
        name,
        sorted(frequent),
        missing,
        notes=(
            f"it has {len(values):,} different texts, most of them rare. The {len(frequent):,} "
            f"frequent ones ({covered:.0%} of the rows) are values; the others become one. If "
            "there is a public list, make it categorical; if it is free text, remove the column",
        ),
    )


def _placeholder_note(texts: int) -> str:
    """Say that the texts are not learnt. Programs for the table still find the column."""
    first, second = _PLACEHOLDER.format(1), _PLACEHOLDER.format(2)
    return (
        f"it has {texts:,} different texts, none of them frequent, so they are not learnt: records "
        f'have "{first}", "{second}", … If there is a public list, make it categorical; if the '
        'column is not needed, set release = "omit"'
    )


def describe_open_list(
    name: str,
    values: Sequence[str],
    missing: Sequence[str],
    *,
    comment: str = FROM_DATA,
    notes: tuple[str, ...] = (),
) -> ColumnDraft:
    """Describe a text column with the values to keep, and one value for all others."""
    taken = {*values, *missing}
    other = next(label for label in _OTHER_LABELS if label not in taken)
    fields = [
        DraftField("values", [*values], comment),
        DraftField("other", other, "replaces all other texts"),
    ]
    if missing:
        fields.append(DraftField("missing", [*missing], comment))
    return ColumnDraft(name=name, kind="text", fields=tuple(fields), notes=notes)


def _sort_number_ranges(values: Sequence[str]) -> list[TomlScalar] | None:
    """Sort texts that are ranges of numbers, such as age groups; None if they are not."""
    matches = [_NUMBER_RANGE.match(value) for value in values]
    ends = [_range_ends(match) for match in matches if match]
    if len(values) < 3 or len(ends) < len(values):
        return None
    ranges = [pair for pair in ends if pair[1] is not None]
    if 2 * len(ranges) < len(values) or any(low >= (high or 0) for low, high in ranges):
        return None
    lows = [low for low, _ in ends]
    if len(set(lows)) < len(values):
        return None  # the order of two ranges with the same lower end is unknown
    return [value for _, value in sorted(zip(lows, values, strict=True))]


def _range_ends(match: re.Match[str]) -> tuple[float, float | None]:
    """Parse the ends of a range; a code with a leading zero gets low > high, which is invalid."""
    low, high = match[1], match[2]
    if low.startswith("0") and low.strip("0") != "":
        return math.inf, 0.0
    ends = [float(text.replace(",", "").rstrip(".") or "nan") for text in (low, high or "0")]
    return ends[0], ends[1] if high else None
