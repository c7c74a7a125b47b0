"""Linear regression on noisy sums: least squares shrunk toward a prior according to the noise.

Least squares needs only the Gram matrix Σ u uᵀ over the records of a group, u = (1, regressors,
value). Here every entry has noise of known variance. Post-processing: nothing here reads data.
"""

import numpy as np

from deniable.arrays import Reals

_MIN_DENOMINATOR = 1e-12
# The least variance of a group, relative to the pooled variance of all groups.
_MIN_VARIANCE_SHARE = 2.0**-10


def shrunk_ratio(
    total: Reals, count: Reals, prior: float, noise_variance: Reals, *, alpha: float
) -> Reals:
    """Estimate total / count, shrunk toward ``prior`` if the count is small.

        prior + n (t - n · prior) / (n² + α n + v)

    The best linear estimate if ratios have standard deviation 1 around the prior, each of the n
    records has variance α, and the noise of t - n · prior has variance v. Without noise and with
    α = 0: t / n.
    """
    n = np.maximum(count, 0.0)
    denominator = np.maximum(n * n + alpha * n + noise_variance, _MIN_DENOMINATOR)
    return prior + n * (total - n * prior) / denominator


def fit_lines(
    gram: Reals, noise: Reals, *, bound: float, min_variance: float, alpha: float
) -> tuple[Reals, Reals]:
    """Fit a regression line to each group; return intercept and slopes, and residual variance.

    Each group is shrunk toward the line and the variance of all groups together, and these toward a
    flat line in the middle of the range. How much depends on the noise.

    Args:
        gram: The noisy Gram matrix Σ u uᵀ of each group, u = (1, regressors, value).
        noise: The variance of the noise of each entry, the same for all groups.
        bound: B; regressors and value are between -B and B.
        min_variance: The least variance of the value.
        alpha: Weight of the prior in records, in the absence of noise.
    """
    total_gram, total_noise = gram.sum(axis=0, keepdims=True), len(gram) * noise
    floor = max(min_variance, _MIN_DENOMINATOR)
    standardiser = _standardiser(
        total_gram[0], total_noise, bound=bound, min_variance=floor, alpha=alpha
    )
    gram, total_gram = (standardiser @ m @ standardiser.T for m in (gram, total_gram))
    counts, total_count = gram[:, 0, 0], total_gram[:, 0, 0]

    flat = np.zeros(len(noise) - 1)
    line = _solve_lines(total_gram, standardiser, total_noise, flat, variance=1.0, alpha=alpha)
    residual = _residual_squares(total_gram, line, standardiser, total_noise)
    pooled = _shrunk_variance(residual, total_count, 1.0, alpha)[0]

    lines = _solve_lines(gram, standardiser, noise, line[0], variance=pooled, alpha=alpha)
    squares, noise_variance = _residual_squares(gram, lines, standardiser, noise)
    within = squares.sum(keepdims=True), noise_variance.sum(keepdims=True)
    pooled = _shrunk_variance(within, total_count, pooled, alpha)[0]
    variances = _shrunk_variance((squares, noise_variance), counts, pooled, alpha)

    # Undo the standardisation: value = mean + deviation · line(standardised regressors).
    deviation, mean = 1 / standardiser[-1, -1], -standardiser[-1, 0] / standardiser[-1, -1]
    lines = deviation * (lines @ standardiser[:-1, :-1])
    lines[:, 0] += mean
    return lines, deviation**2 * variances


