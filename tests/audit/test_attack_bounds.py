"""Bounds on ε and μ against their definitions, and by simulated coverage with a fixed key."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from deniable.audit.attack_bounds import (
    Rates,
    RunScores,
    best_threshold,
    epsilon_lower_bound,
    estimate_area,
    mu_lower_bound,
    mu_of_area,
)
from deniable.audit.binomial_bounds import lower_rate, upper_rate

MU = 0.8


def simulated(key, runs, *, mu=MU, targets=1):
    """Scores of a Gaussian mechanism: log likelihood ratios of N(μ, 1) against N(0, 1)."""
    rng = np.random.default_rng(key)
    present = rng.integers(0, 2, (runs, targets)).astype(bool)
    seen = rng.standard_normal((runs, targets)) + mu * present
    return RunScores(mu * seen - mu * mu / 2, present)


def test_rates_count_calls():
    called = np.array([True, True, False, False, True])
    present = np.array([True, False, True, False, True])
    assert Rates.of(called, present) == Rates(1, 2, 2, 3)
    assert Rates.of(called, present).reversed() == Rates.of(~called, ~present)


def test_the_bound_on_epsilon_is_its_definition_with_clopper_pearson_rates():
    rates = Rates(2, 400, 90, 500)
    each = 1 - 0.05 / 4  # two rates, two directions
    forward = (lower_rate(90, 500, confidence=each) - 1e-3) / upper_rate(2, 400, confidence=each)
    assert epsilon_lower_bound(rates, delta=1e-3) == pytest.approx(math.log(forward))
    # The test for absence: the row is called absent 398 times of 400, and 410 of 500.
    assert epsilon_lower_bound(rates.reversed(), delta=1e-3) == pytest.approx(math.log(forward))


def test_no_bound_is_negative():
    assert epsilon_lower_bound(Rates(50, 100, 50, 100), delta=0.0) == 0
    assert mu_lower_bound(Rates(50, 100, 40, 100)) == 0
    assert mu_lower_bound(Rates(100, 100, 100, 100)) == 0


def test_the_bound_on_mu_is_its_definition():
    rates, each = Rates(40, 400, 200, 500), 0.975
    expected = stats.norm.ppf(lower_rate(200, 500, confidence=each)) - stats.norm.ppf(
        upper_rate(40, 400, confidence=each)
    )
    assert mu_lower_bound(rates) == pytest.approx(expected)


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    scores = np.array([[3.0], [1.0], [2.0], [2.0], [0.0]])
    present = np.array([[True], [False], [True], [False], [False]])
    pairs = [
        1.0 if one > zero else 0.5 if one == zero else 0.0
        for one, zero in itertools.product((3.0, 2.0), (1.0, 2.0, 0.0))
    ]
    assert estimate_area(RunScores(scores, present)).area == pytest.approx(np.mean(pairs))


def test_mu_of_an_area_is_that_of_the_gaussian_mechanism():
    area = stats.norm.cdf(MU / math.sqrt(2))
    assert mu_of_area(area) == pytest.approx(MU)


SIMULATIONS = 200


def test_lower_bounds_cover_with_their_confidence():
    """95 % bounds exceed the truth in at most 5 % of simulations: 200 with fixed keys. A count
    above 21 has a probability below 10⁻³ if the rate is 5 %; the area's bound is asymptotic."""
    above = {"area": 0, "mu": 0, "epsilon": 0}
    delta = 1e-3
    truth = _true_epsilon(MU, delta)
    for key in range(SIMULATIONS):
        scores = simulated(key, 300)
        first, second = scores.halves()
        rates = second.rates_at(best_threshold(first, delta=delta))
        above["area"] += estimate_area(scores).mu_bound() > MU
        above["mu"] += mu_lower_bound(rates) > MU
        above["epsilon"] += epsilon_lower_bound(rates, delta=delta) > truth
    assert above["area"] <= 21
    assert above["mu"] <= 6  # conservative: both rates are bounded
    assert above["epsilon"] <= 6
    assert above["area"] >= 2  # and not so wide that it says nothing


def _true_epsilon(mu, delta):
    """ε of the Gaussian mechanism at δ, by bisection of its definition."""
    low, high = 0.0, 20.0
    for _ in range(60):
        half = (low + high) / 2
        d = stats.norm.cdf(mu / 2 - half / mu) - math.exp(half) * stats.norm.cdf(
            -mu / 2 - half / mu
        )
        low, high = (half, high) if d > delta else (low, half)
    return high


def test_a_threshold_chosen_on_the_measuring_half_would_not_cover():
    """The fault that two halves prevent: scores without any signal seem to have some."""
    found = {"halves": 0.0, "same": 0.0}
    for key in range(100):
        scores = simulated(key, 120, mu=0.0)
        noise = RunScores(
            scores.scores + np.random.default_rng(key).random((120, 1)), scores.present
        )
        first, second = noise.halves()
        for name, chosen in (("halves", first), ("same", second)):
            rates = second.rates_at(best_threshold(chosen, delta=0.0))
            found[name] += rates.true_positives - rates.false_positives
    assert abs(found["halves"] / 100) < 0.03
    assert found["same"] / 100 > 0.1


def test_dependent_targets_widen_the_interval_of_the_area():
    """All targets of a run get the same noise: as good as one target, and the error says so."""
    rng = np.random.default_rng(5)
    present = np.repeat(rng.integers(0, 2, (400, 1)).astype(bool), 10, axis=1)
    shared = np.repeat(rng.standard_normal((400, 1)), 10, axis=1) + MU * present
    one = estimate_area(RunScores(shared[:, :1], present[:, :1]))
    many = estimate_area(RunScores(shared, present))
    assert many.error == pytest.approx(one.error, rel=1e-6)
    independent = estimate_area(simulated(5, 400, targets=10))
    assert independent.error < one.error / 2


def test_one_target_of_each_run_is_measured_in_rotation():
    scores = RunScores(np.arange(12.0).reshape(4, 3), np.zeros((4, 3), dtype=bool))
    assert scores.one_per_run()[0].tolist() == [0.0, 4.0, 8.0, 9.0]


def test_without_one_of_the_sides_nothing_is_known():
    alone = RunScores(np.zeros((4, 1)), np.ones((4, 1), dtype=bool))
    assert estimate_area(alone).mu_bound() < 0
