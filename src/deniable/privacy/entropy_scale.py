"""Integer-valued scaled entropy S = n·H with bounded sensitivity, for structure learning."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.errors import InvariantError

# Resolution of S without noise: 2^16 units per bit of entropy.
EXACT_BITS = 16


@dataclass(frozen=True, kw_only=True)
class EntropyScale:
    """S = n·H as an integer, in 2^bits units per bit of entropy (guarantee.md, Lemma 9).

        u(c) = (c+1)·log2(c+1) - c·log2(c)
        U(c) = min(round(2^bits · u(c)), Δ)        Δ = 2·⌈2^bits · u(rows_max) / 2⌉
        G(c) = Σ_{i<c} U(i)                        S = G(n) - Σ_cells G(c)

    Attributes:
        rows_max: Public guess of the number of records. Beyond it S grows more slowly than
            n·H, which costs utility; the bound below holds for every number of records.
        bits: log2 of the units per bit of entropy.

    Privacy:
        Neighbours: add or remove one record.
        Covers: adding a record to a cell of c of n records changes S by U(n) - U(c), which is
            in [0, Δ] for every table because U is non-decreasing and at most Δ.
        Assumes: nothing about rows_max.
    """

    rows_max: int
    bits: int

    @property
    def sensitivity(self) -> int:
        """Δ: largest change of S by one record. Even, so that Δ/2 is an integer."""
        units = 2.0**self.bits * _entropy_increment(np.array([self.rows_max]))[0]
        return 2 * int(np.ceil(units / 2))

    @cached_property
    def _table(self) -> dict[int, Counts]:
        return {}

    def _sums(self, records: int) -> Counts:
        """Compute G(0) … G(records)."""
        if records not in self._table:
            units = 2.0**self.bits * _entropy_increment(np.arange(records))
            steps = np.minimum(np.rint(units).astype(np.int64), self.sensitivity)
            if (np.diff(steps) < 0).any():
                raise InvariantError("the increments of S decrease: its sensitivity is not bounded")
            self._table[records] = np.concatenate([[0], np.cumsum(steps)])
        return self._table[records]

    def measure(self, counts: Counts) -> int:
        """Compute S of a table with these cell counts, in units of 2^-bits bits."""
        records = int(counts.sum())
        sums = self._sums(records)
        return int(sums[records] - sums[counts].sum())


def _entropy_increment(counts: Counts) -> Reals:
    """Compute u(c) = (c+1)·log2(c+1) - c·log2(c) without cancellation."""
    c = counts.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(c > 0, c * np.log1p(1 / c), 0.0)
    growth: Reals = np.log2(c + 1) + tail / np.log(2)
    return growth
