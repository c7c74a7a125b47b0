"""Make noisy two-way tables consistent; shrink each toward independence according to its noise.

All of it is post-processing of noisy counts. A residual is a table minus the counts expected under
independence, centred; its excess is what remains of the residual after shrinkage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Mask, Reals
from deniable.model.pairwise.measure import (
    Pair,
    PairwiseMeasurements,
    to_distribution,
    value_distributions,
)
from deniable.model.pairwise.one_way import sum_groups
from deniable.schema.attribute import Attribute

# No bin is impossible: its least probability, and its least count in standard deviations of the
# count's noise.
_MIN_BIN_PROBABILITY = 1e-6
_MIN_BIN_SIGMAS = 0.25
# Keeps variances and denominators positive.
_POSITIVE_FLOOR = 1e-6
# The score of a pair that looks independent, so that it may still be measured again.
_MIN_DEPENDENCE_SCORE = 1e-4
# The least count of a cell, relative to independence; and rounds of proportional fitting.
_MIN_CELL_RATIO = 1e-3
_RAKING_ROUNDS = 20
# A singular value is kept if it exceeds the largest one expected of pure noise by this factor.
# Keeping one that is only noise is worse than assuming independence.
_NOISE_EDGE_MARGIN = 1.05
# One attribute nearly determines the other if significant cells hold this share of the records and
# the remaining χ² statistic is within this many standard deviations of its mean under pure noise.
_MIN_DETERMINED_SHARE = 0.8
_MAX_RESIDUAL_SIGMAS = 3.0


@dataclass(frozen=True, kw_only=True)
class DenoisedTables:
    """Consistent one-way distributions and denoised two-way tables.

    Attributes:
        records: The number of records in the two-way tables.
        values: The distribution of each attribute's values.
        bins: The distribution of each attribute's bins.
        excess: For i < j, counts minus those expected under independence; rows and columns sum
            to 0.
        effect_variance: τ: mean square of residual over expected count, minus the part due to
            noise; 0 if there is no effect.
        sigma: Standard deviation of the noise of each pair's counts.
        dependence: Strength of dependence between two attributes: the noise-damped χ² statistic
            per record. Ranks candidate parents.
    """

    records: float
    values: tuple[Reals, ...] = field(repr=False)
    bins: tuple[Reals, ...] = field(repr=False)
    excess: dict[Pair, Reals] = field(repr=False)
    effect_variance: dict[Pair, float] = field(repr=False)
    sigma: dict[Pair, float] = field(repr=False)
    dependence: Reals = field(repr=False)

    def excess_of(self, parent: int, child: int) -> Reals:
        """Return the excess of a pair: rows are the parent's bins, columns the child's."""
        if parent < child:
            return self.excess[parent, child]
        transposed: Reals = self.excess[child, parent].T
        return transposed

    def effect_variance_of(self, one: int, other: int) -> float:
        """Return τ of a pair; 0 if it was not measured."""
        return self.effect_variance.get((min(one, other), max(one, other)), 0.0)

    def sigma_of(self, one: int, other: int) -> float:
        """Return the standard deviation of the noise of a pair's counts."""
        return self.sigma[min(one, other), max(one, other)]


def denoise_tables(
    measured: PairwiseMeasurements, attributes: Sequence[Attribute]
) -> DenoisedTables:
    """Estimate consistent marginals and denoised two-way tables. Post-processing: no cost."""
    records = measured.ratio * measured.records
    tables = {pair: measured.counts(pair) for pair in measured.pairs}
    values, bins = [], []
    marginals = value_distributions(attributes, measured.values, measured.value_sigmas)
    for i, (marginal, groups) in enumerate(zip(marginals, measured.bins, strict=True)):
        share = _consistent_share(i, marginal, measured, tables)
        within_bin = (marginal + 1e-9) / sum_groups(groups, marginal + 1e-9)[groups]
        values.append(within_bin * share[groups])
        bins.append(share)
    residuals = {
        (i, j): double_centre(table - records * np.outer(bins[i], bins[j]))
        for (i, j), (table, _) in tables.items()
    }
    sigma = {pair: pair_sigma for pair, (_, pair_sigma) in tables.items()}
    margins = [records * share for share in bins]
    excess, effect_variance = {}, {}
    dependence = np.zeros((len(bins), len(bins)))
    for (i, j), table in _denoise_pairs(residuals, sigma, margins).items():
        expected = np.outer(margins[i], bins[j])
        effect_variance[i, j] = _effect_variance(residuals[i, j], expected, sigma[i, j])
        excess[i, j] = table - expected
        statistic = float((excess[i, j] ** 2 / (expected + sigma[i, j])).sum()) / records
        dependence[i, j] = dependence[j, i] = statistic
    return DenoisedTables(
        records=records,
        values=tuple(values),
        bins=tuple(bins),
        excess=excess,
        effect_variance=effect_variance,
        sigma=sigma,
        dependence=dependence,
    )


