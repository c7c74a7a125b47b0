"""What several releases cost together.

Every function returns an upper bound: what is computed in floating point is rounded up, and
outside a theorem's hypotheses there is an error, not a number.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.arrays import Reals
from deniable.errors import BudgetError
from deniable.privacy.atoms import binomial_losses, gaussian_deltas


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(ε, δ)-differential privacy. Compared part by part: neither may exceed its limit."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):  # also refuses NaN
            raise BudgetError(f"need ε ≥ 0 and 0 ≤ δ ≤ 1; got ε = {self.epsilon}, δ = {self.delta}")

    def within(self, limit: "Guarantee") -> bool:
        """Return whether neither part exceeds that of ``limit``."""
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta


def above(value: float) -> float:
    """Return a number a little above ``value`` ≥ 0: more than a short formula can be off by."""
    return value * (1 + 2.0**-49)


def sequential(costs: Iterable[Guarantee]) -> Guarantee:
    """Return the sum of all costs (sequential composition, Theorem 2, ``thm:dp:seqc``).

        ε = Σ ε_i            δ = Σ δ_i

    Privacy:
        Neighbours: those of ``costs``, the same for each.
        Covers: all outputs together; a later release may depend on earlier outputs.
    """
    listed = list(costs)
    epsilon = math.fsum(cost.epsilon for cost in listed)
    delta = math.fsum(cost.delta for cost in listed)
    return Guarantee(epsilon=above(epsilon), delta=min(1.0, above(delta)))


def advanced(cost: Guarantee, *, times: int, slack: float) -> Guarantee:
    """Return the cost of ``times`` releases (advanced composition, Theorem 3, ``thm:dp:advc``).

        ε' = ε √(2 k ln(1/δ'')) + k ε (e^ε - 1)            δ' = k δ + δ''

    The paper's formula; ``optimal`` is never worse.

    Args:
        cost: What one of them costs.
        times: How many there are, k ≥ 1.
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
    return Guarantee(epsilon=above(total), delta=min(1.0, above(k * cost.delta + slack)))


def amplified(cost: Guarantee, *, rate: float) -> Guarantee:
    """Return the cost on a secret sample (amplification, Theorem 4, ``thm:dp:amplif``).

        ε' = ln(1 + p (e^ε - 1))            δ' = p δ

    Args:
        cost: What the release costs on the records it was given.
        rate: p, the probability with which each record is given, δ < p < 1.

    Privacy:
        Neighbours: add or remove one record of the whole table.
        Covers: what is released from the sample.
        Does not cover: a second part of the same split: the rates add, see ``partitioned``.
        Assumes: each record is drawn independently, and nobody learns which were.
    """
    if not cost.delta < rate < 1:
        raise BudgetError(f"amplification needs δ < p < 1; got δ = {cost.delta}, p = {rate}")
    return partitioned([(rate, cost)])


