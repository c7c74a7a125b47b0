"""Confidence intervals of noisy sums and ratios whose noise has a known variance.

Counts are sums x + e, shares and means are ratios x / y of two such sums. The intervals invert a
test at each possible value (Fieller's method for ratios), so that nothing is linearised.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from deniable.answers.table_estimate import WeightedSum
from deniable.release.query_answer import Interval

# Level of all intervals.
CONFIDENCE = 0.95
# Rounding errors of a count without noise.
_TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class Chance:
    """Chance other than noise: its variance per counted row.

    Attributes:
        thinning: Of a random part of the rows, which was counted: (1 - f) / f for a fraction f.
        sampling: Of the rows, as a sample of a population: 1. Each is multiplied by the largest
            number of rows of a unit, which bounds the variance if rows of a unit are alike.
    """

    thinning: float = 0.0
    sampling: float = 0.0

    @property
    def of_shares(self) -> float:
        """Variance per row and p (1 - p) that a share has."""
        return self.thinning + self.sampling


@dataclass(frozen=True, kw_only=True)
class NoisySums:
    """Two noisy sums, numerator and denominator, with the covariance of their noise.

    Attributes:
        numerator: x̂.
        denominator: ŷ.
        variance: Variance of x̂.
        covariance: Covariance of x̂ and ŷ.
        denominator_variance: Variance of ŷ.
    """

    numerator: float
    denominator: float
    variance: float
    covariance: float
    denominator_variance: float

    @classmethod
    def of(cls, one: WeightedSum, two: WeightedSum) -> "NoisySums":
        """Take two weighted sums of an estimated table's cells."""
        return cls(
            numerator=one.value,
            denominator=two.value,
            variance=one.variance,
            covariance=one.covariance(two),
            denominator_variance=two.variance,
        )


def critical_value(level: float = CONFIDENCE, *, excess_kurtosis: float = 0.0) -> float:
    """Two-sided critical value of noise with mean 0 and variance 1.

    Cornish and Fisher's expansion for a symmetric law. For Laplace noise it is 2.17, which 95.3 %
    of draws do not exceed; a sum of several is closer to a Gaussian.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    return z + excess_kurtosis * max(z**3 - 3 * z, 0.0) / 24


def count_interval(
    count: float,
    variance: float,
    *,
    z: float,
    chance: "Chance",
    rows: float = math.inf,
) -> Interval:
    """Interval of a count: all x with (x̂ - x)² ≤ z² (variance + thinning x + sampling x (1 - x/n)).

    Without any chance but noise, a count is a whole number, and the ends are rounded inward.

    Args:
        count: The estimate x̂.
        variance: Variance of its noise.
        z: Critical value.
        chance: Chance other than noise.
        rows: n, the number of all rows.
    """
    zz = z * z
    a = 1 + zz * chance.sampling / max(rows, 1.0)
    b = count + zz * (chance.thinning + chance.sampling) / 2
    c = count * count - zz * variance
    root = math.sqrt(max(b * b - a * c, 0.0))
    low, high = max((b - root) / a, 0.0), max((b + root) / a, 0.0)
    if not chance.sampling:
        low, high = math.ceil(low - _TOLERANCE), math.floor(high + _TOLERANCE)
        high = max(low, high)
    return Interval(estimate=max(count, 0.0), low=float(low), high=float(high))


def ratio_interval(sums: NoisySums, *, z: float, dispersion: float = 0.0) -> Interval:
    """Fieller's interval of a ratio x / y of two noisy sums; unbounded if ŷ may be 0.

        all p with (x̂ - p ŷ)² ≤ z² (Var(x̂) - 2 p Cov(x̂, ŷ) + p² Var(ŷ) + dispersion)

    Args:
        sums: The noisy sums.
        z: Critical value.
        dispersion: Variance of x̂ - p ŷ that chance adds: of a random part, or of a sample.
    """
    zz = z * z
    a = sums.denominator**2 - zz * sums.denominator_variance
    b = sums.numerator * sums.denominator - zz * sums.covariance
    c = sums.numerator**2 - zz * (sums.variance + dispersion)
    return _solve(sums, a, b, c)


def share_interval(sums: NoisySums, *, z: float, thinning: float = 0.0) -> Interval:
    """Fieller's interval of a share x / y, clipped to [0, 1].

    As ``ratio_interval``, with the dispersion thinning · ŷ p (1 - p) of the rows counted in ŷ: the
    Wilson interval, if there is no other noise.
    """
    zz, rows = z * z, thinning * max(sums.denominator, 0.0)
    a = sums.denominator**2 - zz * (sums.denominator_variance - rows)
    b = sums.numerator * sums.denominator - zz * (sums.covariance - rows / 2)
    c = sums.numerator**2 - zz * sums.variance
    return _solve(sums, a, b, c).clip(0.0, 1.0)


def _solve(sums: NoisySums, a: float, b: float, c: float) -> Interval:
    """Solve a p² - 2 b p + c ≤ 0; unbounded unless ŷ is positive beyond its noise."""
    if not (a > 0 and sums.denominator > 0):
        return Interval(estimate=math.nan, low=-math.inf, high=math.inf)
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Interval(
        estimate=sums.numerator / sums.denominator, low=(b - root) / a, high=(b + root) / a
    )
