"""Three-way interactions that a fit of pairs does not explain: those that stand out from noise.

All of it is post-processing of noisy counts. A model of pairs has three-way interactions of its
own. They are estimated from the pool of records, and subtracted from the measured ones.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.denoise import DenoisedTables
from deniable.model.pairwise.measure import ThreeWayInteractions
from deniable.model.pairwise.one_way import sum_blocks, sum_groups, sum_row_groups
from deniable.model.pairwise.three_way_effects import TripleEvidence, TripleParents, centre_axes

# A residual is kept if noise alone would exceed its sum of squares with probability at most e to
# the minus _FALSE_ALARM_EXPONENT (Laurent and Massart, 2000). Each attribute keeps the largest.
_FALSE_ALARM_EXPONENT = 3.0
_MAX_TRIPLES_PER_ATTRIBUTE = 60
# Ridge penalty of an effect: this factor times noise variance / signal variance, plus a minimum.
_PENALTY_FACTOR = 0.1
_MIN_PENALTY = 0.5
# Variance of a cell's share of the pool that is due to its size, relative to single draws.
_POOL_VARIANCE = 0.05
# Keeps denominators positive.
_POSITIVE_FLOOR = 1e-9


@dataclass(frozen=True, kw_only=True)
class Residual:
    """A three-way interaction of an attribute and two earlier ones, less that of the fitted model.

    Attributes:
        residual: Centred counts, measured minus fitted: groups of both, and of the attribute.
        fitted: The counts of the fitted model in the pool, scaled to the number of records.
        signal: Sum of squares of the residual, less what noise explains.
        variance: Variance of the noise of a contrast.
    """

    residual: Reals
    fitted: Reals
    signal: float
    variance: float


def find_residuals(
    tables: DenoisedTables,
    three_way: ThreeWayInteractions,
    pool: Indices,
    *,
    child: int,
    earlier: Sequence[int],
    bins: Reals,
) -> dict[tuple[int, int], Residual]:
    """Find the pairs of earlier attributes whose interaction with ``child`` stands out from noise.

    Args:
        tables: The denoised tables.
        three_way: The noisy three-way interactions.
        pool: Records drawn so far: the bin of each attribute.
        child: The attribute.
        earlier: The attributes drawn before it.
        bins: The fitted distribution of the attribute's bins, for each record of the pool.
    """
    divided = [j for j in sorted(earlier) if int(three_way.groups[j].max()) > 0]
    if int(three_way.groups[child].max()) == 0:
        return {}
    shares = sum_row_groups(three_way.groups[child], bins.T).T
    found = {}
    for pair, in_pool in _count_pool(three_way, pool, divided, shares):
        residual = _residual(tables, three_way, pair, child, in_pool)
        freedom = math.prod(size - 1 for size in in_pool.shape)
        threshold = 2 * math.sqrt(freedom * _FALSE_ALARM_EXPONENT) + 2 * _FALSE_ALARM_EXPONENT
        if residual.signal > threshold * residual.variance:
            found[pair] = residual
    strongest = sorted(found, key=lambda pair: (-found[pair].signal, pair))
    return {pair: found[pair] for pair in sorted(strongest[:_MAX_TRIPLES_PER_ATTRIBUTE])}


def _count_pool(
    three_way: ThreeWayInteractions, pool: Indices, divided: Sequence[int], shares: Reals
) -> Iterator[tuple[tuple[int, int], Reals]]:
    """Count the pool by the groups of each pair of attributes and of the child, as fitted."""
    sizes = [int(three_way.groups[j].max()) + 1 for j in divided]
    starts = np.cumsum([0, *sizes])
    design = np.zeros((len(pool), int(starts[-1])), dtype=np.float32)
    for j, start in zip(divided, starts, strict=False):
        design[np.arange(len(pool)), start + three_way.groups[j][pool[:, j]]] = 1
    columns = [share.astype(np.float32)[:, None] for share in shares.T]
    counts = np.stack([design.T @ (design * share) for share in columns], axis=2)
    for one, j in enumerate(divided):
        for two in range(one + 1, len(divided)):
            rows = slice(starts[one], starts[one + 1])
            block = counts[rows, starts[two] : starts[two + 1]]
            yield (j, divided[two]), block.astype(np.float64)


def _residual(
    tables: DenoisedTables,
    three_way: ThreeWayInteractions,
    pair: tuple[int, int],
    child: int,
    in_pool: Reals,
) -> Residual:
    """Subtract the fitted model's own interaction from the measured one.

    The model's counts are its distribution of the child in each cell of the pair, from the pool,
    times the pair's counts in its denoised table. The pool's own counts of the pair are not used:
    they have sampling error.
    """
    j, k = pair
    first, second, third = sorted((j, k, child))
    triple = (first, second, third)
    noisy = np.moveaxis(three_way.interaction(triple), triple.index(child), 2)
    cells = in_pool.sum(axis=2, keepdims=True)
    shares = in_pool / np.maximum(cells, _POSITIVE_FLOOR)
    expected = _pair_counts(tables, three_way.groups, j, k)[:, :, None]
    residual = centre_axes(noisy - expected * shares)
    freedom = math.prod(size - 1 for size in residual.shape)
    drawn = float((expected**2 * shares * (1 - shares) / np.maximum(cells, 1.0)).sum())
    noise = freedom * three_way.sigmas[triple] ** 2 + _POOL_VARIANCE * drawn
    return Residual(
        residual=residual,
        fitted=in_pool * (tables.records / max(float(in_pool.sum()), _POSITIVE_FLOOR)),
        signal=float(np.square(residual).sum()) - noise,
        variance=noise / freedom,
    )


def _pair_counts(tables: DenoisedTables, groups: Sequence[Indices], j: int, k: int) -> Reals:
    """Estimate the counts of a pair between groups, from its denoised table."""
    one, two = sum_groups(groups[j], tables.bins[j]), sum_groups(groups[k], tables.bins[k])
    counts: Reals = tables.records * np.outer(one, two)
    if (j, k) in tables.excess or (j, k) in tables.coarse:
        counts = counts + sum_blocks(groups[j], groups[k], tables.excess_of(j, k))
    return np.maximum(counts, 0.0)


def triple_evidence(
    residuals: Mapping[tuple[int, int], Residual],
    three_way: ThreeWayInteractions,
    child: int,
    own_groups: Mapping[int, Indices],
    configurations: Sequence[Indices],
) -> list[TripleEvidence]:
    """Describe the residuals for the fit of their attribute.

    Args:
        residuals: The residuals to fit.
        three_way: The noisy three-way interactions.
        child: The attribute.
        own_groups: The group of each bin of every parent, in the order of the parents.
        configurations: For each parent, its group in each configuration.
    """
    place = {j: at for at, j in enumerate(own_groups)}
    evidence = []
    for (j, k), found in residuals.items():
        parents = TripleParents(
            first=place[j],
            second=place[k],
            first_groups=_coarser(own_groups[j], three_way.groups[j]),
            second_groups=_coarser(own_groups[k], three_way.groups[k]),
            child_groups=three_way.groups[child],
        )
        effect_variance = found.signal / float(np.square(found.fitted).sum())
        signal_variance = effect_variance * np.maximum(found.fitted, 1.0)
        evidence.append(
            TripleEvidence(
                parents=parents,
                joint=parents.joint(configurations),
                target=centre_axes(found.fitted) + found.residual,
                expected=found.fitted,
                penalty=_PENALTY_FACTOR * found.variance / signal_variance + _MIN_PENALTY,
            )
        )
    return evidence


def _coarser(own: Indices, groups: Indices) -> Indices:
    """Look up the group of each of a parent's own groups, which divide the groups further."""
    of_own = np.zeros(int(own.max()) + 1, dtype=np.intp)
    of_own[own] = groups
    return of_own


def divide_groups(
    own: Mapping[int, Indices],
    pairs: Iterable[tuple[int, int]],
    groups: Sequence[Indices],
) -> dict[int, Indices]:
    """Add the parents in three-way interactions; divide parents' groups by those of triples.

    Args:
        own: The group of each bin of every parent.
        pairs: The two parents of each interaction.
        groups: The group of each bin between which interactions were measured, by attribute.
    """
    divided = dict(own)
    for j in {j for pair in pairs for j in pair}:
        divided[j] = _common_groups(own[j], groups[j]) if j in own else groups[j]
    return dict(sorted(divided.items()))


def _common_groups(one: Indices, other: Indices) -> Indices:
    """Number the groups that two divisions of the same bins have in common."""
    both = one * (int(other.max()) + 1) + other
    common: Indices = np.unique(both, return_inverse=True)[1]
    return common
