"""A second accountant: what the uses of the data that a manifest lists must cost.

It shares no code with the first. Where that has no closed form it puts privacy losses on a grid
and convolves them; this one adds up exactly, whatever the uses. All Gaussian noise together has one
normal loss. Every other law of ours has a loss with finitely many values, and an outcome that tells
all. So

    δ(ε) = never + Σ_l p_l · δ_G(ε - l; μ)

and what tables of noise are off by comes on top (``Loss.delta``). Sums are rounded up, by less than
one part in 10^8. The first accountant may lie above them, by its grid, and not below.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from scipy.special import erfcx, gammaln, ndtr

from deniable.arrays import Reals
from deniable.errors import VerificationError

# What each law needs to be known by.
LAWS: dict[str, tuple[str, ...]] = {
    "exact": (),
    "rounded_gaussian": ("sigma",),
    "discrete_laplace": ("epsilon",),
    "truncated_geometric": ("epsilon", "r"),
    "truncated_discrete_gaussian": ("sigma", "r"),
}
_FIELDS = ("what", "part", "law", "sensitivity", "moved", "times", "each", "epsilon", "delta")

# A claim may lie this much below our number, as doubles err, and no more.
BELOW = 1e-8
# And so much above it: a share, and a step of the first accountant's grid for every loss.
ABOVE = 0.02
GRID = 1e-4

_UNIT = 2.0**-128  # weights of noise are whole multiples of it
_REACH = (112 * math.log(2), 12.5)  # where Laplace and Gaussian noise is cut, in its scale
# How long a table is before it is computed in doubles, and the factor these may be off by.
_FINE, _FINE_GAUSSIAN = 2**15, 2**7
_FACTOR = 2 * math.atanh(2.0**-43)
_RARE = -95.0  # ln of a probability that is counted as "tells all"
_MOST_ATOMS, _MOST_PAIRS = 2**18, 2**23
_MOST_STEPS, _MOST_TIMES, _MOST_EPSILON = 2**13, 2**24, 1e8


def require(condition: object, otherwise: str) -> None:
    """Refuse what is not so."""
    if not condition:
        raise VerificationError(otherwise)


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of the data, as a manifest lists it.

    Attributes:
        what: What was noised.
        part: The part of the data it was counted in.
        law: The name of the noise.
        scale: What the noise is known by.
        sensitivity: The most that one record moves a number.
        moved: How many numbers one record moves.
        times: How often a cost that a theorem states was paid.
        each: That cost, (ε, δ).
        claimed: (ε, δ) that the manifest gives it, alone.
    """

    what: str
    part: str
    law: str
    scale: tuple[float, ...] = ()
    sensitivity: int = 1
    moved: int = 1
    times: int = 1
    each: tuple[float, float] | None = None
    claimed: tuple[float, float] = (math.inf, 0.0)

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> "Use":
        """Return the use that an entry of a manifest says, or refuse the entry."""
        require(tuple(entry) == _FIELDS, f"an entry of the ledger has not the fields {_FIELDS}")
        law = dict(entry["law"])
        name = law.pop("name")
        what = entry["what"]
        require(name in LAWS and tuple(law) == LAWS[name], f"{what}: no known law of noise")
        numbers = [entry["sensitivity"], entry["moved"], entry["times"]]
        whole = all(type(number) is int and number >= 1 for number in numbers)
        require(whole, f"{what}: a record moves at least one number by one")
        for key, value in law.items():
            right = type(value) is (int if key == "r" else float) and 0 < value < math.inf
            require(right and value <= 2**40, f"{what}: {key} of its noise is no such number")
        each = entry["each"]
        return cls(
            what=what,
            part=entry["part"],
            law=name,
            scale=tuple(law.values()),
            sensitivity=numbers[0],
            moved=numbers[1],
            times=numbers[2],
            each=None if each is None else _pair(each, ("epsilon", "delta")),
            claimed=_pair({name: entry[name] for name in _FIELDS[-2:]}, _FIELDS[-2:]),
        )

    @property
    def r(self) -> int:
        """The most that bounded noise adds."""
        return int(self.scale[LAWS[self.law].index("r")])


