"""Numbers of a private draft: bounds, grid, and codes, from noisy histograms.

The first histogram of a column has its numbers in logarithmic intervals. Where these show a short
range, the second one counts each whole number of it; far from zero, such as for years, it counts
intervals of equal width. Numbers that surveys write for "no answer" are always counted one by one.
"""

import math
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from deniable.arrays import Counts, Indices, Reals
from deniable.drafting.cell_patterns import (
    are_missing_reasons,
)
from deniable.drafting.description import (
    DRAFTED_PRIVATELY,
    ColumnDraft,
    DraftField,
)
from deniable.drafting.frequent_numbers import (
    BOUND_COMMENTS,
    FINE_INTERVALS,
    MAX_POSITION,
    REASONS,
    is_skewed,
    seen_reasons,
    split_numbers,
    with_spikes,
)
from deniable.drafting.measured_column import (
    CLEARLY_SEEN_SIGMAS,
    CLIP_FIELD,
    Details,
    MeasuredColumn,
    fallback_fields,
    median_cell,
    trim_empty_ends,
)
from deniable.drafting.noisy_fractions import draft_fractions
from deniable.drafting.noisy_lists import draft_open_list
from deniable.drafting.numeric_columns import number_range_fields
from deniable.drafting.round_numbers import nice_above
from deniable.drafting.type_histogram import (
    NUMBER_STYLES,
    SENTINELS,
    WHOLE_INTERVALS,
    ColumnTypes,
    NumberStyle,
    best_window,
    is_number,
    numbers_of,
    occupied_range,
    whole_interval_of,
)

# At most this many whole numbers are counted one by one.
_MAX_COUNTED_CODES = 150
# Codes are often numbered from 0 or 1 up to this.
_MAX_SMALL_CODE = 9
# A column of at most this many whole numbers is a category.
_MAX_LISTED_CODES = 12
# A range of single numbers is widened at both ends by this many, or by this part of its length.
_MIN_WIDENING, _WIDENING_PART = 3, 12
# One of wider intervals begins at zero, if it begins within this part of its length from there.
_NEAR_ZERO_PART = 10
# In units of the noise: more rows than this that no code explains are other numbers.
_UNEXPLAINED_SIGMAS = 2.5
# Scores are rounded to parts of the noise.
_SCORE_UNITS = 100.0
# Fractions make a column real if they are this share of its rows.
_MIN_FRACTION_SHARE = 0.03


@dataclass(frozen=True)
class _Cells:
    """Cells of the second histogram: words for missing, fine intervals, and all other numbers.

    Other numbers are counted in the intervals of the types; those for "no answer" in a last cell.

    Attributes:
        low: First fine interval.
        width: Width of the fine intervals.
        count: How many there are. If 0, numbers are in no cell, and frequent ones are listed.
    """

    low: int
    width: int
    count: int

    @property
    def high(self) -> int:
        """Last number of the fine intervals."""
        return self.low + self.count * self.width - 1

    @property
    def size(self) -> int:
        """Number of cells."""
        others = len(WHOLE_INTERVALS) + 1 if self.count else 0
        return len(REASONS) + self.count + others

    def fine(self, details: Details) -> Counts:
        """Noisy counts of the fine intervals."""
        return details.cells[len(REASONS) : len(REASONS) + self.count]

    def others(self, details: Details) -> Counts:
        """Noisy counts of other numbers, in the intervals of the types."""
        return details.cells[len(REASONS) + self.count :][: len(WHOLE_INTERVALS)]

    def of(self, measured: MeasuredColumn) -> Indices:
        """Cell of each text; -1 for a text that has none."""
        found = measured.listed_cells(REASONS)
        if not self.count:
            return np.where(is_number(measured.column), -1, found)
        numbers = np.rint(numbers_of(measured.column)).astype(np.int64)
        fine = (numbers - self.low) // self.width
        others = self.count + whole_interval_of(numbers)
        others = np.where(np.isin(numbers, SENTINELS), self.size - len(REASONS) - 1, others)
        at = len(REASONS) + np.where((fine >= 0) & (fine < self.count), fine, others)
        return np.where(is_number(measured.column), at, found)


@dataclass(frozen=True)
class _Range:
    """Range of whole numbers that noisy answers show.

    Attributes:
        low: Lower bound.
        high: Upper bound.
        middle: Median.
        skewed: Whether most numbers are in the lower part of the range.
        score: Evidence for numbers in it, in standard deviations of the noise.
    """

    low: int
    high: int
    middle: int
    skewed: bool
    score: float


