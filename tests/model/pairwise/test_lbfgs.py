"""L-BFGS: minima are those of other methods, and bad steps are shortened."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from deniable.model.pairwise.lbfgs import minimise
from worlds import property_test


def quadratic(matrix, target):
    """½ (x - t)ᵀ A (x - t): its minimum is t."""

    def loss(x):
        turned = matrix @ (x - target)
        return 0.5 * float((x - target) @ turned), turned

    return loss


def logistic(rows, wanted, penalty):
    """A penalised logistic loss, per row."""

    def loss(x):
        logits = rows @ x
        value = np.logaddexp(0, logits).sum() - wanted @ logits + 0.5 * penalty * x @ x
        gradient = rows.T @ (1 / (1 + np.exp(-logits)) - wanted) + penalty * x
        return float(value) / len(rows), gradient / len(rows)

    return loss


@property_test
@given(st.integers(1, 8), st.floats(1, 300), st.floats(0.01, 100), st.integers(0, 2**32 - 1))
def test_a_quadratic_is_minimised_from_any_initial_curvature(n, spread, guess, key):
    rng = np.random.default_rng(key)
    turned = np.linalg.qr(rng.normal(size=(n, n)))[0]
    matrix = turned @ np.diag(np.geomspace(1, spread, n)) @ turned.T
    target = rng.normal(size=n)
    found = minimise(
        quadratic(matrix, target), np.zeros(n), curvature=guess, iterations=500, tolerance=0.0
    )
    np.testing.assert_allclose(found, target, atol=2e-6)


@pytest.mark.parametrize("key", range(5))
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_the_minimum_is_as_low_as_scipy_s(key, penalty):
    """Oracle: L-BFGS-B, with the same limits."""
    rng = np.random.default_rng(key)
    rows, wanted = rng.normal(size=(300, 40)), rng.integers(0, 2, 300).astype(float)
    loss = logistic(rows, wanted, penalty)
    theirs = minimize(
        loss, np.zeros(40), jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-6}
    )
    ours = minimise(loss, np.zeros(40), curvature=0.25, iterations=200, tolerance=1e-12)
    assert loss(ours)[0] == pytest.approx(theirs.fun, abs=1e-9)
    assert len(rows) * loss(np.zeros(40))[0] > len(rows) * theirs.fun + 10, "nothing to descend"


def test_it_stops_at_the_tolerance_or_after_the_last_iteration():
    asked = []
    plain = quadratic(np.diag(np.geomspace(1, 1e4, 30)), np.ones(30))

    def loss(x):
        asked.append(x)
        return plain(x)

    once = minimise(loss, np.zeros(30), curvature=1e4, iterations=1, tolerance=0.0)
    assert plain(once)[0] < plain(np.zeros(30))[0]
    few = len(asked)
    asked.clear()
    minimise(loss, np.zeros(30), curvature=1e4, iterations=500, tolerance=1.0)
    assert len(asked) <= few + 1
    asked.clear()
    minimise(loss, np.ones(30), curvature=1.0, iterations=500, tolerance=0.0)
    assert len(asked) == 1, "flat already"


def test_a_step_to_nan_is_shortened():
    """-ln x + x, defined for x > 0 only; the first step from 4 would go below zero."""

    def loss(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((x - np.log(x)).sum()), 1 - 1 / x

    found = minimise(loss, np.array([4.0]), curvature=0.1, iterations=50, tolerance=0.0)
    np.testing.assert_allclose(found, 1.0, atol=1e-5)


def test_without_a_descending_step_the_start_is_returned():
    """A wrong gradient: no step descends, and the search ends."""
    found = minimise(
        lambda x: (float(np.abs(x).sum()), np.ones_like(x)),
        np.zeros(3),
        curvature=1.0,
        iterations=50,
        tolerance=0.0,
    )
    assert found.tolist() == [0.0, 0.0, 0.0]
