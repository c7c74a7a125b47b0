"""Noise tables: integer weights that sum to 2^128, exact sampling, and the cost of their error.

A table covers -r … r and is exactly symmetric. A draw takes one 64-bit word: its last bit is the
sign, the other 63 are the first of 127 bits that select the magnitude. The other 64 bits are read
only if the first 63 do not decide, about once in 2^63 / r draws. So Pr{Z = z} is exactly
weight / 2^128, at the cost of one word.

``with_table_error`` computes the cost of sampling from a table close to an ideal law.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Self

import numpy as np

from deniable.arrays import Counts, Reals, Words
from deniable.errors import BudgetError, InvariantError
from deniable.privacy.composition import Guarantee, upper_bound
from deniable.randomness import Rng

TOTAL_WEIGHT = 2**128
_HALF_WEIGHT = TOTAL_WEIGHT // 2
_WORD_RANGE = 2**64

_DECIMAL_DIGITS = 60
# Weights in doubles are first scaled to fall short of 2^128 by this share, which exceeds the
# rounding error of doubles.
_SCALING_SHORTFALL = 2.0**-42
# Long tables are computed in slices that fit the processor's cache.
_SLICE_LENGTH = 2**14

# Tables in decimals are short and slow to compute; the same public σ often comes again.
_MAX_CACHED_TABLES = 256

# Unnormalized weights of the numbers 0 … r.
Mass = Callable[[Reals], Reals]


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Symmetric law on -r … r, as cumulative weights of the magnitudes 0 … r out of 2^127.

    Attributes:
        high: First 64 of 128 bits of each cumulative weight, for |z| = 0, 1, …, r.
        low: The other 64 bits. The first cumulative weight is half of zero's weight; the last
            is 2^127.
    """

    high: Words
    low: Words

    def __post_init__(self) -> None:
        of_words = self.high.dtype == self.low.dtype == np.uint64
        if not (of_words and self.high.shape == self.low.shape and self.high.size):
            raise InvariantError("a weight table consists of 64-bit words")
        after, before = self.high[1:], self.high[:-1]
        rising = (after > before) | ((after == before) & (self.low[1:] >= self.low[:-1]))
        whole = int(self.high[-1]) * _WORD_RANGE + int(self.low[-1])
        if not rising.all() or whole != _HALF_WEIGHT:
            raise InvariantError("the weights of a table must be non-negative and sum to 2^128")
        self.high.flags.writeable = self.low.flags.writeable = False

    @classmethod
    def of_integers(cls, tail: Sequence[int]) -> Self:
        """Build a table with these weights for 1 … r and -1 … -r; zero gets the rest."""
        ends = list(accumulate(tail, initial=_HALF_WEIGHT - sum(tail)))
        if min(ends[0], *tail, 0) < 0:
            raise InvariantError("the weights of a table must be non-negative and sum to 2^128")
        high = np.fromiter((end >> 64 for end in ends), np.uint64, len(ends))
        low = np.fromiter((end % _WORD_RANGE for end in ends), np.uint64, len(ends))
        return cls(high, low)

    @classmethod
    def of_masses(cls, mass: Mass, r: int) -> Self:
        """Build a table with weights proportional to the masses of 0 … r, and of -1 … -r.

        Each weight is proportional up to 2^-52 of itself and one unit. The scaled doubles fall
        short of 2^128 by about 2^-42 of it, but zero, which gets the rest, can be as small as
        2^-26. So every weight first gets its share of the shortfall; zero then gets at most
        2^-90 and one unit per weight.
        """
        units, high, low = np.empty(r + 1), np.empty(r + 1, np.uint64), np.empty(r + 1, np.uint64)
        slices = [slice(i, min(i + _SLICE_LENGTH, r + 1)) for i in range(0, r + 1, _SLICE_LENGTH)]
        for part in slices:
            units[part] = mass(np.arange(part.start, part.stop, dtype=np.float64))
        total = float(2 * units.sum() - units[0])
        if not (0 < total < math.inf and units.min() >= 0):
            raise InvariantError("the masses of a table must be non-negative and finite")
        scale = TOTAL_WEIGHT * (1 - _SCALING_SHORTFALL) / total
        for part in slices:
            units[part] = np.rint(units[part] * scale)
            high[part], low[part] = _to_words(units[part])
        missing = TOTAL_WEIGHT - _sum_words(high, low) - _sum_words(high[1:], low[1:])
        if not 0 < missing < 4 * _SCALING_SHORTFALL * TOTAL_WEIGHT:
            raise InvariantError("the masses of a table do not add up")
        share = missing / (TOTAL_WEIGHT - missing)
        for part in slices:
            extra_high, extra_low = _to_words(np.rint(units[part] * share))
            low[part] += extra_low
            high[part] += extra_high + (low[part] < extra_low)
        rest = _HALF_WEIGHT - _sum_words(high[1:], low[1:])
        high[0], low[0] = rest >> 64, rest % _WORD_RANGE
        # Words wrap at 2^64: a cumulative sum smaller than the one before has a carry.
        np.cumsum(low, out=low)
        high[1:] += low[1:] < low[:-1]
        return cls(np.cumsum(high, out=high), low)

    @property
    def radius(self) -> int:
        """r, the largest value."""
        return len(self.high) - 1

    def cumulative(self, magnitude: int) -> int:
        """Cumulative weight of the magnitudes 0 … ``magnitude``, out of 2^127."""
        return int(self.high[magnitude]) * _WORD_RANGE + int(self.low[magnitude])

    def weight(self, z: int) -> int:
        """Weight of ``z``, out of 2^128."""
        if z == 0:
            return 2 * self.cumulative(0)
        if abs(z) > self.radius:
            return 0
        return self.cumulative(abs(z)) - self.cumulative(abs(z) - 1)

    def weights(self) -> Iterator[int]:
        """Yield the weights of 0 … r."""
        ends = [
            h * _WORD_RANGE + w for h, w in zip(self.high.tolist(), self.low.tolist(), strict=True)
        ]
        yield 2 * ends[0]
        yield from (end - before for before, end in pairwise(ends))

    def probabilities(self) -> Reals:
        """Compute the probabilities of 0 … r as doubles, with relative error up to 2^-51."""
        low = np.diff(self.low, prepend=np.uint64(0))
        high = np.diff(self.high, prepend=np.uint64(0))
        high[1:] -= self.low[1:] < self.low[:-1]
        probabilities: Reals = high * 2.0**-64 + low * 2.0**-128
        probabilities[0] *= 2
        return probabilities

    def draw(self, rng: Rng, shape: int | tuple[int, ...]) -> Counts:
        """Draw independent values: one 64-bit word each, and a second if the first is a tie."""
        words = rng.words(shape if isinstance(shape, int) else math.prod(shape))
        first = words >> np.uint64(1)
        drawn: Counts = np.searchsorted(self.high, first, side="left")
        tied = np.flatnonzero(self.high.take(drawn) == first)
        if tied.size:
            drawn[tied] = self._resolve_ties(first[tied], rng.words(tied.size))
        drawn *= 1 - 2 * (words & np.uint64(1)).astype(np.int64)
        return drawn.reshape(shape)

    def _resolve_ties(self, first: Words, second: Words) -> Counts:
        """Select magnitudes of draws whose first word equals that of a cumulative weight."""
        start = np.searchsorted(self.high, first, side="left")
        stop = np.searchsorted(self.high, first, side="right")
        bounds = zip(start.tolist(), stop.tolist(), second, strict=True)
        magnitudes = [
            a + np.searchsorted(self.low[a:b], word, side="right") for a, b, word in bounds
        ]
        return np.array(magnitudes, dtype=np.int64)