def draft_numbers(measured: MeasuredColumn) -> ColumnDraft:
    """Describe a column of numbers.

    Privacy:
        Neighbours: add or remove one row, which moves one count of each histogram by one.
        Covers: the whole description.
    """
    types = measured.types
    if has_fractions(types):
        return draft_fractions(measured)
    needed = max(types.score("whole"), CLEARLY_SEEN_SIGMAS if types.seen_sentinels() else 0.0)
    return _draft_whole_numbers(measured, "point" if types.score("point") > needed else "whole")


def has_fractions(types: ColumnTypes) -> bool:
    """Whether enough numbers of a column are fractions to need decimals."""
    scores = {style: types.score(style) for style in NUMBER_STYLES}
    if scores["fraction"] == max(scores.values()) and not types.seen_sentinels():
        return True
    rows = {style: best_window(types.style(style)) for style in NUMBER_STYLES}
    sums = {style: s * (last - first + 1) ** 0.5 for style, (s, first, last) in rows.items()}
    is_frequent = sums["fraction"] > _MIN_FRACTION_SHARE * max(sums.values())
    return is_frequent and scores["fraction"] > CLEARLY_SEEN_SIGMAS


def _draft_whole_numbers(measured: MeasuredColumn, style: NumberStyle) -> ColumnDraft:
    types = measured.types
    codes, cells = types.seen_sentinels(), _cells_of_style(types, style)
    details = measured.measure_details(cells.of(measured), cells.size, lists=True)
    missing = measured.missing_texts(details)
    words, fine = seen_reasons(details, types), cells.fine(details)
    if cells.count:
        fine, inner = _split_sentinels(fine, cells, details.sigma)
        codes |= inner
    found = _find_range(measured, style, cells, details, fine)
    explained = sum((missing | words).values())
    explained += int(details.cells[-1]) if cells.count else 0
    found = _widen_range(measured, cells, found)
    if codes and found.score < CLEARLY_SEEN_SIGMAS:
        # Little else than these codes: noise hides the other numbers.
        most_frequent = max(codes, key=lambda code: codes[code])
        is_more = _leaves_rows(measured, details, explained, 1)
        small = range(cells.low, cells.high + 1) if is_more else ()
        return _draft_codes(measured, [*{*codes, *small}], missing | words, most_frequent)
    low, high = found.low, found.high
    codes = {code: rows for code, rows in codes.items() if not low <= code <= high}
    spikes, strays = split_numbers(details.texts)
    texts = words | strays
    frequent = cells.low + np.flatnonzero(fine > CLEARLY_SEEN_SIGMAS * details.sigma)
    numbers = frequent.tolist() if cells.width == 1 else []
    unknown = [text for text in texts if text not in REASONS]
    if unknown and cells.width == 1 and not are_missing_reasons(unknown, numbers=high - low + 1):
        return draft_open_list(measured.name, sorted({*texts, *map(str, numbers)}), missing)
    missing |= texts
    if types.is_seen("text", CLEARLY_SEEN_SIGMAS) and not missing:
        missing = {"": types.count("text")}
    is_short = cells.width == 1 and high - low + len(codes) < _MAX_LISTED_CODES
    seen = fine[max(low - cells.low, 0) : high - cells.low + 1]
    explained += int(seen.sum())
    if style == "whole" and is_short and not _leaves_rows(measured, details, explained, len(seen)):
        return _draft_codes(measured, [*codes, *range(low, high + 1)], missing, found.middle)
    missing |= {str(code): rows for code, rows in codes.items()}
    own_bins = [*map(int, spikes), *numbers]
    return _draft_range(measured.name, found, missing, own_bins, has_points=style == "point")


