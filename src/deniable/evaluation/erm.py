"""Linear classifiers, with and without privacy of their own (Sec. 6.3, Table 4).

Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk Minimization*, JMLR 12
(2011): logistic regression and support vector machine by minimising

    J(f) = 1/n · Σ_i loss(y_i · fᵀx_i) + λ/2 · |f|²            |x_i| ≤ 1, y_i = ±1

Output perturbation adds noise to the minimiser, objective perturbation to what is minimised. Both
are ε-differentially private for an exact minimiser. Here they are a yardstick: their noise comes
from a key, so nothing is claimed of these classifiers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from deniable.arrays import Codes, Mask, Reals
from deniable.data.attributes import Attribute
from deniable.errors import ConfigError
from deniable.randomness import Rng

Loss = Literal["logistic", "huber"]
LOSSES: tuple[Loss, ...] = ("logistic", "huber")
# In the words of the report.
TITLES = {"logistic": "Logistic regression", "huber": "Support vector machine"}

# The strengths λ that the paper tries; it keeps the one with which the model without noise does
# best.
PENALTIES = (1e-3, 1e-4, 1e-5, 1e-6)
# Half the width of the part of the support vector machine's loss that is rounded off.
_HUBER = 0.5
# The most that the second derivative of a loss can be: c of the work above.
_CURVATURE: dict[Loss, float] = {"logistic": 0.25, "huber": 1 / (2 * _HUBER)}
_MOST_STEPS = 200

# Columns whose codes are numbers: one feature; the others get one a code.
NUMERIC = frozenset({"integer", "real", "date", "datetime"})


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Rows to learn from: |x| ≤ 1 and y = ±1."""

    features: Any
    labels: Reals
    loss: Loss
    penalty: float

    @property
    def records(self) -> int:
        """How many rows."""
        return len(self.labels)


def linear_features(attributes: Sequence[Attribute], codes: Codes) -> Any:
    """Return the rows as the paper has them: each feature in [0, 1], each row's norm at most 1.

    A number is one feature, its place between the least and the greatest value of the schema; of
    any other attribute every code is one. A missing number is a feature of its own.
    """
    from scipy import sparse  # noqa: PLC0415 - slow to import, seldom used

    columns = [_columns(attribute, codes[:, j]) for j, attribute in enumerate(attributes)]
    stacked = sparse.csr_matrix(sparse.hstack(columns))
    norms = np.sqrt(np.asarray(stacked.multiply(stacked).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(norms, 1.0)) @ stacked)


def _columns(attribute: Attribute, codes: Codes) -> Any:
    from scipy import sparse  # noqa: PLC0415

    rows = np.arange(len(codes))
    if attribute.kind not in NUMERIC:
        return sparse.csr_matrix(
            (np.ones(len(codes)), (rows, codes.astype(np.int64))),
            shape=(len(codes), attribute.size),
        )
    missing = attribute.missing_code
    gone = np.zeros(len(codes)) if missing is None else (codes == missing).astype(np.float64)
    top = max(1, attribute.size - 1 - bool(attribute.missing))
    place = np.where(gone > 0, 0.0, codes / top)
    return sparse.csr_matrix(np.stack([place, gone], axis=1))


def minimise(
    problem: Problem,
    *,
    tilt: Reals | None = None,
    extra: float = 0.0,
    start: Reals | None = None,
) -> Reals:
    """Return f that minimises J(f) + tiltᵀf / n + extra/2 · |f|²; where it starts is no matter."""
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, seldom used
    from threadpoolctl import (  # type: ignore[import-untyped] # noqa: PLC0415
        threadpool_limits,
    )

    x, y, n = problem.features, problem.labels, problem.records
    turned = x.T.tocsr()
    lean = np.zeros(x.shape[1]) if tilt is None else tilt / n
    strength = problem.penalty + extra

    def objective(f: Reals) -> tuple[float, Reals]:
        loss, slope = _loss(problem.loss, y * (x @ f))
        gradient = turned @ (y * slope) / n + strength * f + lean
        return float(loss.mean() + strength / 2 * (f @ f) + lean @ f), gradient

    # Its vectors are short: several threads would mostly wait for each other.
    with threadpool_limits(1, user_api="blas"):
        found = minimize(
            objective,
            np.zeros(x.shape[1]) if start is None else start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MOST_STEPS, "ftol": 1e-10, "gtol": 1e-7},
        )
    return np.asarray(found.x, dtype=np.float64)


