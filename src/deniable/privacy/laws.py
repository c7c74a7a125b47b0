"""Integer noise laws, each an exact table: what is sampled is what is accounted for.

A law lives on [-r, r]. Its weights are whole numbers that sum to 2^128 (``grain.Table``), so
Pr{Z = z} is a fraction known exactly: no guarantee rests on floating point. The table is made
when it is first asked for: planning needs the name and the parameters alone.

``relative`` and ``tv`` say how far the table may be from the law it is named after, by a factor
and beyond it; ``grain.with_grain`` says what a guarantee that was proved for that law pays.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtr

from deniable.arrays import Counts
from deniable.errors import BudgetError, InvariantError
from deniable.privacy import grain
from deniable.privacy.grain import FINE, FINE_NORMAL, UNITS, Table
from deniable.privacy.guarantee import one_shot_gaussian, one_shot_geometric
from deniable.randomness import Rng

WIDEST = 2**26

# Doubles move weights by 79 · 3 + 16 times 2^-53 of themselves or less: 79 is the largest
# exponent, with three roundings in it, and every other step is of an ulp or two. Their sum is off
# by no more, and divides them: 2^-44. On average the exponent is at most one: 2^-49 of the whole.
_RELATIVE_OF_DOUBLES = 2.0**-43
_TV_OF_DOUBLES = 2.0**-49
# Where unbounded laws are cut, in their scale: less than 2^-110 is beyond.
_REACH_LAPLACE = 112 * math.log(2)
_REACH_GAUSSIAN = 12.5


@dataclass(frozen=True, kw_only=True)
class Law:
    """A symmetric law on the integers -r … r, as a table of weights that sum to 2^128.

    Two laws are equal when their names and parameters are: a table follows from them.

    Attributes:
        name: The law that the table is of.
        parameters: What fixes it, by name.
        r: The largest value that is drawn.
        make: Makes the table; slow for millions of weights.
        relative: η, by which share of itself a weight may be off the law's.
        tv: By how much, beyond that, any event's probability may be: what was cut off and the
            rounding to whole units. With η = 0, the total variation between table and law.
    """

    name: str
    parameters: tuple[tuple[str, float], ...] = ()
    r: int = field(repr=False, compare=False)
    make: Callable[[], Table] = field(repr=False, compare=False)
    relative: float = field(default=0.0, repr=False, compare=False)
    tv: float = field(default=0.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (0 <= self.tv <= 1 and 0 <= self.relative < 1):
            raise InvariantError(f"{self}: not a law, off by {self.relative} and {self.tv}")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.parameters)})"

    @cached_property
    def table(self) -> Table:
        """The weights."""
        table = self.make()
        if table.r != self.r:
            raise InvariantError(f"{self}: a table up to {table.r}, not {self.r}")
        return table

    def weight(self, z: int) -> int:
        """Return the weight of ``z``, of 2^128."""
        return self.table.weight(z)

    def probability(self, z: int) -> Fraction:
        """Return Pr{Z = z}, exactly."""
        return Fraction(self.weight(z), UNITS)

    @cached_property
    def variance(self) -> float:
        """The variance; the mean is zero."""
        return float(2 * (np.arange(self.r + 1.0) ** 2 @ self.table.probabilities()))

    def draw(self, rng: Rng, shape: int | tuple[int, ...]) -> Counts:
        """Return independent draws, one 64-bit word each and rarely a second."""
        size = shape if isinstance(shape, int) else math.prod(shape)
        return self.table.draw(rng, size).reshape(shape)

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
        if shift > 2 * self.r or self.r == 0:
            return 1.0  # no value of one is a value of the other
        if epsilon == math.inf:
            ahead = sum(self.weight(z) for z in range(self.r - shift + 1, self.r + 1))
            return _float_above(Fraction(ahead, UNITS))
        if self.r > FINE:
            return self._delta_in_doubles(epsilon, shift)
        return self._delta_in_integers(epsilon, shift)

    def _delta_in_integers(self, epsilon: float, shift: int) -> float:
        with localcontext(prec=60 + int(epsilon)):
            factor = int((Decimal(epsilon).exp() * 2**160).to_integral_value(ROUND_FLOOR))
        one_side = list(self.table.weights())
        weights = one_side[:0:-1] + one_side
        moved = [0] * shift + weights
        total = sum(max(0, (w << 160) - factor * v) for w, v in zip(weights, moved, strict=False))
        return _float_above(Fraction(total, UNITS << 160))

    def _delta_in_doubles(self, epsilon: float, shift: int) -> float:
        # Only a step whose product is below the weight counts: weight, product and difference
        # err by some 2^-51 of the weight, so together by 2^-51 of the whole.
        one_side = self.table.probabilities()
        chances = np.concatenate([one_side[:0:-1], one_side])
        steps = chances[shift:] - math.exp(min(epsilon, 700.0)) * chances[:-shift]
        total = float(steps[steps > 0].sum() + chances[:shift].sum())
        return min(1.0, total * (1 + 2.0**-40) + 2.0**-50)


def exact() -> Law:
    """Return the point mass at zero: no noise, by the same path. δ = 1 for every ε."""
    return Law(name="exact", r=0, make=partial(Table.of_integers, []))


def discrete_laplace(epsilon: float) -> Law:
    """Return the discrete Laplace law of scale b = 1/ε, cut where 2^-112 is left.

        g(z) = (1 - α) / (1 + α) · α^|z|,  α = e^-ε,  |z| ≤ 112 · b · ln 2

    Privacy:
        Neighbours: add or remove one record, which moves a number by one.
        Covers: that number, (ε, ``delta(ε)``); the ideal law would be (ε, 0).
        Does not cover: several numbers that one record moves; those compose.
    """
    _require(0 < epsilon < math.inf, f"discrete Laplace noise needs 0 < ε < ∞; got {epsilon}")
    what = f"discrete Laplace noise of ε = {epsilon}"
    r = _representable(math.floor(_REACH_LAPLACE / epsilon), what)
    cut = 2 * math.exp(-epsilon * (r + 1)) / (1 + math.exp(-epsilon))
    return Law(
        name="discrete_laplace",
        parameters=(("epsilon", epsilon),),
        r=r,
        make=partial(grain.geometric, epsilon, r, cut_at=None),
        relative=_RELATIVE_OF_DOUBLES if r > FINE else 0.0,
        tv=_tv(r, cut=cut),
    )


def truncated_geometric(epsilon: float, r: int) -> Law:
    """Return the truncated geometric law, the noise of Mechanism B (guarantee.md, Theorem 7).

        g(z) = α^|z| · (1 - α) / (1 + α - 2 α^(r+1)),  α = e^-ε,  |z| ≤ r

    Privacy:
        Neighbours: add or remove one record, which moves a number by one.
        Covers: that number, (ε, ``delta(ε)``), where δ = g(r) but for the rounding of the table.
        Does not cover: several numbers that one record moves; those compose.
    """
    _require(0 < epsilon < math.inf, f"truncated geometric noise needs 0 < ε < ∞; got {epsilon}")
    r = _representable(r, f"truncated geometric noise with r = {r}")
    return Law(
        name="truncated_geometric",
        parameters=(("epsilon", epsilon), ("r", r)),
        r=r,
        make=partial(grain.geometric, epsilon, r, cut_at=r),
        tv=_tv(r, doubles=r > FINE),
    )


def rounded_gaussian(sigma: float) -> Law:
    """Return the law of a normal variable rounded to a whole number.

        g(z) = Φ((z + ½) / σ) - Φ((z - ½) / σ)

    A whole shift of it is the rounding of a shifted normal: post-processing, so what is proved
    of the Gaussian mechanism holds exactly (guarantee.md, Noise tables), but for the table.

    Privacy:
        Neighbours: add or remove one record, which moves some numbers by whole steps.
        Covers: those numbers, as a Gaussian mechanism of μ = (their L2 distance) / σ; what each
            of them adds for the table is in ``grain.with_grain``.
        Does not cover: steps that are no whole numbers.
    """
    _require(0 < sigma < math.inf, f"rounded Gaussian noise needs 0 < σ < ∞; got {sigma}")
    r = _representable(gaussian_reach(sigma), f"rounded Gaussian noise of σ = {sigma}")
    return Law(
        name="rounded_gaussian",
        parameters=(("sigma", sigma),),
        r=r,
        make=partial(grain.rounded_normal, sigma, r),
        relative=_RELATIVE_OF_DOUBLES if r > FINE_NORMAL else 0.0,
        tv=_tv(r, cut=2 * float(ndtr(-(r + 0.5) / sigma))),
    )


def gaussian_reach(sigma: float) -> int:
    """Return r of ``rounded_gaussian``: beyond r + ½ ≥ 12.5 σ there is less than 2^-116."""
    return math.ceil(min(_REACH_GAUSSIAN * sigma - 0.5, 2.0 * WIDEST))


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
    return Law(
        name="truncated_discrete_gaussian",
        parameters=(("sigma", sigma), ("r", r)),
        r=r,
        make=partial(grain.discrete_gaussian, sigma, r),
        tv=_tv(r, doubles=r > FINE),
    )


def r_for(*, epsilon: float, delta: float, lengths: int = 1) -> int:
    """Return the smallest r at which Mechanism B with truncated geometric noise is (ε, δ).

    Each of the L ``lengths`` gets ε / L, which is best (guarantee.md, Theorem 7); the rounding
    of the table is paid for. Then ``truncated_geometric(epsilon / lengths, r)`` is the law.
    """

    def enough(r: int) -> bool:
        tv = _tv(r, doubles=r > FINE)
        promised = one_shot_geometric(epsilon=epsilon, r=r, lengths=lengths, tv=tv)
        return promised.delta <= delta

    return _smallest(enough, epsilon=epsilon, delta=delta, lengths=lengths)


def sigma_and_r_for(*, epsilon: float, delta: float, lengths: int = 1) -> tuple[float, int]:
    """Return the smallest r, and its σ, at which a truncated discrete Gaussian is (ε, δ).

    A larger σ hides the finite losses better and the edge at r worse: for each r the σ of the
    smallest δ is looked for. Then ``truncated_discrete_gaussian(sigma, r)`` is the law.
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - slow to import, seldom used

    def delta_of(sigma: float, r: int) -> float:
        tv = _tv(r, doubles=r > FINE)
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


def _tv(r: int, *, cut: float = 0.0, doubles: bool = False) -> float:
    """Bound what an event gains or loses: a unit for each weight, what was cut, what doubles do."""
    return 2 * (r + 2) / UNITS + cut * (1 + 2.0**-30) + doubles * _TV_OF_DOUBLES


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
