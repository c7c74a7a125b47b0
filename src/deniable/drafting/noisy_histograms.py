"""Noisy histograms of a column, for a draft with differential privacy.

A row is in one cell of each histogram. Every count gets Gaussian noise, rounded to integers. Counts
of cells that are known in advance are released as they are. A text is a cell that is not known in
advance: it is released only if its noisy count reaches a threshold that the noise of a single row
reaches with a probability of at most a small part of δ (guarantee.md, Theorem 7b).

Each histogram takes a part of μ², the cost of the whole draft: noise of standard deviation σ costs
1/σ². Parts may depend on earlier answers, as long as they add up to at most μ².
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field

import numpy as np
import polars as pl

from deniable.arrays import Counts, Reals
from deniable.drafting.cell_texts import CountedTexts
from deniable.errors import BudgetError, InvariantError
from deniable.privacy import noise_laws
from deniable.privacy.composition import (
    Guarantee,
    gaussian_delta,
    group_privacy,
    upper_bound,
)
from deniable.privacy.draft_mechanism import (
    DRAFT_SPEND,
    TABLE_GROWTH,
    TABLE_MASS,
    calibrate_draft,
)
from deniable.privacy.ledger import Part, Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_tables import with_table_error
from deniable.randomness import Rng

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


@dataclass(frozen=True, kw_only=True)
class DraftNoise:
    """Noise of a draft.

    Attributes:
        mu: μ of all histograms together, as one Gaussian mechanism.
        epsilon: ε of that mechanism, without the errors of its tables.
        text_delta: Largest probability that a list shows a text of a single row.
        max_histograms: Largest number of histograms.
        max_lists: Largest number of histograms that list texts.
    """

    mu: float
    epsilon: float
    text_delta: float
    max_histograms: int
    max_lists: int

    def cost(self, spends: Sequence[Spend]) -> Guarantee:
        """Total cost per row of the given ledger entries: Theorem 7b."""
        return self._cost(
            mu=math.hypot(*(spend.mu for spend in spends)),
            growth=math.fsum(spend.table_growth for spend in spends),
            mass=math.fsum(spend.table_error for spend in spends),
        )

    @property
    def largest_cost(self) -> Guarantee:
        """Upper bound on ``cost``, however the histograms share μ²."""
        tables = self.max_histograms
        return self._cost(mu=self.mu, growth=tables * TABLE_GROWTH, mass=tables * TABLE_MASS)

    def _cost(self, *, mu: float, growth: float, mass: float) -> Guarantee:
        delta = gaussian_delta(epsilon=self.epsilon, mu=upper_bound(mu))
        ideal = Guarantee(epsilon=self.epsilon, delta=delta)
        gaussian = with_table_error(ideal, growth=upper_bound(growth), mass=upper_bound(mass))
        texts = upper_bound(self.max_lists * self.text_delta)
        hidden = -math.log1p(-texts)
        return Guarantee(
            epsilon=upper_bound(gaussian.epsilon + hidden),
            delta=upper_bound(gaussian.delta + texts),
        )


def calibrate_noise(limit: Guarantee, *, histograms: int, lists: int) -> DraftNoise:
    """Choose the noise with which a draft costs at most ``limit``.

    Args:
        limit: (ε, δ) for one row.
        histograms: Largest number of histograms.
        lists: Largest number of histograms among them that list texts.

    Raises:
        BudgetError: No noise meets the limit.

    Privacy:
        Neighbours: add or remove one row, which moves one cell of each histogram by one.
        Covers: all counts of cells known in advance, and the texts that reach the threshold with
            their counts: (ε - ln(1 - lists · ``text_delta``), δ' + lists · ``text_delta``) by
            Theorem 7b, where (ε, δ') is the cost of μ with the errors of the noise tables
            (``noise_tables.with_table_error``).
    """
    _require_finite(limit)
    with suppress(BudgetError):
        scales = calibrate_draft(limit, histograms=histograms, lists=lists)
        found = DraftNoise(**asdict(scales), max_histograms=histograms, max_lists=lists)
        if found.largest_cost.within(limit):
            return found
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


@dataclass(frozen=True)
class NoisyHistogram:
    """A histogram that was measured with noise.

    Attributes:
        public: Noisy counts of the cells that are known in advance; they may be negative.
        texts: Noisy counts of the texts that reach the threshold, in the order of the texts.
        sigma: Standard deviation of the noise.
    """

    public: Counts
    texts: dict[str, int]
    sigma: float


@dataclass(frozen=True)
class _HiddenCounts:
    """Noisy counts of all texts of a column, whether they were released or not. Confidential.

    Attributes:
        texts: The texts.
        counts: Their noisy counts: of one histogram, or means of two.
        sigma: Standard deviation of the noise.
    """

    texts: pl.Series = field(repr=False)
    counts: Reals = field(repr=False)
    sigma: float

    def with_earlier(self, earlier: "_HiddenCounts | None") -> "_HiddenCounts":
        """Average with the counts of an earlier histogram, weighted by inverse variances.

        Rounding moves a mean by at most a half, as it moves a single count: ``text_threshold``
        holds for both.
        """
        if earlier is None:
            return self
        before = dict(zip(earlier.texts, earlier.counts.tolist(), strict=True))
        if not before.keys() >= set(self.texts):
            raise InvariantError("a second list has a text that the first one does not have")
        weight = earlier.sigma**2 / (earlier.sigma**2 + self.sigma**2)
        counts = [before[text] for text in self.texts]
        mean = weight * self.counts + (1 - weight) * np.array(counts, dtype=np.float64)
        return _HiddenCounts(self.texts, mean, self.sigma * weight**0.5)


@dataclass
class HistogramMeasurer:
    """Measure histograms with noise, within the cost that the noise was calibrated for.

    A private draft reads the data through ``measure`` only: the same answers give the same draft.

    Attributes:
        noise: Noise of the draft.
        rng: Source of the noise.
        spends: Ledger entries so far.
        lists: Number of histograms so far that listed texts.
        hidden: For each column whose texts were listed, the noisy counts of all of them.
            Confidential: they show which texts occur. Only ``measure`` reads them.
    """

    noise: DraftNoise
    rng: Rng
    spends: list[Spend] = field(default_factory=list)
    lists: int = 0
    hidden: dict[str, "_HiddenCounts"] = field(default_factory=dict, repr=False)

    def measure(
        self, public: Counts, listed: CountedTexts | None = None, *, share: float
    ) -> NoisyHistogram:
        """Measure one histogram of cells known in advance and, after them, of texts.

        Args:
            public: Number of rows in each cell known in advance.
            listed: Texts of the column, each of them one more cell. If an earlier histogram had
                them, too, the mean of both noisy counts is released, and must reach the threshold.
            share: Part of μ² that this histogram takes.

        Privacy:
            Neighbours: add or remove one row, which moves one count, of ``public`` or of a text,
                by one.
            Covers: the counts of ``public``, and the texts that reach the threshold: Theorem 7b.
                Texts are released in their own order, as any other could reveal the data's.
            Does not cover: other histograms of the same rows; ``calibrate_noise`` does.
        """
        self.lists += listed is not None
        sigma = self.sigma_of(share)
        counts = public if listed is None else np.concatenate([public, listed.counts])
        noisy = self._add_noise(counts, sigma, share)
        if listed is None:
            return NoisyHistogram(noisy, {}, sigma)
        found = _HiddenCounts(listed.texts, noisy[len(public) :].astype(np.float64), sigma)
        found = found.with_earlier(self.hidden.get(listed.name))
        self.hidden[listed.name] = found
        seen = found.counts >= text_threshold(found.sigma, self.noise.text_delta)
        released = np.rint(found.counts[seen]).astype(np.int64).tolist()
        texts = dict(sorted(zip(listed.texts.filter(pl.Series(seen)), released, strict=True)))
        return NoisyHistogram(noisy[: len(public)], texts, sigma)

    def _add_noise(self, counts: Counts, sigma: float, share: float) -> Counts:
        spent = math.fsum(spend.mu**2 for spend in self.spends)
        allowed = self.noise.mu**2 * (1 + 1e-9)
        is_full = len(self.spends) >= self.noise.max_histograms or self.lists > self.noise.max_lists
        if is_full or spent + share * self.noise.mu**2 > allowed:
            raise InvariantError("the draft needs more than the noise was calibrated for")
        law = noise_laws.rounded_gaussian(sigma)
        noisy, spend = add_noise(self.rng, counts, law, what=DRAFT_SPEND, part=_LEDGER_PART)
        self.spends.append(spend)
        return noisy

    def sigma_of(self, share: float) -> float:
        """Standard deviation of the noise at a share of μ²."""
        return 1 / (self.noise.mu * math.sqrt(share))

    def share_of(self, sigma: float) -> float:
        """Share of μ² at which noise has a standard deviation."""
        return 1 / (self.noise.mu * sigma) ** 2

    def threshold_of(self, share: float) -> float:
        """Rows that a text needs to be named, at a share of μ²: ``text_threshold``, unrounded."""
        from scipy.special import ndtri  # noqa: PLC0415 - slow to import

        return 1.5 - self.sigma_of(share) * float(ndtri(self.noise.text_delta))

    def cost(self) -> Guarantee:
        """Total cost per row of the histograms measured so far."""
        free = Guarantee(epsilon=0.0, delta=0.0)
        return self.noise.cost(self.spends) if self.spends else free


def text_threshold(sigma: float, delta: float) -> int:
    """Smallest noisy count that names a text.

    A text of one row reaches it with a probability of at most ``delta``:
    Pr[1 + Z ≥ τ] = Φ(-(τ - 3/2) / σ) for a normal variable rounded to Z.
    """
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 - slow to import

    threshold = math.ceil(1.5 - sigma * float(ndtri(delta)))
    while float(ndtr(-(threshold - 1.5) / sigma)) > delta:
        threshold += 1
    return max(threshold, 2)
