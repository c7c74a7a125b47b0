"""What noise of several kinds costs together, in closed form: for calibration, in microseconds.

A privacy loss is the logarithm of the odds that an outcome speaks for one of two neighbouring
tables. Losses of independent noises add. Gaussian noise has a normal loss; the laws on whole
numbers that we use have a loss with a few atoms, or a few thousand. So the δ of all together is a
sum over atoms of the Gaussian's δ at what the atom leaves of ε.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom

from deniable.arrays import Reals
from deniable.errors import BudgetError

# Atoms nearer than this are merged, upwards, so that composing does not multiply them for ever.
_GRID = 1e-6
_MOST_ATOMS = 2_000
# What is less likely is left out, and charged as if it told all.
_NEVER = 1e-30


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
        return cls(np.array([epsilon, -epsilon]), np.array([likely, 1 - likely]))

    @classmethod
    def stated(cls, epsilon: float, delta: float, *, times: int) -> Self:
        """Return the worst loss of so many mechanisms of which only (ε, δ) of each is known.

        Each loses ε or -ε, as discrete Laplace noise does, or with probability δ everything: of N
        the losses are (2l - N) ε with a binomial law.
        """
        hits = np.arange(times + 1)
        chances: Reals = binom.pmf(hits, times, 1 / (1 + math.exp(-epsilon)))
        seen = chances > _NEVER
        never = -math.expm1(times * math.log1p(-delta))
        losses: Reals = ((2.0 * hits[seen] - times) * epsilon).astype(np.float64)
        return cls(losses, chances[seen] * (1 - never), never=never + times * _NEVER)

    @classmethod
    def table(cls, weights: Sequence[int]) -> Self:
        """Return the loss of a table's noise on a number moved by one; weights of -r … r."""
        whole = sum(weights)
        here = np.array(weights, dtype=np.float64) / whole
        # Moved by one, the outcome at index i had index i - 1 and the last one is out of reach.
        losses = np.log(here[1:]) - np.log(here[:-1])
        return cls(losses, here[1:], never=float(here[0]))

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


def mixture_delta(*, epsilon: float, mu: float, atoms: Atoms) -> float:
    """Return δ at ε of Gaussian noise of μ and an independent loss with atoms, together.

        δ(ε) = never + Σ_l p_l · δ_G(ε - l; μ)

    Privacy:
        Neighbours: those of the noises, the same for each.
        Covers: all outputs together, up to rounding: a plan is calibrated with it, and then
            certified by ``composition.total``.
    """
    left = epsilon - atoms.losses
    if mu == 0:
        shown = -np.expm1(np.minimum(left, 0.0))
    else:
        second = np.exp(left + log_ndtr(-mu / 2 - left / mu))
        shown = np.maximum(ndtr(mu / 2 - left / mu) - second, 0.0)
    return min(1.0, atoms.never + float(atoms.chances @ shown))
