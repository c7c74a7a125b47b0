"""Sample equivalent: the size of a random sample of real rows that is as good as the release.

The mean distance of pairs of columns from real rows is computed for random samples of n, n/2, n/4
… rows. The sample equivalent is the size at which it equals the distance of the released records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.arrays import Codes, Counts, Reals
from deniable.evaluation.column_groups import GroupedColumn
from deniable.evaluation.distances import total_variation
from deniable.evaluation.grouped_rows import GroupedRows
from deniable.evaluation.intervals import NORMAL_95, Interval
from deniable.evaluation.reference_tables import shuffled_indices, take_rows
from deniable.evaluation.relation_figures import choose_sets
from deniable.randomness import Keyed

# Random samples of each size, if there are enough rows; all of them disjoint.
_SAMPLES_PER_SIZE = 8
# From this number of samples, their spread is an estimate of their standard deviation.
_MIN_SAMPLES_FOR_SPREAD = 4
# The smallest sample that is measured.
_MIN_ROWS = 10
# Bounds of the cost: cells of rows and pairs that are counted, and pairs of columns.
_MAX_COUNTED = 20_000_000
_MIN_PAIRS, _MAX_PAIRS = 20, 400
_ORDER_STREAM, _PAIRS_STREAM = 6, 7


@dataclass(frozen=True, kw_only=True)
class SampleEquivalent:
    """Random sample of the real rows that is as good as the release, for pairs of columns.

    Attributes:
        fraction: Its share of the real rows.
        interval: 95 % interval of the share: sizes of samples that reach the distance of the
            release by chance.
        rows: Its number of rows.
        bound: "below" or "above" if the release is outside all sizes that were measured;
            ``fraction`` is then the smallest or the largest.
        limit: Largest fraction that as many records from a perfect model would reach.
        pairs: Number of pairs of columns that were compared.
    """

    fraction: float
    interval: Interval
    rows: int
    bound: Literal["below", "above"] | None
    limit: float
    pairs: int


def measure_sample_equivalent(
    columns: Sequence[GroupedColumn], real: Codes, reference: Codes, released: Codes, *, key: int
) -> SampleEquivalent:
    """Find the size of a random sample of ``real`` that is as close to ``reference`` as a release.

    If ``reference`` is ``real`` itself, the sample of all rows has distance 0. A release then has
    the same position as with held-out rows: the sampling error of ``real`` itself is missing in
    both distances.

    Args:
        columns: The columns and their groups.
        real: The real rows that the release was learnt from.
        reference: Real rows to compare with: held out, or the same.
        released: The released records.
        key: Key of the samples and of the pairs of columns.
    """
    randomness = Keyed(key)
    limit = min(_MAX_PAIRS, max(_MIN_PAIRS, _MAX_COUNTED // len(real)))
    pairs = choose_sets(len(columns), 2, limit=limit, rng=randomness.at("records", _PAIRS_STREAM))
    order = shuffled_indices(len(real), randomness.at("records", _ORDER_STREAM))
    shuffled, compared, records = (
        GroupedRows.of(columns, codes) for codes in (take_rows(real, order), reference, released)
    )
    sizes = _sample_sizes(len(real))
    total, distances = 0.0, [np.zeros(min(_SAMPLES_PER_SIZE, len(real) // size)) for size in sizes]
    for pair in pairs:
        counts = compared.count(pair).ravel()
        total += total_variation(counts, records.count(pair).ravel())
        cells = shuffled.cells(pair)
        for at, size in enumerate(sizes):
            distances[at] += _sample_distances(cells, size, len(distances[at]), counts)
    curve = [found / len(pairs) for found in distances]
    return _locate(total / len(pairs), sizes, curve, records=len(released), pairs=len(pairs))


def _sample_sizes(rows: int) -> list[int]:
    """List the sizes of samples: all rows, a half, a quarter and so on."""
    sizes = [rows]
    while sizes[-1] // 2 >= _MIN_ROWS:
        sizes.append(sizes[-1] // 2)
    return sizes


def _sample_distances(cells: Counts, size: int, samples: int, counts: Counts) -> Reals:
    """Compute the distance of consecutive samples of ``size`` rows from a table of counts."""
    number = np.repeat(np.arange(samples) * len(counts), size)
    inside = np.bincount(number + cells[: samples * size], minlength=samples * len(counts))
    shares = inside.reshape(samples, -1) / size
    distances: Reals = 0.5 * np.abs(shares - counts / counts.sum()).sum(axis=1)
    return distances


def _locate(
    distance: float, sizes: Sequence[int], curve: Sequence[Reals], *, records: int, pairs: int
) -> SampleEquivalent:
    """Find the sample size with a given distance on the curve of measured sizes."""
    means = np.array([found.mean() for found in curve])
    # More rows are never worse: what contradicts this is chance.
    means = np.maximum.accumulate(means)
    spreads = [
        found.std(ddof=1) / found.mean()
        for found in curve
        if len(found) >= _MIN_SAMPLES_FOR_SPREAD and found.mean() > 0
    ]
    spread = float(np.median(spreads)) if spreads else 0.0
    # The release is one draw; the curve is the mean of several.
    error = NORMAL_95 * spread * np.sqrt(1 + 1 / _SAMPLES_PER_SIZE)
    rows, low, high = (
        _interpolate(value, sizes, means)
        for value in (distance, distance * (1 + error), distance * max(0.0, 1 - error))
    )
    bound: Literal["below", "above"] | None = None
    if distance > means[-1]:
        bound = "below"
    elif distance <= means[0]:
        bound = "above"
    return SampleEquivalent(
        fraction=rows / sizes[0],
        interval=(low / sizes[0], high / sizes[0]),
        rows=round(rows),
        bound=bound,
        limit=records / (records + sizes[0]),
        pairs=pairs,
    )


def _interpolate(distance: float, sizes: Sequence[int], means: Reals) -> float:
    """Interpolate the sample size with a given distance.

    A squared distance is a variance, so between measured sizes it is linear in 1/size.
    """
    return float(1 / np.interp(distance**2, means**2, 1 / np.array(sizes)))
