"""Exact confidence bounds of a probability: Clopper and Pearson's, from successes in trials."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from deniable.arrays import Reals
from deniable.errors import InvariantError

# Confidence of every printed bound that names no other.
CONFIDENCE = 0.95


def lower_rates(successes: ArrayLike, trials: ArrayLike, *, confidence: float) -> Reals:
    """Compute one-sided lower confidence bounds of rates, element by element.

        p = sup { p : Pr[Binomial(n, p) ≥ x] ≤ 1 - confidence } = B⁻¹(1 - confidence; x, n - x + 1)

    Args:
        successes: x, from 0 to n.
        trials: n; without trials the bound is 0.
        confidence: The probability, at least, with which a bound is not above the true rate.
    """
    x, n = _checked(successes, trials, confidence)
    bounds: Reals = np.zeros(x.shape)
    some = x > 0
    bounds[some] = betaincinv(x[some], (n - x + 1)[some], 1 - confidence)
    return bounds


def upper_rates(successes: ArrayLike, trials: ArrayLike, *, confidence: float) -> Reals:
    """Compute one-sided upper confidence bounds of rates, element by element.

    The mirror image of ``lower_rates``: failures take the place of successes.
    """
    x, n = _checked(successes, trials, confidence)
    bounds: Reals = 1 - lower_rates(n - x, n, confidence=confidence)
    return bounds


def lower_rate(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> float:
    """Compute the one-sided lower confidence bound of one rate."""
    return float(lower_rates(successes, trials, confidence=confidence))


def upper_rate(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> float:
    """Compute the one-sided upper confidence bound of one rate."""
    return float(upper_rates(successes, trials, confidence=confidence))


def _checked(successes: ArrayLike, trials: ArrayLike, confidence: float) -> tuple[Reals, Reals]:
    """Broadcast the counts, and refuse those that no experiment has."""
    x, n = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    if not ((x >= 0) & (x <= n)).all() or not 0 < confidence < 1:
        raise InvariantError("a rate needs 0 ≤ successes ≤ trials and a confidence in (0, 1)")
    return x, n
