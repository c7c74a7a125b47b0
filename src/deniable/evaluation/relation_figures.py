"""Figures of the relations in a table, compared with the relations in reference rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Self

import numpy as np

from deniable.arrays import Counts, Mask, Reals
from deniable.evaluation.distances import total_variation
from deniable.evaluation.grouped_rows import GroupedRows
from deniable.randomness import Rng

# Bounds of the cost: sets of columns that are compared. If there are more, they are sampled.
MAX_PAIRS = 400  # also a definition: the more pairs, the more impossible combinations
_MAX_GROUPINGS = 60
# A relation is strong, and its loss counts, above this strength in the reference.
MIN_ASSOCIATION = 0.15
MIN_CORRELATION = 0.25
# Smallest share of rows of a group whose mean is compared.
_MIN_GAP_SHARE = 0.01
# A pair of groups that no real row has is impossible if independence would expect this many rows.
_MIN_EXPECTED_ROWS = 5


@dataclass(frozen=True, kw_only=True)
class RelationFigures:
    """Figures of one table, compared with reference rows. None: nothing to compare.

    Attributes:
        pairs: Mean total variation distance of pairs of columns, in groups.
        association_error: Mean absolute difference of Cramér's V.
        associations_kept: Mean share of V that was kept, where it is strong in the reference.
        correlation_error: Mean absolute difference of Spearman's rank correlations.
        correlations_kept: Mean share of the rank correlation that was kept, where it is strong.
        gap_error: Mean absolute difference of the means of groups, in standard deviations.
        gaps_kept: Slope of the table's group gaps on those of the reference, as a kept share.
        impossible: Share of rows with a pair of groups that no real row has, although
            independence would expect several.
    """

    pairs: float
    association_error: float
    associations_kept: float | None
    correlation_error: float | None
    correlations_kept: float | None
    gap_error: float | None
    gaps_kept: float | None
    impossible: float


@dataclass(frozen=True, kw_only=True)
class ColumnSets:
    """Sets of columns whose relations are compared.

    Attributes:
        pairs: Pairs of columns.
        groupings: Columns by whose groups numbers are compared.
    """

    pairs: list[tuple[int, ...]]
    groupings: list[int]

    @classmethod
    def choose(cls, columns: int, rng: Rng) -> Self:
        """Choose all sets of columns, or a random sample if there are many."""
        return cls(
            pairs=choose_sets(columns, 2, limit=MAX_PAIRS, rng=rng),
            groupings=[at for (at,) in choose_sets(columns, 1, limit=_MAX_GROUPINGS, rng=rng)],
        )


def choose_sets(columns: int, width: int, *, limit: int, rng: Rng) -> list[tuple[int, ...]]:
    """Choose at most ``limit`` sets of columns, at random if there are more, in their order."""
    if comb(columns, width) <= limit:
        return list(combinations(range(columns), width))
    found: set[tuple[int, ...]] = set()
    while len(found) < limit:
        drawn = rng.integers(columns, width * limit).reshape(-1, width)
        distinct = [tuple(sorted(each)) for each in drawn.tolist() if len(set(each)) == width]
        found.update(distinct[: limit - len(found)])
    return sorted(found)


def compare_relations(
    sets: ColumnSets,
    reference: GroupedRows,
    other: GroupedRows,
    known: GroupedRows,
) -> tuple[RelationFigures, Reals]:
    """Compare the relations of a table with those of reference rows.

    Args:
        sets: The columns to compare.
        reference: Real rows.
        other: The table under evaluation.
        known: More real rows: the unit of gaps, and combinations that are possible.

    Returns:
        The figures, and Cramér's V of each pair in both tables.
    """
    strengths, distances = np.empty((len(sets.pairs), 2)), np.empty(len(sets.pairs))
    is_impossible = np.zeros(other.rows, dtype=bool)
    for at, pair in enumerate(sets.pairs):
        one, two = reference.count(pair), other.count(pair)
        distances[at] = total_variation(one, two)
        strengths[at] = cramers_v(one), cramers_v(two)
        never = _never_together(one + known.count(pair))
        if two[never].any():
            is_impossible |= never.ravel()[other.cells(pair)]
    correlations = np.stack([reference.rank_correlations, other.rank_correlations], axis=1)
    correlations = np.nan_to_num(correlations[~np.isnan(correlations[:, 0])])
    gap_error, gaps_kept = _compare_gaps(sets.groupings, reference, other, known)
    figures = RelationFigures(
        pairs=float(distances.mean()),
        association_error=float(np.abs(strengths[:, 0] - strengths[:, 1]).mean()),
        associations_kept=_mean_kept(strengths, MIN_ASSOCIATION),
        correlation_error=_mean(np.abs(correlations[:, 0] - correlations[:, 1])),
        correlations_kept=_mean_kept(correlations, MIN_CORRELATION),
        gap_error=gap_error,
        gaps_kept=gaps_kept,
        impossible=float(is_impossible.mean()),
    )
    return figures, strengths


def kept_share(ratio: Reals) -> Reals:
    """Score ratios of a strength to the real one: 1 is all, 0 is nothing.

    An exaggeration counts as much as a loss: 1.3 is 0.7. No score is below -1.
    """
    return np.maximum(np.where(ratio <= 1, ratio, 2 - ratio), -1)


def cramers_v(table: Counts) -> float:
    """Compute Cramér's V of a two-way table with Bergsma's bias correction; 0 if it is empty."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    rows, columns = table.shape
    if min(rows, columns) < 2:
        return 0.0
    n = int(table.sum())
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    chance = (rows - 1) * (columns - 1) / (n - 1)
    phi = max(0.0, float(((table - expected) ** 2 / expected).sum()) / n - chance)
    corrected = [size - (size - 1) ** 2 / (n - 1) for size in (rows, columns)]
    return float(np.sqrt(phi / max(min(corrected) - 1, 1e-9)))


