"""Interpolation between groups: sums and margins stay, and a trend goes on inside the groups."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model.pairwise.coarse_residual import CoarseResidual
from deniable.model.pairwise.group_interpolation import interpolation_weights, scale_between_groups
from deniable.model.pairwise.one_way import sum_blocks
from deniable.model.pairwise.shrinkage import double_centre, rake
from deniable.model.pairwise.trends import TrendDirections
from deniable.schema.attribute import Attribute
from worlds import property_test

NUMBERS = Attribute(name="number", kind="integer", values=range(24))
GROUPS = np.repeat(np.arange(6), 4)
EVEN = np.full(24, 1 / 24)


def normal_table(correlation, bins=24, rows=1_000_000):
    """Counts of two normal numbers with this correlation, in bins of equal shares."""
    rng = np.random.default_rng(4)
    one, noise = rng.normal(size=(2, rows))
    other = correlation * one + np.sqrt(1 - correlation**2) * noise
    index = [np.argsort(np.argsort(each)) * bins // rows for each in (one, other)]
    counts = np.bincount(index[0] * bins + index[1], minlength=bins**2)
    return counts.reshape(bins, bins).astype(float)


def rank_correlation(table):
    ranks = np.arange(len(table)) - (len(table) - 1) / 2
    return float(ranks @ table @ ranks / (table.sum() * np.square(ranks).mean()))


def test_weights_are_linear_in_ranks_and_go_on_beyond_the_outer_centres():
    attribute = Attribute(name="x", kind="integer", values=range(4))
    found = interpolation_weights(attribute, np.full(4, 0.25), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(found, [[1.25, -0.25], [0.75, 0.25], [0.25, 0.75], [-0.25, 1.25]])


def test_missing_cells_and_groups_of_one_bin_are_not_interpolated():
    attribute = Attribute(name="x", kind="integer", values=range(4), missing=("",))
    shares = np.array([0.5, 0.1, 0.1, 0.1, 0.2])
    found = interpolation_weights(attribute, shares, np.array([0, 1, 1, 1, 2]))
    assert found is not None
    assert found[0].tolist() == [1, 0, 0]
    assert found[4].tolist() == [0, 0, 1]
    assert (found[:4, 2] == 0).all()


@pytest.mark.parametrize(
    ("kind", "values", "groups"),
    [
        ("categorical", ("a", "b", "c", "d"), [0, 0, 1, 1]),
        ("integer", range(4), [0, 1, 2, 3]),
        ("integer", range(4), [0, 0, 0, 0]),
    ],
    ids=["no order", "every bin is a group", "one group"],
)
def test_nothing_to_interpolate(kind, values, groups):
    attribute = Attribute(name="x", kind=kind, values=values)
    assert interpolation_weights(attribute, np.full(4, 0.25), np.array(groups)) is None


@given(key=st.integers(0, 1_000), missing=st.booleans())
@property_test
def test_weights_of_a_bin_sum_to_one(key, missing):
    rng = np.random.default_rng(key)
    attribute = Attribute(
        name="x", kind="integer", values=range(12), missing=("",) if missing else ()
    )
    groups = np.cumsum(rng.random(12 + missing) < 0.4)
    groups[-1] += missing
    groups -= groups[0]
    shares = rng.dirichlet(np.ones(12 + missing))
    found = interpolation_weights(attribute, shares, groups)
    if found is None:
        return
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.abs(found).max() <= 2 + 1e-9


def test_without_weights_a_group_is_scaled_as_a_whole():
    table, target = np.outer(EVEN, EVEN), sum_blocks(GROUPS, GROUPS, normal_table(0.8)) / 1e6
    found = scale_between_groups(table, target, (GROUPS, GROUPS))
    factors = (target / sum_blocks(GROUPS, GROUPS, table))[GROUPS][:, GROUPS]
    np.testing.assert_allclose(found, rake(table * factors, EVEN, EVEN))


@pytest.mark.parametrize("correlation", [-0.95, 0.3, 0.9])
def test_a_correlation_known_between_groups_goes_on_inside_them(correlation):
    exact = normal_table(correlation) / 1e6
    target = sum_blocks(GROUPS, GROUPS, exact)
    weights = interpolation_weights(NUMBERS, EVEN, GROUPS)
    table = np.outer(EVEN, EVEN)
    even = scale_between_groups(table, target, (GROUPS, GROUPS))
    found = scale_between_groups(table, target, (GROUPS, GROUPS), (weights, weights))
    np.testing.assert_allclose(found.sum(axis=0), EVEN, rtol=1e-6)
    np.testing.assert_allclose(sum_blocks(GROUPS, GROUPS, found), target, atol=2e-3)
    assert np.abs(found - exact).sum() < 0.6 * np.abs(even - exact).sum()
    lost = [abs(rank_correlation(each) / rank_correlation(exact) - 1) for each in (found, even)]
    assert lost[0] < 0.4 * lost[1]
    assert lost[1] > 0.02


def test_one_axis_without_an_order():
    """The mean of a number differs between two texts, and within a group of the number too."""
    rows = np.arange(2)
    slope = np.linspace(-0.8, 0.8, 24)
    exact = 0.5 * np.stack([EVEN * (1 - slope), EVEN * (1 + slope)])
    target = sum_blocks(rows, GROUPS, exact)
    weights = (None, interpolation_weights(NUMBERS, EVEN, GROUPS))
    table = np.outer([0.5, 0.5], EVEN)
    found = scale_between_groups(table, target, (rows, GROUPS), weights)
    even = scale_between_groups(table, target, (rows, GROUPS))
    assert np.abs(found - exact).sum() < 0.2 * np.abs(even - exact).sum()


def test_an_empty_block_stays_empty_and_its_neighbours_do_not():
    target = np.full((6, 6), 1 / 36)
    target[0, 5] = target[5, 0] = 1e-6
    target = rake(target, np.full(6, 1 / 6), np.full(6, 1 / 6))
    weights = interpolation_weights(NUMBERS, EVEN, GROUPS)
    found = scale_between_groups(np.outer(EVEN, EVEN), target, (GROUPS, GROUPS), (weights, weights))
    sums = sum_blocks(GROUPS, GROUPS, found)
    assert sums[0, 5] < 0.001
    assert np.abs(sums - target).max() < 0.003


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