def _loss(loss: Loss, z: Reals) -> tuple[Reals, Reals]:
    """Return the loss at each margin z = y · fᵀx, and its derivative."""
    if loss == "logistic":
        value: Reals = np.logaddexp(0, -z)
        return value, -np.exp(-np.logaddexp(0, z))
    near: Mask = np.abs(1 - z) <= _HUBER
    far: Mask = z < 1 - _HUBER
    rounded = (1 + _HUBER - z) ** 2 / (4 * _HUBER)
    value = np.where(near, rounded, np.where(far, 1 - z, 0.0))
    slope = np.where(near, -(1 + _HUBER - z) / (2 * _HUBER), np.where(far, -1.0, 0.0))
    return value, slope


def output_perturbation(problem: Problem, *, epsilon: float, rng: Rng) -> Reals:
    """Return the minimiser with noise (Algorithm 1): density in proportion to exp(-nλε/2 · |b|)."""
    _require(epsilon, problem.penalty)
    f = minimise(problem)
    return f + spherical_noise(len(f), problem.records * problem.penalty * epsilon / 2, rng)


def objective_perturbation(problem: Problem, *, epsilon: float, rng: Rng) -> Reals:
    """Return the minimiser of J with a random tilt (Algorithm 2).

        ε' = ε - ln(1 + 2c/(nλ) + c²/(nλ)²)

    Where that is not above zero, the penalty grows until ε' = ε/2 suffices.
    """
    _require(epsilon, problem.penalty)
    n, c = problem.records, _CURVATURE[problem.loss]
    rate = c / (n * problem.penalty)
    left, extra = epsilon - math.log1p(2 * rate + rate**2), 0.0
    if left <= 0:
        extra = c / (n * math.expm1(epsilon / 4)) - problem.penalty
        left = epsilon / 2
    tilt = spherical_noise(problem.features.shape[1], left / 2, rng)
    return minimise(problem, tilt=tilt, extra=extra)


def spherical_noise(dimensions: int, rate: float, rng: Rng) -> Reals:
    """Return a vector of density in proportion to exp(-rate · |b|): any direction, Gamma length."""
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import, seldom used

    # Strictly between 0 and 1: neither logarithm nor quantile is infinite.
    uniform = np.minimum(rng.random(2 * dimensions) + 2.0**-54, 1 - 2.0**-53)
    direction: Reals = ndtri(uniform[:dimensions])
    # A Gamma variate of whole shape is a sum of exponential ones.
    length = -np.log(uniform[dimensions:]).sum() / rate
    noise: Reals = direction * (length / np.linalg.norm(direction))
    return noise


def _require(epsilon: float, penalty: float) -> None:
    if not (epsilon > 0 and penalty > 0):
        raise ConfigError(f"ε = {epsilon}, λ = {penalty}: both must be above zero")


def accuracy(f: Reals, features: Any, labels: Reals) -> float:
    """Return the share of rows whose label has the sign of fᵀx."""
    guess = np.where(features @ f >= 0, 1.0, -1.0)
    return float((guess == labels).mean())


def best_penalty(
    features: Any, labels: Reals, loss: Loss, *, test: Any, test_labels: Reals
) -> tuple[Problem, float]:
    """Return the problem with the λ whose minimiser does best on ``test``, and how well it does.

    The paper calls this optimistic: the test rows choose λ.
    """
    tried, start = [], None
    for penalty in PENALTIES:
        problem = Problem(features=features, labels=labels, loss=loss, penalty=penalty)
        # From the minimiser of the penalty before it is a shorter way.
        start = minimise(problem, start=start)
        tried.append((problem, accuracy(start, test, test_labels)))
    return max(tried, key=lambda one: one[1])
