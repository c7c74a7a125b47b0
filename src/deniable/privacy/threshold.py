"""The randomized test's parameters: from (ε, δ) and a number of records to ε0 and t, or to "no".

Privacy Test 2 with dummy seeds (guarantee.md, Theorem 4'): each candidate costs ε0 + ln(1 + γ/t)
and δ_t, and N of them what optimal composition says. A larger t lowers ε and raises δ; a larger ε0
lowers δ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, optimal
from deniable.privacy.guarantee import of_one_candidate
from deniable.privacy.laws import Law, discrete_laplace
from deniable.privacy.ledger import Spend

# Of the δ for all records, so much may be spent by the tails of the noise.
_TAILS = 0.5
_MOST_K = 2**24


@dataclass(frozen=True, kw_only=True)
class RandomizedTest:
    """Privacy Test 2 for so many records, and what it costs.

    Attributes:
        k: The threshold, before noise.
        gamma: Most that probabilities in a range differ by; 1 where ω is known.
        epsilon0: The noise of the threshold.
        t: Where the proof splits small ranges from large ones.
        records: How many candidates are tested.
        each: What one of them costs.
        cost: What all of them cost.
    """

    k: int
    gamma: float
    epsilon0: float
    t: int
    records: int
    each: Guarantee
    cost: Guarantee

    @property
    def dummies(self) -> int:
        """How many dummy seeds there are: ⌈t / γ⌉."""
        return math.ceil(self.t / self.gamma)

    @property
    def law(self) -> Law:
        """The noise of the threshold."""
        return discrete_laplace(self.epsilon0)

    @property
    def spend(self) -> Spend:
        """The entry that a plan has for it."""
        return self.bill(self.law, k=self.k, records=self.records)

    def bill(self, law: Law, *, k: int, records: int) -> Spend:
        """Return the entry for the ledger of a test that was made with this law, k and number."""
        epsilon0 = dict(law.parameters)["epsilon"]
        each = of_one_candidate(k=k, epsilon0=epsilon0, t=self.t, gamma=self.gamma)
        return Spend(what="deniability tests", part="seeds", law=law, each=each, times=records)


def plan_test(
    limit: Guarantee,
    *,
    records: int,
    k: int,
    gamma: float,
    epsilon0: float | None = None,
    t: int | None = None,
) -> RandomizedTest:
    """Return the test of least ε for so many records within ``limit.delta``.

    Args:
        limit: What all records together may cost.
        records: How many.
        k: The threshold.
        gamma: Most that probabilities in a range differ by; 1 where ω is known.
        epsilon0: The noise of the threshold; None: the best.
        t: Where the proof splits; None: the best.

    Raises:
        BudgetError: They cost more than ``limit``. It says what could be met.
    """
    best = best_test(limit.delta, records=records, k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    if best is not None and best.cost.epsilon <= limit.epsilon:
        return best
    chosen = epsilon0 is not None or t is not None
    if chosen and _meets(limit, records=records, k=k, gamma=gamma):
        raise BudgetError(
            f"{records:,} records cost more than ε = {limit.epsilon:.4g}, δ = {limit.delta:.2g} "
            "with this epsilon0 and t. Leave both out: others meet it."
        )
    said = _what_could(limit, best, records=records, k=k, gamma=gamma)
    raise BudgetError(f"{said} (With the best epsilon0 and t: leave both out.)" if chosen else said)


def best_test(
    delta: float,
    *,
    records: int,
    k: int,
    gamma: float,
    epsilon0: float | None = None,
    t: int | None = None,
) -> RandomizedTest | None:
    """Return the test of least ε with this δ; None if δ is out of reach."""
    if k < 2 or delta <= 0:
        return None
    tried = np.geomspace(1 / (4 * k), 4, 60).tolist() if epsilon0 is None else [epsilon0]
    found = []
    for noise in tried:
        # α0^(k-t) / (1 + α0) ≤ δ_each holds from this distance k - t on.
        distance = math.ceil(math.log(records / (_TAILS * delta)) / noise)
        split = t if t is not None else k - max(1, distance)
        if 1 <= split < k:
            each = of_one_candidate(k=k, epsilon0=noise, t=split, gamma=gamma)
            found.append((each.epsilon, noise, split, each))
    for _, noise, split, each in sorted(found, key=lambda one: one[0]):
        try:
            cost = optimal(each, times=records, delta=delta)
        except BudgetError:
            continue
        return RandomizedTest(
            k=k, gamma=gamma, epsilon0=noise, t=split, records=records, each=each, cost=cost
        )
    return None


def _what_could(
    limit: Guarantee, best: RandomizedTest | None, *, records: int, k: int, gamma: float
) -> str:
    """Return why a target cannot be met, and what could."""
    cost = "more than any ε" if best is None else f"ε = {best.cost.epsilon:.4g}"
    fewer = _last(lambda n: _meets(limit, records=n, k=k, gamma=gamma), 1, records)
    larger = _first(lambda n: _meets(limit, records=records, k=n, gamma=gamma), k, _MOST_K)
    could = []
    if fewer:
        could.append(f"release at most {fewer:,} records")
    if larger:
        could.append(f"set k to {larger:,} or more")
    could.append("use --mode one-shot, where any number of records costs the same")
    return (
        f"{records:,} records by the randomized test cost {cost} at k = {k}; for the seeds there "
        f"is ε = {limit.epsilon:.4g}, δ = {limit.delta:.2g}. You could {', or '.join(could)}."
    )


def _meets(limit: Guarantee, *, records: int, k: int, gamma: float) -> bool:
    best = best_test(limit.delta, records=records, k=k, gamma=gamma)
    return best is not None and best.cost.epsilon <= limit.epsilon


def _last(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the largest number in low … high at which ``holds``, which ends once it fails."""
    if not holds(low):
        return None
    while high - low > max(1, low // 100):
        half = (low + high) // 2
        low, high = (half, high) if holds(half) else (low, half)
    return low


def _first(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return about the smallest number in low … high at which ``holds``, and from there on."""
    step = low
    while not holds(step):
        step *= 2
        if step > high:
            return None
    while step - low > max(1, step // 100):
        half = (low + step) // 2
        low, step = (low, half) if holds(half) else (half, step)
    return step
