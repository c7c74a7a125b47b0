"""Values within bins under a condition: the weight of each code, and a value drawn in its bin.

A generated number is uniform in its bin, or, where roundness is modelled, uniform among the numbers
of the bin that have its roundness. A condition that cuts through a bin leaves some of them.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable.answers.allowed_values import AllowedValues
from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.randomness import Rng
from deniable.schema.heaping import Heaping


@dataclass(frozen=True, eq=False)
class BinValues:
    """The allowed values of one numeric column, by bin and roundness level.

    Attributes:
        allowed: The allowed values.
        heaping: The roundness of the column; None: all values of a bin are equally likely.
    """

    allowed: AllowedValues = field(repr=False)
    heaping: Heaping | None = field(default=None, repr=False)

    @cached_property
    def shares(self) -> Reals:
        """The share of allowed values: roundness levels by codes; one row without roundness."""
        attribute = self.allowed.attribute
        if self.heaping is None:
            return self.allowed.shares[None, :]
        bins = np.arange(attribute.bins)
        low = attribute.first_positions
        _, whole = self.heaping.index_ranges(bins, low, low + attribute.widths - 1)
        _, counts = self._ranges
        inside = np.zeros_like(whole)
        np.add.at(inside, self.allowed.pieces[0], counts)
        share = np.divide(inside, whole, out=np.zeros(whole.shape), where=whole > 0)
        by_level = np.take_along_axis(share, self.heaping.nearest_levels, axis=1).T
        missing = np.full((len(by_level), attribute.size - attribute.bins), 0.0)
        missing[:] = self.allowed.allows_missing
        return np.concatenate([by_level, missing], axis=1)

    def draw(self, codes: Codes, levels: Codes | None, rng: Rng) -> Counts:
        """Draw an allowed position in the bin of each code; for a missing cell, its code.

        Args:
            codes: Codes whose share is above 0.
            levels: The roundness level of each cell, where it is modelled.
            rng: Source of randomness.
        """
        attribute = self.allowed.attribute
        positions = codes.astype(np.int64)
        present = np.flatnonzero(codes < attribute.bins)
        bins = codes[present].astype(np.intp)
        level = np.zeros(len(bins), dtype=np.intp)
        if self.heaping is not None and levels is not None:
            level = self.heaping.nearest_levels[bins, levels[present]]
        uniform = rng.random(len(bins))
        for each in np.unique(level):
            own = np.flatnonzero(level == each)
            positions[present[own]] = self._draw_level(bins[own], int(each), uniform[own])
        return positions

    def _draw_level(self, bins: Indices, level: int, uniform: Reals) -> Counts:
        """Draw among the allowed values of one roundness level."""
        pieces, low, _ = self.allowed.pieces
        first, counts = self._ranges
        cumulative = np.append(0, np.cumsum(counts[:, level]))
        start = cumulative[np.searchsorted(pieces, bins, side="left")]
        number = cumulative[np.searchsorted(pieces, bins, side="right")] - start
        aim = start + np.minimum((uniform * number).astype(np.int64), number - 1)
        piece = np.searchsorted(cumulative, aim, side="right") - 1
        offset = aim - cumulative[piece]
        if self.heaping is None:
            plain: Counts = low[piece] + offset
            return plain
        index = first[piece, level] + offset
        return self.heaping.position(bins, np.full(len(bins), level), index)

    @cached_property
    def _ranges(self) -> tuple[Counts, Counts]:
        """The first index and the number of allowed values: pieces by levels."""
        bins, low, high = self.allowed.pieces
        if self.heaping is None:
            return low[:, None], (high - low + 1)[:, None]
        return self.heaping.index_ranges(bins, low, high)
