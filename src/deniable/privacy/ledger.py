"""Privacy ledger: a ``Spend`` for each use of the data, and the total cost of all spends."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from deniable.errors import BudgetError, InvariantError
from deniable.privacy.accountant import (
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    ShiftedTableLoss,
    StatedLoss,
    compose_losses,
)
from deniable.privacy.composition import (
    Guarantee,
    optimal_composition,
    sequential_composition,
    upper_bound,
)
from deniable.privacy.noise_laws import Law
from deniable.privacy.noise_tables import (
    delta_before_table_error,
    epsilon_of_relative_error,
    with_table_error,
)

Part = Literal["seeds", "structure", "parameters"]
PARTS: tuple[Part, ...] = ("structure", "parameters", "seeds")
# Largest share of δ that rounding the noise to tables may use.
TABLE_DELTA_SHARE = 0.01
# Largest total ε of a loss distribution on a grid.
_MAX_GRID_EPSILON = 40.0
# Bounds on the certified ε to try. A smaller one applies if rounding needs too much of δ.
_CERTIFIED_EPSILON_BOUNDS = (40.0, 20.0, 8.0, 2.0)


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One use of the data: an entry of the ledger.

    Attributes:
        what: Name of the noisy numbers, such as "seed prefixes".
        part: Part of the data that was used.
        law: Noise of each number.
        sensitivity: Largest change of a number by one record, in integer steps.
        l0_sensitivity: Number of the numbers that one record can change.
        each: Cost of one use, if it follows from a theorem and not from the noise.
        times: Number of such uses.
    """

    what: str
    part: Part
    law: Law
    sensitivity: int = 1
    l0_sensitivity: int = 1
    each: Guarantee | None = None
    times: int = 1

    def __post_init__(self) -> None:
        if not (self.sensitivity >= 1 and self.l0_sensitivity >= 1 and self.times >= 1):
            raise BudgetError(
                f"{self.what}: a record changes at least one number by at least one; "
                f"got sensitivity = {self.sensitivity}, l0_sensitivity = {self.l0_sensitivity}"
            )

    @property
    def alone(self) -> "tuple[Spend]":
        """This use alone, without its name: equal noise costs the same, and is composed once."""
        return (replace(self, what="", part="seeds"),)

    @property
    def mu(self) -> float:
        """μ of Gaussian noise: L2 sensitivity of the numbers to one record, divided by σ."""
        return (
            math.sqrt(self.l0_sensitivity) * self.sensitivity / dict(self.law.parameters)["sigma"]
        )

    @property
    def table_error(self) -> float:
        """Additive error of the noise tables: ``mass`` of ``noise_tables.with_table_error``.

        Includes the mass beyond the ends of the table. Zero for bounded noise: the accountant
        uses its table itself.
        """
        return 0.0 if self._is_bounded else self.l0_sensitivity * self.times * self.law.tv

    @property
    def table_growth(self) -> float:
        """Relative error of the noise tables: ``growth`` of ``noise_tables.with_table_error``."""
        each = 0.0 if self._is_bounded else epsilon_of_relative_error(self.law.relative_error)
        return self.l0_sensitivity * self.times * each

    @property
    def _is_bounded(self) -> bool:
        return self.law.name not in ("discrete_laplace", "rounded_gaussian")


def exceeds_grid(each: Guarantee, times: int) -> bool:
    """Test whether ``times`` uses exceed the largest ε of a loss distribution on a grid."""
    return times * each.epsilon > _MAX_GRID_EPSILON


