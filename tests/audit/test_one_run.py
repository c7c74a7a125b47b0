"""One-run auditing against a literal transcription of its theorem, and by simulated coverage."""

import math

import numpy as np
import pytest
from scipy import stats

from deniable.audit.one_run import correct_guess_probability, one_run_epsilon
from deniable.errors import InvariantError


def literal(m, r, v, epsilon, delta):
    """The bound as the paper writes it: a tail, and δ times the steepest mean of the masses."""
    p = math.exp(epsilon) / (math.exp(epsilon) + 1)
    mass = [stats.binom.pmf(w, r, p) for w in range(r + 1)]
    steepest = 0.0
    for i in range(1, v + 1):
        steepest = max(steepest, sum(mass[v - i : v]) / i)
    return min(1.0, sum(mass[v:]) + 2 * m * delta * steepest)


@pytest.mark.parametrize(
    ("m", "r", "v", "epsilon", "delta"),
    [
        (100, 100, 70, 0.5, 0.0),
        (100, 40, 33, 1.0, 1e-5),
        (1000, 200, 150, 0.9, 1e-3),
        (5, 5, 0, 1, 0.1),
    ],
)
def test_the_probability_is_that_of_the_theorem(m, r, v, epsilon, delta):
    found = correct_guess_probability(rows=m, guesses=r, correct=v, epsilon=epsilon, delta=delta)
    assert found == pytest.approx(literal(m, r, v, epsilon, delta), rel=1e-9)


def test_the_bound_is_where_the_probability_reaches_its_error():
    bound = one_run_epsilon(rows=1000, guesses=200, correct=180, delta=1e-5)
    assert literal(1000, 200, 180, bound, 1e-5) == pytest.approx(0.05, rel=1e-3)
    assert one_run_epsilon(rows=1000, guesses=200, correct=110, delta=1e-5) == 0


def test_randomized_response_is_covered():
    """Randomized response of ε = 1 on every row is the worst case: 400 runs with fixed keys, and
    at most 5 % of the bounds may be above; more than 36 has a probability below 10⁻³."""
    rng = np.random.default_rng(1)
    truth = math.e / (1 + math.e)
    correct = rng.binomial(300, truth, 400)
    bounds = {
        int(v): one_run_epsilon(rows=300, guesses=300, correct=int(v), delta=0.0)
        for v in set(correct.tolist())
    }
    above = sum(bounds[int(v)] > 1.0 for v in correct)
    assert 3 <= above <= 36


def test_impossible_numbers_are_refused():
    with pytest.raises(InvariantError, match="correct"):
        one_run_epsilon(rows=10, guesses=5, correct=6, delta=0.0)
