"""Look-up tables for drawing from log-linear distributions given frequent configurations.

A log-linear distribution is computed anew for each record. In a long run the same configurations
of its parents occur again and again. The most frequent ones get a table: the random words at which
each bin begins, as far as their first 15 bits tell. It changes no record: a word with the same
first bits as a bound is left to others (docs/adr/0030-frequent-configurations.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, HalfWords, Indices, Keys, Mask, Reals
from deniable.model.loglinear_conditional import accumulate

# The first large draw shows which configurations are frequent: one of at least this many records. A
# configuration needs this many of them.
_MIN_SAMPLE_RECORDS = 2**17
_MIN_REPEATS = 2
# The least share of a sample that the frequent configurations must have.
_MIN_COVERAGE = 0.25
# Configurations with a table, and slots to look them up in.
_LOG2_CONFIGURATIONS = 14
_LOG2_SLOTS = 17
# The first bits of a word are its code. They number its interval, and its place in there.
_CODE_BITS = 15
_PLACE_BITS = 8
_LOG2_INTERVALS = _CODE_BITS - _PLACE_BITS
_CODE_SHIFT = np.uint32(32 - _CODE_BITS)
_LAST_PLACE = 2**_PLACE_BITS - 1
# Far more than the error of a code computed in floats, far less than one word: 2^-17 of a code.
_CODE_MARGIN = 2.0**-20
# Configurations whose tables are made at once.
_CONFIGURATIONS_PER_BATCH = 4096
# A multiplicative hash: 2^64 divided by the golden ratio. It is odd, also modulo 2^32.
_HASH_FACTOR = 0x9E3779B97F4A7C15

# Computes the integer weight of each bin given configurations: bins by configurations.
WeightsOf = Callable[[Keys], Counts]
Unsigned = NDArray[np.unsignedinteger]


class FrequentConfigurations:
    """Makes look-up tables of a log-linear distribution, as soon as they pay."""

    def __init__(self, weights_of: WeightsOf) -> None:
        """Start without tables."""
        self._weights_of = weights_of
        self._tables: InverseTables | None = None
        self._is_done = False

    def tables(self, configurations: Keys) -> "InverseTables | None":
        """Look-up tables, if there are any yet, for records with these configurations."""
        # Two threads may both make tables: they draw the same.
        if not self._is_done and len(configurations) >= _MIN_SAMPLE_RECORDS:
            self._is_done = True
            self._tables = InverseTables.of(self._weights_of, configurations)
        return self._tables


@dataclass(frozen=True, kw_only=True)
class ConfigurationHash:
    """Positions of some configurations, found by a hash that loses nothing.

    A hash is the product with an odd number, which no two configurations have in common. Its first
    bits are the slot. The other bits are kept there, above the position: exclusive or with those of
    a configuration leaves the position, or a larger number if the slot has another one.

    Attributes:
        slots: The other bits and the position, by slot; the highest bit if a slot is empty.
    """

    slots: Unsigned = field(repr=False)

    @classmethod
    def of(cls, configurations: Keys) -> tuple["ConfigurationHash", Indices]:
        """Give slots to configurations, the most frequent first.

        Returns:
            The hash, and the place of the configuration at each position.
        """
        word = configurations.dtype
        empty = 2 ** (8 * word.itemsize - 1)
        found = cls(slots=np.full(2**_LOG2_SLOTS, empty, dtype=word))
        slot, rest = found._hash(configurations)
        own, places = np.unique(slot, return_index=True)
        found.slots[own] = rest[places] ^ np.arange(len(own), dtype=word)
        return found, places

    def positions(self, configurations: Keys) -> Unsigned:
        """Find the position of each configuration; at least 2^14 for those that have none."""
        slot, rest = self._hash(configurations)
        rest ^= self.slots.take(slot, mode="clip")
        return rest

    def _hash(self, configurations: Keys) -> tuple[Indices, Unsigned]:
        """Compute the slot, and the other bits of the hash."""
        word = self.slots.dtype
        hashed = configurations * word.type(_HASH_FACTOR % 2 ** (8 * word.itemsize))
        slot = (hashed >> word.type(8 * word.itemsize - _LOG2_SLOTS)).astype(np.intp)
        hashed <<= word.type(_LOG2_SLOTS)
        hashed >>= word.type(_LOG2_SLOTS - _LOG2_CONFIGURATIONS)
        return slot, hashed


@dataclass(frozen=True, kw_only=True)
class InverseTables:
    """Inverse distribution functions of some configurations.

    A bound is the first word of the bins after a bin; only its code is known. A word of a larger
    code reaches the bound, and a word of a smaller code does not.

    Attributes:
        positions: Where each of these configurations is.
        guide: For each configuration and each interval of words: the first bin, and the place of
            the bound within the interval, or a place past the last if there is none. A number past
            the last bin if there are several bounds.
        bounds: For each configuration and each bin, the code of its bound; padded to 64.
        bins: The number of bins.
    """

    positions: ConfigurationHash = field(repr=False)
    guide: Unsigned = field(repr=False)
    bounds: NDArray[np.uint16] = field(repr=False)
    bins: int

    @classmethod
    def of(cls, weights_of: WeightsOf, sample: Keys) -> "InverseTables | None":
        """Make tables of the configurations that are frequent in a sample; None if few are."""
        found, repeats = np.unique(sample, return_counts=True)
        # In 16 bits, which sort ten times as fast. Above that, all configurations are frequent.
        rarity = (2**16 - 1 - np.minimum(repeats, 2**16 - 1)).astype(np.uint16)
        order = np.argsort(rarity, kind="stable")[: 2**_LOG2_CONFIGURATIONS]
        frequent = order[repeats[order] >= _MIN_REPEATS]
        positions, places = ConfigurationHash.of(found[frequent])
        chosen = frequent[places]
        if repeats[chosen].sum() < _MIN_COVERAGE * repeats.sum():
            return None
        guide, bounds, bins = _invert_all(weights_of, found[chosen])
        return cls(positions=positions, guide=guide, bounds=bounds, bins=bins)

    def find(self, configurations: Keys, words: HalfWords) -> tuple[Unsigned, Indices]:
        """Find the bin that each record's word draws.

        Returns:
            The bin of each record, and the places of those whose bin is not known.
        """
        position = self.positions.positions(configurations)
        is_unknown = position >> _LOG2_CONFIGURATIONS != 0
        codes = (words >> _CODE_SHIFT).astype(np.uint16)
        cell = position << _LOG2_INTERVALS
        cell |= codes >> _PLACE_BITS
        # Unknown configurations have a number past all cells, which becomes the last.
        bins = self.guide.take(cell.astype(np.intp), mode="clip")
        bound = (bins & (2 * _LAST_PLACE + 1)).astype(np.uint16)
        bins >>= _PLACE_BITS + 1
        place = codes & _LAST_PLACE
        is_several = bins == self.bins
        bins += place > bound
        is_unknown |= place == bound
        several = np.flatnonzero(is_several & ~is_unknown)
        if len(several):
            self._search(several, position, codes, bins, is_unknown)
        return bins, np.flatnonzero(is_unknown)

    def _search(
        self,
        records: Indices,
        position: Unsigned,
        codes: NDArray[np.uint16],
        bins: Unsigned,
        is_unknown: Mask,
    ) -> None:
        """Find the bins of some records by comparison with all bounds of their configuration."""
        rows, own = position.take(records).astype(np.intp), codes.take(records)
        is_reached = self.bounds.take(rows, axis=0, mode="clip") < own[:, None]
        reached = np.bitwise_count(np.packbits(is_reached, axis=1).view(np.uint64))
        found = reached.sum(axis=1, dtype=np.intp)
        bins[records] = found
        rows *= self.bounds.shape[1]
        rows += found
        is_unknown[records] = self.bounds.ravel().take(rows, mode="clip") == own


def _invert_all(
    weights_of: WeightsOf, configurations: Keys
) -> tuple[Unsigned, NDArray[np.uint16], int]:
    """Tabulate the inverse distribution functions: guide, bounds and the number of bins."""
    bins = len(weights_of(configurations[:1]))
    entry_type = np.uint16 if (bins + 1) << (_PLACE_BITS + 1) <= 2**16 else np.uint32
    guide = np.empty((len(configurations), 2**_LOG2_INTERVALS), dtype=entry_type)
    # At least one after those of all bins but the last: no word reaches it.
    bounds = np.full((len(configurations), -(-bins // 64) * 64), 2**_CODE_BITS, dtype=np.uint16)
    for start in range(0, len(configurations), _CONFIGURATIONS_PER_BATCH):
        batch = slice(start, start + _CONFIGURATIONS_PER_BATCH)
        codes = bound_codes(accumulate(weights_of(configurations[batch])))
        bounds[batch, : bins - 1] = codes.T
        _fill_guide(guide[batch], bounds[batch, : bins - 1], bins)
    return guide.ravel(), bounds, bins


def bound_codes(cumulative: Counts) -> NDArray[np.uint16]:
    """Compute the code of the bound of each bin but the last: bins by configurations.

    The bound is the smallest word with ⌊total · word / 2^32⌋ ≥ the cumulative weight: c · 2^32 /
    total, rounded up. A code k is right if k · 2^17 ≤ bound ≤ (k + 1) · 2^17. Rounded down after
    adding less than one word, and more than the error of floats, it is.
    """
    codes: Reals = cumulative[:-1] * (2.0**_CODE_BITS / cumulative[-1])
    codes += _CODE_MARGIN
    return codes.astype(np.uint16)


def _fill_guide(guide: Unsigned, bounds: NDArray[np.uint16], bins: int) -> None:
    """Tabulate, by configuration and interval, the first bin and the place of the bound."""
    # One more column is for bounds that no word reaches: only bins of weight 0 are after them.
    rows, columns = len(guide), guide.shape[1] + 1
    cells = (bounds >> _PLACE_BITS).astype(np.intp)
    cells += np.arange(rows)[:, None] * columns
    number = np.bincount(cells.ravel(), minlength=rows * columns).reshape(rows, columns)[:, :-1]
    places = np.full(rows * columns, _LAST_PLACE + 1, dtype=guide.dtype)
    places[cells] = bounds & _LAST_PLACE
    np.cumsum(number, axis=1, dtype=guide.dtype, out=guide)
    guide -= number.astype(guide.dtype)
    guide <<= _PLACE_BITS + 1
    guide |= places.reshape(rows, columns)[:, :-1]
    guide[number > 1] = bins << (_PLACE_BITS + 1) | (_LAST_PLACE + 1)
