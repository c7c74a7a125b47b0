"""Denoise two-way residuals whose noise is known: singular values, cells, and fitted margins.

All of it is post-processing of noisy counts.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from deniable.arrays import Mask, Reals

# Pairs of attributes, i < j.
Pair = tuple[int, int]
# Keeps denominators positive.
_POSITIVE_FLOOR = 1e-6
# The least count of a cell, relative to independence; and rounds of proportional fitting.
MIN_CELL_RATIO = 1e-3
_RAKING_ROUNDS = 20
_RAKING_TOLERANCE = 1e-10
# A singular value is kept if it exceeds the largest one expected of pure noise by this factor.
# Keeping one that is only noise is worse than assuming independence.
_NOISE_EDGE_MARGIN = 1.05
# One attribute nearly determines the other if significant cells hold this share of the records and
# the remaining χ² statistic is within this many standard deviations of its mean under pure noise.
_MIN_DETERMINED_SHARE = 0.8
_MAX_RESIDUAL_SIGMAS = 3.0
# Hidden cells are limited in rows with at most this many visible ones. A cell is visible above this
# many standard deviations of its noise; the hidden ones must exceed what is left for them by this
# many.
_MAX_CELLS_STANDING_OUT = 3
_STANDS_OUT_SIGMAS = 3.5
_MIN_SURPLUS_SIGMAS = 1.0


def denoise_residuals(
    residuals: Mapping[Pair, Reals], sigma: Mapping[Pair, float], margins: Sequence[Reals]
) -> dict[Pair, Reals]:
    """Denoise each pair's table and fit it to its margins."""
    tables = {}
    for (i, j), residual in residuals.items():
        determined = fit_near_deterministic(residual, sigma[i, j], margins[i], margins[j])
        if determined is not None:
            tables[i, j] = determined
    others = {pair: residual for pair, residual in residuals.items() if pair not in tables}
    subspaces = _attribute_subspaces(others, sigma, len(margins))
    for (i, j), residual in others.items():
        denoised = _shrink_residual(residual, subspaces[i], subspaces[j], sigma[i, j])
        denoised = denoised + keep_outstanding_cells(residual - denoised, sigma[i, j])
        expected = np.outer(margins[i], margins[j]) / margins[i].sum()
        tables[i, j] = rake(expected + denoised, margins[i], margins[j])
    return {pair: tables[pair] for pair in residuals}


def _attribute_subspaces(
    residuals: Mapping[Pair, Reals], sigma: Mapping[Pair, float], m: int
) -> list[Reals]:
    """Find, for each attribute, a basis of the directions in which its bins differ.

    Left singular vectors of all its residuals side by side, each in units of its noise, whose
    singular value is too large for pure noise. An effect too weak to show in one table may show
    in many together.
    """
    subspaces = []
    for i in range(m):
        stacked = [
            (table if one == i else table.T) / sigma[one, other]
            for (one, other), table in residuals.items()
            if i in (one, other) and sigma[one, other] > 0
        ]
        if not stacked:
            subspaces.append(np.empty((0, 0)))
            continue
        matrix = np.concatenate(stacked, axis=1)
        left, singular, _ = np.linalg.svd(matrix, full_matrices=False)
        noise_edge = np.sqrt(len(matrix) - 1) + np.sqrt(matrix.shape[1] - len(stacked))
        subspaces.append(left[:, singular > _NOISE_EDGE_MARGIN * noise_edge])
    return subspaces


def _shrink_residual(residual: Reals, left: Reals, right: Reals, sigma: float) -> Reals:
    """Remove the noise from a residual by shrinking singular values.

    The part inside the subspaces of both attributes, a small matrix, is shrunk separately from the
    remainder.
    """
    if not sigma > 0:
        return residual
    projected = left.T @ residual @ right
    remainder = shrink_singular_values(residual - left @ projected @ right.T, sigma)
    if not projected.size:
        return remainder
    common: Reals = left @ shrink_singular_values(projected, sigma, lost_dimensions=0) @ right.T
    return common + remainder


def shrink_singular_values(table: Reals, sigma: float, *, lost_dimensions: int = 1) -> Reals:
    """Denoise a low-rank matrix by optimal singular value shrinkage (Gavish and Donoho, 2017).

    Optimal in squared error for white noise. Singular values that noise alone could cause become 0;
    the others are reduced by the expected contribution of the noise.

    Args:
        table: The matrix.
        sigma: Standard deviation of its noise.
        lost_dimensions: Rows and columns minus degrees of freedom: 1 if rows and columns sum to 0.
    """
    rows, columns = table.shape
    if rows <= lost_dimensions or columns <= lost_dimensions:
        return np.zeros_like(table)
    root_rows, root_columns = np.sqrt(rows - lost_dimensions), np.sqrt(columns - lost_dimensions)
    high, low = (root_rows + root_columns) * sigma, abs(root_rows - root_columns) * sigma
    left, singular, right = np.linalg.svd(table, full_matrices=False)
    squared = np.maximum((singular**2 - high**2) * (singular**2 - low**2), 0.0)
    shrunk = np.sqrt(squared) / np.maximum(singular, 1e-300)
    shrunk = np.where(singular > _NOISE_EDGE_MARGIN * high, shrunk, 0.0)
    result: Reals = (left * shrunk) @ right
    return result


def mean_effect_variance(residual: Reals, expected: Reals, sigma: float) -> float:
    """Estimate τ: mean square of residual over expected count, minus the part due to noise."""
    rows, columns = residual.shape
    if rows < 2 or columns < 2:
        return 0.0
    noise = (rows - 1) * (columns - 1) * sigma**2
    return max(0.0, float((residual**2).sum() - noise) / float((expected**2).sum()))


