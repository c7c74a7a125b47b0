"""Special functions of the accountant: scaled erfc, log factorial, log of a sum of exponentials.

They are accurate to a few units in the last place, which the error bounds of their callers cover.
SciPy has them too, but its import takes longer than a whole plan. ``verification`` uses SciPy's, so
that every certificate is checked by other code.
"""

import math

import numpy as np

from deniable.arrays import Reals

# Step and number of nodes of the midpoint rule in ``erfcx``: its error, e^-(π/h)², and the part of
# the integral beyond the last node are both below 2^-55.
_STEP = 0.5
_SQUARED_NODES = ((np.arange(14)[::-1, np.newaxis] + 0.5) * _STEP) ** 2  # smallest terms first
_NODE_WEIGHTS = np.exp(-_SQUARED_NODES)
# From here on the pole of the integrand is outside the strip that the midpoint rule can use.
_POLE_LIMIT = math.pi / _STEP
# Larger arguments would overflow when squared; the function is then below every caller's error.
_MAX_ARGUMENT = 1e150
# log(n!) of smaller n is tabulated; from here on four terms of Stirling's series have an error
# below 1e-16.
_STIRLING_FROM = 32
_SMALL_LOG_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(_STIRLING_FROM)])


def erfcx(x: Reals) -> Reals:
    """Compute e^(x²) erfc(x) for x ≥ 0, with a relative error below 2^-49.

        erfcx(x) = (2 h x / π) Σ_n e^(-t²) / (t² + x²) + 2 e^(x²) / (1 + e^(2πx/h)),  t = (n + ½) h

    This is the midpoint rule for the integral of e^(-t²) x / (π (t² + x²)) over all t (Chiarella
    and Reichel, 1968), and the residue of its pole at t = ix. All terms are positive, so nothing
    cancels.
    """
    x = np.minimum(x, _MAX_ARGUMENT)
    total = (_NODE_WEIGHTS / (_SQUARED_NODES + x * x)).sum(axis=0)
    near = np.minimum(x, _POLE_LIMIT)
    residue = 2 * np.exp(near * (near - 2 * _POLE_LIMIT)) / (1 + np.exp(-2 * _POLE_LIMIT * near))
    scaled: Reals = (2 * _STEP / math.pi) * x * total + np.where(x < _POLE_LIMIT, residue, 0.0)
    return scaled


def log_factorial(n: Reals) -> Reals:
    """Compute log(n!) of whole numbers n ≥ 0, with an error of a few ulp of the largest term.

    log(n!) = (n + ½) log n - n + ½ log 2π + 1/(12 n) - 1/(360 n³) + 1/(1260 n⁵) - 1/(1680 n⁷)
    """
    large = np.maximum(n, _STIRLING_FROM)
    inverse = 1 / large
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    stirling = (large + 0.5) * np.log(large) - large + (0.5 * math.log(2 * math.pi) + series)
    small = _SMALL_LOG_FACTORIALS[np.minimum(n, _STIRLING_FROM - 1).astype(np.intp)]
    return np.where(n < _STIRLING_FROM, small, stirling)


def log_sum_exp(values: Reals) -> float:
    """Compute log Σ e^v without overflow."""
    largest = float(values.max())
    return largest + math.log(float(np.exp(values - largest).sum()))
