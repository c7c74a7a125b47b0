"""Discrete privacy loss distributions, and their composition with Gaussian noise in closed form.

The privacy loss of an outcome is the log ratio of its probabilities under two neighbouring tables.
Losses of independent noises add. Gaussian noise has a normal loss; our integer laws have a loss
with at most a few thousand atoms. The δ of their composition is therefore a sum over the atoms l of
the Gaussian's δ at ε - l. Results are rounded up, except for losses merged on a grid.

The special functions at the end are accurate to a few units in the last place, which the error
bounds of their callers cover. SciPy has them too, but its import takes longer than a whole plan.
``verification`` uses SciPy's, so that every certificate is checked by other code.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from deniable.arrays import Reals
from deniable.errors import BudgetError

# Composed losses are rounded up to this grid, which bounds the number of atoms.
_LOSS_GRID = 1e-6
# Largest number of atoms of a loss that is composed with another.
_MAX_ATOMS = 2_000
# Less probable atoms are dropped; their probability is charged to ``infinity_mass``.
_MIN_PROBABILITY = 1e-30
# Bound on the error of a probability or a loss after a few double operations.
_ROUNDING_ERROR = 2.0**-48
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


@dataclass(frozen=True)
class DiscreteLoss:
    """Privacy loss distribution with finitely many atoms.

    Attributes:
        losses: The finite values.
        probabilities: Their probabilities; together with ``infinity_mass`` they sum to one.
        infinity_mass: Probability of an infinite loss: an outcome that is impossible under the
            neighbouring table.
    """

    losses: Reals = field(repr=False)
    probabilities: Reals = field(repr=False)
    infinity_mass: float = 0.0

    @classmethod
    def zero(cls) -> Self:
        """Loss of releasing nothing."""
        return cls(np.zeros(1), np.ones(1))

    @classmethod
    def from_laplace(cls, epsilon: float) -> Self:
        """Loss of discrete Laplace noise of scale 1/ε on a number changed by one.

        The loss is ε with probability 1/(1+α) and -ε with probability α/(1+α), α = e^-ε.
        """
        likely = 1 / (1 + math.exp(-epsilon))
        return cls(
            np.array([epsilon, -epsilon]), np.array([likely, 1 - likely]) * (1 + _ROUNDING_ERROR)
        )

    @classmethod
    def from_guarantee(cls, epsilon: float, delta: float, *, times: int) -> Self:
        """Worst-case loss of ``times`` mechanisms with a known (ε, δ) each.

        Each has loss ε or -ε, as discrete Laplace noise has, or with probability δ an infinite
        loss. The finite losses of N mechanisms are (2l - N) ε with a binomial law.
        """
        losses, probabilities = binomial_losses(epsilon, times=times)
        kept = probabilities > _MIN_PROBABILITY
        failure = -math.expm1(times * math.log1p(-delta))
        return cls(
            losses[kept],
            probabilities[kept] * (1 - failure),
            infinity_mass=failure + times * _MIN_PROBABILITY,
        )

    @classmethod
    def from_table(cls, weights: Sequence[int]) -> Self:
        """Loss of a table's noise on a number changed by one; ``weights`` are for -r … r.

        Equal losses are one atom: those of geometric noise are ε and -ε, up to rounding.
        """
        total = sum(weights)
        unshifted = np.array(weights, dtype=np.float64) / total
        shifted = np.concatenate([[0.0], unshifted[:-1]])
        both = (unshifted > 0) & (shifted > 0)
        losses = np.log(unshifted[both] / shifted[both]) + _ROUNDING_ERROR
        infinity_mass = float(unshifted[shifted == 0].sum())
        distinct, probabilities = _sum_by_loss(losses, unshifted[both])
        return cls(
            distinct,
            probabilities * (1 + _ROUNDING_ERROR),
            infinity_mass=infinity_mass * (1 + _ROUNDING_ERROR),
        )

    def compose(self, other: "DiscreteLoss") -> "DiscreteLoss":
        """Compose with an independent loss."""
        one, two = self._with_few_atoms(), other._with_few_atoms()
        p, q = self.infinity_mass, other.infinity_mass
        return DiscreteLoss(
            np.add.outer(one.losses, two.losses).ravel(),
            np.multiply.outer(one.probabilities, two.probabilities).ravel(),
            p + q - p * q,
        )._round_up_to_grid(_LOSS_GRID)

    def _with_few_atoms(self) -> "DiscreteLoss":
        """Merge atoms on a grid, if there are too many to compose."""
        if len(self.losses) <= _MAX_ATOMS:
            return self
        return self._round_up_to_grid(float(np.ptp(self.losses)) / _MAX_ATOMS)

    def _round_up_to_grid(self, step: float) -> "DiscreteLoss":
        """Round losses up to multiples of ``step`` and merge equal ones."""
        # The 1e-6 keeps a loss on its grid point despite rounding errors, so a loss may be 1e-6
        # steps too low. Only calibration composes discrete losses; certificates do not.
        multiples = np.ceil(self.losses / step - 1e-6).astype(np.int64)
        unique, index = np.unique(multiples, return_inverse=True)
        merged: Reals = np.bincount(index, weights=self.probabilities).astype(np.float64)
        return DiscreteLoss((unique * step).astype(np.float64), merged, self.infinity_mass)

    def self_compose(self, times: int) -> "DiscreteLoss":
        """Compose ``times`` independent copies, by repeated squaring."""
        if times < 0:
            raise BudgetError(f"a loss occurs at least 0 times; got {times}")
        result, power = DiscreteLoss.zero(), self
        while times:
            if times % 2:
                result = result.compose(power)
            times //= 2
            power = power.compose(power) if times else power
        return result


def _sum_by_loss(losses: Reals, probabilities: Reals) -> tuple[Reals, Reals]:
    """Merge equal losses; their probabilities are summed with a single rounding."""
    order = np.argsort(losses)
    ascending = losses[order]
    starts = np.flatnonzero(np.diff(ascending, prepend=-np.inf))
    groups = np.split(probabilities[order], starts)[1:]
    return ascending[starts], np.array([math.fsum(group.tolist()) for group in groups])


def binomial_losses(epsilon: float, *, times: int) -> tuple[Reals, Reals]:
    """Losses (2l - N) ε of N trials of probability e^ε / (1 + e^ε), with their probabilities.

    Both are rounded up. The omitted losses have probability below N e^-700.
    """
    log_p = -math.log1p(math.exp(-epsilon))
    # By Hoeffding, less than 2 e^-700 is further than √(350 N) from the mean.
    mean, reach = times * math.exp(log_p), math.sqrt(350 * times) + 1
    first, last = max(0, math.floor(mean - reach)), min(times, math.ceil(mean + reach))
    hits = np.arange(first, last + 1, dtype=np.float64)
    log_of_all = float(log_factorial(np.array([float(times)]))[0])
    log_p_hits = log_of_all - log_factorial(hits) - log_factorial(times - hits)
    log_p_hits += times * log_p - (times - hits) * epsilon
    # Error bound of the log probabilities and of the losses: some ulp of their terms.
    error = _ROUNDING_ERROR * (log_of_all + times * (epsilon + 1))
    kept = log_p_hits > -700
    return (2 * hits[kept] - times) * epsilon + error, np.exp(log_p_hits[kept] + error)


def gaussian_deltas(epsilons: Reals, *, mu: float) -> Reals:
    """Compute δ of the Gaussian mechanism at every ε (Balle and Wang; guarantee.md, Theorem 7).

        δ_G(ε; μ) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ),   μ = (L2 sensitivity) / σ
        δ_G(-ε; μ) = 1 - e^-ε + e^-ε δ_G(ε; μ)

    Exact up to rounding; rounded up. With a = μ/2 - ε/μ and b = a - μ the second term is
    ½ e^(-a²/2) erfcx(-b/√2), which has no large factor. The first term is computed likewise.
    """
    sizes = np.abs(epsilons)
    if mu == 0:
        deltas = np.zeros(len(sizes))
    else:
        # Below -60 the result underflows.
        a = np.maximum(mu / 2 - sizes / mu, -60.0)
        density = 0.5 * np.exp(-a * a / 2)
        scaled = erfcx(np.concatenate([np.abs(a), mu - a]) / math.sqrt(2))
        tail, second = density * scaled[: len(a)], density * scaled[len(a) :]
        first = np.where(a >= 0, 1 - tail, tail)
        # An error of one ulp in a changes e^(-a²/2) by a² ulp.
        deltas = np.maximum(first - second, 0.0) + 2.0**-47 * (2 + a * a) * first
    negative = epsilons < 0
    deltas[negative] = (
        -np.expm1(-sizes[negative]) + np.exp(-sizes[negative]) * deltas[negative]
    ) * (1 + _ROUNDING_ERROR)
    return np.minimum(deltas, 1.0)


def mixture_delta(*, epsilon: float, mu: float, discrete: DiscreteLoss) -> float:
    """Compute δ at ε of Gaussian noise of μ composed with an independent discrete loss.

        δ(ε) = p_∞ + Σ_l p_l · δ_G(ε - l; μ)

    Privacy:
        Neighbours: those of the two noises, the same for both.
        Covers: all outputs together, rounded up.
    """
    finite = float(discrete.probabilities @ gaussian_deltas(epsilon - discrete.losses, mu=mu))
    return min(1.0, (discrete.infinity_mass + finite) * (1 + _ROUNDING_ERROR))


# Special functions


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
