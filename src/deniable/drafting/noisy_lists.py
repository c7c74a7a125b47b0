"""Text columns of a private draft: the frequent texts, and one value for all others."""

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import BOOLEAN_PAIRS
from deniable.drafting.description import DRAFTED_PRIVATELY, ColumnDraft, DraftField
from deniable.drafting.measured_column import (
    CLEARLY_SEEN_SIGMAS,
    MeasuredColumn,
    draft_unseen,
    fallback_fields,
)
from deniable.drafting.text_columns import describe_open_list

# Texts that are looked for by name, which needs fewer rows than to find an unknown text.
_WORDS = tuple(word for pair in BOOLEAN_PAIRS for word in pair)
# All values were found if the rows without one are below this, in units of the noise and as a
# share of the rows.
_MAX_REST_SIGMAS = 2.0
_MAX_REST_SHARE = 0.03


def draft_texts(measured: MeasuredColumn) -> ColumnDraft:
    """Describe a text column by its frequent texts.

    Privacy:
        Neighbours: add or remove one row, which moves one count of one histogram by one.
        Covers: the texts; the threshold of ``HistogramMeasurer.measure`` covers that they occur.
    """
    details = measured.measure_details(measured.listed_cells(_WORDS), len(_WORDS), lists=True)
    values = _seen_words(details.cells, details.sigma) | details.texts
    missing = measured.missing_texts(details)
    if not values:
        return draft_unseen(measured.name, "no text is frequent enough", missing)
    rest = measured.rows - sum(values.values()) - sum(missing.values())
    noise = _MAX_REST_SIGMAS * details.sigma * (len(values) + len(missing)) ** 0.5
    is_complete = rest < noise <= _MAX_REST_SHARE * measured.rows
    for pair in BOOLEAN_PAIRS:
        if set(values) == set(pair) and is_complete:
            return _draft_listed(measured.name, "boolean", [*pair], values, missing)
    if is_complete and len(values) > 1:
        return _draft_listed(measured.name, "categorical", sorted(values), values, missing)
    return draft_open_list(measured.name, sorted(values), missing)


def _seen_words(counts: Counts, sigma: float) -> dict[str, int]:
    words = zip(_WORDS, counts.tolist(), strict=True)
    return {word: count for word, count in words if count > CLEARLY_SEEN_SIGMAS * sigma}


def _draft_listed(
    name: str, kind: str, listed: list[str], values: dict[str, int], missing: dict[str, int]
) -> ColumnDraft:
    """Describe a column all of whose values were found; a rare other one becomes the fallback."""
    most_frequent = max(values, key=lambda value: values[value])
    fields = (
        DraftField("values", [*listed], DRAFTED_PRIVATELY),
        *fallback_fields(missing, most_frequent),
    )
    return ColumnDraft(
        name=name, kind="boolean" if kind == "boolean" else "categorical", fields=fields
    )


def draft_open_list(name: str, values: list[str], missing: dict[str, int]) -> ColumnDraft:
    """Describe a column by the texts to keep; all others become one value."""
    note = "all but the frequent texts become one value: if there is a public list, use it"
    draft = describe_open_list(name, values, [*missing], comment=DRAFTED_PRIVATELY, notes=(note,))
    kept = [field for field in draft.fields if field.key != "missing"]
    other = next(field.value for field in kept if field.key == "other")
    fields = (*kept, *fallback_fields(missing, other))
    return ColumnDraft(name=name, kind="text", fields=fields, notes=draft.notes)