def _pair(cost: Mapping[str, Any], names: tuple[str, ...]) -> tuple[float, float]:
    require(tuple(cost) == names, "a cost is an epsilon and a delta")
    epsilon, delta = (math.inf if value == "inf" else value for value in cost.values())
    require(type(epsilon) is float and type(delta) is float, "a cost is two numbers")
    require(epsilon >= 0 and 0 <= delta <= 1, "a cost has ε ≥ 0 and 0 ≤ δ ≤ 1")
    return epsilon, delta


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The privacy loss of independent uses: normal, plus one of finitely many values, or all.

    Attributes:
        square: μ² of the normal part.
        values: What the rest can be.
        chances: The probability of each; with ``never`` they sum to one, or a little more.
        never: The probability of an outcome that the neighbouring table cannot have.
        growth: By what factor, as a logarithm, the noise may be off its law.
        mass: What it may be off beyond that, in total variation.
    """

    square: float = 0.0
    values: Reals = field(default_factory=lambda: np.zeros(1))
    chances: Reals = field(default_factory=lambda: np.ones(1))
    never: float = 0.0
    growth: float = 0.0
    mass: float = 0.0

    def beside(self, other: "Loss") -> "Loss":
        """Return the loss of both, independent of each other."""
        several = len(self.values) * len(other.values)
        require(several <= _MOST_PAIRS, "so many kinds of noise are more than can be audited")
        values = np.add.outer(self.values, other.values).ravel()
        chances = np.multiply.outer(self.chances, other.chances).ravel()
        if len(values) > _MOST_ATOMS:
            width = np.ptp(values) / _MOST_ATOMS
            unique, place = np.unique(np.ceil(values / width), return_inverse=True)
            values, chances = unique * width, np.bincount(place, weights=chances)
        return Loss(
            square=self.square + other.square,
            values=values,
            chances=chances,
            never=self.never + other.never - self.never * other.never,
            growth=self.growth + other.growth,
            mass=self.mass + other.mass,
        )

    def delta(self, epsilon: float) -> float:
        """Return δ' at ε, rounded up: e^growth · (δ(ε - growth) + (1 + e^ε) · mass)."""
        left = epsilon - self.growth - self.values
        ideal = self.never + float(self.chances @ _normal_delta(left, math.sqrt(self.square)))
        tables = (1 + math.exp(min(epsilon, 700.0))) * self.mass if self.mass else 0.0
        return math.exp(self.growth) * (ideal + tables) * (1 + 1e-12)


def _normal_delta(epsilon: Reals, mu: float) -> Reals:
    """Return δ_G(ε; μ) for ε of either sign, rounded up.

        δ_G = Φ(a) - e^ε Φ(a - μ),   a = μ/2 - ε/μ;   without noise max(0, 1 - e^ε)

    For ε ≥ 0 the second term is ½ e^(-a²/2) erfcx((μ - a)/√2), where nothing overflows.
    """
    if mu == 0:
        shown: Reals = -np.expm1(np.minimum(epsilon, 0.0))
        return shown
    a = mu / 2 - epsilon / mu
    first: Reals = ndtr(a)
    upper = np.maximum(mu - a, 0.0) / math.sqrt(2)
    second = np.where(
        epsilon >= 0,
        0.5 * np.exp(-a * a / 2) * erfcx(upper),
        np.exp(np.minimum(epsilon, 0.0)) * ndtr(a - mu),
    )
    return np.maximum(first - second, 0.0) + 1e-14 * first


def loss_of(use: Use) -> Loss:
    """Return the loss of one use of the data.

    Raises:
        VerificationError: It has no noise, or noise whose cost we do not know.
    """
    if use.each is not None:
        return _stated(use, *use.each)
    if use.law == "rounded_gaussian":
        return _rounded_gaussian(use)
    if use.law == "discrete_laplace":
        return _discrete_laplace(use.scale[0], use.sensitivity, use.moved)
    require(use.sensitivity == 1, f"{use.what}: the cost of such noise is known for steps of one")
    if use.law == "truncated_geometric":
        return _truncated_geometric(use.scale[0], use.r, use.moved)
    if use.law == "truncated_discrete_gaussian":
        return _truncated_gaussian(use.scale[0], use.r, use.moved)
    raise VerificationError(f"{use.what}: without noise there is no privacy")


def _two_ways(step: float, up: float, down: float, number: int) -> Loss:
    """Return ``number`` losses of +step or -step each: (2i - number) · step, a binomial law.

    ``up`` and ``down`` are their probabilities; what is left of one tells all.
    """
    require(number <= _MOST_TIMES, f"{number:,} uses of one kind are more than can be audited")
    hits = np.arange(number + 1, dtype=np.float64)
    logs = gammaln(number + 1) - gammaln(hits + 1) - gammaln(number - hits + 1)
    logs += hits * math.log(up) + (number - hits) * math.log(down)
    seen = logs > _RARE
    chances = np.exp(logs[seen]) * (1 + 1e-14 * (number + 8))
    rare = (number + 1 - int(seen.sum())) * math.exp(_RARE)
    values = (2 * hits[seen] - number) * step
    return Loss(values=values, chances=chances, never=rare)


