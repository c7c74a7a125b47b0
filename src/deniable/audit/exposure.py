"""Exposure of rows: how rare their combinations of values are, and how far they are from others.

Attacks find unusual rows first. So an audit attacks the most exposed rows, and random rows for
comparison.
"""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Indices, Reals
from deniable.randomness import Rng

# Other rows, a random sample, that each row is compared with.
_COMPARED_ROWS = 512
# Rows per comparison, which bounds the memory.
_ROWS_PER_BATCH = 2**14
# Pairs of columns whose combinations are counted; a random sample if there are more.
_MAX_PAIRS = 300


@dataclass(frozen=True, kw_only=True)
class AuditTargets:
    """The rows that an audit attacks. Confidential.

    Attributes:
        rows: Indices of the rows in the table.
        most_exposed: Whether a row was chosen because it is among the most exposed.
    """

    rows: Indices = field(repr=False)
    most_exposed: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)


def measure_exposure(codes: Codes, rng: Rng) -> Reals:
    """Measure the exposure of every row: the mean of its ranks by rarity and by distance, 0 to 1.

    Rarity is the mean of -ln of the shares of rows that have the row's values in two columns.
    Distance is the least number of different values from a random sample of other rows, where two
    values differ more the rarer the row's own is.
    """
    rarity = _pair_surprisal(codes, rng)
    distance = _distance_to_sample(codes, rng)
    exposure: Reals = (_ranks(rarity) + _ranks(distance)) / 2
    return exposure


def choose_targets(exposure: Reals, number: int, rng: Rng) -> AuditTargets:
    """Choose targets: half of them the most exposed rows, half random ones of the others.

    Args:
        exposure: The exposure of every row.
        number: The number of targets; at most half of the rows.
        rng: Chooses the random rows, and among equally exposed ones.
    """
    # Ties are broken at random: rows that are equal have no order.
    order = np.lexsort((rng.random(len(exposure)), exposure))[::-1]
    most, others = np.split(order, [number - number // 2])
    random = others[np.argsort(rng.random(len(others)), kind="stable")[: number // 2]]
    rows = np.concatenate([most, random])
    return AuditTargets(rows=rows, most_exposed=np.arange(number) < len(most))


def _pair_surprisal(codes: Codes, rng: Rng) -> Reals:
    """Average -ln (share of rows with the same two values) over pairs of columns."""
    n, m = codes.shape
    sizes = codes.max(axis=0, initial=0).astype(np.int64) + 1
    pairs = list(combinations(range(m), 2)) or [(0, 0)]
    if len(pairs) > _MAX_PAIRS:
        chosen = np.argsort(rng.random(len(pairs)), kind="stable")[:_MAX_PAIRS]
        pairs = [pairs[i] for i in chosen]
    total = np.zeros(n)
    for i, j in pairs:
        cells = codes[:, i].astype(np.int64) * sizes[j] + codes[:, j]
        _, inverse, counts = np.unique(cells, return_inverse=True, return_counts=True)
        total -= np.log(counts / n)[inverse]
    surprisal: Reals = total / len(pairs)
    return surprisal


def _distance_to_sample(codes: Codes, rng: Rng) -> Reals:
    """Distance from the nearest row of a random sample, weighted by the rarity of own values."""
    n, m = codes.shape
    sample = np.argsort(rng.random(n), kind="stable")[:_COMPARED_ROWS]
    weights = np.empty((n, m), dtype=np.float32)
    for column in range(m):
        counts = np.bincount(codes[:, column])
        weights[:, column] = -np.log(np.maximum(counts, 1) / n)[codes[:, column]]
    nearest = np.empty(n)
    for start in range(0, n, _ROWS_PER_BATCH):
        batch = slice(start, min(start + _ROWS_PER_BATCH, n))
        distance = np.zeros((batch.stop - batch.start, len(sample)), dtype=np.float32)
        for column in range(m):
            differs = codes[batch, column, None] != codes[None, sample, column]
            distance += weights[batch, column, None] * differs
        # A row of the sample is not its own neighbour.
        inside = np.flatnonzero((sample >= batch.start) & (sample < batch.stop))
        distance[sample[inside] - batch.start, inside] = np.inf
        nearest[batch] = distance.min(axis=1)
    return nearest


def _ranks(values: Reals) -> Reals:
    """Ranks from 0 to 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Reals = ((ends - counts / 2) / len(values))[inverse]
    return ranks
