"""Measure noisy one-way and two-way contingency tables: the data of the default model.

One-way tables come first, over all values of each attribute. Their noisy counts determine bins, and
two-way tables count pairs of attributes in those bins. A two-way table has no direction, so no
budget is spent on choosing a graph: the graph is computed from the noisy tables.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from deniable.arrays import Counts, Indices, Reals
from deniable.counting.contingency import CountQueries, Query, QueryAxis
from deniable.errors import InvariantError
from deniable.model.count_estimates import norm_sub
from deniable.model.pairwise.one_way import (
    merge_light_values,
    occupied_values,
    smooth_counts,
    sum_groups,
)
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_laws import Law
from deniable.privacy.pairwise_budget import (
    PAIRS_SPEND,
    REMEASURE_SPEND,
    STRENGTH_SPEND,
    PairNoise,
    gaussian_sigma,
)
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute

Pair = tuple[int, int]
# Callback that counts rows, given the attributes with their buckets.
CountBinned = Callable[[Sequence[Attribute]], CountQueries]
# Minimum share p of a bin: max(1/160, 0.5 · √(σ / records)). A cell of two independent bins then
# has an expected count of at least σ / 4.
_MIN_BIN_SHARE = 1 / 160
_BIN_SHARE_PER_ROOT_SIGMA = 0.5
# Counts are smoothed only if no bin is wider than its neighbour by more than this factor.
_MAX_WIDTH_RATIO = 10


@dataclass(frozen=True, kw_only=True)
class PairwiseMeasurements:
    """Noisy one-way and two-way tables: everything the default model is fitted to.

    A standard deviation of 0 means no noise.

    Attributes:
        values: One-way tables: noisy counts of each attribute's values.
        bins: The bin of each code, by attribute.
        pairs: Two-way tables: noisy counts of bins by bins, for i < j.
        remeasured: The sum of a pair's further noisy tables, for pairs that have any.
        remeasure_counts: The number of further tables of those pairs.
        value_sigmas: Standard deviation of the noise of each one-way table.
        pair_sigma: Standard deviation of the noise of each two-way table.
        remeasured_sigma: Standard deviation of the noise of each further table.
        ratio: Records in the two-way tables per record in the one-way tables, by public fractions.
        fitted_with: Description of the computer that fitted a stored model; "" for this one.
    """

    values: tuple[Counts, ...] = field(repr=False)
    bins: tuple[Indices, ...] = field(repr=False)
    pairs: dict[Pair, Counts] = field(repr=False)
    remeasured: dict[Pair, Counts] = field(repr=False)
    remeasure_counts: dict[Pair, int] = field(repr=False)
    value_sigmas: tuple[float, ...]
    pair_sigma: float
    remeasured_sigma: float
    ratio: float = 1.0
    fitted_with: str = ""

    def __post_init__(self) -> None:
        sizes = [int(groups.max()) + 1 for groups in self.bins]
        fits = [len(groups) for groups in self.bins] == [len(table) for table in self.values]
        fits &= len(self.value_sigmas) == len(self.values)
        for tables in (self.pairs, self.remeasured):
            fits &= all(t.shape == (sizes[i], sizes[j]) for (i, j), t in tables.items())
        fits &= set(self.remeasured) == set(self.remeasure_counts) <= set(self.pairs)
        if not fits:
            raise InvariantError("one-way tables, bins and two-way tables have different shapes")

    def counts(self, pair: Pair) -> tuple[Reals, float]:
        """Average a pair's tables, weighted by inverse variance; return the mean and its σ."""
        first = self.pairs[pair].astype(np.float64)
        if pair not in self.remeasure_counts:
            return first, self.pair_sigma
        first_weight, each_weight = self.pair_sigma**-2, self.remeasured_sigma**-2
        total_weight = first_weight + self.remeasure_counts[pair] * each_weight
        mean = (first_weight * first + each_weight * self.remeasured[pair]) / total_weight
        return mean, total_weight**-0.5

    @property
    def records(self) -> float:
        """Estimated number of records in the one-way tables."""
        return estimate_records(self.values, self.value_sigmas)