def strong_correlations(reference: GroupedRows) -> int:
    """Count the pairs of numbers whose rank correlation is strong."""
    return int((np.abs(np.nan_to_num(reference.rank_correlations)) > MIN_CORRELATION).sum())


def _never_together(seen: Counts) -> Mask:
    """Mark the cells that no real row has, although independence would expect several."""
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    never: Mask = (seen == 0) & (expected >= _MIN_EXPECTED_ROWS)
    return never


def _mean(values: Sequence[float] | Reals) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _mean_kept(strengths: Reals, least: float) -> float | None:
    """Average the kept share of the relations that are strong in the first column."""
    strong = strengths[np.abs(strengths[:, 0]) > least]
    return _mean(kept_share(strong[:, 1] / strong[:, 0]))


def _compare_gaps(
    groupings: Sequence[int], reference: GroupedRows, other: GroupedRows, known: GroupedRows
) -> tuple[float | None, float | None]:
    """Compare how far the mean of each group is from the mean of all, in standard deviations."""
    if not reference.levels:
        return None, None
    deviations = known.number_moments[1]
    usable = deviations > 0
    tables = [(each.group_means(groupings), each.number_moments[0]) for each in (reference, other)]
    numbers = np.array(list(reference.levels), dtype=np.intp)
    error = weight = product = square = 0.0
    for at in groupings:
        (means, counts), (means_two, _) = (means_of[at] for means_of, _ in tables)
        chosen = usable & (numbers != at)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (counts / np.maximum(counts.sum(axis=0), 1))[:, chosen]
            one = ((means - tables[0][1]) / deviations)[:, chosen]
            two = np.nan_to_num((means_two - tables[1][1]) / deviations)[:, chosen]
        shares = np.where(shares >= _MIN_GAP_SHARE, shares, 0.0)
        one = np.nan_to_num(one)  # a group without rows has share 0
        error += float((shares * np.abs(one - two)).sum())
        weight += float(shares.sum())
        product += float((shares * one * two).sum())
        square += float((shares * one * one).sum())
    if weight == 0 or square == 0:
        return None, None
    return error / weight, float(kept_share(np.array([product / square]))[0])
