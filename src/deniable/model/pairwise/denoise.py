"""Make noisy two-way tables and interactions consistent; remove what is only noise.

All of it is post-processing of noisy counts. A residual is a table minus the counts expected under
independence, centred; its excess is what remains of the residual after denoising. Interactions
between groups are combined with the two-way tables of the pairs that have any.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from deniable.arrays import Reals
from deniable.model.pairwise.bin_masks import BinMasks
from deniable.model.pairwise.coarse_residual import CoarseResidual, coarse_residuals
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import sum_groups, to_distribution, value_distributions
from deniable.model.pairwise.shrinkage import (
    damped_statistic,
    denoise_residuals,
    double_centre,
    limit_hidden_cells,
    mean_effect_variance,
)
from deniable.model.pairwise.table_layout import Pair, count_measured_pairs
from deniable.model.pairwise.trends import VisibleTrends
from deniable.privacy.pairwise_budget import TARGET_WEIGHT, PairNoise
from deniable.schema.attribute import Attribute
from deniable.schema.pair_masks import NO_MASKS, PairMasks

# No bin is impossible: its least probability, and its least count in standard deviations of the
# count's noise.
_MIN_BIN_PROBABILITY = 1e-6
_MIN_BIN_SIGMAS = 0.25
# Keeps variances and denominators positive.
_POSITIVE_FLOOR = 1e-6
# μ of all one-way tables together at ε = 1, δ = 1e-9 and the default shares of the budget.
_REFERENCE_MU = 0.1
# The weight of a pair that looks independent, so that it may still be measured.
_MIN_TABLE_WEIGHT = 1e-4


@dataclass(frozen=True, kw_only=True)
class DenoisedTables:
    """Consistent one-way distributions and denoised two-way tables.

    Attributes:
        records: The number of records in the two-way tables.
        values: The distribution of each attribute's values.
        bins: The distribution of each attribute's bins.
        excess: For pairs i < j with a two-way table, counts minus those expected under
            independence; rows and columns sum to 0.
        coarse: For the other pairs, the residual between groups.
        effect_variance: τ: mean square of residual over expected count, minus the part due to
            noise; 0 if there is no effect.
        sigma: Standard deviation of the noise that is left in each pair's counts.
        dependence: Strength of dependence between two attributes: the noise-damped χ² statistic
            per record. Ranks candidate parents.
        relative_noise: The noise of the one-way tables, relative to that at ε = 1; at least 1.
        trends: The trends that stand out.
        masks: What the constraints allow between bins.
    """

    records: float
    values: tuple[Reals, ...] = field(repr=False)
    bins: tuple[Reals, ...] = field(repr=False)
    excess: dict[Pair, Reals] = field(repr=False)
    effect_variance: dict[Pair, float] = field(repr=False)
    sigma: dict[Pair, float] = field(repr=False)
    dependence: Reals = field(repr=False)
    coarse: dict[Pair, CoarseResidual] = field(repr=False)
    relative_noise: float
    trends: VisibleTrends = field(repr=False)
    masks: BinMasks = field(repr=False)

    def excess_of(self, parent: int, child: int) -> Reals:
        """Return the excess of a pair: rows are the parent's bins, columns the child's."""
        i, j = min(parent, child), max(parent, child)
        excess = self.excess.get((i, j))
        if excess is None:
            # Computed on demand: a thousand columns have half a million pairs.
            margins = self.records * self.bins[i], self.records * self.bins[j]
            table = self.coarse[i, j].refine(self.masks.independent((i, j), *margins))
            excess = self.masks.limit((i, j), table) - np.outer(margins[0], self.bins[j])
        return excess if parent < child else excess.T

    def effect_variance_of(self, one: int, other: int) -> float:
        """Return τ of a pair; 0 if it was not measured."""
        return self.effect_variance.get((min(one, other), max(one, other)), 0.0)

    def sigma_of(self, one: int, other: int) -> float:
        """Return the standard deviation of the noise that is left in a pair's counts."""
        return self.sigma[min(one, other), max(one, other)]


