"""Columns of fractions in a private draft: decimals, bounds and frequent numbers."""

import math
from decimal import Decimal

import numpy as np

from deniable.arrays import Counts, Indices
from deniable.drafting.cell_patterns import CLASS_INDEX, CLASS_NAMES, MAX_CLASSIFIED_DECIMALS
from deniable.drafting.description import ColumnDraft
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
from deniable.drafting.numeric_columns import number_range_fields
from deniable.drafting.round_numbers import nice_above
from deniable.drafting.type_histogram import (
    FRACTION_INTERVALS,
    MICRO,
    WHOLE_INTERVALS,
    ColumnTypes,
    is_number,
    numbers_of,
    occupied_range,
)

# Frequent numbers with this share of the rows are bounds of all numbers.
_SPIKES_SHARE = 0.75
# A grid must fit this share of the numbers.
_MAJORITY_SHARE = 0.95
_DECIMALS_SEEN_SIGMAS = 3.0
_MAX_GRID_DECIMALS = 6
# At most this many positions of a grid are counted one by one.
_MAX_GRID_CELLS = 2**20
_DECIMAL_CLASSES = [f"decimals {d}" for d in range(MAX_CLASSIFIED_DECIMALS + 1)]
# Parts of the share of a column of fractions: for decimals, and for frequent numbers. The rest is
# for bounds, or for frequent numbers, too.
_DECIMALS_PART, _SPIKES_PART = 0.25, 0.35


