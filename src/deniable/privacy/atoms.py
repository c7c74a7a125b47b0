"""What noise of several kinds costs together, in closed form and in microseconds.

A privacy loss is the logarithm of the odds that an outcome speaks for one of two neighbouring
tables. Losses of independent noises add. Gaussian noise has a normal loss; the laws on whole
numbers that we use have a loss with a few atoms, or a few thousand. So the δ of all together is a
sum over atoms of the Gaussian's δ at what the atom leaves of ε. All of it is rounded up, but for
losses that were composed on a grid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.special import erfcx, gammaln, ndtr

from deniable.arrays import Reals
from deniable.errors import BudgetError

# Atoms nearer than this are merged, upwards, so that composing does not multiply them for ever.
_GRID = 1e-6
_MOST_ATOMS = 2_000
# What is less likely is left out, and charged as if it told all.
_NEVER = 1e-30
# What a probability or a loss may be off by, from a few operations on doubles.
_OFF = 2.0**-48


@dataclass(frozen=True)
class Atoms:
    """A loss that takes finitely many values, and with ``never`` an outcome that tells all.

    Attributes:
        losses: The values.
        chances: Their probabilities; with ``never`` they sum to one.
        never: The probability of an outcome that the neighbouring table cannot have.
    """

    losses: Reals = field(repr=False)
    chances: Reals = field(repr=False)
    never: float = 0.0

    @classmethod
    def none(cls) -> Self:
        """Return the loss of showing nothing."""
        return cls(np.zeros(1), np.ones(1))

    @classmethod
    def laplace(cls, epsilon: float) -> Self:
        """Return the loss of discrete Laplace noise of scale 1/ε on a number moved by one.

        Every outcome is e^ε times as likely under one table as under the other, or the other
        way round: with probabilities 1/(1+α) and α/(1+α), α = e^-ε.
        """
        likely = 1 / (1 + math.exp(-epsilon))
        return cls(np.array([epsilon, -epsilon]), np.array([likely, 1 - likely]) * (1 + _OFF))

    @classmethod
    def stated(cls, epsilon: float, delta: float, *, times: int) -> Self:
        """Return the worst loss of so many mechanisms of which only (ε, δ) of each is known.

        Each loses ε or -ε, as discrete Laplace noise does, or with probability δ everything: of N
        the losses are (2l - N) ε with a binomial law.
        """
        losses, chances = binomial_losses(epsilon, times=times)
        seen = chances > _NEVER
        never = -math.expm1(times * math.log1p(-delta))
        return cls(losses[seen], chances[seen] * (1 - never), never=never + times * _NEVER)

    @classmethod
    def table(cls, weights: Sequence[int]) -> Self:
        """Return the loss of a table's noise on a number moved by one; weights of -r … r."""
        whole = sum(weights)
        here = np.array(weights, dtype=np.float64) / whole
        # Moved by one, the outcome at index i had index i - 1 and the last one is out of reach.
        one, two = here, np.concatenate([[0.0], here[:-1]])
        both = (one > 0) & (two > 0)
        losses = np.log(one[both] / two[both]) + _OFF
        never = float(one[two == 0].sum())
        return cls(losses, one[both] * (1 + _OFF), never=never * (1 + _OFF))

    def compose(self, other: "Atoms") -> "Atoms":
        """Return the loss of both, independent of each other."""
        one, two = self._coarse(), other._coarse()
        never = self.never + other.never - self.never * other.never
        return Atoms(
            np.add.outer(one.losses, two.losses).ravel(),
            np.multiply.outer(one.chances, two.chances).ravel(),
            never,
        )._merged(_GRID)

    def _coarse(self) -> "Atoms":
        """Return few enough atoms to be composed: losses are rounded up to a grid."""
        if len(self.losses) <= _MOST_ATOMS:
            return self
        return self._merged(float(np.ptp(self.losses)) / _MOST_ATOMS)

    def _merged(self, grid: float) -> "Atoms":
        """Return the same with losses rounded up to multiples of ``grid``, equal ones as one."""
        # What lies on the grid stays there, whichever way doubles rounded it: so a loss may be
        # 1e-6 of a step too low. Calibration composes; nothing is certified with what it gets.
        places = np.ceil(self.losses / grid - 1e-6).astype(np.int64)
        unique, place = np.unique(places, return_inverse=True)
        merged: Reals = np.bincount(place, weights=self.chances).astype(np.float64)
        return Atoms((unique * grid).astype(np.float64), merged, self.never)

    def times(self, number: int) -> "Atoms":
        """Return the loss of ``number`` independent copies."""
        if number < 0:
            raise BudgetError(f"a loss occurs at least 0 times; got {number}")
        result, power = Atoms.none(), self
        while number:
            if number % 2:
                result = result.compose(power)
            number //= 2
            power = power.compose(power) if number else power
        return result


