"""Privacy theorems of the paper and of guarantee.md, one function each.

Each function computes the (ε, δ) of one release, or a sensitivity. The theorems hold for ideal
noise. An integer weight table differs from it by ``tv``; ``composition.with_total_variation`` adds
that. Every number is rounded up.
"""

import math
from collections.abc import Callable
from typing import Literal

from deniable.errors import BudgetError
from deniable.privacy.composition import (
    Guarantee,
    advanced_composition,
    sequential_composition,
    upper_bound,
    with_total_variation,
)

LaplaceNoise = Literal["discrete", "continuous"]


def released_record_cost(*, k: int, gamma: float, epsilon0: float, t: int) -> Guarantee:
    """Cost of one released record under the randomized test (Theorem 1, ``thm:dp``).

        ε = ε0 + ln(1 + γ / t)            δ = exp(-ε0 · (k - t))

    A larger ``t`` gives a smaller ε and a larger δ. The theorem also holds for discrete Laplace
    noise, which has no heavier tail.

    Args:
        k: Plausible seeds a candidate needs, before noise; at least 2, so that some t exists.
        gamma: Ratio between the ends of a probability range, γ > 1.
        epsilon0: Threshold noise parameter, ε0 > 0: k̃ = k + Lap(1/ε0).
        t: Range size at which the proof switches from δ to ε, 1 ≤ t < k.

    Raises:
        BudgetError: A parameter is outside the theorem's hypotheses.

    Privacy:
        Neighbours: add or remove one record of D_S; both tables have at least ``k`` records.
        Covers: the released record; the theorem is about sets of records, Y ⊆ U, only.
        Does not cover: the empty outcome, and therefore the pass rate; a second record;
            D_T and D_P, which the model uses.
    """
    _require(
        gamma > 1 and 0 < epsilon0 < math.inf and 1 <= t < k,
        "Theorem 1 needs γ > 1, ε0 > 0 and 1 ≤ t < k; "
        f"got γ = {gamma}, ε0 = {epsilon0}, t = {t}, k = {k}",
    )
    epsilon = epsilon0 + math.log1p(gamma / t)
    return Guarantee(epsilon=upper_bound(epsilon), delta=_exp_above(-epsilon0 * (k - t)))


