"""Look-up tables for drawing from log-linear distributions given frequent configurations.

A log-linear distribution is computed anew for each record. In a long run the same configurations
of its parents occur again and again. After one block of records, the most frequent ones get a table
of their inverse distribution function. It changes no record: an interval of random words has an
entry only if all of them draw the same bin, and all other records are drawn as before
(docs/adr/0030-frequent-configurations.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, HalfWords, Indices
from deniable.model.loglinear_conditional import LogLinearConditional, accumulate

# Records that are drawn before the tables are made, and the least number in the draw that shows
# which configurations are frequent.
_MIN_RECORDS = 2**18
_MIN_SAMPLE = 2**16
# The least share of a sample that the frequent configurations must have.
_MIN_COVERAGE = 0.25
# Configurations with a table, and slots to look them up in.
_MAX_CONFIGURATIONS = 2**14
_LOG2_SLOTS = 16
# Numbers of configurations must fit signed 64 bits.
_MAX_NUMBER = 2**63
# Intervals of 32-bit words: one byte each, which is a bin, or this.
_LOG2_INTERVALS = 8
_UNDECIDED = 255
# Bounds of bins are floats: an interval within this distance of one, in intervals, is undecided.
_BOUND_ERROR = 2.0**-20
# Records that are drawn at once: what is held for them stays small.
_RECORDS_PER_BATCH = 2**15
# Configurations whose tables are made at once.
_CONFIGURATIONS_PER_BATCH = 4096
# A multiplicative hash: 2^64 divided by the golden ratio.
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class FrequentConfigurations:
    """Makes look-up tables of a log-linear distribution, as soon as they pay."""

    def __init__(self, conditional: LogLinearConditional) -> None:
        """Start without tables."""
        self._conditional = conditional
        self._tables: InverseTables | None = None
        self._records = 0
        configurations = math.prod(len(effect) for effect in conditional.effects)
        fits = configurations < _MAX_NUMBER and len(conditional.base) <= _UNDECIDED
        self._is_done = not (fits and conditional.effects)

    def tables(self, groups: Sequence[Indices], records: int) -> "InverseTables | None":
        """Look-up tables, if there are any yet, for records with these groups of the parents."""
        if not self._is_done:
            self._records += records
            # Two threads may both make tables: they draw the same.
            if records >= _MIN_SAMPLE and self._records > _MIN_RECORDS:
                self._is_done = True
                self._tables = InverseTables.of(self._conditional, groups)
        return self._tables


@dataclass(frozen=True, kw_only=True)
class InverseTables:
    """Inverse distribution functions of some configurations, by interval of the random word.

    Attributes:
        conditional: The distribution.
        numbers: The configuration in each slot of a hash table; -1 if there is none.
        starts: The first entry of each slot's configuration.
        bins: For each of these configurations and each interval, the bin that all words of the
            interval draw, or 255.
    """

    conditional: LogLinearConditional = field(repr=False)
    numbers: Counts = field(repr=False)
    starts: Indices = field(repr=False)
    bins: NDArray[np.uint8] = field(repr=False)

    @classmethod
    def of(
        cls, conditional: LogLinearConditional, groups: Sequence[Indices]
    ) -> "InverseTables | None":
        """Make tables of the configurations that are frequent in a sample; None if few are."""
        number, first, repeats = np.unique(
            conditional.configurations(groups), return_index=True, return_counts=True
        )
        frequent = np.argsort(-repeats, kind="stable")[:_MAX_CONFIGURATIONS]
        # A slot has one configuration: the most frequent.
        slots, places = np.unique(_slot(number[frequent]), return_index=True)
        chosen = frequent[places]
        if repeats[chosen].sum() < _MIN_COVERAGE * repeats.sum():
            return None
        numbers = np.full(2**_LOG2_SLOTS, -1, dtype=np.int64)
        starts = np.zeros(2**_LOG2_SLOTS, dtype=np.intp)
        numbers[slots] = number[chosen]
        starts[slots] = np.arange(len(chosen)) << _LOG2_INTERVALS
        examples = [group[first[chosen]] for group in groups]
        return cls(
            conditional=conditional,
            numbers=numbers,
            starts=starts,
            bins=_invert_all(conditional, examples),
        )

    def draw(self, groups: Sequence[Indices], words: HalfWords) -> Indices:
        """Draw a value for each record, as ``LogLinearConditional.draw`` does."""
        drawn = np.empty(len(words), dtype=np.intp)
        for start in range(0, len(words), _RECORDS_PER_BATCH):
            batch = slice(start, start + _RECORDS_PER_BATCH)
            drawn[batch] = self._draw_batch([group[batch] for group in groups], words[batch])
        return drawn

    def _draw_batch(self, groups: Sequence[Indices], words: HalfWords) -> Indices:
        number = self.conditional.configurations(groups)
        slot = _slot(number)
        entries = self.starts.take(slot)
        entries += words[:, 0] >> np.uint32(32 - _LOG2_INTERVALS)
        bins = self.bins.take(entries)
        bins[self.numbers.take(slot) != number] = _UNDECIDED
        drawn = self.conditional.draw_within(bins, words[:, 1])
        others = np.flatnonzero(bins == _UNDECIDED)
        drawn[others] = self.conditional.draw([own.take(others) for own in groups], words[others])
        return drawn


def _slot(numbers: Counts) -> Indices:
    """Hash the numbers of configurations."""
    hashed = numbers.astype(np.uint64) * _HASH_FACTOR
    return (hashed >> np.uint64(64 - _LOG2_SLOTS)).astype(np.intp)


def _invert_all(conditional: LogLinearConditional, groups: Sequence[Indices]) -> NDArray[np.uint8]:
    """Tabulate the inverse distribution function of each configuration, one after the other."""
    parts = []
    for start in range(0, len(groups[0]), _CONFIGURATIONS_PER_BATCH):
        batch = slice(start, start + _CONFIGURATIONS_PER_BATCH)
        cumulative = accumulate(conditional.weights([own[batch] for own in groups]))
        parts.append(_invert(cumulative))
    return np.concatenate(parts).ravel()


def _invert(cumulative: Counts) -> NDArray[np.uint8]:
    """Tabulate inverse distribution functions: configurations by intervals.

    Args:
        cumulative: The cumulative weight of each bin: bins by configurations.
    """
    intervals, configurations = 2**_LOG2_INTERVALS, cumulative.shape[1]
    # The upper ends of the bins, in intervals. The last column is for ends behind all words.
    ends = cumulative[:-1] / (cumulative[-1] / intervals)
    bins_ended = np.zeros((configurations, intervals + 1), dtype=np.uint8)
    is_mixed = np.zeros((configurations, intervals + 1), dtype=bool)
    every = np.arange(configurations)
    for end in ends:
        bins_ended[every, end.astype(np.intp)] += 1
        for bound in (end - _BOUND_ERROR, end + _BOUND_ERROR):
            is_mixed[every, np.clip(bound, 0, intervals).astype(np.intp)] = True
    # The bin of an interval's first word: those that end in earlier intervals come before it.
    first = np.cumsum(bins_ended, axis=1, dtype=np.uint8) - bins_ended
    return np.where(is_mixed, np.uint8(_UNDECIDED), first)[:, :intervals]
