"""Shrinkage: noise alone vanishes, real dependence survives, margins are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deniable.model.pairwise.shrinkage import (
    complete_table,
    denoise_residuals,
    double_centre,
    fit_near_deterministic,
    keep_outstanding_cells,
    limit_hidden_cells,
    mean_effect_variance,
    rake,
    shrink_singular_values,
    significant_cells,
)
from worlds import property_test

pytestmark = pytest.mark.slow

shapes = st.tuples(st.integers(2, 9), st.integers(2, 9))


def noise(rows, columns, key, sigma=1.0):
    """White noise with centred rows and columns."""
    return double_centre(sigma * np.random.default_rng(key).normal(size=(rows, columns)))


def signal(rows, columns, size):
    """A centred matrix of rank one with this singular value."""
    one = np.arange(rows) - (rows - 1) / 2
    two = np.arange(columns) - (columns - 1) / 2
    return size * np.outer(one / np.linalg.norm(one), two / np.linalg.norm(two))


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 8), (12, 12), (30, 40)])
def test_noise_alone_becomes_zero(rows, columns):
    """The largest singular value of noise lies above (√r + √c) σ at most once in three times for
    the smallest tables, once in five for large ones; then little is left of it. 400 tables each;
    one-sided false-alarm rate 1e-6, fixed keys."""
    left, before = [], []
    for key in range(400):
        table = noise(rows, columns, key)
        left.append(np.linalg.norm(shrink_singular_values(table, 1.0)))
        before.append(np.linalg.norm(table))
    survived = int(np.count_nonzero(left))
    rate = 1 / 5 if min(rows, columns) > 3 else 1 / 3
    assert stats.binom.sf(survived - 1, 400, rate) > 1e-6, f"{survived} of 400 were not zero"
    assert np.sum(np.square(left)) < 0.3 * np.sum(np.square(before))


@property_test
@given(shapes, st.integers(0, 2**32))
def test_without_noise_nothing_is_shrunk(shape, key):
    rows, columns = shape
    table = noise(rows, columns, key)
    np.testing.assert_allclose(shrink_singular_values(table, 0.0), table, atol=1e-9)


@property_test
@given(shapes, st.integers(0, 2**32), st.floats(0.1, 10))
def test_shrinking_adds_nothing_and_keeps_rows_and_columns_at_zero(shape, key, sigma):
    rows, columns = shape
    table = noise(rows, columns, key) + signal(rows, columns, 5.0)
    shrunk = shrink_singular_values(table, sigma)
    found, kept = (np.linalg.svd(each, compute_uv=False) for each in (table, shrunk))
    assert (kept <= found + 1e-9).all()
    np.testing.assert_allclose(shrunk.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(shrunk.sum(axis=1), 0, atol=1e-9)


@pytest.mark.parametrize("size", [0.0, 5.0, 15.0, 60.0])
def test_shrinkage_lowers_the_error(size):
    """Mean squares over 100 tables; and a strong signal survives almost unchanged."""
    truth = signal(10, 12, size)
    raw, shrunk = 0.0, 0.0
    for key in range(100):
        table = truth + noise(10, 12, key)
        raw += np.square(table - truth).sum()
        shrunk += np.square(shrink_singular_values(table, 1.0) - truth).sum()
    assert shrunk < 0.6 * raw
    if size == 60.0:
        assert shrunk < 0.05 * 100 * size**2


def test_a_table_of_one_row_has_no_residual():
    assert not shrink_singular_values(np.ones((1, 5)), 1.0).any()
    assert not shrink_singular_values(np.ones((5, 1)), 1.0).any()


@property_test
@given(shapes, st.integers(0, 2**32))
def test_a_raked_table_has_its_margins_and_is_positive(shape, key):
    rng = np.random.default_rng(key)
    rows, columns = rng.random(shape[0]) + 0.1, rng.random(shape[1]) + 0.1
    rows, columns = 100 * rows / rows.sum(), 100 * columns / columns.sum()
    fitted = rake(np.outer(rows, columns) / 100 + rng.normal(size=shape), rows, columns)
    assert (fitted > 0).all()
    np.testing.assert_allclose(fitted.sum(axis=0), columns, rtol=1e-9)
    np.testing.assert_allclose(fitted.sum(axis=1), rows, rtol=0.05)


# Near-deterministic tables


def one_to_one(bins, rows):
    """Every bin of one attribute goes with one bin of the other."""
    return np.eye(bins) * rows / bins


@pytest.mark.parametrize("key", range(5))
def test_a_near_deterministic_table_is_recovered_from_its_cells(key):
    """16 bins, 10,000 records, σ = 70: each singular value is 625, and noise makes up to 560. By
    directions half of the records would leave their cell."""
    truth, margin = one_to_one(16, 10_000), np.full(16, 625.0)
    expected = np.outer(margin, margin) / 10_000
    seen = double_centre(truth - expected) + noise(16, 16, key, sigma=70.0)
    table = fit_near_deterministic(seen, 70.0, margin, margin)
    assert np.abs(table - truth).sum() / 20_000 < 0.08
    by_direction = rake(expected + shrink_singular_values(seen, 70.0), margin, margin)
    assert np.abs(by_direction - truth).sum() / 20_000 > 0.25
    np.testing.assert_allclose(table.sum(axis=0), margin, rtol=1e-6)


def test_other_tables_are_not_near_deterministic():
    """Without noise; with too few records in significant cells; with too large a remainder."""
    margin = np.full(16, 625.0)
    expected = np.outer(margin, margin) / 10_000
    truth = one_to_one(16, 10_000)
    assert fit_near_deterministic(double_centre(truth - expected), 0.0, margin, margin) is None
    half = 0.5 * truth + 0.5 * expected
    assert fit_near_deterministic(double_centre(half - expected), 50.0, margin, margin) is None
    beside = 0.85 * truth + 0.15 * np.roll(truth, 1, axis=1)
    assert fit_near_deterministic(double_centre(beside - expected), 18.0, margin, margin) is None
    assert (
        fit_near_deterministic(double_centre(beside - expected), 60.0, margin, margin) is not None
    )


def test_positive_cells_are_kept_and_the_others_filled():
    rows, columns = np.array([60.0, 40.0]), np.array([30.0, 30.0, 40.0])
    held = np.array([[20.0, 0.0, 0.0], [0.0, 0.0, 40.0]])
    expected = [[20.0, 30.0, 0.0], [0.0, 0.0, 40.0]]
    found = complete_table(held, np.array([50.0, 40.0]), np.array([20.0, 30.0, 40.0]))
    np.testing.assert_allclose(found, expected, atol=0.2)
    table = complete_table(held, rows, columns)
    np.testing.assert_allclose(table.sum(axis=0), columns, rtol=1e-6)
    assert min(table[1, 2] / 40, table[0, 0] / 20) > 0.9


def test_no_cell_holds_more_than_its_row_or_column():
    rows = columns = np.array([50.0, 50.0])
    table = complete_table(np.array([[80.0, 0.0], [0.0, 45.0]]), rows, columns)
    np.testing.assert_allclose(table, [[47.5, 2.5], [2.5, 47.5]], atol=2.6)
    assert table.sum() == pytest.approx(100)


@pytest.mark.parametrize("shape", [(4, 5), (20, 20)])
def test_noise_is_seldom_significant(shape):
    """Above σ √(2 ln n) lies the fullest of n cells of noise at most once in three times. 400
    tables; one-sided false-alarm rate 1e-6, fixed keys."""
    rows, columns = shape
    tables = (noise(rows, columns, key) for key in range(400))
    found = sum(bool(significant_cells(table, 1.0).any()) for table in tables)
    assert stats.binom.sf(found - 1, 400, 1 / 3) > 1e-6
    assert significant_cells(np.array([[3.0, 1.0], [1.0, 1.0]]), 1.0).tolist() == [
        [True, False],
        [False, False],
    ]


def test_all_pairs_are_denoised_to_their_margins():
    """One to one by its cells, a weak one by directions, noise alone to independence."""
    margin = np.full(16, 625.0)
    expected = np.outer(margin, margin) / 10_000
    residuals = {
        (0, 1): double_centre(one_to_one(16, 10_000) - expected) + noise(16, 16, 1, sigma=70.0),
        (0, 2): signal(16, 16, 900.0) + noise(16, 16, 2, sigma=20.0),
        (1, 2): noise(16, 16, 3, sigma=20.0),
    }
    found = denoise_residuals(residuals, {(0, 1): 70.0, (0, 2): 20.0, (1, 2): 20.0}, [margin] * 3)
    assert list(found) == list(residuals)
    for table in found.values():
        np.testing.assert_allclose(table.sum(axis=0), margin, rtol=1e-6)
        assert (table > 0).all()
    assert np.diag(found[0, 1]).sum() > 9_000
    truth = rake(expected + signal(16, 16, 900.0), margin, margin)
    assert np.abs(found[0, 2] - truth).sum() < 0.3 * np.abs(truth - expected).sum()
    # At most a cell that stands out by chance.
    assert np.abs(found[1, 2] - expected).sum() < 0.03 * 10_000


def test_a_cell_that_stands_out_is_kept_by_itself():
    """Five standard deviations in one of 400 cells: noise alone has a singular value of 8.7."""
    margin = np.full(20, 1_000.0)
    seen = noise(20, 20, 5, sigma=40.0)
    seen[3, 7] = 200.0
    assert not shrink_singular_values(seen, 40.0).any()
    found = denoise_residuals({(0, 1): seen}, {(0, 1): 40.0}, [margin] * 2)[0, 1]
    assert found[3, 7] - 50.0 > 100.0
    others = np.delete(found.ravel(), 3 * 20 + 7)
    assert np.abs(others - 50.0).max() < 40.0


def test_outstanding_cells_are_above_or_below_the_noise():
    table = np.array([[9.0, -9.0, 1.0], [0.0, -1.0, 2.0]])
    assert keep_outstanding_cells(table, 2.0).tolist() == [[9.0, -9.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(keep_outstanding_cells(table, 0.0), table)


def test_effect_variance_is_what_noise_leaves():
    residual, expected = signal(4, 5, 100.0), np.full((4, 5), 50.0)
    found = mean_effect_variance(residual, expected, 10.0)
    assert found == pytest.approx((100.0**2 - 12 * 10.0**2) / (20 * 50.0**2))
    assert mean_effect_variance(residual, expected, 100.0) == 0
    assert mean_effect_variance(residual[:1], expected[:1], 1.0) == 0


# Soldiers, 300 of 10,000 persons, all work for the state; no other table says so.
EMPLOYERS = np.array([7000.0, 1500.0, 800.0, 700.0])
OCCUPATIONS = np.array([300.0, 5700.0, 4000.0])
SIGMA = 30.0


def employers_of_soldiers():
    """Noisy counts of three occupations, the first with one employer, and independent ones."""
    expected = np.outer(OCCUPATIONS, EMPLOYERS) / OCCUPATIONS.sum()
    counts = expected.copy()
    counts[0] = [5.0, 290.0, -12.0, 8.0]
    return counts, expected


def limit_rows_literally(table, counts, expected, sigma):
    """One row after the other, by the words of the docstring."""
    limited = table.copy()
    for row in range(len(table)):
        seen = [cell for cell in range(table.shape[1]) if counts[row, cell] >= 3.5 * sigma]
        others = [cell for cell in range(table.shape[1]) if cell not in seen]
        noise = sigma * len(seen) ** 0.5
        left = max(sum(expected[row]) - sum(counts[row, cell] for cell in seen), 0.0)
        hidden = sum(table[row, cell] for cell in others)
        is_usual = sum(expected[row, cell] for cell in others) >= 3.5 * noise
        if 1 <= len(seen) <= 3 and is_usual and hidden - left >= noise:
            for cell in others:
                limited[row, cell] *= left / hidden
    return limited


def test_hidden_cells_get_what_the_visible_one_leaves():
    counts, expected = employers_of_soldiers()
    limited = limit_hidden_cells(expected, counts, expected, SIGMA)
    # Of 255 others, 10 are left. Fitted to its margins again, the row has 10 : 45.
    assert expected[0, [0, 2, 3]].sum() == 255
    assert 300 * 10 / 55 < limited[0, [0, 2, 3]].sum() < 300 * 10 / 45
    assert np.allclose(limited.sum(axis=0), EMPLOYERS)
    assert np.allclose(limited.sum(axis=1), OCCUPATIONS)


def test_columns_are_limited_as_rows_are():
    counts, expected = employers_of_soldiers()
    by_columns = limit_hidden_cells(expected.T, counts.T, expected.T, SIGMA)
    assert np.allclose(
        by_columns.T, limit_hidden_cells(expected, counts, expected, SIGMA), rtol=1e-6
    )


@pytest.mark.parametrize("sigma", [0.0, 60.0, 1e6])
def test_a_table_stays_where_noise_could_hide_the_others(sigma):
    """At 60, independence expects 4.3 standard deviations of others; the visible cell has 4.8."""
    counts, expected = employers_of_soldiers()
    if sigma == 60.0:
        # A second visible cell: the noise of both together could hide all others.
        counts[0, 0] = 215.0
    assert limit_hidden_cells(expected, counts, expected, sigma) is expected


@property_test
@given(shapes, st.integers(0, 10**6), st.sampled_from([1.0, 5.0, 20.0]))
def test_hidden_cells_follow_the_literal_rule(shape, key, sigma):
    rng = np.random.default_rng(key)
    true = rng.gamma(0.3, 60.0, size=shape) + 1e-3
    expected = np.outer(true.sum(axis=1), true.sum(axis=0)) / true.sum()
    counts = true + sigma * rng.normal(size=shape)
    table = rake(expected + rng.uniform() * (counts - expected), *margins(expected))
    literal = limit_rows_literally(table, counts, expected, sigma)
    literal = limit_rows_literally(literal.T, counts.T, expected.T, sigma).T
    if (literal != table).any():
        literal = rake(literal, *margins(expected))
    found = limit_hidden_cells(table, counts, expected, sigma)
    assert np.allclose(found, literal, rtol=1e-9, atol=1e-9)


def margins(table):
    """Sums of rows and of columns."""
    return table.sum(axis=1), table.sum(axis=0)
