"""Lines fitted to noisy sums: least squares that lean to what is known where noise is all there is.

Post-processing: nothing here sees data. Σ u uᵀ over the records of a group, u = (1, regressors,
value), is all that least squares needs; here every entry of it has noise of known variance.
"""

import numpy as np

from deniable.arrays import Reals

_TINY = 1e-12
# No group's variance is estimated below this share of what all groups have together.
_LEAST_SHARE = 2.0**-10


def lean(total: Reals, number: Reals, prior: float, doubt: Reals, *, alpha: float) -> Reals:
    """Return total / number, leaning to ``prior`` where few were counted.

        prior + n (t - n · prior) / (n² + α n + doubt)

    The best linear guess where ratios are spread about the prior by 1, a single one of the n is
    off by √α, and noise moves t - n · prior by √doubt. Without noise and prior: t / n.
    """
    n = np.maximum(number, 0.0)
    return prior + n * (total - n * prior) / np.maximum(n * n + alpha * n + doubt, _TINY)


def fit_lines(
    gram: Reals, noise: Reals, *, bound: float, least: float, alpha: float
) -> tuple[Reals, Reals]:
    """Return, for each group, intercept and slopes of its line and the variance about it.

    Each group leans to the line and the variance of all groups together, and these to a flat line
    in the middle of the range, as far as noise hides what was measured.

    Args:
        gram: Σ u uᵀ of each group, u = (1, regressors, value), with noise.
        noise: The variance of the noise of each entry, the same for all groups.
        bound: Regressors and value lie between -B and B.
        least: The least variance of the value.
        alpha: How many records the prior weighs, where there is no noise.
    """
    everything, of_all = gram.sum(axis=0, keepdims=True), len(gram) * noise
    standard = _standard(everything[0], of_all, bound=bound, least=max(least, _TINY), alpha=alpha)
    gram, everything = (standard @ m @ standard.T for m in (gram, everything))
    number, numbers = gram[:, 0, 0], everything[:, 0, 0]

    flat = np.zeros(len(noise) - 1)
    line = _solve(everything, standard, of_all, flat, variance=1.0, alpha=alpha)
    pooled = _variance(_residual(everything, line, standard, of_all), numbers, 1.0, alpha)[0]

    lines = _solve(gram, standard, noise, line[0], variance=pooled, alpha=alpha)
    squares, doubt = _residual(gram, lines, standard, noise)
    within = squares.sum(keepdims=True), doubt.sum(keepdims=True)
    pooled = _variance(within, numbers, pooled, alpha)[0]
    variances = _variance((squares, doubt), number, pooled, alpha)

    # Back to the scale of the sums: value = mean + deviation · line(standard regressors).
    deviation, mean = 1 / standard[-1, -1], -standard[-1, 0] / standard[-1, -1]
    lines = deviation * (lines @ standard[:-1, :-1])
    lines[:, 0] += mean
    return lines, deviation**2 * variances


def _standard(gram: Reals, noise: Reals, *, bound: float, least: float, alpha: float) -> Reals:
    """Return the matrix that gives regressors and value mean 0 and variance 1 over all groups.

    Few records lean to what is known of all of them without data: mean 0, variance B²/3.
    """
    prior = bound**2 / 3
    number = np.maximum(gram[0, 0], 0.0)
    first, second = gram[0, 1:], np.diag(gram)[1:]
    means = lean(first, number, 0.0, noise[0, 1:] / prior, alpha=alpha)
    means = np.clip(means, -bound, bound)
    squares = second - 2 * means * first + number * means**2
    doubt = np.diag(noise)[1:] + 4 * means**2 * noise[0, 1:] + (means**2 + prior) ** 2 * noise[0, 0]
    variances = lean(squares / prior, number, 1.0, doubt / prior**2, alpha=2 * alpha) * prior
    deviations = np.sqrt(np.clip(variances, least, bound**2))
    standard = np.eye(len(gram))
    standard[1:, 0] = -means / deviations
    standard[np.arange(1, len(gram)), np.arange(1, len(gram))] = 1 / deviations
    return standard


def _solve(
    gram: Reals, standard: Reals, noise: Reals, prior: Reals, *, variance: float, alpha: float
) -> Reals:
    """Return the line of each group, leaning to ``prior``: ridge by the level of the noise.

        δ = (Gᵀ S⁻¹ G + I / v)⁻¹ Gᵀ S⁻¹ (g - G β),   line = β + δ

    with S what each equation of G β = g is off by: v for each of its records, α times, and the
    noise. As S grows the line becomes the prior; the matrix is never singular.
    """
    left, right = gram[:, :-1, :-1], gram[:, :-1, -1] - gram[:, :-1, :-1] @ prior
    certain = np.append(-prior, 1.0)
    doubt = _noise_along(standard, standard.T @ certain, noise)
    for column in standard[:-1]:
        doubt = doubt + variance * _noise_along(standard, column, noise)
    own = np.maximum(np.diagonal(left, axis1=1, axis2=2), 0.0)
    off = np.sqrt(np.maximum(alpha * variance * own + doubt[:-1], _TINY))
    scaled = left / off[:, :, None]
    values, vectors = np.linalg.eigh(scaled.transpose(0, 2, 1) @ scaled)
    weights = 1 / (np.maximum(values, 0.0) + 1 / variance)
    along = np.einsum("gji,gj->gi", vectors, np.einsum("gji,gj->gi", scaled, right / off))
    lines: Reals = prior + np.einsum("gij,gj->gi", vectors, weights * along)
    return lines


def _noise_along(standard: Reals, direction: Reals, noise: Reals) -> Reals:
    """Return the variance of each entry of A E h: A ``standard``, h ``direction``, E the noise.

    E is symmetric, its upper triangle independent.
    """
    products = standard[:, :, None] * direction
    both = products + products.transpose(0, 2, 1)
    apart = (np.triu(noise, 1) * both**2).sum(axis=(1, 2))
    variances: Reals = apart + np.diagonal(products, axis1=1, axis2=2) ** 2 @ np.diag(noise)
    return variances


def _residual(gram: Reals, lines: Reals, standard: Reals, noise: Reals) -> tuple[Reals, Reals]:
    """Return the sum of squares that each group's line leaves, and the variance of its noise."""
    certain = np.column_stack([-lines, np.ones(len(lines))])
    squares = np.einsum("gi,gij,gj->g", certain, gram, certain)
    along = certain @ standard
    both = 2 * along[:, :, None] * along[:, None, :]
    apart = (np.triu(noise, 1) * both**2).sum(axis=(1, 2))
    return squares, apart + along**4 @ np.diag(noise)


def _variance(left: tuple[Reals, Reals], number: Reals, prior: float, alpha: float) -> Reals:
    """Return the variance about each line, leaning to ``prior``; at least a little of it."""
    squares, doubt = left
    shares = lean(squares / prior, number, 1.0, doubt / prior**2, alpha=2 * alpha)
    return np.maximum(prior * shares, prior * _LEAST_SHARE)
