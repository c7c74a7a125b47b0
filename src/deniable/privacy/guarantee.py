"""What one release promises: the paper's theorems and ours, one function each.

All are stated for the ideal noise. A table of integer weights is a little off it, by ``tv`` of
its law: ``composition.with_tables`` adds that. Every number is rounded up.
"""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import logsumexp

from deniable.arrays import Reals
from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee as Guarantee  # noqa: PLC0414 - the type's home to readers
from deniable.privacy.composition import above, advanced, sequential, with_tables

Noise = Literal["discrete", "continuous"]


def of_one_record(*, k: int, gamma: float, epsilon0: float, t: int) -> Guarantee:
    """Return what one released record costs under the randomized test (Theorem 1, ``thm:dp``).

        ε = ε0 + ln(1 + γ / t)            δ = exp(-ε0 · (k - t))

    A larger ``t`` buys a smaller ε with a larger δ; ``best_t`` picks the largest that keeps
    δ under a limit. Holds for discrete Laplace noise too, whose tail is no heavier than this.

    Args:
        k: Plausible seeds a candidate needs, before noise. At least 2, so that some t fits.
        gamma: Width of the geometric range of probabilities, γ > 1.
        epsilon0: Noise of the threshold, ε0 > 0: k̃ = k + Lap(1/ε0).
        t: Where the proof splits small ranges from large ones, 1 ≤ t < k.

    Raises:
        BudgetError: A parameter is outside the theorem's hypotheses; it promises nothing there.

    Privacy:
        Neighbours: add or remove one record of D_S; both tables have at least ``k`` records.
        Covers: which record came out; the theorem speaks of sets of records, Y ⊆ U, only.
        Does not cover: that nothing came out, and so not the pass rate; a second record;
            D_T and D_P, which the model spends.
    """
    _require(
        gamma > 1 and 0 < epsilon0 < math.inf and 1 <= t < k,
        "Theorem 1 needs γ > 1, ε0 > 0 and 1 ≤ t < k; "
        f"got γ = {gamma}, ε0 = {epsilon0}, t = {t}, k = {k}",
    )
    epsilon = epsilon0 + math.log1p(gamma / t)
    return Guarantee(epsilon=above(epsilon), delta=_exp_above(-epsilon0 * (k - t)))


