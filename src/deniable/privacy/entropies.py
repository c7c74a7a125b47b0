"""Entropy in whole numbers, with the least sensitivity: what structure learning may ask."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.errors import InvariantError

# Units to the bit where there is no noise to hide the rounding.
EXACT_BITS = 16


@dataclass(frozen=True, kw_only=True)
class EntropyScale:
    """S = n·H in whole numbers: 2^bits units to the bit (guarantee.md, Lemma 9).

        u(c) = (c+1)·log2(c+1) - c·log2(c)
        U(c) = min(round(2^bits · u(c)), Δ)        Δ = 2·⌈2^bits · u(rows_max) / 2⌉
        G(c) = Σ_{i<c} U(i)                        S = G(n) - Σ_cells G(c)

    Attributes:
        rows_max: A public guess of the number of records. Beyond it S grows more slowly than
            n·H, which costs utility; the bound below holds for every number of records.
        bits: Units to the bit, as a power of two.

    Privacy:
        Neighbours: add or remove one record.
        Covers: one record more, in a cell of c of n, changes S by U(n) - U(c), which lies in
            [0, Δ] for every table because U is non-decreasing and at most Δ.
        Assumes: nothing about rows_max.
    """

    rows_max: int
    bits: int

    @property
    def most(self) -> int:
        """Δ: the most by which one record can change S. Even, so that Δ/2 is a whole number."""
        return 2 * int(np.ceil(2.0**self.bits * _growth(np.array([self.rows_max]))[0] / 2))

    @cached_property
    def _table(self) -> dict[int, Counts]:
        return {}

    def _sums(self, records: int) -> Counts:
        """Return G(0) … G(records)."""
        if records not in self._table:
            steps = np.rint(2.0**self.bits * _growth(np.arange(records))).astype(np.int64)
            steps = np.minimum(steps, self.most)
            if (np.diff(steps) < 0).any():
                raise InvariantError("the steps of S decrease: its sensitivity is not bounded")
            self._table[records] = np.concatenate([[0], np.cumsum(steps)])
        return self._table[records]

    def measure(self, counts: Counts) -> int:
        """Return S of a table with these counts in its cells, in units of 2^-bits bits."""
        records = int(counts.sum())
        sums = self._sums(records)
        return int(sums[records] - sums[counts].sum())


def _growth(counts: Counts) -> Reals:
    """Return u(c) = (c+1)·log2(c+1) - c·log2(c), without the cancellation."""
    c = counts.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(c > 0, c * np.log1p(1 / c), 0.0)
    growth: Reals = np.log2(c + 1) + tail / np.log(2)
    return growth
