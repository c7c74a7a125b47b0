"""Privacy accountant: compose privacy loss distributions to a total ε at a given δ.

Gaussian noise with at most one table of bounded noise, as in a default run, has a closed form.
Everything else uses dp-accounting, which convolves losses on a grid, rounded up.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib import import_module
from typing import Any, Protocol

from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, smallest_sufficient, upper_bound
from deniable.privacy.discrete_losses import DiscreteLoss, mixture_delta

# Secants towards the ε of a δ: at most this many, until they move by less than this share of ε.
_MAX_SECANTS, _SECANT_PRECISION = 16, 2.0**-44


class PrivacyLoss(Protocol):
    """Privacy loss of one kind of release."""

    def pld(self, library: Any, interval: float) -> Any:
        """Build its distribution with ``library`` (dp-accounting), on a grid, rounded up."""


@dataclass(frozen=True, kw_only=True)
class StatedLoss:
    """``times`` releases with known (ε, δ) and nothing else."""

    cost: Guarantee
    times: int = 1

    def pld(self, library: Any, interval: float) -> Any:
        """Build the distribution of the worst mechanism with this (ε, δ)."""
        known = library.common.DifferentialPrivacyParameters(self.cost.epsilon, self.cost.delta)
        return library.from_privacy_parameters(known, interval).self_compose(self.times)


@dataclass(frozen=True, kw_only=True)
class GaussianLoss:
    """Gaussian noise, rounded or not; ``mu`` covers all numbers that one record changes."""

    mu: float

    def pld(self, library: Any, interval: float) -> Any:
        """Build the distribution of N(μ, 1) against N(0, 1)."""
        return library.from_gaussian_mechanism(1 / self.mu, value_discretization_interval=interval)


@dataclass(frozen=True, kw_only=True)
class LaplaceLoss:
    """Discrete Laplace noise of scale 1/ε on ``times`` numbers, each changed by one."""

    epsilon: float
    times: int = 1

    def pld(self, library: Any, interval: float) -> Any:
        """Build the distribution of the untruncated law."""
        return library.from_discrete_laplace_mechanism(
            self.epsilon, value_discretization_interval=interval, use_connect_dots=True
        ).self_compose(self.times)


@dataclass(frozen=True, kw_only=True)
class ShiftedTableLoss:
    """Noise from a symmetric table on ``times`` numbers, each changed by one: Mechanism B."""

    weights: tuple[int, ...] = field(repr=False)  # for -r … r
    times: int = 1

    def pld(self, library: Any, interval: float) -> Any:
        """Build the distribution of the table against itself shifted by one."""
        log_total = math.log(sum(self.weights))
        unshifted = {z: math.log(w) - log_total for z, w in enumerate(self.weights) if w}
        shifted = {z + 1: log_p for z, log_p in unshifted.items()}
        return library.from_two_probability_mass_functions(
            unshifted, shifted, value_discretization_interval=interval
        ).self_compose(self.times)


def compose_losses(
    losses: Sequence[PrivacyLoss], *, delta: float, interval: float = 1e-4
) -> Guarantee:
    """Compute the smallest ε of all releases together at ``delta``.

    Args:
        losses: The releases, each with its multiplicity.
        delta: Total δ of the ideal laws. The caller adds the error of their tables, by
            ``with_table_error``; ``ShiftedTableLoss`` is exact for the table itself.
        interval: Grid of the privacy loss if there is no closed form; losses are rounded up to
            it.

    Privacy:
        Neighbours: add or remove one record of the table that all releases read.
        Covers: all outputs together; a later release may depend on earlier outputs.
        Assumes: without a closed form, the assumptions of ``compose_on_grid``.
    """
    if not losses:
        return Guarantee(epsilon=0.0, delta=0.0)
    tables = [loss for loss in losses if isinstance(loss, ShiftedTableLoss)]
    mus = [loss.mu for loss in losses if isinstance(loss, GaussianLoss)]
    if len(tables) + len(mus) < len(losses) or sum(table.times for table in tables) > 1:
        return compose_on_grid(losses, delta=delta, interval=interval)
    # Gaussian noise and one discrete loss have a closed form. Both are symmetric, so the result
    # holds for adding and for removing a record.
    discrete = DiscreteLoss.from_table(tables[0].weights) if tables else DiscreteLoss.zero()
    mu = upper_bound(math.hypot(*mus))
    left = delta * (1 - 1e-9) - discrete.infinity_mass
    if left <= 0:
        raise _unreachable_delta(delta)
    # Pr{N > x} ≤ e^(-x²/2): at this ε the Gaussian's δ is below half of the remaining δ.
    largest = float(discrete.losses.max())
    high = largest + mu * mu / 2 + mu * math.sqrt(-2 * math.log(left / 2)) + 1e-9

    delta_at = partial(mixture_delta, mu=mu, discrete=discrete)
    low, high = _narrow_bracket(delta_at, delta, high)
    smallest = smallest_sufficient(lambda e: delta_at(epsilon=e) <= delta, high, low=low)
    return Guarantee(epsilon=upper_bound(smallest), delta=delta)


def _narrow_bracket(
    delta_at: Callable[..., float], delta: float, high: float
) -> tuple[float, float]:
    """Narrow [0, high] around the ε where δ is ``delta``, by secants of ln δ, nearly a line.

    The bisection that follows then needs a third of its evaluations of δ, which are a tenth of the
    time of a plan. It decides alone: if secants do not lead to a bracket, [0, high] stays whole.
    """
    at, before = 0.9 * high, high
    value, value_before = delta_at(epsilon=at), delta_at(epsilon=before)
    for _ in range(_MAX_SECANTS):
        if min(value, value_before) <= 0 or value == value_before:
            break
        slope = math.log(value / value_before) / (at - before)
        found = at - math.log(value / delta) / slope
        if not 0 < found <= high:
            break
        if abs(found - at) <= _SECANT_PRECISION * found:
            ends = found * (1 - 2 * _SECANT_PRECISION), found * (1 + 2 * _SECANT_PRECISION)
            if delta_at(epsilon=ends[0]) > delta >= delta_at(epsilon=ends[1]):
                return ends
            break
        at, before, value, value_before = found, at, delta_at(epsilon=found), value
    return 0.0, high


def compose_on_grid(losses: Sequence[PrivacyLoss], *, delta: float, interval: float) -> Guarantee:
    """Compute an upper bound on ε of all releases together at ``delta``, with dp-accounting.

    Privacy:
        As ``compose_losses``.
        Assumes: dp_accounting's estimates are pessimistic, and its FFTs accurate to 5e-14.
    """
    # Imported here because the import takes a second.
    library = import_module("dp_accounting.pld.privacy_loss_distribution")
    distributions = (loss.pld(library, interval) for loss in losses)
    composed = reduce(lambda one, two: one.compose(two), distributions)
    # FFT errors are up to 1e-14 of probability, in either direction: reserve five times that.
    left = delta * (1 - 1e-9) - 5e-14
    epsilon = float(composed.get_epsilon_for_delta(left)) if left > 0 else math.inf
    if not epsilon < math.inf:
        raise _unreachable_delta(delta)
    return Guarantee(epsilon=upper_bound(epsilon), delta=delta)


def _unreachable_delta(delta: float) -> BudgetError:
    return BudgetError(
        f"no ε meets δ = {delta}: some release alone exceeds it, or δ is below 5e-14, the "
        "numerical error of the accountant"
    )