def of_one_record_tight(
    *,
    k: int,
    epsilon0: float,
    t: int,
    gamma: float = 1.0,
    n_min: int | None = None,
    noise: Noise = "discrete",
) -> Guarantee:
    """Return what Theorem 1 should have said (guarantee.md, Theorem 1′).

        ε = max{ ε0 + ln(1 + γ / t), ln(1 + 1 / n) }
        δ = Pr{L ≥ k - t} · min{ 1, (1 + (t - 1) γ) / (n + 1) }

    The prefix model has γ = 1, whatever γ was asked for (Theorem 6).

    Args:
        k: As in ``of_one_record``.
        epsilon0: As in ``of_one_record``.
        t: As in ``of_one_record``.
        gamma: Most that probabilities within a range differ by, γ ≥ 1.
        n_min: A public lower bound of the number of records; without one the min is 1.
        noise: Law of the threshold's noise L; ours is discrete, the paper's continuous.

    Privacy:
        Neighbours: add or remove one record of D_S; both tables have at least ``n_min``, or
            without it ``k``, records.
        Covers: which record came out, Y ⊆ U.
        Does not cover: that nothing came out, and so not the pass rate; a second record;
            D_T and D_P, which the model spends.
    """
    n = k if n_min is None else n_min
    _require_test(k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    _require(n >= 1, f"Theorem 1′ needs a table with a record; got n ≥ {n_min}")
    share = 1.0 if n_min is None else min(1.0, (1 + (t - 1) * gamma) / (n + 1))
    epsilon = max(epsilon0 + math.log1p(gamma / t), math.log1p(1 / n))
    delta = threshold_tail(epsilon0=epsilon0, distance=k - t, noise=noise) * share
    return Guarantee(epsilon=above(epsilon), delta=above(delta))


def of_one_candidate(
    *, k: int, epsilon0: float, t: int, gamma: float = 1.0, n_min: int | None = None
) -> Guarantee:
    """Return what one candidate costs, released or not, with dummy seeds (Theorem 4′).

        ε = ε0 + ln(1 + γ / t)
        δ = α0^(k - t) / (1 + α0) · min{ 1, (1 + (t - 1) γ) / (n + 1 + a) },   α0 = e^-ε0

    The seed is drawn from the table and a = ⌈t / γ⌉ dummies whose candidates always fail.

    Args:
        k: As in ``of_one_record``.
        epsilon0: Discrete Laplace noise of the threshold, scale 1/ε0.
        t: As in ``of_one_record``; it also fixes the number of dummies.
        gamma: Most that probabilities within a range differ by; 1 for the prefix model.
        n_min: A public lower bound of the number of records; without one the min is 1.

    Privacy:
        Neighbours: add or remove one record of D_S, of any size, empty too.
        Covers: the record, or that there is none; so the pass rate, and a seedless record in
            place of none.
        Does not cover: the seed and its plausible-seed count; a second candidate; D_T and D_P.
        Assumes: ⌈t / γ⌉ dummies at least, fresh noise for each candidate.
    """
    _require_test(k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    _require(n_min is None or n_min >= 0, f"a table has n ≥ 0 records; got n ≥ {n_min}")
    dummies = math.ceil(t / gamma)
    share = 1.0 if n_min is None else min(1.0, (1 + (t - 1) * gamma) / (n_min + 1 + dummies))
    delta = threshold_tail(epsilon0=epsilon0, distance=k - t) * share
    return Guarantee(epsilon=above(epsilon0 + math.log1p(gamma / t)), delta=above(delta))


def threshold_tail(*, epsilon0: float, distance: int, noise: Noise = "discrete") -> float:
    """Return Pr{L ≥ distance} of Laplace noise, for a distance ≥ 0.

    discrete: α0^z / (1 + α0), α0 = e^-ε0;  continuous: ½ e^(-ε0 z), up to twice smaller.
    """
    _require(0 < epsilon0 < math.inf and distance >= 0, "a tail needs ε0 > 0, distance ≥ 0")
    at_zero = 0.5 if noise == "continuous" else 1 / (1 + math.exp(-epsilon0))
    return above(_exp_above(-epsilon0 * distance) * at_zero)


def best_t(of: Callable[[int], Guarantee], *, k: int, delta: float) -> int:
    """Return the largest t whose δ is at most ``delta``: there ε is smallest.

    Args:
        of: What is promised at t, one of the functions above with the rest filled in.
        k: Plausible seeds needed; t is looked for in 1 … k - 1.
        delta: The limit.
    """
    for t in range(k - 1, 0, -1):
        if of(t).delta <= delta:
            return t
    raise BudgetError(f"k = {k} is too small for δ ≤ {delta:.2g}: ask for more plausible seeds")


def trade_off(of: Callable[[int], Guarantee], *, k: int) -> tuple[Guarantee, ...]:
    """Return what is promised at t = 1 … k - 1: from the smallest δ to the smallest ε."""
    return tuple(of(t) for t in range(1, k))


def k_for(*, t: int, epsilon0: float, n: int, c: float) -> int:
    """Return the smallest k with δ ≤ n^-c in Theorem 1: k ≥ t + (c / ε0) ln n."""
    _require(
        t >= 1 and 0 < epsilon0 < math.inf and n >= 2 and 1 < c < math.inf,
        f"need t ≥ 1, ε0 > 0, n ≥ 2, c > 1; got t = {t}, ε0 = {epsilon0}, n = {n}, c = {c}",
    )
    return t + math.ceil(above(c / epsilon0 * math.log(n)))


def one_shot_geometric(*, epsilon: float, r: int, lengths: int = 1, tv: float = 0.0) -> Guarantee:
    """Return what a histogram of seeds costs, once, for any number of records (Theorem 7).

        L = 1:  δ = g(r) = (1 - α) α^r / (1 + α - 2 α^(r+1)),   α = e^-ε
        L > 1:  δ = 1 - (1 - g(r))^L,   α = e^(-ε/L)

    Noise is truncated geometric on -r … r; a cell of at least k records is kept when its noisy
    count is at least k + r. With ε/L for each of L lengths no finite loss exceeds ε.

    Args:
        epsilon: ε of all lengths together.
        r: The largest noise, r ≥ 1.
        lengths: L, the prefix lengths that have a histogram.
        tv: Of the law's table; (1 + e^ε) · tv · L is added to δ.

    Privacy:
        Neighbours: add or remove one record of D_S, which moves one cell of each length.
        Covers: the kept cells with their noisy counts, their labels and number, and every
            record made from them; with certainty each kept cell has at least k records.
        Does not cover: exact counts, suppressed cells; the model that fills in the rest.
        Assumes: lengths, k and r fixed without looking at D_S; noise independent per cell.
    """
    _require_one_shot(epsilon=epsilon, r=r, lengths=lengths)
    each = epsilon / lengths
    whole = -math.expm1(-each * (r + 1)) - math.exp(-each) * math.expm1(-each * r)
    edge = -math.expm1(-each) * math.exp(-each * r) / whole * (1 + 1e-12)
    # L times the double ε / L may pass ε by an ulp: what that shows is below this.
    over = 2.0**-50 * epsilon if lengths > 1 else 0.0
    ideal = above(over - math.expm1(lengths * math.log1p(-edge)))
    return with_tables(Guarantee(epsilon=epsilon, delta=min(1.0, ideal)), tv=tv, moved=lengths)


def one_shot_gaussian(
    *, epsilon: float, sigma: float, r: int, lengths: int = 1, tv: float = 0.0
) -> Guarantee:
    """Return the same for a discrete Gaussian on -r … r (guarantee.md, Theorem 7).

        δ = 1 - (1 - g(r))^L + Σ_s G_L(s) · max(0, 1 - e^(ε - loss(s))),
        loss(s) = (2 s + L) / (2 σ²)

    G_L is the L-fold convolution of g on -r … r - 1: the loss depends on the sum s alone.
    For four lengths or more r is smaller than with ``one_shot_geometric``.

    Args:
        epsilon: The ε at which δ is wanted.
        sigma: Scale of the noise.
        r: The largest noise, r ≥ 1.
        lengths: L, the prefix lengths that have a histogram.
        tv: Of the law's table; (1 + e^ε) · tv · L is added to δ.

    Privacy:
        Neighbours, Covers, Does not cover, Assumes: as ``one_shot_geometric``.
    """
    _require_one_shot(epsilon=epsilon, r=r, lengths=lengths)
    _require(0 < sigma < math.inf, f"Gaussian noise needs 0 < σ < ∞; got {sigma}")
    log_g = -0.5 * (np.arange(-r, r + 1) / sigma) ** 2
    log_g -= logsumexp(log_g)
    finite = _finite_losses(log_g[:-1], epsilon=epsilon, sigma=sigma, lengths=lengths)
    infinite = -math.expm1(lengths * math.log1p(-math.exp(log_g[-1])))
    ideal = Guarantee(epsilon=epsilon, delta=min(1.0, (finite + infinite) * (1 + 1e-11)))
    return with_tables(ideal, tv=tv, moved=lengths)


def _finite_losses(log_g: Reals, *, epsilon: float, sigma: float, lengths: int) -> float:
    """Return the sum over s of ``one_shot_gaussian``, rounded up; ``log_g`` is of -r … r - 1."""
    r = len(log_g) // 2
    # Tilted by e^(θz), so that the sums of loss ε are in the middle and not in a tail, where a
    # transform has no digits; it errs by some log2(size) ulp of the 2-norm, at every point.
    tilt = max(0.0, epsilon / lengths - 1 / (2 * sigma**2))
    log_tilted = log_g + tilt * np.arange(-r, r)
    log_mass = logsumexp(log_tilted)
    tilted = np.exp(log_tilted - log_mass)
    size = 2 ** math.ceil(math.log2(2 * r * lengths))
    convolved = np.fft.irfft(np.fft.rfft(tilted, size) ** lengths, size)
    error = 2.0**-50 * lengths * math.log2(size) * float(tilted @ tilted)
    s = np.arange(2 * r * lengths - lengths + 1) - r * lengths
    loss = (2 * s + lengths) / (2 * sigma**2)
    over = loss > epsilon
    untilt = np.exp(lengths * log_mass - tilt * s[over]) * -np.expm1(epsilon - loss[over])
    return float((np.maximum(convolved[: len(s)][over], 0.0) + error) @ untilt)


def one_shot_laplace(*, epsilon0: float, k: int, threshold: int) -> Guarantee:
    """Return what a histogram costs with untruncated noise and a floor (guarantee.md, Theorem 7).

        ε = ε0            δ = Pr{Z ≥ τ - k} = α^(τ - k) / (1 + α),   α = e^-ε0

    A cell of at least ``k`` records gets discrete Laplace noise and is kept at τ or more.

    Privacy:
        Neighbours: add or remove one record of D_S, which moves one cell.
        Covers: as ``one_shot_geometric``, for one prefix length.
        Does not cover: a second length; that composes.
    """
    _require(
        1 <= k <= threshold, f"a floor k needs 1 ≤ k ≤ τ; got k = {k}, threshold = {threshold}"
    )
    delta = threshold_tail(epsilon0=epsilon0, distance=threshold - k)
    return Guarantee(epsilon=epsilon0, delta=delta)


def entropy_sensitivity(n: int) -> float:
    """Return the most that one more record changes an entropy, in bits (guarantee.md, Lemma 8).

        sup |H(D) - H(D')| = h_b(1 / (n + 1)) = u(n) / (n + 1),   |D| = n, |D'| = n + 1

    Attained by n equal records and one unlike them. Confidential, as n is: prefer
    ``entropy_step``, which needs no n.
    """
    _require(n >= 2, f"Lemma 8 needs n ≥ 2 records; got {n}")
    return above(entropy_step(n) / (n + 1))


def entropy_sensitivity_of_paper(n: int) -> float:
    """Return the paper's bound of the same, twice too large (``eq:gm:entropy_sensitivity``).

    Δ_H ≤ (2 + 1 / ln 2 + 2 log2 n) / n
    """
    _require(n >= 2, f"an entropy needs n ≥ 2 records; got {n}")
    return above((2 + 1 / math.log(2) + 2 * math.log2(n)) / n)


def entropy_step(n: int) -> float:
    """Return u(n), the most that the (n + 1)-th record adds to S = n · H (guarantee.md, Lemma 9).

        u(n) = log2(n + 1) + n log2(1 + 1 / n)

    One more record changes S by between 0 and u(n).
    """
    _require(n >= 0, f"Lemma 9 needs n ≥ 0 records; got {n}")
    return above(math.log2(n + 1) + (n * math.log1p(1 / n) / math.log(2) if n else 0.0))


def number_of_entropies(*, attributes: int, bucketed: int) -> int:
    """Return how many distinct entropies structure learning asks for (guarantee.md, Composition).

    H(x_i), H(x_i, x_j), and for each of b attributes with buckets of their own H(bkt x_i) and
    H(x_j, bkt x_i): m(m + 1)/2 + b m of them, m(3m + 1)/2 when every attribute has buckets.
    The paper counts m(m + 1).
    """
    m = attributes
    _require(m >= 1 and 0 <= bucketed <= m, f"need 0 ≤ b ≤ m, m ≥ 1; got b = {bucketed}, m = {m}")
    return m * (m + 1) // 2 + bucketed * m


def structure_noise(*, queries: int, step: int, mu: float) -> tuple[float, float]:
    """Return σ of the q centred entropies and σ_n of the count, by Lemma 9 (guarantee.md, Lemma 9).

        σ² = (Δ²/4) (q + √q) / μ²            σ_n² = (√q + 1) / μ²

    Q_i = S_i - (Δ/2) n and n are noised; S̃_i = Q̃_i + (Δ/2) ñ then has the least variance.

    Args:
        queries: q, how many entropies are asked for.
        step: Δ, the even whole number that no record moves S by more than.
        mu: What may be spent: a Gaussian mechanism of this μ.
    """
    _require(
        queries >= 1 and step >= 2 and step % 2 == 0 and 0 < mu < math.inf,
        f"Lemma 9 needs q ≥ 1, an even Δ ≥ 2 and μ > 0; got {queries}, {step}, {mu}",
    )
    root = math.sqrt(queries)
    return above(step / 2 * math.sqrt(queries + root) / mu), above(math.sqrt(root + 1) / mu)


def structure_mu(*, queries: int, step: int, sigma: float, sigma_n: float) -> float:
    """Return μ of the noisy entropies and count together (guarantee.md, Lemma 9).

        μ² = q Δ² / (4 σ²) + 1 / σ_n²

    Privacy:
        Neighbours: add or remove one record of D_T.
        Covers: all Q̃_i and ñ, as a Gaussian mechanism of μ, and every structure made of them.
        Assumes: S in the integer form of section 4, so that it moves by 0 … Δ for every n.
    """
    _require(
        queries >= 1 and step >= 1 and sigma > 0 and sigma_n > 0,
        f"need q, Δ ≥ 1, σ, σ_n > 0; got {queries}, {step}, {sigma}, {sigma_n}",
    )
    return above(math.hypot(math.sqrt(queries) * step / (2 * sigma), 1 / sigma_n))


def structure_of_paper(
    *, attributes: int, epsilon_h: float, epsilon_n: float, delta: float
) -> Guarantee:
    """Return the paper's ε_L of structure learning (Sec. 3.5, ``sec:gm:dprivacy``).

        ε_L = ε_n + ε_H √(2 m(m+1) ln(1/δ_L)) + m(m+1) ε_H (e^ε_H - 1)

    Privacy:
        Does not cover: more than m(m + 1) entropies (``number_of_entropies`` are asked for);
            a Δ_H from a noisy n that came out too large. Printed as ``paper_formula``, never
            claimed.
    """
    _require(attributes >= 1, f"need m ≥ 1 attributes; got {attributes}")
    times = attributes * (attributes + 1)
    entropies = advanced(Guarantee(epsilon=epsilon_h), times=times, slack=delta)
    return sequential([Guarantee(epsilon=epsilon_n), entropies])


def parameters_of_paper(*, attributes: int, epsilon_p: float, delta: float) -> Guarantee:
    """Return the paper's ε_P of parameter learning (Sec. 3.5, ``sec:gm:dprivacy``).

        ε_P = ε_p √(2 m ln(1/δ_P)) + m ε_p (e^ε_p - 1)

    Privacy:
        Neighbours: add or remove one record of D_P, which moves one cell of each of m tables.
        Covers: the noisy counts of all conditional tables.
    """
    _require(attributes >= 1, f"need m ≥ 1 attributes; got {attributes}")
    return advanced(Guarantee(epsilon=epsilon_p), times=attributes, slack=delta)


def _exp_above(exponent: float) -> float:
    return above(math.exp(exponent))


def _require_test(*, k: int, gamma: float, epsilon0: float, t: int) -> None:
    _require(
        1 <= gamma < math.inf and 0 < epsilon0 < math.inf and 1 <= t < k,
        "the randomized test needs γ ≥ 1, ε0 > 0 and 1 ≤ t < k; "
        f"got γ = {gamma}, ε0 = {epsilon0}, t = {t}, k = {k}",
    )


def _require_one_shot(*, epsilon: float, r: int, lengths: int) -> None:
    _require(
        0 < epsilon < math.inf and r >= 1 and lengths >= 1,
        f"Theorem 7 needs 0 < ε < ∞, r ≥ 1, L ≥ 1; got {epsilon}, {r}, {lengths}",
    )


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise BudgetError(otherwise)
