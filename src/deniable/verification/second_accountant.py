"""Second, independent privacy accountant: recompute ε from the spends listed in a manifest.

It shares no code with the first accountant (``privacy/accountant.py``), which discretises privacy
loss distributions on a grid where it has no closed form. This one always sums exactly. All
Gaussian noise together has a single normal privacy loss. Every other noise law has a loss with
finitely many values, plus an outcome of infinite loss. Hence

    δ(ε) = infinity_mass + Σ_l p_l · δ_G(ε - l; μ)

plus the error of the noise tables (``MixtureLoss.delta``). Sums are rounded up by less than one
part in 10^8. The first accountant may exceed them, because of its grid, but must not be below.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from scipy.special import erfcx, gammaln, ndtr

from deniable.arrays import Reals
from deniable.errors import VerificationError
from deniable.verification.manifest_spend import ManifestSpend, require

# A claimed ε may be below ours by floating-point error only, relative to ours.
MAX_SHORTFALL = 1e-8
# It may exceed ours by this fraction, plus one step of the first accountant's grid per loss.
MAX_EXCESS = 0.02
ACCOUNTANT_GRID = 1e-4

_WEIGHT_UNIT = 2.0**-128  # weights in noise tables are integer multiples of it
# Noise is cut at these multiples of its scale.
_LAPLACE_CUTOFF, _GAUSSIAN_CUTOFF = 112 * math.log(2), 12.5
# Tables with a larger r are computed in double precision, with at most this error in ln weight.
_MAX_EXACT_LAPLACE_R, _MAX_EXACT_GAUSSIAN_R = 2**15, 2**7
_DOUBLE_LOG_ERROR = 2 * math.atanh(2.0**-43)
_MIN_LOG_PROBABILITY = -95.0  # a loss of smaller probability counts as infinite
_MAX_LOSS_VALUES, _MAX_LOSS_PAIRS = 2**18, 2**23
_MAX_REPEATS, _MAX_EPSILON = 2**24, 1e8


@dataclass(frozen=True, kw_only=True)
class MixtureLoss:
    """Privacy loss distribution: a normal loss plus an independent loss with finitely many values.

    Attributes:
        mu_squared: μ² of the normal part.
        values: The possible values of the discrete part.
        probabilities: Their probabilities; with ``infinity_mass`` they sum to one or slightly more.
        infinity_mass: Probability of an outcome that is impossible under the neighbouring table.
        log_error: Largest error of ln(probability) in the noise tables.
        tv_error: Further error of the noise tables, in total variation.
    """

    mu_squared: float = 0.0
    values: Reals = field(default_factory=lambda: np.zeros(1))
    probabilities: Reals = field(default_factory=lambda: np.ones(1))
    infinity_mass: float = 0.0
    log_error: float = 0.0
    tv_error: float = 0.0

    def compose(self, other: "MixtureLoss") -> "MixtureLoss":
        """Compose two independent losses."""
        pairs = len(self.values) * len(other.values)
        require(pairs <= _MAX_LOSS_PAIRS, "too many different kinds of noise to audit")
        values = np.add.outer(self.values, other.values).ravel()
        probabilities = np.multiply.outer(self.probabilities, other.probabilities).ravel()
        if len(values) > _MAX_LOSS_VALUES:
            width = np.ptp(values) / _MAX_LOSS_VALUES
            unique, place = np.unique(np.ceil(values / width), return_inverse=True)
            values, probabilities = unique * width, np.bincount(place, weights=probabilities)
        one, two = self.infinity_mass, other.infinity_mass
        return MixtureLoss(
            mu_squared=self.mu_squared + other.mu_squared,
            values=values,
            probabilities=probabilities,
            infinity_mass=one + two - one * two,
            log_error=self.log_error + other.log_error,
            tv_error=self.tv_error + other.tv_error,
        )

    def delta(self, epsilon: float) -> float:
        """Compute δ' at ε, rounded up: e^log_error · (δ(ε - log_error) + (1 + e^ε) · tv_error)."""
        left = epsilon - self.log_error - self.values
        finite = float(self.probabilities @ _gaussian_delta(left, math.sqrt(self.mu_squared)))
        ideal = self.infinity_mass + finite
        tables = (1 + math.exp(min(epsilon, 700.0))) * self.tv_error if self.tv_error else 0.0
        return math.exp(self.log_error) * (ideal + tables) * (1 + 1e-12)


