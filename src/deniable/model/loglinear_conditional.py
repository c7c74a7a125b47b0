"""Log-linear conditional distribution, drawn directly: for attributes with too many parents.

    Pr{bin = b | z_1, …, z_p} ∝ 2^(base[b] + Σ_j effects_j[z_j, b] + Σ_jk joint_jk[z_j, z_k, b])

A table has one row per configuration of the parents, so it can have only a few parents. Here an
attribute can have many. Logarithms, weights and draws are integers, so the same key gives the
same records on every computer.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, HalfWords, Indices, Mask, Reals
from deniable.errors import InvariantError
from deniable.model.alias_sampling import stratified_words
from deniable.model.effect_tables import (
    EffectTable,
    JointEffect,
    JointEffectTables,
    Logarithms,
    add_look_ups,
    divide_parents,
    sum_effects,
)
from deniable.model.guided_search import GuidedSearch
from deniable.model.pairwise.three_way_effects import TripleEffect
from deniable.model.systematic_sampling import SystematicSampler, strengths_of_effects
from deniable.randomness import Rng

# Logarithms to base 2 are integers in units of 2^-12.
_FRACTION_BITS = 12
# The largest weight of a bin; a bin that is 2^30 times less likely than another has weight 0.
_LOG2_MAX_WEIGHT = 30
_MAX_DEFICIT = (_LOG2_MAX_WEIGHT + 1) << _FRACTION_BITS
# Logarithms are within ±2^20 units. Their sum over parents is within ±2^30, so that differences of
# sums fit 32 bits.
_MAX_LOGARITHM = 2**20
# The logarithm of a bin that is excluded: below all others.
_EXCLUDED = -(2**30)
_MAX_SUM = 2**30
# Weights of the values within a bin sum to 2^32.
_LOG2_BIN_TOTAL = 32
# Records that are handled at once: their logarithms stay in the cache.
_RECORDS_PER_BATCH = 4096


@dataclass(frozen=True)
class LogLinearConditional:
    """Log-linear distribution of an attribute given the groups of its parents, in integers.

    Attributes:
        base: The logarithm of each bin's weight without parents.
        effects: For each parent, what each of its groups adds: groups by bins.
        bins: The bin of each value; bins ascend.
        within: The weight of each value in its bin; the weights of a bin sum to 2^32.
        joint: What pairs of parents add.
    """

    base: Logarithms
    effects: tuple[Logarithms, ...] = field(repr=False)
    bins: Indices = field(repr=False)
    within: Counts = field(repr=False)
    joint: tuple[JointEffect, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        bins = len(self.base)
        fits = self.base.ndim == 1 and bins > 0 and self.bins.shape == self.within.shape
        fits = fits and all(e.ndim == 2 and e.shape[1] == bins and len(e) for e in self.effects)
        fits = fits and self.bins.ndim == 1 and len(self.bins) >= bins
        fits = fits and all(e.fits([len(own) for own in self.effects], bins) for e in self.joint)
        if not fits:
            raise InvariantError("the parts of a log-linear distribution have different shapes")
        ascend = self.bins[0] == 0 and self.bins[-1] == bins - 1
        ascend = ascend and bool(np.isin(np.diff(self.bins), (0, 1)).all())
        # Not by np.abs, which leaves the smallest integer negative.
        parts = (self.base, *self.effects, *(each.effects for each in self.joint))
        sizes = [max(-int(part.min()), int(part.max())) for part in parts]
        in_range = max(sizes) <= _MAX_LOGARITHM and sum(sizes) < _MAX_SUM
        total = 2**_LOG2_BIN_TOTAL
        in_range = in_range and self.within.min() >= 0 and self.within.max() <= total
        if not (ascend and in_range and (np.add.reduceat(self.within, self._first) == total).all()):
            raise InvariantError("a log-linear distribution has invalid bins or weights")

    @classmethod
    def of(
        cls,
        base: Reals,
        effects: Sequence[Reals],
        bins: Indices,
        shares: Reals,
        *,
        triples: Sequence[TripleEffect] = (),
    ) -> "LogLinearConditional":
        """Round a model to integers.

        Args:
            base: Natural logarithms of the bins' weights.
            effects: Natural logarithms that each parent adds: groups by bins.
            bins: The bin of each value.
            shares: The probability of each value, given its bin.
            triples: Natural logarithms that pairs of parents add.
        """
        return cls(
            base=_to_units(base - base.max()),
            effects=tuple(_to_units(effect) for effect in effects),
            bins=bins,
            within=_to_bin_weights(bins, shares),
            joint=tuple(_round_joint_effect(triple, len(base)) for triple in triples),
        )

    @property
    def values(self) -> int:
        """The number of values."""
        return len(self.bins)

    @cached_property
    def _first(self) -> Indices:
        """The first value of each bin."""
        return np.flatnonzero(np.diff(self.bins, prepend=-1))

    @cached_property
    def _search(self) -> GuidedSearch:
        """Cumulative weights of the values; bin b covers b · 2^32 … (b + 1) · 2^32."""
        return GuidedSearch.of(np.cumsum(self.within))

    @cached_property
    def tables(self) -> tuple[EffectTable, ...]:
        """Sums of the effects of single parents."""
        sizes = [len(effect) for effect in self.effects]
        return sum_effects(self.effects, divide_parents(sizes, len(self.base)))

    @cached_property
    def joint_tables(self) -> JointEffectTables | None:
        """Sums of the effects of pairs of parents."""
        return JointEffectTables.of(self.joint) if self.joint else None

    @property
    def cells(self) -> int:
        """The number of logarithms."""
        parts = (*self.effects, *(each.effects for each in self.joint))
        return len(self.base) + sum(part.size for part in parts)

    def prepare(self) -> None:
        """Build the cached look-up tables now rather than at the first draw."""
        self.tables, self.joint_tables, self._search  # noqa: B018 - cached properties

    def draw_precise(self, groups: Sequence[Indices], uniform: Reals, words: HalfWords) -> Indices:
        """Draw with bins exact to 2^-53: for records whose probability is computed afterwards.

        Args:
            groups: For each parent, the group of each record.
            uniform: One number in [0, 1) per record, for the bin.
            words: One 32-bit word per record, for the value.
        """
        drawn = np.empty(len(uniform), dtype=np.intp)
        for batch in _batches(len(uniform)):
            cumulative = accumulate(self.weights([group[batch] for group in groups]))
            threshold = (uniform[batch] * cumulative[-1]).astype(np.int64)
            drawn[batch] = self.draw_within(_find_bins(cumulative, threshold), words[batch])
        return drawn

    def draw_systematic(self, groups: Sequence[Indices], order: Indices, rng: Rng) -> Indices:
        """Draw a value for each record by systematic sampling.

        Args:
            groups: For each parent, the group of each record.
            order: The records, in an order in which similar ones follow each other.
            rng: Source of randomness.
        """
        sampler = SystematicSampler(len(self.base), rng)
        bins = np.empty(len(order), dtype=np.intp)
        for batch in _batches(len(order)):
            own = order[batch]
            weights = self.weights([group[own] for group in groups], records=len(own))
            cumulative = accumulate(weights).ravel()
            bins[own] = sampler.draw(cumulative, np.arange(len(own)), len(own))
        return self.draw_within(bins, stratified_words(bins, order, rng))

    def parent_strengths(self, groups: Sequence[Indices]) -> list[int]:
        """Compute how strongly the records' values depend on each parent, by its effects."""
        return strengths_of_effects(self.effects, groups)

    def draw_within(self, bins: NDArray[np.integer], words: HalfWords) -> Indices:
        """Draw a value within the bin of each record; a bin that does not exist is the last."""
        positions: Counts = np.minimum(bins, len(self.base) - 1, dtype=np.int64)
        if self.values == len(self.base):
            return positions
        positions <<= _LOG2_BIN_TOTAL
        positions += words
        return self._search.find(positions)

    def log_probability(self, groups: Sequence[Indices], values: Indices) -> Reals:
        """Compute ln Pr{value | parents} of each record."""
        found = np.empty(len(values))
        with np.errstate(divide="ignore"):
            for batch in _batches(len(values)):
                weights = self.weights([group[batch] for group in groups])
                own = values[batch].astype(np.intp)
                of_bin = np.take_along_axis(weights, self.bins[own][None, :], axis=0)[0]
                found[batch] = np.log(of_bin) - np.log(weights.sum(axis=0))
                found[batch] += np.log(self.within[own]) - _LOG2_BIN_TOTAL * math.log(2)
        return found

    def log_distribution(self, groups: Sequence[Indices], records: int) -> Reals:
        """Compute ln Pr{value | parents}: records by values."""
        found = np.empty((records, self.values))
        with np.errstate(divide="ignore"):
            within = np.log(self.within) - _LOG2_BIN_TOTAL * math.log(2)
            for batch in _batches(records):
                own = len(found[batch])
                weights = self.weights([group[batch] for group in groups], records=own)
                bins = np.log(weights) - np.log(weights.sum(axis=0))
                found[batch] = bins.T[:, self.bins] + within
        return found

    def distribution(
        self, groups: Sequence[Indices], records: int, allowed: Mask | None = None
    ) -> Reals:
        """Compute Pr{value | parents}: records by values; the same digits on every computer.

        Weights are integers, so those of improbable bins are 0. If only some values are
        ``allowed``, records by values, weights are relative to the bins that have such values; only
        the ratios of the probabilities of allowed values then matter.
        """
        found = np.empty((records, self.values))
        within = self.within * 2.0**-_LOG2_BIN_TOTAL
        for batch in _batches(records):
            bins = None
            if allowed is not None:
                possible = (allowed[batch] & (self.within > 0)).T
                bins = np.logical_or.reduceat(possible, self._first)
            weights = self.weights([group[batch] for group in groups], len(found[batch]), bins)
            found[batch] = (weights / weights.sum(axis=0)).T[:, self.bins] * within
        return found

    def weights(
        self, groups: Sequence[Indices], records: int = 1, allowed: Mask | None = None
    ) -> Counts:
        """Compute the integer weight of each bin: bins by records of one batch.

        If only some bins are ``allowed``, also bins by records, the others have weight 0.
        """
        joint = self.joint_tables.index(groups) if self.joint_tables else []
        single = [table.index(groups) for table in self.tables]
        return self.weights_at(single, joint, records, allowed)

    def weights_at(
        self,
        single: Sequence[Indices],
        joint: Sequence[Indices],
        records: int = 1,
        allowed: Mask | None = None,
    ) -> Counts:
        """Compute the weights, given the rows of the tables of single parents and of pairs."""
        if self.tables:
            logarithms = add_look_ups(self.tables, single)
            logarithms += self.base[:, None]
        else:
            logarithms = np.repeat(self.base[:, None], records, axis=1)
        if self.joint_tables is not None:
            self.joint_tables.add_to(logarithms, joint)
        if allowed is not None:
            logarithms[~allowed] = _EXCLUDED
        deficits = np.subtract(logarithms.max(axis=0), logarithms, out=logarithms)
        # A larger deficit than any in the list has the weight of the last: 0.
        weights: Counts = _weights_by_deficit().take(deficits, mode="clip")
        return weights


