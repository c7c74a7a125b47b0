"""Allowed true positives against enumeration of outcomes, and against each other."""

import math

import numpy as np
import pytest
from scipy import stats

from deniable.audit.trade_off import (
    allowed_by_guarantee,
    allowed_by_loss,
    allowed_by_mu,
    allowed_sentence,
    area_below,
)
from deniable.privacy.discrete_losses import DiscreteLoss

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
