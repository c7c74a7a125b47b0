"""Draft a schema with differential privacy: rows affect it only through noisy histograms.

At most three histograms (``noisy_histograms``) are measured per column: the classes of its cells;
its contents (numbers in public logarithmic intervals, years, or texts); and, for short ranges, its
contents in finer intervals. The rest of the draft is computed from these.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from deniable.arrays import Counts, Mask
from deniable.drafting.cell_patterns import (
    AMBIGUOUS_DATE_FORMATS,
    AMBIGUOUS_DATETIME_FORMATS,
    BOOLEAN_PAIRS,
    CLASS_INDEX,
    DATE_FORMATS,
    DATETIME_FORMATS,
    MISSING_TEXTS,
    are_missing_reasons,
)
from deniable.drafting.cell_texts import CountedTexts
from deniable.drafting.column_profile import OpenedTable
from deniable.drafting.description import DRAFTED_PRIVATELY, ColumnDraft, DraftField
from deniable.drafting.identifier_columns import has_identifier_name
from deniable.drafting.noisy_histograms import (
    HistogramMeasurer,
    calibrate_noise,
    count_classes,
    per_row_limit,
)
from deniable.drafting.noisy_ranges import (
    MAJORITY_SHARE,
    NUMERIC_CLASSES,
    count_log_intervals,
    count_numbers,
    draft_dates,
    draft_numbers,
    draft_omitted,
    log_bounds,
)
from deniable.drafting.text_columns import describe_open_list
from deniable.drafting.toml_text import group_notes
from deniable.errors import ConfigError, InvariantError
from deniable.privacy.composition import Guarantee, group_privacy
from deniable.progress import Progress, no_progress
from deniable.randomness import Randomness

# Listed as missing in every column but text, as a rare missing cell is not seen.
_COMMON_MISSING_TEXTS = ("", "NA", "N/A", "NaN", "null", "None", "?")

_GENERAL_NOTES = (
    "a private draft does not look for columns that follow from others, for orders between "
    "columns, or for identifiers with unusual names: describe those that you know.",
    "a cell that is too rare to be seen (a text among numbers, a missing cell) is reported when "
    "the table is read: then widen the description by public knowledge. To round rare fractions "
    "in an integer column, make it a real with decimals = 0.",
)


@dataclass(frozen=True, kw_only=True)
class PrivateDraft:
    """Schema draft with differential privacy, and its cost.

    Attributes:
        attributes: The description of each column.
        notes: Decisions left to the user.
        rows: Noisy number of rows; 0 if there are too few to be seen.
        cost: The limit of the draft, which its actual cost does not exceed.
    """

    attributes: tuple[ColumnDraft, ...]
    notes: tuple[str, ...]
    rows: int
    cost: Guarantee


def draft_privately(
    opened: OpenedTable,
    limit: Guarantee,
    *,
    unit: str | None,
    rows_per_unit: int | None,
    noise: Randomness,
    progress: Progress = no_progress,
) -> PrivateDraft:
    """Draft a schema at a privacy cost of at most ``limit``.

    Args:
        opened: The table, opened as private.
        limit: (ε, δ) of the whole draft.
        unit: Column that identifies the person, if a person may have several rows.
        rows_per_unit: Maximum rows per person; further rows are ignored.
        noise: Source of the noise.
        progress: Called with a stage, the columns read and the total.

    Raises:
        ConfigError: ``unit`` is given without ``rows_per_unit``.
        BudgetError: No noise meets ``limit``.

    Privacy:
        Neighbours: add or remove one row; with ``unit``, all rows of one person.
        Covers: the whole draft, its notes included. The number of histograms and the law of
            the noise follow from the names of the columns and from ``limit``. No type of a
            column is used, and no number of rows is refused, 0 included.
        Does not cover: the names of the columns, and whether the table is CSV, which are taken as
            public; that the table could be read, and how long that took.
        Assumes: ``noise`` is secret.
    """
    if unit is not None and rows_per_unit is None:
        raise ConfigError("a private draft with a unit needs max_rows_per_unit, a public bound")
    rows = rows_per_unit or 1
    histograms = {name: _max_histograms(name, unit) for name in opened.names}
    total = max(1, sum(histograms.values()))
    row_limit = per_row_limit(limit, rows=rows)
    law = calibrate_noise(row_limit, histograms=total)
    measurer = HistogramMeasurer(law, noise.at("noise"), total)
    if unit is not None:
        opened = opened.limit_rows_per_unit(unit, rows, noise.at("units"))
    columns = opened.read_texts(progress)
    drafted = [_draft_column(each, measurer, histograms[each.name]) for each in columns]
    if not group_privacy(measurer.cost(delta=row_limit.delta), rows=rows).within(limit):
        raise InvariantError("the draft exceeds its privacy limit and is withheld")
    attributes = tuple(
        replace(draft, confirmed=True, origin=DRAFTED_PRIVATELY) for draft, _ in drafted
    )
    return PrivateDraft(
        attributes=attributes,
        notes=(*group_notes(attributes), *_GENERAL_NOTES),
        rows=max((count for _, count in drafted), default=0),
        cost=limit,
    )


def _max_histograms(name: str, unit: str | None) -> int:
    """Maximum number of histograms for a column, from its public name."""
    return 0 if name == unit or has_identifier_name(name) else 3


def _draft_column(
    column: CountedTexts, measurer: HistogramMeasurer, histograms: int
) -> tuple[ColumnDraft, int]:
    """Describe a column; also return a noisy number of rows."""
    if not histograms:
        return draft_omitted(column.name, "it has the name of an identifier", fresh=True), 0
    classes = measurer.measure(count_classes(column)).public
    rows, unsupported = int(classes.sum()), int(classes[CLASS_INDEX["unsupported"]])
    known = int(classes[len(MISSING_TEXTS) :].sum()) - unsupported
    if not rows:
        return draft_omitted(column.name, "too few rows to find its type"), 0
    if unsupported > known:
        return draft_omitted(column.name, "the type of its cells is not supported"), rows
    if not known:
        return draft_omitted(column.name, "nearly every cell is missing"), rows
    draft = _draft_majority_type(column, measurer, classes, known)
    if draft.is_modelled:
        draft = _add_missing_texts(draft, classes)
    return draft, rows


def _add_missing_texts(draft: ColumnDraft, classes: Counts) -> ColumnDraft:
    """Add the texts for missing: those seen, and common ones.

    Rare missing cells are not seen. They must not stop a run, so common texts are listed too.
    """
    seen = [text for text in MISSING_TEXTS if classes[CLASS_INDEX[f"missing {text}"]]]
    seen.sort(key=lambda text: -int(classes[CLASS_INDEX[f"missing {text}"]]))
    own = [field.value for field in draft.fields if field.key == "missing"]
    others = own[0] if own and isinstance(own[0], list) else []
    common = [""] if draft.kind == "text" else [*_COMMON_MISSING_TEXTS]
    texts = dict.fromkeys([*seen, *others, *common])
    unseen = "none seen often; these commonly mean missing"
    comment = DRAFTED_PRIVATELY if seen or others else unseen
    fields = [field for field in draft.fields if field.key != "missing"]
    return replace(draft, fields=(*fields, DraftField("missing", [*texts], comment)))


def _draft_majority_type(
    column: CountedTexts, measurer: HistogramMeasurer, classes: Counts, known: int
) -> ColumnDraft:
    """Describe a column by the type of nearly all its cells."""
    for share, names, draft_as in _candidate_types(column, measurer, classes):
        if sum(int(classes[CLASS_INDEX[name]]) for name in names) >= share * known:
            return draft_as()
    if count_numbers(classes) > 0.5 * known:
        return _draft_mixture(column, measurer, classes, known)
    return _draft_texts(column, measurer)


def _candidate_types(
    column: CountedTexts, measurer: HistogramMeasurer, classes: Counts
) -> Iterator[tuple[float, Sequence[str], Callable[[], ColumnDraft]]]:
    """Yield candidate types in order: the share of cells needed, their classes, and the drafter.

    Booleans and numbers need every cell that was seen: an unexpected text cannot be clipped.
    """
    for no, yes in BOOLEAN_PAIRS:
        yield 1.0, [f"pair {no}/{yes}"], partial(_draft_boolean, column, measurer, (no, yes))
    for each in DATE_FORMATS:
        ambiguous = (f"date {a} or {b}" for a, b in AMBIGUOUS_DATE_FORMATS if each in (a, b))
        names = [f"date {each}", *ambiguous]
        yield MAJORITY_SHARE, names, partial(draft_dates, column, measurer, each, "date")
    for each in DATETIME_FORMATS:
        pairs = ((a, b) for a, b in AMBIGUOUS_DATETIME_FORMATS if each in (a, b))
        names = [f"datetime {each}", *(f"datetime {a} or {b}" for a, b in pairs)]
        yield MAJORITY_SHARE, names, partial(draft_dates, column, measurer, each, "datetime")
    yield 1.0, NUMERIC_CLASSES, partial(draft_numbers, column, measurer, classes)


def _draft_boolean(
    column: CountedTexts, measurer: HistogramMeasurer, pair: tuple[str, str]
) -> ColumnDraft:
    """Describe a column of two texts; an open list unless both are frequent.

    "true" and "false" leave no doubt, so one of them is enough.
    """
    if pair[0].lower() != "false":
        kept = _frequent_texts(column, measurer)
        if set(kept) != set(pair):
            return _draft_open_list(column.name, kept)
    fields = (
        DraftField("values", [*pair], DRAFTED_PRIVATELY),
        DraftField("outside", "drop", "rows with another, rare text are dropped"),
    )
    return ColumnDraft(name=column.name, kind="boolean", fields=fields)


def _frequent_texts(column: CountedTexts, measurer: HistogramMeasurer) -> list[str]:
    """List the frequent texts of a column, without those that mean missing.

    Privacy:
        Neighbours: add or remove one row, which moves the count of one text by one.
        Covers: the texts; the threshold covers that they occur at all.
    """
    no_public = np.zeros(0, dtype=np.int64)
    return [*measurer.measure(no_public, column.select(_is_listed(column))).texts]


def _is_listed(column: CountedTexts) -> Mask:
    """Mask of the texts that may be values of a schema."""
    listed: Mask = column.classes >= len(MISSING_TEXTS)
    listed &= column.classes != CLASS_INDEX["unsupported"]
    return listed


def _draft_texts(column: CountedTexts, measurer: HistogramMeasurer) -> ColumnDraft:
    """Describe a text column by its frequent texts, with one value for all others."""
    return _draft_open_list(column.name, _frequent_texts(column, measurer))


def _draft_open_list(name: str, kept: list[str]) -> ColumnDraft:
    if not kept:
        return draft_omitted(name, "no text is frequent enough")
    note = "all but the frequent texts become one value: if there is a public list, use it"
    return describe_open_list(name, kept, (), comment=DRAFTED_PRIVATELY, notes=(note,))


def _draft_mixture(
    column: CountedTexts, measurer: HistogramMeasurer, classes: Counts, known: int
) -> ColumnDraft:
    """Describe a mixture: numbers with a few texts for missing, or else a list of texts.

    Privacy:
        Neighbours: add or remove one row. Its cell is either a number, in one logarithmic
            interval, or one of the texts: it moves one count of the histogram by one.
        Covers: the texts that are frequent, and the bounds of the numbers.
    """
    numeric = np.isin(column.classes, [CLASS_INDEX[name] for name in NUMERIC_CLASSES])
    words = column.select(~numeric & _is_listed(column))
    # "007" is a text here. It would also parse as a number, and must not be counted twice.
    numbers = column.select(numeric)
    found = measurer.measure(count_log_intervals(numbers, classes), words)
    strays, log_counts = [*found.texts], found.public
    others = known - count_numbers(classes)
    low, high, _ = log_bounds(log_counts, total=0) if log_counts.any() else (0, 0, ())
    are_reasons = are_missing_reasons(strays, numbers=high - low)
    if sum(found.texts.values()) < MAJORITY_SHARE * others or not are_reasons:
        kept = _frequent_texts(numbers, measurer)
        return _draft_open_list(column.name, sorted({*strays, *kept}))
    draft = draft_numbers(numbers, measurer, classes, log_counts=log_counts)
    if draft.kind == "identifier":
        return draft
    note = "texts among its numbers are taken to mean missing (see missing): please check"
    fields = (*draft.fields, DraftField("missing", [*strays], DRAFTED_PRIVATELY))
    return replace(draft, fields=fields, notes=(*draft.notes, note))