def draft_fractions(measured: MeasuredColumn) -> ColumnDraft:
    """Describe a column of fractions: bounds on a grid of as many decimals as most have."""
    counts = _all_styles(measured.types)
    first, last = occupied_range(counts, measured.types.sigma)
    skewed = is_skewed(counts, first, last)
    low, high = _outer_bounds(first, last, widened=skewed and measured.hides_small_shares)
    classes = [CLASS_INDEX[name] for name in (*_DECIMAL_CLASSES, "long")]
    decimals = np.full(len(CLASS_NAMES), -1)
    decimals[classes] = np.arange(len(classes))
    decimals[[CLASS_INDEX["bit"], CLASS_INDEX["point"]]] = 0
    details = measured.measure_details(
        decimals[measured.column.classes], len(classes), lists=False, part=_DECIMALS_PART
    )
    grid = _majority_decimals(details)
    low, high, grid = _to_grid(low, high, grid)
    centre = sum(FRACTION_INTERVALS[first + median_cell(counts[first : last + 1])]) // 2
    middle = min(max(centre * 10**grid // MICRO, low), high)
    if not skewed:
        low, high, middle = _refine_bounds(measured, low, high, grid)
    part = 1 - _DECIMALS_PART if skewed else _SPIKES_PART
    frequent, spikes, strays = _measure_spikes(measured, low, high, grid, part=part)
    # A number for "no answer" is in no interval of the types: it may be outside the bounds.
    spikes = {position: n for position, n in spikes.items() if low <= position <= high}
    at = sorted(spikes, key=lambda position: -spikes[position])
    if sum(spikes.values()) > _SPIKES_SHARE * measured.rows:
        margin = (max(at) - min(at)) // 2
        low, high = max(low, min(at) - margin), min(high, max(at) + margin)
        middle = min(max(middle, low), high)
    missing = measured.missing_texts(frequent) | strays | seen_reasons(frequent, measured.types)
    if measured.types.is_seen("text", CLEARLY_SEEN_SIGMAS) and not missing:
        missing = {"": measured.types.count("text")}
    fields = number_range_fields(low, high, decimals=grid, skewed=skewed, comments=BOUND_COMMENTS)
    fields = with_spikes(fields, at, low, high, grid)
    number = Decimal(middle).scaleb(-grid)
    fields += [CLIP_FIELD, *fallback_fields(missing, number)]
    return ColumnDraft(name=measured.name, kind="real", fields=tuple(fields))


def _measure_spikes(
    measured: MeasuredColumn, low: int, high: int, grid: int, *, part: float
) -> tuple[Details, dict[int, int], dict[str, int]]:
    """Measure frequent numbers; return the answer, their positions, and texts among the numbers.

    Positions between the bounds are known in advance, so a number at one of them needs fewer rows
    than an unknown text. If there are too many, frequent numbers are listed like texts.
    """
    cells, size = measured.listed_cells(REASONS), high - low + 1
    if size > _MAX_GRID_CELLS:
        frequent = measured.measure_details(
            cells, len(REASONS), lists=True, part=part, reserved=True
        )
        numbers, strays = split_numbers(frequent.texts)
        spikes = {int((each * 10**grid).to_integral_value()): n for each, n in numbers.items()}
        return frequent, spikes, strays
    at = _positions(measured, grid) - low
    inside = is_number(measured.column) & (at >= 0) & (at < size)
    cells = np.where(inside, len(REASONS) + at, cells)
    frequent = measured.measure_details(
        cells, len(REASONS) + size, lists=True, part=part, reserved=True
    )
    counts = frequent.cells[len(REASONS) :]
    limit = max(CLEARLY_SEEN_SIGMAS, math.sqrt(2 * math.log(size)) + 0.5) * frequent.sigma
    spikes = {low + int(i): int(counts[i]) for i in np.flatnonzero(counts > limit)}
    return frequent, spikes, split_numbers(frequent.texts)[1]


def _positions(measured: MeasuredColumn, grid: int) -> Indices:
    """Nearest position on the grid of each text; 0 for a text that is no number."""
    scaled = np.clip(numbers_of(measured.column) * 10.0**grid, -1e18, 1e18)
    positions: Indices = np.rint(scaled).astype(np.int64)
    return positions


def _outer_bounds(first: int, last: int, *, widened: bool) -> tuple[int, int]:
    """Bounds of a range of intervals, in millionths; widened by one interval on the same side of 0.

    Noise hides rare numbers at both ends of a long range. An empty interval costs a run little.
    """
    low, high = FRACTION_INTERVALS[first][0], FRACTION_INTERVALS[last][1]
    if widened and low > 0:
        low = FRACTION_INTERVALS[first - 1][0]
    if widened and 0 < high < FRACTION_INTERVALS[-1][1]:
        high = FRACTION_INTERVALS[last + 1][1]
    return low, high


def _all_styles(types: ColumnTypes) -> Counts:
    """Noisy counts of fractions and whole numbers in the intervals of fractions.

    Whole numbers count where they exceed their noise: by little next to fractions, clearly
    elsewhere. Otherwise the noise of three counts would add up, and show numbers far away.
    """
    counts = types.style("fraction").copy()
    first, last = occupied_range(counts, types.sigma)
    needed = np.full(len(counts), CLEARLY_SEEN_SIGMAS * types.sigma)
    needed[max(first - 1, 0) : last + 2] = 2 * types.sigma
    half, small = len(WHOLE_INTERVALS) // 2, (len(counts) - len(WHOLE_INTERVALS) + 1) // 2
    at = np.r_[:half, half + small, half + 2 * small : len(counts)]
    for style in ("whole", "point"):
        whole = types.style(style)
        counts[at] += np.where(whole > needed[at], whole, 0)
    return counts


def _majority_decimals(details: Details) -> int:
    """Decimals that suffice for nearly all numbers, up to ``_MAX_GRID_DECIMALS``."""
    seen = np.where(details.cells > _DECIMALS_SEEN_SIGMAS * details.sigma, details.cells, 0)
    if not seen.any():
        return min(int(np.argmax(details.cells)), _MAX_GRID_DECIMALS)
    enough = np.cumsum(seen) >= _MAJORITY_SHARE * seen.sum()
    return min(int(np.argmax(enough)), _MAX_GRID_DECIMALS)


def _to_grid(low: int, high: int, grid: int) -> tuple[int, int, int]:
    """Convert bounds in millionths to a grid; coarsen one that is too fine.

    The finest grid, of computed numbers, gets about a thousand positions. On any grid, doubles must
    tell positions apart.
    """
    decimals = grid
    if grid == _MAX_GRID_DECIMALS:
        needed = math.ceil(3 + _MAX_GRID_DECIMALS - math.log10(max(high - low, 1)))
        decimals = max(0, min(_MAX_GRID_DECIMALS, needed))
    while decimals and max(-low, high) * 10**decimals >= MAX_POSITION * MICRO:
        decimals -= 1
    unit = 10 ** (_MAX_GRID_DECIMALS - decimals)
    low, high = (
        min(max(end, 1 - MAX_POSITION), MAX_POSITION - 1) for end in (low // unit, -(-high // unit))
    )
    return low, high, decimals


def _refine_bounds(
    measured: MeasuredColumn, low: int, high: int, grid: int
) -> tuple[int, int, int]:
    """Measure intervals of equal width, and cut off empty ones at both ends."""
    width = nice_above((high - low + 1) / FINE_INTERVALS)
    start = low // width * width
    count = (high - start) // width + 1
    at = (_positions(measured, grid) - start) // width
    counted = is_number(measured.column) & (at >= 0) & (at < count)
    part = 1 - _DECIMALS_PART - _SPIKES_PART
    details = measured.measure_details(np.where(counted, at, -1), count, lists=False, part=part)
    inside = (low - start) // width, (high - start) // width
    first, last = trim_empty_ends(details.cells, details.sigma, rows=measured.rows, inside=inside)
    middle = first + median_cell(details.cells[first : last + 1])
    new_low = max(low, start + first * width)
    new_high = min(high, start + (last + 1) * width)
    return new_low, new_high, min(max(start + middle * width, new_low), new_high)