def damped_statistic(residual: Reals, expected: Reals, sigma: float) -> float:
    """Compute the χ² statistic of a residual, damped by its noise: σ is added to each count."""
    return float((residual**2 / (expected + sigma)).sum())


def significant_cells(residual: Reals, sigma: float) -> Mask:
    """Mark the cells above √(2 ln n) σ: about the largest of n cells of pure noise."""
    significant: Mask = residual > sigma * np.sqrt(2 * np.log(residual.size))
    return significant


def keep_outstanding_cells(residual: Reals, sigma: float) -> Reals:
    """Keep the cells that stand out from the noise, above or below zero; set the others to 0.

    A combination of two values that is far too frequent, or missing, has no part in the few
    directions that singular values keep.
    """
    outstanding = significant_cells(np.abs(residual), sigma)
    return np.where(outstanding, residual, 0.0)


def fit_near_deterministic(
    residual: Reals, sigma: float, rows: Reals, columns: Reals
) -> Reals | None:
    """Fit a table in which one attribute nearly determines the other; None if it does not fit.

    In such a table, few cells hold most records, and noise explains the other cells. It has nearly
    full rank, so singular values do not stand out from the noise, but single cells do.
    """
    significant = significant_cells(residual, sigma)
    expected = np.outer(rows, columns) / rows.sum()
    counts = np.where(significant, residual + expected, 0.0)
    if not sigma > 0 or counts.sum() < _MIN_DETERMINED_SHARE * rows.sum():
        return None
    table = complete_table(counts, rows, columns)
    degrees_of_freedom = (len(rows) - 1) * (len(columns) - 1)
    statistic = float(np.square(residual + expected - table).sum()) / sigma**2
    spread = _MAX_RESIDUAL_SIGMAS * np.sqrt(2 * degrees_of_freedom)
    return table if statistic < degrees_of_freedom + spread else None


def complete_table(fixed: Reals, rows: Reals, columns: Reals) -> Reals:
    """Complete a table to these margins, keeping its positive cells, or reducing them if needed.

    The remaining counts are spread over the zero cells as if rows and columns were independent
    there.
    """
    kept = fixed * np.minimum(1.0, rows / np.maximum(fixed.sum(axis=1), _POSITIVE_FLOOR))[:, None]
    kept *= np.minimum(1.0, columns / np.maximum(kept.sum(axis=0), _POSITIVE_FLOOR))
    remaining = rows - kept.sum(axis=1), columns - kept.sum(axis=0)
    others = np.where(fixed > 0, _POSITIVE_FLOOR, np.outer(rows, columns) / rows.sum())
    for _ in range(_RAKING_ROUNDS):
        others *= (remaining[0] / np.maximum(others.sum(axis=1), _POSITIVE_FLOOR))[:, None]
        others *= remaining[1] / np.maximum(others.sum(axis=0), _POSITIVE_FLOOR)
    return rake(kept + others, rows, columns)


def limit_hidden_cells(table: Reals, counts: Reals, expected: Reals, sigma: float) -> Reals:
    """Scale down the cells that noise hides, where those that stand out leave little for them.

    Margins have far less noise than cells. Where few cells of a row stand out, the row's margin
    minus their counts is what is left for all others together. The table may have more of them:
    independence expects a little in each. Example: soldiers who work for a private employer. They
    are scaled down to what is left; fitting the margins again then gives a part back, which is
    better than all or nothing (benchmarks/utility.md). The same for columns.

    Args:
        table: A denoised table.
        counts: The noisy counts.
        expected: The counts expected under independence, which have the margins of the table.
        sigma: Standard deviation of the noise of a count.
    """
    if not sigma:
        return table
    limited = table.copy()
    transposed = (limited.T, counts.T, expected.T)
    for own, noisy, independent in ((limited, counts, expected), transposed):
        stands_out = noisy >= _STANDS_OUT_SIGMAS * sigma
        number = stands_out.sum(axis=1)
        noise = sigma * np.sqrt(number)
        left = independent.sum(axis=1) - np.where(stands_out, noisy, 0.0).sum(axis=1)
        left = np.maximum(left, 0.0)
        hidden = np.where(stands_out, 0.0, own).sum(axis=1)
        usual = np.where(stands_out, 0.0, independent).sum(axis=1)
        is_limited = (number > 0) & (number <= _MAX_CELLS_STANDING_OUT)
        is_limited &= usual >= _STANDS_OUT_SIGMAS * noise
        is_limited &= hidden - left >= _MIN_SURPLUS_SIGMAS * noise
        factors = np.where(is_limited, left / np.maximum(hidden, _POSITIVE_FLOOR), 1.0)
        np.multiply(own, np.where(stands_out, 1.0, factors[:, None]), out=own)
    if np.array_equal(limited, table):
        return table
    return rake(limited, expected.sum(axis=1), expected.sum(axis=0))


def rake(table: Reals, rows: Reals, columns: Reals) -> Reals:
    """Fit a table to these margins by iterative proportional fitting; all cells become positive."""
    fitted: Reals = np.maximum(table, MIN_CELL_RATIO * np.outer(rows, columns) / rows.sum() + 1e-9)
    for _ in range(_RAKING_ROUNDS):
        factors = rows / fitted.sum(axis=1)
        fitted *= factors[:, None]
        fitted *= columns / fitted.sum(axis=0)
        if np.abs(factors - 1).max() < _RAKING_TOLERANCE:
            break
    return fitted


def double_centre(table: Reals) -> Reals:
    """Subtract row and column means, so that all rows and columns sum to zero.

    This also removes the noise of the margins, which are estimated from all tables together.
    """
    rows = table - table.mean(axis=1, keepdims=True)
    centred: Reals = rows - rows.mean(axis=0, keepdims=True)
    return centred
