"""Interpolation between groups: how a dependence that is known between groups goes on inside them.

Interactions are measured between a few groups of values. If a column has an order, the ratio of a
table to independence does not jump at the borders of groups: within a group, low values resemble
the group below and high values the group above. Without this, the values of a group would all be
alike, and correlations, differences of means and strong dependences would be understated.
All of it is post-processing of noisy counts.
"""

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.one_way import has_order, sum_blocks
from deniable.model.pairwise.shrinkage import rake
from deniable.schema.attribute import Attribute

# Smaller ratios to independence count as this one, or an empty block would empty its neighbours.
_MIN_RATIO = 0.1
# Rounds in which the sums of blocks, then the margins, are fitted again.
_FITTING_ROUNDS = 3
# Keeps denominators positive.
_POSITIVE_FLOOR = 1e-9


def interpolation_weights(attribute: Attribute, shares: Reals, groups: Indices) -> Reals | None:
    """Compute the weight of each group in each bin, bins by groups; None without an order.

    A bin lies between the centres of two groups, and has weights in proportion to the distances
    from them, in ranks. Beyond the first and the last centre the line goes on, so one weight is
    negative. The weights of a bin sum to 1. The bin of missing cells is not interpolated.

    Args:
        attribute: The attribute.
        shares: The share of each bin.
        groups: The group of each bin.
    """
    bins = len(groups) - (attribute.missing_code is not None)
    values = groups[:bins]
    last = int(values.max(initial=0))
    if not has_order(attribute) or last == 0 or last == bins - 1:
        return None
    share = np.maximum(shares[:bins], _POSITIVE_FLOOR)
    ranks = np.cumsum(share) - share / 2
    centres = np.bincount(values, share * ranks) / np.bincount(values, share)
    below = np.clip(np.searchsorted(centres, ranks, side="right") - 1, 0, last - 1)
    part = (ranks - centres[below]) / (centres[below + 1] - centres[below])
    # The only bin of a group is its centre, up to rounding.
    part = np.where(np.bincount(values)[values] == 1, values - below, part)
    weights = np.zeros((len(groups), int(groups.max()) + 1))
    weights[np.arange(bins), below] = 1 - part
    weights[np.arange(bins), below + 1] = part
    weights[bins:, -1] = 1.0
    return weights


def scale_between_groups(
    table: Reals,
    target: Reals,
    groups: tuple[Indices, Indices],
    weights: tuple[Reals | None, Reals | None] = (None, None),
) -> Reals:
    """Scale a table between bins so that its sums between groups are about ``target``.

    The logarithms of the factors are interpolated along the axes that have weights. The margins of
    the table stay as they are.

    Args:
        table: The table between bins.
        target: The sums between groups; their margins are about those of the table.
        groups: The group of each bin, of rows and of columns.
        weights: The weights of ``interpolation_weights``, of rows and of columns.
    """
    rows, columns = groups
    margins = table.sum(axis=1), table.sum(axis=0)
    ratio = target / np.maximum(sum_blocks(rows, columns, table), _POSITIVE_FLOOR)
    if weights[0] is None and weights[1] is None:
        return rake(table * ratio[rows][:, columns], *margins)
    logs = np.log(np.maximum(ratio, _MIN_RATIO))
    logs = logs[rows] if weights[0] is None else weights[0] @ logs
    logs = logs[:, columns] if weights[1] is None else logs @ weights[1].T
    scaled: Reals = table * np.exp(logs)
    for _ in range(_FITTING_ROUNDS):
        sums = np.maximum(sum_blocks(rows, columns, scaled), _POSITIVE_FLOOR)
        scaled = rake(scaled * (target / sums)[rows][:, columns], *margins)
    return scaled
