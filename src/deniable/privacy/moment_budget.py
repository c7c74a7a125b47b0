"""Noise of sums and squares, from which Normal and regression models are learnt.

They replace a table of counts, at the same cost. The noise follows from public facts: the noise of
a count, and the model of an attribute.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from deniable.errors import BudgetError, InvariantError
from deniable.privacy import noise_laws
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import Law

MomentModel = Literal["normal", "regression"]
# Model of an attribute: a histogram uses counts of its values, the others use sums.
TableModel = Literal["histogram"] | MomentModel

# Largest number of regressors, whatever the graph.
MAX_REGRESSORS = 3
# Candidates for B, best first: values are scaled to integers from -B to B.
VALUE_BOUNDS = (64, 32, 16, 8)
# Names of the spends, in the order of the ledger; the attribute's name follows.
SPEND_PREFIXES = ("records of ", "sums of ", "squares of ")


@dataclass(frozen=True, kw_only=True)
class MomentNoise:
    """Noise of the record counts, sums and sums of products of one attribute.

    Attributes:
        bound: B, the largest absolute value.
        l0_sensitivities: Number of counts, sums and sums of products that one record can change.
        records: Noise of the record counts.
        sums: Noise of the sums of values.
        squares: Noise of the sums of products of two values.
    """

    bound: int
    l0_sensitivities: tuple[int, int, int]
    records: Law = field(repr=False)
    sums: Law = field(repr=False)
    squares: Law = field(repr=False)

    @property
    def laws(self) -> tuple[Law, Law, Law]:
        """The three laws, in the order of the ledger."""
        return self.records, self.sums, self.squares

    @property
    def sensitivities(self) -> tuple[int, int, int]:
        """Sensitivities of a count, a sum and a sum of products: 1, B, B²."""
        return moment_sensitivities(self.bound)

    @property
    def deviations(self) -> tuple[float, float, float]:
        """Standard deviation of the noise of each kind; 0 for no noise."""
        records, sums, squares = (
            noise_deviation(law.name, [value for _, value in law.parameters]) for law in self.laws
        )
        return records, sums, squares

    def spends(self, name: str) -> list[Spend]:
        """List the spends of learning the attribute ``name``."""
        sensitivities = zip(self.sensitivities, self.l0_sensitivities, strict=True)
        kinds = zip(SPEND_PREFIXES, self.laws, sensitivities, strict=True)
        return [
            Spend(
                what=f"{what}{name}",
                part="parameters",
                law=law,
                sensitivity=step,
                l0_sensitivity=changed,
            )
            for what, law, (step, changed) in kinds
        ]


def table_spends(name: str, model: TableModel, counts: Law) -> list[Spend]:
    """List the spends of learning the conditional table of one attribute."""
    if model == "histogram":
        return [Spend(what=f"counts of {name}", part="parameters", law=counts)]
    return moment_noise(counts, model).spends(name)


def moment_sensitivities(bound: int) -> tuple[int, int, int]:
    """Sensitivities of a count, a sum and a sum of products: 1, B, B²."""
    return 1, bound, bound * bound


def moment_l0_sensitivities(model: MomentModel) -> tuple[int, int, int]:
    """Count the counts, sums and sums of products that one record can change.

    A record is in one group only. The attribute and r regressors have r + 1 sums and
    (r + 1)(r + 2) / 2 products. The largest r is charged, whatever the graph.

    >>> moment_l0_sensitivities("normal"), moment_l0_sensitivities("regression")
    ((1, 1, 1), (1, 4, 10))
    """
    variables = 1 if model == "normal" else 1 + MAX_REGRESSORS
    return 1, variables, variables * (variables + 1) // 2


def laplace_excess(models: Sequence[TableModel]) -> float:
    """Factor by which splitting a cost widens Laplace noise more than Gaussian noise.

    If n numbers share a cost, Laplace noise is wider by n, Gaussian noise by √n: the factor is
    √n. n is the largest of all attributes; 1 for tables of counts.

    >>> [round(laplace_excess([model]) ** 2) for model in ("histogram", "normal", "regression")]
    [1, 3, 30]
    """
    shares = [3 * moment_l0_sensitivities(model)[2] for model in models if model != "histogram"]
    return math.sqrt(max(shares, default=1))


@lru_cache(maxsize=8)
def moment_noise(counts: Law, model: MomentModel) -> MomentNoise:
    """Choose the noise with which all three kinds cost as much as a table with noise ``counts``.

        Gaussian:  σ_k = σ · Δ_k · √(3 n_k)        so that  Σ n_k Δ_k² / σ_k² = 1 / σ²
        Laplace:   ε_k = ε / (3 n_k Δ_k)           so that  Σ n_k Δ_k ε_k = ε

    for the kinds k, with Δ = 1, B, B² and n_k numbers that one record changes. Each kind gets a
    third of the cost. B is the largest whose noise fits a weight table.

    Raises:
        BudgetError: The noise does not fit a weight table for any B.

    Privacy:
        Neighbours: add or remove one record, which changes n_k numbers of each kind, each by at
            most Δ_k.
        Covers: all three kinds together, at the cost of one table of counts or less. Gaussian
            noise composes to exactly that. The ε of Laplace noise add up to ε, and no ε-DP
            mechanism costs more than discrete Laplace noise on a number changed by one.
        Does not cover: B, which is public and follows from the noise alone.
    """
    changed = moment_l0_sensitivities(model)
    for bound in VALUE_BOUNDS:
        kinds = zip(moment_sensitivities(bound), changed, strict=True)
        with suppress(BudgetError):
            records, sums, squares = (
                _third_of_cost(counts, step, number) for step, number in kinds
            )
            return MomentNoise(
                bound=bound, l0_sensitivities=changed, records=records, sums=sums, squares=squares
            )
    raise BudgetError(
        f"the noise of a {model} model needs a table larger than 2^26 at {counts}. Ask for a "
        'larger ε (up to 10), learn fewer attributes, or set model = "histogram" in the schema.'
    )


def _third_of_cost(counts: Law, step: int, numbers: int) -> Law:
    """Noise at a third of the cost of ``counts``, for ``numbers`` numbers changed by ``step``."""
    parameters = dict(counts.parameters)
    if counts.name == "rounded_gaussian":
        return noise_laws.rounded_gaussian(parameters["sigma"] * step * math.sqrt(3 * numbers))
    if counts.name == "discrete_laplace":
        return noise_laws.discrete_laplace(parameters["epsilon"] / (3 * numbers * step))
    if counts.name == "exact":
        return counts
    raise InvariantError(f"a third of the cost of {counts} noise is not defined")


def noise_deviation(law: str, scale: Sequence[float]) -> float:
    """Standard deviation of a law from its name and scale, without computing its table."""
    if law == "exact":
        return 0.0
    if law == "discrete_laplace":
        # The variance is 2 α / (1 - α)² with α = e^-ε.
        return 1 / (math.sqrt(2) * math.sinh(scale[0] / 2))
    return scale[0]