def _standardiser(
    gram: Reals, noise: Reals, *, bound: float, min_variance: float, alpha: float
) -> Reals:
    """Compute the matrix that standardises regressors and value to mean 0 and variance 1.

    Over all groups. Means and variances are shrunk toward the prior: mean 0, variance B²/3.
    """
    prior = bound**2 / 3
    count = np.maximum(gram[0, 0], 0.0)
    first, second = gram[0, 1:], np.diag(gram)[1:]
    means = shrunk_ratio(first, count, 0.0, noise[0, 1:] / prior, alpha=alpha)
    means = np.clip(means, -bound, bound)
    squares = second - 2 * means * first + count * means**2
    noise_variance = (
        np.diag(noise)[1:] + 4 * means**2 * noise[0, 1:] + (means**2 + prior) ** 2 * noise[0, 0]
    )
    variances = (
        shrunk_ratio(squares / prior, count, 1.0, noise_variance / prior**2, alpha=2 * alpha)
        * prior
    )
    deviations = np.sqrt(np.clip(variances, min_variance, bound**2))
    standardiser = np.eye(len(gram))
    standardiser[1:, 0] = -means / deviations
    standardiser[np.arange(1, len(gram)), np.arange(1, len(gram))] = 1 / deviations
    return standardiser


def _solve_lines(
    gram: Reals, standardiser: Reals, noise: Reals, prior: Reals, *, variance: float, alpha: float
) -> Reals:
    """Solve for the line of each group by ridge regression toward ``prior``.

        δ = (Gᵀ S⁻¹ G + I / v)⁻¹ Gᵀ S⁻¹ (g - G β),   line = β + δ

    S is the error variance of each equation of G β = g: α v per record, plus the noise. As S grows,
    the line approaches the prior; the matrix is never singular.
    """
    matrix, vector = gram[:, :-1, :-1], gram[:, :-1, -1] - gram[:, :-1, :-1] @ prior
    coefficients = np.append(-prior, 1.0)
    noise_variance = _product_variance(standardiser, standardiser.T @ coefficients, noise)
    for column in standardiser[:-1]:
        noise_variance = noise_variance + variance * _product_variance(standardiser, column, noise)
    diagonal = np.maximum(np.diagonal(matrix, axis1=1, axis2=2), 0.0)
    errors = np.sqrt(
        np.maximum(alpha * variance * diagonal + noise_variance[:-1], _MIN_DENOMINATOR)
    )
    scaled = matrix / errors[:, :, None]
    values, vectors = np.linalg.eigh(scaled.transpose(0, 2, 1) @ scaled)
    weights = 1 / (np.maximum(values, 0.0) + 1 / variance)
    projected = np.einsum("gji,gj->gi", vectors, np.einsum("gji,gj->gi", scaled, vector / errors))
    lines: Reals = prior + np.einsum("gij,gj->gi", vectors, weights * projected)
    return lines


def _product_variance(standardiser: Reals, direction: Reals, noise: Reals) -> Reals:
    """Compute the variance of each entry of A E h: A ``standardiser``, h ``direction``, E noise.

    E is symmetric with independent entries in its upper triangle.
    """
    products = standardiser[:, :, None] * direction
    symmetric = products + products.transpose(0, 2, 1)
    off_diagonal = (np.triu(noise, 1) * symmetric**2).sum(axis=(1, 2))
    variances: Reals = off_diagonal + np.diagonal(products, axis1=1, axis2=2) ** 2 @ np.diag(noise)
    return variances


def _residual_squares(
    gram: Reals, lines: Reals, standardiser: Reals, noise: Reals
) -> tuple[Reals, Reals]:
    """Compute the residual sum of squares of each group's line, and the variance of its noise."""
    coefficients = np.column_stack([-lines, np.ones(len(lines))])
    squares = np.einsum("gi,gij,gj->g", coefficients, gram, coefficients)
    direction = coefficients @ standardiser
    symmetric = 2 * direction[:, :, None] * direction[:, None, :]
    off_diagonal = (np.triu(noise, 1) * symmetric**2).sum(axis=(1, 2))
    return squares, off_diagonal + direction**4 @ np.diag(noise)


def _shrunk_variance(
    residual: tuple[Reals, Reals], count: Reals, prior: float, alpha: float
) -> Reals:
    """Estimate the residual variance of each line, shrunk toward ``prior`` and bounded below."""
    squares, noise_variance = residual
    ratios = shrunk_ratio(squares / prior, count, 1.0, noise_variance / prior**2, alpha=2 * alpha)
    return np.maximum(prior * ratios, prior * _MIN_VARIANCE_SHARE)
