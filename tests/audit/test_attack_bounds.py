"""Bounds on rates, ε and μ, and what is allowed: against definitions, by exact coverage."""

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
from deniable.audit.binomial_bounds import lower_rate, lower_rates, upper_rate, upper_rates
from deniable.audit.trade_off import (
    allowed_by_guarantee,
    allowed_by_loss,
    allowed_by_mu,
    allowed_sentence,
    area_below,
)
from deniable.errors import InvariantError
from deniable.privacy.discrete_losses import DiscreteLoss

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


# Clopper-Pearson bounds against their definition, scipy's own, and by exact coverage

CASES = [(0, 10), (1, 10), (5, 10), (10, 10), (3, 1_000), (997, 1_000), (0, 1), (1, 1)]


@pytest.mark.parametrize(("successes", "trials"), CASES)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_a_lower_bound_is_the_rate_at_which_so_many_successes_are_just_unlikely(
    successes, trials, confidence
):
    """The definition: at the bound, that many successes or more have probability 1 - confidence."""
    bound = lower_rate(successes, trials, confidence=confidence)
    if successes == 0:
        assert bound == 0
    else:
        tail = stats.binom.sf(successes - 1, trials, bound)
        assert tail == pytest.approx(1 - confidence, rel=1e-9)


@pytest.mark.parametrize(("successes", "trials"), CASES)
def test_an_upper_bound_mirrors_the_lower_one(successes, trials):
    assert upper_rate(successes, trials) == pytest.approx(
        1 - lower_rate(trials - successes, trials)
    )
    if successes < trials:
        tail = stats.binom.cdf(successes, trials, upper_rate(successes, trials))
        assert tail == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize(("successes", "trials"), CASES)
def test_an_interval_is_that_of_scipy(successes, trials):
    theirs = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    ours = [bound(successes, trials, confidence=0.975) for bound in (lower_rate, upper_rate)]
    assert ours == pytest.approx([theirs.low, theirs.high], abs=1e-12)


@pytest.mark.parametrize("rate", [0.001, 0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("trials", [5, 50, 400])
def test_bounds_cover_the_rate_with_at_least_their_confidence(rate, trials):
    """Coverage as a sum over all outcomes: exact, so nothing is left to chance."""
    outcomes = np.arange(trials + 1)
    chances = stats.binom.pmf(outcomes, trials, rate)
    lower = lower_rates(outcomes, trials, confidence=0.95)
    upper = upper_rates(outcomes, trials, confidence=0.95)
    assert chances[lower <= rate].sum() >= 0.95 - 1e-12
    assert chances[upper >= rate].sum() >= 0.95 - 1e-12
    # A bound from the normal approximation would not: it fails for a rare event.
    if (rate, trials) == (0.02, 50):
        share = outcomes / trials
        normal = share + 1.645 * np.sqrt(share * (1 - share) / trials)
        assert chances[normal >= rate].sum() < 0.65


def test_without_trials_nothing_is_known():
    assert lower_rate(0, 0) == 0
    assert upper_rate(0, 0) == 1


@pytest.mark.parametrize(("successes", "trials"), [(-1, 10), (11, 10)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(InvariantError, match="successes"):
        lower_rate(successes, trials)


RATES = np.linspace(0, 1, 41)


def test_an_epsilon_allows_what_randomized_response_attains():
    """Randomized response answers truly with probability e^ε/(1+e^ε): its test is a corner."""
    epsilon = 1.3
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    allowed = allowed_by_guarantee(np.array([1 - truth]), epsilon=epsilon, delta=0.0)
    assert allowed[0] == pytest.approx(truth)


def test_delta_may_be_found_without_false_alarms():
    assert allowed_by_guarantee(np.array([0.0]), epsilon=1.0, delta=0.01)[0] == 0.01
    assert (allowed_by_guarantee(RATES, epsilon=math.inf, delta=0.0) == 1).all()


def test_mu_allows_the_neyman_pearson_test_of_two_normals():
    """The threshold test of N(0.7, 1) against N(0, 1)."""
    thresholds = np.array([-1.0, 0.0, 0.5, 2.0])
    allowed = allowed_by_mu(stats.norm.sf(thresholds), mu=0.7)
    assert allowed == pytest.approx(stats.norm.sf(thresholds - 0.7))


def test_the_curve_of_a_gaussian_loss_is_that_of_mu():
    curve = allowed_by_loss(mu=0.5, discrete=DiscreteLoss.zero())
    assert (curve(RATES) >= allowed_by_mu(RATES, mu=0.5) - 1e-9).all()
    assert curve(RATES) == pytest.approx(allowed_by_mu(RATES, mu=0.5), abs=1e-4)


def test_the_curve_of_a_discrete_loss_is_that_of_all_tests():
    """Discrete Laplace noise on {0, 1}: every threshold of z is a test, enumerated."""
    epsilon = 0.6
    z = np.arange(-60, 61)
    law = np.exp(-epsilon * np.abs(z))
    law /= law.sum()
    curve = allowed_by_loss(mu=0.0, discrete=DiscreteLoss.from_laplace(epsilon))
    for threshold in range(-5, 6):
        false_positives = law[z >= threshold].sum()
        true_positives = law[z + 1 >= threshold].sum()
        allowed = float(curve(np.array([false_positives]))[0])
        assert true_positives <= allowed + 1e-9
        assert allowed <= true_positives + 2e-3


def test_losses_compose_to_more_than_either():
    both = allowed_by_loss(mu=0.5, discrete=DiscreteLoss.from_laplace(0.3))
    assert (both(RATES[1:-1]) > allowed_by_mu(RATES[1:-1], mu=0.5)).all()


def test_the_area_of_mu_has_a_closed_form():
    area = area_below(lambda rates: allowed_by_mu(rates, mu=0.4))
    assert area == pytest.approx(stats.norm.cdf(0.4 / math.sqrt(2)), abs=1e-5)


def test_the_sentence_is_rounded_up():
    words = allowed_sentence(0.01, lambda rates: allowed_by_guarantee(rates, epsilon=1, delta=0))
    assert words == "An attacker who allows 1 % false alarms finds at most 2.72 % of the rows."
