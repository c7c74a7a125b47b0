"""Means and quantiles of a numeric column, with intervals that cover at least as often as stated.

A value may lie anywhere in its bin. The mean lies between those of all values at the lower and all
at the upper ends of their bins; a quantile lies between the ends of the bins that may contain it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.answers.measured_cells import SWAMPED, MeasuredCells
from deniable.answers.noise_intervals import (
    CONFIDENCE,
    NoisySums,
    critical_value,
    ratio_interval,
)
from deniable.arrays import Mask, Reals
from deniable.release.query_answer import Interval, NumberSummary
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid

QUANTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, kw_only=True)
class NumericAxis:
    """A numeric column of an estimated table.

    Attributes:
        attribute: The column.
        grid: Its grid.
        cells: The cells of the question; only conditions restrict this column.
        axis: Its place in the table: 0 for rows, 1 for columns.
    """

    attribute: Attribute
    grid: Grid
    cells: MeasuredCells
    axis: int

    @cached_property
    def ends(self) -> tuple[Reals, Reals]:
        """First and last position of each part of the table; NaN where no number is."""
        parts = self.cells.table.parts[self.axis]
        number = int(parts.max()) + 1
        low, high = np.full(number, np.inf), np.full(number, -np.inf)
        present = slice(0, self.attribute.bins)
        first = self.attribute.first_positions
        np.minimum.at(low, parts[present], first)
        np.maximum.at(high, parts[present], first + self.attribute.widths - 1)
        return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)

    @cached_property
    def present(self) -> Mask:
        """Which parts of the table hold numbers that satisfy the condition."""
        inside = self.cells.selections[self.axis].inner.of_all()
        found: Mask = inside & np.isfinite(self.ends[0])
        return found

    def spread(self, weights: Reals, band: int | None) -> Reals:
        """Weights of the table's cells: by part of this column, within a band of the other."""
        at: list[int | None] = [None] * len(self.cells.selections)
        if band is not None:
            at[1 - self.axis] = band
        marked = self.cells.weights(at)
        by_part = np.where(self.present, weights, 0.0)
        found: Reals = marked * (by_part[:, None] if self.axis == 0 else by_part[None, :])
        return found

    def mean(self, band: int | None, *, level: float) -> Interval:
        """Interval of the mean, in positions."""
        estimate = self.cells.table.estimate
        z = critical_value(level)
        ones = estimate.weighted_sum(self.spread(np.ones(len(self.present)), band))
        low, high = (np.where(self.present, end, 0.0) for end in self.ends)
        centre = (low[self.present].min() + high[self.present].max()) / 2
        found = []
        for values in (low, high):
            total = estimate.weighted_sum(self.spread(values - centre, band))
            sums = NoisySums.of(total, ones)
            chance = self._dispersion(values - centre, band, sums.numerator, sums.denominator)
            found.append(ratio_interval(sums, z=z, dispersion=chance))
        ends = (float(low[self.present].min()), float(high[self.present].max()))
        middle = (found[0].estimate + found[1].estimate) / 2 + centre
        return Interval(
            estimate=middle, low=found[0].low + centre, high=found[1].high + centre
        ).clip(*ends)

    def _dispersion(self, values: Reals, band: int | None, total: float, rows: float) -> float:
        """Variance of a sum that sampling adds; one standard error on top."""
        if not self.cells.sampling or not rows > 0:
            return 0.0
        weights = self.spread((values - total / rows) ** 2, band)
        squares = self.cells.table.estimate.weighted_sum(weights)
        upper = squares.value + math.sqrt(squares.variance)
        return self.cells.sampling * max(upper, 0.0)

    @property
    def is_ascending(self) -> bool:
        """Whether the parts of the table are ascending ranges of numbers."""
        low, high = (end[self.present] for end in self.ends)
        return bool((high[:-1] < low[1:]).all())

    def quantile(self, q: float, band: int | None, *, level: float) -> Interval:
        """Interval of the smallest value that at least a share q of the rows do not exceed.

        Part k may contain it unless the noise excludes that at least a share q is in parts up to
        k, or that less than q is in the parts before.
        """
        estimate = self.cells.table.estimate
        z = critical_value(level)
        parts = np.flatnonzero(self.present)
        rows = estimate.value(self.spread(np.ones(len(self.present)), band))
        chance = self.cells.sampling * max(rows, 0.0) * q * (1 - q)
        excess, error = np.empty(len(parts)), np.empty(len(parts))
        for at, part in enumerate(parts):
            reached = np.where(np.arange(len(self.present)) <= part, 1 - q, -q)
            found = estimate.weighted_sum(self.spread(reached, band))
            excess[at] = found.value
            error[at] = z * math.sqrt(found.variance + chance)
        # All rows are in parts up to the last, whatever the noise.
        may_reach = np.append((excess + error >= 0)[:-1], True)
        may_begin = np.append(True, (excess - error < 0)[:-1])
        first, last = int(np.argmax(may_reach)), len(parts) - 1 - int(np.argmax(may_begin[::-1]))
        likely = int(np.argmax(np.append((excess >= 0)[:-1], True)))
        middle = min(max(likely, first), last)
        low, high = (end[parts] for end in self.ends)
        return Interval(
            estimate=float(low[middle] + high[middle]) / 2,
            low=float(low[first]),
            high=float(high[last]),
        )

    def summary(self, statistic: str, found: Interval, *, group: str) -> NumberSummary:
        """Convert an interval from positions to values."""
        low, high = float(self.ends[0][self.present].min()), float(self.ends[1][self.present].max())
        excludes_nothing = found.low <= low < high <= found.high
        note = SWAMPED if excludes_nothing or not math.isfinite(found.estimate) else ""
        scale = float(self.grid.step) if self.grid.kind in ("real", "datetime") else 1.0
        value = Interval(
            estimate=found.estimate * scale, low=found.low * scale, high=found.high * scale
        )
        ends = (found.estimate, found.low, found.high)
        return NumberSummary(
            column=self.attribute.name,
            group=group,
            statistic=statistic,
            value=value,
            text=(
                _format(self.grid, ends[0]),
                _format(self.grid, ends[1]),
                _format(self.grid, ends[2]),
            ),
            note=note,
        )


