"""Search many random numbers in a short ascending list, without branches for most of them.

A binary search takes one branch for each bit of the result, and the processor guesses half of the
branches on random numbers wrong. A guide lists the result of the numbers that begin with the same
bits. Only where they have several results is there a search.
"""

from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Counts, Indices

# Intervals of numbers with a result listed: the list fits the processor's first cache.
_MAX_INTERVALS = 2**12


@dataclass(frozen=True)
class GuidedSearch:
    """Finds what ``np.searchsorted(ends, numbers, side="right")`` finds.

    Attributes:
        ends: Cumulative weights: ascending, the last the largest. Numbers are below the last.
        shift: The number of bits of a number that do not matter to the guide.
        guide: By the other bits: the result if all numbers have the same one, otherwise -1.
    """

    ends: Counts = field(repr=False)
    shift: int
    guide: Indices = field(repr=False)

    @classmethod
    def of(cls, ends: Counts) -> "GuidedSearch":
        """Make the guide."""
        shift = max(0, (int(ends[-1]) - 1) // _MAX_INTERVALS).bit_length()
        first = np.arange(((int(ends[-1]) - 1) >> shift) + 1) << shift
        lowest = np.searchsorted(ends, first, side="right")
        highest = np.searchsorted(ends, first + ((1 << shift) - 1), side="right")
        return cls(ends, shift, np.where(lowest == highest, lowest, -1))

    def find(self, numbers: Counts) -> Indices:
        """Count the ends that are at most each number, which is at least 0."""
        found: Indices = self.guide.take(numbers >> self.shift, mode="clip")
        left = np.flatnonzero(found < 0)
        found[left] = np.searchsorted(self.ends, numbers.take(left), side="right")
        return found