def partitioned(parts: Sequence[tuple[float, Guarantee]]) -> Guarantee:
    """Return the cost of parts that share the records by lot (guarantee.md, Theorem 10).

        ε' = ln(1 + Σ p_j (e^ε_j - 1))
        δ' = max{ Σ p_j δ_j,  Σ p_j e^-ε_j δ_j / q },   q = 1 - Σ p_j + Σ p_j e^-ε_j

    Args:
        parts: For each part, the probability that a record is dealt to it, and its cost.

    Privacy:
        Neighbours: add or remove one record of the whole table.
        Covers: all that is released from all parts; a later part may use earlier outputs.
        Does not cover: who was dealt where, and how many; a second use of the same split.
        Assumes: each record is dealt independently, to at most one part, and in secret.
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
    delta = min(1.0, above(max(added, removed)))
    return Guarantee(epsilon=above(math.log1p(growth)), delta=delta)


def of_a_group(cost: Guarantee, *, rows: int) -> Guarantee:
    """Return the cost for one who has up to g ``rows`` (group privacy; guarantee.md, Lemma 9).

        ε' = g ε            δ' = δ (1 + e^ε + … + e^((g-1) ε))

    Two rows also bound replace-one: one row removed, another added.
    """
    if rows < 1:
        raise BudgetError(f"a group has at least one row; got {rows}")
    factor = math.fsum(_expm1(i * cost.epsilon) + 1 for i in range(rows)) if cost.delta > 0 else 0
    delta = min(1.0, above(cost.delta * factor)) if factor else 0.0
    return Guarantee(epsilon=above(rows * cost.epsilon), delta=delta)


def with_tables(cost: Guarantee, *, tv: float, moved: int) -> Guarantee:
    """Return the cost when the noise is a table near the law of the theorem (guarantee.md).

        δ' = δ + (1 + e^ε) · tv · moved

    Args:
        cost: What the ideal law would cost.
        tv: Total variation between the table and that law, for one number.
        moved: How many numbers one record moves.
    """
    if not (0 <= tv <= 1 and moved >= 0):
        raise BudgetError(f"need 0 ≤ tv ≤ 1 and moved ≥ 0; got {tv}, {moved}")
    extra = (2 + _expm1(cost.epsilon)) * tv * moved if tv * moved > 0 else 0.0
    return Guarantee(epsilon=cost.epsilon, delta=min(1.0, above(cost.delta + extra)))


def optimal_delta(cost: Guarantee, *, times: int, epsilon: float) -> float:
    """Return the δ of N releases at a total ε, exactly (Kairouz, Oh and Viswanath, Theorem 3.3).

        δ' = 1 - (1 - δ)^N (1 - Σ_l B(l) max(0, 1 - e^(ε' - (2l - N) ε)))

    B is the binomial law of N trials of probability e^ε / (1 + e^ε).
    """
    return _Composed.of(cost, times).delta(epsilon)


def optimal(cost: Guarantee, *, times: int, delta: float) -> Guarantee:
    """Return the smallest ε of ``times`` releases at a total ``delta`` (optimal composition).

    No composition theorem that knows only (ε, δ) of each can promise less; see
    ``optimal_delta`` for the formula.

    Privacy:
        Neighbours: those of ``cost``.
        Covers: all outputs together; a later release may depend on earlier outputs.
    """
    composed = _Composed.of(cost, times)
    high = above(times * cost.epsilon)
    if not (delta <= 1 and composed.delta(high) <= delta):
        raise BudgetError(
            f"{times:,} releases of δ = {cost.delta:.2g} add up to more than {delta:.2g}: do fewer"
        )
    return Guarantee(epsilon=crossing(lambda e: composed.delta(e) <= delta, high), delta=delta)


@dataclass(frozen=True)
class _Composed:
    """N times (ε, δ): the losses (2l - N) ε that have a probability, and that probability."""

    losses: Reals
    chances: Reals
    never: float  # ln of the probability that no release shows its δ
    largest: float

    @classmethod
    def of(cls, cost: Guarantee, times: int) -> "_Composed":
        n, epsilon = times, cost.epsilon
        if not (n >= 1 and epsilon < math.inf and cost.delta < 1):
            raise BudgetError(f"optimal composition: need N ≥ 1, ε < ∞, δ < 1; got {n}, {cost}")
        losses, chances = binomial_losses(epsilon, times=n)
        return cls(losses, chances, n * math.log1p(-cost.delta), n * epsilon)

    def delta(self, epsilon: float) -> float:
        """Return δ at ε, rounded up; the losses left out have a probability below e^-680."""
        if epsilon >= self.largest:
            return max(0.0, above(-math.expm1(self.never)))
        over = self.losses > epsilon
        finite = float(self.chances[over] @ -np.expm1(epsilon - self.losses[over])) + 1e-290
        if finite >= 1:
            return 1.0
        return min(1.0, above(-math.expm1(self.never + math.log1p(-finite))))


def gaussian_delta(*, epsilon: float, mu: float) -> float:
    """Return δ of Gaussian noise at ε, exactly (Balle and Wang; guarantee.md, Theorem 7).

        δ_G(ε; μ) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ),   μ = (L2 sensitivity) / σ

    Rounded up.
    """
    if not (epsilon >= 0 and 0 <= mu < math.inf):
        raise BudgetError(f"need ε ≥ 0 and 0 ≤ μ < ∞; got ε = {epsilon}, μ = {mu}")
    if epsilon == math.inf:
        return 0.0
    return float(gaussian_deltas(np.array([epsilon]), mu=mu)[0])


def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Return the largest μ at which Gaussian noise is (ε, δ), rounded down; σ = Δ₂ / μ."""
    if not (0 <= epsilon < math.inf and 0 < delta < 1):
        raise BudgetError(f"Gaussian noise: need 0 ≤ ε < ∞, 0 < δ < 1; got {epsilon}, {delta}")
    # As 1/μ, because δ falls with it; δ_G(ε; μ) ≤ μ/√(2π), so half of that bound is enough.
    inverse = crossing(
        lambda x: x > 0 and gaussian_delta(epsilon=epsilon, mu=1 / x) <= delta, 1 / delta
    )
    return 1 / inverse * (1 - 2.0**-50)


