"""Noisy histograms of a column with a threshold, for a draft with differential privacy.

A row is in one cell of each histogram. Every count gets bounded noise of the same law, on -r … r. A
cell is released if its noisy count is at least 1 + r, which an empty cell never reaches. So each
histogram is Mechanism B of guarantee.md, Theorem 7 with k = 1, and n histograms together are that
theorem with n lengths.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from deniable.arrays import Counts
from deniable.drafting.cell_patterns import CLASS_INDEX, CLASS_NAMES, strip_blanks
from deniable.drafting.cell_texts import CountedTexts
from deniable.errors import BudgetError, InvariantError
from deniable.privacy import noise_laws
from deniable.privacy.composition import Guarantee, gaussian_mu, group_privacy
from deniable.privacy.ledger import Part, Spend, compose_spends
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_laws import Law
from deniable.randomness import Rng

# The accountant rounds ε up on a grid: calibrate to these fractions of ε until the cost fits.
_CALIBRATION_FRACTIONS = (1 - 1e-5, 1 - 1e-3, 0.99, 0.97, 0.9, 0.8)
_LEDGER_PART: Part = "structure"


def per_row_limit(limit: Guarantee, *, rows: int) -> Guarantee:
    """Limit per row such that a unit of several rows stays within ``limit``.

    Privacy:
        Neighbours: ``limit`` is for all rows of one unit, at most ``rows``; the result is
            for one row (group privacy, ``composition.group_privacy``).
    """
    _require_finite(limit)
    epsilon = limit.epsilon / rows
    factor = math.fsum(math.exp(min(i * epsilon, 700.0)) for i in range(rows))
    one = Guarantee(epsilon=epsilon * (1 - 1e-12), delta=limit.delta / factor * (1 - 1e-12))
    if not group_privacy(one, rows=rows).within(limit):
        raise InvariantError("the rows of a unit together exceed the limit of the unit")
    return one


def calibrate_noise(limit: Guarantee, *, histograms: int) -> Law:
    """Choose the noise with which n histograms cost at most ``limit``.

    Geometric or Gaussian noise, whichever has the lower threshold.

    Raises:
        BudgetError: No noise meets the limit.

    Privacy:
        Neighbours: add or remove one row, which moves one cell of each histogram by one.
        Covers: all cells that reach 1 + r, with their noisy counts, (ε, δ) by Theorem 7, as
            certified by ``ledger.compose_spends`` for this exact noise table.
    """
    _require_finite(limit)
    for fraction in _CALIBRATION_FRACTIONS:
        target = Guarantee(epsilon=min(fraction * limit.epsilon, 30.0), delta=limit.delta)
        try:
            law = min(_candidate_laws(target, histograms), key=lambda law: law.r)
            cost = compose_spends((_spend(law, histograms),), delta=limit.delta)
        except BudgetError:
            continue
        if cost.within(limit):
            return law
    raise BudgetError(
        f"no noise keeps a draft of {histograms} histograms within ε = {limit.epsilon:.4g}, "
        f"δ = {limit.delta:.2g} per row. Use a larger δ, an ε between 0.1 and 10, fewer rows per "
        "unit or fewer columns"
    )


def _require_finite(limit: Guarantee) -> None:
    if not (0 < limit.epsilon < math.inf and 0 < limit.delta < 1):
        raise BudgetError(
            "a private draft needs 0 < ε < ∞ and 0 < δ < 1; "
            f"got ε = {limit.epsilon}, δ = {limit.delta}"
        )


def _candidate_laws(limit: Guarantee, histograms: int) -> list[Law]:
    each = limit.epsilon / histograms
    r = noise_laws.geometric_radius(epsilon=limit.epsilon, delta=limit.delta, lengths=histograms)
    found = [noise_laws.truncated_geometric(each, r)]
    # Half of δ is for finite privacy losses, the rest for the truncated tail.
    mu = gaussian_mu(epsilon=limit.epsilon, delta=limit.delta / 2)
    sigma = math.sqrt(histograms) / mu
    tail = histograms / (0.4 * limit.delta * sigma * math.sqrt(2 * math.pi))
    if sigma >= 2 and tail > 1:
        r = math.ceil(sigma * math.sqrt(2 * math.log(tail)))
        found.append(noise_laws.truncated_discrete_gaussian(sigma, r))
    return found


def _spend(law: Law, histograms: int) -> Spend:
    return Spend(what="schema draft", part=_LEDGER_PART, law=law, moved=histograms)


@dataclass(frozen=True)
class NoisyHistogram:
    """A histogram that was measured with noise.

    Attributes:
        public: Noisy counts of the cells that are known in advance; 0 below the threshold.
        texts: Noisy counts of the texts that reach the threshold, in the order of the texts.
    """

    public: Counts
    texts: dict[str, int]


@dataclass
class HistogramMeasurer:
    """Measure histograms with noise, at most as many as the noise was calibrated for.

    A private draft reads the data through ``measure`` only: the same answers give the same draft.

    Attributes:
        law: Noise of each count.
        rng: Source of the noise.
        max_histograms: Number of histograms that the noise was calibrated for.
        spends: Ledger entries so far.
    """

    law: Law
    rng: Rng
    max_histograms: int
    spends: list[Spend] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.law.name.startswith("truncated"):
            raise InvariantError("the threshold 1 + r needs bounded noise")

    @property
    def threshold(self) -> int:
        """Smallest noisy count that is released: one more than noise alone can reach."""
        return 1 + self.law.r

    def measure(self, public: Counts, listed: CountedTexts | None = None) -> NoisyHistogram:
        """Measure one histogram of cells known in advance and, after them, of texts.

        Args:
            public: Number of rows in each cell known in advance.
            listed: Texts of the column, each of them one more cell.

        Privacy:
            Neighbours: add or remove one row, which moves one count, of ``public`` or of a text,
                by one.
            Covers: as ``histogram``. Texts are released in their own order, as any other could
                reveal the data's.
        """
        if listed is None:
            return NoisyHistogram(self.histogram(public), {})
        noisy = self.histogram(np.concatenate([public, listed.counts]))
        rows = noisy[len(public) :]
        released = listed.texts.filter(pl.Series(rows > 0))
        texts = dict(sorted(zip(released, rows[rows > 0].tolist(), strict=True)))
        return NoisyHistogram(noisy[: len(public)], texts)

    def histogram(self, counts: Counts) -> Counts:
        """Add noise to counts; set those below the threshold to zero.

        Args:
            counts: Number of rows in each cell. Empty cells may be left out.

        Privacy:
            Neighbours: add or remove one row, which moves one of the counts by one.
            Covers: which cells reach the threshold, and their noisy counts: Mechanism B with
                k = 1 (guarantee.md, Theorem 7), so cells need no public list.
            Does not cover: other histograms of the same rows; ``calibrate_noise`` does.
        """
        if len(self.spends) >= self.max_histograms:
            raise InvariantError(
                "the draft needs more histograms than the noise was calibrated for"
            )
        noisy, spent = add_noise(self.rng, counts, self.law, what="schema draft", part=_LEDGER_PART)
        self.spends.append(spent)
        released: Counts = np.where(noisy >= self.threshold, noisy, 0)
        return released

    def cost(self, *, delta: float) -> Guarantee:
        """Total cost per row of the histograms measured so far."""
        if not self.spends:
            return Guarantee(epsilon=0.0, delta=0.0)
        return compose_spends((_spend(self.law, len(self.spends)),), delta=delta)


def count_classes(column: CountedTexts) -> Counts:
    """Count the cells of a column in each class of ``cell_patterns.CLASS_NAMES``.

    Every row has one cell, and every cell one class: a row moves one count by one.
    """
    found = np.zeros(len(CLASS_NAMES), dtype=np.int64)
    np.add.at(found, column.classes, column.counts)
    found[CLASS_INDEX["missing "]] += column.nulls
    return found


def grid_positions(column: CountedTexts, decimals: int) -> tuple[Counts, Counts]:
    """Round the numbers of a column to a grid of 10^-decimals; also return the rows of each.

    Cells that are not numbers are left out; positions are clipped to ±10^18.
    """
    numbers = strip_blanks(column.texts).cast(pl.Float64, strict=False)
    known = (numbers.is_not_null() & numbers.is_finite()).to_numpy()
    grid = np.clip(numbers.filter(pl.Series(known)).to_numpy(), -1e18, 1e18) * 10.0**decimals
    positions = np.rint(np.clip(grid, -1e18, 1e18)).astype(np.int64)
    return positions, column.counts[known]


def count_intervals(positions: Counts, counts: Counts, edges: Sequence[int]) -> Counts:
    """Count the rows in each interval, given the ascending lower edges.

    Rows below the first edge are left out; the last interval has no upper end. A row moves at
    most one count.
    """
    at = np.searchsorted(np.array(edges, dtype=np.int64), positions, side="right") - 1
    found = np.zeros(len(edges), dtype=np.int64)
    np.add.at(found, at[at >= 0], counts[at >= 0])
    return found