def dependence_scores(
    measured: PairwiseMeasurements, attributes: Sequence[Attribute]
) -> dict[Pair, float]:
    """Score each pair by its denoised distance from independence, as a share of the records.

    Uses the first measurement only. A distance that noise could explain scores almost zero.
    """
    records = measured.ratio * measured.records
    marginals = value_distributions(attributes, measured.values, measured.value_sigmas)
    shares = [sum_groups(groups, p) for groups, p in zip(measured.bins, marginals, strict=True)]
    scores = {}
    for (i, j), table in measured.pairs.items():
        residual = double_centre(table - records * np.outer(shares[i], shares[j]))
        shrunk = shrink_singular_values(residual, measured.pair_sigma)
        by_singular_values = float(np.abs(shrunk).sum()) / 2
        by_cells = float(residual[significant_cells(residual, measured.pair_sigma)].sum())
        scores[i, j] = max(by_singular_values, by_cells) / records
    return {pair: score + _MIN_DEPENDENCE_SCORE for pair, score in scores.items()}


def candidate_parents(tables: DenoisedTables, child: int, among: Sequence[int]) -> list[int]:
    """List the attributes on which ``child`` depends, strongest dependence first."""
    dependent = [j for j in among if tables.effect_variance_of(j, child) > 0]
    return sorted(dependent, key=lambda j: (-tables.dependence[j, child], j))


def _consistent_share(
    i: int,
    marginal: Reals,
    measured: PairwiseMeasurements,
    tables: Mapping[Pair, tuple[Reals, float]],
) -> Reals:
    """Estimate the distribution of attribute i's bins from all tables that contain it.

    The inverse-variance-weighted mean of their margins. The noise of a bin adds up over its values
    in the one-way table, and over the columns of its row in a two-way table.
    """
    groups, records = measured.bins[i], measured.ratio * measured.records
    value_variance = (measured.ratio * measured.value_sigmas[i]) ** 2
    variance = value_variance * np.bincount(groups) + _POSITIVE_FLOOR
    weighted_sum = records * sum_groups(groups, marginal) / variance
    total_weight = 1 / variance
    for (a, b), (table, sigma) in tables.items():
        if i in (a, b):
            rows = table if a == i else table.T
            row_variance = sigma**2 * rows.shape[1] + _POSITIVE_FLOOR
            weighted_sum = weighted_sum + rows.sum(axis=1) / row_variance
            total_weight = total_weight + 1 / row_variance
    # A count of zero may be due to noise, above all in the bin of missing cells: it is never merged
    # with another, however rare it is.
    min_share = np.maximum(_MIN_BIN_SIGMAS / np.sqrt(total_weight) / records, _MIN_BIN_PROBABILITY)
    share = np.maximum(to_distribution(weighted_sum / total_weight, records), min_share)
    consistent: Reals = share / share.sum()
    return consistent


def _denoise_pairs(
    residuals: Mapping[Pair, Reals], sigma: Mapping[Pair, float], margins: Sequence[Reals]
) -> dict[Pair, Reals]:
    """Denoise each pair's table and fit it to its margins."""
    tables = {}
    for (i, j), residual in residuals.items():
        determined = fit_near_deterministic(residual, sigma[i, j], margins[i], margins[j])
        if determined is not None:
            tables[i, j] = determined
    others = {pair: residual for pair, residual in residuals.items() if pair not in tables}
    subspaces = _attribute_subspaces(others, sigma, len(margins))
    for (i, j), residual in others.items():
        denoised = _shrink_residual(residual, subspaces[i], subspaces[j], sigma[i, j])
        expected = np.outer(margins[i], margins[j]) / margins[i].sum()
        tables[i, j] = rake(expected + denoised, margins[i], margins[j])
    return {pair: tables[pair] for pair in residuals}


def _attribute_subspaces(
    residuals: Mapping[Pair, Reals], sigma: Mapping[Pair, float], m: int
) -> list[Reals]:
    """Find, for each attribute, a basis of the directions in which its bins differ.

    Left singular vectors of all its residuals side by side, each in units of its noise, whose
    singular value is too large for pure noise. An effect too weak to show in one table may show
    in many together.
    """
    subspaces = []
    for i in range(m):
        stacked = [
            (table if one == i else table.T) / sigma[one, other]
            for (one, other), table in residuals.items()
            if i in (one, other) and sigma[one, other] > 0
        ]
        if not stacked:
            subspaces.append(np.empty((0, 0)))
            continue
        matrix = np.concatenate(stacked, axis=1)
        left, singular, _ = np.linalg.svd(matrix, full_matrices=False)
        noise_edge = np.sqrt(len(matrix) - 1) + np.sqrt(matrix.shape[1] - len(stacked))
        subspaces.append(left[:, singular > _NOISE_EDGE_MARGIN * noise_edge])
    return subspaces


def _shrink_residual(residual: Reals, left: Reals, right: Reals, sigma: float) -> Reals:
    """Remove the noise from a residual by shrinking singular values.

    The part inside the subspaces of both attributes, a small matrix, is shrunk separately from the
    remainder.
    """
    if not sigma > 0:
        return residual
    projected = left.T @ residual @ right
    remainder = shrink_singular_values(residual - left @ projected @ right.T, sigma)
    if not projected.size:
        return remainder
    common: Reals = left @ shrink_singular_values(projected, sigma, lost_dimensions=0) @ right.T
    return common + remainder


