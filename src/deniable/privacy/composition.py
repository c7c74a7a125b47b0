"""Composition of differential privacy guarantees, subsampling, group privacy, Gaussian noise.

Every function returns an upper bound: floating-point results are rounded up. Parameters outside a
theorem's hypotheses raise an error.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.arrays import Reals
from deniable.errors import BudgetError
from deniable.privacy.discrete_losses import binomial_losses, gaussian_deltas

# Below this δ for one row no noise is certified.
_MIN_ROW_DELTA = 1e-18
# Largest x for which e^x is computed; beyond it the result is taken as infinite.
_MAX_EXPONENT = 700.0


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(ε, δ)-differential privacy: the guarantee, or cost, of a release."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):  # negated so that NaN fails
            raise BudgetError(f"need ε ≥ 0 and 0 ≤ δ ≤ 1; got ε = {self.epsilon}, δ = {self.delta}")

    def within(self, limit: "Guarantee") -> bool:
        """Test whether neither ε nor δ exceeds that of ``limit``."""
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta


def upper_bound(value: float) -> float:
    """Round ``value`` ≥ 0 up by more than the rounding error of a short formula."""
    return value * (1 + 2.0**-49)


def sequential_composition(costs: Iterable[Guarantee]) -> Guarantee:
    """Add up costs (sequential composition, Theorem 2, ``thm:dp:seqc``).

        ε = Σ ε_i            δ = Σ δ_i

    Privacy:
        Neighbours: those of ``costs``, the same for all of them.
        Covers: all outputs together; a later release may depend on earlier outputs.
    """
    listed = list(costs)
    epsilon = math.fsum(cost.epsilon for cost in listed)
    delta = math.fsum(cost.delta for cost in listed)
    return Guarantee(epsilon=upper_bound(epsilon), delta=min(1.0, upper_bound(delta)))


def advanced_composition(cost: Guarantee, *, times: int, slack: float) -> Guarantee:
    """Compose ``times`` equal releases (advanced composition, Theorem 3, ``thm:dp:advc``).

        ε' = ε √(2 k ln(1/δ'')) + k ε (e^ε - 1)            δ' = k δ + δ''

    This is the paper's formula. ``optimal_composition`` is never worse.

    Args:
        cost: Cost of one release.
        times: Number of releases, k ≥ 1.
        slack: δ'', 0 < δ'' < 1.

    Privacy:
        Neighbours: those of ``cost``.
        Covers: all outputs together; a later release may depend on earlier outputs.
    """
    if not (times >= 1 and 0 < slack < 1):
        raise BudgetError(f"advanced composition: need k ≥ 1, 0 < δ'' < 1; got {times}, {slack}")
    k, epsilon = times, cost.epsilon
    spread = epsilon * math.sqrt(-2 * k * math.log(slack))
    total = spread + k * epsilon * _expm1(epsilon) if epsilon > 0 else 0.0
    return Guarantee(
        epsilon=upper_bound(total), delta=min(1.0, upper_bound(k * cost.delta + slack))
    )


def optimal_composition(cost: Guarantee, *, times: int, delta: float) -> Guarantee:
    """Compose ``times`` equal releases: the smallest ε at a total ``delta``.

    No composition theorem that uses only the (ε, δ) of each release can give less. See
    ``ComposedLoss`` for the formula.

    Privacy:
        Neighbours: those of ``cost``.
        Covers: all outputs together; a later release may depend on earlier outputs.
    """
    composed = ComposedLoss.of(cost, times)
    high = upper_bound(times * cost.epsilon)
    if not (delta <= 1 and composed.delta(high) <= delta):
        raise BudgetError(
            f"{times:,} releases of δ = {cost.delta:.2g} add up to more than {delta:.2g}: "
            "make fewer releases"
        )
    return Guarantee(
        epsilon=smallest_sufficient(lambda e: composed.delta(e) <= delta, high), delta=delta
    )


@dataclass(frozen=True)
class ComposedLoss:
    """Privacy loss of N releases of (ε, δ) each (Kairouz, Oh and Viswanath, Theorem 3.3).

        δ' = 1 - (1 - δ)^N (1 - Σ_l B(l) max(0, 1 - e^(ε' - (2l - N) ε)))

    B is the binomial law of N trials of probability e^ε / (1 + e^ε).

    Attributes:
        losses: The values (2l - N) ε.
        probabilities: The probability of each, B(l).
        log_no_failure: ln of the probability that no release fails through its δ.
        largest: N ε.
    """

    losses: Reals
    probabilities: Reals
    log_no_failure: float
    largest: float

    @classmethod
    def of(cls, cost: Guarantee, times: int) -> "ComposedLoss":
        """Compose ``times`` releases that cost ``cost`` each."""
        n, epsilon = times, cost.epsilon
        if not (n >= 1 and epsilon < math.inf and cost.delta < 1):
            raise BudgetError(f"optimal composition: need N ≥ 1, ε < ∞, δ < 1; got {n}, {cost}")
        losses, probabilities = binomial_losses(epsilon, times=n)
        return cls(losses, probabilities, n * math.log1p(-cost.delta), n * epsilon)

    def delta(self, epsilon: float) -> float:
        """Compute δ at ε, rounded up. The omitted losses have probability below e^-680."""
        if epsilon >= self.largest:
            return max(0.0, upper_bound(-math.expm1(self.log_no_failure)))
        over = self.losses > epsilon
        shortfall = -np.expm1(epsilon - self.losses[over])
        finite = float(self.probabilities[over] @ shortfall) + 1e-290
        if finite >= 1:
            return 1.0
        return min(1.0, upper_bound(-math.expm1(self.log_no_failure + math.log1p(-finite))))


def subsampling_amplification(cost: Guarantee, *, rate: float) -> Guarantee:
    """Amplify a guarantee by secret subsampling (Theorem 4, ``thm:dp:amplif``).

        ε' = ln(1 + p (e^ε - 1))            δ' = p δ

    Args:
        cost: Cost of the release for the records in the sample.
        rate: p, the probability that a record is in the sample, δ < p < 1.

    Privacy:
        Neighbours: add or remove one record of the whole table.
        Covers: everything released from the sample.
        Does not cover: a second part of the same split. The rates add: see ``random_partition``.
        Assumes: each record is drawn independently, and the sample stays secret.
    """
    if not cost.delta < rate < 1:
        raise BudgetError(f"amplification needs δ < p < 1; got δ = {cost.delta}, p = {rate}")
    return random_partition([(rate, cost)])


def random_partition(parts: Sequence[tuple[float, Guarantee]]) -> Guarantee:
    """Compose releases from the parts of a random partition (guarantee.md, Theorem 10).

        ε' = ln(1 + Σ p_j (e^ε_j - 1))
        δ' = max{ Σ p_j δ_j,  Σ p_j e^-ε_j δ_j / q },   q = 1 - Σ p_j + Σ p_j e^-ε_j

    Args:
        parts: For each part, the probability that a record is assigned to it, and its cost.

    Privacy:
        Neighbours: add or remove one record of the whole table.
        Covers: everything released from all parts; a later part may use earlier outputs.
        Does not cover: the assignment, the sizes of the parts; a second use of the same split.
        Assumes: each record is assigned independently, to at most one part, and in secret.
    """
    left = 1 - math.fsum(p for p, _ in parts)
    if not (left >= 0 and all(p >= 0 for p, _ in parts)):
        raise BudgetError(f"Theorem 10 needs p_j ≥ 0, Σ p_j ≤ 1; got {[p for p, _ in parts]}")
    used = [(p, cost) for p, cost in parts if p > 0]
    growth = math.fsum(p * _expm1(cost.epsilon) for p, cost in used)
    kept = [(p * math.exp(-cost.epsilon), cost.delta) for p, cost in used]
    q = left + math.fsum(weight for weight, _ in kept)
    added = math.fsum(p * cost.delta for p, cost in used)
    removed = math.fsum(weight * delta for weight, delta in kept) / q if q > 0 else 1.0
    delta = min(1.0, upper_bound(max(added, removed)))
    return Guarantee(epsilon=upper_bound(math.log1p(growth)), delta=delta)


def group_privacy(cost: Guarantee, *, rows: int) -> Guarantee:
    """Cost for a group of up to g ``rows`` (group privacy; guarantee.md, Lemma 9).

        ε' = g ε            δ' = δ (1 + e^ε + … + e^((g-1) ε))

    Two rows also bound replace-one neighbours: one row removed, another added.
    """
    if rows < 1:
        raise BudgetError(f"a group has at least one row; got {rows}")
    factor = math.fsum(_expm1(i * cost.epsilon) + 1 for i in range(rows)) if cost.delta > 0 else 0
    delta = min(1.0, upper_bound(cost.delta * factor)) if factor else 0.0
    return Guarantee(epsilon=upper_bound(rows * cost.epsilon), delta=delta)


def unit_cost(cost: Guarantee, *, rows: int) -> Guarantee:
    """Convert a cost for one row to the cost for a unit of at most ``rows`` rows.

    Privacy:
        Neighbours: add or remove all rows of one unit; at most ``rows`` of them are used.
        Covers: everything that costs (ε, δ) for one row.
    """
    if rows == 1 or cost.epsilon == math.inf:
        return cost
    return group_privacy(cost, rows=rows)


def row_limit(limit: Guarantee, *, rows: int) -> Guarantee:
    """Convert a limit for a unit of ``rows`` rows to the limit for one row.

    Raises:
        BudgetError: The δ of one row is too small for any noise to be certified.
    """
    if rows == 1 or limit.epsilon == math.inf:
        return limit
    each = limit.epsilon / rows
    delta = limit.delta / _group_factor(each, rows)
    if delta < _MIN_ROW_DELTA < limit.delta:
        raise BudgetError(
            f"ε = {limit.epsilon:g} for {rows:,} rows of one unit leaves each row δ = {delta:.2g}, "
            "too small to be certified. Ask for a smaller ε or a larger δ."
        )
    return Guarantee(epsilon=each * (1 - 1e-12), delta=delta * (1 - 1e-12))


def _group_factor(epsilon: float, rows: int) -> float:
    """Compute Σ e^(i·ε) over i < rows; infinite on overflow."""
    if rows * epsilon > _MAX_EXPONENT:
        return math.inf
    return math.expm1(rows * epsilon) / math.expm1(epsilon) * (1 + 1e-12)


def with_total_variation(cost: Guarantee, *, tv: float, l0_sensitivity: int) -> Guarantee:
    """Cost if the noise is a table close to the ideal law in total variation (guarantee.md).

        δ' = δ + (1 + e^ε) · tv · (L0 sensitivity)

    Args:
        cost: Cost with the ideal law.
        tv: Total variation between the table and the ideal law, for one number.
        l0_sensitivity: Number of noisy numbers that one record can change.
    """
    if not (0 <= tv <= 1 and l0_sensitivity >= 0):
        raise BudgetError(f"need 0 ≤ tv ≤ 1 and L0 sensitivity ≥ 0; got {tv}, {l0_sensitivity}")
    total = tv * l0_sensitivity
    extra = (2 + _expm1(cost.epsilon)) * total if total > 0 else 0.0
    return Guarantee(epsilon=cost.epsilon, delta=min(1.0, upper_bound(cost.delta + extra)))


def gaussian_delta(*, epsilon: float, mu: float) -> float:
    """Compute δ of the Gaussian mechanism at ε (Balle and Wang; guarantee.md, Theorem 7).

        δ_G(ε; μ) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ),   μ = (L2 sensitivity) / σ

    Exact up to rounding; rounded up.
    """
    if not (epsilon >= 0 and 0 <= mu < math.inf):
        raise BudgetError(f"need ε ≥ 0 and 0 ≤ μ < ∞; got ε = {epsilon}, μ = {mu}")
    if epsilon == math.inf:
        return 0.0
    return float(gaussian_deltas(np.array([epsilon]), mu=mu)[0])


def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Find the largest μ at which Gaussian noise is (ε, δ), rounded down; σ = Δ₂ / μ."""
    if not (0 <= epsilon < math.inf and 0 < delta < 1):
        raise BudgetError(f"Gaussian noise: need 0 ≤ ε < ∞, 0 < δ < 1; got {epsilon}, {delta}")
    # Search for 1/μ, because δ falls with it. δ_G(ε; μ) ≤ μ/√(2π), so 1/μ = 1/δ suffices.
    inverse = smallest_sufficient(
        lambda x: x > 0 and gaussian_delta(epsilon=epsilon, mu=1 / x) <= delta, 1 / delta
    )
    return 1 / inverse * (1 - 2.0**-50)


