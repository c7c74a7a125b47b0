"""Systematic sampling: values are drawn nearly as often as expected.

The values are halved again and again, which makes a binary tree. At each node, every record that
reached it goes left with a probability of its own. These are added up, in the order of the records
and from a random start. A record goes left if its probability carries the sum past a whole number
(Madow, 1949; docs/adr/0018-systematic-sampling.md). So

- each record goes left with its own probability, since the start is uniform;
- of those that reach a node and follow each other, as many go left as expected, up to one.
"""

import numpy as np

from deniable.arrays import Counts, Indices, Mask, Reals
from deniable.randomness import Rng

# Probabilities are integers in units of 2^-32.
_FRACTION_BITS = 32
# Records that are drawn at once from the rows of a table.
_RECORDS_PER_BATCH = 4096
# Keeps denominators positive.
_LEAST_WEIGHT = 1e-300


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