def _find_range(
    measured: MeasuredColumn, style: NumberStyle, cells: _Cells, details: Details, fine: Counts
) -> _Range:
    """Find the range that types and details show together."""
    types = measured.types
    counts, scores = types.style(style), types.style(style) / types.sigma
    if cells.count:
        counts, scores = _combine_intervals(counts, types.sigma, cells, details, fine)
    units = np.rint(_SCORE_UNITS * scores).astype(np.int64)
    first, last = occupied_range(units, _SCORE_UNITS)
    score = best_window(units)[0] / _SCORE_UNITS
    low, high = WHOLE_INTERVALS[first][0], WHOLE_INTERVALS[last][1]
    skewed, middle = is_skewed(counts, first, last), _middle_of(counts, first, last)
    if not cells.count or low > cells.high or high < cells.low:
        return _Range(low, high, middle, skewed, score)
    ends = max(low, cells.low), min(high, cells.high)
    inside = (ends[0] - cells.low) // cells.width, (ends[1] - cells.low) // cells.width
    start, end = trim_empty_ends(fine, details.sigma, rows=measured.rows, inside=inside)
    if low >= cells.low and high <= cells.high:
        middle = cells.low + (start + median_cell(fine[start : end + 1])) * cells.width
    return _Range(
        cells.low + start * cells.width if low >= cells.low else low,
        cells.low + (end + 1) * cells.width - 1 if high <= cells.high else high,
        middle,
        skewed,
        score,
    )


def _leaves_rows(measured: MeasuredColumn, details: Details, explained: int, numbers: int) -> bool:
    """Whether there are more rows than ``numbers`` noisy counts, missing cells and texts explain.

    Then the column has other numbers, even if noise hides each of them: numbers outside a range
    must be clipped to it, and not become the fallback of a list.
    """
    noise = math.hypot(measured.rows_sigma, numbers**0.5 * details.sigma)
    rest = measured.rows - explained - sum(details.texts.values())
    return rest > _UNEXPLAINED_SIGMAS * noise


