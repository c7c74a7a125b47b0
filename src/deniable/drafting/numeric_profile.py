"""Numeric profile of a column: distinct numbers on a decimal grid, and the rows of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.arrays import Counts, Reals

# Above this, doubles on a grid may coincide once bounds are rounded outward.
MAX_EXACT_REAL = 2.0**52
# Computed numbers have as many decimals as a double; a draft rounds them to at most this many.
_MAX_DRAFTED_DECIMALS = 6


@dataclass(frozen=True, kw_only=True)
class NumericProfile:
    """Distinct numbers of a column in ascending order, with row counts. Confidential.

    Attributes:
        positions: The numbers times 10^decimals.
        counts: The number of rows with each.
        decimals: Decimals of the grid.
        is_rounded: Whether the numbers had more decimals than the grid.
        is_integral: Whether every number was an integer before rounding.
    """

    positions: Counts
    counts: Counts
    decimals: int
    is_rounded: bool = False
    is_integral: bool = False

    @classmethod
    def from_floats(
        cls, values: Reals, counts: Counts, *, decimals: int | None
    ) -> "NumericProfile":
        """Profile doubles. ``decimals`` is None if they have more decimals than are counted."""
        rounded = decimals is None or decimals > _MAX_DRAFTED_DECIMALS
        kept = _decimals_by_spread(values, counts) if decimals is None or rounded else decimals
        while kept and np.abs(values).max() * 10.0**kept >= MAX_EXACT_REAL:
            kept, rounded = kept - 1, True
        positions = np.rint(values * 10.0**kept).astype(np.int64)
        integral = bool((values == np.floor(values)).all())
        profile = cls.from_positions(positions, counts, kept)
        return replace(profile, is_rounded=rounded, is_integral=integral)

    @classmethod
    def from_positions(cls, positions: Counts, counts: Counts, decimals: int) -> "NumericProfile":
        """Profile grid positions in any order; equal positions are merged."""
        unique, index = np.unique(positions, return_inverse=True)
        rows = np.zeros(len(unique), dtype=np.int64)
        np.add.at(rows, index, counts)
        return cls(positions=unique, counts=rows, decimals=decimals, is_integral=decimals == 0)

    @property
    def low(self) -> int:
        """Smallest position."""
        return int(self.positions[0])

    @property
    def high(self) -> int:
        """Largest position."""
        return int(self.positions[-1])

    @property
    def rows(self) -> int:
        """Number of rows that have a number."""
        return int(self.counts.sum())

    @property
    def is_skewed(self) -> bool:
        """Whether most rows lie near one end: true of money, not of codes and dates."""
        low, high, median = self.low, self.high, self.quantile(0.5)
        many_zeros = self.counts[self.positions == 0].sum() > 0.2 * self.rows
        thin_tail = 4 * (self.quantile(0.99) - self.quantile(0.01)) < high - low
        long_tail = high - median >= 10 * (median - self.quantile(0.01))
        return bool(many_zeros or thin_tail or long_tail)

    def quantile(self, share: float) -> int:
        """Return the position below which about ``share`` of the rows lie."""
        at = np.searchsorted(np.cumsum(self.counts), share * self.rows)
        return int(self.positions[min(int(at), len(self.positions) - 1)])

    def select(self, kept: Sequence[bool] | np.ndarray) -> "NumericProfile":
        """Keep the numbers where the mask is true."""
        return replace(self, positions=self.positions[kept], counts=self.counts[kept])


def count_decimals(values: Reals, *, limit: int, tolerance: float = 1e-9) -> Counts:
    """Count the decimals that each double needs; ``limit`` + 1 if it needs more or is infinite.

    Args:
        values: The doubles.
        limit: The most decimals to try.
        tolerance: Relative error of a double that still counts as the decimal next to it.
    """
    found: Counts = np.full(len(values), limit + 1, dtype=np.int64)
    finite = np.isfinite(values)
    # Doubles beyond 10^18 are integers; multiplied by a power of ten they might overflow.
    numbers = np.clip(np.where(finite, values, 0.0), -1e18, 1e18)
    for decimals in range(limit, -1, -1):
        grid = numbers * 10.0**decimals
        exact = np.abs(grid - np.rint(grid)) <= tolerance * np.maximum(1.0, np.abs(grid))
        found[exact & finite] = decimals
    return found


def max_decimals(values: Reals) -> int | None:
    """Return the most decimals that any double needs; None if more than a draft keeps."""
    found = int(count_decimals(values, limit=_MAX_DRAFTED_DECIMALS).max(initial=0))
    return found if found <= _MAX_DRAFTED_DECIMALS else None


def _decimals_by_spread(values: Reals, counts: Counts) -> int:
    """Choose decimals so that the middle 90 % of the rows span about a thousand positions."""
    order = np.argsort(values)
    ends = np.cumsum(counts[order])
    low, high = (values[order][np.searchsorted(ends, q * ends[-1])] for q in (0.05, 0.95))
    if not high > low:
        return _MAX_DRAFTED_DECIMALS
    return max(0, min(_MAX_DRAFTED_DECIMALS, math.ceil(3 - math.log10(high - low))))