def shrink_singular_values(table: Reals, sigma: float, *, lost_dimensions: int = 1) -> Reals:
    """Denoise a low-rank matrix by optimal singular value shrinkage (Gavish and Donoho, 2017).

    Optimal in squared error for white noise. Singular values that noise alone could cause become 0;
    the others are reduced by the expected contribution of the noise.

    Args:
        table: The matrix.
        sigma: Standard deviation of its noise.
        lost_dimensions: Rows and columns minus degrees of freedom: 1 if rows and columns sum to 0.
    """
    rows, columns = table.shape
    if rows <= lost_dimensions or columns <= lost_dimensions:
        return np.zeros_like(table)
    root_rows, root_columns = np.sqrt(rows - lost_dimensions), np.sqrt(columns - lost_dimensions)
    high, low = (root_rows + root_columns) * sigma, abs(root_rows - root_columns) * sigma
    left, singular, right = np.linalg.svd(table, full_matrices=False)
    squared = np.maximum((singular**2 - high**2) * (singular**2 - low**2), 0.0)
    shrunk = np.sqrt(squared) / np.maximum(singular, 1e-300)
    shrunk = np.where(singular > _NOISE_EDGE_MARGIN * high, shrunk, 0.0)
    result: Reals = (left * shrunk) @ right
    return result


def _effect_variance(residual: Reals, expected: Reals, sigma: float) -> float:
    """Estimate τ: mean square of residual over expected count, minus the part due to noise."""
    rows, columns = residual.shape
    if rows < 2 or columns < 2:
        return 0.0
    noise = (rows - 1) * (columns - 1) * sigma**2
    return max(0.0, float((residual**2).sum() - noise) / float((expected**2).sum()))


def significant_cells(residual: Reals, sigma: float) -> Mask:
    """Mark the cells above √(2 ln n) σ: about the largest of n cells of pure noise."""
    significant: Mask = residual > sigma * np.sqrt(2 * np.log(residual.size))
    return significant


def fit_near_deterministic(
    residual: Reals, sigma: float, rows: Reals, columns: Reals
) -> Reals | None:
    """Fit a table in which one attribute nearly determines the other; None if it does not fit.

    In such a table, few cells hold most records, and noise explains the other cells. It has nearly
    full rank, so singular values do not stand out from the noise, but single cells do.
    """
    significant = significant_cells(residual, sigma)
    expected = np.outer(rows, columns) / rows.sum()
    counts = np.where(significant, residual + expected, 0.0)
    if not sigma > 0 or counts.sum() < _MIN_DETERMINED_SHARE * rows.sum():
        return None
    table = complete_table(counts, rows, columns)
    degrees_of_freedom = (len(rows) - 1) * (len(columns) - 1)
    statistic = float(np.square(residual + expected - table).sum()) / sigma**2
    spread = _MAX_RESIDUAL_SIGMAS * np.sqrt(2 * degrees_of_freedom)
    return table if statistic < degrees_of_freedom + spread else None


def complete_table(fixed: Reals, rows: Reals, columns: Reals) -> Reals:
    """Complete a table to these margins, keeping its positive cells, or reducing them if needed.

    The remaining counts are spread over the zero cells as if rows and columns were independent
    there.
    """
    kept = fixed * np.minimum(1.0, rows / np.maximum(fixed.sum(axis=1), _POSITIVE_FLOOR))[:, None]
    kept *= np.minimum(1.0, columns / np.maximum(kept.sum(axis=0), _POSITIVE_FLOOR))
    remaining = rows - kept.sum(axis=1), columns - kept.sum(axis=0)
    others = np.where(fixed > 0, _POSITIVE_FLOOR, np.outer(rows, columns) / rows.sum())
    for _ in range(_RAKING_ROUNDS):
        others *= (remaining[0] / np.maximum(others.sum(axis=1), _POSITIVE_FLOOR))[:, None]
        others *= remaining[1] / np.maximum(others.sum(axis=0), _POSITIVE_FLOOR)
    return rake(kept + others, rows, columns)


def rake(table: Reals, rows: Reals, columns: Reals) -> Reals:
    """Fit a table to these margins by iterative proportional fitting; all cells become positive."""
    fitted: Reals = np.maximum(table, _MIN_CELL_RATIO * np.outer(rows, columns) / rows.sum() + 1e-9)
    for _ in range(_RAKING_ROUNDS):
        fitted *= (rows / fitted.sum(axis=1))[:, None]
        fitted *= columns / fitted.sum(axis=0)
    return fitted


def double_centre(table: Reals) -> Reals:
    """Subtract row and column means, so that all rows and columns sum to zero.

    The noise in the margins goes with them: margins are estimated from all tables together.
    """
    rows = table - table.mean(axis=1, keepdims=True)
    centred: Reals = rows - rows.mean(axis=0, keepdims=True)
    return centred
