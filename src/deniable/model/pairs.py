"""Values and pairs: every attribute counted alone, then, in bins, every pair of attributes.

Pairs say how attributes go together whichever way a graph will point, so no noise is spent on
finding the graph: it follows from the noisy pairs. Bins follow from the noisy values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from deniable.arrays import Counts, Indices, Reals
from deniable.data.attributes import Attribute
from deniable.errors import InvariantError
from deniable.model.cells import Axis, Count, Query
from deniable.model.coarse import merge_light, sum_by
from deniable.model.estimates import norm_sub
from deniable.model.haar import occupied, smooth
from deniable.privacy.laws import Law
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.pairs import AGAIN, PAIRS, STRENGTH, PairNoise, deviation
from deniable.randomness import Rng

Pair = tuple[int, int]
# Somebody who has the rows, asked about attributes with the given buckets.
CountBinned = Callable[[Sequence[Attribute]], Count]

# No bin is lighter than this share of the records, nor than what noise would drown: a cell of two
# bins of share p holds p² of them, and its noise should be no more than a few times that.
_LIGHTEST = 1 / 160
_GRAIN = 0.5
# How much wider than the next a bin may be for the two to be neighbours.
_WIDER = 10


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All that was learnt of the data, with its noise; every model is made of this alone.

    Attributes:
        values: The noisy counts of each attribute's values.
        bins: The bin of each code of each attribute.
        pairs: The noisy counts of bins by bins, for i < j.
        again: The sum of all further looks at a pair's counts, where there were any.
        looks: How many further looks that were.
        sigmas: The deviation of the noise of each attribute's values; 0: none.
        sigma: The same of pairs.
        sigma_again: The same of each further look.
        ratio: How many records the pairs were counted in for one of the values, by public shares.
        fitted_with: The computer a stored model was fitted on; "": this one.
    """

    values: tuple[Counts, ...] = field(repr=False)
    bins: tuple[Indices, ...] = field(repr=False)
    pairs: dict[Pair, Counts] = field(repr=False)
    again: dict[Pair, Counts] = field(repr=False)
    looks: dict[Pair, int] = field(repr=False)
    sigmas: tuple[float, ...]
    sigma: float
    sigma_again: float
    ratio: float = 1.0
    fitted_with: str = ""

    def __post_init__(self) -> None:
        sizes = [int(groups.max()) + 1 for groups in self.bins]
        fits = [len(groups) for groups in self.bins] == [len(table) for table in self.values]
        fits &= len(self.sigmas) == len(self.values)
        for tables in (self.pairs, self.again):
            fits &= all(t.shape == (sizes[i], sizes[j]) for (i, j), t in tables.items())
        fits &= set(self.again) == set(self.looks) <= set(self.pairs)
        if not fits:
            raise InvariantError("values, bins and pairs do not fit each other")

    def counts(self, pair: Pair) -> tuple[Reals, float]:
        """Return a pair's counts, the mean of all looks, the surest weighing most; and their σ."""
        first = self.pairs[pair].astype(np.float64)
        if pair not in self.looks:
            return first, self.sigma
        one, more = self.sigma**-2, self.sigma_again**-2
        sure = one + self.looks[pair] * more
        return (one * first + more * self.again[pair]) / sure, sure**-0.5

    @property
    def records(self) -> float:
        """The number of records that the values were counted in, as well as it is known."""
        return estimate_records(self.values, self.sigmas)


