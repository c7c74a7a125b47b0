"""Noisy counts made into counts that could be: post-processing, so it costs nothing."""

import numpy as np

from deniable.arrays import Counts, Reals


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
