"""A column of a private draft: its confidential cells, and what noisy answers have shown so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Counts, Indices
from deniable.drafting.cell_patterns import CLASS_INDEX, MISSING_TEXTS
from deniable.drafting.cell_texts import CountedTexts
from deniable.drafting.description import DRAFTED_PRIVATELY, ColumnDraft, DraftField, TomlValue
from deniable.drafting.noisy_histograms import HistogramMeasurer
from deniable.drafting.type_histogram import ColumnTypes

# In units of the noise: a cell that was not expected to hold rows does, if its count is above this.
CLEARLY_SEEN_SIGMAS = 4.5
# The same for one of the few texts that mean missing.
_MISSING_SEEN_SIGMAS = 4.5
# The same for the most frequent of them, where the types show missing cells less clearly than that.
_MISSING_CONFIRMED_SIGMAS = 2.0
_LISTED_AS_TEXT = -1
# Cells at the ends of a range are cut off if their sum is below this, in units of the noise, and
# below this share of the rows and its noise, where the noise is below another share. Cells outside
# a range are seen above the last.
_MAX_EMPTY_SIGMAS = 1.5
_MAX_CUT_SHARE = 0.005
_MAX_CUT_NOISE_SHARE = 0.02
_OUTSIDE_SEEN_SIGMAS = 3.0
# Noise of types above this share of the rows hides rare numbers.
_MIN_HIDING_SHARE = 0.005
# The same where few cells are outside: an empty code costs little, a lost one its rows.
_FEW_CELLS, _FEW_SEEN_SIGMAS = 10, 2.0

_FALLBACK_COMMENT = "replaces every cell that is not described here"
CLIP_FIELD = DraftField("outside", "clip", "values outside are set to the nearest bound")


@dataclass(frozen=True, kw_only=True)
class Details:
    """Second histogram of a column: its missing texts, some cells known in advance, and texts.

    Attributes:
        missing: Noisy counts of ``cell_patterns.MISSING_TEXTS``.
        cells: Noisy counts of the other cells known in advance.
        texts: Noisy counts of texts that are frequent enough to be named.
        sigma: Standard deviation of the noise.
    """

    missing: Counts = field(repr=False)
    cells: Counts = field(repr=False)
    texts: dict[str, int]
    sigma: float


@dataclass(frozen=True, kw_only=True)
class MeasuredColumn:
    """A column, and what is known of it.

    Attributes:
        column: Its cells. Confidential: only ``measure_details`` reads them.
        measurer: Measures histograms with noise.
        types: Noisy types of its cells.
        rows: Noisy number of rows of the table, at least 1.
        rows_sigma: Standard deviation of its noise.
        share: Part of μ² for further histograms of this column.
        reserve: Part of μ² for a second measurement of its details, next to ``share``.
    """

    column: CountedTexts = field(repr=False)
    measurer: HistogramMeasurer = field(repr=False)
    types: ColumnTypes
    rows: int
    share: float
    rows_sigma: float = 0.0
    reserve: float = 0.0

    @property
    def name(self) -> str:
        """The column's header."""
        return self.column.name

    @property
    def hides_small_shares(self) -> bool:
        """Whether noise hides rare numbers, but is small enough for a few empty cells in a run."""
        return _MIN_HIDING_SHARE * self.rows < self.types.sigma <= _MAX_CUT_NOISE_SHARE * self.rows

    def measure_details(
        self, cells: Indices, size: int, *, lists: bool, part: float = 1.0, reserved: bool = False
    ) -> Details:
        """Measure a histogram of details, with a part of the share of the column.

        Args:
            cells: For each distinct text, its cell out of ``size``; -1 if it is in none.
            size: Number of these cells, which are known in advance.
            lists: Whether texts in none of them are cells, too. If not, they are left out.
            part: Part of the share of this column.
            reserved: Whether to add the reserve of the column.

        Privacy:
            Neighbours: add or remove one row. Its cell is one of the missing texts, or in one of
                the cells known in advance, or a text: it moves at most one count by one.
            Covers: as ``HistogramMeasurer.measure``.
        """
        column, reasons = self.column, len(MISSING_TEXTS)
        is_missing = column.classes < reasons
        at = np.where(is_missing, column.classes, np.where(cells < 0, -1, cells + reasons))
        public = np.zeros(reasons + size, dtype=np.int64)
        np.add.at(public, at[at >= 0], column.counts[at >= 0])
        public[CLASS_INDEX["missing "]] += column.nulls
        listed = column.select((at < 0) & (column.classes != CLASS_INDEX["unsupported"]))
        share = self.share * part + (self.reserve if reserved else 0.0)
        answer = self.measurer.measure(public, listed if lists else None, share=share)
        return Details(
            missing=answer.public[:reasons],
            cells=answer.public[reasons:],
            texts=answer.texts,
            sigma=answer.sigma,
        )

    def missing_texts(self, details: Details) -> dict[str, int]:
        """Texts that mean missing and exceed the noise, with their noisy counts."""
        limit = _MISSING_SEEN_SIGMAS * details.sigma
        counts = dict(zip(MISSING_TEXTS, details.missing.tolist(), strict=True))
        seen = {text: count for text, count in counts.items() if count > limit}
        if not seen and self.types.is_seen("missing"):
            best = max(counts, key=lambda text: counts[text])
            confirmed = counts[best] > _MISSING_CONFIRMED_SIGMAS * details.sigma
            if confirmed or self.types.is_seen("missing", _MISSING_SEEN_SIGMAS):
                return {best: self.types.count("missing")}
        return seen

    def listed_cells(self, words: Sequence[str]) -> Indices:
        """Index of each distinct text in a public list; -1 if it is not listed."""
        index = {word: i for i, word in enumerate(words)}
        cells = [index.get(text, _LISTED_AS_TEXT) for text in self.column.texts]
        return np.array(cells, dtype=np.intp)


