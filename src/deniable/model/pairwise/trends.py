"""Trends: how the mean rank of an ordered column differs between the groups of another column.

"Men earn more than women" is a trend. It has few dimensions: one for each group, whatever the
number of values of the ordered column. So it stands out from the noise before the table does.
Denoising does not shrink a trend that stands out, and a fit hardly penalises it.
All of it is post-processing of noisy counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.one_way import has_order, sum_groups
from deniable.schema.attribute import Attribute

# A trend stands out if its sum of squares exceeds that of pure noise by this many standard
# deviations of the latter.
_VISIBLE_SIGMAS = 2.0
# Shorter vectors have no direction, and smaller shares count as this one.
_MIN_LENGTH = 1e-9

# A direction in which the rows or columns of a table differ: a unit vector whose numbers sum to 0;
# None if there is no order, or no trend that stands out.
Direction = Reals | None


def rank_scores(attribute: Attribute, shares: Reals) -> Reals | None:
    """Compute the mean rank of each bin, from -1/2 to 1/2; None if the values have no order.

    Missing cells have the rank of the median.
    """
    if not has_order(attribute):
        return None
    has_missing = attribute.missing_code is not None
    values = shares[:-1] if has_missing else shares
    ranks: Reals = (np.cumsum(values) - values / 2) / max(float(values.sum()), _MIN_LENGTH) - 0.5
    return np.append(ranks, 0.0) if has_missing else ranks


def group_direction(scores: Reals | None, shares: Reals, groups: Indices) -> Direction:
    """Average the scores of the bins of each group; return their direction.

    Args:
        scores: The score of each bin.
        shares: The share of each bin.
        groups: The group of each bin.
    """
    if scores is None:
        return None
    weights = np.maximum(shares, _MIN_LENGTH)
    means = sum_groups(groups, scores * weights) / sum_groups(groups, weights)
    centred: Reals = means - means.mean()
    length = float(np.linalg.norm(centred))
    return centred / length if length > _MIN_LENGTH else None


@dataclass(frozen=True, kw_only=True)
class TrendDirections:
    """Directions of the trends of a pair: of the row attribute, and of the column attribute."""

    rows: Direction = field(default=None, repr=False)
    columns: Direction = field(default=None, repr=False)

    def visible(self, residual: Reals, sigma: float) -> "TrendDirections":
        """Keep the directions in which a residual between groups stands out from its noise."""
        rows, columns = self.rows, self.columns
        if rows is not None and not _stands_out(rows @ residual, sigma):
            rows = None
        if columns is not None and not _stands_out(residual @ columns, sigma):
            columns = None
        return TrendDirections(rows=rows, columns=columns)

    def count_dimensions(self, shape: tuple[int, ...]) -> int:
        """Count the dimensions of the trends of a doubly centred table."""
        a, b = shape
        by_rows = 0 if self.rows is None else b - 1
        by_columns = 0 if self.columns is None else a - 1
        return by_rows + by_columns - (1 if by_rows and by_columns else 0)

    @property
    def is_empty(self) -> bool:
        """Whether there is no direction."""
        return self.rows is None and self.columns is None

    def project(self, table: Reals) -> Reals:
        """Project a table onto the trends: the part that decides mean ranks."""
        part: Reals = np.zeros_like(table)
        if self.columns is not None:
            part = np.outer(table @ self.columns, self.columns)
        if self.rows is not None:
            part = part + np.outer(self.rows, self.rows @ (table - part))
        return part


@dataclass(frozen=True, kw_only=True)
class VisibleTrends:
    """The trends of all pairs that stand out from the noise.

    Attributes:
        shares: The share of each bin, by attribute.
        scores: The mean rank of each bin, by attribute; None without an order.
        directions: For i < j, the trends between groups that stand out.
    """

    shares: Sequence[Reals] = field(repr=False)
    scores: Sequence[Reals | None] = field(repr=False)
    directions: Mapping[tuple[int, int], TrendDirections] = field(repr=False)

    @classmethod
    def of(
        cls,
        attributes: Sequence[Attribute],
        shares: Sequence[Reals],
        directions: Mapping[tuple[int, int], TrendDirections],
    ) -> "VisibleTrends":
        """Rank the bins of all attributes, given their shares."""
        scores = list(map(rank_scores, attributes, shares))
        return cls(shares=shares, scores=scores, directions=directions)

    def of_effects(self, parent: int, child: int, groups: Indices) -> TrendDirections:
        """Find the direction in which the effects of a parent on a child follow a trend.

        None for two ordered attributes: the trends of both would leave little to be penalised, and
        fits of columns that nearly determine each other would not converge.

        Args:
            parent: The parent: the rows of the effects are its groups.
            child: The child: the columns are its bins.
            groups: The group of each bin of the parent.
        """
        both_ordered = self.scores[parent] is not None and self.scores[child] is not None
        found = self.directions.get((min(parent, child), max(parent, child)))
        if found is None or found.is_empty or both_ordered:
            return TrendDirections()
        bins = np.arange(len(self.shares[child]))
        return TrendDirections(
            rows=group_direction(self.scores[parent], self.shares[parent], groups),
            columns=group_direction(self.scores[child], self.shares[child], bins),
        )


def _stands_out(trend: Reals, sigma: float) -> bool:
    """Test whether a centred vector has a larger sum of squares than pure noise."""
    freedom = len(trend) - 1
    limit = freedom + _VISIBLE_SIGMAS * math.sqrt(2 * freedom)
    return float(np.square(trend).sum()) >= limit * sigma**2