def invert_weights(weights: Counts, words: HalfWords) -> NDArray[np.unsignedinteger]:
    """Find the bin that each record's word draws; weights, bins by records, are overwritten."""
    cumulative = accumulate(weights)
    return _find_bins(cumulative, scale_words(cumulative[-1], words))


def scale_words(total: Counts, words: NDArray[np.integer]) -> Counts:
    """Compute ⌊total · word / 2^32⌋ of each record."""
    word = words.astype(np.int64)
    # Multiplied in two halves: the total may need 46 bits.
    scaled: Counts = ((total >> 16) * word + (((total & 0xFFFF) * word) >> 16)) >> 16
    return scaled


def _find_bins(cumulative: Counts, threshold: Counts) -> NDArray[np.unsignedinteger]:
    """Find the bin that each record's threshold falls into: cumulative weights have a row a bin."""
    # Counted in as few bytes as hold the number of bins: a count is added once per bin.
    count_type = np.uint8 if len(cumulative) <= 2**8 else np.uint16
    bins: NDArray[np.unsignedinteger] = np.zeros(len(threshold), dtype=count_type)
    for row in cumulative[:-1]:
        np.add(bins, row <= threshold, out=bins, dtype=count_type)
    return bins


def accumulate(weights: Counts) -> Counts:
    """Add to the weight of each bin those before it, in place: bins by records of one batch."""
    # Row by row: NumPy's own sum along the first axis goes through memory in strides.
    for before, row in itertools.pairwise(weights):
        np.add(before, row, out=row)
    return weights