def binomial_losses(epsilon: float, *, times: int) -> tuple[Reals, Reals]:
    """Return the losses (2l - N) ε of N trials of probability e^ε / (1 + e^ε), and their chances.

    Both rounded up. What is left out has a probability below N e^-700.
    """
    log_p = -math.log1p(math.exp(-epsilon))
    # By Hoeffding, more than √(350 N) from the mean there is less than 2 e^-700.
    mean, reach = times * math.exp(log_p), math.sqrt(350 * times) + 1
    first, last = max(0, math.floor(mean - reach)), min(times, math.ceil(mean + reach))
    hits = np.arange(first, last + 1, dtype=np.float64)
    log_chance = gammaln(times + 1) - gammaln(hits + 1) - gammaln(times - hits + 1)
    log_chance += times * log_p - (times - hits) * epsilon
    # What the logarithms, and below the losses, may be off by: some ulp of their terms.
    off = _OFF * (float(gammaln(times + 1)) + times * (epsilon + 1))
    seen = log_chance > -700
    return (2 * hits[seen] - times) * epsilon + off, np.exp(log_chance[seen] + off)


def gaussian_deltas(epsilons: Reals, *, mu: float) -> Reals:
    """Return δ of Gaussian noise at every ε, exactly (Balle and Wang; guarantee.md, Theorem 7).

        δ_G(ε; μ) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ),   μ = (L2 sensitivity) / σ
        δ_G(-ε; μ) = 1 - e^-ε + e^-ε δ_G(ε; μ)

    With a = μ/2 - ε/μ and b = a - μ the second term is ½ e^(-a²/2) erfcx(-b/√2): it has no
    large factor, and for a < 0 the first has the same small one.
    """
    sizes = np.abs(epsilons)
    if mu == 0:
        deltas = np.zeros(len(sizes))
    else:
        # Below -60 nothing is left that a double holds.
        a = np.maximum(mu / 2 - sizes / mu, -60.0)
        density = 0.5 * np.exp(-a * a / 2)
        ahead = np.where(a >= 0, ndtr(a), density * erfcx(-np.minimum(a, 0.0) / math.sqrt(2)))
        behind = density * erfcx((mu - a) / math.sqrt(2))
        # An error of an ulp in a moves e^(-a²/2) by a² of them.
        deltas = np.maximum(ahead - behind, 0.0) + 2.0**-47 * (2 + a * a) * ahead
    negative = epsilons < 0
    deltas[negative] = (
        -np.expm1(-sizes[negative]) + np.exp(-sizes[negative]) * deltas[negative]
    ) * (1 + _OFF)
    return np.minimum(deltas, 1.0)


def mixture_delta(*, epsilon: float, mu: float, atoms: Atoms) -> float:
    """Return δ at ε of Gaussian noise of μ and an independent loss with atoms, together.

        δ(ε) = never + Σ_l p_l · δ_G(ε - l; μ)

    Privacy:
        Neighbours: those of the noises, the same for each.
        Covers: all outputs together, rounded up.
    """
    shown = float(atoms.chances @ gaussian_deltas(epsilon - atoms.losses, mu=mu))
    return min(1.0, (atoms.never + shown) * (1 + _OFF))
