"""Pool of synthetic records that a network is fitted with, drawn from the network so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.arrays import Codes, HalfWords, Indices, Reals
from deniable.model.alias_sampling import random_permutation, stable_sort_by, stratified_words
from deniable.model.pairwise.bin_masks import AllowedPieces, BinMasks
from deniable.model.pairwise.loglinear import LogLinear, softmax
from deniable.randomness import Keyed, Rng

# The key is public, so the fitted distributions are a function of the noisy counts.
_POOL_KEY = 2
# Records drawn from the model while it is fitted, fewer if there are many attributes.
_POOL_RECORDS = 2**14
_POOL_RECORDS_OF_WIDE_TABLE = 2**12
_MAX_ATTRIBUTES_FOR_LARGE_POOL = 60
# Configurations are numbered by 64-bit integers up to this many; beyond, hardly any two records of
# the pool share one.
_MAX_NUMBERED_CONFIGURATIONS = 2**40


def is_wide(attributes: int) -> bool:
    """Whether a table has many attributes: its pool has fewer records, and its fits fewer steps."""
    return attributes > _MAX_ATTRIBUTES_FOR_LARGE_POOL


def pool_records(attributes: int) -> int:
    """The number of records that are drawn from the model while it is fitted."""
    return _POOL_RECORDS_OF_WIDE_TABLE if is_wide(attributes) else _POOL_RECORDS


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
        pieces: The piece of the bin, by which the constraints allow values of later attributes.
        similarity: An order of the records in which neighbours have similar bins.
        rng: The random stream of the draws.
    """

    bins: Indices
    pieces: Indices
    similarity: Indices
    rng: Rng

    @classmethod
    def empty(cls, records: int, attributes: int) -> Self:
        """Make a pool in which no attribute is drawn yet."""
        rng = Keyed(_POOL_KEY).at("parameters")
        bins = np.zeros((records, attributes), dtype=np.intp, order="F")
        order = random_permutation(records, rng)
        return cls(bins=bins, pieces=bins.copy(), similarity=order, rng=rng)

    def take_prefixes(self, prefixes: Codes, order: Sequence[int], masks: BinMasks) -> None:
        """Replace the first attributes in drawing order by given prefixes."""
        for at, j in enumerate(order[: prefixes.shape[1]]):
            own = masks.pieces[j]
            self._set(j, own.of_code[prefixes[:, at]], own.bins)

    def draw(self, i: int, distributions: Reals, index: Indices, bins: Indices) -> None:
        """Draw an attribute.

        Args:
            i: The attribute.
            distributions: Distinct distributions of the pieces of its bins.
            index: The index of each record's distribution.
            bins: The bin of each piece.
        """
        words = stratified_words(index, self.similarity, self.rng)
        self._set(i, _invert(distributions, index, words), bins)

    def _set(self, i: int, pieces: Indices, bins: Indices) -> None:
        self.pieces[:, i], self.bins[:, i] = pieces, bins[pieces]
        self.similarity = stable_sort_by(self.bins[:, i], self.similarity)

    def configurations(self, parents: Sequence[Parent], allowed: AllowedPieces) -> "Configurations":
        """Find the distinct configurations of an attribute's parents, and of what is allowed.

        With very many possible configurations, each record is its own.
        """
        groups = [parent.groups[self.bins[:, parent.attribute]] for parent in parents]
        sizes = [parent.group_count for parent in parents]
        groups.append(allowed.classes)
        sizes.append(len(allowed.allowed))
        first = index = np.arange(len(self.bins))
        repeats = np.ones(len(index), dtype=np.intp)
        if math.prod(sizes) <= _MAX_NUMBERED_CONFIGURATIONS:
            numbers = np.ravel_multi_index(tuple(groups), sizes)
            _, first, index, repeats = np.unique(
                numbers, return_index=True, return_inverse=True, return_counts=True
            )
            groups = [group[first] for group in groups]
        return Configurations(groups[:-1], groups[-1], repeats, index)


@dataclass(frozen=True)
class Configurations:
    """Distinct configurations of an attribute's parents, and of what the constraints allow.

    Attributes:
        groups: The groups of each parent in each configuration.
        classes: The class of the pieces that are allowed.
        repeats: The number of their records.
        index: The configuration of each record.
    """

    groups: list[Indices]
    classes: Indices
    repeats: Indices
    index: Indices


def fitted_distributions(fitted: LogLinear, found: Configurations, allowed: AllowedPieces) -> Reals:
    """Compute the distribution of an attribute's pieces that a model has in each configuration."""
    return allowed.restrict(softmax(fitted.logits(found.groups)), found.classes)


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
