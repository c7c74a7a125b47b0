"""The paper's noise and its cost formulas (Sec. 3.3.1, 3.4.1 and 3.5).

``--profile paper`` uses noise of the paper's scale: Laplace noise on every entropy, scaled to its
sensitivity at a noisy number of records, and Laplace noise on every count. The paper's formulas
charge m(m+1) entropies, bound their sensitivity twice too high, and amplify structure and
parameters separately. Their result is printed as ``paper_formula``. The claim uses the true cost,
by our own accounting.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from deniable.errors import BudgetError
from deniable.privacy.composition import (
    Guarantee,
    sequential_composition,
    subsampling_amplification,
)
from deniable.privacy.ledger import Part, Spend
from deniable.privacy.noise_laws import Law, discrete_laplace
from deniable.privacy.theorems import (
    paper_entropy_sensitivity,
    paper_parameters_cost,
    paper_structure_cost,
    released_record_cost,
)

# Entropies are rounded to integers: number of steps per sensitivity (the paper's bound).
STEPS_PER_SENSITIVITY = 2**7
# Largest change of an entropy by one record, in those steps. Its exact sensitivity is below half of
# the paper's bound for every n ≥ 2 (Lemma 8), and rounding may add one step.
MAX_STEPS_PER_RECORD = STEPS_PER_SENSITIVITY // 2 + 1
# Share of the structure's ε for the number of records.
_RECORDS_SHARE = 0.05
# Share of δ for the probability that the lower bound of n exceeds n.
_BETA_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class PaperStructure:
    """Noise of entropies and of the number of records, as in Eq. 8 and 10 of the paper.

    Attributes:
        entropy: Noise of each entropy, in steps of sensitivity / ``STEPS_PER_SENSITIVITY``.
        records: Noise of n_T.
        beta: Probability that ``lower_bound`` exceeds n.
    """

    entropy: Law = field(repr=False)
    records: Law = field(repr=False)
    beta: float

    def lower_bound(self, noisy: int) -> int:
        """Compute n_low ≤ n, except with probability β (guarantee.md, Lemma 9); at least 2.

        The paper uses the noisy number itself, which exceeds n half the time. The sensitivity is
        then too small, and the proof does not hold.
        """
        epsilon = dict(self.records.parameters)["epsilon"]
        below = math.log(1 / (self.beta * (1 + math.exp(-epsilon)))) / epsilon
        return max(2, noisy - math.ceil(below))

    def unit(self, lower_bound: int) -> float:
        """Size of one step in bits."""
        return paper_entropy_sensitivity(lower_bound) / STEPS_PER_SENSITIVITY

    def spends(self, queries: int) -> tuple[Spend, ...]:
        """List the spends of learning the structure.

        Privacy:
            Neighbours: add or remove one record of D_T.
            Covers: all entropies and the number of records, except with probability β, which
                is included in the second spend's δ.
        """
        epsilon = dict(self.records.parameters)["epsilon"]
        return (
            Spend(
                what="entropies",
                part="structure",
                law=self.entropy,
                sensitivity=MAX_STEPS_PER_RECORD,
                l0_sensitivity=queries,
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
    """Noise with which the paper's formula meets the requested ε."""

    structure: PaperStructure
    counts: Law = field(repr=False)
    formula: Guarantee


def paper_noise(
    limit: Guarantee, *, attributes: int, fractions: Mapping[Part, float]
) -> PaperNoise:
    """Calibrate the paper's noise to (ε, δ) by the paper's formula.

    Structure and parameters each get the ε_part that, amplified by sampling at their rate, is ε:
    ε = ln(1 + p (e^ε_part - 1)). The paper then takes the larger of the two costs.
    """
    if not (0 < limit.delta < 1 and limit.epsilon < math.inf):
        raise BudgetError("the paper's formulas need 0 < δ < 1 and a finite ε")
    rate = max(fractions["structure"], fractions["parameters"])
    epsilon_part = math.log1p(math.expm1(limit.epsilon) / rate) * (1 - 1e-9)
    epsilon_n = _RECORDS_SHARE * epsilon_part

    def structure(epsilon_h: float) -> float:
        return paper_structure_cost(
            attributes=attributes, epsilon_h=epsilon_h, epsilon_n=epsilon_n, delta=limit.delta
        ).epsilon

    def parameters(epsilon_p: float) -> float:
        return paper_parameters_cost(
            attributes=attributes, epsilon_p=epsilon_p, delta=limit.delta
        ).epsilon

    epsilon_h = _largest_epsilon(structure, epsilon_part)
    epsilon_p = _largest_epsilon(parameters, epsilon_part)
    larger = Guarantee(epsilon=max(structure(epsilon_h), parameters(epsilon_p)), delta=limit.delta)
    return PaperNoise(
        structure=PaperStructure(
            entropy=discrete_laplace(epsilon_h / STEPS_PER_SENSITIVITY),
            records=discrete_laplace(epsilon_n),
            beta=_BETA_SHARE * limit.delta,
        ),
        counts=discrete_laplace(epsilon_p),
        formula=subsampling_amplification(larger, rate=rate),
    )


def paper_records_cost(*, k: int, gamma: float, epsilon0: float, t: int, records: int) -> Guarantee:
    """Cost of N records by the paper's formula: Theorem 1, composed by Theorem 2."""
    each = released_record_cost(k=k, gamma=gamma, epsilon0=epsilon0, t=t)
    total = sequential_composition([each])
    return Guarantee(epsilon=records * total.epsilon, delta=min(1.0, records * total.delta))


def _largest_epsilon(cost: Callable[[float], float], limit: float) -> float:
    """Find the largest ε of one query whose composed cost is within the limit, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        half = (low + high) / 2
        low, high = (half, high) if cost(half) <= limit else (low, half)
    return low
