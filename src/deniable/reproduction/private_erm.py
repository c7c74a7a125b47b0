"""Differentially private empirical risk minimization: linear classifiers (Sec. 6.3, Table 4).

Chaudhuri, Monteleoni and Sarwate, *Differentially Private Empirical Risk Minimization*, JMLR 12
(2011): logistic regression and support vector machine by minimising

    J(f) = 1/n · Σ_i loss(y_i · fᵀx_i) + λ/2 · |f|²            |x_i| ≤ 1, y_i = ±1

Output perturbation adds noise to the minimiser, objective perturbation to the objective. Both are
ε-differentially private for an exact minimiser. Here they are baselines only: their noise comes
from a key, so no privacy is claimed for these classifiers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from deniable.arrays import Codes, Mask, Reals
from deniable.errors import ConfigError
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute

Loss = Literal["logistic", "huber"]
LOSSES: tuple[Loss, ...] = ("logistic", "huber")

# Values of λ that the paper tries. It keeps the one with the best accuracy without noise.
PENALTIES = (1e-3, 1e-4, 1e-5, 1e-6)
# Half-width of the quadratic part of the Huber loss of the support vector machine.
_HUBER_WIDTH = 0.5
# Upper bound of the second derivative of a loss: c in the work above.
_MAX_CURVATURE: dict[Loss, float] = {"logistic": 0.25, "huber": 1 / (2 * _HUBER_WIDTH)}
_LBFGS_MAX_ITERATIONS = 200


@dataclass(frozen=True, kw_only=True)
class ErmProblem:
    """Training rows and regularization: |x| ≤ 1 and y = ±1."""

    features: Any
    labels: Reals
    loss: Loss
    penalty: float

    @property
    def records(self) -> int:
        """Number of training rows."""
        return len(self.labels)


def linear_features(attributes: Sequence[Attribute], codes: Codes) -> Any:
    """Encode rows as the paper does: features in [0, 1], each row of norm at most 1.

    A number is one feature, scaled by the schema's minimum and maximum; other attributes are
    one-hot encoded. A missing number is a separate feature.
    """
    from scipy import sparse  # noqa: PLC0415 - slow to import, rarely used

    columns = [_feature_columns(attribute, codes[:, j]) for j, attribute in enumerate(attributes)]
    stacked = sparse.csr_matrix(sparse.hstack(columns))
    norms = np.sqrt(np.asarray(stacked.multiply(stacked).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(norms, 1.0)) @ stacked)


def _feature_columns(attribute: Attribute, codes: Codes) -> Any:
    from scipy import sparse  # noqa: PLC0415

    rows = np.arange(len(codes))
    if not attribute.is_numeric:
        return sparse.csr_matrix(
            (np.ones(len(codes)), (rows, codes.astype(np.int64))),
            shape=(len(codes), attribute.size),
        )
    missing = attribute.missing_code
    is_missing = np.zeros(len(codes)) if missing is None else (codes == missing).astype(np.float64)
    max_code = max(1, attribute.size - 1 - bool(attribute.missing))
    scaled = np.where(is_missing > 0, 0.0, codes / max_code)
    return sparse.csr_matrix(np.stack([scaled, is_missing], axis=1))


def minimise(
    problem: ErmProblem,
    *,
    linear_term: Reals | None = None,
    extra_penalty: float = 0.0,
    start: Reals | None = None,
) -> Reals:
    """Minimise J(f) + bᵀf / n + Δ/2 · |f|², with b the linear term and Δ the extra penalty."""
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, rarely used
    from threadpoolctl import (  # type: ignore[import-untyped] # noqa: PLC0415
        threadpool_limits,
    )

    x, y, n = problem.features, problem.labels, problem.records
    transposed = x.T.tocsr()
    linear = np.zeros(x.shape[1]) if linear_term is None else linear_term / n
    penalty = problem.penalty + extra_penalty

    def objective(f: Reals) -> tuple[float, Reals]:
        loss, slope = _loss(problem.loss, y * (x @ f))
        gradient = transposed @ (y * slope) / n + penalty * f + linear
        return float(loss.mean() + penalty / 2 * (f @ f) + linear @ f), gradient

    # The vectors are short: BLAS threads would cost more than they save.
    with threadpool_limits(1, user_api="blas"):
        found = minimize(
            objective,
            np.zeros(x.shape[1]) if start is None else start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _LBFGS_MAX_ITERATIONS, "ftol": 1e-10, "gtol": 1e-7},
        )
    return np.asarray(found.x, dtype=np.float64)


def _loss(loss: Loss, z: Reals) -> tuple[Reals, Reals]:
    """Compute the loss at each margin z = y · fᵀx, and its derivative."""
    if loss == "logistic":
        value: Reals = np.logaddexp(0, -z)
        return value, -np.exp(-np.logaddexp(0, z))
    is_quadratic: Mask = np.abs(1 - z) <= _HUBER_WIDTH
    is_linear: Mask = z < 1 - _HUBER_WIDTH
    quadratic = (1 + _HUBER_WIDTH - z) ** 2 / (4 * _HUBER_WIDTH)
    value = np.where(is_quadratic, quadratic, np.where(is_linear, 1 - z, 0.0))
    slope = np.where(
        is_quadratic,
        -(1 + _HUBER_WIDTH - z) / (2 * _HUBER_WIDTH),
        np.where(is_linear, -1.0, 0.0),
    )
    return value, slope


def output_perturbation(problem: ErmProblem, *, epsilon: float, rng: Rng) -> Reals:
    """Add noise of density proportional to exp(-nλε/2 · |b|) to the minimiser (Algorithm 1)."""
    _require_positive(epsilon, problem.penalty)
    f = minimise(problem)
    return f + spherical_noise(len(f), problem.records * problem.penalty * epsilon / 2, rng)


def objective_perturbation(problem: ErmProblem, *, epsilon: float, rng: Rng) -> Reals:
    """Minimise J plus a random linear term (Algorithm 2).

        ε' = ε - ln(1 + 2c/(nλ) + c²/(nλ)²)

    If ε' is not positive, the penalty is raised so that ε' = ε/2 is allowed.
    """
    _require_positive(epsilon, problem.penalty)
    n, c = problem.records, _MAX_CURVATURE[problem.loss]
    rate = c / (n * problem.penalty)
    remaining, extra_penalty = epsilon - math.log1p(2 * rate + rate**2), 0.0
    if remaining <= 0:
        extra_penalty = c / (n * math.expm1(epsilon / 4)) - problem.penalty
        remaining = epsilon / 2
    linear_term = spherical_noise(problem.features.shape[1], remaining / 2, rng)
    return minimise(problem, linear_term=linear_term, extra_penalty=extra_penalty)


def spherical_noise(dimensions: int, rate: float, rng: Rng) -> Reals:
    """Draw b with density proportional to exp(-rate · |b|): random direction, Gamma norm."""
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import, rarely used

    # Strictly between 0 and 1, so that logarithm and normal quantile are finite.
    uniform = np.minimum(rng.random(2 * dimensions) + 2.0**-54, 1 - 2.0**-53)
    direction: Reals = ndtri(uniform[:dimensions])
    # A Gamma variate of integer shape is a sum of exponential variates.
    length = -np.log(uniform[dimensions:]).sum() / rate
    noise: Reals = direction * (length / np.linalg.norm(direction))
    return noise


def _require_positive(epsilon: float, penalty: float) -> None:
    if not (epsilon > 0 and penalty > 0):
        raise ConfigError(f"ε = {epsilon}, λ = {penalty}: both must be above zero")


def accuracy(f: Reals, features: Any, labels: Reals) -> float:
    """Compute the share of rows whose label is the sign of fᵀx."""
    predicted = np.where(features @ f >= 0, 1.0, -1.0)
    return float((predicted == labels).mean())


def best_penalty(
    features: Any, labels: Reals, loss: Loss, *, test: Any, test_labels: Reals
) -> tuple[ErmProblem, float]:
    """Choose the λ with the best test accuracy; return its problem and that accuracy.

    The paper calls this optimistic: λ is chosen on the test rows.
    """
    tried, start = [], None
    for penalty in PENALTIES:
        problem = ErmProblem(features=features, labels=labels, loss=loss, penalty=penalty)
        # Warm start from the minimiser of the previous penalty.
        start = minimise(problem, start=start)
        tried.append((problem, accuracy(start, test, test_labels)))
    return max(tried, key=lambda problem_and_accuracy: problem_and_accuracy[1])