def geometric_masses(epsilon: float, z: Reals) -> Reals:
    """Unnormalized α^|z|, α = e^-ε, in doubles."""
    masses: Reals = np.exp(-epsilon * z)
    return masses


def geometric_table(epsilon: float, r: int, *, cut_at: int | None) -> WeightTable:
    """Table of α^|z|, α = e^-ε, up to r; normalized for truncation at ``cut_at``."""
    with localcontext(prec=_DECIMAL_DIGITS):
        alpha = (-Decimal(epsilon)).exp()
        beyond = 0 if cut_at is None else 2 * alpha ** (cut_at + 1)
        top = TOTAL_WEIGHT * (1 - alpha) / (1 + alpha - beyond)
        return WeightTable.of_integers([round(top := top * alpha) for _ in range(r)])


@lru_cache(maxsize=_MAX_CACHED_TABLES)
def rounded_normal_table(sigma: float, r: int) -> WeightTable:
    """Table of Φ((z + ½) / σ) - Φ((z - ½) / σ) up to r ≥ 12.5 σ - ½."""
    with localcontext(prec=_DECIMAL_DIGITS):
        # By the series Φ(x) - ½ = φ(x) Σ x^(2n+1) / (2n+1)!!.
        # 2π to 60 digits; the decimal module has no π.
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
        return WeightTable.of_integers(
            [round(TOTAL_WEIGHT * (b - a)) for a, b in pairwise(above_half)]
        )


