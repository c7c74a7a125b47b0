"""Minimise a convex function by L-BFGS: our own, because SciPy's takes longer to import."""

from collections import deque
from collections.abc import Callable, Iterable

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
    history: deque[tuple[Reals, Reals]] = deque(maxlen=_LBFGS_MEMORY)
    for _ in range(iterations):
        if np.abs(gradient).max() <= _GRADIENT_TOLERANCE:
            break
        direction = -_inverse_hessian_product(history, gradient, curvature)
        step = _line_search(loss, x, direction, value=value, slope=float(gradient @ direction))
        if step is None:
            break
        change, new_value, new_gradient = step
        if float(change @ (new_gradient - gradient)) > 0:
            history.append((change, new_gradient - gradient))
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
    history: Iterable[tuple[Reals, Reals]], gradient: Reals, curvature: float
) -> Reals:
    """Multiply the gradient by the approximate inverse Hessian (L-BFGS two-loop recursion)."""
    changes = list(history)
    product = gradient.copy()
    weights = []
    for change, gradient_change in reversed(changes):
        weight = float(change @ product) / float(change @ gradient_change)
        product -= weight * gradient_change
        weights.append(weight)
    change, gradient_change = changes[-1] if changes else (gradient, curvature * gradient)
    product *= float(change @ gradient_change) / float(gradient_change @ gradient_change)
    for (change, gradient_change), weight in zip(changes, reversed(weights), strict=True):
        correction = float(gradient_change @ product) / float(change @ gradient_change)
        product += (weight - correction) * change
    return product
