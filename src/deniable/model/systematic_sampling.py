"""Systematic sampling: values are drawn nearly as often as expected.

The values are halved again and again, which makes a binary tree. At each node, every record that
reached it goes left with a probability of its own. These are added up, in the order of the records
and from a random start. A record goes left if its probability carries the sum past a whole number
(Madow, 1949; docs/adr/0018-systematic-sampling.md). So

- each record goes left with its own probability, since the start is uniform;
- of those that reach a node and follow each other, as many go left as expected, up to one.

So the dependence on the first key of the order is met best: for each attribute, that is its
strongest parent. Orders are computed in integers: they are the same on every computer.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Indices, Mask, Reals
from deniable.model.alias_sampling import stable_sort_by
from deniable.randomness import Rng

# Probabilities are integers in units of 2^-32.
_FRACTION_BITS = 32
# Records that are drawn at once from the rows of a table.
_RECORDS_PER_BATCH = 4096
# Keeps denominators positive.
_LEAST_WEIGHT = 1e-300
# Records are sorted by this many parents, the strongest.
_MAX_KEYS = 8
# Resolution of probabilities in the strength of a parent, and bits that effects lose there: so sums
# of squares over a block of records and many values fit 64 bits.
_PROBABILITY_BITS = 20
_DROPPED_EFFECT_BITS = 6


class SystematicSampler:
    """Draws values of records that come in batches, similar ones after each other.

    The same on every computer: sums, quotients and comparisons only, each in a fixed order.
    """

    def __init__(self, values: int, rng: Rng) -> None:
        """Start at random, with one word for each node of the tree."""
        self._values, self._levels = values, _list_levels(values)
        # The sum of each node so far, in units of 2^-32.
        self._sums = [rng.half_words(len(level)).astype(np.int64) for level in self._levels]

    def draw(self, cumulative: Counts | Reals, starts: Indices, step: int) -> Indices:
        """Draw a value for each of the next records, in proportion to its weights.

        Args:
            cumulative: Each weight, added to those of all values before it. Only the entries on the
                way down the tree are read: there may be far more values than a record passes.
            starts: The place of each record's first value.
            step: The distance to the next value.
        """
        records, last = len(starts), (self._values - 1) * step
        # The records sorted by node; their weights of the values before the node, and of its own.
        own, nodes = np.arange(records), np.zeros(records, dtype=np.intp)
        total = cumulative.take(starts + last)
        before = np.zeros_like(total)
        low = np.array([0])
        for middle, sums in zip(self._levels, self._sums, strict=True):
            until = cumulative.take(starts.take(own) + ((middle - 1) * step).take(nodes))
            left = until - before
            # Only rounding can let a record reach a node without weight.
            share = left / np.maximum(total, _LEAST_WEIGHT)
            goes_right = ~_pass_whole_number(share, nodes, sums)
            before = np.where(goes_right, until, before)
            total = np.where(goes_right, total - left, left)
            nodes = 2 * nodes + goes_right
            by_node = np.argsort(nodes.astype(np.uint16), kind="stable")
            own, nodes = own.take(by_node), nodes.take(by_node)
            before, total = before.take(by_node), total.take(by_node)
            low = np.stack([low, middle], axis=1).ravel()
        drawn = np.empty(records, dtype=np.intp)
        drawn[own] = np.minimum(low.take(nodes), self._values - 1)
        return drawn


def draw_from_rows(probabilities: Reals, rows: Indices, order: Indices, rng: Rng) -> Indices:
    """Draw a value for each record.

    Args:
        probabilities: Distributions: rows by values.
        rows: The row of each record.
        order: The records, in an order in which similar ones follow each other.
        rng: Source of randomness.
    """
    values = probabilities.shape[1]
    cumulative = np.cumsum(probabilities, axis=1).ravel()
    sampler = SystematicSampler(values, rng)
    drawn = np.empty(len(rows), dtype=np.intp)
    for start in range(0, len(rows), _RECORDS_PER_BATCH):
        own = order[start : start + _RECORDS_PER_BATCH]
        drawn[own] = sampler.draw(cumulative, rows[own] * values, 1)
    return drawn


def sort_by_parents(
    order: Indices, columns: Sequence[Indices], strengths: Sequence[int]
) -> Indices:
    """Sort records by the values of the strongest parents, the strongest first.

    Args:
        order: The records in an order that decides between equal ones.
        columns: The values of each parent, by record.
        strengths: The strength of each parent.
    """
    weakest_first = sorted(range(len(columns)), key=lambda at: (strengths[at], -at))
    for at in weakest_first[-_MAX_KEYS:]:
        order = stable_sort_by(columns[at], order)
    return order


def strengths_of_effects(
    effects: Sequence[NDArray[np.int32]], groups: Sequence[Indices]
) -> list[int]:
    """Compute the variance over records of each parent's effects, summed over bins.

    Args:
        effects: For each parent, what each of its groups adds to the logarithms: groups by bins.
        groups: For each parent, the group of each record.
    """
    found = []
    for effect, group in zip(effects, groups, strict=True):
        own = effect.astype(np.int64) >> _DROPPED_EFFECT_BITS
        found.append(_weighted_variance(own, np.bincount(group, minlength=len(own))))
    return found


def strengths_of_table(probabilities: Reals, rows: Indices, sizes: Sequence[int]) -> list[int]:
    """Compute the variance over records of the distributions given each parent alone.

    Args:
        probabilities: Distributions: configurations of the parents by values.
        rows: The configuration of each record.
        sizes: The number of groups of each parent.
    """
    records = np.bincount(rows, minlength=len(probabilities))
    rounded = np.rint(probabilities * 2.0**_PROBABILITY_BITS).astype(np.int64)
    sums = (rounded * records[:, None]).reshape(*sizes, -1)
    records = records.reshape(sizes)
    found = []
    for at in range(len(sizes)):
        others = tuple(axis for axis in range(len(sizes)) if axis != at)
        weights = records.sum(axis=others)
        means = sums.sum(axis=others) // np.maximum(weights, 1)[:, None]
        found.append(_weighted_variance(means, weights))
    return found


def _list_levels(values: int) -> list[Indices]:
    """List the levels of the tree: for each node, the first value to the right.

    A node of one value has all of it to the left; the node to its right has no values.
    """
    levels = []
    low, high = np.array([0]), np.array([values])
    while (high - low).max() > 1:
        middle = np.maximum((low + high) // 2, np.minimum(low + 1, high))
        levels.append(middle)
        low = np.stack([low, middle], axis=1).ravel()
        high = np.stack([middle, high], axis=1).ravel()
    return levels


def _pass_whole_number(share: Reals, nodes: Indices, sums: Counts) -> Mask:
    """Add up the probabilities of each node's records, and mark those that pass a whole number.

    Args:
        share: The probability of each record, sorted by node.
        nodes: The node of each record.
        sums: The sum of each node so far, in units of 2^-32. They are updated.
    """
    steps = (share * 2.0**_FRACTION_BITS).astype(np.int64)
    ends = np.cumsum(steps)
    lengths = np.bincount(nodes, minlength=len(sums))
    last = np.cumsum(lengths)
    # The sum of all earlier nodes does not count.
    at_end = np.append(0, ends)[last]
    offsets = sums - np.append(0, at_end[:-1])
    ends += np.repeat(offsets, lengths)
    np.bitwise_and(at_end + offsets, 2**_FRACTION_BITS - 1, out=sums)
    passed: Mask = (ends >> _FRACTION_BITS) > ((ends - steps) >> _FRACTION_BITS)
    return passed


def _weighted_variance(numbers: Counts, weights: Counts) -> int:
    """Sum the weighted squares of the differences of each row from the mean row."""
    mean = (weights[:, None] * numbers).sum(axis=0) // max(int(weights.sum()), 1)
    return int((weights[:, None] * np.square(numbers - mean)).sum())
