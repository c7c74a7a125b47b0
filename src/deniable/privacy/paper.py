"""The paper's own noise, and what it says of it (Sec. 3.3.1, 3.4.1 and 3.5).

``--profile paper`` adds noise of its scale: Laplace on every entropy, by its sensitivity at a
noisy number of records; Laplace on every count. Its formulas charge m(m+1) entropies, bound their
sensitivity twice too high, and amplify structure and parameters separately. What they come to is
printed as ``paper_formula``; what is claimed is what is true, by our own accounting.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, amplified, sequential
from deniable.privacy.guarantee import (
    entropy_sensitivity_of_paper,
    of_one_record,
    parameters_of_paper,
    structure_of_paper,
)
from deniable.privacy.laws import Law, discrete_laplace
from deniable.privacy.ledger import Part, Spend

# Entropies become whole numbers: so many steps to what the paper calls their sensitivity.
STEPS = 2**7
# The most that one record moves an entropy, in those steps: its exact sensitivity is below half
# of the paper's bound for every n ≥ 2 (Lemma 8), and rounding may add one step.
MOST_STEPS = STEPS // 2 + 1
# Of ε for the structure, what the number of records gets.
_RECORDS_SHARE = 0.05
# Of δ, what may be the chance that the lower bound of n is above n.
_BETA_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class PaperStructure:
    """Noise of entropies and of the number of records, as in Eq. 8 and 10 of the paper.

    Attributes:
        entropy: The noise of each entropy, in ``STEPS`` to the sensitivity.
        records: The noise of n_T.
        beta: The chance that ``lower_bound`` is above n.
    """

    entropy: Law = field(repr=False)
    records: Law = field(repr=False)
    beta: float

    def lower_bound(self, noisy: int) -> int:
        """Return n_low ≤ n, but for a chance β (guarantee.md, Lemma 9); at least 2.

        The paper takes the noisy number itself, which half the time is above n: then its
        sensitivity is too small, and nothing is proved.
        """
        epsilon = dict(self.records.parameters)["epsilon"]
        below = math.log(1 / (self.beta * (1 + math.exp(-epsilon)))) / epsilon
        return max(2, noisy - math.ceil(below))

    def unit(self, lower_bound: int) -> float:
        """Return one step in bits."""
        return entropy_sensitivity_of_paper(lower_bound) / STEPS

    def spends(self, queries: int) -> tuple[Spend, ...]:
        """Return the bill of the structure.

        Privacy:
            Neighbours: add or remove one record of D_T.
            Covers: all entropies and the number of records, but for the chance β, which is
                in the second entry's δ.
        """
        epsilon = dict(self.records.parameters)["epsilon"]
        return (
            Spend(
                what="entropies",
                part="structure",
                law=self.entropy,
                sensitivity=MOST_STEPS,
                moved=queries,
            ),
            Spend(
                what="number of records",
                part="structure",
                law=self.records,
                each=Guarantee(epsilon=epsilon, delta=self.beta),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class PaperNoise:
    """The noise with which the paper's formula comes to the ε that was asked for."""

    structure: PaperStructure
    counts: Law = field(repr=False)
    formula: Guarantee


def paper_noise(
    limit: Guarantee, *, attributes: int, fractions: Mapping[Part, float]
) -> PaperNoise:
    """Return the paper's noise for a model of (ε, δ), by its own formula.

    Structure and parameters each cost what, amplified by sampling at their rate, comes to ε:
    ε = ln(1 + p (e^ε_part - 1)); the paper then takes the larger of the two.
    """
    if not (0 < limit.delta < 1 and limit.epsilon < math.inf):
        raise BudgetError("the paper's formulas need 0 < δ < 1 and a finite ε")
    rate = max(fractions["structure"], fractions["parameters"])
    part = math.log1p(math.expm1(limit.epsilon) / rate) * (1 - 1e-9)
    epsilon_n = _RECORDS_SHARE * part

    def structure(epsilon_h: float) -> float:
        return structure_of_paper(
            attributes=attributes, epsilon_h=epsilon_h, epsilon_n=epsilon_n, delta=limit.delta
        ).epsilon

    def parameters(epsilon_p: float) -> float:
        return parameters_of_paper(
            attributes=attributes, epsilon_p=epsilon_p, delta=limit.delta
        ).epsilon

    epsilon_h, epsilon_p = _solve(structure, part), _solve(parameters, part)
    larger = Guarantee(epsilon=max(structure(epsilon_h), parameters(epsilon_p)), delta=limit.delta)
    return PaperNoise(
        structure=PaperStructure(
            entropy=discrete_laplace(epsilon_h / STEPS),
            records=discrete_laplace(epsilon_n),
            beta=_BETA_SHARE * limit.delta,
        ),
        counts=discrete_laplace(epsilon_p),
        formula=amplified(larger, rate=rate),
    )


def records_of_paper(*, k: int, gamma: float, epsilon0: float, t: int, records: int) -> Guarantee:
    """Return what the paper says that so many records cost: Theorem 1, and Theorem 2 over them."""
    each = of_one_record(k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    total = sequential([each])
    return Guarantee(epsilon=records * total.epsilon, delta=min(1.0, records * total.delta))


def _solve(cost: Callable[[float], float], limit: float) -> float:
    """Return the largest ε of one query whose composed cost is within the limit."""
    low, high = 0.0, 1.0
    for _ in range(200):
        half = (low + high) / 2
        low, high = (half, high) if cost(half) <= limit else (low, half)
    return low