def _gaussian_delta(epsilon: Reals, mu: float) -> Reals:
    """Compute δ_G(ε; μ) of the Gaussian mechanism for ε of either sign, rounded up.

        δ_G = Φ(a) - e^ε Φ(a - μ),   a = μ/2 - ε/μ;   at μ = 0: max(0, 1 - e^ε)

    For ε ≥ 0 the second term is ½ e^(-a²/2) erfcx((μ - a)/√2), which does not overflow.
    """
    if mu == 0:
        at_zero: Reals = -np.expm1(np.minimum(epsilon, 0.0))
        return at_zero
    a = mu / 2 - epsilon / mu
    first: Reals = ndtr(a)
    upper = np.maximum(mu - a, 0.0) / math.sqrt(2)
    second = np.where(
        epsilon >= 0,
        0.5 * np.exp(-a * a / 2) * erfcx(upper),
        np.exp(np.minimum(epsilon, 0.0)) * ndtr(a - mu),
    )
    difference: Reals = np.maximum(first - second, 0.0) + 1e-14 * first
    return difference


def privacy_loss(spend: ManifestSpend) -> MixtureLoss:
    """Compute the privacy loss distribution of one spend.

    Raises:
        VerificationError: The spend has no noise, or noise of unknown cost.
    """
    if spend.each is not None:
        return _stated_loss(spend, *spend.each)
    if spend.law == "rounded_gaussian":
        return _rounded_gaussian(spend)
    if spend.law == "discrete_laplace":
        return _discrete_laplace(spend.scale[0], spend.sensitivity, spend.moved)
    require(spend.sensitivity == 1, f"{spend.what}: bounded noise must have sensitivity 1")
    if spend.law == "truncated_geometric":
        return _truncated_geometric(spend.scale[0], spend.r, spend.moved)
    raise VerificationError(f"{spend.what}: no noise, so no privacy")


def _binomial_loss(step: float, up: float, down: float, number: int) -> MixtureLoss:
    """Compose ``number`` losses of +step or -step: (2i - number) · step, binomially distributed.

    ``up`` and ``down`` are the probabilities of one loss; the rest has an infinite loss, which the
    caller adds.
    """
    require(number <= _MAX_REPEATS, f"{number:,} spends of one kind are too many to audit")
    hits = np.arange(number + 1, dtype=np.float64)
    logs = gammaln(number + 1) - gammaln(hits + 1) - gammaln(number - hits + 1)
    logs += hits * math.log(up) + (number - hits) * math.log(down)
    likely = logs > _MIN_LOG_PROBABILITY
    probabilities = np.exp(logs[likely]) * (1 + 1e-14 * (number + 8))
    rare = (number + 1 - int(likely.sum())) * math.exp(_MIN_LOG_PROBABILITY)
    values = (2 * hits[likely] - number) * step
    return MixtureLoss(values=values, probabilities=probabilities, infinity_mass=rare)


def _stated_loss(spend: ManifestSpend, epsilon: float, delta: float) -> MixtureLoss:
    """Compute the worst-case loss of n-fold (ε, δ) (Kairouz, Oh and Viswanath, Theorem 3.3).

    The theorem that states (ε, δ) assumes ideal noise; the noise table's error is added to each.
    """
    laplace = spend.law == "discrete_laplace"
    require(laplace, f"{spend.what}: costs are stated by theorem for discrete Laplace noise only")
    require(0 <= delta < 1 and epsilon < 700, f"{spend.what}: the stated cost is not finite")
    log_error, tv_error = _laplace_table_error(spend.scale[0])
    loss_bound = epsilon + log_error
    each = math.exp(log_error) * (delta + (1 + math.exp(loss_bound)) * tv_error)
    up = (1 - each) / (1 + math.exp(-loss_bound))
    loss = _binomial_loss(loss_bound, up, math.exp(-loss_bound) * up, spend.times)
    infinite = -math.expm1(spend.times * math.log1p(-each))
    return replace(loss, infinity_mass=loss.infinity_mass + infinite)


def _discrete_laplace(epsilon: float, step: int, moved: int) -> MixtureLoss:
    """Compute the loss of discrete Laplace noise: at most step·ε in absolute value.

    Exact for a step of one; an upper bound for longer steps.
    """
    loss_bound = step * epsilon
    up = 1 / (1 + math.exp(-loss_bound))
    log_error, tv_error = _laplace_table_error(epsilon)
    loss = _binomial_loss(loss_bound, up, math.exp(-loss_bound) * up, moved)
    return replace(loss, log_error=moved * log_error, tv_error=moved * tv_error)


def _laplace_table_error(epsilon: float) -> tuple[float, float]:
    """Bound log_error (double precision) and tv_error (rounding and cutoff) of a Laplace table."""
    r = math.floor(_LAPLACE_CUTOFF / epsilon)
    cut = 2 * math.exp(-epsilon * (r + 1)) / (1 + math.exp(-epsilon))
    log_error = _DOUBLE_LOG_ERROR if r > _MAX_EXACT_LAPLACE_R else 0.0
    return log_error, 2 * (r + 2) * _WEIGHT_UNIT + cut


