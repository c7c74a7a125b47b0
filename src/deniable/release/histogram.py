"""The one-shot seed histogram: how many seeds share each prefix, noised once, for ever.

Mechanism B of guarantee.md, Theorem 7. What is kept is all that generation will ever know of the
seeds, so any number of records costs what one costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask
from deniable.errors import InvariantError
from deniable.model.draws import shuffled, spread_evenly
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.randomness import Rng
from deniable.release.counts import PrefixCounts

# Seeds are looked up by slots, at most two to this; a slot of several prefixes is marked so.
_SLOTS = 16
_SEVERAL = -2


@dataclass(frozen=True, kw_only=True)
class KeptPrefixes:
    """The prefixes of one length that were kept, with their noisy counts.

    Attributes:
        prefixes: One row a prefix, one column an attribute in the order σ; rows ascending, so
            that their order says nothing about the table.
        counts: The noisy count of each.
        records: The noisy number of seeds, kept or not.
    """

    prefixes: Codes
    counts: Counts
    records: int

    def __post_init__(self) -> None:
        if self.prefixes.ndim != 2 or self.counts.shape != (len(self.prefixes),):
            raise InvariantError("kept prefixes: one noisy count each")
        if (self.counts < 1).any():
            raise InvariantError("kept prefixes: a noisy count is below 1")

    @property
    def length(self) -> int:
        """How many attributes the prefixes have."""
        return int(self.prefixes.shape[1])

    @property
    def kept_share(self) -> float:
        """The share of seeds whose prefix was kept, by noisy totals only, between 0 and 1.

        The rest goes to the seedless model (guarantee.md, Theorem 7).
        """
        kept = int(self.counts.sum())
        return min(1.0, kept / max(self.records, kept, 1))

    @cached_property
    def _ends(self) -> Counts:
        return np.cumsum(self.counts)

    @cached_property
    def _tree(self) -> PrefixCounts:
        length = self.length
        return PrefixCounts.of(self.prefixes, range(length), [length], self._sizes.tolist())

    @cached_property
    def _sizes(self) -> Counts:
        sizes: Counts = self.prefixes.max(axis=0, initial=0).astype(np.int64) + 1
        return sizes

    def holds(self, prefixes: Codes) -> Mask:
        """Return which of some prefixes are kept."""
        held: Mask = np.all(prefixes < self._sizes, axis=1)
        if len(self.prefixes):
            held[held] = self._tree.look_up(prefixes[held])[:, 0] > 0
        return held & (len(self.prefixes) > 0)

    def draw(self, records: int, rng: Rng, *, evenly: bool = False) -> Indices:
        """Return the number of a kept prefix for each record, or -1: none, draw everything.

        In proportion to the noisy counts; ``evenly``, so that they share them out.
        """
        if not evenly:
            return self._prefix_of(rng.integers(self._whole, records))
        nobody = np.zeros(records, dtype=np.intp)
        words = spread_evenly(nobody, shuffled(records, rng), rng)
        return self._prefix_of((words * (self._whole * 2.0**-32)).astype(np.int64))

    def _prefix_of(self, seeds: Counts) -> Indices:
        """Return the number of the prefix that has each of so many seeds; -1: nobody's.

        Nearly all lie in a slot that has one prefix only, and need no search.
        """
        prefix = self._of_slot.take(seeds >> self._slot, mode="clip")
        open_ = np.flatnonzero(prefix == _SEVERAL)
        prefix[open_] = self._search(seeds[open_])
        return prefix

    def _search(self, seeds: Counts) -> Indices:
        found = np.searchsorted(self._ends, seeds, side="right")
        return np.where(found == len(self.counts), -1, found)

    @property
    def _whole(self) -> int:
        return max(self.records, int(self.counts.sum()), 1)

    @cached_property
    def _slot(self) -> int:
        """How many bits of a seed's number its slot leaves out."""
        return max(0, self._whole.bit_length() - _SLOTS)

    @cached_property
    def _of_slot(self) -> Indices:
        """The prefix of each slot of seeds, or that there are several."""
        first = np.arange(0, self._whole, 2**self._slot)
        last = np.minimum(first + 2**self._slot, self._whole) - 1
        prefix = self._search(first)
        return np.where(prefix == self._search(last), prefix, _SEVERAL)


@dataclass(frozen=True)
class SeedHistogram:
    """All that is kept of the seeds: nothing, or the prefixes of one length or several."""

    levels: tuple[KeptPrefixes, ...] = field(default=())

    def of_length(self, length: int) -> KeptPrefixes:
        """Return the kept prefixes of one length."""
        return next(level for level in self.levels if level.length == length)


def learn_histogram(
    rng: Rng,
    seeds: Codes,
    counts: PrefixCounts,
    *,
    k: int,
    law: Law,
    records: int,
) -> tuple[SeedHistogram, Spend]:
    """Return the prefixes that are kept of each length, and the bill (guarantee.md, Theorem 7).

    Of each length, every prefix that at least ``k`` seeds share gets noise of its own; it is kept
    if its noisy count is at least k + r, r being the most that the noise can add.

    Args:
        rng: Where the noise comes from.
        seeds: The records of D_S. Confidential.
        counts: The same by their prefixes, at the lengths to keep, each at least 1.
        k: The floor: no prefix that fewer seeds share is ever kept.
        law: Bounded noise on -r … r.
        records: The noisy number of seeds, already paid for.

    Privacy:
        Neighbours: add or remove one seed, which moves one cell of each length by one.
        Covers: the kept prefixes, their noisy counts, their number and order, and any number
            of records made from them: as if noise had been added to every cell of the domain,
            since a cell of fewer than k can never reach k + r. With certainty, each kept
            prefix is shared by at least k seeds.
        Does not cover: the model that draws the other attributes; the exact counts.
        Assumes: lengths, k and the law were fixed without looking at these seeds.
    """
    shares: list[Counts] = []
    labels: list[Codes] = []
    for at, length in enumerate(counts.levels):
        prefixes, shared = _distinct(seeds, counts, at, length)
        frequent = shared >= k
        shares.append(shared[frequent])
        labels.append(prefixes[frequent])
    noisy, spent = add_noise(
        rng,
        np.concatenate(shares),
        law,
        what="seed prefixes",
        part="seeds",
        moved=len(counts.levels),
    )
    by_length = np.split(noisy, np.cumsum([len(shared) for shared in shares])[:-1])
    levels = []
    for prefixes, counted in zip(labels, by_length, strict=True):
        kept = counted >= k + law.r
        levels.append(KeptPrefixes(prefixes=prefixes[kept], counts=counted[kept], records=records))
    return SeedHistogram(tuple(levels)), spent


def _distinct(seeds: Codes, counts: PrefixCounts, at: int, length: int) -> tuple[Codes, Counts]:
    """Return the distinct prefixes of one length in ascending order, and who shares each."""
    groups = counts.groups[at]
    sizes = counts.sizes[at]
    representative = np.empty(len(sizes), dtype=np.intp)
    representative[groups] = np.arange(len(seeds))
    columns: Sequence[int] = counts.order[:length]
    return seeds[representative][:, columns], sizes
