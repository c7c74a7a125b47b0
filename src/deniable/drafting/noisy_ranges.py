"""Bounds of numbers and dates from noisy histograms, for a draft with differential privacy.

Numbers are first counted in public logarithmic intervals, from -10^18 to 10^18. Short ranges, and
ranges far from zero, are then counted again in fine intervals of equal width.
"""

import math
from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import CLASS_INDEX, MAX_CLASSIFIED_DECIMALS, parse_dates
from deniable.drafting.cell_texts import CountedTexts
from deniable.drafting.date_columns import TemporalKind, date_range_fields
from deniable.drafting.description import DRAFTED_PRIVATELY, ColumnDraft, DraftField, Kind
from deniable.drafting.noisy_histograms import HistogramMeasurer, count_intervals, grid_positions
from deniable.drafting.numeric_columns import number_range_fields
from deniable.drafting.numeric_profile import MAX_EXACT_REAL
from deniable.drafting.round_numbers import nice_above, nice_edges

# A type, a grid or a range must fit this share of the cells.
MAJORITY_SHARE = 0.95
# Bounds are narrowed only if this share of the numbers stays inside.
_MIN_SHARE_WITHIN_BOUNDS = 0.99
_LARGEST_EDGE = 10**18
_LOG_EDGES = nice_edges(-_LARGEST_EDGE, _LARGEST_EDGE)
_FIRST_YEAR, _LAST_YEAR = 1000, 9999
_MAX_FINE_INTERVALS = 50
# Decimals of the grid if most numbers need at least this many.
_MAX_GRID_DECIMALS = 6

_CLIP_FIELD = DraftField("outside", "clip", "values outside are set to the nearest bound")

_INTEGER_CLASSES = ("bit", "point", "decimals 0")
NUMERIC_CLASSES = (
    *_INTEGER_CLASSES,
    *(f"decimals {d}" for d in range(1, MAX_CLASSIFIED_DECIMALS + 1)),
    "long",
)


def count_numbers(classes: Counts) -> int:
    """Count the cells that hold numbers, from the counts per class."""
    return sum(int(classes[CLASS_INDEX[name]]) for name in NUMERIC_CLASSES)


def draft_omitted(name: str, reason: str, *, fresh: bool = False) -> ColumnDraft:
    """Describe a column that is not learnt; with ``fresh``, records get new identifiers."""
    if fresh:
        release = DraftField("release", "fresh", 'new identifiers; "omit" leaves the column out')
        note = f"{reason}: it is not learnt, and every record gets a new one"
    else:
        release = DraftField("release", "omit", "left out")
        note = f"{reason}: it is left out; describe it if you can"
    return ColumnDraft(name=name, kind="identifier", fields=(release,), notes=(note,))


def draft_dates(
    column: CountedTexts, measurer: HistogramMeasurer, text_format: str, kind: TemporalKind
) -> ColumnDraft:
    """Draft dates or datetimes: bounds are the first and the last frequent year.

    Privacy:
        Neighbours: add or remove one row, which moves one decade and one year by one.
        Covers: the bounds.
    """
    dtype = pl.Date() if kind == "date" else pl.Datetime("us")
    values = parse_dates(column.texts, text_format, dtype)
    present = values.is_not_null().to_numpy()
    years = values.filter(pl.Series(present)).dt.year().cast(pl.Int64).to_numpy()
    decades = range(_FIRST_YEAR, _LAST_YEAR + 1, 10)
    by_decade = measurer.measure(count_intervals(years, column.counts[present], decades)).public
    seen = np.flatnonzero(by_decade)
    if not len(seen):
        return draft_omitted(column.name, "no decade is frequent enough")
    first, last = decades[seen[0]], decades[seen[-1]] + 9
    edges = list(range(first, last + 2))
    by_year = measurer.measure(count_intervals(years, column.counts[present], edges)).public
    min_rows = _MIN_SHARE_WITHIN_BOUNDS * int(by_decade.sum())
    first, last = _narrow_bounds(first, last, edges, by_year, min_rows=min_rows)
    low, high = date(first, 1, 1), date(last, 12, 31)
    # A text format without seconds needs a grid of minutes.
    step = 1 if "%S" in text_format else 60
    fields = date_range_fields(
        kind, low, high, step=step, comments=(DRAFTED_PRIVATELY, DRAFTED_PRIVATELY)
    )
    fields += [DraftField("format", text_format, DRAFTED_PRIVATELY), _CLIP_FIELD]
    return ColumnDraft(name=column.name, kind=kind, fields=tuple(fields))


