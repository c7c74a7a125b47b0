"""Bounds of numbers and dates from noisy histograms, for a draft with differential privacy."""

import math
from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl

from deniable.arrays import Counts
from deniable.drafting.attributes import PRIVATE, Described, Field, Kind
from deniable.drafting.bounds import nice_above, powers
from deniable.drafting.cells import CLASS, MOST_DECIMALS, parsed
from deniable.drafting.columns import Column
from deniable.drafting.dates import MomentKind, describe_range
from deniable.drafting.figures import LARGEST_REAL, range_fields
from deniable.drafting.measures import Measurer, interval_counts, positions_in

# A grid is of so many decimals, a range so wide, as nearly all numbers need.
MAJORITY = 0.95
# Bounds are narrowed if so many of the numbers stay inside.
_NEARLY_ALL = 0.99
_FAR = 10**18
_EDGES = powers(-_FAR, _FAR)
_FIRST_YEAR, _LAST_YEAR = 1000, 9999
_FINE = 50
# Decimals of numbers that have more than is worth counting.
_LONG_GRID = 6

_WHOLE = ("bit", "point", "decimals 0")
NUMERIC = (*_WHOLE, *(f"decimals {d}" for d in range(1, MOST_DECIMALS + 1)), "long")


def numeric_cells(classes: Counts) -> int:
    """Return how many cells hold numbers."""
    return sum(int(classes[CLASS[name]]) for name in NUMERIC)


def left_out(name: str, why: str, *, fresh: bool = False) -> Described:
    """Return a column of which nothing is learnt; ``fresh``: records get new identifiers."""
    release = (
        Field("release", "fresh", 'new ones; "omit" leaves the column out')
        if fresh
        else Field("release", "omit", "left out")
    )
    what = (
        "it is not learnt, and every record gets one"
        if fresh
        else "it is left out; describe it if you can"
    )
    return Described(name=name, kind="identifier", fields=(release,), notes=(f"{why}: {what}",))


def draft_moments(
    column: Column, measurer: Measurer, form: str | None, kind: MomentKind
) -> Described:
    """Return days or moments, in whole years from the first to the last that are frequent."""
    values = column.values
    if form is not None:
        values = parsed(values, form, pl.Date() if kind == "date" else pl.Datetime("us"))
    there = values.is_not_null().to_numpy()
    years = values.filter(pl.Series(there)).dt.year().cast(pl.Int64).to_numpy()
    decades = range(_FIRST_YEAR, _LAST_YEAR + 1, 10)
    noisy = measurer.histogram(interval_counts(years, column.counts[there], decades))
    seen = np.flatnonzero(noisy)
    if not len(seen):
        return left_out(column.name, "no decade is frequent enough")
    first, last = decades[seen[0]], decades[seen[-1]] + 9
    fine = list(range(first, last + 2))
    again = measurer.histogram(interval_counts(years, column.counts[there], fine))
    enough = _NEARLY_ALL * int(noisy.sum())
    first, last = _narrowed(first, last, fine, again, enough=enough)
    low, high = date(first, 1, 1), date(last, 12, 31)
    # A format without seconds cannot write them.
    step = 60 if form is not None and "%S" not in form else 1
    fields = describe_range(kind, low, high, step=step, why=(PRIVATE, PRIVATE))
    if form is not None:
        fields.append(Field("format", form, PRIVATE))
    fields.append(Field("outside", "clip", "what lies outside is brought back to the bounds"))
    return Described(name=column.name, kind=kind, fields=tuple(fields))