def _truncated_geometric(epsilon: float, r: int, moved: int) -> MixtureLoss:
    """Compute the loss +ε or -ε, infinite with probability g(r) (guarantee.md, Theorem 7)."""
    alpha, at_edge = math.exp(-epsilon), math.exp(-epsilon * r)
    total = (1 + alpha - 2 * alpha * at_edge) / -math.expm1(-epsilon)
    half = -math.expm1(-epsilon * r) / -math.expm1(-epsilon) / total
    loss = _binomial_loss(epsilon, half, alpha * half, moved)
    edge = -math.expm1(moved * math.log1p(-at_edge / total))
    error = moved * _bounded_table_error(r)
    return replace(loss, infinity_mass=loss.infinity_mass + edge, tv_error=error)


def _bounded_table_error(r: int) -> float:
    # A long table has a further error of 2^-49; the first accountant, which reads it, adds that.
    return 2 * (r + 2) * _WEIGHT_UNIT


def _rounded_gaussian(spend: ManifestSpend) -> MixtureLoss:
    """Compute the loss of N(0, σ²): rounding is post-processing (guarantee.md, Noise tables)."""
    sigma = spend.scale[0]
    r = math.ceil(_GAUSSIAN_CUTOFF * sigma - 0.5)
    log_error = _DOUBLE_LOG_ERROR if r > _MAX_EXACT_GAUSSIAN_R else 0.0
    tv_error = 2 * (r + 2) * _WEIGHT_UNIT + 2 * float(ndtr(-(r + 0.5) / sigma))
    return MixtureLoss(
        mu_squared=spend.moved * (spend.sensitivity / sigma) ** 2,
        log_error=spend.moved * log_error,
        tv_error=spend.moved * tv_error,
    )


def compute_epsilon(
    spends: Sequence[ManifestSpend], *, delta: float, reserved: MixtureLoss | None = None
) -> float:
    """Compute the smallest ε of all spends on the same data at ``delta``; inf if there is none.

    ``reserved`` is a further loss that is composed with them.

    Privacy:
        Neighbours: add or remove one record of the data that all of them read.
        Covers: all outputs together.
    """
    if any(spend.law == "exact" for spend in spends):
        return math.inf
    alike: dict[ManifestSpend, int] = {}
    for spend in spends:
        kind = replace(spend, what="", part="", claimed=(math.inf, 0.0), moved=1, times=1)
        alike[kind] = alike.get(kind, 0) + spend.moved * spend.times
    # A stated cost has moved = 1, noise has times = 1: the product counts either.
    losses = [privacy_loss(replace(kind, moved=n, times=n)) for kind, n in alike.items()]
    loss = reduce(MixtureLoss.compose, losses, reserved or MixtureLoss())
    low, high = 0.0, 1e-4
    while loss.delta(high) > delta:
        low, high = high, 1.3 * high
        if high > _MAX_EPSILON:
            return math.inf
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if loss.delta(middle) <= delta else (middle, high)
    return high


def compute_split_epsilon(
    spends: Sequence[ManifestSpend], fractions: Mapping[str, float], *, delta: float
) -> float:
    """Compute the smallest ε when each record is in one part (guarantee.md, Theorem 10).

        ε' = ln(1 + Σ p_j (e^ε_j - 1)),   every ε_j at δ' / Σ p_j, the sum over parts in use

    Then Σ p_j δ_j = δ', and the theorem's other term is no larger.
    """
    parts = dict.fromkeys(spend.part for spend in spends)
    require(all(part in fractions for part in parts), "a part of the data has no fraction")
    shares = [fractions[part] for part in parts]
    valid = all(type(p) is float and 0 < p <= 1 for p in fractions.values())
    require(valid and math.fsum(fractions.values()) <= 1 + 1e-12, "the fractions sum to over 1")
    # In log space, since e^ε_j may overflow: ε' = ln(1 - Σ p_j + Σ p_j e^ε_j).
    total = math.log(max(1 - math.fsum(shares), 1e-300))
    for part, share in zip(parts, shares, strict=True):
        in_part = [spend for spend in spends if spend.part == part]
        each = compute_epsilon(in_part, delta=delta / math.fsum(shares))
        total = float(np.logaddexp(total, math.log(share) + each))
    return total