def measure_pairwise(
    rng: Rng,
    count_values: CountQueries,
    count_pairs: CountBinned,
    attributes: Sequence[Attribute],
    noise: PairNoise,
    *,
    ratio: float = 1.0,
) -> tuple[PairwiseMeasurements, list[Spend]]:
    """Measure all one-way tables, then two-way tables in bins; return them and their spends.

    Args:
        rng: Source of the noise.
        count_values: Counts records of the part ``structure``.
        count_pairs: Counts records of the part ``parameters``.
        attributes: The domain of each column.
        noise: The noise of each stage.
        ratio: Records in ``parameters`` per record in ``structure``, by public fractions.

    Privacy:
        Neighbours: add or remove one record of the part that is counted. It changes one cell of
            every table by 1, so a stage of n tables has L2 sensitivity √n.
        Covers: all noisy counts, empty cells included; the bins and the selection of pairs, which
            are computed from noisy numbers; and everything computed from these.
        Does not cover: the domains, which must be public.
    """
    values, spends = measure_values(rng, count_values, attributes, noise.values)
    sigmas = tuple(gaussian_sigma(law) for law in noise.values)
    total = estimate_records(values, sigmas)
    shares = value_distributions(attributes, values, sigmas)
    bins = choose_bins(attributes, shares, records=ratio * total, sigma=noise.mean_sigma)
    count = count_pairs(with_bins(attributes, bins))
    selected = list(combinations(range(len(attributes)), 2))
    if noise.strength is not None:
        expected = [sum_groups(group, share) for group, share in zip(bins, shares, strict=True)]
        independent = _IndependenceModel(
            shares=expected, records=ratio * total, sigma=noise.mean_sigma
        )
        scores, spent = _score_pairs(rng, count, selected, independent, noise.strength)
        best = np.argsort(-scores, kind="stable")[: noise.measured]
        selected = sorted(selected[index] for index in best)
        spends.append(spent)
    pairs, pair_spends = _measure_pairs(rng, count, selected, noise.pairs)
    measured = PairwiseMeasurements(
        values=tuple(values),
        bins=bins,
        pairs=pairs,
        remeasured={},
        remeasure_counts={},
        value_sigmas=sigmas,
        pair_sigma=gaussian_sigma(noise.pairs),
        remeasured_sigma=gaussian_sigma(noise.remeasured),
        ratio=ratio,
    )
    return measured, [*spends, *pair_spends]


def measure_values(
    rng: Rng, count: CountQueries, attributes: Sequence[Attribute], laws: Sequence[Law]
) -> tuple[list[Counts], list[Spend]]:
    """Count every attribute's values, with noise; return the one-way tables and their spends."""
    contingency_tables = count([(QueryAxis(i),) for i in range(len(attributes))])
    tables, spends = [], []
    for exact, attribute, law in zip(contingency_tables, attributes, laws, strict=True):
        noisy, spent = add_noise(
            rng, exact.dense(), law, what=f"values of {attribute.name}", part="structure"
        )
        tables.append(noisy)
        spends.append(spent)
    return tables, spends


@dataclass(frozen=True, kw_only=True)
class _IndependenceModel:
    """Two-way counts expected under independence; computed from noisy counts alone.

    Attributes:
        shares: The distribution of each attribute's bins.
        records: The number of records.
        sigma: Standard deviation that the noise of a cell will have.
    """

    shares: Sequence[Reals]
    records: float
    sigma: float


def _score_pairs(
    rng: Rng, count: CountQueries, pairs: Sequence[Pair], independent: _IndependenceModel, law: Law
) -> tuple[Reals, Spend]:
    """Score pairs by their noisy L1 distance from independence, minus the error noise will cause.

    The distance is Σ |n_cell - e_cell|, with e the counts expected under independence, rounded to
    integers. The error of a cell is the mean absolute noise, at most e.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each table by one, and so
            each distance by at most one: e is fixed, because it is computed from noisy counts.
    """
    exact, noise_error = np.empty(len(pairs), dtype=np.int64), np.empty(len(pairs))
    for index, counted in enumerate(count([_pair_query(pair) for pair in pairs])):
        i, j = pairs[index]
        expected = independent.records * np.outer(independent.shares[i], independent.shares[j])
        exact[index] = np.abs(counted.dense() - np.rint(expected).astype(np.int64)).sum()
        noise_error[index] = np.minimum(np.sqrt(2 / np.pi) * independent.sigma, expected).sum()
    noisy, spent = add_noise(
        rng, exact, law, what=STRENGTH_SPEND, part="parameters", moved=len(pairs)
    )
    return noisy - noise_error, spent


def _measure_pairs(
    rng: Rng, count: CountQueries, pairs: Sequence[Pair], law: Law
) -> tuple[dict[Pair, Counts], list[Spend]]:
    """Count these pairs, with noise; return the two-way tables and one spend for all of them."""
    if not pairs:
        return {}, []
    tables = [counted.dense() for counted in count([_pair_query(pair) for pair in pairs])]
    flat, spent = add_noise(
        rng,
        np.concatenate([table.ravel() for table in tables]),
        law,
        what=PAIRS_SPEND,
        part="parameters",
        moved=len(pairs),
    )
    boundaries = np.cumsum([table.size for table in tables])[:-1]
    parts = np.split(flat, boundaries)
    noisy = [part.reshape(table.shape) for part, table in zip(parts, tables, strict=True)]
    return dict(zip(pairs, noisy, strict=True)), [spent]


def _pair_query(pair: Pair) -> Query:
    return tuple(QueryAxis(i, bucketed=True) for i in pair)