def candidate_cost(
    *, k: int, epsilon0: float, t: int, gamma: float = 1.0, n_min: int | None = None
) -> Guarantee:
    """Cost of one candidate, released or not, with dummy seeds (guarantee.md, Theorem 4′).

        ε = ε0 + ln(1 + γ / t)
        δ = α0^(k - t) / (1 + α0) · min{ 1, (1 + (t - 1) γ) / (n + 1 + a) },   α0 = e^-ε0

    The seed is drawn from the table and a = ⌈t / γ⌉ dummies. A dummy's candidate always fails.

    Args:
        k: As in ``released_record_cost``.
        epsilon0: Discrete Laplace noise of the threshold, scale 1/ε0.
        t: As in ``released_record_cost``; also determines the number of dummies.
        gamma: Largest ratio of two probabilities in one range; 1 for the prefix model.
        n_min: Public lower bound on the number of records; without it the min is 1.

    Privacy:
        Neighbours: add or remove one record of D_S, of any size, including empty.
        Covers: the record, or its absence; therefore the pass rate, and a seedless record
            released in its place.
        Does not cover: the seed and its plausible-seed count; a second candidate; D_T and D_P.
        Assumes: at least ⌈t / γ⌉ dummies, fresh noise for each candidate.
    """
    require_test(k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    _require(n_min is None or n_min >= 0, f"a table has n ≥ 0 records; got n ≥ {n_min}")
    dummies = math.ceil(t / gamma)
    share = 1.0 if n_min is None else min(1.0, (1 + (t - 1) * gamma) / (n_min + 1 + dummies))
    delta = threshold_tail(epsilon0=epsilon0, distance=k - t) * share
    return Guarantee(
        epsilon=upper_bound(epsilon0 + math.log1p(gamma / t)), delta=upper_bound(delta)
    )


def threshold_tail(*, epsilon0: float, distance: int, noise: LaplaceNoise = "discrete") -> float:
    """Compute the tail Pr{L ≥ distance} of Laplace noise, for a distance ≥ 0.

    discrete: α0^z / (1 + α0), α0 = e^-ε0;  continuous: ½ e^(-ε0 z), smaller by up to a factor 2.
    """
    _require(0 < epsilon0 < math.inf and distance >= 0, "a tail needs ε0 > 0, distance ≥ 0")
    at_zero = 0.5 if noise == "continuous" else 1 / (1 + math.exp(-epsilon0))
    return upper_bound(_exp_above(-epsilon0 * distance) * at_zero)


def trade_off(cost_at: Callable[[int], Guarantee], *, k: int) -> tuple[Guarantee, ...]:
    """List the costs at t = 1 … k - 1, from the smallest δ to the smallest ε."""
    return tuple(cost_at(t) for t in range(1, k))


def geometric_histogram_cost(*, epsilon: float, r: int, tv: float = 0.0) -> Guarantee:
    """Cost of a seed histogram with truncated geometric noise (guarantee.md, Theorem 7).

        δ = g(r) = (1 - α) α^r / (1 + α - 2 α^(r+1)),   α = e^-ε

    It is paid once, for any number of records. Noise is on -r … r. A cell of at least k records
    is kept if its noisy count is at least k + r.

    Args:
        epsilon: ε of the histogram.
        r: Largest noise value, r ≥ 1.
        tv: Total variation of the law's table; (1 + e^ε) · tv is added to δ.

    Privacy:
        Neighbours: add or remove one record of D_S, which moves one cell.
        Covers: the kept cells with their noisy counts, their labels and number, and every
            record generated from them. Each kept cell has at least k records, with certainty.
        Does not cover: exact counts, suppressed cells; the model of the other attributes.
        Assumes: prefix length, k and r fixed independently of D_S; noise independent per cell.
    """
    _require(
        0 < epsilon < math.inf and r >= 1,
        f"Theorem 7 needs a finite ε > 0 and noise up to r ≥ 1; got ε = {epsilon}, r = {r}",
    )
    whole = -math.expm1(-epsilon * (r + 1)) - math.exp(-epsilon) * math.expm1(-epsilon * r)
    edge = upper_bound(-math.expm1(-epsilon) * math.exp(-epsilon * r) / whole * (1 + 1e-12))
    ideal = Guarantee(epsilon=epsilon, delta=min(1.0, edge))
    return with_total_variation(ideal, tv=tv, l0_sensitivity=1)


def paper_entropy_sensitivity(n: int) -> float:
    """Bound the sensitivity of an entropy as in the paper (``eq:gm:entropy_sensitivity``).

        Δ_H ≤ (2 + 1 / ln 2 + 2 log2 n) / n

    The bound is about twice the true sensitivity (guarantee.md, Lemma 8).
    """
    _require(n >= 2, f"an entropy needs n ≥ 2 records; got {n}")
    return upper_bound((2 + 1 / math.log(2) + 2 * math.log2(n)) / n)


def structure_noise(*, queries: int, step: int, mu: float) -> tuple[float, float]:
    """Compute σ of the q centred entropies and σ_n of the record count (guarantee.md, Lemma 9).

        σ² = (Δ²/4) (q + √q) / μ²            σ_n² = (√q + 1) / μ²

    Noise is added to Q_i = S_i - (Δ/2) n and to n. S̃_i = Q̃_i + (Δ/2) ñ then has the least
    variance.

    Args:
        queries: q, the number of entropies.
        step: Δ, the largest change of S by one record; an even integer.
        mu: Budget: μ of the Gaussian mechanism.
    """
    _require(
        queries >= 1 and step >= 2 and step % 2 == 0 and 0 < mu < math.inf,
        f"Lemma 9 needs q ≥ 1, an even Δ ≥ 2 and μ > 0; got {queries}, {step}, {mu}",
    )
    root = math.sqrt(queries)
    return upper_bound(step / 2 * math.sqrt(queries + root) / mu), upper_bound(
        math.sqrt(root + 1) / mu
    )


def paper_structure_cost(
    *, attributes: int, epsilon_h: float, epsilon_n: float, delta: float
) -> Guarantee:
    """Compute the paper's ε_L of structure learning (Sec. 3.5, ``sec:gm:dprivacy``).

        ε_L = ε_n + ε_H √(2 m(m+1) ln(1/δ_L)) + m(m+1) ε_H (e^ε_H - 1)

    Privacy:
        Does not cover: more than m(m + 1) entropies, although structure learning may measure
            more; a Δ_H from a noisy n that is too large. Printed as ``paper_formula``, never
            claimed.
    """
    _require(attributes >= 1, f"need m ≥ 1 attributes; got {attributes}")
    times = attributes * (attributes + 1)
    entropies = advanced_composition(Guarantee(epsilon=epsilon_h), times=times, slack=delta)
    return sequential_composition([Guarantee(epsilon=epsilon_n), entropies])


def paper_parameters_cost(*, attributes: int, epsilon_p: float, delta: float) -> Guarantee:
    """Compute the paper's ε_P of parameter learning (Sec. 3.5, ``sec:gm:dprivacy``).

        ε_P = ε_p √(2 m ln(1/δ_P)) + m ε_p (e^ε_p - 1)

    Privacy:
        Neighbours: add or remove one record of D_P, which moves one cell of each of m tables.
        Covers: the noisy counts of all conditional tables.
    """
    _require(attributes >= 1, f"need m ≥ 1 attributes; got {attributes}")
    return advanced_composition(Guarantee(epsilon=epsilon_p), times=attributes, slack=delta)


def require_test(*, k: int, gamma: float, epsilon0: float, t: int) -> None:
    """Refuse parameters outside the hypotheses on a randomized test."""
    _require(
        1 <= gamma < math.inf and 0 < epsilon0 < math.inf and 1 <= t < k,
        "the randomized test needs γ ≥ 1, ε0 > 0 and 1 ≤ t < k; "
        f"got γ = {gamma}, ε0 = {epsilon0}, t = {t}, k = {k}",
    )


def _exp_above(exponent: float) -> float:
    return upper_bound(math.exp(exponent))


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise BudgetError(otherwise)
