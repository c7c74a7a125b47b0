"""Pool of synthetic records that a network is fitted with, drawn from the network so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.arrays import Codes, HalfWords, Indices, Reals
from deniable.model.alias_sampling import random_permutation, stable_sort_by, stratified_words
from deniable.model.bayesian_network import Network
from deniable.model.pairwise.loglinear import LogLinear, softmax
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import sum_row_groups
from deniable.randomness import Keyed, Rng

# The key is public, so the fitted distributions are a function of the noisy counts.
_POOL_KEY = 2
# Configurations are numbered by 64-bit integers up to this many; beyond, hardly any two records of
# the pool share one.
_MAX_NUMBERED_CONFIGURATIONS = 2**40


@dataclass(frozen=True, kw_only=True)
class Parent:
    """A parent of one attribute: its index, the group of each of its bins, and their number."""

    attribute: int
    groups: Indices
    group_count: int


@dataclass(kw_only=True)
class RecordPool:
    """Synthetic records, drawn one attribute after the other.

    Attributes:
        bins: The bin of each record and attribute; 0 before it is drawn.
        similarity: An order of the records in which neighbours have similar bins.
        rng: The random stream of the draws.
    """

    bins: Indices
    similarity: Indices
    rng: Rng

    @classmethod
    def empty(cls, records: int, attributes: int) -> Self:
        """Make a pool in which no attribute is drawn yet."""
        rng = Keyed(_POOL_KEY).at("parameters")
        bins = np.zeros((records, attributes), dtype=np.intp, order="F")
        return cls(bins=bins, similarity=random_permutation(records, rng), rng=rng)

    def take_prefixes(
        self, prefixes: Codes, order: Sequence[int], measured: PairwiseMeasurements
    ) -> None:
        """Replace the first attributes in drawing order by given prefixes."""
        for at, j in enumerate(order[: prefixes.shape[1]]):
            self.bins[:, j] = measured.bins[j][prefixes[:, at]]
            self.similarity = stable_sort_by(self.bins[:, j], self.similarity)

    def draw(self, i: int, distributions: Reals, index: Indices) -> None:
        """Draw an attribute, given distinct distributions and the index of each record's."""
        words = stratified_words(index, self.similarity, self.rng)
        self.bins[:, i] = _invert(distributions, index, words)
        self.similarity = stable_sort_by(self.bins[:, i], self.similarity)

    def distributions(self, fitted: LogLinear, parents: Sequence[Parent]) -> tuple[Reals, Indices]:
        """Compute an attribute's distinct distributions, and the index of each record's."""
        if not parents:
            return softmax(fitted.base[None, :]), np.zeros(len(self.bins), dtype=np.intp)
        configurations, _, index = self.configurations(parents)
        return softmax(fitted.logits(configurations)), index

    def configurations(self, parents: Sequence[Parent]) -> tuple[list[Indices], Indices, Indices]:
        """Find the distinct configurations of an attribute's parents.

        Returns:
            The groups of each parent in each of them, the number of their records, and the
            configuration of each record. With very many possible configurations, each record is
            its own.
        """
        groups = [parent.groups[self.bins[:, parent.attribute]] for parent in parents]
        sizes = [parent.group_count for parent in parents]
        if math.prod(sizes) > _MAX_NUMBERED_CONFIGURATIONS:
            every = np.arange(len(self.bins))
            return groups, np.ones(len(every), dtype=np.intp), every
        numbers = np.ravel_multi_index(tuple(groups), sizes)
        _, first, index, repeats = np.unique(
            numbers, return_index=True, return_inverse=True, return_counts=True
        )
        return [group[first] for group in groups], repeats, index


def given_distributions(
    given: Network, measured: PairwiseMeasurements, pool: RecordPool, index: Indices, child: int
) -> Reals:
    """Compute the distributions of a child's bins that a network has for the records of a pool.

    Args:
        given: The network.
        measured: The noisy counts.
        pool: The records.
        index: The index of each record's distribution; one is computed for each index.
        child: The attribute.
    """
    records = pool.bins[np.unique(index, return_index=True)[1]]
    # A code of each bin: the groups of a network's parents are unions of bins.
    codes = np.empty(records.shape, dtype=np.uint16, order="F")
    for j, bins in enumerate(measured.bins):
        codes[:, j] = np.flatnonzero(np.diff(bins, prepend=-1))[records[:, j]]
    by_value = np.exp(given.log_distribution(codes, child))
    return sum_row_groups(measured.bins[child], by_value.T).T


def _invert(distributions: Reals, index: Indices, words: HalfWords) -> Indices:
    """Draw from the distribution of each record, by inversion of its word."""
    cumulative = np.cumsum(distributions, axis=1)
    cumulative /= cumulative[:, -1:]
    bins = cumulative.shape[1]
    # One search for all: distribution number n covers the interval from n to n + 1.
    ends = (cumulative + np.arange(len(cumulative))[:, None]).ravel()
    position = np.searchsorted(ends, index + words * 2.0**-32, side="right") - index * bins
    drawn: Indices = np.clip(position, 0, bins - 1)
    return drawn
