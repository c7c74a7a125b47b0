"""Bins: neighbouring values that are counted together, so that noise does not drown them."""

import numpy as np

from deniable.arrays import Indices, Reals


def merge_light(weights: Reals, *, least: float) -> Indices:
    """Return the bin of each value: neighbours that together weigh about ``least``.

    A value that is heavy enough stands alone; what is left light before it stays by itself, and a
    last bin of less than half joins the one before it. Two neighbouring bins weigh at least
    ``least`` together.

    Args:
        weights: The (noisy) share of each value; none below zero.
        least: What a bin should weigh.
    """
    bins = np.zeros(len(weights), dtype=np.intp)
    bin_, held = 0, 0.0
    for value, weight in enumerate(weights):
        full = held >= least or held + weight > 1.5 * least
        if value and (weight >= least or full):
            bin_, held = bin_ + 1, 0.0
        bins[value] = bin_
        held += float(weight)
    if bin_ and held < least / 2:
        bins[bins == bin_] = bin_ - 1
    return bins


def merge_to(weights: Reals, *, most: int, apart: bool) -> Indices:
    """Return the group of each bin when there may be only about ``most`` groups of equal weight.

    Args:
        weights: The share of each bin.
        most: How many groups; as many bins or fewer stay as they are.
        apart: Whether the last bin, that of missing cells, stays by itself.
    """
    if len(weights) <= most:
        return np.arange(len(weights))
    values = weights[:-1] if apart else weights
    groups = merge_light(values, least=float(values.sum()) / most)
    return np.append(groups, groups[-1] + 1) if apart else groups


def sum_by(groups: Indices, weights: Reals) -> Reals:
    """Return the weight of each group."""
    sums: Reals = np.bincount(groups, weights).astype(np.float64)
    return sums


def sum_rows(groups: Indices, table: Reals) -> Reals:
    """Return the table with the rows of each group summed; groups are of neighbours, in order."""
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    sums: Reals = np.add.reduceat(table, first, axis=0)
    return sums
