"""Draft a schema with differential privacy: rows affect it only through noisy histograms.

Measured with noise (``noisy_histograms``) are the number of rows; for each column its number of
distinct values and the types of its cells (``type_histogram``); and then, as the types suggest, its
codes, its frequent texts or its years. Frequent texts may be measured twice. How the budget is
divided follows from earlier answers (``draft_budget``). The rest of the draft is computed.

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
from deniable.drafting.draft_budget import (
    DISTINCT_PART,
    FRACTION_WEIGHT,
    NUMBER_WEIGHT,
    ROWS_PART,
    TEXT_WEIGHT,
    DetailWeight,
    divide_details,
    divide_reserve,
    types_part,
)
from deniable.drafting.identifier_columns import has_identifier_name
from deniable.drafting.measured_column import Details, MeasuredColumn, draft_unseen
from deniable.drafting.noisy_dates import draft_dates
from deniable.drafting.noisy_histograms import (
    HistogramMeasurer,
    calibrate_noise,
    per_row_limit,
)
from deniable.drafting.noisy_lists import draft_texts, measure_texts, undescribed_rows
from deniable.drafting.noisy_ranges import draft_numbers, has_fractions
from deniable.drafting.toml_text import group_notes
from deniable.drafting.type_histogram import ColumnTypes, count_types
from deniable.errors import ConfigError, InvariantError
from deniable.privacy.composition import Guarantee, group_privacy
from deniable.privacy.draft_mechanism import (
    HISTOGRAMS_PER_COLUMN,
    LISTS_PER_COLUMN,
    DraftMechanism,
)
from deniable.randomness import Randomness
from deniable.workers import Progress, no_progress

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
# With more distinct values than this, as a share of the rows, hardly any is frequent.
_RARE_VALUES_SHARE = 0.05
# A column of fractions claims this share of the rows for its frequent numbers.
_FRACTIONS_CLAIM = 0.15
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
        mechanism: Its noise for one row; None if the unit is not one row.
    """

    attributes: tuple[ColumnDraft, ...]
    notes: tuple[str, ...]
    rows: int
    cost: Guarantee
    mechanism: DraftMechanism | None


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
            public; of a file without a header line, the number of columns, which its first record
            shows, and so that it has one; that the table could be read, and how long that took.
        Assumes: ``noise`` is secret.
    """
    if unit is not None and rows_per_unit is None:
        raise ConfigError("a private draft with a unit needs max_rows_per_unit, a public bound")
    rows = rows_per_unit or 1
    row_limit = per_row_limit(limit, rows=rows)
    learnt = [name for name in opened.names if name != unit]
    calibrated = calibrate_noise(
        row_limit,
        histograms=1 + HISTOGRAMS_PER_COLUMN * len(learnt),
        lists=LISTS_PER_COLUMN * len(learnt),
    )
    measurer = HistogramMeasurer(calibrated, noise.at("noise"))
    if unit is not None:
        opened = opened.limit_rows_per_unit(unit, rows, noise.at("units"))
    columns = opened.read_texts(progress)
    drafts = _draft_columns([each for each in columns if each.name != unit], measurer)
    if not group_privacy(measurer.cost(), rows=rows).within(limit):
        raise InvariantError("the draft exceeds its privacy limit and is withheld")
    attributes = tuple(
        replace(draft, confirmed="draft", origin=DRAFTED_PRIVATELY)
        for draft in (drafts.by_name.get(name) or _draft_unit(name) for name in opened.names)
    )
    return PrivateDraft(
        attributes=attributes,
        notes=(*group_notes(attributes), *_GENERAL_NOTES),
        rows=drafts.rows,
        cost=limit,
        mechanism=DraftMechanism.of(limit, columns=len(learnt)) if unit is None else None,
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
            noisy answers, and add up to at most one (``draft_budget``).
    """
    if not columns:
        return _DraftedColumns({}, 0)
    size = int(columns[0].counts.sum()) + columns[0].nulls
    answer = measurer.measure(np.array([size], dtype=np.int64), share=ROWS_PART)
    rows = int(answer.public[0])
    if rows < _MIN_ROWS_SCORE * answer.sigma:
        return _DraftedColumns({each.name: _draft_unknown(each.name) for each in columns}, 0)
    seen = _measure_columns(columns, measurer, rows)
    found = {each.measured.name: _draft_column(each) for each in seen}
    if not any(draft.is_modelled for draft in found.values()):
        name = columns[-1].name
        found[name] = draft_unseen(name, "no other column can be learnt")
    return _DraftedColumns(found, rows)


@dataclass(frozen=True, kw_only=True)
class _SeenColumn:
    """A column of which types and, of texts, the most frequent ones were measured.

    Attributes:
        measured: The column, its types and its shares.
        kind: The likeliest type of its cells.
        distinct_share: Distinct values as a share of the rows; at least this many, by noisy counts.
        texts: First measurement of texts; None for other types.
    """

    measured: MeasuredColumn
    kind: _Type | None
    distinct_share: float
    texts: Details | None

    @property
    def claim(self) -> float:
        """Rows that a second measurement may describe better."""
        if self.texts is not None and self.distinct_share < _RARE_VALUES_SHARE:
            return undescribed_rows(self.measured, self.texts)
        is_fraction = self.kind == "number" and has_fractions(self.measured.types)
        if is_fraction and self.distinct_share < _RARE_VALUES_SHARE:
            return _FRACTIONS_CLAIM * self.measured.rows
        return 0.0


