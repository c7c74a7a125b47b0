"""Measure noisy one-way tables, interactions, and two-way tables of the strongest pairs.

One-way tables come first, over all values of each attribute. Their noisy counts determine bins, and
groups of bins. Next, the interactions of all pairs are measured between groups and, if there are
enough rows, those of all triples. Last, the pairs with the strongest dependence are measured as
two-way tables between bins, which are finer than groups. A pair has no direction, so no budget is
spent on choosing a graph. ``table_layout`` chooses bins, groups and pairs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from deniable.arrays import Counts, Indices, Reals
from deniable.counting.contingency import CountQueries, Query, QueryAxis
from deniable.errors import InvariantError
from deniable.model.pairwise.one_way import estimate_records, value_distributions
from deniable.model.pairwise.table_layout import (
    Pair,
    ThreeWayLayout,
    Triple,
    apportion,
    choose_layout,
    choose_three_way,
)
from deniable.privacy import noise_laws
from deniable.privacy.ledger import Spend
from deniable.privacy.noise import add_noise
from deniable.privacy.noise_laws import Law
from deniable.privacy.pairwise_budget import (
    PAIRS_SPEND,
    PairNoise,
    gaussian_sigma,
    interactions_spend,
    three_way_spend,
)
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute

# A pair or a triple of attributes.
Subset = TypeVar("Subset", bound=tuple[int, ...])
# Name of the tables that are measured in place of three-way interactions.
FURTHER_TABLES = "further tables"
# Given attributes, returns the callback that counts rows by the buckets of these attributes.
CountBinned = Callable[[Sequence[Attribute]], CountQueries]


@dataclass(frozen=True, kw_only=True)
class ThreeWayInteractions:
    """Noisy three-way interactions.

    Attributes:
        groups: The group of each bin, by attribute.
        interactions: Noisy interactions between groups, scaled by the number of cells.
        sigmas: Standard deviation of the noise of each triple's interactions, unscaled.
    """

    groups: tuple[Indices, ...]
    interactions: dict[Triple, Counts]
    sigmas: dict[Triple, float]

    def fits(self, bins: Sequence[int]) -> bool:
        """Test whether the shapes match, given the number of bins of each attribute."""
        sizes = [int(own.max()) + 1 for own in self.groups]
        fits = [len(own) for own in self.groups] == list(bins)
        fits &= list(self.interactions) == list(self.sigmas)
        shapes = {triple: table.shape for triple, table in self.interactions.items()}
        return fits and all(s == tuple(sizes[i] for i in t) for t, s in shapes.items())

    @property
    def mean_square(self) -> float:
        """Mean square of all interactions in units of their noise; about 1 if all is noise.

        The artefact stores it, so that verification notices a changed interaction even if no
        distribution depends on it.
        """
        numbers = [self.interaction(triple).ravel() / self.sigmas[triple] for triple in self.sigmas]
        return float(np.square(np.concatenate(numbers)).mean())

    def interaction(self, triple: Triple) -> Reals:
        """The noisy centred table between the groups of a triple."""
        noisy: Reals = self.interactions[triple] / self.interactions[triple].size
        return noisy


@dataclass(frozen=True, kw_only=True)
class PairwiseMeasurements:
    """Noisy one-way tables, interactions and two-way tables: all that the model is fitted to.

    A standard deviation of 0 means no noise.

    Attributes:
        values: One-way tables: noisy counts of each attribute's values.
        bins: The bin of each code, by attribute.
        groups: The group of each bin, by attribute.
        interactions: For i < j, noisy interactions between groups, scaled by the number of cells.
        tables: For i < j, the sum of a pair's noisy two-way tables between bins.
        table_counts: The number of two-way tables of each of those pairs.
        value_sigmas: Standard deviation of the noise of each one-way table.
        interaction_sigmas: Standard deviation of the noise of each pair's interactions, unscaled.
        table_sigma: Standard deviation of the noise of each two-way table.
        fitted_with: Description of the computer that fitted a stored model; "" for this one.
        three_way: Three-way interactions; None if they are not measured.
    """

    values: tuple[Counts, ...] = field(repr=False)
    bins: tuple[Indices, ...] = field(repr=False)
    groups: tuple[Indices, ...] = field(repr=False)
    interactions: dict[Pair, Counts] = field(repr=False)
    tables: dict[Pair, Counts] = field(repr=False)
    table_counts: dict[Pair, int] = field(repr=False)
    value_sigmas: tuple[float, ...]
    interaction_sigmas: dict[Pair, float] = field(repr=False)
    table_sigma: float
    fitted_with: str = ""
    three_way: ThreeWayInteractions | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        bins = [int(own.max()) + 1 for own in self.bins]
        groups = [int(own.max()) + 1 for own in self.groups]
        fits = [len(own) for own in self.bins] == [len(table) for table in self.values]
        fits &= [len(own) for own in self.groups] == bins
        fits &= len(self.value_sigmas) == len(self.values)
        fits &= set(self.tables) == set(self.table_counts)
        fits &= set(self.interactions) == set(self.interaction_sigmas)
        for sizes, tables in ((bins, self.tables), (groups, self.interactions)):
            fits &= all(t.shape == (sizes[i], sizes[j]) for (i, j), t in tables.items())
        fits &= self.three_way is None or self.three_way.fits(bins)
        if not fits:
            raise InvariantError("one-way tables, bins and two-way tables have different shapes")

    def table(self, pair: Pair) -> tuple[Reals, float]:
        """Average a pair's two-way tables; return the mean and the σ of its noise."""
        number = self.table_counts[pair]
        return self.tables[pair] / number, self.table_sigma / math.sqrt(number)

    def interaction(self, pair: Pair) -> Reals:
        """The noisy doubly centred table between the groups of a pair."""
        noisy: Reals = self.interactions[pair] / self.interactions[pair].size
        return noisy

    @property
    def records(self) -> float:
        """Estimated number of records."""
        return estimate_records(self.values, self.value_sigmas)


