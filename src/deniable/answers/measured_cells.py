"""Counts and shares of the cells of a table, with intervals from an estimated table.

A cell that cuts through a bin of the estimated table lies between two sums: of the bins inside it,
and of all bins that it touches. Its interval then extends from the lower end of the first to the
upper end of the second.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from deniable.answers.cell_bands import Bands
from deniable.answers.fresh_counts import MeasuredTable
from deniable.answers.noise_intervals import (
    NoisySums,
    count_interval,
    critical_value,
    share_interval,
)
from deniable.answers.table_estimate import WeightedSum
from deniable.arrays import Indices, Mask, Reals
from deniable.release.query_answer import AnswerCell, Interval

# A count is swamped by noise if the standard deviation of its noise exceeds this share of it.
_MAX_RELATIVE_ERROR = 0.5
SWAMPED = "swamped by noise"
BOUNDS = "cuts through a bin: bounds"


@dataclass(frozen=True, kw_only=True, eq=False)
class BandParts:
    """Parts of a table that belong to each band.

    Attributes:
        starts: The first of each band's parts in ``parts``, and their number at the end.
        parts: The parts of all bands, one band after the other.
        number: The number of all parts of the table.
    """

    starts: Indices
    parts: Indices
    number: int

    @classmethod
    def of(cls, pairs: Indices, bands: int, number: int) -> "BandParts":
        """Take ascending pairs of a band and a part, as ``band * number + part``."""
        starts = np.searchsorted(pairs, np.arange(bands + 1) * number)
        return cls(starts=starts, parts=pairs % number, number=number)

    def of_band(self, band: int) -> Mask:
        """Mark the parts of a band."""
        return self._mark(self.parts[self.starts[band] : self.starts[band + 1]])

    def of_all(self) -> Mask:
        """Mark the parts of any band."""
        return self._mark(self.parts)

    def _mark(self, parts: Indices) -> Mask:
        marked = np.zeros(self.number, dtype=bool)
        marked[parts] = True
        return marked


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Bands of one column among the rows, or columns, of an estimated table.

    Attributes:
        bands: The bands.
        inner: Which parts of the table are entirely inside each band.
        outer: Which parts of the table each band touches.
        covered: Which parts of the table are entirely inside all bands together: a part that two
            bands share is inside neither.
    """

    bands: Bands
    inner: BandParts = field(repr=False)
    outer: BandParts = field(repr=False)
    covered: Mask = field(repr=False)

    @classmethod
    def of(cls, bands: Bands, shares: Reals, parts: Indices) -> "Selection":
        """Compare bands, restricted by a condition, with the parts of a table.

        Args:
            bands: The bands.
            shares: The share of each code's values that satisfies the condition.
            parts: The part of the table of each code.
        """
        number = int(parts.max()) + 1
        codes = np.bincount(parts, minlength=number)
        # Only pairs of a band and a part that share a code: all pairs would fill memory.
        pairs, pair_of = np.unique(bands.band_of * number + parts, return_inverse=True)
        full = np.bincount(pair_of, shares == 1, minlength=len(pairs))
        touched = np.bincount(pair_of, shares > 0, minlength=len(pairs))
        all_full = np.bincount(parts, shares == 1, minlength=number)
        inside = pairs[full == codes[pairs % number]]
        return cls(
            bands=bands,
            inner=BandParts.of(inside, len(bands), number),
            outer=BandParts.of(pairs[touched > 0], len(bands), number),
            covered=all_full == codes,
        )

    @property
    def is_aligned(self) -> bool:
        """Whether no band cuts through a part of the table."""
        return bool(np.array_equal(self.inner.parts, self.outer.parts))