def draft_numbers(
    column: CountedTexts,
    measurer: HistogramMeasurer,
    classes: Counts,
    *,
    log_counts: Counts | None = None,
) -> ColumnDraft:
    """Draft numbers: bounds from logarithmic intervals, refined if the range is short.

    Args:
        column: The column.
        measurer: Measures noisy histograms.
        classes: Noisy counts per class of cell: how many decimals the numbers have.
        log_counts: Noisy counts of the logarithmic intervals, if they were measured already.

    Privacy:
        Neighbours: add or remove one row, which moves one interval of each histogram by one.
        Covers: the bounds, and whether the numbers are skewed.
    """
    grid = _majority_decimals(classes)
    if log_counts is None:
        log_counts = measurer.measure(count_log_intervals(column, classes)).public
    total = int(log_counts.sum())
    if 2 * total < count_numbers(classes):
        return draft_omitted(column.name, "too few rows to find its bounds")
    low, high, notes = log_bounds(log_counts, total=count_numbers(classes))
    if low == high:
        return draft_omitted(column.name, "its numbers are too large")
    top = int(log_counts[np.array(_LOG_EDGES) >= high // 5].sum())
    skewed = 2 * top < total and low >= 0
    low, high, grid = _coarsen_grid(low, high, grid)
    if _has_fractions(classes) and max(-low, high) >= MAX_EXACT_REAL:
        return draft_omitted(column.name, "its numbers are too large")
    positions, counts = grid_positions(column, grid)
    edges = [] if notes else _fine_edges(low, high)
    if edges:
        fine_counts = measurer.measure(count_intervals(positions, counts, edges)).public
        min_rows = _MIN_SHARE_WITHIN_BOUNDS * total
        low, high = _narrow_bounds(low, high, edges, fine_counts, min_rows=min_rows)
    fields = _number_fields(classes, low, high, grid, skewed=skewed)
    fields.append(_CLIP_FIELD)
    kind: Kind = "real" if any(field.key in ("decimals", "step") for field in fields) else "integer"
    return ColumnDraft(name=column.name, kind=kind, fields=tuple(fields), notes=notes)


def _number_fields(
    classes: Counts, low: int, high: int, grid: int, *, skewed: bool
) -> list[DraftField]:
    """Write bounds and grid of numbers as TOML fields; integers have no grid.

    Integers written with a decimal point are drafted as reals. A fraction among them may be too
    rare to be seen: a real rounds it to the grid, while an integer would be invalid.
    """
    comments = DRAFTED_PRIVATELY, DRAFTED_PRIVATELY
    has_points = int(classes[CLASS_INDEX["point"]]) > 0
    if has_points and grid == 0 and max(-low, high) < MAX_EXACT_REAL:
        fields = number_range_fields(low, high, decimals=None, skewed=skewed, comments=comments)
        step = DraftField(
            "step", Decimal("1.0"), "integers written with a decimal point; others are rounded"
        )
        return [*fields[:2], step, *fields[2:]]
    decimals = grid if _has_fractions(classes) else None
    return number_range_fields(low, high, decimals=decimals, skewed=skewed, comments=comments)


def _has_fractions(classes: Counts) -> bool:
    """Whether fractions were seen among the numbers."""
    fractions = (name for name in NUMERIC_CLASSES if name not in _INTEGER_CLASSES)
    return any(classes[CLASS_INDEX[name]] for name in fractions)


def count_log_intervals(column: CountedTexts, classes: Counts) -> Counts:
    """Count the numbers in each public logarithmic interval: a row moves one count by one."""
    return count_intervals(*grid_positions(column, _majority_decimals(classes)), _LOG_EDGES)


def log_bounds(noisy: Counts, *, total: int) -> tuple[int, int, tuple[str, ...]]:
    """Bounds from the occupied logarithmic intervals.

    If these hold too small a part of ``total``, the bounds are widened tenfold, with a note. The
    last interval has no upper end: its numbers are clipped to the last edge.
    """
    edges = _LOG_EDGES
    seen = np.flatnonzero(noisy)
    first, last = int(seen[0]), min(int(seen[-1]) + 1, len(edges) - 1)
    if int(noisy.sum()) >= MAJORITY_SHARE * total:
        return edges[first], edges[last], ()
    # Three intervals are a factor of ten.
    low = 0 if edges[first] >= 0 else edges[max(first - 3, 0)]
    high = 0 if edges[last] <= 0 else edges[min(last + 3, len(edges) - 1)]
    return low, high, ("its bounds are a guess from few rows: give the bounds that you know",)


def _majority_decimals(classes: Counts) -> int:
    """Decimals that suffice for nearly all numbers, up to ``_MAX_GRID_DECIMALS``."""
    majority = MAJORITY_SHARE * count_numbers(classes)
    for decimals in range(_MAX_GRID_DECIMALS):
        names = NUMERIC_CLASSES[: len(_INTEGER_CLASSES) + decimals]
        if sum(int(classes[CLASS_INDEX[name]]) for name in names) >= majority:
            return decimals
    return _MAX_GRID_DECIMALS


def _narrow_bounds(
    low: int, high: int, edges: list[int], noisy: Counts, *, min_rows: float
) -> tuple[int, int]:
    """Narrow the bounds to the occupied fine intervals, if these hold at least ``min_rows``.

    The last interval has no upper end, so it counts as outside.
    """
    inside = noisy[:-1]
    seen = np.flatnonzero(inside)
    if int(inside.sum()) < min_rows or not len(seen):
        return low, high
    width = edges[1] - edges[0]
    return edges[seen[0]], edges[seen[-1]] + (width if width > 1 else 0)


def _coarsen_grid(low: int, high: int, grid: int) -> tuple[int, int, int]:
    """Coarsen a grid that is too fine; return the bounds on the new grid and its decimals.

    The finest grid, of computed numbers, gets about a thousand positions. On any grid, doubles must
    tell positions apart.
    """
    decimals = grid
    if grid == _MAX_GRID_DECIMALS:
        needed = math.ceil(3 + _MAX_GRID_DECIMALS - math.log10(max(high - low, 1)))
        decimals = max(0, min(_MAX_GRID_DECIMALS, needed))
    while decimals and max(-low, high) >= MAX_EXACT_REAL * 10 ** (grid - decimals):
        decimals -= 1
    unit = 10 ** (grid - decimals)
    return low // unit, -(-high // unit), decimals


def _fine_edges(low: int, high: int) -> list[int]:
    """Edges of fine intervals of equal width; empty if logarithmic intervals are better.

    Fine intervals suit short ranges and ranges far from zero, such as years. In a long tail they
    would hold too few rows to be seen.
    """
    short = high - low <= _MAX_FINE_INTERVALS
    far = (low > 0 and high <= 5 * low) or (high < 0 and -low <= -5 * high)
    if not (short or far):
        return []
    width = 1 if short else nice_above((high - low) / _MAX_FINE_INTERVALS)
    return list(range(low // width * width, high + width + 1, width))
