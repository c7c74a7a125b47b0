"""The noise of sums and squares: what a Normal or a regression costs in place of a table of counts.

All of it follows from public facts: the noise of a count, and how an attribute is learnt.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from deniable.errors import BudgetError, InvariantError
from deniable.privacy import laws
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend

MomentModel = Literal["normal", "regression"]
# How an attribute is learnt: by counts of its values, or by their sums.
TableModel = Literal["histogram"] | MomentModel

# A regression has at most so many regressors, whatever the graph.
MOST_REGRESSORS = 3
# What B may be, the best first: values are whole numbers from -B to B.
BOUNDS = (64, 32, 16, 8)
# The uses of the data, in the order of the ledger.
WHATS = ("records of ", "sums of ", "squares of ")


@dataclass(frozen=True, kw_only=True)
class MomentNoise:
    """The noise of the three kinds of numbers that one attribute is learnt from.

    Attributes:
        bound: B.
        moved: How many numbers of each kind one record can move.
        records: The noise of numbers of records.
        sums: The noise of sums of values.
        squares: The noise of sums of products of two values.
    """

    bound: int
    moved: tuple[int, int, int]
    records: Law = field(repr=False)
    sums: Law = field(repr=False)
    squares: Law = field(repr=False)

    @property
    def laws(self) -> tuple[Law, Law, Law]:
        """The noise of each kind, in the order of the ledger."""
        return self.records, self.sums, self.squares

    @property
    def sensitivities(self) -> tuple[int, int, int]:
        """The most that one record moves a number of each kind: 1, B, B²."""
        return sensitivities_of(self.bound)

    @property
    def deviations(self) -> tuple[float, float, float]:
        """The standard deviation of the noise of each kind; 0: none."""
        records, sums, squares = (
            deviation(law.name, [value for _, value in law.parameters]) for law in self.laws
        )
        return records, sums, squares

    def spends(self, name: str) -> list[Spend]:
        """Return every use of the data that learning the attribute of this name makes."""
        kinds = zip(WHATS, self.laws, self.sensitivities, self.moved, strict=True)
        return [
            Spend(what=f"{what}{name}", part="parameters", law=law, sensitivity=step, moved=moved)
            for what, law, step, moved in kinds
        ]


def spends_of_table(name: str, model: TableModel, counts: Law) -> list[Spend]:
    """Return every use of the data that learning one attribute's table makes."""
    if model == "histogram":
        return [Spend(what=f"counts of {name}", part="parameters", law=counts)]
    return moment_noise(counts, model).spends(name)


def sensitivities_of(bound: int) -> tuple[int, int, int]:
    """Return the most that one record moves a count, a sum and a sum of products: 1, B, B²."""
    return 1, bound, bound * bound


def moved_of(model: MomentModel) -> tuple[int, int, int]:
    """Return how many counts, sums and sums of products one record can move.

    A record is in one group only. Of its own value and r regressors there are r + 1 sums and
    (r + 1)(r + 2) / 2 products; the most that there can be is charged, whatever the graph.

    >>> moved_of("normal"), moved_of("regression")
    ((1, 1, 1), (1, 4, 10))
    """
    variables = 1 if model == "normal" else 1 + MOST_REGRESSORS
    return 1, variables, variables * (variables + 1) // 2


def laplace_excess(models: Sequence[TableModel]) -> float:
    """Return how much more Laplace noise suffers than Gaussian noise when one table is shared out.

    A cost that n numbers share makes noise wider by n for Laplace noise, by √n for Gaussian: so
    by √n more. n is that of the widest of all attributes; 1 for tables of counts.

    >>> [round(laplace_excess([model]) ** 2) for model in ("histogram", "normal", "regression")]
    [1, 3, 30]
    """
    shares = [3 * moved_of(model)[2] for model in models if model != "histogram"]
    return math.sqrt(max(shares, default=1))


@lru_cache(maxsize=8)
def moment_noise(counts: Law, model: MomentModel) -> MomentNoise:
    """Return the noise with which all three kinds cost what a table with noise ``counts`` costs.

        Gaussian:  σ_k = σ · Δ_k · √(3 n_k)        so that  Σ n_k Δ_k² / σ_k² = 1 / σ²
        Laplace:   ε_k = ε / (3 n_k Δ_k)           so that  Σ n_k Δ_k ε_k = ε

    for the kinds k: Δ = 1, B, B² and n_k numbers that one record moves. A third of the cost each.
    B is the largest whose noise fits a table.

    Raises:
        BudgetError: No B is small enough.

    Privacy:
        Neighbours: add or remove one record, which moves n_k numbers of each kind, each by at
            most Δ_k.
        Covers: all three kinds together, at the cost of one table of counts or less: Gaussian
            noise adds so exactly; of Laplace noise the sum is ε, and no mechanism of ε costs
            more than the discrete Laplace law of a number moved by one.
        Does not cover: B, which is public and follows from the noise alone.
    """
    moved = moved_of(model)
    for bound in BOUNDS:
        kinds = zip(sensitivities_of(bound), moved, strict=True)
        with suppress(BudgetError):
            records, sums, squares = (_third(counts, step, number) for step, number in kinds)
            return MomentNoise(
                bound=bound, moved=moved, records=records, sums=sums, squares=squares
            )
    raise BudgetError(
        f"the noise of a {model} model needs a table above 2^26 at {counts}. Ask for a larger ε, "
        'learn fewer attributes, or set model = "histogram" in the schema.'
    )


def _third(counts: Law, step: int, moved: int) -> Law:
    """Return noise of a third of what ``counts`` costs, for ``moved`` numbers moved so far."""
    parameters = dict(counts.parameters)
    if counts.name == "rounded_gaussian":
        return laws.rounded_gaussian(parameters["sigma"] * step * math.sqrt(3 * moved))
    if counts.name == "discrete_laplace":
        return laws.discrete_laplace(parameters["epsilon"] / (3 * moved * step))
    if counts.name == "exact":
        return counts
    raise InvariantError(f"counts have noise by {counts}, of which there is no third")


def deviation(law: str, scale: Sequence[float]) -> float:
    """Return the standard deviation of noise by its law's name and scale: no table is made."""
    if law == "exact":
        return 0.0
    if law == "discrete_laplace":
        # The variance is 2 α / (1 - α)² with α = e^-ε.
        return 1 / (math.sqrt(2) * math.sinh(scale[0] / 2))
    return scale[0]
