"""Noise level of a pairwise model: which dependences stand out from the noise, in plain figures.

Computed from public facts and noisy counts alone: before a run from the schema and a guess of the
number of rows, after it from the noisy counts of the artefact. Post-processing: no cost.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from statistics import NormalDist, median

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.one_way import sum_groups
from deniable.model.pairwise.table_layout import Pair
from deniable.schema.attribute import Attribute

# A dependence stands out if its size exceeds the mean size of pure noise by this many standard
# deviations of the latter.
VISIBLE_SIGMAS = 2.0
# Most is noise if a dependence must be stronger than this to stand out (Cramér's V of 0.5 is
# Cohen's "large effect"), or if the share of a single value has a larger standard error than this.
_MAX_VISIBLE_ASSOCIATION = 0.5
_MAX_VALUE_ERROR = 0.1
# Keeps the sampling variance of two columns with a single occupied group positive.
_MIN_VARIANCE = 1e-12


@dataclass(frozen=True, kw_only=True)
class ColumnNoise:
    """Sizes, shares and noise of one column.

    Attributes:
        values: Number of its values.
        bins: Number of its bins.
        shares: Share of each of its groups, between which interactions are measured.
        sigma: Standard deviation of the noise of each count of its one-way table.
        is_ordered: Whether its values are in order, as numbers, dates and ordered categories are.
    """

    values: int
    bins: int
    shares: Reals
    sigma: float
    is_ordered: bool

    @classmethod
    def of(
        cls, attribute: Attribute, bins: Indices, groups: Indices, shares: Reals, sigma: float
    ) -> "ColumnNoise":
        """Describe an attribute by its bins, the groups of these, and the shares of its values."""
        return cls(
            values=len(bins),
            bins=len(groups),
            shares=sum_groups(groups[bins], shares),
            sigma=sigma,
            is_ordered=attribute.is_numeric or attribute.kind == "ordered",
        )


@dataclass(frozen=True, kw_only=True)
class PairNoises:
    """Noise of the pairs of columns, one entry of each array for each pair.

    Attributes:
        first: Number of the first column.
        second: Number of the second column.
        sigma: Standard deviation of a cell between groups, from the interactions alone.
        best_sigma: The same, from interactions and two-way tables together.
    """

    first: Indices
    second: Indices
    sigma: Reals
    best_sigma: Reals

    @classmethod
    def of(
        cls,
        columns: Sequence[ColumnNoise],
        interaction_sigmas: Mapping[Pair, float],
        table_sigmas: Mapping[Pair, float],
    ) -> "PairNoises":
        """Combine the noise of interactions and of two-way tables, by inverse variance.

        A cell between groups is a sum of cells between bins: its variance is their number times
        that of one.
        """
        pairs = np.array(list(interaction_sigmas), dtype=np.intp).reshape(-1, 2)
        sigma = np.array(list(interaction_sigmas.values()), dtype=np.float64)
        per_table = np.array([table_sigmas.get(pair, math.inf) for pair in interaction_sigmas])
        bins = np.array([column.bins / len(column.shares) for column in columns])
        cells = bins[pairs[:, 0]] * bins[pairs[:, 1]]
        best = 1 / np.sqrt(1 / sigma**2 + 1 / (cells * per_table**2))
        return cls(first=pairs[:, 0], second=pairs[:, 1], sigma=sigma, best_sigma=best)

    def take(self, chosen: Indices) -> "PairNoises":
        """Take some of the pairs."""
        return PairNoises(
            first=self.first[chosen],
            second=self.second[chosen],
            sigma=self.sigma[chosen],
            best_sigma=self.best_sigma[chosen],
        )


@dataclass(frozen=True, kw_only=True)
class NoiseLevel:
    """The noise of a model in figures that a reader of the records can use.

    Attributes:
        rows: Number of rows of the table: noisy, or a guess.
        columns: Number of columns.
        pairs: Number of pairs of columns that are measured.
        groups: Median number of groups of a column.
        value_error: Standard error of the share of one value, median of the columns.
        visible_association: Least Cramér's V that stands out from the noise, median of the pairs;
            None if no pair is measured.
        visible_correlation: Least correlation that does, median of the pairs of ordered columns;
            None if there are none.
        sample_share: The pairs are about as good as a random sample of this share of the rows.
    """

    rows: float
    columns: int
    pairs: int
    groups: float
    value_error: float
    visible_association: float | None = None
    visible_correlation: float | None = None
    sample_share: float | None = None

    @property
    def is_mostly_noise(self) -> bool:
        """Whether even strong dependences are hidden, or the shares of single values."""
        hidden = (self.visible_association or 0.0) > _MAX_VISIBLE_ASSOCIATION
        return hidden or self.value_error > _MAX_VALUE_ERROR

    @property
    def sentences(self) -> tuple[str, ...]:
        """The figures in words."""
        percent = 100 * self.value_error
        single = (
            "A single value: the standard error of its share is about "
            f"{_digits(percent)} percentage points."
            if percent < 100
            else "A single value: the noise of its share is larger than the table."
        )
        return (single, *(self.sentences_on_pairs if self.columns > 1 else ()))

    @property
    def sentences_on_pairs(self) -> tuple[str, ...]:
        """The figures on pairs of columns in words."""
        v, rho, share = self.visible_association, self.visible_correlation, self.sample_share
        if v is None or v >= 1:
            visible = "no dependence stands out from the noise, however strong it is"
        else:
            visible = f"a dependence stands out from the noise if Cramér's V is above {_digits(v)}"
            if rho is not None and rho < 1:
                visible += f" (two numbers: a correlation above {_digits(rho)})"
        found = [f"Two columns: {visible}."]
        if share is not None:
            size = f"{_percent(share)} of the rows"
            found.append(f"All pairs together: about as good as a random sample of {size}.")
        return tuple(found)

    def document(self) -> dict[str, float | int | None]:
        """The figures for JSON, three significant digits each."""
        return {
            "rows": _rounded(self.rows),
            "columns": self.columns,
            "pairs": self.pairs,
            "groups": self.groups,
            "value_error": _rounded(self.value_error),
            "visible_association": _rounded(self.visible_association),
            "visible_correlation": _rounded(self.visible_correlation),
            "sample_share": _rounded(self.sample_share),
        }


def noise_level(columns: Sequence[ColumnNoise], pairs: PairNoises, *, records: float) -> NoiseLevel:
    """Compute the noise level of a model. Post-processing of noisy counts: no cost.

    *Visible dependence.* In a pair with a × b groups of equal weight, a cell has the variance
    s² = σ² + n / (ab): that of the noise, and that of n rows with independent columns. Doubly
    centred, it has d = (a - 1)(b - 1) dimensions: the sum of squares has the mean d s² and the
    standard deviation √(2d) s². A dependence stands out if it adds two of these:

        φ² = ab · 2√(2d) s² / n²,     Cramér's V = φ / √(min(a, b) - 1)

    Of two numbers with a small correlation ρ, cut into groups of equal weight, φ² = ρ² c_a c_b,
    where c is the share of a normal variable's variance between its groups.

    *Sample equivalent.* A random sample of m of n rows has, in all cells of a pair together, the
    variance (1 - Σp²)(1/m - 1/n). The noise has the variance

        N = (d σ² + Σ of both margins' noise) / n²

    Both are equal for 1/m = 1/n + N / (1 - Σp²). Standard deviations are averaged over pairs, as
    ``evaluate`` averages distances. What the fit removes of the noise, where columns are unrelated,
    and what it misses, below the resolution of groups, are not in it: against the sample
    equivalent that ``evaluate`` measures, it is right within a factor of about two
    (docs/evaluation.md, "Forecasts").

    Args:
        columns: The columns.
        pairs: The noise of the pairs.
        records: Number of records.
    """
    sizes = np.array([len(column.shares) for column in columns])
    level = NoiseLevel(
        rows=records,
        columns=len(columns),
        pairs=len(pairs.first),
        groups=float(median(sizes.tolist())),
        value_error=float(median(column.sigma / records for column in columns)),
    )
    if not level.pairs:
        return level
    a, b = sizes[pairs.first], sizes[pairs.second]
    freedom = (a - 1) * (b - 1)
    variance = a * b * pairs.sigma**2 + records
    effect = VISIBLE_SIGMAS * np.sqrt(2 * freedom) * variance / records**2
    between = np.array([_variance_between(int(size)) for size in sizes])
    correlation = np.sqrt(effect / (between[pairs.first] * between[pairs.second]))
    is_ordered = np.array([column.is_ordered for column in columns])
    correlation = correlation[is_ordered[pairs.first] & is_ordered[pairs.second]]
    association = np.sqrt(effect / (np.minimum(a, b) - 1))
    noise, sampling = _pair_deviations(columns, pairs, records=records)
    variance_ratio = records * float(noise.mean() / sampling.mean()) ** 2
    return replace(
        level,
        visible_association=median(association.tolist()),
        visible_correlation=median(correlation.tolist()) if len(correlation) else None,
        sample_share=1 / (1 + variance_ratio),
    )


def _pair_deviations(
    columns: Sequence[ColumnNoise], pairs: PairNoises, *, records: float
) -> tuple[Reals, Reals]:
    """Compute √N and √(1 - Σp²) of each pair, as if its columns were independent."""
    sizes = np.array([len(column.shares) for column in columns])
    squares = np.array([float(np.square(column.shares).sum()) for column in columns])
    margins = np.array([column.values * column.sigma**2 for column in columns])
    margins *= 1 - 1 / sizes
    one, two = pairs.first, pairs.second
    variance = (sizes[one] - 1) * (sizes[two] - 1) * pairs.best_sigma**2
    variance = variance + margins[one] * squares[two] + margins[two] * squares[one]
    noise: Reals = np.sqrt(variance) / records
    sampling: Reals = np.sqrt(np.maximum(1 - squares[one] * squares[two], _MIN_VARIANCE))
    return noise, sampling


@cache
def _variance_between(groups: int) -> float:
    """Variance of a standard normal variable between groups of equal weight.

    >>> round(_variance_between(2), 4)  # 2/π
    0.6366
    """
    normal = NormalDist()
    density = [0.0, *(normal.pdf(normal.inv_cdf(k / groups)) for k in range(1, groups)), 0.0]
    means = [groups * (low - high) for low, high in pairwise(density)]
    return math.fsum(mean * mean for mean in means) / groups


def _digits(number: float) -> str:
    """Format a number with two significant digits.

    >>> _digits(0.1234), _digits(12.34), _digits(0.00123)
    ('0.12', '12', '0.0012')
    """
    rounded = float(f"{number:.2g}")
    decimals = max(0, 1 - math.floor(math.log10(rounded))) if rounded > 0 else 0
    return f"{rounded:.{decimals}f}"


def _percent(share: float) -> str:
    """Format a share without false precision.

    >>> _percent(0.1234), _percent(0.00512), _percent(0.0001)
    ('12 %', '0.5 %', 'less than 0.1 %')
    """
    percent = 100 * share
    if percent < 0.1:
        return "less than 0.1 %"
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.1f} %"


def _rounded(number: float | None) -> float | None:
    """Round to three significant digits, so that the last digits of a computer do not matter."""
    return None if number is None else float(f"{number:.3g}")
