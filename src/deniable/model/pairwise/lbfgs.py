"""Minimise a convex function by L-BFGS: our own, because SciPy's takes longer to import."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from deniable.arrays import Reals

# Maps a point to the value and the gradient of a function.
Loss = Callable[[Reals], tuple[float, Reals]]
_GRADIENT_TOLERANCE = 7e-7
# Steps whose change of the gradient is remembered.
_LBFGS_MEMORY = 16
# Wolfe conditions of the line search: the least share of the predicted decrease that a step must
# achieve, and the largest share of the slope that may remain.
_MIN_DECREASE = 1e-4
_MAX_SLOPE_RATIO = 0.9
_MAX_LINE_SEARCH_STEPS = 20


class _DescentStep(NamedTuple):
    """A step, the change of the gradient, and their product."""

    change: Reals
    gradient_change: Reals
    product: float

    @classmethod
    def of(cls, change: Reals, gradient_change: Reals) -> "_DescentStep":
        """Multiply once what every later iteration needs."""
        return cls(change, gradient_change, float(change @ gradient_change))


def minimise(
    loss: Loss, start: Reals, *, curvature: float, iterations: int, tolerance: float
) -> Reals:
    """Minimise a convex function by L-BFGS.

    Args:
        loss: The function and its gradient.
        start: The first point.
        curvature: Approximate curvature in every direction, used for the first step.
        iterations: The largest number of steps.
        tolerance: Stop when a step decreases the value by less than this, relative to the value
            or to 1, whichever is larger.
    """
    x, (value, gradient) = start, loss(start)
    history: deque[_DescentStep] = deque(maxlen=_LBFGS_MEMORY)
    for _ in range(iterations):
        if np.abs(gradient).max() <= _GRADIENT_TOLERANCE:
            break
        direction = -_inverse_hessian_product(history, gradient, curvature)
        step = _line_search(loss, x, direction, value=value, slope=float(gradient @ direction))
        if step is None:
            break
        change, new_value, new_gradient = step
        done = _DescentStep.of(change, new_gradient - gradient)
        if done.product > 0:
            history.append(done)
        decrease, scale = value - new_value, max(abs(value), abs(new_value), 1.0)
        x, value, gradient = x + change, new_value, new_gradient
        if decrease <= tolerance * scale:
            break
    return x


def _line_search(
    loss: Loss, x: Reals, direction: Reals, *, value: float, slope: float
) -> tuple[Reals, float, Reals] | None:
    """Find a step that meets the Wolfe conditions, by bisection; None if rounding prevents it.

    Returns:
        The step, and the value and gradient after it.
    """
    lower, length, upper = 0.0, 1.0, np.inf
    for _ in range(_MAX_LINE_SEARCH_STEPS):
        change = length * direction
        new_value, gradient = loss(x + change)
        # Negated so that NaN counts as overshooting.
        if not new_value <= value + _MIN_DECREASE * length * slope:
            upper = length
        elif gradient @ direction < _MAX_SLOPE_RATIO * slope:
            lower = length
        else:
            return change, new_value, gradient
        length = (lower + upper) / 2 if upper < np.inf else 2 * lower
    return None


def _inverse_hessian_product(
    history: Sequence[_DescentStep], gradient: Reals, curvature: float
) -> Reals:
    """Multiply the gradient by the approximate inverse Hessian (L-BFGS two-loop recursion)."""
    product = gradient.copy()
    weights = []
    for step in reversed(history):
        weight = float(step.change @ product) / step.product
        product -= weight * step.gradient_change
        weights.append(weight)
    last = history[-1] if history else _DescentStep.of(gradient, curvature * gradient)
    product *= last.product / float(last.gradient_change @ last.gradient_change)
    for step, weight in zip(history, reversed(weights), strict=True):
        correction = float(step.gradient_change @ product) / step.product
        product += (weight - correction) * step.change
    return product