def fallback_fields(missing: dict[str, int], value: TomlValue) -> list[DraftField]:
    """Write ``missing``, most frequent text first, and the fallback: missing, or else a value."""
    if not missing:
        return [DraftField("fallback", value, _FALLBACK_COMMENT)]
    texts = sorted(missing, key=lambda text: -missing[text])
    return [
        DraftField("missing", [*texts], DRAFTED_PRIVATELY),
        DraftField("fallback", texts[0], _FALLBACK_COMMENT),
    ]


def draft_unseen(name: str, reason: str, missing: dict[str, int] | None = None) -> ColumnDraft:
    """Describe a column in which noise hides every value: all of them become "other"."""
    fields = [
        DraftField("values", [], DRAFTED_PRIVATELY),
        DraftField("other", "other", "replaces all texts"),
        *fallback_fields(missing or {}, "other"),
    ]
    note = f"{reason}, so all its values become one: describe it if you can"
    return ColumnDraft(name=name, kind="text", fields=tuple(fields), notes=(note,))


def median_cell(counts: Counts) -> int:
    """Cell in which half of the rows are reached, by noisy counts; negative ones count as 0."""
    rows = np.cumsum(np.maximum(counts, 0))
    return int(np.searchsorted(rows, rows[-1] / 2)) if rows[-1] else len(counts) // 2


def trim_empty_ends(
    counts: Counts, sigma: float, *, rows: int, inside: tuple[int, int]
) -> tuple[int, int]:
    """First and last cell without the cells at both ends that hold hardly any rows.

    Args:
        counts: Noisy counts.
        sigma: Standard deviation of their noise.
        rows: Noisy number of rows.
        inside: First and last cell of the range that other answers have shown. A cell in it is cut
            off only if the noise is small enough to show that hardly any rows are lost. A cell
            outside is kept only if it was seen.
    """
    first = _first_occupied(counts, sigma, rows, inside[0])
    last = len(counts) - 1
    last -= _first_occupied(counts[::-1], sigma, rows, last - inside[1])
    middle = median_cell(counts)
    return (first, last) if first <= last else (middle, middle)


def _first_occupied(counts: Counts, sigma: float, rows: int, inside: int) -> int:
    roots = np.sqrt(np.arange(1, len(counts) + 1))
    # Sums of the cells next to the range: from each of those outside to its edge.
    sums = np.cumsum(counts[:inside][::-1])[::-1]
    needed = _OUTSIDE_SEEN_SIGMAS if inside > _FEW_CELLS else _FEW_SEEN_SIGMAS
    noise = needed * sigma * roots[:inside][::-1]
    seen = np.flatnonzero((sums > noise) & (counts[:inside] > sigma))
    if len(seen):
        return int(seen[0])
    inner, roots = np.cumsum(counts[inside:]), roots[: len(counts) - inside]
    limit = np.minimum(_MAX_EMPTY_SIGMAS * sigma * roots, _MAX_CUT_SHARE * rows + sigma * roots)
    shown = (inner <= limit) & (sigma * roots <= _MAX_CUT_NOISE_SHARE * rows)
    empty = np.flatnonzero(shown)
    return inside + (int(empty[-1]) + 1 if len(empty) else 0)
