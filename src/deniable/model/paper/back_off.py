"""Back-off: estimate conditional distributions from noisy counts. Post-processing: no cost."""

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.privacy.noise import norm_sub

# Fixed-point iterations for the variance between rows, and its lower bound.
_VARIANCE_ITERATIONS = 50
_MIN_VARIANCE_BETWEEN = 1e-8


def back_off(counts: Counts, shape: Sequence[int], variance: float) -> Reals:
    """Estimate conditional distributions by shrinkage toward coarser tables (back-off).

    A chain of tables adds parents one by one: the attribute alone, then given its first parent, and
    so on. Each row r = X / N is shrunk toward the row q of the coarser table that it refines,

        p = nearest distribution to w r + (1 - w) q,       w = T / (T + V)
        V = (1 - |q|²) / N + K v / N²,       T the variance between rows that V does not explain

    so a row with few records, or much noise, is close to that of the coarser table.

    Args:
        counts: Noisy counts, configurations by values; the last parent's bucket varies fastest.
        shape: The number of buckets of each parent.
        variance: v, the variance of the noise of one count.
    """
    cells = counts.astype(np.float64).reshape(*shape, counts.shape[1])
    marginal = cells.sum(axis=tuple(range(len(shape)))).reshape(1, -1)
    rows = _normalise_rows(norm_sub(marginal))
    for parents_used in range(1, len(shape) + 1):
        remaining_axes = tuple(range(parents_used, len(shape)))
        table = cells.sum(axis=remaining_axes).reshape(-1, counts.shape[1])
        noise = variance * float(
            np.prod([shape[axis] for axis in remaining_axes], dtype=np.float64)
        )
        rows = _shrink_rows(table, np.repeat(rows, shape[parents_used - 1], axis=0), noise)
    return rows


def _shrink_rows(table: Reals, coarser: Reals, variance: float) -> Reals:
    """Shrink each row's frequencies toward its coarser row; return one distribution per row."""
    total = np.maximum(table.sum(axis=1), 0.0)
    nonempty = total > 0
    records = np.where(nonempty, total, 1.0)
    frequencies = np.where(nonempty[:, None], table / records[:, None], coarser)
    error_variance = (1 - (coarser**2).sum(axis=1)) / records
    error_variance += table.shape[1] * variance / records**2
    informative = nonempty & (total > 3 * np.sqrt(table.shape[1] * variance))
    between = _variance_between(
        ((frequencies - coarser) ** 2).sum(axis=1)[informative], error_variance[informative]
    )
    weight = np.where(nonempty, between / (between + error_variance), 0.0)[:, None]
    mixed = weight * frequencies + (1 - weight) * coarser
    # Rows already sum to 1: norm-sub projects them onto the probability simplex.
    return _normalise_rows(norm_sub(mixed))


def _variance_between(squares: Reals, error_variance: Reals) -> float:
    """Estimate T: the weighted mean of squared deviations minus their error variance."""
    between = 1.0
    for _ in range(_VARIANCE_ITERATIONS if len(squares) else 0):
        weights = (between + error_variance) ** -2
        between = max(
            float((weights * (squares - error_variance)).sum() / weights.sum()),
            _MIN_VARIANCE_BETWEEN,
        )
    return between if len(squares) else _MIN_VARIANCE_BETWEEN


def _normalise_rows(rows: Reals) -> Reals:
    sums = rows.sum(axis=1, keepdims=True)
    shares: Reals = np.where(sums > 0, rows / np.where(sums > 0, sums, 1.0), 1 / rows.shape[1])
    return shares