def randomized_test_cost(
    *, k: int, epsilon0: float, t: int, gamma: float, dummies: int
) -> tuple[float, float]:
    """Compute (ε, δ) of one candidate of the randomized test (guarantee.md, Theorem 4').

    ε = ε0 + ln(1 + γ/t),   δ = α0^(k-t) / (1 + α0),   α0 = e^-ε0,   with ⌈t/γ⌉ dummy seeds
    """
    require(1 <= t < k and gamma >= 1 and epsilon0 > 0, "Theorem 4' needs 1 ≤ t < k, γ ≥ 1, ε0 > 0")
    require(dummies == math.ceil(t / gamma), f"Theorem 4' needs ⌈t/γ⌉ dummy seeds, not {dummies}")
    delta = math.exp(-epsilon0 * (k - t)) / (1 + math.exp(-epsilon0))
    return epsilon0 + math.log1p(gamma / t), delta


def subtract_draft_errors(
    epsilon: float, delta: float, draft: Mapping[str, float]
) -> tuple[float, float]:
    """Subtract from a total what a private draft adds to its Gaussian noise: ε and δ that are left.

    Three things (guarantee.md, Theorems 7b and 14): the probability that a list shows a text of a
    single row, ε for hiding such texts, and the error of the tables of its noise.
    """
    own = _draft_epsilon_errors(draft)
    tables = (1 + math.exp(min(epsilon, 700.0))) * _draft_histograms(draft) * 2.0**-99
    left = epsilon - own, delta - draft["text_delta"] - tables
    require(min(left) > 0, "the draft of the schema has used the whole ε or δ")
    return left


def require_draft_noise(draft: Mapping[str, float]) -> None:
    """Require the noise that a draft with this ε and δ has (guarantee.md, Theorem 7b).

    A quarter of δ is for texts, the rest for Gaussian noise; a millionth of both is left for
    rounding. Less noise would cost more than ε and δ, and more was not added. A draft has at least
    one column, so it may list texts.
    """
    require(draft["columns"] >= 1, "a draft has at least one column")
    texts = draft["text_delta"] / draft["delta"]
    require(0.24999 < texts <= 0.25, "the draft's part of δ for texts is not a quarter")
    epsilon = np.array([draft["epsilon"] - _draft_epsilon_errors(draft)])
    most = 0.75 * draft["delta"]
    above, below = (float(_gaussian_delta(epsilon, draft["mu"] * f)[0]) for f in (1.0, 1 + 1e-4))
    require(above <= most < below, "the draft's noise is not that of its ε and δ")


def _draft_histograms(draft: Mapping[str, float]) -> float:
    """Largest number of histograms of a draft: the rows, and five for each column."""
    return 1 + 5 * draft["columns"]


def _draft_epsilon_errors(draft: Mapping[str, float]) -> float:
    """ε of a draft besides its Gaussian noise: hidden texts, and a relative error of each table."""
    return _draft_histograms(draft) * 2.0**-41 - math.log1p(-draft["text_delta"])


def reserved_loss(epsilon: float, delta: float) -> MixtureLoss:
    """Loss of the worst mechanism with this (ε, δ)."""
    up = (1 - delta) / (1 + math.exp(-epsilon))
    loss = _binomial_loss(epsilon, up, math.exp(-epsilon) * up, 1)
    return replace(loss, infinity_mass=loss.infinity_mass + delta)


def entropy_sensitivities(rows_max: int) -> set[int]:
    """List the possible Δ/2 of scaled entropies: Δ = 2·⌈2^s u(n)/2⌉ at n = rows_max, any s.

    u(n) = (n+1)·log2(n+1) - n·log2(n) (guarantee.md, Lemma 9); entropies count 2^s units per bit.
    """
    growth = math.log2(rows_max + 1) + rows_max * math.log1p(1 / rows_max) / math.log(2)
    bounds = (growth * (1 - 1e-12), growth * (1 + 1e-12))
    return {math.ceil(2.0**bits * bound / 2) for bits in range(17) for bound in bounds}


def require_close(
    claimed: float, exact: float, *, losses: int, what: str, at_most: float = 0.0
) -> None:
    """Refuse a claimed ε below the computed one, or far above it.

    Args:
        claimed: ε in the manifest.
        exact: ε computed here.
        losses: Number of losses that the first accountant rounded up to its grid.
        what: Name of the cost, for the error message.
        at_most: ε by a coarser theorem that the first accountant may have used.
    """
    require(
        claimed >= exact * (1 - MAX_SHORTFALL),
        f"{what}: ε = {claimed:.6g} is claimed, but the noise costs {exact:.6g}",
    )
    require(
        claimed <= max(exact, at_most) * (1 + MAX_EXCESS) + ACCOUNTANT_GRID * (losses + 1),
        f"{what}: ε = {claimed:.6g} is claimed, far more than the noise costs: {exact:.6g}",
    )


def count_losses(spends: Sequence[ManifestSpend]) -> int:
    """Count the losses of these spends that an accountant with a grid rounds."""
    return sum(s.times if s.each is not None else min(s.moved, 64) for s in spends)
