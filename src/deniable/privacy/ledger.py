"""Spend, Ledger: every use of the data, once; and what all of them cost together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from deniable.errors import BudgetError, InvariantError
from deniable.privacy.composition import Guarantee, above, optimal, sequential
from deniable.privacy.distributions import Gaussian, Laplace, Loss, Shifted, Stated, total
from deniable.privacy.grain import delta_before_grain, growth_of, with_grain
from deniable.privacy.laws import Law

Part = Literal["seeds", "structure", "parameters"]
PARTS: tuple[Part, ...] = ("structure", "parameters", "seeds")
_MOST_LOSS = 40.0
# The largest ε that is certified; a lower one where tables of noise would cost a share of δ there.
_LARGEST_EPSILONS = (40.0, 20.0, 8.0, 2.0)
_MOST_ROUNDING = 0.01


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One use of the data: the entry for the ledger.

    Attributes:
        what: What was noised, in words: "seed prefixes".
        part: The part of the data it was counted in.
        law: The noise of each number.
        sensitivity: The most that one record moves a number, in whole steps.
        moved: How many of the numbers one record can move.
        each: Where a theorem, not the noise, says what one use costs: that cost.
        times: How often it was used so.
    """

    what: str
    part: Part
    law: Law
    sensitivity: int = 1
    moved: int = 1
    each: Guarantee | None = None
    times: int = 1

    def __post_init__(self) -> None:
        if not (self.sensitivity >= 1 and self.moved >= 1 and self.times >= 1):
            raise BudgetError(
                f"{self.what}: a record moves at least one number by one; "
                f"got sensitivity = {self.sensitivity}, moved = {self.moved}"
            )

    @property
    def mu(self) -> float:
        """μ of Gaussian noise: the L2 distance that one record moves the numbers, over σ."""
        return math.sqrt(self.moved) * self.sensitivity / dict(self.law.parameters)["sigma"]

    @property
    def table_error(self) -> float:
        """How far its tables of noise may be from the law: ``mass`` of ``grain.with_grain``.

        That includes what was cut off at the ends, wherever a record moves a number to. For
        bounded noise nothing: its very table is what is accounted for.
        """
        return 0.0 if self._is_of_table else self.moved * self.times * self.law.tv

    @property
    def table_growth(self) -> float:
        """By what factor they may be, as a logarithm: ``growth`` of ``grain.with_grain``."""
        each = 0.0 if self._is_of_table else growth_of(self.law.relative)
        return self.moved * self.times * each

    @property
    def _is_of_table(self) -> bool:
        return self.law.name not in ("discrete_laplace", "rounded_gaussian")


def is_heavy(each: Guarantee, times: int) -> bool:
    """Return whether so many uses have more loss than a distribution on a grid has room for."""
    return times * each.epsilon > _MOST_LOSS


def losses_of(spends: Sequence[Spend]) -> list[Loss]:
    """Return what the accountant sees: all Gaussian noise as one, the rest entry by entry."""
    losses: list[Loss] = []
    gaussians = [spend.mu for spend in spends if spend.law.name == "rounded_gaussian"]
    if gaussians:
        losses.append(Gaussian(mu=above(math.hypot(*gaussians))))
    for spend in spends:
        if spend.each is not None:
            losses.append(Stated(cost=spend.each, times=spend.times))
        elif spend.law.name == "discrete_laplace":
            epsilon = dict(spend.law.parameters)["epsilon"]
            losses.append(Laplace(epsilon=spend.sensitivity * epsilon, times=spend.moved))
        elif spend.law.name.startswith("truncated") and spend.sensitivity == 1:
            losses.append(Shifted(weights=weights_of(spend.law), times=spend.moved))
        elif spend.law.name != "rounded_gaussian":
            raise InvariantError(f"{spend.what}: noise by {spend.law} has no known cost")
    return losses


def weights_of(law: Law) -> tuple[int, ...]:
    """Return the weights of -r … r."""
    return tuple(law.weight(z) for z in range(-law.r, law.r + 1))


@lru_cache(maxsize=256)
def cost_of(spends: tuple[Spend, ...], *, delta: float) -> Guarantee:
    """Return the least ε we can show of all these uses of one and the same data at ``delta``.

    By privacy loss distributions, where they are small enough to compute; a great many tested
    records are composed optimally by themselves, with half of δ, and added.

    Privacy:
        Neighbours: add or remove one record of the data that all of them read.
        Covers: all outputs together. No noise costs ∞.
        Does not cover: other uses; parts that were split off.
    """
    if any(spend.law.name == "exact" for spend in spends):
        return Guarantee(epsilon=math.inf, delta=0.0)
    many = [s for s in spends if s.each is not None and is_heavy(s.each, s.times)]
    if many:
        share = delta / (len(many) + 1)
        apart = [
            optimal(_with_table(s, s.each), times=s.times, delta=share)
            for s in many
            if s.each is not None
        ]
        rest = tuple(spend for spend in spends if spend not in many)
        if rest:
            apart.append(cost_of(rest, delta=share))
        total_of_them = sequential(apart)
        return Guarantee(epsilon=total_of_them.epsilon, delta=delta)
    growth = above(math.fsum(spend.table_growth for spend in spends))
    mass = above(math.fsum(spend.table_error for spend in spends))
    # What tables cost in δ grows with ε, which is not known yet: so take it at its largest.
    for largest in _LARGEST_EPSILONS:
        left = delta_before_grain(delta, epsilon=largest, growth=growth, mass=mass)
        if left >= (1 - _MOST_ROUNDING) * delta:
            found = above(total(losses_of(spends), delta=left).epsilon + growth)
            if found <= largest:
                return Guarantee(epsilon=found, delta=delta)
            break
    raise BudgetError(
        f"what these stages cost cannot be certified at δ = {delta:.2g}: an ε above "
        f"{largest:g} would show the rounding of the noise. Ask for a larger δ, for a "
        "smaller ε, or for inf, which promises nothing."
    )


def _with_table(spend: Spend, each: Guarantee) -> Guarantee:
    """Return what one use costs with the table of its noise: one draw decides it."""
    return with_grain(each, growth=growth_of(spend.law.relative), mass=spend.law.tv)


@dataclass(frozen=True)
class Ledger:
    """What was spent, in the order it happened."""

    spends: tuple[Spend, ...]

    def require_equal(self, planned: Sequence[Spend]) -> None:
        """Refuse to go on if what was spent is not what was planned.

        Raises:
            InvariantError: An entry is missing, one too many, or has other noise.
        """
        if sorted(map(repr, self.spends)) != sorted(map(repr, planned)):
            raise InvariantError(
                "the ledger does not equal the plan: nothing is released. "
                f"{len(self.spends)} uses of the data, {len(planned)} planned."
            )
