"""Released numbers, and the log likelihood ratio of each: the strongest test of one row's presence.

An artefact publishes noisy counts, and the laws of their noise are public. So the attacker who
knows all other rows has an optimal test: the ratio of the probabilities of the released counts with
and without the row (Neyman and Pearson). Later stages depend on earlier ones through noisy numbers
only, so log ratios add up. What the attacker knows of the other rows is in ``membership``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.privacy.noise_laws import Law
from deniable.privacy.pairwise_budget import (
    INTERACTIONS_SPEND,
    PAIRS_SPEND,
    THREE_WAY_SPEND,
    PairNoise,
    gaussian_sigma,
)

# A ratio beyond this proves or excludes the row; larger ones, also infinite, are cut off here.
MAX_LOG_RATIO = 1e3
# Name of the two-way tables where they are also those that three-way interactions could replace:
# the entries of both pay for them (Theorem 13).
ALL_TABLES = f"{PAIRS_SPEND}, with further tables"
# Variance of rounding to integers, which a rounded Gaussian has in addition to σ².
_ROUNDING_VARIANCE = 1 / 12


@dataclass(frozen=True, kw_only=True)
class NoisyTable:
    """A released table with Gaussian noise, and where a row is counted in it.

    Attributes:
        name: Name of its stage, as the ledger has it.
        numbers: The released numbers: counts, or interactions without the factor of their cells.
        attributes: The attributes of its axes.
        bins: For each axis, the bin of each code.
        variance: Variance of the noise, as claimed, with that of rounding to integers.
        is_centred: Whether it has interactions: counts that are centred along each axis.
    """

    name: str
    numbers: Reals = field(repr=False)
    attributes: tuple[int, ...]
    bins: tuple[Indices, ...] = field(repr=False)
    variance: float
    is_centred: bool = False

    @property
    def squared_shift(self) -> float:
        """Squared length of what a row adds: e_i, or (e_i - 1/a)(e_j - 1/b)ᵀ (Lemma 11)."""
        sizes: tuple[int, ...] = self.numbers.shape if self.is_centred else ()
        return math.prod((1 - 1 / size for size in sizes), start=1.0)

    def cells(self, rows: Codes) -> Indices:
        """The cell in which each row is counted."""
        axes = zip(self.attributes, self.bins, strict=True)
        cells: Indices = np.ravel_multi_index(
            tuple(own[rows[:, i]] for i, own in axes), self.numbers.shape
        )
        return cells

    def noise(self, expected: Reals) -> Reals:
        """Released numbers less those of the expected counts: all of the noise, cell by cell."""
        exact = expected.reshape(self.numbers.shape)
        noise: Reals = self.numbers - (_centre(exact) if self.is_centred else exact)
        return noise.ravel()

    def projections(self, noise: Reals, cells: Indices) -> Reals:
        """Scalar product of the noise with what a row in each of some cells adds.

        For a centred table, it is the centred noise in the row's cell.
        """
        if self.is_centred:
            noise = _centre(noise.reshape(self.numbers.shape)).ravel()
        return noise[cells]


def _centre(table: Reals) -> Reals:
    """Subtract the mean along each axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def noisy_tables(
    evidence: PairwiseMeasurements, names: Sequence[str], noise: PairNoise
) -> Iterator[NoisyTable]:
    """List the tables of the default model: one-way tables, interactions, two-way tables.

    Interactions are those of pairs, and of triples where they were measured. If they were not,
    their entry pays for further two-way tables, and the stage has the name ``ALL_TABLES``.

    Args:
        evidence: The noisy counts of an artefact.
        names: The names of its attributes.
        noise: The noise of each stage, as the plan states it.
    """
    for i, (released, law) in enumerate(zip(evidence.values, noise.values, strict=True)):
        yield NoisyTable(
            name=f"values of {names[i]}",
            numbers=released.astype(np.float64),
            attributes=(i,),
            bins=(np.arange(len(released)),),
            variance=_variance(gaussian_sigma(law)),
        )
    bins = [own.astype(np.intp) for own in evidence.bins]
    groups = _groups_of_values(evidence.groups, bins)
    for pair, sigma in evidence.interaction_sigmas.items():
        yield _interactions(pair, evidence.interaction(pair), sigma, groups)
    if (three_way := evidence.three_way) is not None:
        groups = _groups_of_values(three_way.groups, bins)
        for triple, sigma in three_way.sigmas.items():
            yield _interactions(triple, three_way.interaction(triple), sigma, groups)
    has_further = bool(noise.reserved_count) and evidence.three_way is None
    for pair, number in evidence.table_counts.items():
        yield NoisyTable(
            name=ALL_TABLES if has_further else PAIRS_SPEND,
            numbers=evidence.table(pair)[0],
            attributes=pair,
            bins=tuple(bins[i] for i in pair),
            variance=_variance(gaussian_sigma(noise.tables)) / number,
        )