def learn_pairs(
    rng: Rng,
    count_values: Count,
    count_pairs: CountBinned,
    attributes: Sequence[Attribute],
    noise: PairNoise,
    *,
    ratio: float = 1.0,
) -> tuple[Measured, list[Spend]]:
    """Return noisy counts of all values, and of pairs of attributes in bins, and the bill.

    Args:
        rng: Where the noise comes from.
        count_values: Counts the records of the part for structure.
        count_pairs: Counts those of the part for parameters.
        attributes: What each column may hold.
        noise: The noise of each stage.
        ratio: How many records the second part has for one of the first, by public shares.

    Privacy:
        Neighbours: add or remove one record of the part that is counted. It is counted once in
            every table, in one cell: each has L2 sensitivity 1, and ``moved`` tables are noised.
        Covers: all noisy counts, empty cells included; the bins and the choice of pairs, which
            follow from noisy numbers; and all that is made of them.
        Does not cover: the domains, which must be public.
    """
    values, spends = learn_values(rng, count_values, attributes, noise.values)
    sigmas = tuple(deviation(law) for law in noise.values)
    total = estimate_records(values, sigmas)
    shares = shares_of_values(attributes, values, sigmas)
    bins = cut_bins(attributes, shares, records=ratio * total, usual=noise.usual)
    count = count_pairs(in_bins(attributes, bins))
    chosen = list(combinations(range(len(attributes)), 2))
    if noise.strength is not None:
        expected = [sum_by(group, share) for group, share in zip(bins, shares, strict=True)]
        scores = _Scores(shares=expected, records=ratio * total, hidden=noise.usual)
        noisy, spent = _measure_strength(rng, count, chosen, scores, noise.strength)
        chosen = sorted(chosen[at] for at in np.argsort(-noisy, kind="stable")[: noise.measured])
        spends.append(spent)
    pairs, spent_on_pairs = _count_pairs(rng, count, chosen, noise.pairs)
    measured = Measured(
        values=tuple(values),
        bins=bins,
        pairs=pairs,
        again={},
        looks={},
        sigmas=sigmas,
        sigma=deviation(noise.pairs),
        sigma_again=deviation(noise.again),
        ratio=ratio,
    )
    return measured, [*spends, *spent_on_pairs]


def in_bins(attributes: Sequence[Attribute], bins: Sequence[Indices]) -> list[Attribute]:
    """Return the attributes with these bins as their buckets."""
    return [
        replace(attribute, groups=tuple(map(int, groups)))
        for attribute, groups in zip(attributes, bins, strict=True)
    ]


def look_again(
    rng: Rng, count: Count, measured: Measured, weights: Mapping[Pair, float], noise: PairNoise
) -> tuple[Measured, list[Spend]]:
    """Count pairs again, those of more weight more often, and return all counts and the bill.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each look's table by one.
        Covers: ``noise.looks`` looks, whichever pairs they went to: the weights are noisy values.
    """
    looks = share_out(noise.looks, weights)
    if not looks:
        return measured, []
    tallies = count([_query(pair) for pair in looks])
    exact = [np.tile(t.dense().ravel(), n) for t, n in zip(tallies, looks.values(), strict=True)]
    flat, spent = add_noise(
        rng, np.concatenate(exact), noise.again, what=AGAIN, part="parameters", moved=noise.looks
    )
    parts = np.split(flat, np.cumsum([len(part) for part in exact])[:-1])
    again = {
        pair: part.reshape(n, *measured.pairs[pair].shape).sum(axis=0)
        for (pair, n), part in zip(looks.items(), parts, strict=True)
    }
    return replace(measured, again=again, looks=looks), [spent]


def share_out(number: int, weights: Mapping[Pair, float]) -> dict[Pair, int]:
    """Return how many of ``number`` looks each pair gets, in proportion; those with none left out.

    Each gets its share rounded down; the largest remainders get the rest.
    """
    total = sum(weights.values())
    if not number or not total > 0:
        return {}
    quotas = {pair: number * weight / total for pair, weight in weights.items()}
    looks = {pair: int(quota) for pair, quota in quotas.items()}
    left = number - sum(looks.values())
    for pair in sorted(quotas, key=lambda p: (looks[p] - quotas[p], p))[:left]:
        looks[pair] += 1
    return {pair: times for pair, times in looks.items() if times}


def learn_values(
    rng: Rng, count: Count, attributes: Sequence[Attribute], laws: Sequence[Law]
) -> tuple[list[Counts], list[Spend]]:
    """Return the noisy counts of every attribute's values, and the bill."""
    tallies = count([(Axis(i),) for i in range(len(attributes))])
    tables, spends = [], []
    for tally, attribute, law in zip(tallies, attributes, laws, strict=True):
        noisy, spent = add_noise(
            rng, tally.dense(), law, what=f"values of {attribute.name}", part="structure"
        )
        tables.append(noisy)
        spends.append(spent)
    return tables, spends


def estimate_records(tables: Sequence[Counts], deviations: Sequence[float]) -> float:
    """Return the number of records: the mean of the tables' sums, the surest ones weighing most."""
    variances = [len(t) * s * s + 1e-9 for t, s in zip(tables, deviations, strict=True)]
    sums = [float(table.sum()) for table in tables]
    weights = 1 / np.array(variances)
    return max(float(np.dot(weights, sums) / weights.sum()), 1.0)