@dataclass(frozen=True, kw_only=True)
class TableNoise:
    """Noise of each cell of m tables: a law and its scale, b = 1/ε or σ."""

    law: Literal["discrete_laplace", "rounded_gaussian"]
    scale: float

    @property
    def deviation(self) -> float:
        """Standard deviation of the continuous law, accurate enough for comparison."""
        return self.scale * (math.sqrt(2) if self.law == "discrete_laplace" else 1.0)


def smaller_table_noise(*, tables: int, epsilon: float, delta: float) -> TableNoise:
    """Choose Laplace or Gaussian noise for m count tables (guarantee.md, Composition).

        Laplace:  b = m / ε            Gaussian:  σ = √m / μ,   δ_G(ε; μ) = δ

    The law with the smaller standard deviation is chosen.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each table by one.
        Covers: all tables, (ε, δ). Laplace noise leaves δ unused, except for the table's ``tv``.
        Assumes: independent noise in every cell, including empty ones.
    """
    if not (tables >= 1 and 0 < epsilon < math.inf):
        raise BudgetError(f"need m ≥ 1 and 0 < ε < ∞; got m = {tables}, ε = {epsilon}")
    laplace = TableNoise(law="discrete_laplace", scale=upper_bound(tables / epsilon))
    if delta == 0:
        return laplace
    sigma = upper_bound(math.sqrt(tables) / gaussian_mu(epsilon=epsilon, delta=delta))
    gaussian = TableNoise(law="rounded_gaussian", scale=sigma)
    return min(laplace, gaussian, key=lambda noise: noise.deviation)


def smallest_sufficient(enough: Callable[[float], bool], high: float, *, low: float = 0.0) -> float:
    """Bisect for the smallest sufficient number in [low, high], to about one ulp, rounded up."""
    if not enough(high):
        raise BudgetError("no computable value meets δ: ask for a larger δ")
    if enough(low):
        return low
    while (half := (low + high) / 2) not in (low, high) and high - low > 2.0**-50 * high:
        low, high = (low, half) if enough(half) else (half, high)
    return high


def _expm1(x: float) -> float:
    """Compute e^x - 1; infinite on overflow."""
    return math.expm1(x) if x < 709 else math.inf
