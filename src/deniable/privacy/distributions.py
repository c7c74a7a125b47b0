"""What several noises cost together: their privacy loss distributions, composed.

Gaussian noise with one table of bounded noise, which is what a usual run adds, has a closed form.
Everything else is dp-accounting's, which convolves losses on a grid, rounded up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from typing import Any, Protocol

from deniable.errors import BudgetError
from deniable.privacy.atoms import Atoms, mixture_delta
from deniable.privacy.composition import Guarantee, above, crossing


class Loss(Protocol):
    """One release as the accountant sees it."""

    def pld(self, library: Any, interval: float) -> Any:
        """Return its privacy loss distribution by ``library``, on a grid, rounded up."""


@dataclass(frozen=True, kw_only=True)
class Stated:
    """``times`` releases of which only (ε, δ) is known."""

    cost: Guarantee
    times: int = 1

    def pld(self, library: Any, interval: float) -> Any:
        """Return the distribution of the worst mechanism with this (ε, δ)."""
        known = library.common.DifferentialPrivacyParameters(self.cost.epsilon, self.cost.delta)
        return library.from_privacy_parameters(known, interval).self_compose(self.times)


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Gaussian noise, rounded or not, on all numbers that one record moves: μ of all of them."""

    mu: float

    def pld(self, library: Any, interval: float) -> Any:
        """Return the distribution of N(μ, 1) against N(0, 1)."""
        return library.from_gaussian_mechanism(1 / self.mu, value_discretization_interval=interval)


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Discrete Laplace noise of scale 1/ε on ``times`` numbers, each moved by one."""

    epsilon: float
    times: int = 1

    def pld(self, library: Any, interval: float) -> Any:
        """Return the distribution of the untruncated law."""
        return library.from_discrete_laplace_mechanism(
            self.epsilon, value_discretization_interval=interval, use_connect_dots=True
        ).self_compose(self.times)


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """Noise of a symmetric table on ``times`` numbers, each moved by one: Mechanism B."""

    weights: tuple[int, ...] = field(repr=False)  # of -r … r
    times: int = 1

    def pld(self, library: Any, interval: float) -> Any:
        """Return the distribution of the table against itself moved by one."""
        whole = math.log(sum(self.weights))
        here = {z: math.log(w) - whole for z, w in enumerate(self.weights) if w}
        moved = {z + 1: chance for z, chance in here.items()}
        return library.from_two_probability_mass_functions(
            here, moved, value_discretization_interval=interval
        ).self_compose(self.times)


def total(losses: Sequence[Loss], *, delta: float, interval: float = 1e-4) -> Guarantee:
    """Return the smallest ε of all releases together at ``delta``.

    Args:
        losses: The releases, each with its multiplicity.
        delta: Total δ of the ideal laws. What their tables add is the caller's to add, by
            ``with_tables``; ``Shifted`` is of the table itself.
        interval: Grid of the privacy loss, where there is no closed form; each loss is rounded
            up to it.

    Privacy:
        Neighbours: add or remove one record of the table that all releases read.
        Covers: all outputs together; a later release may depend on earlier outputs.
        Assumes: of what has no closed form, ``total_on_a_grid``.
    """
    if not losses:
        return Guarantee(epsilon=0.0, delta=0.0)
    tables = [loss for loss in losses if isinstance(loss, Shifted)]
    mus = [loss.mu for loss in losses if isinstance(loss, Gaussian)]
    if len(tables) + len(mus) < len(losses) or sum(table.times for table in tables) > 1:
        return total_on_a_grid(losses, delta=delta, interval=interval)
    atoms = Atoms.table(tables[0].weights) if tables else Atoms.none()
    return _total_in_closed_form(above(math.hypot(*mus)), atoms, delta)


def _total_in_closed_form(mu: float, atoms: Atoms, delta: float) -> Guarantee:
    """Return the smallest ε of Gaussian noise and one loss with atoms, which is symmetric.

    So the same odds hold whether a record is added or removed.
    """
    left = delta * (1 - 1e-9) - atoms.never
    if left <= 0:
        raise _unmet(delta)
    # Pr{N > x} ≤ e^(-x²/2): the Gaussian's δ is below half of what is left at this ε.
    high = float(atoms.losses.max()) + mu * mu / 2 + mu * math.sqrt(-2 * math.log(left / 2)) + 1e-9

    def enough(epsilon: float) -> bool:
        return mixture_delta(epsilon=epsilon, mu=mu, atoms=atoms) <= delta

    return Guarantee(epsilon=above(crossing(enough, high)), delta=delta)


def total_on_a_grid(losses: Sequence[Loss], *, delta: float, interval: float) -> Guarantee:
    """Return an ε of all releases together at ``delta``, by dp-accounting.

    Privacy:
        As ``total``.
        Assumes: dp_accounting's pessimistic estimates, and transforms good to 5e-14.
    """
    # Imported here, because that takes a second.
    library = import_module("dp_accounting.pld.privacy_loss_distribution")
    distributions = (loss.pld(library, interval) for loss in losses)
    composed = reduce(lambda one, two: one.compose(two), distributions)
    # Its transforms err by up to 1e-14 of probability, either way: five times that is set aside.
    left = delta * (1 - 1e-9) - 5e-14
    epsilon = float(composed.get_epsilon_for_delta(left)) if left > 0 else math.inf
    if not epsilon < math.inf:
        raise _unmet(delta)
    return Guarantee(epsilon=above(epsilon), delta=delta)


def _unmet(delta: float) -> BudgetError:
    return BudgetError(
        f"no ε meets δ = {delta}: some release shows more by itself, or δ is below 5e-14, which is "
        "what computing takes of it"
    )
