"""Look-up tables for drawing from log-linear distributions given frequent configurations.

A log-linear distribution is computed anew for each record. In a long run the same configurations
of its parents occur again and again. The most frequent ones get a table: the random words at which
each bin begins. It changes no record, since the bounds are exact
(docs/adr/0030-frequent-configurations.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, HalfWords, Indices, Reals
from deniable.model.loglinear_conditional import accumulate, scale_words

# Size of the sample that shows which configurations are frequent: the first records of a draw that
# has at least this many. A configuration needs this many of them.
_SAMPLE_RECORDS = 2**17
_MIN_REPEATS = 2
# The least share of a sample that the frequent configurations must have.
_MIN_COVERAGE = 0.25
# Configurations with a table, and slots to look them up in.
_MAX_CONFIGURATIONS = 2**14
_LOG2_SLOTS = 17
# Intervals of 32-bit words: the bin of the first word of each is listed.
_LOG2_INTERVALS = 7
_LAST_WORD = 2**32 - 1
# Bounds within this distance of an integer, in words, are computed with integers.
_BOUND_ERROR = 2.0**-10
# Configurations whose tables are made at once.
_CONFIGURATIONS_PER_BATCH = 4096
# A multiplicative hash: 2^64 divided by the golden ratio.
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)

# Computes the integer weight of each bin given configurations: bins by configurations.
WeightsOf = Callable[[Counts], Counts]


class FrequentConfigurations:
    """Makes look-up tables of a log-linear distribution, as soon as they pay."""

    def __init__(self, weights_of: WeightsOf) -> None:
        """Start without tables."""
        self._weights_of = weights_of
        self._tables: InverseTables | None = None
        self._is_done = False

    def tables(self, configurations: Counts) -> "InverseTables | None":
        """Look-up tables, if there are any yet, for records with these configurations."""
        # Two threads may both make tables: they draw the same.
        if not self._is_done and len(configurations) >= _SAMPLE_RECORDS:
            self._is_done = True
            self._tables = InverseTables.of(self._weights_of, configurations[:_SAMPLE_RECORDS])
        return self._tables


@dataclass(frozen=True, kw_only=True)
class InverseTables:
    """Inverse distribution functions of some configurations.

    Attributes:
        positions: The position of the configuration in each slot of a hash table.
        configurations: These configurations.
        guide: For each configuration and each interval of words: twice the bin of the first word,
            plus 1 if another bin begins within the interval.
        bounds: For each configuration and each bin, the first word of the bins after it; the last
            word if there is none.
    """

    positions: NDArray[np.uint16] = field(repr=False)
    configurations: Counts = field(repr=False)
    guide: NDArray[np.unsignedinteger] = field(repr=False)
    bounds: HalfWords = field(repr=False)

    @classmethod
    def of(cls, weights_of: WeightsOf, sample: Counts) -> "InverseTables | None":
        """Make tables of the configurations that are frequent in a sample; None if few are."""
        found, repeats = np.unique(sample, return_counts=True)
        order = np.argsort(-repeats, kind="stable")[:_MAX_CONFIGURATIONS]
        frequent = order[repeats[order] >= _MIN_REPEATS]
        # A slot has one configuration: the most frequent.
        slots, places = np.unique(_slot(found[frequent]), return_index=True)
        chosen = frequent[places]
        if repeats[chosen].sum() < _MIN_COVERAGE * repeats.sum():
            return None
        positions = np.zeros(2**_LOG2_SLOTS, dtype=np.uint16)
        positions[slots] = np.arange(len(chosen))
        guide, bounds = _invert_all(weights_of, found[chosen])
        return cls(positions=positions, configurations=found[chosen], guide=guide, bounds=bounds)

    def find(
        self, configurations: Counts, words: HalfWords
    ) -> tuple[NDArray[np.unsignedinteger], Indices]:
        """Find the bin that each record's word draws.

        Returns:
            The bin of each record, and the places of those whose bin is not known.
        """
        position = self.positions.take(_slot(configurations)).astype(np.intp)
        is_unknown = self.configurations.take(position) != configurations
        intervals = words >> np.uint32(32 - _LOG2_INTERVALS)
        entry = self.guide.ravel().take((position << _LOG2_INTERVALS) + intervals)
        bins: NDArray[np.unsignedinteger] = entry >> entry.dtype.type(1)
        # Intervals in which another bin begins: compare with its first word, and with the next.
        left = np.flatnonzero((entry & 1).astype(bool))
        word, bound = words.take(left), bins.take(left) + position.take(left) * self.bounds.shape[1]
        is_unknown[left[word == _LAST_WORD]] = True
        while len(left):
            is_reached = (word >= self.bounds.ravel().take(bound)) & (word < _LAST_WORD)
            left, word, bound = left[is_reached], word[is_reached], bound[is_reached] + 1
            bins[left] += 1
        return bins, np.flatnonzero(is_unknown)


def _slot(configurations: Counts) -> Indices:
    """Hash configurations."""
    hashed = configurations.view(np.uint64) * _HASH_FACTOR
    hashed >>= np.uint64(64 - _LOG2_SLOTS)
    return hashed.view(np.intp)


def _invert_all(
    weights_of: WeightsOf, configurations: Counts
) -> tuple[NDArray[np.unsignedinteger], HalfWords]:
    """Tabulate the inverse distribution functions: guide and bounds."""
    bins = len(weights_of(configurations[:1]))
    entry_type = np.uint8 if bins <= 2**7 else np.uint16
    guide = np.empty((len(configurations), 2**_LOG2_INTERVALS), dtype=entry_type)
    bounds = np.empty((len(configurations), bins), dtype=np.uint32)
    for start in range(0, len(configurations), _CONFIGURATIONS_PER_BATCH):
        batch = slice(start, start + _CONFIGURATIONS_PER_BATCH)
        bounds[batch] = _first_words(accumulate(weights_of(configurations[batch]))).T
        _fill_guide(guide[batch], bounds[batch])
    return guide, bounds


def _first_words(cumulative: Counts) -> Reals:
    """Find the first word that draws a bin after each bin: bins by configurations.

    It is the smallest word with ⌊total · word / 2^32⌋ ≥ the cumulative weight; at most the last.

    Args:
        cumulative: The cumulative weight of each bin: bins by configurations.
    """
    total = cumulative[-1]
    first: Reals = cumulative * (2.0**32 / total)
    distance = np.rint(first)
    distance -= first
    np.abs(distance, out=distance)
    # Rounding errors of floats are far smaller, so that all others are right.
    bins, places = np.nonzero(distance < _BOUND_ERROR)
    near = np.rint(first[bins, places]).astype(np.int64) - 1
    for _ in range(2):
        near += scale_words(total[places], near) < cumulative[bins, places]
    np.ceil(first, out=first)
    first[bins, places] = near
    np.minimum(first, _LAST_WORD, out=first)
    return first


def _fill_guide(guide: NDArray[np.unsignedinteger], bounds: HalfWords) -> None:
    """Tabulate, by configuration and interval, twice the bin of the first word, plus 1 if mixed."""
    intervals, shift = 2**_LOG2_INTERVALS, 32 - _LOG2_INTERVALS
    # A bin ends before the first interval that begins at or after the next bin's first word. One
    # more column is for bins that end in the last interval.
    ended = (bounds - np.uint32(1)) >> np.uint32(shift)
    ended += np.uint32(1)
    ended *= bounds > 0
    of_row = np.arange(len(bounds), dtype=np.uint32)[:, None] * np.uint32(intervals + 1)
    number = np.bincount((ended + of_row).ravel(), minlength=len(bounds) * (intervals + 1))
    number = number.reshape(len(bounds), -1)
    np.cumsum(number[:, :-1], axis=1, dtype=guide.dtype, out=guide)
    guide *= guide.dtype.type(2)
    guide += number[:, 1:] > 0
