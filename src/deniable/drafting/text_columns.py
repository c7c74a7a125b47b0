"""Text columns of a draft: a list of values, or the frequent values and one for the rest."""

import math
import re
from collections.abc import Sequence

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import split_name
from deniable.drafting.description import FROM_DATA, ColumnDraft, DraftField, Note, TomlScalar

# Longest list of values that a person can review; a draft lists no more texts.
MAX_LISTED_TEXTS = 200
# A value with fewer rows is rare: naming it in a schema discloses that some row has it.
MIN_FREQUENT_ROWS = 10
# Fewer distinct texts are never free text. Texts longer than this on average are sentences.
_MIN_FREE_TEXTS = 11
_MIN_FREE_TEXT_LENGTH = 40
# Words in the name of a column of people's names or addresses. However frequent they are, they
# are never listed.
_PERSONAL_WORDS = {
    *("name", "names", "firstname", "forename", "lastname", "surname", "fullname"),
    *("fname", "lname", "nickname", "username", "vorname", "nachname", "nom", "prenom", "prénom"),
    *("nombre", "apellido", "apellidos", "cognome", "nome", "imie", "imię", "nazwisko"),
    *("street", "address", "addr", "strasse", "straße", "rue", "calle", "ulica"),
    *("adresse", "direccion", "dirección", "indirizzo", "adres"),
    *("email", "mail", "phone", "telephone", "mobile", "telefon", "telefono", "teléfono"),
}
# What has a name but is no person, as in "drug name".
_THINGS = {
    *("country", "state", "region", "province", "county", "district", "city", "product", "brand"),
    *("drug", "species", "course", "department", "file", "variable"),
}
# What records have where no text is learnt: the format of an identifier.
_PLACEHOLDER = "text {}"
# Candidates for the value that replaces all others; the first that is not taken is used.
_OTHER_LABELS = ("other", "(other)", "(another)", *(f"(other {i})" for i in range(2**16)))

# Ranges have an order: 16-24, 25 to 34, 65+, < 5.
_NUMBER_RANGE = re.compile(r"^[<>≤≥]?\s*(\d[\d.,]*)\s*(?:(?:-|–|to)\s*(\d[\d.,]*)|\D*)$")


def describe_texts(
    name: str,
    values: Sequence[str],
    counts: Counts,
    missing: Sequence[str],
    *,
    order: Sequence[str] = (),
) -> ColumnDraft:
    """Describe a text column, given its distinct values.

    A longer list than a person can review is never written: its frequent values are.

    Args:
        name: Its header.
        values: Its distinct values.
        counts: Number of rows with each.
        missing: Its texts that mean missing.
        order: All possible values in order, where the type of the column states them.
    """
    if len(values) >= _MIN_FREE_TEXTS and _is_personal(name):
        return _describe_unlisted(name, _personal_note(len(values)))
    if _is_free_text(values, counts):
        min_rows = max(2 * MIN_FREQUENT_ROWS, int(counts.sum()) // 1_000)
        return describe_frequent(name, values, counts, missing, min_rows=min_rows)
    if len(values) > MAX_LISTED_TEXTS:
        return describe_frequent(name, values, counts, missing)
    listed = set(values if len(order) > MAX_LISTED_TEXTS else order).difference(missing, [""])
    stated = [value for value in order if value in listed]
    ordered = stated or _sort_number_ranges(values)
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
    if ordered and not stated:
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
    if length > _MIN_FREE_TEXT_LENGTH and len(values) > MAX_LISTED_TEXTS:
        return True
    if 2 * len(values) > rows:
        return True
    rare = int(counts[counts < MIN_FREQUENT_ROWS].sum())
    return len(values) > MAX_LISTED_TEXTS and 2 * rare > rows


def describe_frequent(
    name: str,
    values: Sequence[str],
    counts: Counts,
    missing: Sequence[str],
    *,
    min_rows: int = MIN_FREQUENT_ROWS,
) -> ColumnDraft:
    """Describe a column by its most frequent texts, of at least ``min_rows`` rows each."""
    order = np.argsort(-counts, kind="stable")[:MAX_LISTED_TEXTS]
    kept = [i for i in order if counts[i] >= min_rows]
    if not kept:
        return _describe_unlisted(name, _placeholder_note(len(values)))
    covered = int(counts[kept].sum()) / int(counts.sum())
    return describe_open_list(
        name,
        [values[i] for i in sorted(kept)],
        missing,
        notes=(
            f"it has {len(values):,} different texts, too many or too rare to list. The "
            f"{len(kept):,} most frequent ones ({covered:.0%} of the rows) are values; the others "
            "become one. If there is a public list, make it categorical; if it is free text, "
            "remove the column",
        ),
    )


def _is_personal(name: str) -> bool:
    """Whether a column has the name of one with people's names or addresses."""
    words = split_name(name)
    return bool(words & _PERSONAL_WORDS) and not words & _THINGS


def _describe_unlisted(name: str, note: str) -> ColumnDraft:
    """Describe a column whose texts are not learnt."""
    return ColumnDraft(
        name=name,
        kind="identifier",
        fields=(
            DraftField("release", "fresh", 'made-up texts; "omit" leaves the column out'),
            DraftField("format", _PLACEHOLDER, "none of its texts is learnt"),
        ),
        notes=(Note(note, priority=2),),
    )


def _personal_note(texts: int) -> str:
    """Say that names and addresses are not learnt."""
    first, second = _PLACEHOLDER.format(1), _PLACEHOLDER.format(2)
    return (
        f"its header says that its {texts:,} different texts are names or addresses of people, so "
        f'none is listed or learnt: records have "{first}", "{second}", … If they are not, make it '
        'categorical; if the column is not needed, set release = "omit"'
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
