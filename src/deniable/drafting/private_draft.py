"""Draft a schema with differential privacy: rows affect it only through noisy histograms.

Measured with noise (``noisy_histograms``) are the number of rows; for each column its number of
distinct values and the types of its cells (``type_histogram``); and then, as the types suggest, its
codes, its frequent texts or its years. The rest of the draft is computed from these.

A draft is valid for every table with its columns: a cell that noise has hidden is clipped, becomes
"other" or the column's fallback, and is never an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable.drafting.cell_texts import CountedTexts
from deniable.drafting.column_profile import OpenedTable
from deniable.drafting.description import DRAFTED_PRIVATELY, ColumnDraft, DraftField
from deniable.drafting.identifier_columns import has_identifier_name
from deniable.drafting.measured_column import MeasuredColumn, draft_unseen
from deniable.drafting.noisy_dates import draft_dates
from deniable.drafting.noisy_histograms import HistogramMeasurer, calibrate_noise, per_row_limit
from deniable.drafting.noisy_lists import draft_texts
from deniable.drafting.noisy_ranges import draft_numbers, has_fractions
from deniable.drafting.toml_text import group_notes
from deniable.drafting.type_histogram import ColumnTypes, count_types
from deniable.errors import ConfigError, InvariantError
from deniable.privacy.composition import Guarantee, group_privacy
from deniable.randomness import Randomness
from deniable.workers import Progress, no_progress

# Parts of μ². Those of columns are divided among the columns.
_ROWS_PART = 0.03
_DISTINCT_PART = 0.02
_TYPES_PART = 0.40
_DETAILS_PART = 0.55
# Histograms for each column: distinct values, types, and at most three of details.
_HISTOGRAMS_PER_COLUMN = 5
# Weights of the types in the division of ``_DETAILS_PART``. Unknown texts need most rows.
_TEXT_WEIGHT, _FRACTION_WEIGHT, _NUMBER_WEIGHT = 3.0, 2.0, 1.0
# In units of the noise: fewer rows than this are as good as none, and weaker evidence is none.
_MIN_ROWS_SCORE = 2.0
# Noise alone rarely gives more evidence for a type than this: there are more cells of some types.
_Type = Literal["number", "date", "text", "unsupported"]
_CLEAR_SCORES: dict[_Type, float] = {"number": 4.5, "date": 4.5, "text": 3.5, "unsupported": 4.0}
# A column of identifiers has this share of distinct values; one with the name of an identifier
# needs fewer.
_UNIQUE_SHARE, _NAMED_UNIQUE_SHARE = 0.8, 0.3
# The number of distinct values counts with this many standard deviations less, so that noise alone
# makes no identifier.
_DISTINCT_MARGIN = 2.0
# Numbers between the bounds for each row: more if the numbers are measured, not assigned.
_MAX_NUMBERS_PER_ROW = 5
_UNIQUE_NUMBERS = "nearly every row has its own number"

_GENERAL_NOTES = (
    "a private draft does not look for columns that follow from others, or for orders between "
    "columns: describe those that you know.",
    "what noise hides stops no run: numbers outside a range are clipped, rare texts become "
    '"other", and a cell that fits nothing becomes the fallback of its column. Widen the '
    "description by public knowledge where you can.",
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
    row_limit = per_row_limit(limit, rows=rows)
    learnt = [name for name in opened.names if name != unit]
    calibrated = calibrate_noise(
        row_limit, histograms=1 + _HISTOGRAMS_PER_COLUMN * len(learnt), lists=len(learnt)
    )
    measurer = HistogramMeasurer(calibrated, noise.at("noise"))
    if unit is not None:
        opened = opened.limit_rows_per_unit(unit, rows, noise.at("units"))
    columns = opened.read_texts(progress)
    drafts = _draft_columns([each for each in columns if each.name != unit], measurer)
    if not group_privacy(measurer.cost(), rows=rows).within(limit):
        raise InvariantError("the draft exceeds its privacy limit and is withheld")
    attributes = tuple(
        replace(draft, confirmed=True, origin=DRAFTED_PRIVATELY)
        for draft in (drafts.by_name.get(name) or _draft_unit(name) for name in opened.names)
    )
    return PrivateDraft(
        attributes=attributes,
        notes=(*group_notes(attributes), *_GENERAL_NOTES),
        rows=drafts.rows,
        cost=limit,
    )


@dataclass(frozen=True)
class _DraftedColumns:
    """Descriptions by column name, and the noisy number of rows; 0 if there are too few."""

    by_name: dict[str, ColumnDraft]
    rows: int


def _draft_columns(columns: Sequence[CountedTexts], measurer: HistogramMeasurer) -> _DraftedColumns:
    """Measure and describe columns.

    Privacy:
        Neighbours: add or remove one row. It moves the number of rows by one, and of each column
            the number of distinct values and one count of each histogram by at most one.
        Covers: everything returned. Shares of μ² depend on the number of columns and on earlier
            answers, and add up to at most one.
    """
    if not columns:
        return _DraftedColumns({}, 0)
    size = int(columns[0].counts.sum()) + columns[0].nulls
    answer = measurer.measure(np.array([size], dtype=np.int64), share=_ROWS_PART)
    rows = int(answer.public[0])
    if rows < _MIN_ROWS_SCORE * answer.sigma:
        return _DraftedColumns({each.name: _draft_unknown(each.name) for each in columns}, 0)
    distinct, types = [], []
    for each in columns:
        values = np.array([len(each.texts)], dtype=np.int64)
        share = _DISTINCT_PART / len(columns)
        answer = measurer.measure(values, share=share)
        distinct.append(int(answer.public[0]) - _DISTINCT_MARGIN * answer.sigma)
        share = _TYPES_PART / len(columns)
        types.append(ColumnTypes.of(measurer.measure(count_types(each), share=share)))
    weights = [_detail_weight(each) for each in types]
    found = {}
    for column, seen, values_seen, weight in zip(columns, types, distinct, weights, strict=True):
        share = _DETAILS_PART * weight / sum(weights)
        measured = MeasuredColumn(
            column=column, measurer=measurer, types=seen, rows=rows, share=share
        )
        found[column.name] = _draft_column(measured, distinct_share=values_seen / rows)
    if not any(draft.is_modelled for draft in found.values()):
        name = columns[-1].name
        found[name] = draft_unseen(name, "no other column can be learnt")
    return _DraftedColumns(found, rows)


def _detail_weight(types: ColumnTypes) -> float:
    """Weight of a column in the division of ``_DETAILS_PART``."""
    kind = _likeliest_type(types)
    if kind == "number" and has_fractions(types):
        return _FRACTION_WEIGHT
    return _TEXT_WEIGHT if kind == "text" else _NUMBER_WEIGHT


def _likeliest_type(types: ColumnTypes) -> _Type | None:
    """The type of most cells; None if noise could have given the answers without one."""
    score, numbers = types.best_numbers()
    evidence: dict[_Type, tuple[float, float]] = {"number": (score, numbers)}
    date_score = types.best_date_format()[0]
    evidence["date"] = date_score, date_score * types.sigma
    for cell in ("text", "unsupported"):
        evidence[cell] = types.count(cell) / types.sigma, float(types.count(cell))
    stricter = 1.5 if types.is_seen("missing") else 0.0
    clear = {kind: rows for kind, (score, rows) in evidence.items() if score > _CLEAR_SCORES[kind]}
    if clear:
        return max(clear, key=lambda kind: clear[kind])
    best = max(evidence, key=lambda kind: evidence[kind][0] - _CLEAR_SCORES[kind])
    return best if evidence[best][0] > _CLEAR_SCORES[best] - 1.5 + stricter else None


def _draft_column(measured: MeasuredColumn, *, distinct_share: float) -> ColumnDraft:
    """Describe a column by the likeliest type of its cells."""
    types = measured.types
    best = _likeliest_type(types)
    if best is None:
        return _draft_unknown(
            measured.name, missing=types.count("missing") if types.is_seen("missing") else 0
        )
    if best == "unsupported":
        return draft_omitted(measured.name, "the type of its cells is not supported")
    if best == "date":
        _, text_format, date_kind = types.best_date_format()
        return draft_dates(measured, text_format, date_kind)
    draft = draft_numbers(measured) if best == "number" else draft_texts(measured)
    return _identifier_or(draft, rows=measured.rows, distinct_share=distinct_share)


def _identifier_or(draft: ColumnDraft, *, rows: int, distinct_share: float) -> ColumnDraft:
    """Describe a column as an identifier if nearly every row has its own value, else as drafted.

    Whole numbers must also lie close together, as numbers that were assigned do.
    """
    values = {field.key: field.value for field in draft.fields}
    if has_identifier_name(draft.name) and distinct_share > _NAMED_UNIQUE_SHARE:
        return draft_omitted(draft.name, "it identifies rows or persons", fresh=True)
    if distinct_share < _UNIQUE_SHARE:
        return draft
    if draft.kind == "text" and values["values"] == []:
        return draft_omitted(draft.name, "nearly every row has its own text")
    low, high = values.get("min"), values.get("max")
    if draft.kind == "integer" and isinstance(low, int) and isinstance(high, int):
        is_dense = high - low < _MAX_NUMBERS_PER_ROW * rows
        return draft_omitted(draft.name, _UNIQUE_NUMBERS, fresh=True) if is_dense else draft
    return draft


def _draft_unknown(name: str, missing: int = 0) -> ColumnDraft:
    """Describe a column of which nothing was seen but, perhaps, missing cells."""
    if missing:
        return draft_unseen(name, "nearly every cell is missing", {"": missing})
    if has_identifier_name(name):
        return draft_omitted(name, "it has the name of an identifier", fresh=True)
    return draft_unseen(name, "too few rows to find its type")


def _draft_unit(name: str) -> ColumnDraft:
    """Describe the unit column; a row that names no unit is not used."""
    draft = draft_omitted(name, "it identifies the unit", fresh=True)
    drop = DraftField("outside", "drop", "rows that name no unit are dropped")
    return replace(draft, fields=(*draft.fields, drop))


def draft_omitted(name: str, reason: str, *, fresh: bool = False) -> ColumnDraft:
    """Describe a column that is not learnt; with ``fresh``, records get new identifiers."""
    if fresh:
        release = DraftField("release", "fresh", 'new identifiers; "omit" leaves the column out')
        note = f"{reason}: it is not learnt, and every record gets a new one"
    else:
        release = DraftField("release", "omit", "left out")
        note = f"{reason}: it is left out; describe it if you can"
    return ColumnDraft(name=name, kind="identifier", fields=(release,), notes=(note,))
