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
    Chance,
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


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Bands of one column among the rows, or columns, of an estimated table.

    Attributes:
        bands: The bands.
        inner: Which parts of the table are entirely inside each band: bands by parts.
        outer: Which parts of the table each band touches.
        covered: Which parts of the table are entirely inside all bands together: a part that two
            bands share is inside neither.
    """

    bands: Bands
    inner: Mask = field(repr=False)
    outer: Mask = field(repr=False)
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
        full, touched = (np.zeros((len(bands), number), dtype=np.intp) for _ in range(2))
        np.add.at(full, (bands.band_of, parts), shares == 1)
        np.add.at(touched, (bands.band_of, parts), shares > 0)
        return cls(
            bands=bands, inner=full == codes, outer=touched > 0, covered=full.sum(axis=0) == codes
        )

    @property
    def is_aligned(self) -> bool:
        """Whether no band cuts through a part of the table."""
        return bool((self.inner == self.outer).all())


@dataclass(frozen=True, kw_only=True)
class MeasuredCells:
    """The cells of a question, as weights of an estimated table's cells.

    Attributes:
        table: The estimated table.
        selections: The bands of each of its columns.
        chance: Chance other than noise.
    """

    table: MeasuredTable
    selections: tuple[Selection, ...]
    chance: Chance

    @cached_property
    def is_aligned(self) -> bool:
        """Whether every cell is a union of cells of the estimated table."""
        return all(selection.is_aligned for selection in self.selections)

    @cached_property
    def z(self) -> float:
        """Critical value of the intervals."""
        return critical_value(excess_kurtosis=self.table.estimate.excess_kurtosis)

    def weights(self, at: Sequence[int | None], *, outer: bool = False) -> Reals:
        """Mark the cells of the estimated table in a band of each column; None: all its bands."""
        masks = []
        for selection, band in zip(self.selections, at, strict=True):
            if band is not None:
                masks.append(selection.outer[band] if outer else selection.inner[band])
            else:
                masks.append(selection.outer.any(axis=0) if outer else selection.covered)
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
        estimate = self.table.estimate
        return count_interval(
            found.value,
            found.variance,
            z=self.z,
            chance=self.chance,
            rows=estimate.total.count / estimate.fraction,
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
        return share_interval(sums, z=self.z, thinning=self.chance.of_shares)

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