def _stated(use: Use, epsilon: float, delta: float) -> Loss:
    """Return the worst loss of N times (ε, δ) (Kairouz, Oh and Viswanath, Theorem 3.3).

    The theorem that states them is about the ideal noise: its table adds to each of them.
    """
    require(use.law == "discrete_laplace", f"{use.what}: a theorem states the cost of other noise")
    require(0 <= delta < 1 and epsilon < 700, f"{use.what}: the stated cost is not finite")
    growth, mass = _off_laplace(use.scale[0])
    most = epsilon + growth
    each = math.exp(growth) * (delta + (1 + math.exp(most)) * mass)
    up = (1 - each) / (1 + math.exp(-most))
    loss = _two_ways(most, up, math.exp(-most) * up, use.times)
    return replace(loss, never=loss.never - math.expm1(use.times * math.log1p(-each)))


def _discrete_laplace(epsilon: float, step: int, moved: int) -> Loss:
    """Every outcome is at most e^(step·ε) times as likely under one table as under the other.

    For a step of one it is exactly so; for longer ones this is the worst that it can be.
    """
    most = step * epsilon
    up = 1 / (1 + math.exp(-most))
    growth, mass = _off_laplace(epsilon)
    loss = _two_ways(most, up, math.exp(-most) * up, moved)
    return replace(loss, growth=moved * growth, mass=moved * mass)


def _off_laplace(epsilon: float) -> tuple[float, float]:
    """Return growth and mass of a table of discrete Laplace noise: doubles; rounding and cut."""
    r = math.floor(_REACH[0] / epsilon)
    cut = 2 * math.exp(-epsilon * (r + 1)) / (1 + math.exp(-epsilon))
    return (_FACTOR if r > _FINE else 0.0), 2 * (r + 2) * _UNIT + cut


def _truncated_geometric(epsilon: float, r: int, moved: int) -> Loss:
    """guarantee.md, Theorem 7: losses +ε and -ε, and with probability g(r) the edge."""
    alpha, to_edge = math.exp(-epsilon), math.exp(-epsilon * r)
    whole = (1 + alpha - 2 * alpha * to_edge) / -math.expm1(-epsilon)
    half = -math.expm1(-epsilon * r) / -math.expm1(-epsilon) / whole
    loss = _two_ways(epsilon, half, alpha * half, moved)
    edge = -math.expm1(moved * math.log1p(-to_edge / whole))
    return replace(loss, never=loss.never + edge, mass=moved * _off_bounded(r))


def _truncated_gaussian(sigma: float, r: int, moved: int) -> Loss:
    """guarantee.md, Theorem 7: the loss of z is (1 - 2z)/(2σ²); of L numbers, that of their sum."""
    require(r <= 2**22, "bounded noise of such a range is more than can be audited")
    z = np.arange(-r, r + 1)
    weights = np.exp(-0.5 * (z / sigma) ** 2)
    weights /= weights.sum()
    edge = -math.expm1(moved * math.log1p(-float(weights[0])))
    # A long table is taken in steps of several z, each at its smallest: there the loss is largest.
    step = math.ceil(2 * r / _MOST_STEPS)
    each = np.add.reduceat(weights[1:], np.arange(0, 2 * r, step))
    chances = reduce(np.convolve, [each] * moved)
    sums = (1 - r) * moved + step * np.arange(len(chances))
    values = (moved - 2 * sums) / (2 * sigma**2)
    mass = moved * _off_bounded(r)
    return Loss(values=values, chances=chances * (1 + 1e-11), never=edge, mass=mass)


def _off_bounded(r: int) -> float:
    # A long table is off by 2^-49 more, either way: the first accountant, which reads it, knows.
    return 2 * (r + 2) * _UNIT


def _rounded_gaussian(use: Use) -> Loss:
    """guarantee.md, Noise tables: rounding is post-processing, so it costs what N(0, σ²) costs."""
    sigma = use.scale[0]
    r = math.ceil(_REACH[1] * sigma - 0.5)
    growth = _FACTOR if r > _FINE_GAUSSIAN else 0.0
    mass = 2 * (r + 2) * _UNIT + 2 * float(ndtr(-(r + 0.5) / sigma))
    square = use.moved * (use.sensitivity / sigma) ** 2
    return Loss(square=square, growth=use.moved * growth, mass=use.moved * mass)