@dataclass(frozen=True, kw_only=True)
class MeasuredCells:
    """The cells of a question, as weights of an estimated table's cells.

    Attributes:
        table: The estimated table.
        selections: The bands of each of its columns.
        sampling: Variance per row of the chance of a sample; 0 if the table itself is asked about.
    """

    table: MeasuredTable
    selections: tuple[Selection, ...]
    sampling: float

    @cached_property
    def is_aligned(self) -> bool:
        """Whether every cell is a union of cells of the estimated table."""
        return all(selection.is_aligned for selection in self.selections)

    @cached_property
    def z(self) -> float:
        """Critical value of the intervals."""
        return critical_value()

    def weights(self, at: Sequence[int | None], *, outer: bool = False) -> Reals:
        """Mark the cells of the estimated table in a band of each column; None: all its bands."""
        masks = []
        for selection, band in zip(self.selections, at, strict=True):
            if band is not None:
                masks.append((selection.outer if outer else selection.inner).of_band(band))
            else:
                masks.append(selection.outer.of_all() if outer else selection.covered)
        columns = masks[1] if len(masks) > 1 else np.ones(1, dtype=bool)
        marked: Reals = np.outer(masks[0], columns).astype(np.float64)
        return marked

    @cached_property
    def _known_sums(self) -> dict[tuple[tuple[int | None, ...], bool], WeightedSum]:
        return {}

    def _sum(self, at: Sequence[int | None], *, outer: bool = False) -> WeightedSum:
        """Estimate the rows in a band of each column; sums are the denominators of many shares."""
        key = (tuple(at), outer and not self.is_aligned)
        if key not in self._known_sums:
            weights = self.weights(at, outer=outer)
            self._known_sums[key] = self.table.estimate.weighted_sum(weights)
        return self._known_sums[key]

    def count(self, at: Sequence[int | None]) -> Interval:
        """Interval of the number of rows in a cell."""
        inner = self._count_of(self._sum(at))
        if self.is_aligned:
            return inner
        outer = self._count_of(self._sum(at, outer=True))
        middle = (inner.estimate + outer.estimate) / 2
        return Interval(estimate=middle, low=inner.low, high=max(inner.high, outer.high))

    def _count_of(self, found: WeightedSum) -> Interval:
        return count_interval(
            found.value,
            found.variance,
            z=self.z,
            sampling=self.sampling,
            rows=self.table.estimate.total.count,
        )

    def share(self, at: Sequence[int | None], of: Sequence[int | None]) -> Interval:
        """Interval of the share of one cell's rows among another's, which contains it."""
        low = self._share_of(self._sum(at), self._sum(of, outer=True))
        if self.is_aligned:
            return low
        high = self._share_of(self._sum(at, outer=True), self._sum(of))
        middle = (low.estimate + high.estimate) / 2
        return Interval(estimate=middle, low=low.low, high=max(low.high, high.high))

    def _share_of(self, part: WeightedSum, whole: WeightedSum) -> Interval:
        sums = NoisySums.of(part, whole)
        return share_interval(sums, z=self.z, sampling=self.sampling)

    def cells(self, *, asked: Sequence[int]) -> list[AnswerCell]:
        """Answer all cells.

        Args:
            asked: Which columns were asked for, in the order of the labels: the others only have
                a condition.
        """
        everything: list[int | None] = [None] * len(self.selections)
        found = []
        for bands in product(*(range(len(self.selections[axis].bands)) for axis in asked)):
            at, first = list(everything), list(everything)
            for axis, band in zip(asked, bands, strict=True):
                at[axis] = band
            first[asked[0]] = bands[0]
            labels = (
                self.selections[axis].bands.labels[band]
                for axis, band in zip(asked, bands, strict=True)
            )
            if not self.weights(at, outer=True).any():
                continue  # the condition excludes it
            found.append(
                self._cell(
                    tuple(labels),
                    at,
                    everything,
                    within=first if len(asked) > 1 else None,
                )
            )
            # Sums of rows and of everything are used again; those of a cell would fill memory.
            for outer in (False, True):
                self._known_sums.pop((tuple(at), outer), None)
        return found

    def _cell(
        self,
        labels: tuple[str, ...],
        at: Sequence[int | None],
        everything: Sequence[int | None],
        *,
        within: Sequence[int | None] | None,
    ) -> AnswerCell:
        unbiased, error = self._sum(at).value, self._sum(at).variance ** 0.5
        notes = [] if self.is_aligned else [BOUNDS]
        if error > _MAX_RELATIVE_ERROR * max(unbiased, 0.0) and error > 0.5:
            notes.append(SWAMPED)
        return AnswerCell(
            labels=labels,
            count=self.count(at),
            share=self.share(at, everything),
            within=None if within is None else self.share(at, within),
            unbiased_count=unbiased,
            standard_error=error,
            note="; ".join(notes),
        )