def _widen_range(measured: MeasuredColumn, cells: _Cells, found: _Range) -> _Range:
    """Widen a long range beyond the numbers that were seen, if the rows suffice.

    Noise hides rare numbers at both ends. Numbers that no row has cost a run little; those that a
    range leaves out are clipped. An end among numbers that were counted one by one is widened by a
    few of them, and at least half the way to the end of its logarithmic interval; another one by
    such an interval. A few codes stay as they were seen: a code that no row has would be strange in
    a release.
    """
    if not measured.hides_small_shares:
        return found
    inside = cells.low <= found.low and found.high <= cells.high
    if inside and cells.width == 1 and found.high - found.low < _MAX_LISTED_CODES:
        return found
    if cells.width > 1:
        near_zero = 0 < found.low <= (found.high - found.low) // _NEAR_ZERO_PART
        return replace(found, low=0) if near_zero else found
    first, last = whole_interval_of(np.array([found.low, found.high])).tolist()
    low = WHOLE_INTERVALS[max(first - 1, 0)][0]
    high = WHOLE_INTERVALS[min(last + 1, len(WHOLE_INTERVALS) - 1)][1]
    length = min(found.high, cells.high) - max(found.low, cells.low) + 1
    more = max(_MIN_WIDENING, length // _WIDENING_PART)
    if cells.low <= found.low <= cells.high:
        low = found.low - max(more, (found.low - WHOLE_INTERVALS[first][0]) // 2)
    if cells.low <= found.high <= cells.high:
        high = found.high + max(more, (WHOLE_INTERVALS[last][1] - found.high) // 2)
    low = max(low, 0) if found.low >= 0 else low
    high = min(high, 0) if found.low < 0 and found.high <= 0 else high
    return replace(found, low=low, high=high)


def _combine_intervals(
    counts: Counts, sigma: float, cells: _Cells, details: Details, fine: Counts
) -> tuple[Counts, Reals]:
    """Combine the intervals of types and details: counts, and counts in units of their noise.

    Both are averaged with weights inverse to their variances. A number for "no answer" is in no
    interval of the types.
    """
    values = cells.low + np.arange(cells.count) * cells.width
    counted = ~np.isin(values, SENTINELS) if cells.width == 1 else np.ones(cells.count, dtype=bool)
    at = whole_interval_of(values[counted])
    sizes = np.bincount(at, minlength=len(counts))
    sums = np.bincount(at, weights=fine[counted], minlength=len(counts))
    again = np.where(sizes > 0, sums, cells.others(details))
    precision = 1 / (np.maximum(sizes, 1) * details.sigma**2)
    if cells.width > 1:
        # Fine intervals do not end where those of the types do.
        precision[at.min() : at.max() + 1] = 0.0
    total = precision + 1 / sigma**2
    evidence = counts / sigma**2 + again * precision
    return np.rint(evidence / total).astype(np.int64), evidence / np.sqrt(total)


def _draft_range(
    name: str, found: _Range, missing: dict[str, int], own_bins: list[int], *, has_points: bool
) -> ColumnDraft:
    """Describe a range of whole numbers; those written with a point are reals with a step."""
    low, high = found.low, found.high
    fields = number_range_fields(
        low, high, decimals=None, skewed=found.skewed, comments=BOUND_COMMENTS
    )
    fields = with_spikes(fields, own_bins, low, high, None)
    fields += [CLIP_FIELD, *fallback_fields(missing, min(max(found.middle, low), high))]
    ends = [field.value for field in fields if field.key in ("min", "max")]
    if has_points and all(isinstance(end, int) and abs(end) < MAX_POSITION for end in ends):
        step = DraftField("step", Decimal("1.0"), "integers written with a decimal point")
        fields = [*fields[:2], step, *fields[2:]]
        return ColumnDraft(name=name, kind="real", fields=tuple(fields))
    return ColumnDraft(name=name, kind="integer", fields=tuple(fields))


def _draft_codes(
    measured: MeasuredColumn, codes: list[int], missing: dict[str, int], middle: int
) -> ColumnDraft:
    """Describe a column of few whole numbers as a category."""
    fields = (
        DraftField("values", sorted(codes), DRAFTED_PRIVATELY),
        *fallback_fields(missing, middle),
    )
    return ColumnDraft(name=measured.name, kind="categorical", fields=fields)


def _cells_of_style(types: ColumnTypes, style: NumberStyle) -> _Cells:
    """Choose the cells of the second histogram by the first."""
    if types.seen_sentinels() and types.score(style) < CLEARLY_SEEN_SIGMAS:
        # The range may be noise: look for small numbers, and in all intervals.
        return _Cells(0, 1, _MAX_SMALL_CODE + 1)
    counts = types.style(style)
    first, last = occupied_range(counts, types.sigma)
    return _choose_cells(first, last, skewed=is_skewed(counts, first, last))


def _choose_cells(first: int, last: int, *, skewed: bool) -> _Cells:
    """Choose fine intervals: single numbers in a short range, equal widths in a wide one.

    In a long tail, intervals of equal width would hold too few rows.
    """
    low, high = WHOLE_INTERVALS[first][0], WHOLE_INTERVALS[last][1]
    # One interval more at both ends, where rare codes may be.
    wide_low = WHOLE_INTERVALS[max(first - 1, 0)][0] if low else 0
    wide_high = WHOLE_INTERVALS[min(last + 1, len(WHOLE_INTERVALS) - 1)][1]
    if low >= 0 and high <= _MAX_SMALL_CODE:
        wide_low, wide_high = 0, max(wide_high, _MAX_SMALL_CODE)
    for one, other in ((wide_low, wide_high), (low, wide_high), (wide_low, high), (low, high)):
        if other - one < _MAX_COUNTED_CODES:
            return _Cells(one, 1, other - one + 1)
    if not skewed or _is_far_from_zero(low, high):
        width = nice_above((high - low + 1) / FINE_INTERVALS)
        start = low // width * width
        return _Cells(start, width, (high - start) // width + 1)
    return _Cells(0, 1, 0)


def _is_far_from_zero(low: int, high: int) -> bool:
    return (low > 0 and high <= 5 * low) or (high < 0 and -low <= -5 * high)


def _split_sentinels(fine: Counts, cells: _Cells, sigma: float) -> tuple[Counts, dict[int, int]]:
    """Take numbers that may mean missing out of the fine intervals, if they stand apart."""
    found: dict[int, int] = {}
    if cells.width > 1:
        return fine, found
    rest = fine.copy()
    inside = [code for code in SENTINELS if 0 <= code - cells.low < cells.count]
    seen = [code for code in inside if fine[code - cells.low] > CLEARLY_SEEN_SIGMAS * sigma]
    for code in seen:
        rest[code - cells.low] = 0
    if not seen:
        return fine, found
    low, high = (cells.low + end for end in occupied_range(rest, sigma))
    for code in seen:
        apart = code < 0 <= low or code - high > max(high - low, 2)
        if apart:
            found[code] = int(fine[code - cells.low])
        else:
            rest[code - cells.low] = fine[code - cells.low]
    return rest, found


def _middle_of(counts: Counts, first: int, last: int) -> int:
    low, high = WHOLE_INTERVALS[first + median_cell(counts[first : last + 1])]
    return int(low + high) // 2