def gaussian_epsilon(*, mu: float, delta: float) -> float:
    """Return the smallest ε at which Gaussian noise of μ is (ε, δ), rounded up."""
    if not (0 <= mu < math.inf and 0 < delta < 1):
        raise BudgetError(f"Gaussian noise: need 0 ≤ μ < ∞, 0 < δ < 1; got {mu}, {delta}")
    # Pr{N > x} ≤ e^(-x²/2), so δ_G(μ²/2 + μ x) ≤ δ at this x.
    high = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 1e-9
    return crossing(lambda e: gaussian_delta(epsilon=e, mu=mu) <= delta, high)


@dataclass(frozen=True, kw_only=True)
class TableNoise:
    """The noise of each cell of m tables: a law and its scale, b = 1/ε or σ."""

    law: Literal["discrete_laplace", "rounded_gaussian"]
    scale: float

    @property
    def deviation(self) -> float:
        """The standard deviation; of the continuous law, near enough to compare."""
        return self.scale * (math.sqrt(2) if self.law == "discrete_laplace" else 1.0)


def tables_noise(*, tables: int, epsilon: float, delta: float) -> TableNoise:
    """Return the smaller of two noises for m tables of counts (guarantee.md, Composition).

        Laplace:  b = m / ε            Gaussian:  σ = √m / μ,   δ_G(ε; μ) = δ

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each table by one.
        Covers: all tables, (ε, δ); Laplace noise leaves δ unused, but for the table's ``tv``.
        Assumes: independent noise in every cell, empty ones too.
    """
    if not (tables >= 1 and 0 < epsilon < math.inf):
        raise BudgetError(f"need m ≥ 1 and 0 < ε < ∞; got m = {tables}, ε = {epsilon}")
    laplace = TableNoise(law="discrete_laplace", scale=above(tables / epsilon))
    if delta == 0:
        return laplace
    sigma = above(math.sqrt(tables) / gaussian_mu(epsilon=epsilon, delta=delta))
    gaussian = TableNoise(law="rounded_gaussian", scale=sigma)
    return min(laplace, gaussian, key=lambda noise: noise.deviation)


def crossing(enough: Callable[[float], bool], high: float) -> float:
    """Return a number that is enough, within an ulp or so of the smallest; ``high`` is enough."""
    if not enough(high):
        raise BudgetError("nothing that can be computed with is enough: ask for a larger δ")
    low = 0.0
    if enough(low):
        return low
    while (half := (low + high) / 2) not in (low, high) and high - low > 2.0**-50 * high:
        low, high = (low, half) if enough(half) else (half, high)
    return high


def _expm1(x: float) -> float:
    """Return e^x - 1, infinite where no double holds it."""
    return math.expm1(x) if x < 709 else math.inf