def measure_pairwise(
    rng: Rng,
    count_values: CountQueries,
    count_pairs: CountBinned,
    attributes: Sequence[Attribute],
    noise: PairNoise,
    *,
    targets: Sequence[int] = (),
) -> tuple[PairwiseMeasurements, list[Spend]]:
    """Measure all one-way tables, then the interactions of all pairs; return both and the spends.

    Args:
        rng: Source of the noise.
        count_values: Counts records by the attributes' values.
        count_pairs: Counts records by bins or groups of values.
        attributes: The domain of each column.
        noise: The noise of each stage.
        targets: Columns whose pairs are measured more precisely. Public.

    Privacy:
        Neighbours: add or remove one record. It changes one cell of every one-way table by 1, and
            the interactions of a pair as Lemma 11 states.
        Covers: all noisy numbers, empty cells included; the bins and groups, which are computed
            from noisy numbers; and everything computed from these.
        Does not cover: the domains, which must be public.
    """
    values, spends = measure_values(rng, count_values, attributes, noise.values)
    sigmas = tuple(gaussian_sigma(law) for law in noise.values)
    shares = value_distributions(attributes, values, sigmas)
    layout = choose_layout(
        attributes, shares, noise, records=estimate_records(values, sigmas), targets=targets
    )
    measured = PairwiseMeasurements(
        values=tuple(values),
        bins=layout.bins,
        groups=layout.groups,
        interactions={},
        tables={},
        table_counts={},
        value_sigmas=sigmas,
        interaction_sigmas={},
        table_sigma=gaussian_sigma(noise.tables),
    )
    if noise.interactions.name == "exact":
        # No interactions are planned: the run is without noise, and the two-way tables of all pairs
        # will be exact; or there is one attribute; or the noise would be too large.
        return measured, spends
    grouped = [own[of_bins] for own, of_bins in zip(layout.groups, layout.bins, strict=True)]
    count = count_pairs(with_bins(attributes, grouped))
    interactions = measure_interactions(rng, count, layout.interaction_sigmas)
    spends.append(interactions_spend(len(attributes), noise.interactions))
    own_sigmas = dict(layout.interaction_sigmas)
    return replace(measured, interactions=interactions, interaction_sigmas=own_sigmas), spends


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