def rounded_normal_masses(sigma: float, r: int, z: Reals) -> Reals:
    """Unnormalized g(z), |z| ≤ r, by the density's Taylor series about z, without cancellation.

        g(z) = φ(x) · 2h · Σ_k h^2k He_2k(x) / (2k+1)!,   x = z / σ,   h = 1 / (2σ)

    |He_2k(x)| ≤ (x² + 2k)^k bounds the remainder: less than 2^-54.
    """
    h2, max_x2 = 1 / (4 * sigma**2), (r / sigma) ** 2
    x2 = (z / sigma) ** 2
    previous, hermite = np.zeros(1), np.ones(1)
    series, factor, k = np.ones(len(z)), 1.0, 0
    while factor * (max_x2 + 2 * k) ** k > 2.0**-55:
        following = (x2 - (4 * k + 1)) * hermite - 2 * k * (2 * k - 1) * previous
        previous, hermite = hermite, following
        k += 1
        factor *= h2 / (2 * k * (2 * k + 1))
        series += factor * hermite
    masses: Reals = np.exp(x2 / -2) * series
    return masses


def with_table_error(cost: Guarantee, *, growth: float, mass: float) -> Guarantee:
    """Cost of noise from tables, if ``cost`` is the cost with the ideal laws.

    A table t has a relative and an additive error with respect to its law g: for every integer z

        t(z) = g(z) · (1 + η_z) + u(z),   |η_z| ≤ η < 1,   |Σ_A u| ≤ d for every set A

    Beyond r, t is zero: there η_z = 0 and u = -g, so d includes the truncated mass. If q numbers
    that one record changes are (ε, δ) with noise g, they are (ε', δ') with noise t:

        ε' = ε + q · ln((1 + η) / (1 - η))
        δ' = ((1 + η) / (1 - η))^q · (δ + (1 + e^ε') · q · d)

    Proof. Numbers that are not changed have the same noise under both data tables D, D':
    condition on it. For a set Y of outcomes let T(Y), G(Y), H(Y) be the sums, over the q noises
    that lead into Y, of Π t, Π g and Π h, h = g · (1 + η_z), from D; T', G', H' from D'. Then
    (1 - η)^q G ≤ H ≤ (1 + η)^q G. Replacing t by h one factor at a time, each with a sum of at
    most 1 + η, gives |T - H| ≤ q (1 + η)^(q-1) d =: v. Therefore

        T(Y) ≤ H(Y) + v ≤ (1 + η)^q G(Y) + v ≤ (1 + η)^q (e^ε G'(Y) + δ) + v
             ≤ e^ε' H'(Y) + (1 + η)^q δ + v ≤ e^ε' T'(Y) + (1 + η)^q δ + (1 + e^ε') v.

    If later numbers depend on earlier ones, the sums are taken from the last to the first. The
    roles of D and D' are symmetric, so the other direction is the same. ∎

    Args:
        cost: Cost with the ideal laws.
        growth: q · ln((1 + η) / (1 - η)), summed over the kinds of noise.
        mass: q · d, summed over the kinds of noise.
    """
    _require_table_error(growth, mass)
    epsilon = upper_bound(cost.epsilon + growth)
    delta = math.exp(growth) * (cost.delta + (_one_plus_exp(epsilon) * mass if mass else 0.0))
    return Guarantee(epsilon=epsilon, delta=min(1.0, upper_bound(delta)))


def delta_before_table_error(delta: float, *, epsilon: float, growth: float, mass: float) -> float:
    """Invert ``with_table_error``: the δ of the ideal laws that leads to ``delta`` at ε'.

    Rounded down; negative if there is none.
    """
    _require_table_error(growth, mass)
    return delta * math.exp(-growth) * (1 - 2.0**-49) - upper_bound(_one_plus_exp(epsilon) * mass)


def epsilon_of_relative_error(relative: float) -> float:
    """Compute ln((1 + η) / (1 - η)), rounded up."""
    return upper_bound(2 * math.atanh(relative))


def _one_plus_exp(epsilon: float) -> float:
    return 1 + math.exp(epsilon) if epsilon < 709 else math.inf


def _require_table_error(growth: float, mass: float) -> None:
    if not (0 <= growth < math.inf and 0 <= mass < math.inf):
        raise BudgetError(f"table errors need 0 ≤ growth, mass < ∞; got {growth}, {mass}")


def _to_words(units: Reals) -> tuple[Words, Words]:
    """Split integers below 2^127 into two words each; every step is exact in doubles."""
    high = np.floor(units * 2.0**-64)
    low = units - high * 2.0**64
    return high.astype(np.uint64), low.astype(np.uint64)


def _sum_words(high: Words, low: Words) -> int:
    """Sum two-word numbers exactly; up to 2^32 half words do not overflow."""
    upper, lower = int((low >> np.uint64(32)).sum()), int((low & np.uint64(2**32 - 1)).sum())
    return int(high.sum()) * _WORD_RANGE + upper * 2**32 + lower
