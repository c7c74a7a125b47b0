"""Regression on noisy sums: least squares without noise, shrinkage by the noise, variances."""

import itertools

import numpy as np
import pytest

from deniable.model.paper import noisy_regression
from deniable.model.paper.noisy_regression import fit_lines, shrunk_ratio


def sums_of(x, y):
    u = np.column_stack([np.ones(len(y)), x, y])
    return u.T @ u


def test_without_noise_and_prior_it_is_least_squares():
    """Two groups with different lines, against NumPy's solver on the records themselves."""
    rng = np.random.default_rng(3)
    grams, expected, residual = [], [], []
    for slopes in ([0.5, -0.2], [-0.3, 0.4]):
        x = rng.uniform(-60, 60, (500, 2))
        y = 5 + x @ slopes + rng.normal(0, 3, 500)
        full = np.column_stack([np.ones(500), x])
        line, squares, *_ = np.linalg.lstsq(full, y)
        grams.append(sums_of(x, y))
        expected.append(line)
        residual.append(squares[0] / 500)
    noise = np.zeros((4, 4))
    found, variances = fit_lines(np.array(grams), noise, bound=64, min_variance=0.1, alpha=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(variances, residual, rtol=1e-6)


def test_under_much_noise_groups_have_the_line_and_the_variance_of_all():
    """Noise far above the sums of one group, but below those of all groups together.

    Less than a fifth of the difference between groups remains; without noise, all of it.
    """
    rng = np.random.default_rng(4)
    grams = []
    for group in range(4_000):
        x = rng.uniform(-60, 60, (40, 1))
        y = 10 * (group % 2) + 0.5 * x[:, 0] + rng.normal(0, 3, 40)
        grams.append(sums_of(x, y))
    noise = np.array([[1e3, 1e6, 1e6], [1e6, 1e11, 1e11], [1e6, 1e11, 1e11]])
    gram = np.array(grams)
    exact_lines, _ = fit_lines(gram, 0 * noise, bound=64, min_variance=0.1, alpha=1.0)
    found, variances = fit_lines(gram, noise, bound=64, min_variance=0.1, alpha=1.0)
    apart = np.abs(np.diff(exact_lines[:, 0])).mean()
    assert apart == pytest.approx(10, rel=0.05)
    assert np.abs(found[:, 1] - 0.5).max() < 0.05
    assert np.abs(exact_lines[:, 1] - 0.5).max() > 0.05
    assert np.abs(np.diff(found[:, 0])).mean() < 0.2 * apart
    assert np.abs(variances / np.median(variances) - 1).max() < 0.01


def test_if_noise_hides_everything_only_the_range_is_left():
    """Mean 0 and variance B²/3, whatever the sums are."""
    gram = np.array([[[1.0, 60, 60], [60, 3600, 3600], [60, 3600, 3600]]] * 3)
    found, variances = fit_lines(gram, np.full((3, 3), 1e20), bound=64, min_variance=0.1, alpha=1.0)
    np.testing.assert_allclose(found, 0.0, atol=1e-6)
    np.testing.assert_allclose(variances, 64**2 / 3, rtol=1e-6)


def symmetric_units(size):
    for i, j in itertools.combinations_with_replacement(range(size), 2):
        unit = np.zeros((size, size))
        unit[i, j] = unit[j, i] = 1
        yield (i, j), unit


def test_noise_of_a_product_is_the_sum_over_independent_entries():
    """Var of A E h, entry by entry: each independent entry of E alone."""
    rng = np.random.default_rng(5)
    standard, direction = rng.normal(size=(4, 4)), rng.normal(size=4)
    noise = rng.uniform(1, 5, (4, 4))
    noise = noise + noise.T
    expected = sum(
        noise[at] * (standard @ unit @ direction) ** 2 for at, unit in symmetric_units(4)
    )
    found = noisy_regression._product_variance(standard, direction, noise)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_noise_of_residual_squares_is_the_sum_over_independent_entries():
    rng = np.random.default_rng(6)
    standard, line = rng.normal(size=(4, 4)), rng.normal(size=(1, 3))
    noise = rng.uniform(1, 5, (4, 4))
    noise = noise + noise.T
    along = np.append(-line[0], 1.0) @ standard
    expected = sum(noise[at] * (along @ unit @ along) ** 2 for at, unit in symmetric_units(4))
    gram = rng.normal(size=(1, 4, 4))
    _, found = noisy_regression._residual_squares(gram, line, standard, noise)
    assert found[0] == pytest.approx(expected, rel=1e-12)


def test_a_ratio_of_few_records_is_shrunk_toward_the_prior():
    """Half way for √v records, v the variance of the noise; the prior for none; t / n for many."""
    counts = np.array([-5.0, 0.0, 10.0, 1e9])
    found = shrunk_ratio(3 * counts, counts, 1.0, np.array(100.0), alpha=0.0)
    np.testing.assert_allclose(found, [1, 1, 2, 3])
    assert shrunk_ratio(np.zeros(1), np.zeros(1), 1.0, np.zeros(1), alpha=0.0) == 1
