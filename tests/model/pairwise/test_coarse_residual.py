"""Interactions and two-way tables together: residuals between groups, adjusted and shrunk."""

from dataclasses import replace

import numpy as np

from deniable.model.pairwise.coarse_residual import CoarseResidual
from deniable.model.pairwise.one_way import sum_blocks
from deniable.model.pairwise.shrinkage import double_centre
from deniable.model.pairwise.trends import TrendDirections


def coarse_of(residual, *, sigma=10.0, bins=3):
    """Groups of ``bins`` bins each, with 1,000 records a cell."""
    a, b = residual.shape
    rows, columns = (np.repeat(np.arange(number), bins) for number in (a, b))
    expected = np.full((a, b), 1_000.0)
    return CoarseResidual(
        residual=residual, expected=expected, sigma=sigma, rows=rows, columns=columns
    )


def test_an_adjusted_residual_has_the_sums_between_groups():
    rng = np.random.default_rng(4)
    coarse = coarse_of(double_centre(rng.normal(size=(3, 4))))
    residual = double_centre(rng.normal(size=(9, 12)))
    found = coarse.adjust(residual)
    np.testing.assert_allclose(
        sum_blocks(coarse.rows, coarse.columns, found), coarse.residual, atol=1e-9
    )
    change = found - residual
    np.testing.assert_allclose(change[:3, :3], change[0, 0], err_msg="evenly in a group")
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-9)


def test_differences_that_noise_explains_shrink_and_others_stay():
    """Mean squared error over 200 tables of noise: less than half of the noise is left of it when
    the table is right; when it is far from the truth, the error is that of the noise."""
    rng = np.random.default_rng(5)
    table = np.full((18, 18), 1_000.0 / 9)
    far = double_centre(500.0 * rng.normal(size=(6, 6)))
    for truth, low, high in ((np.zeros((6, 6)), 0.2, 0.35), (far, 0.9, 1.1)):
        error = 0.0
        for _ in range(200):
            seen = truth + double_centre(10.0 * rng.normal(size=(6, 6)))
            found = coarse_of(seen).shrink_toward(table)
            error += np.square(found.residual - truth).sum() / (25 * 10.0**2) / 200
        assert low < error < high
    exact = coarse_of(far, sigma=0.0)
    np.testing.assert_allclose(exact.shrink_toward(table).residual, far)


def test_a_trend_that_stands_out_is_not_shrunk():
    """Differences of 2σ, of which half of the shrinkage removes a part, but none of the trend."""
    rng = np.random.default_rng(6)
    scores = np.linspace(-1.0, 1.0, 6)
    columns = scores / np.linalg.norm(scores)
    table = np.full((18, 18), 1_000.0 / 9)
    seen = double_centre(20.0 * rng.normal(size=(6, 6)))
    coarse = coarse_of(seen)
    found = replace(coarse, trends=TrendDirections(columns=columns)).shrink_toward(table)
    np.testing.assert_allclose(found.residual @ columns, seen @ columns)
    assert np.linalg.norm(found.residual) < np.linalg.norm(seen)
    assert np.linalg.norm(coarse.shrink_toward(table).residual @ columns) < 0.95 * np.linalg.norm(
        seen @ columns
    )
