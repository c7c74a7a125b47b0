"""95 % confidence intervals of rates, by Wilson."""

from collections.abc import Sequence

import numpy as np

Interval = tuple[float, float]

# The 97.5 % quantile of the standard normal distribution.
NORMAL_95 = 1.959963984540054


def wilson_interval(rate: float, trials: int) -> Interval:
    """Compute the Wilson interval of a rate observed in ``trials`` trials.

    Unlike the normal approximation it stays within [0, 1] and has positive width at 0 and 1.
    """
    if trials < 1:
        return 0.0, 1.0
    z2 = NORMAL_95**2 / trials
    centre = (rate + z2 / 2) / (1 + z2)
    half = NORMAL_95 * np.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials)) / (1 + z2)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def spread(values: Sequence[float]) -> Interval:
    """Return the minimum and maximum of several runs."""
    return float(min(values)), float(max(values))
