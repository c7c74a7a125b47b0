"""Tables of noise as they are drawn from: whole weights that sum to 2^128; and what that costs.

A table is of numbers -r … r and exactly symmetric. A draw takes a 64-bit word: its last bit is
the sign, the others are the first 63 of 127 bits that pick the magnitude. Only where those 63 do
not decide, which happens about once in 2^63 / r draws, the other 64 are read too: so Pr{Z = z} is
exactly weight / 2^128, at the price of one word.

``with_grain`` says what it costs that a table is near the law it is named after, and not it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import accumulate, pairwise
from typing import Self

import numpy as np

from deniable.arrays import Counts, Reals, Words
from deniable.errors import BudgetError, InvariantError
from deniable.privacy.composition import Guarantee, above
from deniable.randomness import Rng

UNITS = 2**128
_HALF = UNITS // 2
_WORD = 2**64

# Up to this r weights are worked out in decimals, beyond it in doubles.
FINE = 2**15
FINE_NORMAL = 2**7  # the same, where each weight is a series: 2^15 of them take seconds
_DIGITS = 60
# In doubles, weights are first scaled to fall short of 2^128, by more than doubles may be off by.
_SHORT = 2.0**-42
# Long tables are worked out in slices that stay in a processor's cache.
_SLICE = 2**14

# From numbers 0 … r to what their weights are in proportion to.
Mass = Callable[[Reals], Reals]


@dataclass(frozen=True, eq=False)
class Table:
    """A symmetric law on -r … r: where the magnitudes 0 … r end among 2^127.

    Attributes:
        high: The first 64 of 128 bits of each end, for |z| = 0, 1, …, r.
        low: The other 64. Zero's end is half its weight; the last is 2^127.
    """

    high: Words
    low: Words

    def __post_init__(self) -> None:
        of_words = self.high.dtype == self.low.dtype == np.uint64
        if not (of_words and self.high.shape == self.low.shape and self.high.size):
            raise InvariantError("not a table of 64-bit words")
        ahead, behind = self.high[1:], self.high[:-1]
        rising = (ahead > behind) | ((ahead == behind) & (self.low[1:] >= self.low[:-1]))
        if not rising.all() or self.end(self.r) != _HALF:
            raise InvariantError("the weights of a table are not below zero and sum to 2^128")
        self.high.flags.writeable = self.low.flags.writeable = False

    @classmethod
    def of_integers(cls, tail: Sequence[int]) -> Self:
        """Return the table with these weights of 1 … r and -1 … -r; zero takes the rest."""
        ends = list(accumulate(tail, initial=_HALF - sum(tail)))
        if min(ends[0], *tail, 0) < 0:
            raise InvariantError("the weights of a table are not below zero and sum to 2^128")
        high = np.fromiter((end >> 64 for end in ends), np.uint64, len(ends))
        low = np.fromiter((end % _WORD for end in ends), np.uint64, len(ends))
        return cls(high, low)

    @classmethod
    def of_masses(cls, mass: Mass, r: int) -> Self:
        """Return the table with weights in proportion to the masses of 0 … r, and of -1 … -r.

        Each is in proportion up to 2^-52 of itself and one unit. Scaled doubles miss 2^128 by
        some 2^-42 of it, and zero, which takes what is missing, can be as small as 2^-26. So
        first every weight gets its share of that; then 2^-90 and a unit for each are left.
        """
        units, high, low = np.empty(r + 1), np.empty(r + 1, np.uint64), np.empty(r + 1, np.uint64)
        slices = [slice(i, min(i + _SLICE, r + 1)) for i in range(0, r + 1, _SLICE)]
        for part in slices:
            units[part] = mass(np.arange(part.start, part.stop, dtype=np.float64))
        whole = float(2 * units.sum() - units[0])
        if not (0 < whole < math.inf and units.min() >= 0):
            raise InvariantError("the masses of a table are not below zero and finite")
        scale = UNITS * (1 - _SHORT) / whole
        for part in slices:
            units[part] = np.rint(units[part] * scale)
            high[part], low[part] = _halves(units[part])
        missing = UNITS - _sum(high, low) - _sum(high[1:], low[1:])
        if not 0 < missing < 4 * _SHORT * UNITS:
            raise InvariantError("the masses of a table do not add up")
        share = missing / (UNITS - missing)
        for part in slices:
            more, much = _halves(np.rint(units[part] * share))
            low[part] += much
            high[part] += more + (low[part] < much)
        rest = _HALF - _sum(high[1:], low[1:])
        high[0], low[0] = rest >> 64, rest % _WORD
        # A word is below 2^64: where the sum of words is smaller than before, it passed 2^64.
        np.cumsum(low, out=low)
        high[1:] += low[1:] < low[:-1]
        return cls(np.cumsum(high, out=high), low)

    @property
    def r(self) -> int:
        """The largest value that is drawn."""
        return len(self.high) - 1

    def end(self, magnitude: int) -> int:
        """Return how many of 2^127 pick a magnitude up to this."""
        return int(self.high[magnitude]) * _WORD + int(self.low[magnitude])

    def weight(self, z: int) -> int:
        """Return the weight of ``z``, of 2^128."""
        if z == 0:
            return 2 * self.end(0)
        return self.end(abs(z)) - self.end(abs(z) - 1) if abs(z) <= self.r else 0

    def weights(self) -> Iterator[int]:
        """Yield the weights of 0 … r."""
        ends = [h * _WORD + w for h, w in zip(self.high.tolist(), self.low.tolist(), strict=True)]
        yield 2 * ends[0]
        yield from (end - before for before, end in pairwise(ends))

    def probabilities(self) -> Reals:
        """Return the probabilities of 0 … r, each up to 2^-51 of itself."""
        low = np.diff(self.low, prepend=np.uint64(0))
        high = np.diff(self.high, prepend=np.uint64(0))
        high[1:] -= self.low[1:] < self.low[:-1]
        chances: Reals = high * 2.0**-64 + low * 2.0**-128
        chances[0] *= 2
        return chances

    def draw(self, rng: Rng, size: int) -> Counts:
        """Return independent draws: one 64-bit word each, and a second where the first ties."""
        words = rng.words(size)
        first = words >> np.uint64(1)
        drawn: Counts = np.searchsorted(self.high, first, side="left")
        tied = np.flatnonzero(self.high.take(drawn) == first)
        if tied.size:
            drawn[tied] = self._decide(first[tied], rng.words(tied.size))
        drawn *= 1 - 2 * (words & np.uint64(1)).astype(np.int64)
        return drawn

    def _decide(self, first: Words, second: Words) -> Counts:
        """Return the magnitudes of draws whose first word is that of one end or several."""
        start = np.searchsorted(self.high, first, side="left")
        stop = np.searchsorted(self.high, first, side="right")
        bounds = zip(start.tolist(), stop.tolist(), second, strict=True)
        passed = [a + np.searchsorted(self.low[a:b], word, side="right") for a, b, word in bounds]
        return np.array(passed, dtype=np.int64)


def geometric(epsilon: float, r: int, *, cut_at: int | None) -> Table:
    """Return the weights of α^|z|, α = e^-ε, up to r; scaled as if it ended at ``cut_at``."""
    if r > FINE:
        return Table.of_masses(lambda z: np.exp(-epsilon * z), r)
    with localcontext(prec=_DIGITS):
        alpha = (-Decimal(epsilon)).exp()
        beyond = 0 if cut_at is None else 2 * alpha ** (cut_at + 1)
        top = UNITS * (1 - alpha) / (1 + alpha - beyond)
        return Table.of_integers([round(top := top * alpha) for _ in range(r)])


def discrete_gaussian(sigma: float, r: int) -> Table:
    """Return the weights of exp(-z² / (2 σ²)): each is the last times an odd power of the first."""
    if r > FINE:
        return Table.of_masses(lambda z: np.exp(-0.5 * (z / sigma) ** 2), r)
    with localcontext(prec=_DIGITS):
        first = (-1 / (2 * Decimal(sigma) ** 2)).exp()
        odd, power, powers = first, Decimal(1), []
        for _ in range(r):
            power *= odd
            odd *= first * first
            powers.append(power)
        unit = UNITS / (1 + 2 * sum(powers, Decimal(0)))
        return Table.of_integers([round(power * unit) for power in powers])


def rounded_normal(sigma: float, r: int) -> Table:
    """Return the weights of Φ((z + ½) / σ) - Φ((z - ½) / σ) up to r ≥ 12.5 σ - ½."""
    return (_normal_in_doubles if r > FINE_NORMAL else _normal_in_decimals)(sigma, r)


def _normal_in_decimals(sigma: float, r: int) -> Table:
    """Return the weights of the rounded normal by Φ(x) - ½ = φ(x) Σ x^(2n+1) / (2n+1)!!."""
    with localcontext(prec=_DIGITS):
        # 2π to 60 places: no series of ours needs more, and the library has none.
        root = Decimal("6.28318530717958647692528676655900576839433879875021164194989").sqrt()
        above_half = []
        for z in range(r + 1):
            x = (z + Decimal("0.5")) / Decimal(sigma)
            square, term, total, n = x * x, x, x, 1
            while term > total * Decimal("1e-56"):
                n += 2
                term *= square / n
                total += term
            above_half.append(total * (-square / 2).exp() / root)
        return Table.of_integers([round(UNITS * (b - a)) for a, b in pairwise(above_half)])


def _normal_in_doubles(sigma: float, r: int) -> Table:
    """Return the same by the density's Taylor series about z: no cancellation between tails.

        g(z) = φ(x) · 2h · Σ_k h^2k He_2k(x) / (2k+1)!,   x = z / σ,   h = 1 / (2σ)

    |He_2k(x)| ≤ (x² + 2k)^k bounds what is left out: less than 2^-54.
    """
    h2, most = 1 / (4 * sigma**2), (r / sigma) ** 2

    def mass(z: Reals) -> Reals:
        x2 = (z / sigma) ** 2
        before, hermite = np.zeros(1), np.ones(1)
        series, factor, k = np.ones(len(z)), 1.0, 0
        while factor * (most + 2 * k) ** k > 2.0**-55:
            before, hermite = hermite, (x2 - (4 * k + 1)) * hermite - 2 * k * (2 * k - 1) * before
            k += 1
            factor *= h2 / (2 * k * (2 * k + 1))
            series += factor * hermite
        return np.exp(x2 / -2) * series

    return Table.of_masses(mass, r)


def with_grain(cost: Guarantee, *, growth: float, mass: float) -> Guarantee:
    """Return the cost of noise from tables, where ``cost`` is that of the laws they are near.

    A table t is near the law g by a factor and, beyond it, by a mass: for every whole z

        t(z) = g(z) · (1 + η_z) + u(z),   |η_z| ≤ η < 1,   |Σ_A u| ≤ d for every set A

    Beyond r, t is zero: there η_z = 0 and u = -g, so that what was cut off is in d. Then q
    numbers that one record moves, (ε, δ) with noise g, are (ε', δ') with noise t:

        ε' = ε + q · ln((1 + η) / (1 - η))
        δ' = ((1 + η) / (1 - η))^q · (δ + (1 + e^ε') · q · d)

    Proof. What is not moved has the same noise under both tables of data D, D': condition on
    it. For a set Y of outcomes let T(Y), G(Y), H(Y) be the sums, over the q noises that lead
    into it, of Π t, Π g and Π h, h = g · (1 + η_z), from D; T', G', H' from D'. As factors,
    (1 - η)^q G ≤ H ≤ (1 + η)^q G. Exchanging t for h in one place after another, where each
    has a sum of at most 1 + η, |T - H| ≤ q (1 + η)^(q-1) d =: v. Therefore

        T(Y) ≤ H(Y) + v ≤ (1 + η)^q G(Y) + v ≤ (1 + η)^q (e^ε G'(Y) + δ) + v
             ≤ e^ε' H'(Y) + (1 + η)^q δ + v ≤ e^ε' T'(Y) + (1 + η)^q δ + (1 + e^ε') v.

    Where later numbers depend on earlier ones, the sums are taken from the last to the first.
    Nothing tells D from D' but their names: the other direction is the same. ∎

    Args:
        cost: What the ideal laws would cost.
        growth: q · ln((1 + η) / (1 - η)), summed over the kinds of noise.
        mass: q · d, summed over the kinds of noise.
    """
    _require_grain(growth, mass)
    epsilon = above(cost.epsilon + growth)
    delta = math.exp(growth) * (cost.delta + (_odds(epsilon) * mass if mass else 0.0))
    return Guarantee(epsilon=epsilon, delta=min(1.0, above(delta)))


def delta_before_grain(delta: float, *, epsilon: float, growth: float, mass: float) -> float:
    """Return the δ that ideal laws may have for ``with_grain`` to stay at ε' and ``delta``.

    Rounded down; below zero where there is none.
    """
    _require_grain(growth, mass)
    return delta * math.exp(-growth) * (1 - 2.0**-49) - above(_odds(epsilon) * mass)


def growth_of(relative: float) -> float:
    """Return ln((1 + η) / (1 - η)), rounded up."""
    return above(2 * math.atanh(relative))


def _odds(epsilon: float) -> float:
    return 1 + math.exp(epsilon) if epsilon < 709 else math.inf


def _require_grain(growth: float, mass: float) -> None:
    if not (0 <= growth < math.inf and 0 <= mass < math.inf):
        raise BudgetError(f"a table is off by 0 ≤ growth, mass < ∞; got {growth}, {mass}")


def _halves(units: Reals) -> tuple[Words, Words]:
    """Return whole numbers below 2^127 as two words each: every step is exact in doubles."""
    high = np.floor(units * 2.0**-64)
    low = units - high * 2.0**64
    return high.astype(np.uint64), low.astype(np.uint64)


def _sum(high: Words, low: Words) -> int:
    """Return the sum of numbers of two words, exactly: 2^32 halves of words do not wrap around."""
    upper, lower = int((low >> np.uint64(32)).sum()), int((low & np.uint64(2**32 - 1)).sum())
    return int(high.sum()) * _WORD + upper * 2**32 + lower