def measure_interactions(
    rng: Rng, count: CountQueries, sigmas: Mapping[Subset, float], *, what: str = "interactions"
) -> dict[Subset, Counts]:
    """Measure the interactions of pairs or triples, scaled by the number of cells to be integers.

        q_ij = ab·n_ij - a·n_i· - b·n_·j + n

    Args:
        rng: Source of the noise.
        count: Counts records in groups.
        sigmas: σ of the centred table of each pair or triple.
        what: Name of the numbers, for ``add_noise``.

    Privacy:
        Neighbours: add or remove one record, which moves q by ab (e_i - 1/a)(e_j - 1/b)ᵀ, and the
            interactions of a triple likewise (Lemma 11).
        Covers: all q, at the cost of one ledger entry, ``interactions_spend`` or
            ``three_way_spend``. ``interaction_sigmas`` chooses the σ so that the μ² of all pairs,
            or of all triples, sum to the μ² of that entry.
    """
    pairs = list(sigmas)
    noisy: dict[Subset, Counts] = {}
    # Pairs of the same shape and noise have the same law, whose table is built once.
    exact: dict[tuple[int, float], list[Counts]] = {}
    owners: dict[tuple[int, float], list[Subset]] = {}
    for pair, counted in zip(pairs, count([_query(pair) for pair in pairs]), strict=True):
        scaled = scaled_interactions(counted.dense())
        kind = (scaled.size, sigmas[pair])
        exact.setdefault(kind, []).append(scaled)
        owners.setdefault(kind, []).append(pair)
    for (cells, sigma), tables in exact.items():
        law = noise_laws.rounded_gaussian(cells * sigma)
        flat, _ = add_noise(
            rng,
            np.concatenate([table.ravel() for table in tables]),
            law,
            what=what,
            part="parameters",
        )
        for pair, table, part in zip(
            owners[cells, sigma], tables, flat.reshape(len(tables), cells), strict=True
        ):
            noisy[pair] = part.reshape(table.shape)
    return {pair: noisy[pair] for pair in pairs}


def scaled_interactions(counts: Counts) -> Counts:
    """Centre a table of counts along each axis, times its number of cells: integers (Lemma 11)."""
    centred = counts
    for axis, size in enumerate(counts.shape):
        centred = size * centred - centred.sum(axis=axis, keepdims=True)
    return centred


def measure_three_way(
    rng: Rng,
    count_grouped: CountBinned,
    attributes: Sequence[Attribute],
    measured: PairwiseMeasurements,
    noise: PairNoise,
    *,
    targets: Sequence[int] = (),
) -> tuple[PairwiseMeasurements, list[Spend]]:
    """Measure the three-way interactions of all triples, if there are enough rows.

    Args:
        rng: Source of the noise.
        count_grouped: Counts records of the part ``parameters``.
        attributes: The domain of each column.
        measured: What was measured before.
        noise: The noise of each stage.
        targets: Columns whose triples are measured more precisely. Public.

    Returns:
        Everything measured so far, and the spend.

    Privacy:
        Neighbours: add or remove one record, which moves the interactions of a triple as Lemma 11
            states.
        Covers: all noisy numbers, and whether triples are measured, which follows from noisy
            counts. If they are not, their ledger entry pays for further two-way tables
            (``measure_tables``, Theorem 13).
        Does not cover: the domains, which must be public.
    """
    if not noise.reserved_count:
        return measured, []
    spends = [three_way_spend(len(attributes), noise.three_way)]
    layout = three_way_layout(attributes, measured, noise, targets=targets)
    if layout is None:
        return measured, spends
    grouped = [own[of] for own, of in zip(layout.groups, measured.bins, strict=True)]
    count = count_grouped(with_bins(attributes, grouped))
    interactions = measure_interactions(rng, count, layout.sigmas, what="triples")
    three_way = ThreeWayInteractions(
        groups=layout.groups, interactions=interactions, sigmas=dict(layout.sigmas)
    )
    return replace(measured, three_way=three_way), spends