def _batches(records: int) -> list[slice]:
    return [slice(s, s + _RECORDS_PER_BATCH) for s in range(0, records, _RECORDS_PER_BATCH)]


def _to_units(logarithms: Reals) -> Logarithms:
    """Convert natural logarithms to integers in units of 2^-12, to base 2."""
    units = np.rint(logarithms * (2**_FRACTION_BITS / math.log(2)))
    clipped: Logarithms = np.clip(units, -_MAX_LOGARITHM, _MAX_LOGARITHM).astype(np.int32)
    return clipped


def _round_joint_effect(triple: TripleEffect, bins: int) -> JointEffect:
    """Round what a pair of parents adds to integers."""
    parents = triple.parents
    return JointEffect(
        first=parents.first,
        second=parents.second,
        first_groups=parents.first_groups,
        second_groups=parents.second_groups,
        effects=_to_units(triple.effect[:, parents.child_groups].reshape(-1, bins)),
    )


def _to_bin_weights(bins: Indices, shares: Reals) -> Counts:
    """Round the shares of the values in each bin to integers that sum to 2^32."""
    total = 2**_LOG2_BIN_TOTAL
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    weights: Counts = np.rint(shares / np.add.reduceat(shares, first)[bins] * total).astype(
        np.int64
    )
    # The most likely value of a bin takes what rounding left.
    for start, end in zip(first, [*first[1:], len(bins)], strict=True):
        part = weights[start:end]
        part[part.argmax()] += total - part.sum()
    return weights


@cache
def _weights_by_deficit() -> Counts:
    """2^30 · 2^(-d / 4096) for d = 0 … 31 · 4096; the same on every computer.

    The first 4,096 are rounded, all others are these without their last bits: the last is 0.
    By integer square roots: 2^(-1/4096) is twelve square roots of 1/2, to 200 bits.
    """
    bits = 200
    root = 1 << (bits - 1)
    for _ in range(_FRACTION_BITS):
        root = math.isqrt(root << bits)
    power, powers = 1 << bits, []
    for _ in range(2**_FRACTION_BITS):
        powers.append((power >> (bits - _LOG2_MAX_WEIGHT - 1)) + 1 >> 1)
        power = power * root >> bits
    deficit = np.arange(_MAX_DEFICIT + 1)
    fraction = deficit & ((1 << _FRACTION_BITS) - 1)
    weights: Counts = np.array(powers).take(fraction) >> (deficit >> _FRACTION_BITS)
    return weights