def _format(grid: Grid, position: float) -> str:
    if not math.isfinite(position):
        return "unknown"
    if grid.kind in ("date", "datetime"):
        return grid.format_position(round(position))
    value = position * float(grid.step)
    return f"{value:.{grid.decimals}f}" if position == round(position) else f"{value:,.4g}"


def summarize_numbers(
    axes: Sequence[NumericAxis], groups: Sequence[tuple[int | None, str]]
) -> list[NumberSummary]:
    """Compute the mean and the quartiles of a column in each group.

    Several tables may know the column, at different resolutions. Their intervals are intersected:
    with k of them, each has an error of 5 % / k, so that the intersection has at most 5 %.

    Args:
        axes: The column in each table.
        groups: Bands of the other column, and their labels; None for all rows.
    """
    level = 1 - (1 - CONFIDENCE) / len(axes)
    found = []
    for band, label in groups:
        means = [axis.mean(band, level=level) for axis in axes]
        found.append(axes[-1].summary("mean", _intersect(means), group=label))
        for q in QUANTILES:
            ordered = [axis for axis in axes if axis.is_ascending]
            if ordered:
                each = [axis.quantile(q, band, level=level) for axis in ordered]
                statistic = f"quantile {q:g}"
                found.append(axes[-1].summary(statistic, _intersect(each), group=label))
    return found


def _intersect(intervals: Sequence[Interval]) -> Interval:
    """Intersect intervals; the estimate is that of the narrowest."""
    low, high = max(each.low for each in intervals), min(each.high for each in intervals)
    narrowest = min(intervals, key=lambda each: each.high - each.low)
    if low > high:  # the intervals exclude each other: noise beyond their level
        return narrowest
    return Interval(estimate=narrowest.estimate, low=low, high=high).clip(low, high)
