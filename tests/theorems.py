"""Theorems of the paper and of guarantee.md that the package does not use.

The tests compare the package with them. Parameters outside a theorem's hypotheses raise
``BudgetError``, as in ``deniable.privacy.theorems``.
"""

import math
from collections.abc import Callable

from deniable.errors import BudgetError
from deniable.privacy.composition import (
    ComposedLoss,
    Guarantee,
    gaussian_delta,
    smallest_sufficient,
    upper_bound,
)
from deniable.privacy.theorems import threshold_tail


def optimal_delta(cost: Guarantee, *, times: int, epsilon: float) -> float:
    """Compute δ of N releases at a total ε (Kairouz, Oh and Viswanath, Theorem 3.3)."""
    return ComposedLoss.of(cost, times).delta(epsilon)


def gaussian_epsilon(*, mu: float, delta: float) -> float:
    """Find the smallest ε at which Gaussian noise of μ is (ε, δ), rounded up."""
    _require(0 <= mu < math.inf and 0 < delta < 1)
    # Pr{N > x} ≤ e^(-x²/2), so δ_G(μ²/2 + μ x) ≤ δ at this x.
    high = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 1e-9
    return smallest_sufficient(lambda e: gaussian_delta(epsilon=e, mu=mu) <= delta, high)


def best_t(cost_at: Callable[[int], Guarantee], *, k: int, delta: float) -> int:
    """Find the largest t in 1 … k - 1 with a δ of at most ``delta``: ε is smallest there."""
    for t in range(k - 1, 0, -1):
        if cost_at(t).delta <= delta:
            return t
    raise BudgetError(f"k = {k} is too small for δ ≤ {delta:.2g}: ask for more plausible seeds")


def laplace_histogram_cost(*, epsilon0: float, k: int, threshold: int) -> Guarantee:
    """Cost of a seed histogram with untruncated discrete Laplace noise (guarantee.md, Theorem 7).

        ε = ε0            δ = Pr{Z ≥ τ - k} = α^(τ - k) / (1 + α),   α = e^-ε0

    A cell of at least ``k`` records is kept if its noisy count is at least τ. One prefix length.
    """
    _require(1 <= k <= threshold)
    delta = threshold_tail(epsilon0=epsilon0, distance=threshold - k)
    return Guarantee(epsilon=epsilon0, delta=delta)


def entropy_sensitivity(n: int) -> float:
    """Sensitivity of an entropy to one more record, in bits (guarantee.md, Lemma 8).

        sup |H(D) - H(D')| = h_b(1 / (n + 1)) = u(n) / (n + 1),   |D| = n, |D'| = n + 1

    Attained by n equal records and one different record.
    """
    _require(n >= 2)
    return upper_bound(entropy_step(n) / (n + 1))


def entropy_step(n: int) -> float:
    """Compute u(n), the most that record n + 1 adds to S = n · H (guarantee.md, Lemma 9).

    u(n) = log2(n + 1) + n log2(1 + 1 / n)
    """
    _require(n >= 0)
    return upper_bound(math.log2(n + 1) + (n * math.log1p(1 / n) / math.log(2) if n else 0.0))


def number_of_entropies(*, attributes: int, bucketed: int) -> int:
    """Count the distinct entropies of structure learning (guarantee.md, Composition).

    H(x_i), H(x_i, x_j), and for each of b attributes with buckets of their own H(bkt x_i) and
    H(x_j, bkt x_i): m(m + 1)/2 + b m, or m(3m + 1)/2 if every attribute has buckets. The paper
    counts m(m + 1).
    """
    m = attributes
    _require(m >= 1 and 0 <= bucketed <= m)
    return m * (m + 1) // 2 + bucketed * m


def structure_mu(*, queries: int, step: int, sigma: float, sigma_n: float) -> float:
    """Compute μ of the noisy entropies and record count together (guarantee.md, Lemma 9).

    μ² = q Δ² / (4 σ²) + 1 / σ_n²
    """
    _require(queries >= 1 and step >= 1 and sigma > 0 and sigma_n > 0)
    return upper_bound(math.hypot(math.sqrt(queries) * step / (2 * sigma), 1 / sigma_n))


def _require(hypotheses: bool) -> None:
    if not hypotheses:
        raise BudgetError("outside the theorem's hypotheses")
