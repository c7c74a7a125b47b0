"""TableEstimate: generalised least squares of a contingency table from noisy counts.

A table x of a rows and b columns is the sum of four orthogonal parts: its interactions, the effects
of its rows and of its columns, and its total.

    x = P x P + (P r) 1ᵀ / b + 1 (P c)ᵀ / a + n 11ᵀ / (a b)        r, c: margins; P: centring

Noise of equal variance in all cells of a measured table is independent, with equal variance, in
each of its parts. So least squares over any number of measured tables of the same columns is the
inverse-variance-weighted mean, part by part: no linear system has to be solved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deniable.arrays import Indices, Reals


@dataclass(frozen=True, kw_only=True)
class MarginEstimate:
    """Estimated counts of one column's bins, up to a common constant.

    Attributes:
        effects: Estimated count of each bin minus their mean.
        variance: Variance of the noise of each bin's count, before centring.
    """

    effects: Reals = field(repr=False)
    variance: float

    @classmethod
    def combine(cls, margins: Sequence[Reals], variances: Sequence[float]) -> "MarginEstimate":
        """Average independent measurements of the same counts, weighted by inverse variance.

        Args:
            margins: The measured counts of the bins; each has noise of equal variance in all bins.
            variances: That variance.
        """
        weights = 1 / np.array(variances)
        mean = np.einsum("m,mb->b", weights, np.stack(margins)) / weights.sum()
        return cls(effects=mean - mean.mean(), variance=float(1 / weights.sum()))

    @classmethod
    def single(cls) -> "MarginEstimate":
        """The margin of a table with one column, which is its total."""
        return cls(effects=np.zeros(1), variance=0.0)


@dataclass(frozen=True, kw_only=True)
class TotalEstimate:
    """Estimated number of rows.

    Attributes:
        count: The estimate.
        variance: Variance of its noise.
    """

    count: float
    variance: float

    @classmethod
    def combine(cls, totals: Sequence[float], variances: Sequence[float]) -> "TotalEstimate":
        """Average independent totals of the same rows, weighted by inverse variance."""
        weights = 1 / np.array(variances)
        count = float(np.dot(weights, totals) / weights.sum())
        return cls(count=count, variance=float(1 / weights.sum()))


@dataclass(frozen=True, kw_only=True)
class WeightedSum:
    """A weighted sum of the cells of an estimated table.

    Attributes:
        value: The estimate.
        weights: Its weights of independent noise of variance 1.
    """

    value: float
    weights: Reals = field(repr=False)

    def covariance(self, other: "WeightedSum") -> float:
        """Compute the covariance of the noise of two sums."""
        return float(self.weights @ other.weights)

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return self.covariance(self)


@dataclass(frozen=True, kw_only=True)
class TableEstimate:
    """Minimum-variance unbiased estimate of a table, with the covariance of any sums of its cells.

    A one-way table has a single column.

    Attributes:
        interactions: Noisy table; only its interactions are used.
        interaction_variance: Variance of the noise of each of its cells.
        row_of: Row of the table that each bin of the first column belongs to.
        rows: Estimated counts of the first column's bins.
        column_of: Column of the table that each bin of the second column belongs to.
        columns: Estimated counts of the second column's bins.
        total: Estimated number of rows of the confidential table.
    """

    interactions: Reals = field(repr=False)
    interaction_variance: float
    row_of: Indices = field(repr=False)
    rows: MarginEstimate
    column_of: Indices = field(repr=False)
    columns: MarginEstimate
    total: TotalEstimate

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        a, b = self.interactions.shape
        return a, b

    @cached_property
    def cells(self) -> Reals:
        """Estimated count of each cell, unbiased: it may be negative."""
        a, b = self.shape
        centred = _double_centre(self.interactions)
        rows = np.bincount(self.row_of, self._bin_counts(self.rows), minlength=a)
        columns = np.bincount(self.column_of, self._bin_counts(self.columns), minlength=b)
        found: Reals = (
            centred
            + (rows - rows.mean())[:, None] / b
            + (columns - columns.mean())[None, :] / a
            + self.total.count / (a * b)
        )
        return found

    def _bin_counts(self, margin: MarginEstimate) -> Reals:
        counts: Reals = margin.effects + self.total.count / len(margin.effects)
        return counts

    def weighted_sum(self, weights: Reals) -> "WeightedSum":
        """Estimate the weighted sum of the cells."""
        return WeightedSum(
            value=float(np.vdot(weights, self.cells)), weights=self._scaled_parts(weights)
        )

    def value(self, weights: Reals) -> float:
        """Estimate the weighted sum of the cells; the value alone."""
        return self.weighted_sum(weights).value

    def covariance(self, one: Reals, two: Reals) -> float:
        """Compute the covariance of the noise of two weighted sums of the cells."""
        return self.weighted_sum(one).covariance(self.weighted_sum(two))

    def variance(self, weights: Reals) -> float:
        """Compute the variance of the noise of a weighted sum of the cells."""
        return self.weighted_sum(weights).variance

    def _scaled_parts(self, weights: Reals) -> Reals:
        """Translate weights of cells to those of independent noise of variance 1."""
        variances = (
            self.interaction_variance,
            self.rows.variance,
            self.columns.variance,
            self.total.variance,
        )
        scaled = [
            part.ravel() * math.sqrt(variance)
            for part, variance in zip(self._parts(weights), variances, strict=True)
        ]
        return np.concatenate(scaled)

    def _parts(self, weights: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Translate weights of cells to those of each independent measurement."""
        a, b = self.shape
        rows, columns = weights.sum(axis=1), weights.sum(axis=0)
        everything = rows.sum()
        of_rows = ((rows - everything / a) / b)[self.row_of]
        of_columns = ((columns - everything / b) / a)[self.column_of]
        row_mean = of_rows.sum() / len(of_rows)
        column_mean = of_columns.sum() / len(of_columns)
        # The counts of bins that are summed to a row contain the estimated total.
        total = row_mean + column_mean + everything / (a * b)
        interactions = _double_centre(weights)
        return interactions, of_rows - row_mean, of_columns - column_mean, np.array([total])


def _double_centre(table: Reals) -> Reals:
    """Remove the means of rows and columns; by sums, which are faster than means."""
    a, b = table.shape
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    centred: Reals = table - (rows / b)[:, None] - columns / a + rows.sum() / (a * b)
    return centred