def epsilon_of(uses: Sequence[Use], *, delta: float) -> float:
    """Return the least ε of all these uses of one and the same data at ``delta``; inf if none.

    Privacy:
        Neighbours: add or remove one record of the data that all of them read.
        Covers: all outputs together.
    """
    if any(use.law == "exact" for use in uses):
        return math.inf
    alike: dict[Use, int] = {}
    for use in uses:
        kind = replace(use, what="", part="", claimed=(math.inf, 0.0), moved=1, times=1)
        alike[kind] = alike.get(kind, 0) + use.moved * use.times
    # A stated cost counts its times, noise the numbers moved: one of the two is one.
    losses = [loss_of(replace(kind, moved=n, times=n)) for kind, n in alike.items()]
    loss = reduce(Loss.beside, losses, Loss())
    low, high = 0.0, 1e-4
    while loss.delta(high) > delta:
        low, high = high, 1.3 * high
        if high > _MOST_EPSILON:
            return math.inf
    while high - low > 1e-12 * high:
        half = (low + high) / 2
        low, high = (low, half) if loss.delta(half) <= delta else (half, high)
    return high


def split_epsilon_of(uses: Sequence[Use], fractions: Mapping[str, float], *, delta: float) -> float:
    """Return the least ε when each record serves one part (guarantee.md, Theorem 10).

        ε' = ln(1 + Σ p_j (e^ε_j - 1)),   every ε_j at δ' / Σ p_j, the sum over parts in use

    Then Σ p_j δ_j = δ', and the theorem's other term is no larger.
    """
    parts = dict.fromkeys(use.part for use in uses)
    require(all(part in fractions for part in parts), "a part that was used has no probability")
    shares = [fractions[part] for part in parts]
    right = all(type(p) is float and 0 < p <= 1 for p in fractions.values())
    require(right and math.fsum(fractions.values()) <= 1 + 1e-12, "the parts' shares exceed one")
    # ε' is the logarithm of 1 - Σ p_j + Σ p_j e^ε_j, which no double may hold.
    total = math.log(max(1 - math.fsum(shares), 1e-300))
    for part, share in zip(parts, shares, strict=True):
        used = [use for use in uses if use.part == part]
        each = epsilon_of(used, delta=delta / math.fsum(shares))
        total = float(np.logaddexp(total, math.log(share) + each))
    return total


def cost_of_one_test(
    *, k: int, epsilon0: float, t: int, gamma: float, dummies: int
) -> tuple[float, float]:
    """Return (ε, δ) of one candidate of the randomized test (guarantee.md, Theorem 4').

    ε = ε0 + ln(1 + γ/t),   δ = α0^(k-t) / (1 + α0),   α0 = e^-ε0,   with ⌈t/γ⌉ dummy seeds
    """
    require(1 <= t < k and gamma >= 1 and epsilon0 > 0, "Theorem 4' needs 1 ≤ t < k, γ ≥ 1, ε0 > 0")
    require(dummies == math.ceil(t / gamma), f"Theorem 4' needs ⌈t/γ⌉ dummy seeds, not {dummies}")
    delta = math.exp(-epsilon0 * (k - t)) / (1 + math.exp(-epsilon0))
    return epsilon0 + math.log1p(gamma / t), delta


def entropy_steps(rows_max: int) -> set[int]:
    """Return what Δ/2 may be: Δ = 2·⌈2^s u(n)/2⌉ at n = rows_max, 2^s units to the bit.

    u(n) = (n+1)·log2(n+1) - n·log2(n) (guarantee.md, Lemma 9). Any s serves the guarantee.
    """
    growth = math.log2(rows_max + 1) + rows_max * math.log1p(1 / rows_max) / math.log(2)
    near = (growth * (1 - 1e-12), growth * (1 + 1e-12))
    return {math.ceil(2.0**bits * each / 2) for bits in range(17) for each in near}


def require_close(
    claimed: float, exact: float, *, losses: int, what: str, at_most: float = 0.0
) -> None:
    """Refuse a claim below what was computed, or far above it.

    Args:
        claimed: ε that a manifest says.
        exact: ε that was computed here.
        losses: How many losses the first accountant rounded up to its grid.
        what: What it is the cost of.
        at_most: What a coarser theorem would say, where the first accountant may have used it.
    """
    require(
        claimed >= exact * (1 - BELOW),
        f"{what} is said to cost ε = {claimed:.6g}, and costs {exact:.6g}",
    )
    require(
        claimed <= max(exact, at_most) * (1 + ABOVE) + GRID * (losses + 1),
        f"{what} is said to cost ε = {claimed:.6g}, far more than its noise does: {exact:.6g}",
    )


def losses_in(uses: Sequence[Use]) -> int:
    """Return how many losses an accountant with a grid rounds for these uses."""
    return sum(use.times if use.each is not None else min(use.moved, 64) for use in uses)
