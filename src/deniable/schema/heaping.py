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
from deniable.library_imports import pl
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

    def level_of(self, positions: Counts, bins: Indices) -> Indices:
        """Compute the roundness level of positions in given bins, as ``roundness`` does."""
        divides = (positions[:, None] % self._steps[1:] == 0).sum(axis=1)
        level: Indices = np.minimum(divides, self._max_levels[bins])
        return level

    def draw(self, bins: Indices | Codes, levels: Codes, rng: Rng) -> Counts:
        """Draw a position in each bin with the given roundness level.

        All such positions are equally likely. If a bin has none, the next lower level that occurs
        in it is used instead, otherwise the next higher one.
        """
        level = self.nearest_levels[bins, levels]
        firsts, counts = self._multiples
        count = counts[bins, level]
        offset = np.minimum((rng.random(len(bins)) * count).astype(np.int64), count - 1)
        return self.position(bins, level, firsts[bins, level] + offset)

    def position(self, bins: Indices | Codes, level: Indices, index: Counts) -> Counts:
        """Compute the position of the number with an index among those of a bin and level.

        Indices are those of ``index_ranges``; ``level`` must occur in the bin.
        """
        ratio = self._ratios[level]
        # Skip the multiples of the next larger step.
        skips = np.where(level < self._max_levels[bins], (index - 1) // (ratio - 1), 0)
        found: Counts = (index + skips) * self._steps[level]
        return found

    def index_ranges(self, bins: Indices, low: Counts, high: Counts) -> tuple[Counts, Counts]:
        """Number the positions from ``low`` to ``high`` of each level: first index, and count.

        Args:
            bins: Some bins.
            low: A position in each of them.
            high: A position in each of them, not below ``low``.

        At the highest level of a bin, the numbers are all multiples of its step. At a lower level,
        multiples of the next step, which is r times as large, are excluded: the j-th remaining
        number is j + ⌊(j - 1) / (r - 1)⌋ steps, and x - ⌊x / r⌋ of the first x remain.
        """
        steps, levels, highest = self._steps, np.arange(len(self._steps)), self._max_levels[bins]
        before, last = (low[:, None] - 1) // steps, high[:, None] // steps
        is_below = levels < highest[:, None]
        before, last = (np.where(is_below, x - x // self._ratios, x) for x in (before, last))
        counts = np.where(levels <= highest[:, None], last - before, 0)
        return before + 1, counts

    @cached_property
    def nearest_levels(self) -> Indices:
        """By bin and level: the level itself if it occurs in the bin, else the one used instead."""
        return _nearest_nonempty_levels(self._multiples[1])

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
    def _ratios(self) -> Counts:
        """The next larger step of each level, divided by its own."""
        return np.append(self._steps[1:] // self._steps[:-1], 2)

    @cached_property
    def _multiples(self) -> tuple[Counts, Counts]:
        """The first index and the count of the numbers of each bin and level."""
        low = self.column.first_positions
        return self.index_ranges(np.arange(len(low)), low, low + self.column.widths - 1)


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