def _groups_of_values(groups: Sequence[Indices], bins: Sequence[Indices]) -> list[Indices]:
    return [own.astype(np.intp)[of_bins] for own, of_bins in zip(groups, bins, strict=True)]


def _interactions(
    attributes: tuple[int, ...], centred: Reals, sigma: float, groups: Sequence[Indices]
) -> NoisyTable:
    """The centred table of a pair or a triple, between groups."""
    return NoisyTable(
        name=INTERACTIONS_SPEND if len(attributes) == 2 else THREE_WAY_SPEND,
        numbers=centred,
        attributes=attributes,
        bins=tuple(groups[i] for i in attributes),
        variance=_variance(sigma, scale=centred.size),
        is_centred=True,
    )


def _variance(sigma: float, *, scale: int = 1) -> float:
    """Variance of noise that was rounded to integers and then divided by ``scale``; 0 if none."""
    return sigma**2 + _ROUNDING_VARIANCE / scale**2 if sigma > 0 else 0.0


def charged_stages(charged: Mapping[str, float]) -> dict[str, float]:
    """List μ of each stage of ``noisy_tables``, given that of the entries of a ledger.

    Two-way tables that are also those in place of three-way interactions have both entries.
    """
    if THREE_WAY_SPEND not in charged:
        return dict(charged)
    both = math.hypot(charged[THREE_WAY_SPEND], charged.get(PAIRS_SPEND, 0.0))
    return {**charged, ALL_TABLES: both}


@dataclass(frozen=True)
class TailProbabilities:
    """Cumulative probabilities of bounded noise, for prefixes that are not kept."""

    cumulative: Reals
    radius: int

    @classmethod
    def of(cls, law: Law) -> "TailProbabilities":
        """Sum the probabilities of a law."""
        one_side = law.table.probabilities()
        return cls(np.cumsum(np.concatenate([one_side[:0:-1], one_side])), law.radius)

    def hidden(self, count: int, *, k: int) -> float:
        """Probability that a prefix with this number of rows is not kept."""
        if count < k:
            return 1.0
        largest = k + self.radius - 1 - count  # noise up to this does not reach the threshold
        if largest < -self.radius:
            return 0.0
        return float(min(1.0, self.cumulative[min(largest + self.radius, 2 * self.radius)]))

    def hidden_ratio(self, others: int, *, k: int, rows: int = 1) -> float:
        """Log ratio of a prefix that is not kept, with and without ``rows`` more rows."""
        return _log_ratio(self.hidden(others + rows, k=k), self.hidden(others, k=k))


def law_ratios(law: Law, noise: Counts, *, rows: int = 1) -> Reals:
    """Log ratio of noise values with ``rows`` rows present and absent: ln g(z - rows) - ln g(z)."""
    if law.radius == 0:
        return np.where(noise == 0, -MAX_LOG_RATIO, MAX_LOG_RATIO).astype(np.float64)
    weights = np.append(law.table.probabilities(), 0.0)
    with_row = weights[np.minimum(np.abs(noise - rows), law.radius + 1)]
    without = weights[np.minimum(np.abs(noise), law.radius + 1)]
    return np.array([_log_ratio(p, q) for p, q in zip(with_row, without, strict=True)])


def _log_ratio(one: float, other: float) -> float:
    """Logarithm of a ratio, cut off; 0 if both are impossible."""
    if one <= 0 and other <= 0:
        return 0.0
    if one <= 0 or other <= 0:
        return -MAX_LOG_RATIO if one <= 0 else MAX_LOG_RATIO
    return math.log(one) - math.log(other)
