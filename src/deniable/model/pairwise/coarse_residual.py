"""Residuals of pairs between groups of values, from interactions and two-way tables.

All of it is post-processing of noisy counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.group_interpolation import (
    interpolation_weights,
    scale_between_groups,
)
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import sum_blocks, sum_groups
from deniable.model.pairwise.shrinkage import (
    MIN_CELL_RATIO,
    double_centre,
    limit_hidden_cells,
    rake,
)
from deniable.model.pairwise.table_layout import Pair
from deniable.model.pairwise.trends import TrendDirections, group_direction, rank_scores
from deniable.schema.attribute import Attribute

# Keeps denominators positive.
_POSITIVE_FLOOR = 1e-6
# A cell is empty if independence expects at least this many standard deviations of its noise, and
# at most this many were counted.
_MIN_EXPECTED_SIGMAS = 3.0
_MAX_EMPTY_SIGMAS = 1.0
# Where interactions differ from the denoised two-way table, this share of James and Stein's
# shrinkage is applied. All of it is best for the distance from the truth, none for weak relations.
# Trends that stand out are not shrunk.
_SHRINKAGE_SHARE = 0.5
# The share of a two-way table's σ that denoising leaves, besides that of its sums between groups.
_TABLE_NOISE_LEFT = 0.3


@dataclass(frozen=True, kw_only=True)
class CoarseResidual:
    """Residual of a pair between groups, estimated from interactions and its two-way table.

    Attributes:
        residual: Counts minus those expected under independence; rows and columns sum to 0.
        expected: The counts expected under independence.
        sigma: Standard deviation of the noise of a cell, before centring.
        rows: The group of each bin of the first attribute.
        columns: The group of each bin of the second attribute.
        trends: The directions of the trends that stand out.
        weights: How the rows and the columns are interpolated between groups; None: not at all.
    """

    residual: Reals
    expected: Reals
    sigma: float
    rows: Indices
    columns: Indices
    trends: TrendDirections = field(default_factory=TrendDirections)
    weights: tuple[Reals | None, Reals | None] = field(default=(None, None), repr=False)

    @property
    def signal(self) -> float:
        """Mean squared residual of a cell, less the part due to noise; may be negative."""
        a, b = self.residual.shape
        noise: float = (1 - 1 / a) * (1 - 1 / b) * self.sigma**2
        return float(np.square(self.residual).mean()) - noise

    @property
    def effect_variance(self) -> float:
        """τ, as in ``DenoisedTables``."""
        return max(self.signal, 0.0) / float((self.expected**2).mean())

    @property
    def sigma_of_bins(self) -> float:
        """Standard deviation of a cell between bins, if noise is divided evenly in a group."""
        bins_per_cell = len(self.rows) * len(self.columns) / self.residual.size
        return self.sigma / math.sqrt(max(bins_per_cell, 1.0))

    def sigma_left(self, sigma: float) -> float:
        """Standard deviation that denoising leaves of the noise σ of a two-way table."""
        return min(sigma, math.hypot(self.sigma_of_bins, _TABLE_NOISE_LEFT * sigma))

    def adjust(self, residual: Reals) -> Reals:
        """Move a residual between bins, evenly in a group, so that its sums are this residual."""
        cells = np.outer(np.bincount(self.rows), np.bincount(self.columns))
        moved = (self.residual - sum_blocks(self.rows, self.columns, residual)) / cells
        return double_centre(residual + moved[self.rows][:, self.columns])

    def shrink_toward(self, table: Reals) -> "CoarseResidual":
        """Shrink the difference from a denoised table between bins by what noise explains of it.

        James and Stein's estimate, with a share s of its shrinkage; positive part, of d dimensions:

            table + trends + max(0, 1 - s (d - 2) σ² / ‖others‖²) others

        where trends that stand out and all others are the parts of the difference.
        """
        between = sum_blocks(self.rows, self.columns, table) - self.expected
        trends = self.trends.project(self.residual - between)
        others = self.residual - between - trends
        a, b = others.shape
        dimensions = (a - 1) * (b - 1) - self.trends.count_dimensions(others.shape)
        noise = _SHRINKAGE_SHARE * max(dimensions - 2, 0) * self.sigma**2
        kept = max(0.0, 1 - noise / max(float(np.square(others).sum()), _POSITIVE_FLOOR))
        return replace(self, residual=between + trends + kept * others)

    def refine(self, table: Reals) -> Reals:
        """Scale a table between bins so that its sums between groups have about this residual."""
        target = self.expected + self.residual
        empty = (self.expected >= _MIN_EXPECTED_SIGMAS * self.sigma) & (
            target <= _MAX_EMPTY_SIGMAS * self.sigma
        )
        target = np.maximum(np.where(empty, 0.0, target), MIN_CELL_RATIO * self.expected)
        target = rake(target, self.expected.sum(axis=1), self.expected.sum(axis=0))
        counts = self.expected + self.residual
        target = limit_hidden_cells(target, counts, self.expected, self.sigma)
        return scale_between_groups(table, target, (self.rows, self.columns), self.weights)


def coarse_residuals(
    measured: PairwiseMeasurements,
    attributes: Sequence[Attribute],
    margins: Sequence[Reals],
    residuals: Mapping[Pair, Reals],
    sigma: Mapping[Pair, float],
) -> dict[Pair, CoarseResidual]:
    """Estimate the residual of each pair between groups, weighted by inverse variance.

    Args:
        measured: The noisy counts.
        attributes: The domain of each column.
        margins: The count of each bin, by attribute.
        residuals: The residuals between bins of the pairs that have two-way tables.
        sigma: Standard deviation of the noise of those.
    """
    found = {}
    scores = map(rank_scores, attributes, margins)
    directions = list(map(group_direction, scores, margins, measured.groups))
    in_groups = [sum_groups(own, m) for own, m in zip(measured.groups, margins, strict=True)]
    weights = list(map(interpolation_weights, attributes, margins, measured.groups))
    for (i, j), own_sigma in measured.interaction_sigmas.items():
        rows, columns = measured.groups[i], measured.groups[j]
        expected = np.outer(in_groups[i], in_groups[j]) / in_groups[i].sum()
        residual = double_centre(measured.interaction((i, j)) - expected)
        variance = own_sigma**2
        if (i, j) in residuals:
            summed = double_centre(sum_blocks(rows, columns, residuals[i, j]))
            cells = len(rows) * len(columns) / residual.size
            weight, other = 1 / variance, 1 / (cells * sigma[i, j] ** 2)
            residual = (weight * residual + other * summed) / (weight + other)
            variance = 1 / (weight + other)
        trends = TrendDirections(rows=directions[i], columns=directions[j])
        found[i, j] = CoarseResidual(
            residual=residual,
            expected=expected,
            sigma=math.sqrt(variance),
            rows=rows,
            columns=columns,
            trends=trends.visible(residual, math.sqrt(variance)),
            weights=(weights[i], weights[j]),
        )
    return found
