"""Text columns of a private draft: the frequent texts, and one value for all others."""

from collections.abc import Collection

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import BOOLEAN_PAIRS
from deniable.drafting.description import DRAFTED_PRIVATELY, ColumnDraft, DraftField
from deniable.drafting.measured_column import (
    CLEARLY_SEEN_SIGMAS,
    Details,
    MeasuredColumn,
    draft_unseen,
    fallback_fields,
)
from deniable.drafting.text_columns import describe_open_list

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Lists of texts that everyone knows: months and days, long and short, in three cases.
_PUBLIC_LISTS = tuple(
    tuple(case(name[:length]) for name in names)
    for names in (_MONTHS, _DAYS)
    for length in (3, None)
    for case in (str.lower, str.title, str.upper)
)
_UNKNOWN = ("unknown", "Unknown", "UNKNOWN", "other", "Other", "OTHER", "none", "NONE")
# Texts that are looked for by name, which needs fewer rows than to find an unknown text.
_WORDS = tuple(
    dict.fromkeys((*(w for pair in (*BOOLEAN_PAIRS, *_PUBLIC_LISTS) for w in pair), *_UNKNOWN))
)
# All values were found if the rows without one are below this, in units of the noise and as a
# share of the rows.
_MAX_REST_SIGMAS = 2.0
# A word that is half of the rows without a named text needs less evidence than others.
_LIKELY_WORD_SIGMAS = 2.5
_MAX_REST_SHARE = 0.03


def measure_texts(measured: MeasuredColumn) -> Details:
    """Measure the frequent texts of a column for the first time.

    Privacy:
        Neighbours: add or remove one row, which moves one count of one histogram by one.
        Covers: the texts; the threshold of ``HistogramMeasurer.measure`` covers that they occur.
    """
    return measured.measure_details(measured.listed_cells(_WORDS), len(_WORDS), lists=True)


def undescribed_rows(measured: MeasuredColumn, details: Details) -> float:
    """Rows of no text that was named, by noisy counts; 0 if they are fewer than the noise."""
    values, missing = _named_texts(measured, details)
    rest, noise = _rest_of(measured, details, values, missing)
    return rest if rest > noise / _MAX_REST_SIGMAS else 0.0


def draft_texts(measured: MeasuredColumn, details: Details) -> ColumnDraft:
    """Describe a text column by its frequent texts.

    Args:
        measured: The column. Its reserve, if any, is spent on a second measurement.
        details: The first measurement.

    Privacy:
        Neighbours: add or remove one row, which moves one count of one histogram by one.
        Covers: the texts; the threshold of ``HistogramMeasurer.measure`` covers that they occur.
    """
    if measured.reserve > 0:
        details = _measure_again(measured, details)
    values, missing = _named_texts(measured, details)
    if not values:
        return draft_unseen(measured.name, "no text is frequent enough", missing)
    rest, noise = _rest_of(measured, details, values, missing)
    is_complete = rest < noise <= _MAX_REST_SHARE * measured.rows
    for pair in BOOLEAN_PAIRS:
        if set(values) == set(pair) and is_complete:
            return _draft_listed(measured.name, "boolean", [*pair], values, missing)
    if is_complete and len(values) > 1:
        return _draft_listed(measured.name, "categorical", sorted(values), values, missing)
    listed = sorted({*values, *_rest_of_lists(values)})
    return draft_open_list(measured.name, listed, missing)


def _measure_again(measured: MeasuredColumn, first: Details) -> Details:
    """Measure the texts again; those that were named are known in advance now.

    Counts of both measurements are averaged with weights inverse to their variances.
    """
    known = (*_WORDS, *first.texts)
    second = measured.measure_details(
        measured.listed_cells(known), len(known), lists=True, part=0.0, reserved=True
    )
    weight = first.sigma**2 / (first.sigma**2 + second.sigma**2)

    def average(one: Counts, two: Counts) -> Counts:
        mean: Counts = np.rint((1 - weight) * one + weight * two).astype(np.int64)
        return mean

    words = len(_WORDS)
    named = np.array([*first.texts.values()], dtype=np.int64)
    counts = average(named, second.cells[words:]).tolist()
    return Details(
        missing=average(first.missing, second.missing),
        cells=average(first.cells, second.cells[:words]),
        texts=dict(zip(first.texts, counts, strict=True)) | second.texts,
        sigma=second.sigma * weight**0.5,
    )


def _named_texts(
    measured: MeasuredColumn, details: Details
) -> tuple[dict[str, int], dict[str, int]]:
    """Texts that were seen, and texts that mean missing, with their noisy counts."""
    values = _seen_words(details.cells, details.sigma) | details.texts
    missing = measured.missing_texts(details)
    counts = dict(zip(_WORDS, details.cells.tolist(), strict=True))
    rest, noise = _rest_of(measured, details, values, missing)
    needed = max(_LIKELY_WORD_SIGMAS * details.sigma, rest / 2)
    likely = [word for word in _likely_words(values) if counts[word] > needed]
    if likely and rest > noise:
        best = max(likely, key=lambda word: counts[word])
        values[best] = counts[best]
    return values, missing


def _rest_of(
    measured: MeasuredColumn, details: Details, values: dict[str, int], missing: dict[str, int]
) -> tuple[float, float]:
    """Noisy number of rows without a named text, and what noise may explain of it."""
    rest = measured.rows - sum(values.values()) - sum(missing.values())
    variance = measured.rows_sigma**2 + (len(values) + len(missing)) * details.sigma**2
    return rest, _MAX_REST_SIGMAS * variance**0.5


def _likely_words(values: Collection[str]) -> list[str]:
    """Words that are not among the named texts but often occur next to them."""
    lists = [each for each in (*BOOLEAN_PAIRS, *_PUBLIC_LISTS) if {*each} & {*values}]
    words = (*_UNKNOWN, *(word for each in lists for word in each))
    return [word for word in words if word not in values]


def _rest_of_lists(values: Collection[str]) -> set[str]:
    """Texts of each public list half of which was named."""
    halves = [each for each in _PUBLIC_LISTS if 2 * len({*each} & {*values}) >= len(each)]
    return {text for each in halves for text in each}


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
