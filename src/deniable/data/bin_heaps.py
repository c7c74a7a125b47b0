"""Heaps: people round numbers. How round one is is learnt beside its bin, as an attribute.

A bin of 1,000 incomes holds one full thousand, nine other full hundreds, and many numbers that
hardly anybody writes. So a column with ``heaps`` has two codes: its bin, and the largest of those
steps that divides the number. To the model the second is an attribute like any other, with its own
noise in the plan; when a record is written, a number is drawn from those of the bin that are so
round.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl

from deniable.arrays import Codes, Counts, Indices
from deniable.data.attributes import Attribute
from deniable.randomness import Rng


def aside_of(name: str) -> str:
    """Return what the attribute is called that says how round a column's numbers are."""
    return f"{name} is a multiple of"


@dataclass(frozen=True)
class Heaps:
    """How round the numbers of one column are: how many of its steps divide them, 0 or more.

    Steps longer than a number's bin do not count.

    Attributes:
        base: The column; ``base.heaps`` are the steps, in positions of its grid.
    """

    base: Attribute

    def __post_init__(self) -> None:
        steps = self.base.heaps
        if self.base.kind not in ("integer", "real") or not self.base.is_binned:
            raise self.base.error(
                "heaps are for numbers in bins: where each is a value by itself, remove heaps"
            )
        ladder = all(type(step) is int for step in steps) and steps[0] > 1
        if not ladder or any(two <= one or two % one for one, two in pairwise(steps)):
            raise self.base.error(
                "heaps ascend from above one step of its grid, each a multiple of the one before: "
                "heaps = [10, 100, 1000]"
            )

    @cached_property
    def attribute(self) -> Attribute:
        """What the model learns beside the bin."""
        unit = self.base.unit
        steps = [unit.show_width(step) for step in self.base.heaps] if unit is not None else []
        return Attribute(
            name=aside_of(self.base.name),
            kind="ordered",
            values=("none of these", *steps),
            confirmed=self.base.confirmed,
        )

    def level(self, position: pl.Expr, code: pl.Expr) -> pl.Expr:
        """Return the level of each position; that of a missing cell means nothing.

        Args:
            position: The place of each number on the grid.
            code: Its bin.
        """
        if self.base.outside == "clip":
            position = position.clip(self.base.values[0], self.base.values[-1])
        divided = [(position % step == 0).cast(pl.UInt16) for step in self.base.heaps]
        most = pl.lit(pl.Series(self._most, dtype=pl.UInt16)).gather(code)
        level = pl.min_horizontal(pl.sum_horizontal(divided), most)
        known = pl.when(code.is_not_null()).then(level).fill_null(0)
        return known.cast(pl.UInt16).alias(self.attribute.name)

    def draw(self, bins: Indices | Codes, levels: Codes, rng: Rng) -> Counts:
        """Return a position of each bin that is as round as its level says.

        All such positions are equally likely. Where a bin has none, the next lower level that it
        has serves, or else the next higher one.
        """
        found, skips, firsts, counts = self._numbered
        at = found[bins, levels]
        number, skip = counts[bins, at], skips[bins, at]
        steps = np.minimum((rng.random(len(bins)) * number).astype(np.int64), number - 1)
        place = firsts[bins, at] + steps
        # Of the multiples of a step, those of the next larger one are left out.
        place += np.where(skip > 0, (place - 1) // np.maximum(skip, 1), 0)
        drawn: Counts = place * self._units[at]
        return drawn

    @cached_property
    def _units(self) -> Counts:
        """The step of each level."""
        return np.array([1, *self.base.heaps], dtype=np.int64)

    @cached_property
    def _most(self) -> Indices:
        """The highest level of each bin: that of the last step that is no longer than the bin.

        What is rounder than that, the bin says already.
        """
        return np.searchsorted(self._units, self.base.widths, side="right") - 1

    @cached_property
    def _numbered(self) -> tuple[Indices, Counts, Counts, Counts]:
        """By bin and level: the level that serves; r - 1, or 0; the first in line, and how many.

        In line are the multiples of a step; below the highest level, those that are none of the
        next step, r times as large: the j-th of them is j + ⌊(j - 1) / (r - 1)⌋ steps, and up to
        x steps there are x - ⌊x / r⌋.
        """
        units, levels = self._units, np.arange(len(self._units))
        ratios = np.append(units[1:] // units[:-1], 2)
        below = levels < self._most[:, None]
        low = self.base.first_positions[:, None]
        before, last = (low - 1) // units, (low + self.base.widths[:, None] - 1) // units
        before, last = (np.where(below, x - x // ratios, x) for x in (before, last))
        counts = np.where(levels <= self._most[:, None], last - before, 0)
        return _serving(counts), np.where(below, ratios - 1, 0), before + 1, counts


def _serving(counts: Counts) -> Indices:
    """Return, for each bin and level, the nearest level with any: itself, below it, or above."""
    serving = np.tile(np.arange(counts.shape[1]), (len(counts), 1))
    for level in range(1, counts.shape[1]):
        empty = counts[:, level] == 0
        serving[empty, level] = serving[empty, level - 1]
    filled = np.take_along_axis(counts, serving, axis=1) > 0
    for level in reversed(range(counts.shape[1] - 1)):
        empty = ~filled[:, level]
        serving[empty, level] = serving[empty, level + 1]
    return serving