def denoise_tables(
    measured: PairwiseMeasurements, attributes: Sequence[Attribute], masks: PairMasks = NO_MASKS
) -> DenoisedTables:
    """Estimate consistent marginals and denoised two-way tables. Post-processing: no cost."""
    records = measured.records
    tables = {pair: measured.table(pair) for pair in measured.tables}
    values, bins = _consistent_shares(measured, attributes, tables)
    bin_masks = BinMasks.of(masks, measured.bins, values)
    margins = [records * share for share in bins]
    residuals = _residuals_of(tables, margins)
    sigma = {pair: own for pair, (_, own) in tables.items()}
    coarse = coarse_residuals(measured, attributes, margins, residuals, sigma)
    denoised = _denoise_together(residuals, sigma, margins, coarse, bin_masks)
    excess, effect_variance, remaining = {}, {}, dict(sigma)
    dependence = np.zeros((len(bins), len(bins)))
    for i, j in denoised:
        expected: Reals = np.outer(margins[i], bins[j])
        effect_variance[i, j] = mean_effect_variance(residuals[i, j], expected, sigma[i, j])
        if (i, j) in coarse:
            effect_variance[i, j] = max(effect_variance[i, j], coarse[i, j].effect_variance)
            remaining[i, j] = coarse[i, j].sigma_left(sigma[i, j])
        excess[i, j] = denoised[i, j] - expected
        dependence[i, j] = damped_statistic(excess[i, j], expected, sigma[i, j]) / records
    only_coarse = {pair: each for pair, each in coarse.items() if pair not in denoised}
    for (i, j), each in only_coarse.items():
        effect_variance[i, j], remaining[i, j] = each.effect_variance, each.sigma_of_bins
        dependence[i, j] = damped_statistic(each.residual, each.expected, each.sigma) / records
    return DenoisedTables(
        records=records,
        values=tuple(values),
        bins=tuple(bins),
        masks=bin_masks,
        excess=excess,
        effect_variance=effect_variance,
        sigma=remaining,
        dependence=dependence + dependence.T,
        coarse=only_coarse,
        relative_noise=_relative_noise(measured),
        trends=VisibleTrends.of(attributes, bins, {p: each.trends for p, each in coarse.items()}),
    )


def _residuals_of(
    tables: Mapping[Pair, tuple[Reals, float]], margins: Sequence[Reals]
) -> dict[Pair, Reals]:
    """Subtract from two-way tables the counts expected under independence; centre the rest."""
    return {
        (i, j): double_centre(table - np.outer(margins[i], margins[j]) / margins[i].sum())
        for (i, j), (table, _) in tables.items()
    }


def _relative_noise(measured: PairwiseMeasurements) -> float:
    """Compare the noise of the one-way tables with that at ε = 1; 1 if it is less, or none."""
    mu = math.sqrt(math.fsum(1 / sigma**2 for sigma in measured.value_sigmas if sigma))
    return max(1.0, _REFERENCE_MU / mu) if mu else 1.0


def table_weights(
    measured: PairwiseMeasurements,
    attributes: Sequence[Attribute],
    noise: PairNoise,
    *,
    targets: Sequence[int],
) -> dict[Pair, float]:
    """Choose the pairs to measure as two-way tables, and their weights. Post-processing: no cost.

    A weight is the pair's distance from independence between groups, less what noise explains, as
    a share of the records. Without noise, all pairs have the same.
    """
    if not measured.interactions:
        return dict.fromkeys(combinations(range(len(attributes)), 2), 1.0)
    records = measured.records
    marginals = value_distributions(attributes, measured.values, measured.value_sigmas)
    shares = [sum_groups(groups, p) for groups, p in zip(measured.bins, marginals, strict=True)]
    margins = [records * share for share in shares]
    coarse = coarse_residuals(measured, attributes, margins, {}, {})
    weights = {
        pair: math.sqrt(max(table.signal, 0.0)) * table.residual.size / records
        for pair, table in coarse.items()
    }
    for pair in weights:
        weights[pair] *= TARGET_WEIGHT if set(pair) & set(targets) else 1
    number = count_measured_pairs(len(attributes), noise, records=records)
    strongest = sorted(weights, key=lambda pair: (-weights[pair], pair))[:number]
    return {pair: weights[pair] + _MIN_TABLE_WEIGHT for pair in sorted(strongest)}


