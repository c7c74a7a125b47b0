"""Parameters of the randomized deniability test: choose ε0 and t for (ε, δ) and N records.

Privacy Test 2 with dummy seeds (guarantee.md, Theorem 4'): each candidate costs ε0 + ln(1 + γ/t)
and δ_t. N candidates are composed optimally. A larger t lowers ε and raises δ; a larger ε0 lowers
δ.
"""

import math
from dataclasses import dataclass

import numpy as np

from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, optimal_composition
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import Law, discrete_laplace
from deniable.privacy.theorems import candidate_cost

# Share of δ for the tails of the threshold noise; the rest is for composition.
_TAIL_DELTA_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class RandomizedTest:
    """Privacy Test 2 for a number of records, and its cost.

    Attributes:
        k: Threshold, before noise.
        gamma: Largest ratio of two probabilities in one range; 1 if ω is known.
        epsilon0: Parameter of the threshold noise.
        t: Range size at which the proof switches from δ to ε.
        records: Number of tested candidates.
        each: Cost of one candidate.
        cost: Cost of all candidates.
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
        """Number of dummy seeds: ⌈t / γ⌉."""
        return math.ceil(self.t / self.gamma)

    @property
    def law(self) -> Law:
        """Law of the threshold noise."""
        return discrete_laplace(self.epsilon0)

    @property
    def spend(self) -> Spend:
        """The planned ledger entry."""
        return self.spend_for(self.law, k=self.k, records=self.records)

    def spend_for(self, law: Law, *, k: int, records: int) -> Spend:
        """Ledger entry of tests made with this law, threshold and number of records."""
        epsilon0 = dict(law.parameters)["epsilon"]
        each = candidate_cost(k=k, epsilon0=epsilon0, t=self.t, gamma=self.gamma)
        return Spend(what="deniability tests", part="seeds", law=law, each=each, times=records)


def plan_randomized_test(
    limit: Guarantee,
    *,
    records: int,
    k: int,
    gamma: float,
    epsilon0: float | None = None,
    t: int | None = None,
) -> RandomizedTest:
    """Choose the test with the smallest ε for ``records`` records, within ``limit``.

    Args:
        limit: Limit on the cost of all records together.
        records: Number of records.
        k: Threshold.
        gamma: Largest ratio of two probabilities in one range; 1 if ω is known.
        epsilon0: Parameter of the threshold noise; None for the best.
        t: Range size at which the proof switches from δ to ε; None for the best.

    Raises:
        BudgetError: The records cost more than ``limit``.
    """
    best = cheapest_test(limit.delta, records=records, k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    if best is not None and best.cost.epsilon <= limit.epsilon:
        return best
    cost = "more than any ε" if best is None else f"ε = {best.cost.epsilon:.4g}"
    chosen = epsilon0 is not None or t is not None
    omit = ", leave out epsilon0 and t" if chosen else ""
    raise BudgetError(
        f"{records:,} records with the randomized test cost {cost} at k = {k}; the limit for the "
        f"seeds is ε = {limit.epsilon:.4g}, δ = {limit.delta:.2g}. Ask for fewer records, a larger "
        f"k or a larger ε (up to 10){omit}, or use --mode one-shot, where any number of records "
        "costs the same"
    )


def cheapest_test(
    delta: float,
    *,
    records: int,
    k: int,
    gamma: float,
    epsilon0: float | None = None,
    t: int | None = None,
) -> RandomizedTest | None:
    """Find the test with the smallest ε at this δ; None if δ cannot be met."""
    if k < 2 or delta <= 0:
        return None
    choices = np.geomspace(1 / (4 * k), 4, 60).tolist() if epsilon0 is None else [epsilon0]
    found = []
    for noise in choices:
        # Smallest distance k - t for which α0^(k-t) / (1 + α0) ≤ δ_each holds.
        distance = math.ceil(math.log(records / (_TAIL_DELTA_SHARE * delta)) / noise)
        size = t if t is not None else k - max(1, distance)
        if 1 <= size < k:
            each = candidate_cost(k=k, epsilon0=noise, t=size, gamma=gamma)
            found.append((each.epsilon, noise, size, each))
    for _, noise, size, each in sorted(found, key=lambda test: test[0]):
        try:
            cost = optimal_composition(each, times=records, delta=delta)
        except BudgetError:
            continue
        return RandomizedTest(
            k=k, gamma=gamma, epsilon0=noise, t=size, records=records, each=each, cost=cost
        )
    return None
