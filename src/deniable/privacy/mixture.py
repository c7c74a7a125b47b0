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

from deniable.arrays import Reals
from deniable.errors import BudgetError

# Atoms nearer than this are merged, upwards, so that composing does not multiply them for ever.
_GRID = 1e-6


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
    def stated(cls, epsilon: float, delta: float) -> Self:
        """Return the worst loss of a mechanism of which only (ε, δ) is known."""
        known = cls.laplace(epsilon)
        return cls(known.losses, known.chances * (1 - delta), never=delta)

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
        losses = np.add.outer(self.losses, other.losses).ravel()
        chances = np.multiply.outer(self.chances, other.chances).ravel()
        never = self.never + other.never - self.never * other.never
        places = np.ceil(losses / _GRID - 1e-6).astype(np.int64)
        unique, place = np.unique(places, return_inverse=True)
        merged: Reals = np.bincount(place, weights=chances).astype(np.float64)
        return Atoms((unique * _GRID).astype(np.float64), merged, never)

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