def share_of(counts: Counts | Reals, total: float) -> Reals:
    """Return noisy counts as the nearest distribution."""
    moved = counts + (total - counts.sum()) / len(counts)
    share: Reals = norm_sub(moved[None, :])[0] / total
    return share


def shares_of_values(
    attributes: Sequence[Attribute], tables: Sequence[Counts], sigmas: Sequence[float]
) -> list[Reals]:
    """Return the distribution of each attribute's values, those of numbers smoothed, without ends.

    Not smoothed where a bin is far wider than the next: a number that has a bin of its own is no
    neighbour.
    """
    total = estimate_records(tables, sigmas)
    shares = []
    for attribute, table, sigma in zip(attributes, tables, sigmas, strict=True):
        counts = table.astype(np.float64)
        there = np.ones(len(counts), dtype=bool)
        if attribute.is_numeric:
            there[: attribute.bins] = occupied(counts[: attribute.bins], sigma)
            if _are_alike(attribute.widths):
                counts[: attribute.bins] = smooth(counts[: attribute.bins], sigma)
        share = np.zeros(len(counts))
        share[there] = share_of(counts[there], total)
        shares.append(share)
    return shares


def _are_alike(widths: Counts) -> bool:
    """Return whether no bin is more than ten times as wide as the next; ends may be cut short."""
    one, other = widths[1:-2], widths[2:-1]
    return bool((np.maximum(one, other) <= _WIDER * np.minimum(one, other)).all())


def cut_bins(
    attributes: Sequence[Attribute], shares: Sequence[Reals], *, records: float, usual: float
) -> tuple[Indices, ...]:
    """Return the bins of every attribute, from noisy shares, and from how noisy pairs will be."""
    least = max(_LIGHTEST, _GRAIN * math.sqrt(usual / records))
    return tuple(_bins(a, p, least) for a, p in zip(attributes, shares, strict=True))


def _bins(attribute: Attribute, share: Reals, least: float) -> Indices:
    """Return the bins of an attribute, that of a missing cell apart."""
    if attribute.missing_code is None:
        return merge_light(share, least=least)
    bins = merge_light(share[:-1], least=least)
    return np.append(bins, bins[-1] + 1)


def _query(pair: Pair) -> Query:
    return tuple(Axis(i, bucketed=True) for i in pair)


@dataclass(frozen=True, kw_only=True)
class _Scores:
    """What the strength of pairs is measured against: all of it noisy already."""

    shares: Sequence[Reals]
    records: float
    hidden: float


def _measure_strength(
    rng: Rng, count: Count, pairs: Sequence[Pair], scores: _Scores, law: Law
) -> tuple[Reals, Spend]:
    """Return how far each pair is from independence, noisily, less what noise will hide of it.

    The distance is Σ |n_cell - e_cell| of a table from what the noisy values alone would make it,
    rounded to whole numbers.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each table by one, and so
            each distance by at most one: e is fixed once the values are noised.
    """
    exact, lost = np.empty(len(pairs), dtype=np.int64), np.empty(len(pairs))
    for at, tally in enumerate(count([_query(pair) for pair in pairs])):
        i, j = pairs[at]
        expected = scores.records * np.outer(scores.shares[i], scores.shares[j])
        exact[at] = np.abs(tally.dense() - np.rint(expected).astype(np.int64)).sum()
        lost[at] = np.minimum(np.sqrt(2 / np.pi) * scores.hidden, expected).sum()
    noisy, spent = add_noise(rng, exact, law, what=STRENGTH, part="parameters", moved=len(pairs))
    return noisy - lost, spent


def _count_pairs(
    rng: Rng, count: Count, pairs: Sequence[Pair], law: Law
) -> tuple[dict[Pair, Counts], list[Spend]]:
    """Return the noisy tables of these pairs, and one bill for all of them."""
    if not pairs:
        return {}, []
    tables = [tally.dense() for tally in count([_query(pair) for pair in pairs])]
    flat, spent = add_noise(
        rng,
        np.concatenate([table.ravel() for table in tables]),
        law,
        what=PAIRS,
        part="parameters",
        moved=len(pairs),
    )
    ends = np.cumsum([table.size for table in tables])[:-1]
    parts = np.split(flat, ends)
    noisy = [part.reshape(t.shape) for part, t in zip(parts, tables, strict=True)]
    return dict(zip(pairs, noisy, strict=True)), [spent]
