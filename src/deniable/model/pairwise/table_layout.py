"""Choose what is measured: bins, groups for interactions, and the pairs with two-way tables.

Everything is chosen from noisy one-way tables, or from noisy interactions. Post-processing: no
cost. Interactions of pairs are always measured; those of triples if their noise is small compared
with the noisy number of records. Two-way tables cannot show a dependence that exists only among
three columns together, such as a column that is the parity of two others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.one_way import choose_bins, choose_groups, has_order, sum_groups
from deniable.privacy import noise_laws
from deniable.privacy.pairwise_budget import (
    MAX_THREE_WAY_GROUPS,
    TARGET_WEIGHT,
    PairNoise,
    gaussian_sigma,
    interaction_sigmas,
)
from deniable.schema.attribute import Attribute

# Attributes i < j, and i < j < k.
Pair = tuple[int, int]
Triple = tuple[int, int, int]
# Largest number of groups of a number or an ordered category. Other categories have up to twice as
# many, because they have no similar neighbours to be merged with.
_MAX_ORDERED_GROUPS = 7
# The number of groups is the largest for which the noise of Cramér's φ, over all cells of a pair,
# is below this.
_MAX_PAIR_PHI_NOISE = 0.2
# The same for a triple. Triples are not measured if the noise between three groups (two for an
# attribute with two values) is larger: it would hide most interactions, and two-way tables would
# improve the model more.
_MAX_TRIPLE_PHI_NOISE = 0.015
_MIN_TRIPLE_GROUPS = 3
# The number of pairs with two-way tables is the largest for which the tables' noise is below this
# share of the rows, but at least this many per attribute.
_MAX_TABLE_NOISE_SHARE = 1 / 300
_MIN_PAIRS_PER_ATTRIBUTE = 1.5


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Bins and groups of every attribute, and the noise of the interactions between groups.

    Attributes:
        bins: The bin of each code, by attribute.
        groups: The group of each bin, by attribute.
        interaction_sigmas: σ of each pair with at least two groups on both sides.
    """

    bins: tuple[Indices, ...]
    groups: tuple[Indices, ...]
    interaction_sigmas: Mapping[Pair, float]


def choose_layout(
    attributes: Sequence[Attribute],
    shares: Sequence[Reals],
    noise: PairNoise,
    *,
    records: float,
    targets: Sequence[int],
) -> Layout:
    """Choose bins and groups from noisy one-way tables. Post-processing: no cost.

    The number of groups is the largest for which the noise of φ is small:

        φ noise = (g - 1) g σ / records        for g × g groups of equal weight
    """
    pairs = count_measured_pairs(len(attributes), noise, records=records)
    sigma = gaussian_sigma(noise.tables) * math.sqrt(pairs / max(noise.table_count, 1))
    bins = choose_bins(attributes, shares, records=records, sigma=sigma)
    in_bins = [sum_groups(own, share) for own, share in zip(bins, shares, strict=True)]
    for number in range(_MAX_ORDERED_GROUPS, 1, -1):
        most = [number if has_order(attribute) else 2 * number for attribute in attributes]
        groups = tuple(map(choose_groups, attributes, in_bins, most))
        sigmas = _pair_sigmas(groups, noise.mu_interactions, targets)
        largest = max(sigmas.values(), default=0.0)
        # Noise is scaled by the number of cells, and its table must not be too large. With two
        # groups it never is, or there would be no interactions (``pair_noise``).
        scaled = (2 * number + 1) ** 2 * largest
        fits = noise_laws.gaussian_radius(scaled) <= noise_laws.MAX_RADIUS
        is_clear = (number - 1) * number * largest <= _MAX_PAIR_PHI_NOISE * records
        if number == 2 or (fits and is_clear):
            break
    return Layout(bins=bins, groups=groups, interaction_sigmas=sigmas)


def _pair_sigmas(groups: Sequence[Indices], mu: float, targets: Sequence[int]) -> dict[Pair, float]:
    """Choose σ of each pair; attributes with a single group have no interactions."""
    numbers = [int(own.max()) + 1 for own in groups]
    divided = [i for i, number in enumerate(numbers) if number > 1]
    pairs = list(combinations(divided, 2))
    shapes = [(numbers[i], numbers[j]) for i, j in pairs]
    weights = [TARGET_WEIGHT if {i, j} & set(targets) else 1 for i, j in pairs]
    return dict(zip(pairs, interaction_sigmas(shapes, weights, mu=mu), strict=True))


def count_measured_pairs(attributes: int, noise: PairNoise, *, records: float) -> int:
    """Count the pairs to measure as two-way tables, given the (noisy) number of records.

    pairs = (μ · records / 300)²,  at least 1.5 per attribute
    """
    total = attributes * (attributes - 1) // 2
    if noise.tables.name == "exact":
        return total
    affordable = (
        noise.table_count * (_MAX_TABLE_NOISE_SHARE * records / gaussian_sigma(noise.tables)) ** 2
    )
    minimum = int(_MIN_PAIRS_PER_ATTRIBUTE * attributes)
    return min(total, noise.table_count, max(int(affordable), minimum))


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
    """Choose groups for three-way interactions from noisy one-way tables; None: measure none.

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
    for number in range(MAX_THREE_WAY_GROUPS - 1, _MIN_TRIPLE_GROUPS - 1, -1):
        most = [number] * len(attributes)
        groups = tuple(map(choose_groups, attributes, in_bins, most))
        sizes = [int(own.max()) + 1 for own in groups]
        sigmas = _triple_sigmas(sizes, noise.mu_three_way, targets)
        if not sigmas:
            return None
        cells = {triple: math.prod(sizes[i] for i in triple) for triple in sigmas}
        largest = max(cells[triple] * sigma for triple, sigma in sigmas.items())
        freedom = [math.prod(sizes[i] * (sizes[i] - 1) for i in triple) for triple in sigmas]
        noises = [math.sqrt(f) * s for f, s in zip(freedom, sigmas.values(), strict=True)]
        is_clear = math.fsum(noises) / len(noises) <= _MAX_TRIPLE_PHI_NOISE * records
        if is_clear and noise_laws.gaussian_radius(largest) <= noise_laws.MAX_RADIUS:
            return ThreeWayLayout(groups=groups, sigmas=sigmas)
    return None


def _triple_sigmas(sizes: Sequence[int], mu: float, targets: Sequence[int]) -> dict[Triple, float]:
    """Choose σ of each triple; attributes with a single group have no interactions."""
    triples = list(combinations([i for i, size in enumerate(sizes) if size > 1], 3))
    shapes = [tuple(sizes[i] for i in triple) for triple in triples]
    weights = [TARGET_WEIGHT if set(triple) & set(targets) else 1 for triple in triples]
    return dict(zip(triples, interaction_sigmas(shapes, weights, mu=mu), strict=True))


def apportion(total: int, weights: Mapping[Pair, float]) -> dict[Pair, int]:
    """Divide ``total`` tables among pairs in proportion to their weights; omit pairs without any.

    Largest remainder method: round each share down, then give one more to the largest remainders.
    """
    total_weight = sum(weights.values())
    if not total or not total_weight > 0:
        return {}
    quotas = {pair: total * weight / total_weight for pair, weight in weights.items()}
    shares = {pair: int(quota) for pair, quota in quotas.items()}
    remaining = total - sum(shares.values())
    for pair in sorted(quotas, key=lambda p: (shares[p] - quotas[p], p))[:remaining]:
        shares[pair] += 1
    return {pair: share for pair, share in sorted(shares.items()) if share}
