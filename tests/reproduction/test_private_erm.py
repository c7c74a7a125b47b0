"""Linear classifiers, private and not, against other methods and against their laws."""

import numpy as np
import pytest
from scipy import optimize, sparse, stats
from sklearn.linear_model import LogisticRegression

from deniable.errors import ConfigError
from deniable.randomness import Keyed
from deniable.reproduction import private_erm
from deniable.reproduction.private_erm import (
    ErmProblem,
    accuracy,
    best_penalty,
    linear_features,
    minimise,
    objective_perturbation,
    output_perturbation,
    spherical_noise,
)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    x = rng.random((400, 6))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    y = np.where(x @ [3, -2, 1, 0, -1, 0.5] + 0.2 * rng.standard_normal(400) > 0, 1.0, -1.0)
    return ErmProblem(features=sparse.csr_matrix(x), labels=y, loss="logistic", penalty=1e-3)


def test_features_are_one_a_value_and_no_row_is_longer_than_1(small_schema, small_codes):
    x = linear_features(small_schema.attributes, small_codes).toarray()
    # years and boats are numbers, with a place for missing each; trade has a code for missing.
    assert x.shape == (2_000, 2 + 5 + 2 + 2 + 3)
    assert x.min() >= 0
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    record = small_codes[0]
    raw = np.zeros(14)
    raw[0] = record[0] / 59
    raw[2 + record[1]] = raw[7 + record[2]] = raw[11 + record[4]] = 1
    raw[9] = record[3] / 5
    assert x[0] == pytest.approx(raw / np.linalg.norm(raw))


def test_the_minimiser_is_that_of_scikit_learn(problem):
    """Golden: LogisticRegression minimises Σ loss + |f|²/(2C), so C = 1/(nλ)."""
    n = problem.records
    theirs = LogisticRegression(
        C=1 / (n * problem.penalty), fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(problem.features, problem.labels)
    assert minimise(problem) == pytest.approx(theirs.coef_[0], abs=2e-2)


@pytest.mark.parametrize("loss", private_erm.LOSSES)
def test_slopes_are_the_derivatives_of_losses(loss):
    def value(z):
        return private_erm._loss(loss, z)[0][0]

    for z in (-2.0, 0.2, 0.51, 1.0, 1.3, 1.49, 3.0):
        slope = optimize.approx_fprime([z], value, 1e-7)
        assert private_erm._loss(loss, np.array([z]))[1] == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("loss", private_erm.LOSSES)
def test_no_second_derivative_is_above_the_bound_that_the_proof_uses(loss):
    z = np.linspace(-3, 3, 6_001)
    slopes = private_erm._loss(loss, z)[1]
    assert np.diff(slopes).max() / np.diff(z)[0] <= private_erm._MAX_CURVATURE[loss] + 1e-6


def test_noise_has_gamma_length_and_no_preferred_direction():
    """|b| ~ Gamma(d, 1/rate), every coordinate symmetric; false-alarm rate 10⁻⁶, fixed key."""
    rng, dimensions, rate = Keyed(7).at("records"), 5, 2.0
    noise = np.array([spherical_noise(dimensions, rate, rng) for _ in range(4_000)])
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.kstest(lengths, stats.gamma(dimensions, scale=1 / rate).cdf).pvalue > 1e-6
    positive = int((noise > 0).sum())
    assert stats.binomtest(positive, noise.size, 0.5).pvalue > 1e-6
    # And the test would notice a rate that is a tenth off.
    assert stats.kstest(lengths, stats.gamma(dimensions, scale=1.1 / rate).cdf).pvalue < 1e-6


def test_output_perturbation_adds_noise_of_the_stated_rate(problem):
    f = output_perturbation(problem, epsilon=2.0, rng=Keyed(1).at("records"))
    rate = 400 * 1e-3 * 2.0 / 2
    assert f - minimise(problem) == pytest.approx(spherical_noise(6, rate, Keyed(1).at("records")))


def test_with_a_large_epsilon_objective_perturbation_is_the_minimiser(problem):
    private = objective_perturbation(problem, epsilon=1e9, rng=Keyed(1).at("records"))
    assert private == pytest.approx(minimise(problem), abs=1e-3)


def test_with_a_weak_penalty_it_is_raised_until_half_of_epsilon_suffices(problem, monkeypatch):
    seen = {}
    monkeypatch.setattr(private_erm, "minimise", lambda _p, **given: seen.update(given))
    weak = ErmProblem(
        features=problem.features, labels=problem.labels, loss="logistic", penalty=1e-9
    )
    objective_perturbation(weak, epsilon=1.0, rng=Keyed(1).at("records"))
    assert seen["extra_penalty"] == pytest.approx(0.25 / (400 * np.expm1(0.25)) - 1e-9)
    assert seen["linear_term"] == pytest.approx(spherical_noise(6, 0.25, Keyed(1).at("records")))


def test_the_best_penalty_is_the_one_that_does_best_on_the_test_rows(problem):
    x, y = problem.features, problem.labels
    found, score = best_penalty(x, y, "logistic", test=x, test_labels=y)
    each = {
        p: accuracy(minimise(ErmProblem(features=x, labels=y, loss="logistic", penalty=p)), x, y)
        for p in private_erm.PENALTIES
    }
    assert score == max(each.values())
    assert each[found.penalty] == score
    assert score > 0.9


def test_no_noise_at_all_is_refused(problem):
    with pytest.raises(ConfigError, match="above zero"):
        output_perturbation(problem, epsilon=0.0, rng=Keyed(1).at("records"))
