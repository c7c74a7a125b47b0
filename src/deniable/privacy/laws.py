"""Integer noise laws, each an exact table: what is sampled is what is accounted for.

A law lives on [-r, r]. Its weights are whole numbers that sum to 2^64, so one uniform 64-bit
word is one draw and Pr{Z = z} is a fraction known exactly: no guarantee rests on floating point.
A law is exactly symmetric: the weight of z ≥ 1 is rounded once and serves z and -z, and zero
takes what remains of 2^64 (an even number, so that half of it goes with either sign).

``tv`` says how far the table may be from the law it is named after; a guarantee that was proved
for that law pays (1 + e^ε) · tv for every number that one record moves (PRIVACY.md, section 8).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from deniable.arrays import Counts, Reals, Words
from deniable.errors import BudgetError, InvariantError
from deniable.privacy.guarantee import one_shot_gaussian, one_shot_geometric
from deniable.randomness import Rng

UNITS = 2**64
WIDEST = 2**26

# Up to this r weights are worked out in 40 decimals, beyond it in doubles: there the rounding
# to whole units already moves r / 2^64 ≥ 2^-49, which is what the doubles may move.
_FINE = 2**15
_FINE_GAUSSIAN = 2**11  # the same, where each weight is a series: 2^15 of them take seconds
_TV_OF_DOUBLES = 2.0**-49
_DIGITS = 40


@dataclass(frozen=True, kw_only=True)
class Law:
    """A symmetric law on the integers -r … r, as a table of weights that sum to 2^64.

    Two laws are equal when their names and parameters are: a table follows from them.

    Attributes:
        name: The law that the table is of.
        parameters: What fixes it, by name.
        tail: The weights of 1 … r. Those of -1 … -r are the same; zero has the rest.
        tv: Upper bound of the total variation between the table and the law it is named after.
    """

    name: str
    parameters: tuple[tuple[str, float], ...] = ()
    tail: Words = field(repr=False, compare=False)
    tv: float = field(default=0.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The float sum cannot wrap around; where it is below 2^63.5, neither can the exact one.
        if self.tail.dtype != np.uint64 or self.tail.sum(dtype=np.float64) > 2**63.5:
            raise InvariantError(f"{self}: not a table of 64-bit weights")
        if self.middle < 0 or not 0 <= self.tv <= 1:
            raise InvariantError(f"{self}: its weights do not sum to 2^64")
        self.tail.flags.writeable = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.parameters)})"

    @property
    def r(self) -> int:
        """The largest value that is drawn."""
        return len(self.tail)

    @cached_property
    def middle(self) -> int:
        """The weight of zero: what the others leave of 2^64."""
        return UNITS - 2 * int(self.tail.sum(dtype=np.uint64))

    @cached_property
    def _ends(self) -> Words:
        """Where |z| = 0, 1, …, r - 1 end among 2^63 magnitudes; r has the rest."""
        before = np.concatenate([np.array([self.middle // 2], np.uint64), self.tail[:-1]])
        ends: Words = np.cumsum(before, dtype=np.uint64)[: self.r]
        return ends

    def weight(self, z: int) -> int:
        """Return the number of words, of 2^64, that are drawn as ``z``."""
        if z == 0:
            return self.middle
        return int(self.tail[abs(z) - 1]) if abs(z) <= self.r else 0

    def probability(self, z: int) -> Fraction:
        """Return Pr{Z = z}, exactly."""
        return Fraction(self.weight(z), UNITS)

    @cached_property
    def variance(self) -> float:
        """The variance; the mean is zero."""
        squares = np.arange(1, self.r + 1, dtype=np.float64) ** 2
        return float(2 * (squares @ self.tail.astype(np.float64)) / UNITS)

    def draw(self, rng: Rng, shape: int | tuple[int, ...]) -> Counts:
        """Return independent draws, one 64-bit word each.

        The word's last bit is the sign, the other 63 pick the magnitude in the table.
        """
        size = shape if isinstance(shape, int) else math.prod(shape)
        words = rng.words(size)
        drawn: Counts = np.searchsorted(self._ends, words >> np.uint64(1), side="right")
        drawn *= 1 - 2 * (words & np.uint64(1)).astype(np.int64)
        return drawn.reshape(shape)

    def delta(self, epsilon: float, *, shift: int = 1) -> float:
        """Return δ of adding this noise to a number that one record moves by ``shift``.

            δ = Σ_z max(0, g(z) - e^ε · g(z - shift))

        from the weights themselves, with e^ε rounded down and the sum rounded up. The law is
        symmetric, so both directions, and both signs of ``shift``, have the same δ.

        Privacy:
            Neighbours: add or remove one record, which moves the number by at most ``shift``.
            Covers: the noisy number and all that is made of it; (ε, δ) for every ε ≥ 0.
            Does not cover: other numbers that the same record moves; those compose.
            Assumes: uniform words that nobody can guess.
        """
        if not (epsilon >= 0 and shift >= 0):
            raise BudgetError(f"need ε ≥ 0 and a shift ≥ 0; got ε = {epsilon}, shift = {shift}")
        if shift == 0:
            return 0.0
        if shift > 2 * self.r or self.middle == UNITS:
            return 1.0  # no value of one is a value of the other
        if epsilon == math.inf:
            ahead = sum(self.weight(z) for z in range(self.r - shift + 1, self.r + 1))
            return _float_above(Fraction(ahead, UNITS))
        if self.r > _FINE:
            return self._delta_in_doubles(epsilon, shift)
        return self._delta_in_integers(epsilon, shift)

    @cached_property
    def _both_sides(self) -> Words:
        middle = np.array([self.middle], dtype=np.uint64)
        return np.concatenate([self.tail[::-1], middle, self.tail])

    def _delta_in_integers(self, epsilon: float, shift: int) -> float:
        with localcontext(prec=60 + int(epsilon)):
            factor = int((Decimal(epsilon).exp() * 2**80).to_integral_value(ROUND_FLOOR))
        weights = self._both_sides.tolist()
        moved = [0] * shift + weights
        total = sum(max(0, (w << 80) - factor * v) for w, v in zip(weights, moved, strict=False))
        return _float_above(Fraction(total, UNITS << 80))

    def _delta_in_doubles(self, epsilon: float, shift: int) -> float:
        # Only a step whose product is below its difference counts, and differences are exact:
        # the products err by 2 ulp of at most that size, so by 2^-51 of the whole.
        here, moved = self._both_sides[shift:], self._both_sides[:-shift]
        rising = here > moved
        steps = (here - moved)[rising] - math.expm1(min(epsilon, 700.0)) * moved[rising]
        ahead = self._both_sides[:shift].sum(dtype=np.float64)
        total = float(steps[steps > 0].sum() + ahead) / UNITS
        return min(1.0, total * (1 + 2.0**-40) + 2.0**-50)


def exact() -> Law:
    """Return the point mass at zero: no noise, by the same path. δ = 1 for every ε."""
    return Law(name="exact", tail=np.zeros(0, np.uint64))


def discrete_laplace(epsilon: float) -> Law:
    """Return the discrete Laplace law of scale b = 1/ε, cut where a weight would round to zero.

        g(z) = (1 - α) / (1 + α) · α^|z|,  α = e^-ε,  |z| ≤ 64 · b · ln 2

    Privacy:
        Neighbours: add or remove one record, which moves a number by one.
        Covers: that number, (ε, ``delta(ε)``); the ideal law would be (ε, 0).
        Does not cover: several numbers that one record moves; those compose.
    """
    _require(0 < epsilon < math.inf, f"discrete Laplace noise needs 0 < ε < ∞; got {epsilon}")
    last = min(64 * math.log(2), math.log(2.0**65 * math.tanh(epsilon / 2)))
    r = _representable(math.floor(last / epsilon), f"discrete Laplace noise of ε = {epsilon}")
    with localcontext(prec=_DIGITS):
        alpha = (-Decimal(epsilon)).exp()
        tail = _geometric(epsilon, r, UNITS * (1 - alpha) / (1 + alpha))
        cut = float(2 * alpha ** (r + 1) / (1 + alpha))
    tv = _tv(r, cut=cut, doubles=r > _FINE)
    return Law(name="discrete_laplace", parameters=(("epsilon", epsilon),), tail=tail, tv=tv)


def truncated_geometric(epsilon: float, r: int) -> Law:
    """Return the truncated geometric law, the noise of Mechanism B (PRIVACY.md, Theorem 7).

        g(z) = α^|z| · (1 - α) / (1 + α - 2 α^(r+1)),  α = e^-ε,  |z| ≤ r

    Privacy:
        Neighbours: add or remove one record, which moves a number by one.
        Covers: that number, (ε, ``delta(ε)``), where δ = g(r) but for the rounding of the table.
        Does not cover: several numbers that one record moves; those compose.
    """
    _require(0 < epsilon < math.inf, f"truncated geometric noise needs 0 < ε < ∞; got {epsilon}")
    r = _representable(r, f"truncated geometric noise with r = {r}")
    with localcontext(prec=_DIGITS):
        alpha = (-Decimal(epsilon)).exp()
        tail = _geometric(epsilon, r, UNITS * (1 - alpha) / (1 + alpha - 2 * alpha ** (r + 1)))
    parameters = (("epsilon", epsilon), ("r", r))
    tv = _tv(r, doubles=r > _FINE)
    return Law(name="truncated_geometric", parameters=parameters, tail=tail, tv=tv)


def rounded_gaussian(sigma: float) -> Law:
    """Return the law of a normal variable rounded to a whole number.

        g(z) = Φ((z + ½) / σ) - Φ((z - ½) / σ)

    A whole shift of it is the rounding of a shifted normal: post-processing, so what is proved
    of the Gaussian mechanism holds exactly (PRIVACY.md, section 8), but for ``tv``.

    Privacy:
        Neighbours: add or remove one record, which moves some numbers by whole steps.
        Covers: those numbers, as a Gaussian mechanism of μ = (their L2 distance) / σ; each of
            them adds (1 + e^ε) · ``tv`` to δ, which includes what was cut beyond r.
        Does not cover: steps that are no whole numbers.
    """
    _require(0 < sigma < math.inf, f"rounded Gaussian noise needs 0 < σ < ∞; got {sigma}")
    what = f"rounded Gaussian noise of σ = {sigma}"
    # 2^64 · Φ(-9.2) < ½: no weight beyond it would round to one.
    r = _representable(math.floor(9.2 * sigma + 0.5), what)
    doubles = r > _FINE_GAUSSIAN
    ideal = _normal_in_doubles(sigma, r) if doubles else _normal_in_decimals(sigma, r)
    tail = np.trim_zeros(ideal, "b")
    r = _representable(len(tail), what)
    tv = _tv(r, cut=2 * float(ndtr(-(r + 0.5) / sigma)), doubles=doubles)
    return Law(name="rounded_gaussian", parameters=(("sigma", sigma),), tail=tail, tv=tv)


def truncated_discrete_gaussian(sigma: float, r: int) -> Law:
    """Return the discrete Gaussian on -r … r, for Mechanism B with many prefix lengths.

        g(z) ∝ exp(-z² / (2 σ²)),  |z| ≤ r

    Privacy:
        Neighbours: add or remove one record, which moves a number by one.
        Covers: that number, (ε, ``delta(ε)``); L of them by ``guarantee.one_shot_gaussian``.
        Does not cover: shifts other than by one, except through ``delta``.
    """
    _require(0 < sigma < math.inf, f"discrete Gaussian noise needs 0 < σ < ∞; got {sigma}")
    r = _representable(r, f"truncated discrete Gaussian noise with r = {r}")
    if r > _FINE:
        masses = np.exp(-0.5 * (np.arange(1, r + 1) / sigma) ** 2)
        tail = np.rint(masses * (UNITS / (1 + 2 * masses.sum()))).astype(np.uint64)
    else:
        with localcontext(prec=_DIGITS):
            powers = list(_gaussian_powers(sigma, r))
            unit = UNITS / (1 + 2 * sum(powers, Decimal(0)))
            tail = np.fromiter((round(p * unit) for p in powers), np.uint64, r)
    parameters = (("sigma", sigma), ("r", r))
    tv = _tv(r, doubles=r > _FINE)
    return Law(name="truncated_discrete_gaussian", parameters=parameters, tail=tail, tv=tv)


def r_for(*, epsilon: float, delta: float, lengths: int = 1) -> int:
    """Return the smallest r at which Mechanism B with truncated geometric noise is (ε, δ).

    Each of the L ``lengths`` gets ε / L, which is best (PRIVACY.md, section 3.2); the rounding
    of the table is paid for. Then ``truncated_geometric(epsilon / lengths, r)`` is the law.
    """

    def enough(r: int) -> bool:
        tv = _tv(r, doubles=r > _FINE)
        promised = one_shot_geometric(epsilon=epsilon, r=r, lengths=lengths, tv=tv)
        return promised.delta <= delta

    return _smallest(enough, epsilon=epsilon, delta=delta, lengths=lengths)


def sigma_and_r_for(*, epsilon: float, delta: float, lengths: int = 1) -> tuple[float, int]:
    """Return the smallest r, and its σ, at which a truncated discrete Gaussian is (ε, δ).

    A larger σ hides the finite losses better and the edge at r worse: for each r the σ of the
    smallest δ is looked for. Then ``truncated_discrete_gaussian(sigma, r)`` is the law.
    """

    def delta_of(sigma: float, r: int) -> float:
        tv = _tv(r, doubles=r > _FINE)
        return one_shot_gaussian(epsilon=epsilon, sigma=sigma, r=r, lengths=lengths, tv=tv).delta

    def best_sigma(r: int) -> float:
        def height(log_sigma: float) -> float:
            return math.log(max(delta_of(math.exp(log_sigma), r), 1e-300))

        bounds = (math.log(r / 20), math.log(2.0 * r))
        best = minimize_scalar(height, bounds=bounds, method="bounded", options={"xatol": 1e-4})
        return math.exp(float(best.x))

    def enough(r: int) -> bool:
        return delta_of(best_sigma(r), r) <= delta

    r = _smallest(enough, epsilon=epsilon, delta=delta, lengths=lengths)
    return best_sigma(r), r


def bounded(*, epsilon: float, delta: float, lengths: int = 1) -> Law:
    """Return the noise of Mechanism B with the lowest threshold: of two laws that of smaller r.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each prefix length.
        Covers: every kept cell and any number of records made from them, (ε, δ) by Theorem 7.
        Does not cover: the model that fills in the other attributes.
    """
    geometric = r_for(epsilon=epsilon, delta=delta, lengths=lengths)
    if lengths == 1:  # Theorem 7.4: no (ε, δ) selection keeps more
        return truncated_geometric(epsilon, geometric)
    sigma, gaussian = sigma_and_r_for(epsilon=epsilon, delta=delta, lengths=lengths)
    if geometric <= gaussian:
        return truncated_geometric(epsilon / lengths, geometric)
    return truncated_discrete_gaussian(sigma, gaussian)


def _geometric(epsilon: float, r: int, top: Decimal) -> Words:
    """Return the rounded weights top · e^(-ε z) of z = 1 … r."""
    if r > _FINE:
        units: Reals = float(top) * np.exp(-epsilon * np.arange(1, r + 1))
        return np.rint(units).astype(np.uint64)
    alpha = (-Decimal(epsilon)).exp()
    weights = np.empty(r, np.uint64)
    for z in range(r):
        top *= alpha
        weights[z] = round(top)
    return weights


def _gaussian_powers(sigma: float, r: int) -> Iterator[Decimal]:
    """Yield exp(-z² / (2 σ²)) for z = 1 … r: each is the last times an odd power of the first."""
    step = (-1 / (2 * Decimal(sigma) ** 2)).exp()
    odd, power, square = step, Decimal(1), step * step
    for _ in range(r):
        power *= odd
        odd *= square
        yield power


def _normal_in_decimals(sigma: float, r: int) -> Words:
    """Return the weights of the rounded normal by Φ(x) - ½ = φ(x) Σ x^(2n+1) / (2n+1)!!."""
    with localcontext(prec=_DIGITS):
        # 2π to 40 places: no series of ours needs more, and the library has none.
        root = Decimal("6.283185307179586476925286766559005768394").sqrt()
        above_half = []
        for z in range(r + 1):
            x = (z + Decimal("0.5")) / Decimal(sigma)
            square, term, total, n = x * x, x, x, 1
            while term > total * Decimal("1e-36"):
                n += 2
                term *= square / n
                total += term
            above_half.append(total * (-square / 2).exp() / root)
        return np.fromiter((round(UNITS * (b - a)) for a, b in pairwise(above_half)), np.uint64, r)


def _normal_in_doubles(sigma: float, r: int) -> Words:
    """Return the same by the density's Taylor series about z: no cancellation between tails."""
    x, h2 = np.arange(1, r + 1) / sigma, 1 / (4 * sigma**2)
    x2 = x * x
    series = 1 + h2 / 6 * (x2 - 1) + h2**2 / 120 * (x2 * x2 - 6 * x2 + 3)
    units: Reals = UNITS / (sigma * math.sqrt(2 * math.pi)) * np.exp(-x2 / 2) * series
    return np.rint(units).astype(np.uint64)


