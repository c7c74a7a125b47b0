"""One-shot seed histogram: noisy counts of the seeds that share each prefix; and the choice of ω.

Mechanism B of guarantee.md, Theorem 7. Noise is added once. Generation reads the kept prefixes and
never the seeds, so any number of records costs the same as one. ``choose_omega`` picks the prefix
length from the noisy model before the seeds are counted.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask
from deniable.counting.prefix_counts import FrequentPrefixes, PrefixCounts
from deniable.errors import InvariantError
from deniable.model.alias_sampling import random_permutation, stratified_words
from deniable.model.bayesian_network import Network, empty_codes
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_laws import Law
from deniable.randomness import Keyed, Rng

# A table of at most 2^_LOG2_SLOTS slots maps seed numbers to prefixes; a mark for a slot with
# several prefixes.
_LOG2_SLOTS = 16
_AMBIGUOUS_SLOT = -2
# ω is chosen from records drawn from the model with a public key, so it is a function of the
# artefact.
_SAMPLE_RECORDS = 2**15
_SAMPLE_KEY = 1
# Fraction of the drawn records whose prefix must be frequent enough.
MIN_SHARED_FRACTION = 0.9


@dataclass(frozen=True, kw_only=True)
class KeptPrefixes:
    """Kept prefixes of seeds, with their noisy counts.

    Attributes:
        prefixes: One row per prefix, one column per attribute in the order σ; rows are sorted, so
            their order reveals nothing about the table.
        counts: The noisy count of each prefix.
        records: The noisy number of all seeds.
    """

    prefixes: Codes
    counts: Counts
    records: int

    def __post_init__(self) -> None:
        if self.prefixes.ndim != 2 or self.counts.shape != (len(self.prefixes),):
            raise InvariantError("kept prefixes need one noisy count each")
        if (self.counts < 1).any():
            raise InvariantError("a kept prefix has a noisy count below 1")

    @property
    def length(self) -> int:
        """Number of attributes in a prefix."""
        return int(self.prefixes.shape[1])

    @cached_property
    def _cumulative_counts(self) -> Counts:
        return np.cumsum(self.counts)

    @cached_property
    def _prefix_index(self) -> PrefixCounts:
        length = self.length
        return PrefixCounts.of(self.prefixes, range(length), [length], self._sizes.tolist())

    @cached_property
    def _sizes(self) -> Counts:
        sizes: Counts = self.prefixes.max(axis=0, initial=0).astype(np.int64) + 1
        return sizes

    def holds(self, prefixes: Codes) -> Mask:
        """Test which prefixes are kept."""
        held: Mask = np.all(prefixes < self._sizes, axis=1)
        if len(self.prefixes):
            held[held] = self._prefix_index.look_up(prefixes[held])[:, 0] > 0
        return held & (len(self.prefixes) > 0)

    def draw(self, records: int, rng: Rng, *, stratified: bool = False) -> Indices:
        """Draw the index of a kept prefix for each record; -1: none, the model draws its prefix.

        Probabilities are proportional to the noisy counts. What these leave of the noisy number of
        seeds is the weight of no prefix (guarantee.md, Theorem 7). With ``stratified``, the
        frequencies match the noisy counts more closely than with independent draws.
        """
        if not stratified:
            return self._prefix_of(rng.integers(self._total, records))
        one_stratum = np.zeros(records, dtype=np.intp)
        words = stratified_words(one_stratum, random_permutation(records, rng), rng)
        return self._prefix_of((words * (self._total * 2.0**-32)).astype(np.int64))

    def _prefix_of(self, seeds: Counts) -> Indices:
        """Look up the prefix index of each seed number; -1 for none.

        Seeds are numbered prefix by prefix: each prefix has as many numbers as its noisy count.
        Nearly every number is in a slot with a single prefix and needs no search.
        """
        prefix = self._prefix_of_slot.take(seeds >> self._slot_bits, mode="clip")
        ambiguous = np.flatnonzero(prefix == _AMBIGUOUS_SLOT)
        prefix[ambiguous] = self._search(seeds[ambiguous])
        return prefix

    def _search(self, seeds: Counts) -> Indices:
        found = np.searchsorted(self._cumulative_counts, seeds, side="right")
        return np.where(found == len(self.counts), -1, found)

    @property
    def _total(self) -> int:
        return max(self.records, int(self.counts.sum()), 1)

    @cached_property
    def _slot_bits(self) -> int:
        """Number of low bits of a seed number that share a slot."""
        return max(0, self._total.bit_length() - _LOG2_SLOTS)

    @cached_property
    def _prefix_of_slot(self) -> Indices:
        """The prefix index of each slot, or ``_AMBIGUOUS_SLOT``."""
        first = np.arange(0, self._total, 2**self._slot_bits)
        last = np.minimum(first + 2**self._slot_bits, self._total) - 1
        prefix = self._search(first)
        return np.where(prefix == self._search(last), prefix, _AMBIGUOUS_SLOT)


def learn_histogram(
    rng: Rng, counted: FrequentPrefixes, *, k: int, law: Law, records: int
) -> tuple[KeptPrefixes, Spend]:
    """Measure the noisy seed histogram, with its privacy spend (guarantee.md, Theorem 7).

    Every prefix shared by at least ``k`` seeds gets independent noise. It is kept if its noisy
    count is at least k + r, where r bounds the noise.

    Args:
        rng: Source of the noise.
        counted: Prefixes of the seeds with exact counts, among them all that at least k seeds
            share. Confidential.
        k: A prefix shared by fewer seeds is never kept.
        law: Bounded noise on -r … r.
        records: The noisy number of seeds, from an earlier spend.

    Privacy:
        Neighbours: add or remove one seed, which moves one cell by one.
        Covers: the kept prefixes, their noisy counts, their number and order, and any number
            of records made from them: as if noise had been added to every cell of the domain,
            since a cell of fewer than k can never reach k + r. With certainty, each kept
            prefix is shared by at least k seeds.
        Does not cover: the model that draws the other attributes; the exact counts.
        Assumes: the length, k and the law were fixed without reading these seeds.
    """
    frequent = counted.at_least(k)
    noisy, spent = add_noise(rng, frequent.counts, law, what="seed prefixes", part="seeds")
    is_kept = noisy >= k + law.radius
    prefixes, counts = frequent.prefixes[is_kept], noisy[is_kept]
    return KeptPrefixes(prefixes=prefixes, counts=counts, records=records), spent


def choose_omega(
    network: Network, *, records: int, threshold: int, min_shared: float = MIN_SHARED_FRACTION
) -> int:
    """Choose ω: keep the longest prefix that most seeds share with enough others.

    Records are drawn from the model. A drawn record's prefix is frequent enough if a table of
    ``records`` rows would be expected to have twice ``threshold`` rows with it. The longest prefix
    for which that holds for 9 records in 10 is kept, and at least one attribute.

    Privacy:
        Covers: reads the noisy model and noisy totals only, so it costs nothing.
    """
    m = len(network.order)
    if m == 1:
        return 1
    drawn = empty_codes(_SAMPLE_RECORDS, network.attributes)
    network.draw(drawn, Keyed(_SAMPLE_KEY).at("candidates"), kept=0)
    lengths = range(1, m)
    sizes = [attribute.size for attribute in network.attributes]
    shared = PrefixCounts.of(drawn, network.order, lengths, sizes)
    expected = [of_seeds * (max(records, 1) / _SAMPLE_RECORDS) for of_seeds in shared.of_seeds]
    fractions = [float(np.mean(rows >= 2 * threshold)) for rows in expected]
    shared_enough = [
        length
        for length, fraction in zip(lengths, fractions, strict=True)
        if fraction >= min_shared
    ]
    return m - max(shared_enough, default=1)