def _measure_columns(
    columns: Sequence[CountedTexts], measurer: HistogramMeasurer, rows: int
) -> list[_SeenColumn]:
    """Measure distinct values, types and, of texts, the most frequent ones; divide what is left.

    Privacy:
        Neighbours: add or remove one row.
        Covers: everything returned but the cells. Shares follow from the noisy number of rows, the
            noisy types and the texts that were named (``draft_budget``).
    """
    part = types_part(rows, columns=len(columns), share_of=measurer.share_of)
    distinct, types = [], []
    for each in columns:
        values = np.array([len(each.texts)], dtype=np.int64)
        answer = measurer.measure(values, share=DISTINCT_PART / len(columns))
        distinct.append((int(answer.public[0]) - _DISTINCT_MARGIN * answer.sigma) / rows)
        answer = measurer.measure(count_types(each), share=part / len(columns))
        types.append(ColumnTypes.of(answer))
    shares = divide_details(
        [_detail_weight(each) for each in types],
        1 - ROWS_PART - DISTINCT_PART - part,
        rows=rows,
        sigma_of=measurer.sigma_of,
    )
    found = []
    for column, seen, values_seen, share in zip(
        columns, types, distinct, shares.first, strict=True
    ):
        measured = MeasuredColumn(
            column=column,
            measurer=measurer,
            types=seen,
            rows=rows,
            rows_sigma=measurer.sigma_of(ROWS_PART),
            share=share,
        )
        kind = _likeliest_type(seen)
        texts = measure_texts(measured) if kind == "text" else None
        found.append(
            _SeenColumn(measured=measured, kind=kind, distinct_share=values_seen, texts=texts)
        )
    return _add_reserve(found, shares.reserve, measurer)


def _add_reserve(
    seen: list[_SeenColumn], reserve: float, measurer: HistogramMeasurer
) -> list[_SeenColumn]:
    """Divide the reserve among the columns, by what noisy answers have left undescribed."""
    claims = {each.measured.name: each.claim for each in seen}
    shares = divide_reserve(reserve, claims, threshold_of=measurer.threshold_of)
    return [
        replace(each, measured=replace(each.measured, reserve=shares.get(each.measured.name, 0.0)))
        for each in seen
    ]


def _detail_weight(types: ColumnTypes) -> DetailWeight:
    """Weight of a column in the division of details."""
    kind = _likeliest_type(types)
    if kind == "number" and has_fractions(types):
        return FRACTION_WEIGHT
    return TEXT_WEIGHT if kind == "text" else NUMBER_WEIGHT


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


def _draft_column(seen: _SeenColumn) -> ColumnDraft:
    """Describe a column by the likeliest type of its cells."""
    measured, types = seen.measured, seen.measured.types
    if seen.kind is None:
        return _draft_unknown(
            measured.name, missing=types.count("missing") if types.is_seen("missing") else 0
        )
    if seen.kind == "unsupported":
        return draft_unseen(measured.name, "the type of its cells is not supported")
    if seen.kind == "date":
        _, text_format, date_kind = types.best_date_format()
        return draft_dates(measured, text_format, date_kind)
    texts = seen.texts
    draft = draft_numbers(measured) if texts is None else draft_texts(measured, texts)
    return _identifier_or(draft, rows=measured.rows, distinct_share=seen.distinct_share)


def _identifier_or(draft: ColumnDraft, *, rows: int, distinct_share: float) -> ColumnDraft:
    """Describe a column as an identifier if nearly every row has its own value, else as drafted.

    Whole numbers must also lie close together, as numbers that were assigned do.
    """
    values = {field.key: field.value for field in draft.fields}
    if has_identifier_name(draft.name) and distinct_share > _NAMED_UNIQUE_SHARE:
        return draft_fresh(draft.name, "it identifies rows or persons")
    if distinct_share < _UNIQUE_SHARE:
        return draft
    if draft.kind == "text" and values["values"] == []:
        return draft_fresh(draft.name, "nearly every row has its own text")
    low, high = values.get("min"), values.get("max")
    if draft.kind == "integer" and isinstance(low, int) and isinstance(high, int):
        is_dense = high - low < _MAX_NUMBERS_PER_ROW * rows
        return draft_fresh(draft.name, _UNIQUE_NUMBERS) if is_dense else draft
    return draft


def _draft_unknown(name: str, missing: int = 0) -> ColumnDraft:
    """Describe a column of which nothing was seen but, perhaps, missing cells."""
    if missing:
        return draft_unseen(name, "nearly every cell is missing", {"": missing})
    if has_identifier_name(name):
        return draft_fresh(name, "it has the name of an identifier")
    return draft_unseen(name, "too few rows to find its type")


def _draft_unit(name: str) -> ColumnDraft:
    """Describe the unit column; a row that names no unit is not used."""
    draft = draft_fresh(name, "it identifies the unit")
    drop = DraftField("outside", "drop", "rows that name no unit are dropped")
    return replace(draft, fields=(*draft.fields, drop))


def draft_fresh(name: str, reason: str) -> ColumnDraft:
    """Describe a column that is not learnt: records get new identifiers."""
    release = DraftField("release", "fresh", 'new identifiers; "omit" leaves the column out')
    note = f"{reason}: it is not learnt, and every record gets a new one"
    return ColumnDraft(name=name, kind="identifier", fields=(release,), notes=(note,))
