"""Rank correlation (Spearman), also within groups of rows."""

import numpy as np

from deniable.arrays import Indices, Reals


def rank(numbers: Reals, groups: Indices | None = None) -> Reals:
    """Rank numbers in their group, from -1/2 to 1/2; equal ones have their mean, NaN has 0.

    Args:
        numbers: The numbers.
        groups: The group of each; None: all are one group.
    """
    own = np.zeros(len(numbers), dtype=np.intp) if groups is None else groups
    order = np.lexsort((numbers, own))
    own, ascending = own[order], numbers[order]
    present = ~np.isnan(ascending)
    place = np.arange(len(order), dtype=np.float64)
    first = np.diff(own, prepend=-1) != 0
    of_group = np.cumsum(first) - 1
    sizes = np.bincount(of_group, present)[of_group]
    starts = place[first][of_group]
    runs = np.cumsum(first | (np.diff(ascending, prepend=np.nan) != 0)) - 1
    means = (np.bincount(runs, place - starts) / np.bincount(runs))[runs]
    ranks = np.empty(len(order))
    ranks[order] = np.where(present, (means - (sizes - 1) / 2) / np.maximum(sizes, 1), 0.0)
    return ranks


def rank_correlation(one: Reals, other: Reals, *, least: int = 1) -> float:
    """Correlate ranks; 0 if fewer than ``least`` rows differ from the middle in both."""
    if int(((one != 0) & (other != 0)).sum()) < least:
        return 0.0
    # Sums instead of products of vectors: threads of BLAS would wait for each other.
    lengths = np.sqrt(np.square(one).sum() * np.square(other).sum())
    return float((one * other).sum() / lengths)
