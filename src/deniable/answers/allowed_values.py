"""Allowed values: the set of values of one column that a condition admits.

A code of a number may be a bin of several values. A condition may cut through a bin: then only some
of its values are allowed, and the bin counts with the probability that a value drawn in it is one
of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np

from deniable.arrays import Counts, Indices, Mask, Reals
from deniable.schema.attribute import Attribute


@dataclass(frozen=True, kw_only=True, eq=False)
class AllowedValues:
    """A set of values of one attribute.

    Attributes:
        attribute: The attribute.
        codes: The codes that hold an allowed value, the code for a missing cell included.
        intervals: Numeric kinds: the allowed positions of the grid, as disjoint ascending closed
            intervals within the range of the attribute. Other kinds: empty.
    """

    attribute: Attribute
    codes: Mask = field(repr=False)
    intervals: Counts = field(repr=False)

    @classmethod
    def of_codes(cls, attribute: Attribute, codes: Mask) -> "AllowedValues":
        """Allow all values of some codes."""
        if not attribute.is_numeric:
            return cls(attribute=attribute, codes=codes, intervals=_NO_INTERVALS)
        first = attribute.first_positions[codes[: attribute.bins]]
        last = first + attribute.widths[codes[: attribute.bins]] - 1
        missing = bool(attribute.missing and codes[-1])
        return cls.of_positions(attribute, np.stack([first, last], axis=1), missing=missing)

    @classmethod
    def of_positions(
        cls, attribute: Attribute, intervals: Counts | Sequence[Sequence[int]], *, missing: bool
    ) -> "AllowedValues":
        """Allow the values at some positions of the grid, and perhaps a missing cell.

        Args:
            attribute: An attribute of a numeric kind.
            intervals: Ascending closed intervals; those outside the range are cut off.
            missing: Whether a missing cell is allowed.
        """
        low, high = cast("int", attribute.values[0]), cast("int", attribute.values[-1])
        cut = np.array(intervals, dtype=np.int64).reshape(-1, 2)
        cut = np.stack([np.maximum(cut[:, 0], low), np.minimum(cut[:, 1], high)], axis=1)
        cut = _merge_adjacent(cut[cut[:, 0] <= cut[:, 1]])
        codes = np.zeros(attribute.size, dtype=bool)
        codes[_pieces(attribute, cut)[0]] = True
        if attribute.missing:
            codes[-1] = missing
        return cls(attribute=attribute, codes=codes, intervals=cut)

    @property
    def is_empty(self) -> bool:
        """Whether no value is allowed."""
        return not self.codes.any()

    @property
    def allows_missing(self) -> bool:
        """Whether a missing cell is allowed."""
        return bool(self.attribute.missing and self.codes[-1])

    def intersect(self, other: "AllowedValues") -> "AllowedValues":
        """Allow only the values that another set of the same attribute allows too."""
        if not self.attribute.is_numeric:
            return AllowedValues.of_codes(self.attribute, self.codes & other.codes)
        low = np.maximum(self.intervals[:, None, 0], other.intervals[None, :, 0]).ravel()
        high = np.minimum(self.intervals[:, None, 1], other.intervals[None, :, 1]).ravel()
        both = np.stack([low, high], axis=1)[low <= high]
        missing = self.allows_missing and other.allows_missing
        return AllowedValues.of_positions(
            self.attribute, both[np.argsort(both[:, 0])], missing=missing
        )

    def complement(self) -> "AllowedValues":
        """Allow the other values; a missing cell is not one of them."""
        attribute = self.attribute
        if not attribute.is_numeric:
            codes = ~self.codes
            codes[attribute.bins :] = False
            return AllowedValues.of_codes(attribute, codes)
        low, high = cast("int", attribute.values[0]), cast("int", attribute.values[-1])
        first = np.concatenate([[low], self.intervals[:, 1] + 1])
        last = np.concatenate([self.intervals[:, 0] - 1, [high]])
        gaps = np.stack([first, last], axis=1)
        return AllowedValues.of_positions(attribute, gaps[first <= last], missing=False)

    @cached_property
    def shares(self) -> Reals:
        """The share of each code's values that are allowed, all values of a bin equally likely.

        1 for a whole code, 0 for one without allowed values, between them where a condition cuts
        through a bin.
        """
        shares = self.codes.astype(np.float64)
        if self.attribute.is_binned:
            bins, low, high = self.pieces
            inside = np.bincount(bins, high - low + 1, minlength=self.attribute.bins)
            shares[: self.attribute.bins] = inside / self.attribute.widths
        return shares

    @property
    def cuts_bins(self) -> bool:
        """Whether some bin has both allowed and excluded values."""
        return bool(((self.shares > 0) & (self.shares < 1)).any())

    @cached_property
    def pieces(self) -> tuple[Indices, Counts, Counts]:
        """The allowed intervals, cut at the edges of bins: bin, first and last position of each."""
        return _pieces(self.attribute, self.intervals)


_NO_INTERVALS = np.empty((0, 2), dtype=np.int64)


def _pieces(attribute: Attribute, intervals: Counts) -> tuple[Indices, Counts, Counts]:
    """Cut intervals at the edges of bins."""
    starts = attribute.first_positions
    first = np.searchsorted(starts, intervals[:, 0], side="right") - 1
    last = np.searchsorted(starts, intervals[:, 1], side="right") - 1
    number = last - first + 1
    owner = np.repeat(np.arange(len(intervals)), number)
    before = np.repeat(np.cumsum(number) - number, number)
    bins: Indices = first[owner] + np.arange(len(owner)) - before
    ends = starts[bins] + attribute.widths[bins] - 1
    low = np.maximum(intervals[owner, 0], starts[bins])
    return bins, low, np.minimum(intervals[owner, 1], ends)


def _merge_adjacent(intervals: Counts) -> Counts:
    """Merge ascending disjoint intervals that touch."""
    if not len(intervals):
        return intervals
    apart = intervals[1:, 0] > intervals[:-1, 1] + 1
    low = intervals[np.append(True, apart), 0]
    high = intervals[np.append(apart, True), 1]
    return np.stack([low, high], axis=1)