def three_way_layout(
    attributes: Sequence[Attribute],
    measured: PairwiseMeasurements,
    noise: PairNoise,
    *,
    targets: Sequence[int],
) -> ThreeWayLayout | None:
    """Choose the groups between which three-way interactions are measured. Post-processing."""
    shares = value_distributions(attributes, measured.values, measured.value_sigmas)
    return choose_three_way(
        attributes, measured.bins, shares, noise, records=measured.records, targets=targets
    )


def measure_tables(
    rng: Rng,
    count: CountQueries,
    measured: PairwiseMeasurements,
    weights: Mapping[Pair, float],
    noise: PairNoise,
) -> tuple[PairwiseMeasurements, list[Spend]]:
    """Measure two-way tables, more for pairs of larger weight; return all tables and the spend.

    Privacy:
        Neighbours: add or remove one record, which moves one cell of each table by one.
        Covers: all tables that are paid for, however they are divided among pairs: the weights
            are computed from noisy numbers. The ledger entry of three-way interactions pays for
            some of the tables, which are measured only if these interactions are not (Theorem 13).
    """
    counts = apportion(count_paid_tables(measured, noise), weights)
    tables = count([_query(pair) for pair in counts])
    copies = [t.dense() for t, n in zip(tables, counts.values(), strict=True) for _ in range(n)]
    own = noise.table_count - noise.reserved_count
    noisy, spent = _add_table_noise(rng, copies[:own], noise.tables, what=PAIRS_SPEND, number=own)
    if len(copies) > own:
        more, _ = _add_table_noise(
            rng, copies[own:], noise.tables, what=FURTHER_TABLES, number=noise.reserved_count
        )
        noisy += more
    ends = np.cumsum(list(counts.values()))
    sums = {
        pair: np.sum(noisy[end - n : end], axis=0)
        for (pair, n), end in zip(counts.items(), ends, strict=True)
    }
    return replace(measured, tables=sums, table_counts=counts), [spent]


def count_paid_tables(measured: PairwiseMeasurements, noise: PairNoise) -> int:
    """Count the two-way tables: all planned, less those reserved if triples are measured."""
    return noise.table_count - (noise.reserved_count if measured.three_way else 0)


def _add_table_noise(
    rng: Rng, tables: Sequence[Counts], law: Law, *, what: str, number: int
) -> tuple[list[Counts], Spend]:
    """Add noise to tables; one record changes one cell of each. Return them and the spend."""
    flat = np.concatenate([np.empty(0, dtype=np.int64), *(table.ravel() for table in tables)])
    noisy, spent = add_noise(rng, flat, law, what=what, part="parameters", l0_sensitivity=number)
    ends = np.cumsum([table.size for table in tables], dtype=np.int64)
    parts = np.split(noisy, ends[:-1]) if tables else []
    return [part.reshape(t.shape) for part, t in zip(parts, tables, strict=True)], spent


def _query(attributes: Sequence[int]) -> Query:
    return tuple(QueryAxis(i, bucketed=True) for i in attributes)


def with_bins(attributes: Sequence[Attribute], bins: Sequence[Indices]) -> list[Attribute]:
    """Replace the buckets of the attributes by these bins."""
    return [
        replace(attribute, groups=tuple(map(int, groups)))
        for attribute, groups in zip(attributes, bins, strict=True)
    ]
