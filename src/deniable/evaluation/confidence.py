"""How sure a number is: intervals that hold in 19 of 20 cases."""

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Reals

Interval = tuple[float, float]

# Both tails of the normal law beyond it hold 5 %.
NORMAL_95 = 1.959963984540054


def wilson(rate: float, trials: int) -> Interval:
    """Return Wilson's interval of a rate that was seen in so many trials.

    Unlike rate ± error it stays within [0, 1], and is never empty at 0 or 1.
    """
    if trials < 1:
        return 0.0, 1.0
    z2 = NORMAL_95**2 / trials
    centre = (rate + z2 / 2) / (1 + z2)
    half = NORMAL_95 * np.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials)) / (1 + z2)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def jackknife(estimate: float, left_out: Sequence[float] | Reals) -> Interval:
    """Return an interval from the same estimate made without each of a few groups of rows.

    Leaving rows out shifts a distance upwards by nearly the same amount each time, so that the
    differences between these estimates still show how far chance moves it.
    """
    values = np.asarray(left_out, dtype=np.float64)
    groups = len(values)
    variance = (groups - 1) / groups * ((values - values.mean()) ** 2).sum()
    half = NORMAL_95 * float(np.sqrt(variance))
    return estimate - half, estimate + half


def spread(values: Sequence[float]) -> Interval:
    """Return the least and the greatest of a few runs."""
    return float(min(values)), float(max(values))