def candidate_parents(tables: DenoisedTables, child: int, among: Sequence[int]) -> list[int]:
    """List the attributes on which ``child`` depends, strongest dependence first."""
    dependent = [j for j in among if tables.effect_variance_of(j, child) > 0]
    return sorted(dependent, key=lambda j: (-tables.dependence[j, child], j))


def _consistent_shares(
    measured: PairwiseMeasurements,
    attributes: Sequence[Attribute],
    tables: Mapping[Pair, tuple[Reals, float]],
) -> tuple[list[Reals], list[Reals]]:
    """Estimate the distributions of values and of bins from all tables that contain an attribute.

    The inverse-variance-weighted mean of their margins. The noise of a bin adds up over its values
    in the one-way table, and over the columns of its row in a two-way table.
    """
    records = measured.records
    marginals = value_distributions(attributes, measured.values, measured.value_sigmas)
    sums, weights = [], []
    for marginal, groups, sigma in zip(
        marginals, measured.bins, measured.value_sigmas, strict=True
    ):
        variance = sigma**2 * np.bincount(groups) + _POSITIVE_FLOOR
        sums.append(records * sum_groups(groups, marginal) / variance)
        weights.append(1 / variance)
    for pair, (table, sigma) in tables.items():
        for axis, i in enumerate(pair):
            weight = 1 / (sigma**2 * table.shape[1 - axis] + _POSITIVE_FLOOR)
            sums[i] += table.sum(axis=1 - axis) * weight
            weights[i] += weight
    values, bins = [], []
    for marginal, groups, total, weight in zip(
        marginals, measured.bins, sums, weights, strict=True
    ):
        # A count of zero may be due to noise, above all in the bin of missing cells: it is never
        # merged with another, however rare it is.
        min_share = np.maximum(_MIN_BIN_SIGMAS / np.sqrt(weight) / records, _MIN_BIN_PROBABILITY)
        share = np.maximum(to_distribution(total / weight, records), min_share)
        share /= share.sum()
        within_bin = (marginal + 1e-9) / sum_groups(groups, marginal + 1e-9)[groups]
        values.append(within_bin * share[groups])
        bins.append(share)
    return values, bins


def _denoise_together(
    residuals: Mapping[Pair, Reals],
    sigma: Mapping[Pair, float],
    margins: Sequence[Reals],
    coarse: Mapping[Pair, CoarseResidual],
    masks: BinMasks,
) -> dict[Pair, Reals]:
    """Denoise two-way tables, with their interactions.

    Tables and interactions are combined, then denoised. Cells that noise hides are limited to what
    the others leave. Where the result still differs from the combined counts between groups, these
    prevail, less the part that noise explains. Last, counts are limited to what the masks leave.
    """
    combined = {
        pair: coarse[pair].adjust(residual) if pair in coarse else residual
        for pair, residual in residuals.items()
    }
    denoised = denoise_residuals(combined, sigma, margins)
    for (i, j), table in denoised.items():
        expected = np.outer(margins[i], margins[j]) / margins[i].sum()
        counts = expected + combined[i, j]
        found = limit_hidden_cells(table, counts, expected, sigma[i, j])
        if (i, j) in coarse:
            found = coarse[i, j].shrink_toward(found).refine(found)
        denoised[i, j] = masks.limit((i, j), found)
    return denoised
