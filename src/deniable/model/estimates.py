"""Noisy counts made into counts that could be: post-processing, so it costs nothing."""

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Counts, Reals

# Rounds in which the variance between rows settles, and the least it may be.
_ROUNDS = 50
_LEAST_BETWEEN = 1e-8


def norm_sub(counts: Counts | Reals) -> Reals:
    """Return, row by row, the counts nearest to the noisy ones that could be counts.

    None below zero, and their sum that of the noisy ones (zero if that is below): each row is
    lowered by one number λ and cut at zero, with Σ_l max(X_l - λ, 0) = N.
    Counts without noise stay as they are.
    """
    noisy = counts.astype(np.float64)
    total = np.maximum(noisy.sum(axis=1), 0.0)
    descending = -np.sort(-noisy, axis=1)
    lowered = (np.cumsum(descending, axis=1) - total[:, None]) / np.arange(1, noisy.shape[1] + 1)
    # λ is that of the last value, in descending order, that stays above zero.
    last = (descending > lowered).sum(axis=1) - 1
    level = np.take_along_axis(lowered, np.maximum(last, 0)[:, None], axis=1)
    return np.where(total[:, None] > 0, np.maximum(noisy - level, 0.0), 0.0)


def back_off(counts: Counts, shape: Sequence[int], variance: float) -> Reals:
    """Return the distribution of each configuration, leaning on coarser ones as far as noise asks.

    A chain of tables, parent by parent: first the attribute alone, then given its first parent,
    and so on. Each row r = X / N leans on the row q that it refines,

        p = nearest distribution to w r + (1 - w) q,       w = T / (T + V)
        V = (1 - |q|²) / N + K v / N²,       T the variance between rows that V does not explain

    so a row of few records, or of much noise, is that of its coarser table.

    Args:
        counts: Noisy counts, configurations by values, the last parent's bucket fastest.
        shape: How many buckets each parent has.
        variance: v, that of the noise of one count.
    """
    cells = counts.astype(np.float64).reshape(*shape, counts.shape[1])
    whole = cells.sum(axis=tuple(range(len(shape)))).reshape(1, -1)
    rows = _as_distributions(norm_sub(whole))
    for known in range(1, len(shape) + 1):
        summed = tuple(range(known, len(shape)))
        table = cells.sum(axis=summed).reshape(-1, counts.shape[1])
        noise = variance * float(np.prod([shape[axis] for axis in summed], dtype=np.float64))
        rows = _lean(table, np.repeat(rows, shape[known - 1], axis=0), noise)
    return rows


def _lean(table: Reals, coarser: Reals, variance: float) -> Reals:
    """Return one distribution a row: between what the row says and its coarser one."""
    total = np.maximum(table.sum(axis=1), 0.0)
    seen = total > 0
    records = np.where(seen, total, 1.0)
    raw = np.where(seen[:, None], table / records[:, None], coarser)
    doubt = (1 - (coarser**2).sum(axis=1)) / records
    doubt += table.shape[1] * variance / records**2
    sure = seen & (total > 3 * np.sqrt(table.shape[1] * variance))
    between = _variance_between(((raw - coarser) ** 2).sum(axis=1)[sure], doubt[sure])
    weight = np.where(seen, between / (between + doubt), 0.0)[:, None]
    mixed = weight * raw + (1 - weight) * coarser
    # Near what a distribution is already: the projection of norm-sub, for sums of one.
    return _as_distributions(norm_sub(mixed))


def _variance_between(squares: Reals, doubt: Reals) -> float:
    """Return T: the mean of what squares have beyond doubt, the surest rows weighing most."""
    between = 1.0
    for _ in range(_ROUNDS if len(squares) else 0):
        weights = (between + doubt) ** -2
        between = max(float((weights * (squares - doubt)).sum() / weights.sum()), _LEAST_BETWEEN)
    return between if len(squares) else _LEAST_BETWEEN


def _as_distributions(rows: Reals) -> Reals:
    sums = rows.sum(axis=1, keepdims=True)
    shares: Reals = np.where(sums > 0, rows / np.where(sums > 0, sums, 1.0), 1 / rows.shape[1])
    return shares
