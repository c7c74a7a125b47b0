"""Confidence intervals of noisy sums and ratios whose noise has a known variance.

Counts are sums x + e, shares and means are ratios x / y of two such sums. The intervals invert a
test at each possible value (Fieller's method for ratios), so that nothing is linearised.
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from deniable.answers.table_estimate import WeightedSum
from deniable.release.query_answer import Interval

# Level of all intervals.
CONFIDENCE = 0.95
# Rounding errors of a count without noise.
_TOLERANCE = 1e-4


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


def critical_value(level: float = CONFIDENCE) -> float:
    """Two-sided critical value of Gaussian noise with mean 0 and variance 1."""
    return NormalDist().inv_cdf((1 + level) / 2)


def count_interval(
    count: float,
    variance: float,
    *,
    z: float,
    sampling: float = 0.0,
    rows: float = math.inf,
) -> Interval:
    """Interval of a count: all x with (x̂ - x)² ≤ z² (variance + sampling x (1 - x/n)).

    Without the chance of a sample, a count is a whole number, and the ends are rounded inward. A
    count that lies below 0 by more than a standard deviation has the upper end of one that lies
    there (a power-constrained limit): it is not read as the certainty that there are no rows.

    Args:
        count: The estimate x̂.
        variance: Variance of its noise.
        z: Critical value.
        sampling: Variance per row of the rows, as a sample of a population.
        rows: n, the number of all rows.
    """
    zz = z * z
    a = 1 + zz * sampling / max(rows, 1.0)
    b = count + zz * sampling / 2
    c = count * count - zz * variance
    low = max((b - math.sqrt(max(b * b - a * c, 0.0))) / a, 0.0)
    least = max(count, -math.sqrt(variance))
    b, c = b + least - count, least * least - zz * variance
    high = max((b + math.sqrt(max(b * b - a * c, 0.0))) / a, 0.0)
    if not sampling:
        low, high = math.ceil(low - _TOLERANCE), math.floor(high + _TOLERANCE)
        high = max(low, high)
    return Interval(estimate=max(count, 0.0), low=float(low), high=float(high))


def ratio_interval(sums: NoisySums, *, z: float, dispersion: float = 0.0) -> Interval:
    """Fieller's interval of a ratio x / y of two noisy sums; unbounded if ŷ may be 0.

        all p with (x̂ - p ŷ)² ≤ z² (Var(x̂) - 2 p Cov(x̂, ŷ) + p² Var(ŷ) + dispersion)

    Args:
        sums: The noisy sums.
        z: Critical value.
        dispersion: Variance of x̂ - p ŷ that sampling adds.
    """
    zz = z * z
    a = sums.denominator**2 - zz * sums.denominator_variance
    b = sums.numerator * sums.denominator - zz * sums.covariance
    c = sums.numerator**2 - zz * (sums.variance + dispersion)
    return _solve(sums, a, b, c)


def share_interval(sums: NoisySums, *, z: float, sampling: float = 0.0) -> Interval:
    """Fieller's interval of a share x / y, clipped to [0, 1].

    As ``ratio_interval``, with the dispersion sampling · ŷ p (1 - p) of the rows counted in ŷ: the
    Wilson interval, if there is no other noise. As for a count, parts that lie below 0 or above the
    whole by more than a standard deviation have the end of those that lie there.
    """
    found = _free_share(sums, z=z, sampling=sampling)
    least = -math.sqrt(sums.variance)
    rest = sums.variance - 2 * sums.covariance + sums.denominator_variance
    most = sums.denominator + math.sqrt(max(rest, 0.0))
    low, high = found.low, found.high
    if sums.numerator < least:
        high = max(high, _free_share(replace(sums, numerator=least), z=z, sampling=sampling).high)
    if sums.numerator > most:
        low = min(low, _free_share(replace(sums, numerator=most), z=z, sampling=sampling).low)
    return replace(found, low=low, high=high).clip(0.0, 1.0)


def _free_share(sums: NoisySums, *, z: float, sampling: float) -> Interval:
    """Fieller's interval of a share, which may extend beyond 0 and 1."""
    zz, rows = z * z, sampling * max(sums.denominator, 0.0)
    a = sums.denominator**2 - zz * (sums.denominator_variance - rows)
    b = sums.numerator * sums.denominator - zz * (sums.covariance - rows / 2)
    c = sums.numerator**2 - zz * sums.variance
    return _solve(sums, a, b, c)


def _solve(sums: NoisySums, a: float, b: float, c: float) -> Interval:
    """Solve a p² - 2 b p + c ≤ 0; unbounded unless ŷ is positive beyond its noise."""
    if not (a > 0 and sums.denominator > 0):
        return Interval(estimate=math.nan, low=-math.inf, high=math.inf)
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Interval(
        estimate=sums.numerator / sums.denominator, low=(b - root) / a, high=(b + root) / a
    )