def remeasure(
    rng: Rng,
    count: CountQueries,
    measured: PairwiseMeasurements,
    weights: Mapping[Pair, float],
    noise: PairNoise,
) -> tuple[PairwiseMeasurements, list[Spend]]:
    """Measure pairs again, in proportion to their weights; return all measurements and the spend.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each new table by one.
        Covers: ``noise.remeasurements`` tables, however they are divided among pairs: the weights
            are computed from noisy counts.
    """
    repeats = apportion(noise.remeasurements, weights)
    if not repeats:
        return measured, []
    tables = count([_pair_query(pair) for pair in repeats])
    exact = [np.tile(t.dense().ravel(), n) for t, n in zip(tables, repeats.values(), strict=True)]
    flat, spent = add_noise(
        rng,
        np.concatenate(exact),
        noise.remeasured,
        what=REMEASURE_SPEND,
        part="parameters",
        moved=noise.remeasurements,
    )
    parts = np.split(flat, np.cumsum([len(part) for part in exact])[:-1])
    remeasured = {
        pair: part.reshape(n, *measured.pairs[pair].shape).sum(axis=0)
        for (pair, n), part in zip(repeats.items(), parts, strict=True)
    }
    return replace(measured, remeasured=remeasured, remeasure_counts=repeats), [spent]


def apportion(total: int, weights: Mapping[Pair, float]) -> dict[Pair, int]:
    """Divide ``total`` tables among pairs in proportion to their weights; omit pairs without any.

    Largest remainder method: round each share down, then give one more to the largest remainders.
    """
    total_weight = sum(weights.values())
    if not total or not total_weight > 0:
        return {}
    quotas = {pair: total * weight / total_weight for pair, weight in weights.items()}
    shares = {pair: int(quota) for pair, quota in quotas.items()}
    remaining = total - sum(shares.values())
    for pair in sorted(quotas, key=lambda p: (shares[p] - quotas[p], p))[:remaining]:
        shares[pair] += 1
    return {pair: share for pair, share in shares.items() if share}


def estimate_records(tables: Sequence[Counts], sigmas: Sequence[float]) -> float:
    """Estimate the number of records: the inverse-variance-weighted mean of the table totals."""
    variances = [len(t) * sigma * sigma + 1e-9 for t, sigma in zip(tables, sigmas, strict=True)]
    sums = [float(table.sum()) for table in tables]
    weights = 1 / np.array(variances)
    return max(float(np.dot(weights, sums) / weights.sum()), 1.0)


def value_distributions(
    attributes: Sequence[Attribute], tables: Sequence[Counts], sigmas: Sequence[float]
) -> list[Reals]:
    """Estimate the distribution of each attribute's values from noisy one-way tables.

    For numeric attributes, empty ends of the range get probability 0, and counts are smoothed
    unless one bin is far wider than the next (such as next to a bin of a single number).
    """
    total = estimate_records(tables, sigmas)
    shares = []
    for attribute, table, sigma in zip(attributes, tables, sigmas, strict=True):
        counts = table.astype(np.float64)
        possible = np.ones(len(counts), dtype=bool)
        if attribute.is_numeric:
            possible[: attribute.bins] = occupied_values(counts[: attribute.bins], sigma)
            if _have_similar_widths(attribute.widths):
                counts[: attribute.bins] = smooth_counts(counts[: attribute.bins], sigma)
        share = np.zeros(len(counts))
        share[possible] = to_distribution(counts[possible], total)
        shares.append(share)
    return shares


def _have_similar_widths(widths: Counts) -> bool:
    """Check that no bin is far wider than the next; the first and last may be cut off."""
    left, right = widths[1:-2], widths[2:-1]
    return bool((np.maximum(left, right) <= _MAX_WIDTH_RATIO * np.minimum(left, right)).all())


def to_distribution(counts: Counts | Reals, total: float) -> Reals:
    """Project noisy counts onto the nearest probability distribution."""
    shifted = counts + (total - counts.sum()) / len(counts)
    distribution: Reals = norm_sub(shifted[None, :])[0] / total
    return distribution


def choose_bins(
    attributes: Sequence[Attribute], shares: Sequence[Reals], *, records: float, sigma: float
) -> tuple[Indices, ...]:
    """Choose the bins of every attribute, given noisy shares and the σ of two-way counts."""
    min_share = max(_MIN_BIN_SHARE, _BIN_SHARE_PER_ROOT_SIGMA * math.sqrt(sigma / records))
    return tuple(
        _attribute_bins(attribute, share, min_share)
        for attribute, share in zip(attributes, shares, strict=True)
    )


def _attribute_bins(attribute: Attribute, share: Reals, min_share: float) -> Indices:
    """Merge light neighbouring values of an attribute into bins; missing has its own bin."""
    if attribute.missing_code is None:
        return merge_light_values(share, min_share=min_share)
    bins = merge_light_values(share[:-1], min_share=min_share)
    return np.append(bins, bins[-1] + 1)


def with_bins(attributes: Sequence[Attribute], bins: Sequence[Indices]) -> list[Attribute]:
    """Replace the buckets of the attributes by these bins."""
    return [
        replace(attribute, groups=tuple(map(int, groups)))
        for attribute, groups in zip(attributes, bins, strict=True)
    ]