def privacy_losses(spends: Sequence[Spend]) -> list[PrivacyLoss]:
    """Convert spends to privacy losses: all Gaussian noise as one loss, the rest one by one."""
    losses: list[PrivacyLoss] = []
    gaussians = [spend.mu for spend in spends if spend.law.name == "rounded_gaussian"]
    if gaussians:
        losses.append(GaussianLoss(mu=upper_bound(math.hypot(*gaussians))))
    for spend in spends:
        if spend.each is not None:
            losses.append(StatedLoss(cost=spend.each, times=spend.times))
        elif spend.law.name == "discrete_laplace":
            epsilon = dict(spend.law.parameters)["epsilon"]
            losses.append(
                LaplaceLoss(epsilon=spend.sensitivity * epsilon, times=spend.l0_sensitivity)
            )
        elif spend.law.name.startswith("truncated") and spend.sensitivity == 1:
            losses.append(
                ShiftedTableLoss(weights=table_weights(spend.law), times=spend.l0_sensitivity)
            )
        elif spend.law.name != "rounded_gaussian":
            raise InvariantError(f"{spend.what}: the cost of {spend.law} noise is unknown")
    return losses


@lru_cache(maxsize=1)
def table_weights(law: Law) -> tuple[int, ...]:
    """List the weights of -r … r. A plan asks three times; at a small ε there are millions."""
    one_side = list(law.table.weights())
    return tuple(one_side[:0:-1] + one_side)


@lru_cache(maxsize=256)
def compose_spends(spends: tuple[Spend, ...], *, delta: float) -> Guarantee:
    """Compose all uses of the same data at a total ``delta``.

    Uses privacy loss distributions. If the tested records exceed their grid, those are composed
    separately by ``optimal_composition``, with a share of δ, and added.

    Privacy:
        Neighbours: add or remove one record of the data that all spends read.
        Covers: all outputs together. Exact counts (no noise) cost ε = ∞.
        Does not cover: other uses of the data; the other parts of a split.
    """
    if any(spend.law.name == "exact" for spend in spends):
        return Guarantee(epsilon=math.inf, delta=0.0)
    large = [s for s in spends if s.each is not None and exceeds_grid(s.each, s.times)]
    if large:
        share = delta / (len(large) + 1)
        costs = [
            optimal_composition(_cost_with_table(s, s.each), times=s.times, delta=share)
            for s in large
            if s.each is not None
        ]
        rest = tuple(spend for spend in spends if spend not in large)
        if rest:
            costs.append(compose_spends(rest, delta=share))
        return Guarantee(epsilon=sequential_composition(costs).epsilon, delta=delta)
    growth = upper_bound(math.fsum(spend.table_growth for spend in spends))
    mass = upper_bound(math.fsum(spend.table_error for spend in spends))
    # The δ of the table error grows with ε, which is not known yet: assume an upper bound on ε.
    for largest in _CERTIFIED_EPSILON_BOUNDS:
        left = delta_before_table_error(delta, epsilon=largest, growth=growth, mass=mass)
        if left >= (1 - TABLE_DELTA_SHARE) * delta:
            found = upper_bound(compose_losses(privacy_losses(spends), delta=left).epsilon + growth)
            if found <= largest:
                return Guarantee(epsilon=found, delta=delta)
            break
    raise BudgetError(
        f"the cost of these stages cannot be certified at δ = {delta:.2g}: above ε = "
        f"{largest:g} the rounding of the noise would need too much of δ. Ask for a smaller ε, "
        "or for a larger δ."
    )


def _cost_with_table(spend: Spend, each: Guarantee) -> Guarantee:
    """Add the table error of one noise draw to the cost of one use."""
    return with_table_error(
        each, growth=epsilon_of_relative_error(spend.law.relative_error), mass=spend.law.tv
    )


@dataclass(frozen=True)
class Ledger:
    """The spends of a run, in order."""

    spends: tuple[Spend, ...]

    def require_equal(self, planned: Sequence[Spend]) -> None:
        """Require that the spends equal the planned ones.

        Raises:
            InvariantError: A spend is missing, unplanned, or has different noise.
        """
        if sorted(map(repr, self.spends)) != sorted(map(repr, planned)):
            raise InvariantError(
                "the ledger does not equal the plan, so nothing is released: "
                f"{len(self.spends)} uses of the data, {len(planned)} planned"
            )
