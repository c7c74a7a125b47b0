"""Released law: the distribution of an artefact's encoded records, as sums and products.

The first attributes of a record, in the order σ, are a kept prefix or are drawn from the model; the
others are drawn from the model. Given its earlier values, a value has the model's distribution
among those that the pair masks allow. Records that violate other constraints are drawn again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from deniable.arrays import CODE, Codes, Indices, Mask, Reals
from deniable.model.bayesian_network import Network, empty_codes
from deniable.release.generation import MAX_PREFIX_REDRAWS, GeneratedRecords
from deniable.release.seed_histogram import KeptPrefixes
from deniable.schema.pair_masks import PairMasks, allowed_codes

# Kept prefixes whose probabilities under the model are computed at once.
_PREFIXES_PER_BATCH = 2**14


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixStart:
    """How some records begin: with one of these prefixes, or with values of the model.

    Attributes:
        share: The probability that a record begins in this way.
        prefixes: The prefixes, in the order σ; of length 0 if the model draws all values.
        weights: Their probabilities.
        excluded: Kept prefixes that the model draws again if it draws them; None: none.
    """

    share: float
    prefixes: Codes = field(repr=False)
    weights: Reals = field(repr=False)
    excluded: KeptPrefixes | None = None

    @property
    def length(self) -> int:
        """The number of attributes in a prefix."""
        return int(self.prefixes.shape[1])


@dataclass(frozen=True, eq=False)
class ReleasedLaw:
    """The distribution of generated records.

    Attributes:
        records: The generated records, whose blocks have this distribution.
        frontiers: Results of ``find_frontiers``, by kind of evidence.
    """

    records: GeneratedRecords = field(repr=False)
    frontiers: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def network(self) -> Network:
        """The distribution of drawn attributes."""
        return self.records.network

    @property
    def order(self) -> tuple[int, ...]:
        """σ: attributes in the order they are drawn."""
        return self.network.order

    @property
    def pair_masks(self) -> PairMasks:
        """The combinations of two attributes' codes that the constraints allow."""
        return self.records.pair_masks

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(attribute.size for attribute in self.network.attributes)

    @cached_property
    def starts(self) -> tuple[PrefixStart, ...]:
        """How records begin; the shares sum to 1."""
        kept, combined = self.records.histogram, self.records.prefixes
        if kept is None:
            return (_model_start(1.0),)
        if combined is not None:
            weights = combined.weights / combined.weights.sum()
            return (PrefixStart(share=1.0, prefixes=combined.prefixes, weights=weights),)
        if not len(kept.prefixes):
            return (_model_start(1.0),)
        counted = int(kept.counts.sum())
        held = counted / max(kept.records, counted)
        start = PrefixStart(share=held, prefixes=kept.prefixes, weights=kept.counts / counted)
        return (start, _model_start(1 - held, excluded=kept)) if held < 1 else (start,)

    def distribution(self, codes: Codes, position: int) -> Reals:
        """Compute Pr{value at ``position`` of σ | earlier values}: records by codes.

        A row is 0 where the pair masks allow no value.
        """
        i, masked = self.order[position], self.masked_with(position)
        allowed = allowed_codes(codes, i, masked, self.pair_masks) if masked else None
        return self.network.distribution(codes, i, allowed)

    def allowed_by(self, codes: Codes, position: int, given: Collection[int]) -> Mask | None:
        """Mark the values at ``position`` of σ that the pair masks allow with later given codes.

        Records by codes; None if no mask applies. Other values have probability 0 in the end.
        """
        i, found = self.order[position], None
        for j in self.order[position + 1 :]:
            mask = self.pair_masks.get((i, j) if i < j else (j, i))
            if j in given and mask is not None:
                own = (mask.T if i < j else mask)[codes[:, j]]
                found = own if found is None else found & own
        return found

    def masked_with(self, position: int) -> list[int]:
        """List the earlier attributes that share a pair mask with the one at ``position``."""
        return self.records.masked_with(position)

    def exclusion(self, kept: KeptPrefixes, codes: Codes) -> Reals:
        """Compute how redrawing kept prefixes changes the probability of each record's prefix.

        The model draws a prefix at most n times, until it is not a kept one. With probability q of
        a kept prefix, others get (1 - q^n) / (1 - q) times their probability, and kept ones, which
        the last draw may leave, q^(n - 1) times.
        """
        q, n = self._kept_probability(kept), MAX_PREFIX_REDRAWS
        others = (1 - q**n) / (1 - q) if q < 1 else float(n)
        held = kept.holds(codes[:, list(self.order[: kept.length])])
        return np.where(held, q ** (n - 1), others)

    def _kept_probability(self, kept: KeptPrefixes) -> float:
        if kept.length not in self._kept_probabilities:
            parts = np.array_split(kept.prefixes, -(-len(kept.prefixes) // _PREFIXES_PER_BATCH))
            total = sum(float(self.prefix_probability(part).sum()) for part in parts)
            self._kept_probabilities[kept.length] = min(total, 1.0)
        return self._kept_probabilities[kept.length]

    @cached_property
    def _kept_probabilities(self) -> dict[int, float]:
        return {}

    def prefix_probability(self, prefixes: Codes) -> Reals:
        """Compute the model's probability of each prefix, in the order σ."""
        columns = self.order[: prefixes.shape[1]]
        codes = self.of_prefixes(prefixes)
        probability = np.ones(len(prefixes))
        rows = np.arange(len(prefixes))
        for position, i in enumerate(columns):
            probability *= self.distribution(codes, position)[rows, codes[:, i]]
        return probability

    def of_prefixes(self, prefixes: Codes) -> Codes:
        """Make records of prefixes: the codes of later attributes are 0."""
        codes = empty_codes(len(prefixes), self.network.attributes)
        codes[:, list(self.order[: prefixes.shape[1]])] = prefixes
        return codes


def _model_start(share: float, excluded: KeptPrefixes | None = None) -> PrefixStart:
    return PrefixStart(
        share=share,
        prefixes=np.zeros((1, 0), dtype=CODE),
        weights=np.ones(1),
        excluded=excluded,
    )


def joint_index(columns: Sequence[Indices], sizes: Sequence[int]) -> Indices:
    """Number the combinations of several columns of small integers, ascending.

    Numbers are made dense where they would overflow.
    """
    index, span = columns[0].astype(np.int64), sizes[0]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if span * size >= 2**62:
            distinct, index = np.unique(index, return_inverse=True)
            span = len(distinct)
        index = index * size + column
        span *= size
    return index
