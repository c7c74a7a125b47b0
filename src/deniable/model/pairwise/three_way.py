"""Three-way interactions: when they are measured, and between which groups.

Two-way tables show nothing of a dependence that only three columns together have: the parity of
two columns, say. Interactions of all triples are measured if their noise is small compared with
the noisy number of records; otherwise their budget goes to further two-way tables.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from deniable.arrays import Counts, Indices, Reals
from deniable.model.pairwise.one_way import choose_groups, sum_groups
from deniable.privacy import noise_laws
from deniable.privacy.pairwise_budget import (
    MAX_THREE_WAY_GROUPS,
    TARGET_WEIGHT,
    PairNoise,
    interaction_sigmas,
)
from deniable.schema.attribute import Attribute

# Attributes i < j < k.
Triple = tuple[int, int, int]
# Groups are as many as keep the noise of Cramér's φ, over all cells of a triple, below this. With
# more noise than that between three groups (two values are two groups), three-way interactions are
# not measured: noise would hide most of them, and the tables bring more.
_MAX_PHI_NOISE = 0.015
_MIN_GROUPS = 3


@dataclass(frozen=True, kw_only=True)
class ThreeWay:
    """Noisy three-way interactions.

    Attributes:
        groups: The group of each bin, by attribute.
        interactions: Noisy interactions between groups, scaled by the number of cells.
        sigmas: Standard deviation of the noise of each triple's interactions, unscaled.
    """

    groups: tuple[Indices, ...]
    interactions: dict[Triple, Counts]
    sigmas: dict[Triple, float]

    def fits(self, bins: Sequence[int]) -> bool:
        """Test whether the shapes match, given the number of bins of each attribute."""
        sizes = [int(own.max()) + 1 for own in self.groups]
        fits = [len(own) for own in self.groups] == list(bins)
        fits &= list(self.interactions) == list(self.sigmas)
        shapes = {triple: table.shape for triple, table in self.interactions.items()}
        return fits and all(s == tuple(sizes[i] for i in t) for t, s in shapes.items())

    @property
    def mean_square(self) -> float:
        """Mean square of all interactions in units of their noise: more than 1 if there are any.

        It also shows, in an artefact, a change of a number on which no distribution depends.
        """
        numbers = [self.interaction(triple).ravel() / self.sigmas[triple] for triple in self.sigmas]
        return float(np.square(np.concatenate(numbers)).mean())

    def interaction(self, triple: Triple) -> Reals:
        """The noisy centred table between the groups of a triple."""
        noisy: Reals = self.interactions[triple] / self.interactions[triple].size
        return noisy


@dataclass(frozen=True, kw_only=True)
class ThreeWayLayout:
    """Groups of every attribute, and σ of each triple with at least two groups on all sides."""

    groups: tuple[Indices, ...]
    sigmas: Mapping[Triple, float] = field(repr=False)


def choose_three_way(
    attributes: Sequence[Attribute],
    bins: Sequence[Indices],
    shares: Sequence[Reals],
    noise: PairNoise,
    *,
    records: float,
    targets: Sequence[int],
) -> ThreeWayLayout | None:
    """Choose groups for three-way interactions from noisy one-way tables; None not to measure any.

    Post-processing: no cost. The number of groups is the largest for which the noise of φ is small:

        φ noise = √(Π g (g - 1)) σ / records        over all cells, for groups of equal weight

    Args:
        attributes: The domain of each column.
        bins: The bin of each code, by attribute.
        shares: The (noisy) distribution of each attribute's codes.
        noise: The noise of each stage.
        records: The (noisy) number of records.
        targets: Columns whose triples are measured more precisely.
    """
    if not noise.reserved_count:
        return None
    in_bins = [sum_groups(own, share) for own, share in zip(bins, shares, strict=True)]
    for number in range(MAX_THREE_WAY_GROUPS - 1, _MIN_GROUPS - 1, -1):
        most = [number] * len(attributes)
        groups = tuple(map(choose_groups, attributes, in_bins, most))
        sizes = [int(own.max()) + 1 for own in groups]
        sigmas = _sigmas(sizes, noise.mu_three_way, targets)
        if not sigmas:
            return None
        cells = {triple: math.prod(sizes[i] for i in triple) for triple in sigmas}
        largest = max(cells[triple] * sigma for triple, sigma in sigmas.items())
        freedom = [math.prod(sizes[i] * (sizes[i] - 1) for i in triple) for triple in sigmas]
        noises = [math.sqrt(f) * s for f, s in zip(freedom, sigmas.values(), strict=True)]
        is_clear = math.fsum(noises) / len(noises) <= _MAX_PHI_NOISE * records
        if is_clear and noise_laws.gaussian_radius(largest) <= noise_laws.MAX_RADIUS:
            return ThreeWayLayout(groups=groups, sigmas=sigmas)
    return None


def _sigmas(sizes: Sequence[int], mu: float, targets: Sequence[int]) -> dict[Triple, float]:
    """Choose σ of each triple; attributes with a single group have no interactions."""
    triples = list(combinations([i for i, size in enumerate(sizes) if size > 1], 3))
    shapes = [tuple(sizes[i] for i in triple) for triple in triples]
    weights = [TARGET_WEIGHT if set(triple) & set(targets) else 1 for triple in triples]
    return dict(zip(triples, interaction_sigmas(shapes, weights, mu=mu), strict=True))