def _tv(r: int, *, cut: float = 0.0, doubles: bool = False) -> float:
    """Bound the total variation: 2r roundings by half a unit, what was cut, and what zero takes."""
    return (r + 2) / UNITS * (1 + 2.0**-30) + cut * (1 + 2.0**-30) + doubles * _TV_OF_DOUBLES


def _float_above(exactly: Fraction) -> float:
    nearest = float(exactly)
    return nearest if nearest >= exactly else math.nextafter(nearest, math.inf)


def _smallest(enough: Callable[[int], bool], *, epsilon: float, delta: float, lengths: int) -> int:
    """Return the smallest r that is enough; beyond ``most`` half of δ goes to the table's tv."""
    most = min(2.0**20, delta * UNITS / (2 * lengths * (1 + math.exp(min(epsilon, 700.0)))))
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        why = f"no bounded noise gives ε = {epsilon}, δ = {delta} over {lengths} lengths"
        _require(high <= most, why)
    while high - low > 1:
        half = (low + high) // 2
        low, high = (low, half) if enough(half) else (half, high)
    return high


def _representable(r: int, what: str) -> int:
    _require(r >= 1, f"{what} is too narrow for whole numbers: ask for a smaller ε, or for inf")
    _require(r <= WIDEST, f"{what} needs a table above 2^26: ask for a larger ε")
    return r


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise BudgetError(otherwise)
