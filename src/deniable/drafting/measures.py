"""Noisy histograms of a column, for a draft with differential privacy.

In each of them a row has one cell. Every count gets bounded noise of one law, on -r … r, and a
cell counts as there from 1 + r on: one that no row is in never gets that far. So each histogram is
Mechanism B of guarantee.md, Theorem 7 with k = 1, and all of them together are that theorem with
as many lengths as there are histograms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from deniable.arrays import Counts
from deniable.drafting.cells import CLASS, MOST_DECIMALS, NAMES, classes_of, stripped
from deniable.drafting.columns import Column
from deniable.drafting.figures import decimals_each
from deniable.errors import BudgetError, InvariantError
from deniable.privacy import laws
from deniable.privacy.composition import Guarantee, gaussian_mu, of_a_group
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Part, Spend, cost_of
from deniable.privacy.noise import add_noise
from deniable.randomness import Rng

# The accountant rounds up on a grid: aim a little below, and lower where that was not enough.
_AIMS = (1 - 1e-5, 1 - 1e-3, 0.99, 0.97, 0.9, 0.8)
_PART: Part = "structure"


def per_row(limit: Guarantee, *, rows: int) -> Guarantee:
    """Return what may be spent on a row so that one who has several stays within ``limit``.

    Privacy:
        Neighbours: ``limit`` is for all rows of one unit, at most ``rows``; what is returned is
            for one row (group privacy, ``composition.of_a_group``).
    """
    _require_finite(limit)
    epsilon = limit.epsilon / rows
    factor = math.fsum(math.exp(min(i * epsilon, 700.0)) for i in range(rows))
    one = Guarantee(epsilon=epsilon * (1 - 1e-12), delta=limit.delta / factor * (1 - 1e-12))
    if not of_a_group(one, rows=rows).within(limit):
        raise InvariantError("a unit's rows cost more together than the unit may")
    return one


def law_for(limit: Guarantee, *, histograms: int) -> Law:
    """Return the noise with which so many histograms cost at most ``limit``.

    Of geometric and Gaussian noise that of the lower threshold.

    Raises:
        BudgetError: There is none.

    Privacy:
        Neighbours: add or remove one row, which moves one cell of each histogram by one.
        Covers: all cells that reach 1 + r, with their noisy counts, (ε, δ) by Theorem 7, as
            certified by ``ledger.cost_of`` for this very table of noise.
    """
    _require_finite(limit)
    for aim in _AIMS:
        aimed = Guarantee(epsilon=min(aim * limit.epsilon, 30.0), delta=limit.delta)
        try:
            law = min(_candidates(aimed, histograms), key=lambda law: law.r)
            cost = cost_of((_spend(law, histograms),), delta=limit.delta)
        except BudgetError:
            continue
        if cost.within(limit):
            return law
    raise BudgetError(
        f"a draft of {histograms} histograms cannot be had for ε = {limit.epsilon:.4g}, "
        f"δ = {limit.delta:.2g} a row. Ask for a larger δ, an ε between 0.1 and 10, fewer rows a "
        "unit or fewer columns"
    )


def _require_finite(limit: Guarantee) -> None:
    if not (0 < limit.epsilon < math.inf and 0 < limit.delta < 1):
        raise BudgetError(
            "a private draft needs 0 < ε < ∞ and 0 < δ < 1; "
            f"got ε = {limit.epsilon}, δ = {limit.delta}"
        )


def _candidates(limit: Guarantee, histograms: int) -> list[Law]:
    each = limit.epsilon / histograms
    r = laws.r_for(epsilon=limit.epsilon, delta=limit.delta, lengths=histograms)
    found = [laws.truncated_geometric(each, r)]
    # Half of δ for the finite losses, the rest for the edge.
    mu = gaussian_mu(epsilon=limit.epsilon, delta=limit.delta / 2)
    sigma = math.sqrt(histograms) / mu
    tail = histograms / (0.4 * limit.delta * sigma * math.sqrt(2 * math.pi))
    if sigma >= 2 and tail > 1:
        r = math.ceil(sigma * math.sqrt(2 * math.log(tail)))
        found.append(laws.truncated_discrete_gaussian(sigma, r))
    return found


def _spend(law: Law, histograms: int) -> Spend:
    return Spend(what="schema draft", part=_PART, law=law, moved=histograms)


@dataclass
class Measurer:
    """Adds the noise, and counts how often: no more histograms than were paid for.

    Attributes:
        law: The noise of each count.
        rng: Where it comes from.
        most: How many histograms were paid for.
        spends: What was spent.
    """

    law: Law
    rng: Rng
    most: int
    spends: list[Spend] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.law.name.startswith("truncated"):
            raise InvariantError("a threshold of 1 + r is for bounded noise")

    @property
    def threshold(self) -> int:
        """What a noisy count must reach: more than noise alone can."""
        return 1 + self.law.r

    def histogram(self, counts: Counts) -> Counts:
        """Return the noisy counts that reach the threshold; the others as zero.

        Args:
            counts: How many rows are in each cell. Cells that no row is in may be left out.

        Privacy:
            Neighbours: add or remove one row, which moves one of the counts by one.
            Covers: which cells reach the threshold, and their noisy counts: Mechanism B with
                k = 1 (guarantee.md, Theorem 7), so cells need no public list.
            Does not cover: other histograms of the same rows; ``law_for`` does.
        """
        if len(self.spends) >= self.most:
            raise InvariantError("a draft asks for more histograms than were paid for")
        noisy, spent = add_noise(self.rng, counts, self.law, what="schema draft", part=_PART)
        self.spends.append(spent)
        shown: Counts = np.where(noisy >= self.threshold, noisy, 0)
        return shown

    def cost(self, *, delta: float) -> Guarantee:
        """Return what all that was spent costs one row."""
        if not self.spends:
            return Guarantee(epsilon=0.0, delta=0.0)
        return cost_of((_spend(self.law, len(self.spends)),), delta=delta)


def class_counts(column: Column) -> Counts:
    """Return how many cells of a column are of each class, as in ``cells.NAMES``.

    Every row has one cell, and every cell one class: a row moves one count by one.
    """
    found = np.zeros(len(NAMES), dtype=np.int64)
    np.add.at(found, classes_in(column), column.counts)
    found[CLASS["missing "]] += column.nulls
    return found


def classes_in(column: Column) -> Counts:
    """Return the class of each distinct value of a column, typed or text."""
    values = column.values
    if values.dtype == pl.String:
        return classes_of(values).astype(np.int64)
    if not values.dtype.is_numeric():
        return np.full(len(values), CLASS["text"], dtype=np.int64)
    if values.dtype.is_integer():
        return np.full(len(values), CLASS["decimals 0"], dtype=np.int64)
    decimals = decimals_each(values.cast(pl.Float64).to_numpy(), most=MOST_DECIMALS)
    found = np.where(decimals <= MOST_DECIMALS, CLASS["decimals 0"] + decimals, CLASS["long"])
    return np.where(decimals == 0, CLASS["point"], found)


def positions_in(column: Column, decimals: int) -> tuple[Counts, Counts]:
    """Return the numbers of a column on a grid of 10^-decimals, and the rows of each.

    Cells that are no number are left out; numbers far out are brought back to ±10^18.
    """
    values = column.values
    if values.dtype == pl.String:
        numbers = stripped(values).cast(pl.Float64, strict=False)
    else:
        numbers = values.cast(pl.Float64)
    known = (numbers.is_not_null() & numbers.is_finite()).to_numpy()
    grid = np.clip(numbers.filter(pl.Series(known)).to_numpy(), -1e18, 1e18) * 10.0**decimals
    positions = np.rint(np.clip(grid, -1e18, 1e18)).astype(np.int64)
    return positions, column.counts[known]


def interval_counts(positions: Counts, counts: Counts, edges: Sequence[int]) -> Counts:
    """Return how many rows are in each of the intervals that begin at ``edges``, ascending.

    What is below the first is left out; the last has no end. A row moves at most one count.
    """
    at = np.searchsorted(np.array(edges, dtype=np.int64), positions, side="right") - 1
    found = np.zeros(len(edges), dtype=np.int64)
    np.add.at(found, at[at >= 0], counts[at >= 0])
    return found
