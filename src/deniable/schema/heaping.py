"""Heaping: people report round numbers. Roundness is modelled as an extra attribute.

An income bin of width 1,000 contains one multiple of 1,000, nine other multiples of 100, and many
numbers that are hardly ever reported. So a column with ``heaps`` has two codes: its bin, and its
roundness, the largest step in ``heaps`` that divides the number. The model treats roundness as an
attribute like any other, with its own noise in the plan. On decoding, a number is drawn uniformly
from those in the bin with that roundness.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from deniable.arrays import Codes, Counts, Indices
from deniable.lazy_polars import pl
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute


def roundness_name(name: str) -> str:
    """Build the name of a column's roundness attribute."""
    return f"{name} is a multiple of"


@dataclass(frozen=True)
class Heaping:
    """Roundness of the numbers in one column.

    The roundness level of a number is the number of steps that divide it. Steps longer than its
    bin are ignored.

    Attributes:
        column: The column; ``column.heaps`` are the steps, in positions of its grid.
    """

    column: Attribute

    def __post_init__(self) -> None:
        steps = self.column.heaps
        if self.column.kind not in ("integer", "real") or not self.column.is_binned:
            raise self.column.error(
                "heaps are only for numbers in bins: set bins wider than one value, or remove heaps"
            )
        are_valid = all(type(step) is int for step in steps) and steps[0] > 1
        if not are_valid or any(two <= one or two % one for one, two in pairwise(steps)):
            raise self.column.error(
                "heaps must be larger than one step of the grid, ascend, and each be a multiple of "
                "the one before: heaps = [10, 100, 1000]"
            )

    @cached_property
    def attribute(self) -> Attribute:
        """The roundness attribute."""
        grid = self.column.grid
        steps = [grid.format_width(step) for step in self.column.heaps] if grid is not None else []
        return Attribute(
            name=roundness_name(self.column.name),
            kind="ordered",
            values=("none of these", *steps),
            confirmed=self.column.confirmed,
        )

    def roundness(self, position: pl.Expr, code: pl.Expr) -> pl.Expr:
        """Compute the roundness level of each position; 0 for a missing cell.

        Args:
            position: The position of each number on the grid.
            code: Its bin.
        """
        if self.column.outside == "clip":
            position = position.clip(self.column.values[0], self.column.values[-1])
        divides = [(position % step == 0).cast(pl.UInt16) for step in self.column.heaps]
        highest = pl.lit(pl.Series(self._max_levels, dtype=pl.UInt16)).gather(code)
        level = pl.min_horizontal(pl.sum_horizontal(divides), highest)
        known = pl.when(code.is_not_null()).then(level).fill_null(0)
        return known.cast(pl.UInt16).alias(self.attribute.name)

    def draw(self, bins: Indices | Codes, levels: Codes, rng: Rng) -> Counts:
        """Draw a position in each bin with the given roundness level.

        All such positions are equally likely. If a bin has none, the next lower level that occurs
        in it is used instead, otherwise the next higher one.
        """
        nearest, skips, firsts, counts = self._multiples
        level = nearest[bins, levels]
        count, skip = counts[bins, level], skips[bins, level]
        offset = np.minimum((rng.random(len(bins)) * count).astype(np.int64), count - 1)
        index = firsts[bins, level] + offset
        # Skip the multiples of the next larger step.
        multiple = index + np.where(skip > 0, (index - 1) // np.maximum(skip, 1), 0)
        drawn: Counts = multiple * self._steps[level]
        return drawn

    @cached_property
    def _steps(self) -> Counts:
        """The step of each level."""
        return np.array([1, *self.column.heaps], dtype=np.int64)

    @cached_property
    def _max_levels(self) -> Indices:
        """The highest level of each bin: that of the largest step not longer than the bin.

        A larger step has at most one multiple in the bin.
        """
        return np.searchsorted(self._steps, self.column.widths, side="right") - 1

    @cached_property
    def _multiples(self) -> tuple[Indices, Counts, Counts, Counts]:
        """By bin and level: the nearest nonempty level; r - 1 or 0; the first index; the count.

        At the highest level of a bin, the numbers are all multiples of its step. At a lower level,
        multiples of the next step, which is r times as large, are excluded: the j-th remaining
        number is j + ⌊(j - 1) / (r - 1)⌋ steps, and x - ⌊x / r⌋ of the first x remain.
        """
        steps, levels = self._steps, np.arange(len(self._steps))
        ratios = np.append(steps[1:] // steps[:-1], 2)
        below = levels < self._max_levels[:, None]
        low = self.column.first_positions[:, None]
        before, last = (low - 1) // steps, (low + self.column.widths[:, None] - 1) // steps
        before, last = (np.where(below, x - x // ratios, x) for x in (before, last))
        counts = np.where(levels <= self._max_levels[:, None], last - before, 0)
        return _nearest_nonempty_levels(counts), np.where(below, ratios - 1, 0), before + 1, counts


def _nearest_nonempty_levels(counts: Counts) -> Indices:
    """Find the nearest level with a count above 0: the level itself, else below, else above."""
    nearest = np.tile(np.arange(counts.shape[1]), (len(counts), 1))
    for level in range(1, counts.shape[1]):
        empty = counts[:, level] == 0
        nearest[empty, level] = nearest[empty, level - 1]
    filled = np.take_along_axis(counts, nearest, axis=1) > 0
    for level in reversed(range(counts.shape[1] - 1)):
        empty = ~filled[:, level]
        nearest[empty, level] = nearest[empty, level + 1]
    return nearest
