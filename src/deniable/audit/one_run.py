"""One-run auditing: a lower bound on ε from guesses about many rows of a single run.

Each of m rows was included by an independent fair coin. An attacker who sees the release guesses
some of the coins. A mechanism of (ε, δ) bounds the number of correct guesses (Steinke, Nasr and
Jagielski 2023, Theorem 5.2), the number of correct ones bounds ε from below, without a second run.
"""

import numpy as np
from scipy.stats import binom

from deniable.audit.binomial_bounds import CONFIDENCE
from deniable.errors import InvariantError

# The largest ε that is tried; more guesses than a run can have would be needed to exceed it.
_MAX_EPSILON = 50.0


def correct_guess_probability(
    *, rows: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Bound the probability of this number of correct guesses, if the mechanism is (ε, δ)-private.

        Pr[correct or more] ≤ β + 2 m δ · max_i α_i / i
        β = Pr[W ≥ correct],  α_i = Pr[correct - i ≤ W < correct],  W ~ Binomial(guesses, p)

    with p = e^ε / (1 + e^ε). For δ = 0 it is the tail of the binomial distribution alone.

    Args:
        rows: m, the rows whose coins were thrown.
        guesses: Coins that the attacker guessed; the others are left open.
        correct: Correct guesses.
        epsilon: ε of the mechanism.
        delta: δ of the mechanism.
    """
    if not 0 <= correct <= guesses <= rows:
        raise InvariantError("one-run auditing needs 0 ≤ correct ≤ guesses ≤ rows")
    p = 1 / (1 + np.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, p))
    if delta == 0 or correct == 0:
        return min(1.0, tail)
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, p))
    steepest = float((below / np.arange(1, correct + 1)).max())
    return min(1.0, tail + 2 * rows * delta * steepest)


def one_run_epsilon(
    *, rows: int, guesses: int, correct: int, delta: float, confidence: float = CONFIDENCE
) -> float:
    """Bound ε from below at a given δ: the largest ε that the correct guesses refute."""

    def is_refuted(epsilon: float) -> bool:
        chance = correct_guess_probability(
            rows=rows, guesses=guesses, correct=correct, epsilon=epsilon, delta=delta
        )
        return chance < 1 - confidence

    low, high = 0.0, _MAX_EPSILON
    if not is_refuted(low):
        return 0.0
    while high - low > 1e-6:
        half = (low + high) / 2
        low, high = (half, high) if is_refuted(half) else (low, half)
    return low
