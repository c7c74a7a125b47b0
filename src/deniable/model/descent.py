"""Minimise a smooth function: L-BFGS, with the bisection of Lewis and Overton for the step.

SciPy has it too, but importing its optimisers takes longer than all the fits of a usual run.
"""

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from deniable.arrays import Reals

# From a point to the value there and the gradient.
Loss = Callable[[Reals], tuple[float, Reals]]

# How much of the promised descent a step must bring, and how much of the slope it may leave.
_DESCENT = 1e-4
_SLOPE = 0.9
_MOST_STEPS = 20
_MEMORY = 8
_FLAT = 7e-7


def minimise(
    loss: Loss, start: Reals, *, curvature: float, iterations: int, tolerance: float
) -> Reals:
    """Return a point near the minimum of a convex function.

    Args:
        loss: The function and its gradient.
        start: Where to begin.
        curvature: About what the function has in every direction, before anything was seen of it.
        iterations: The most steps.
        tolerance: Enough, when a step brings less than this share of the value, or of one.
    """
    x, (value, gradient) = start, loss(start)
    pairs: deque[tuple[Reals, Reals]] = deque(maxlen=_MEMORY)
    for _ in range(iterations):
        if np.abs(gradient).max() <= _FLAT:
            break
        direction = -_newton_like(pairs, gradient, curvature)
        found = _step(loss, x, direction, value=value, slope=float(gradient @ direction))
        if found is None:
            break
        moved, lower, turned = found
        if float(moved @ (turned - gradient)) > 0:
            pairs.append((moved, turned - gradient))
        gained, scale = value - lower, max(abs(value), abs(lower), 1.0)
        x, value, gradient = x + moved, lower, turned
        if gained <= tolerance * scale:
            break
    return x


def _step(
    loss: Loss, x: Reals, direction: Reals, *, value: float, slope: float
) -> tuple[Reals, float, Reals] | None:
    """Return a step that descends enough and flattens enough, and what is there; None: rounding."""
    low, length, high = 0.0, 1.0, np.inf
    for _ in range(_MOST_STEPS):
        moved = length * direction
        there, gradient = loss(x + moved)
        # Written so that what is no number counts as too far.
        if not there <= value + _DESCENT * length * slope:
            high = length
        elif gradient @ direction < _SLOPE * slope:
            low = length
        else:
            return moved, there, gradient
        length = (low + high) / 2 if high < np.inf else 2 * low
    return None


def _newton_like(pairs: Iterable[tuple[Reals, Reals]], gradient: Reals, curvature: float) -> Reals:
    """Return the inverse curvature that the last steps saw, times the gradient (two loops)."""
    seen = list(pairs)
    found = gradient.copy()
    weights = []
    for moved, turned in reversed(seen):
        weight = float(moved @ found) / float(moved @ turned)
        found -= weight * turned
        weights.append(weight)
    moved, turned = seen[-1] if seen else (gradient, curvature * gradient)
    found *= float(moved @ turned) / float(turned @ turned)
    for (moved, turned), weight in zip(seen, reversed(weights), strict=True):
        found += (weight - float(turned @ found) / float(moved @ turned)) * moved
    return found
