"""Log likelihood ratio of an artefact's released counts: the strongest test of one row's presence.

An artefact publishes noisy counts, and the laws of their noise are public. So the attacker who
knows all other rows has an optimal test: the ratio of the probabilities of the released counts with
and without the row (Neyman and Pearson). Later stages depend on earlier ones through noisy numbers
only, so log ratios add up.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask, Reals
from deniable.model.bayesian_network import Network
from deniable.model.pairwise.measure import PairwiseMeasurements, scaled_interactions
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import TableCounts
from deniable.privacy.ledger import Part
from deniable.privacy.noise_laws import Law
from deniable.privacy.pairwise_budget import (
    INTERACTIONS_SPEND,
    PAIRS_SPEND,
    THREE_WAY_SPEND,
    PairNoise,
    gaussian_sigma,
)
from deniable.release.artefact import Artefact

# A ratio beyond this proves or excludes the row; larger ones, also infinite, are cut off here.
MAX_LOG_RATIO = 1e3
# Name of the two-way tables where they are also those that three-way interactions could replace:
# the entries of both pay for them (Theorem 13).
ALL_TABLES = f"{PAIRS_SPEND}, with further tables"
# Variance of rounding to integers, which a rounded Gaussian has in addition to σ².
_ROUNDING_VARIANCE = 1 / 12


@dataclass(frozen=True)
class CountStage:
    """Released numbers of one stage, next to what the rows would give without noise.

    Attributes:
        name: Name of the stage.
        part: The part of the data that is counted.
        noise: Released numbers less exact ones, with all rows that are known to be in the table.
        shifts: What each target adds to the exact numbers: one row per target.
        variance: Variance of the noise, as claimed, with that of rounding to integers.
    """

    name: str
    part: Part
    noise: Reals
    shifts: Reals
    variance: float

    @property
    def information(self) -> Reals:
        """μ² of the stage for each target: squared shift in units of the noise."""
        squares: Reals = (self.shifts**2).sum(axis=1) / self.variance
        return squares

    def log_ratios(self, present: Mask) -> Reals:
        """Log ratio of each target, given the presence of all others.

        For Gaussian noise, e · Δ / σ² ∓ |Δ|² / (2 σ²): ``noise`` is measured with the present
        targets in the table, so it is moved back for each of those.
        """
        projections = self.shifts @ self.noise / self.variance
        ratios: Reals = projections + (present - 0.5) * self.information
        return ratios


def pairwise_stages(
    evidence: PairwiseMeasurements,
    names: Sequence[str],
    rows: Codes,
    targets: Codes,
    noise: PairNoise,
) -> Iterator[CountStage]:
    """List the stages of the default model: one-way tables, interactions, two-way tables.

    Interactions are those of pairs, and of triples where they were measured. If they were not,
    their entry pays for further two-way tables, and the stage has the name ``ALL_TABLES``.

    Args:
        evidence: The noisy counts of an artefact.
        names: The names of its attributes.
        rows: All rows of the table, targets that are present included.
        targets: The rows whose presence is in question.
        noise: The noise of each stage, as the plan states it.
    """
    for i, (released, law) in enumerate(zip(evidence.values, noise.values, strict=True)):
        size = len(released)
        yield CountStage(
            name=f"values of {names[i]}",
            part="structure",
            noise=(released - np.bincount(rows[:, i], minlength=size)).astype(np.float64),
            shifts=np.eye(size)[targets[:, i]],
            variance=gaussian_sigma(law) ** 2 + _ROUNDING_VARIANCE,
        )
    bins = [own.astype(np.intp) for own in evidence.bins]
    of_pairs, three_way = evidence.interactions, evidence.three_way
    groups = _groups_of_values(evidence.groups, bins)
    for pair, sigma in evidence.interaction_sigmas.items():
        yield _interactions(pair, of_pairs[pair], sigma, groups, rows=rows, targets=targets)
    if three_way is not None:
        groups = _groups_of_values(three_way.groups, bins)
        for triple, sigma in three_way.sigmas.items():
            released = three_way.interactions[triple]
            yield _interactions(triple, released, sigma, groups, rows=rows, targets=targets)
    has_further = bool(noise.reserved_count) and three_way is None
    for pair, total in evidence.tables.items():
        number = evidence.table_counts[pair]
        exact = _counts(rows, pair, bins, total.shape)
        yield CountStage(
            name=ALL_TABLES if has_further else PAIRS_SPEND,
            part="parameters",
            noise=(total - number * exact).ravel() / number,
            shifts=np.eye(total.size)[_cells(targets, pair, bins, total.shape)],
            variance=(gaussian_sigma(noise.tables) ** 2 + _ROUNDING_VARIANCE) / number,
        )


def charged_stages(charged: Mapping[str, float]) -> dict[str, float]:
    """List μ of each stage of ``pairwise_stages``, given that of the entries of a ledger.

    Two-way tables that are also those in place of three-way interactions have both entries.
    """
    if THREE_WAY_SPEND not in charged:
        return dict(charged)
    both = math.hypot(charged[THREE_WAY_SPEND], charged.get(PAIRS_SPEND, 0.0))
    return {**charged, ALL_TABLES: both}


def _groups_of_values(groups: Sequence[Indices], bins: Sequence[Indices]) -> list[Indices]:
    return [own[of_bins] for own, of_bins in zip(groups, bins, strict=True)]


def _interactions(
    attributes: Sequence[int],
    released: Counts,
    sigma: float,
    groups: Sequence[Indices],
    *,
    rows: Codes,
    targets: Codes,
) -> CountStage:
    """The stage of the centred table of a pair or a triple, without the factor of its cells."""
    shape = released.shape
    exact = scaled_interactions(_counts(rows, attributes, groups, shape))
    return CountStage(
        name=INTERACTIONS_SPEND if len(attributes) == 2 else THREE_WAY_SPEND,
        part="parameters",
        noise=(released - exact).ravel() / released.size,
        shifts=_interaction_shifts(targets, attributes, groups, shape),
        variance=sigma**2 + _ROUNDING_VARIANCE / released.size**2,
    )


def table_ratios(
    network: Network, evidence: TableCounts, rows: Codes, targets: Codes, present: Mask, *, law: Law
) -> Reals:
    """Log ratios of the conditional tables of a graph: one cell of each, changed by one.

    The noise of the graph itself is not released. Sums of continuous attributes are left out.
    """
    ratios = np.zeros(len(targets))
    for i, table in enumerate(evidence.tables):
        if isinstance(table, Moments):
            continue
        size = table.shape[1]
        of_rows = network.configuration(rows, i) * size + rows[:, i]
        cells = network.configuration(targets, i) * size + targets[:, i]
        exact = np.bincount(of_rows, minlength=table.size)
        ratios += law_ratios(law, (table.ravel() - exact)[cells] + present)
    return ratios


def histogram_ratios(
    artefact: Artefact, rows: Codes, targets: Codes, present: Mask, *, k: int, law: Law
) -> tuple[Reals, list[float]]:
    """Log ratios of the seed histogram, and the noise of the counts of kept targets.

    A prefix that is not kept says something too: its noisy count was below k + r.
    """
    ratios, noise = np.zeros(len(targets)), []
    tail = TailProbabilities.of(law)
    for level in artefact.histogram.levels:
        columns = list(artefact.network.order[: level.length])
        kept = {tuple(p): int(c) for p, c in zip(level.prefixes, level.counts, strict=True)}
        for at, target in enumerate(targets):
            prefix = tuple(target[columns])
            alike = int((rows[:, columns] == target[columns]).all(axis=1).sum())
            others = alike - int(present[at])
            if prefix in kept:
                noise.append(float(kept[prefix] - alike))
                ratios[at] += law_ratios(law, np.array([kept[prefix] - others]))[0]
            else:
                hidden = [tail.hidden(count, k=k) for count in (others + 1, others)]
                ratios[at] += _log_ratio(*hidden)
    return np.clip(ratios, -MAX_LOG_RATIO, MAX_LOG_RATIO), noise


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


def law_ratios(law: Law, noise: Counts) -> Reals:
    """Log ratio of noise values with the row present and absent: ln g(z - 1) - ln g(z)."""
    if law.radius == 0:
        return np.where(noise == 0, -MAX_LOG_RATIO, MAX_LOG_RATIO).astype(np.float64)
    weights = np.append(law.table.probabilities(), 0.0)
    with_row = weights[np.minimum(np.abs(noise - 1), law.radius + 1)]
    without = weights[np.minimum(np.abs(noise), law.radius + 1)]
    return np.array([_log_ratio(p, q) for p, q in zip(with_row, without, strict=True)])


def _log_ratio(one: float, other: float) -> float:
    """Logarithm of a ratio, cut off; 0 if both are impossible."""
    if one <= 0 and other <= 0:
        return 0.0
    if one <= 0 or other <= 0:
        return -MAX_LOG_RATIO if one <= 0 else MAX_LOG_RATIO
    return math.log(one) - math.log(other)


def combine_parts(ratios: Mapping[Part, Reals], fractions: Mapping[Part, float] | None) -> Reals:
    """Combine the log ratios of all parts: a sum, or a mixture if each row serves one part.

    With a split, the row was in part j with probability p_j, in none with the rest:
    the ratio is p_0 + Σ p_j e^(ratio_j).
    """
    if fractions is None:
        total: Reals = np.sum(list(ratios.values()), axis=0)
        return np.clip(total, -MAX_LOG_RATIO, MAX_LOG_RATIO)
    some = next(iter(ratios.values()))
    unused = max(1 - sum(fractions.values()), 1e-300)
    terms = [np.full_like(some, math.log(unused))]
    terms += [
        math.log(share) + np.clip(ratios.get(part, np.zeros_like(some)), -MAX_LOG_RATIO, None)
        for part, share in fractions.items()
    ]
    mixed: Reals = np.logaddexp.reduce(terms, axis=0)
    return np.minimum(mixed, MAX_LOG_RATIO)


def _cells(
    rows: Codes, attributes: Sequence[int], bins: Sequence[Indices], shape: tuple[int, ...]
) -> Indices:
    """The number of each row's cell in a table of attributes between bins."""
    of_attributes = tuple(bins[i][rows[:, i]] for i in attributes)
    cells: Indices = np.ravel_multi_index(of_attributes, shape)
    return cells


def _counts(
    rows: Codes, attributes: Sequence[int], bins: Sequence[Indices], shape: tuple[int, ...]
) -> Counts:
    """Count the rows in each cell of a table of attributes between bins."""
    cells = _cells(rows, attributes, bins, shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.int64)


def _interaction_shifts(
    targets: Codes, attributes: Sequence[int], groups: Sequence[Indices], shape: tuple[int, ...]
) -> Reals:
    """What each target adds to a centred table: (e_i - 1/a)(e_j - 1/b)ᵀ, or of three (Lemma 11)."""
    shifts: Reals = np.ones((len(targets), 1))
    for i, size in zip(attributes, shape, strict=True):
        centred = np.eye(size)[groups[i][targets[:, i]]] - 1 / size
        shifts = (shifts[:, :, None] * centred[:, None, :]).reshape(len(targets), -1)
    return shifts
