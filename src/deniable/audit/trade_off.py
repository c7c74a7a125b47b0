"""Trade-off curves: the most true positives that a guarantee allows at a false-positive rate.

An attacker decides from a release whether a row was in the table. A guarantee bounds the rate of
true positives at every rate of false ones (the trade-off function of hypothesis testing, as true
positives): for (ε, δ), for Gaussian differential privacy, and for any privacy loss distribution.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from deniable.arrays import Reals
from deniable.privacy.discrete_losses import DiscreteLoss, mixture_delta

# Rates of true positives allowed at rates of false ones.
AllowedRates = Callable[[Reals], Reals]

# Values of ε at which δ(ε) bounds the curve of a loss distribution, and their largest size.
_LOSS_POINTS = 801
_MAX_LOSS = 40.0


def allowed_by_guarantee(false_positives: Reals, *, epsilon: float, delta: float) -> Reals:
    """True positives that (ε, δ) allows, by adding and by removing the row.

    TPR ≤ min { e^ε · FPR + δ,  1 - e^-ε (1 - δ - FPR),  1 }

    Privacy:
        Neighbours: those of the guarantee.
        Covers: every attack on everything that the guarantee covers.
    """
    rates = np.asarray(false_positives, dtype=np.float64)
    if math.isinf(epsilon):
        return np.ones_like(rates)
    forward = np.exp(min(epsilon, 700.0)) * rates + delta
    backward = 1 - np.exp(-epsilon) * (1 - delta - rates)
    allowed: Reals = np.clip(np.minimum(forward, backward), 0.0, 1.0)
    return allowed


def allowed_by_mu(false_positives: Reals, *, mu: float) -> Reals:
    """True positives that μ of Gaussian differential privacy allows: Φ(Φ⁻¹(FPR) + μ)."""
    rates: Reals = ndtr(ndtri(np.asarray(false_positives, dtype=np.float64)) + mu)
    return rates


def allowed_by_loss(*, mu: float, discrete: DiscreteLoss) -> AllowedRates:
    """The curve of Gaussian noise of μ composed with a discrete privacy loss.

    TPR ≤ min over ε of e^ε · FPR + δ(ε), over all real ε: the exact trade-off curve of the loss
    distribution, here at many points of ε, and so rounded up between them.
    """
    scale = mu * mu / 2 + 9 * mu + float(np.abs(discrete.losses).max(initial=0.0))
    reach = min(_MAX_LOSS, max(scale, 1e-3))
    epsilons = np.linspace(-reach, reach, _LOSS_POINTS)
    deltas = np.array([mixture_delta(epsilon=e, mu=mu, discrete=discrete) for e in epsilons])
    factors = np.exp(epsilons)

    def allowed(false_positives: Reals) -> Reals:
        rates = np.asarray(false_positives, dtype=np.float64)
        lines = factors[:, None] * rates.ravel()[None, :] + deltas[:, None]
        bounds: Reals = np.minimum(lines.min(axis=0), 1.0).reshape(rates.shape)
        return bounds

    return allowed


def area_below(allowed: AllowedRates) -> float:
    """Area below a curve: the probability that a present row scores above an absent one."""
    # Denser near zero, where the curve is steep.
    rates = np.linspace(0.0, 1.0, 4_001) ** 2
    return float(np.trapezoid(allowed(rates), rates))


def allowed_sentence(false_positives: float, allowed: AllowedRates) -> str:
    """State the most that an attacker with this rate of false alarms finds."""
    found = float(allowed(np.array([false_positives]))[0])
    return (
        f"An attacker who allows {100 * false_positives:g} % false alarms finds at most "
        f"{100 * _rounded_up(found):.3g} % of the rows."
    )


def _rounded_up(share: float) -> float:
    """Round up to three digits of the percentage."""
    if share <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(share)) - 2)
    return min(1.0, math.ceil(share / unit * (1 - 1e-12)) * unit)