def draft_numbers(
    column: Column, measurer: Measurer, classes: Counts, *, rungs: Counts | None = None
) -> Described:
    """Return numbers between bounds from a public ladder, more finely where the range is short.

    Args:
        column: The column.
        measurer: Asks, and adds the noise.
        classes: The noisy classes of its cells: how many decimals they have.
        rungs: The noisy ladder, if it was asked for already.

    Privacy:
        Neighbours: add or remove one row, which moves one rung of the ladder by one.
        Covers: the bounds, and whether larger numbers are fewer.
    """
    grid = _decimals(classes)
    positions, counts = positions_in(column, grid)
    noisy = measurer.histogram(ladder_counts(column, classes)) if rungs is None else rungs
    if 2 * int(noisy.sum()) < numeric_cells(classes):
        return left_out(column.name, "too few rows to tell its bounds")
    low, high, doubt = bounds_of(noisy, of=numeric_cells(classes))
    skewed = 2 * int(noisy[np.array(_EDGES) >= high // 5].sum()) < int(noisy.sum()) and low >= 0
    if grid == _LONG_GRID:
        low, high, grid = _coarser(low, high)
        positions, counts = positions_in(column, grid)
    fine = [] if doubt else _finer_edges(low, high)
    if fine:
        again = measurer.histogram(interval_counts(positions, counts, fine))
        low, high = _narrowed(low, high, fine, again, enough=_NEARLY_ALL * int(noisy.sum()))
    fields = _written(classes, low, high, grid, skewed=skewed)
    fields.append(Field("outside", "clip", "what lies outside is brought back to the bounds"))
    kind: Kind = "real" if any(field.key in ("decimals", "step") for field in fields) else "integer"
    return Described(name=column.name, kind=kind, fields=tuple(fields), notes=doubt)


def _written(classes: Counts, low: int, high: int, grid: int, *, skewed: bool) -> list[Field]:
    """Return bounds and grid of numbers as they are written; whole ones without a point have none.

    Whole numbers with a point are reals: one between them may be too rare to be seen, and a real
    is rounded to its grid where an integer has a fault.
    """
    why = PRIVATE, PRIVATE
    pointed = int(classes[CLASS["point"]])
    fractions = any(classes[CLASS[name]] for name in NUMERIC if name not in _WHOLE)
    if pointed and grid == 0 and max(-low, high) < LARGEST_REAL:
        fields = range_fields(low, high, decimals=None, skewed=skewed, why=why)
        step = Field("step", Decimal("1.0"), "whole numbers, written with a point; others rounded")
        return [*fields[:2], step, *fields[2:]]
    return range_fields(low, high, decimals=grid if fractions else None, skewed=skewed, why=why)


def ladder_counts(column: Column, classes: Counts) -> Counts:
    """Return how many numbers are on each rung of a public ladder: a row moves one count by one."""
    return interval_counts(*positions_in(column, _decimals(classes)), _EDGES)


def bounds_of(noisy: Counts, *, of: int) -> tuple[int, int, tuple[str, ...]]:
    """Return bounds by the rungs that were seen, and a doubt where these hold too few of all."""
    edges = _EDGES
    seen = np.flatnonzero(noisy)
    first, last = int(seen[0]), int(seen[-1]) + 1
    if int(noisy.sum()) >= MAJORITY * of:
        return edges[first], edges[min(last, len(edges) - 1)], ()
    # Three rungs are a factor of ten.
    low = 0 if edges[first] >= 0 else edges[max(first - 3, 0)]
    high = 0 if edges[last] <= 0 else edges[min(last + 3, len(edges) - 1)]
    return low, high, ("its bounds are a guess, from few rows: give those that you know",)


def _decimals(classes: Counts) -> int:
    """Return how many decimals nearly all numbers do with; as many as can be, if they do not."""
    most = MAJORITY * numeric_cells(classes)
    for d in range(_LONG_GRID):
        if sum(int(classes[CLASS[name]]) for name in NUMERIC[: len(_WHOLE) + d]) >= most:
            return d
    return _LONG_GRID


def _narrowed(
    low: int, high: int, fine: list[int], noisy: Counts, *, enough: float
) -> tuple[int, int]:
    """Return bounds from the finer intervals, if these show nearly all that the ladder showed.

    The last interval has no end: what lies there is outside.
    """
    inside = noisy[:-1]
    seen = np.flatnonzero(inside)
    if int(inside.sum()) < enough or not len(seen):
        return low, high
    width = fine[1] - fine[0]
    return fine[seen[0]], fine[seen[-1]] + (width if width > 1 else 0)


def _coarser(low: int, high: int) -> tuple[int, int, int]:
    """Return bounds on a grid that tells a thousand numbers between them apart, and this grid."""
    decimals = max(0, min(_LONG_GRID, math.ceil(3 + _LONG_GRID - math.log10(max(high - low, 1)))))
    unit = 10 ** (_LONG_GRID - decimals)
    return low // unit, -(-high // unit), decimals


def _finer_edges(low: int, high: int) -> list[int]:
    """Return edges of equal intervals, where these tell more than a ladder of powers did.

    That is so for short ranges and for those far from zero, as years are. In a long tail the
    ladder is better: a narrow interval may be too rare to be seen.
    """
    short = high - low <= _FINE
    far = (low > 0 and high <= 5 * low) or (high < 0 and -low <= -5 * high)
    if not (short or far):
        return []
    width = 1 if short else nice_above((high - low) / _FINE)
    return list(range(low // width * width, high + width + 1, width))
