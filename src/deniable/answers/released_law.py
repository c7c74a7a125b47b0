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
from deniable.release.generation import GeneratedRecords
from deniable.schema.pair_masks import PairMasks, allowed_codes


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixStart:
    """How records begin: with one of these prefixes, or with values of the model.

    Attributes:
        prefixes: The prefixes, in the order σ; of length 0 if the model draws all values.
        weights: Their probabilities.
    """

    prefixes: Codes = field(repr=False)
    weights: Reals = field(repr=False)

    @property
    def length(self) -> int:
        """The number of attributes in a prefix."""
        return int(self.prefixes.shape[1])


@dataclass(frozen=True, eq=False)
class ReleasedLaw:
    """The distribution of generated records.

    Attributes:
        records: The generated records, whose blocks have this distribution.
        frontiers: Results of ``find_frontier``, by kind of evidence.
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
    def start(self) -> PrefixStart:
        """How records begin."""
        combined = self.records.prefixes
        if combined is None:
            return PrefixStart(prefixes=np.zeros((1, 0), dtype=CODE), weights=np.ones(1))
        weights = combined.weights / combined.weights.sum()
        return PrefixStart(prefixes=combined.prefixes, weights=weights)

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

    def of_prefixes(self, prefixes: Codes) -> Codes:
        """Make records of prefixes: the codes of later attributes are 0."""
        codes = empty_codes(len(prefixes), self.network.attributes)
        codes[:, list(self.order[: prefixes.shape[1]])] = prefixes
        return codes


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
