"""Denoised tables: noise alone vanishes, real dependence survives, margins are consistent."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deniable.counting.local import count
from deniable.model.pairwise.denoise import (
    candidate_parents,
    complete_table,
    denoise_tables,
    dependence_scores,
    double_centre,
    fit_near_deterministic,
    rake,
    shrink_singular_values,
    significant_cells,
)
from deniable.model.pairwise.measure import measure_pairwise
from deniable.privacy.pairwise_budget import pair_noise
from deniable.randomness import Keyed
from worlds import codes_of, plain_attribute, property_test, records_of

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


# Consistent tables


def attributes_of(sizes):
    return [plain_attribute(f"x{i}", size) for i, size in enumerate(sizes)]


def measure(codes, sizes, *, mu=math.inf, key=1):
    attributes = attributes_of(sizes)
    laws = replace(pair_noise(sizes, mu_values=mu, mu_pairs=mu), remeasurements=0)
    measured, _ = measure_pairwise(
        Keyed(key).at("noise"),
        partial(count, attributes, codes, workers=1),
        lambda binned: partial(count, binned, codes, workers=1),
        attributes,
        laws,
    )
    return measured


def table_of(rows=6_000, key=3):
    """x1 depends on x0; x2 is independent; x3 depends weakly on x1."""
    rng = np.random.default_rng(key)
    first = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    second = np.where(rng.random(rows) < 0.7, first, rng.integers(0, 4, rows))
    third = rng.integers(0, 3, rows)
    fourth = np.where(rng.random(rows) < 0.3, second % 2, rng.integers(0, 2, rows))
    columns = [first, second, third, fourth]
    return codes_of(records_of(np.stack(columns, axis=1)), 4), (4, 4, 3, 2)


def test_a_bin_counted_below_zero_keeps_a_quarter_of_its_sigma():
    """Such as rare missing cells: every table counts zero or fewer."""
    codes, sizes = table_of()
    seen = measure(codes, sizes, mu=0.5)
    assert [int(groups.max()) + 1 for groups in seen.bins] == list(sizes)
    values = [table.copy() for table in seen.values]
    pairs = {pair: table.copy() for pair, table in seen.pairs.items()}
    # Its records are in the next bin, plus 40 in each cell: totals stay.
    for table in (values[2], pairs[0, 2].T, pairs[1, 2].T, pairs[2, 3]):
        table[1] += table[0] + 40
        table[0] = -40
    hidden = replace(seen, values=tuple(values), pairs=pairs)
    others = sum(1 / (seen.pair_sigma**2 * sizes[j]) for j in (0, 1, 3))
    sure = 1 / seen.value_sigmas[2] ** 2 + others
    found = denoise_tables(hidden, attributes_of(sizes))
    assert found.bins[2][0] * found.records == pytest.approx(0.25 / math.sqrt(sure), rel=0.01)


def test_without_noise_values_and_excess_are_those_of_the_table():
    codes, sizes = table_of()
    found = denoise_tables(measure(codes, sizes), attributes_of(sizes))
    assert found.records == pytest.approx(len(codes))
    for i, size in enumerate(sizes):
        share = np.bincount(codes[:, i], minlength=size) / len(codes)
        np.testing.assert_allclose(found.values[i], share, atol=1e-6)
    table = np.zeros((4, 4))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    expected = len(codes) * np.outer(found.bins[0], found.bins[1])
    np.testing.assert_allclose(found.excess[0, 1], table - expected, atol=0.5)


@pytest.mark.parametrize("mu", [math.inf, 1.0, 0.1])
def test_every_attribute_has_a_distribution_and_excess_sums_to_zero(mu):
    codes, sizes = table_of()
    found = denoise_tables(measure(codes, sizes, mu=mu), attributes_of(sizes))
    for values, bins in zip(found.values, found.bins, strict=True):
        assert (values > 0).all()
        assert values.sum() == pytest.approx(1)
        assert bins.sum() == pytest.approx(1)
    for (i, j), excess in found.excess.items():
        np.testing.assert_allclose(excess.sum(axis=0), 0, atol=1e-6 * len(codes))
        np.testing.assert_allclose(excess.sum(axis=1), 0, atol=1e-2 * len(codes))
        # Excess and expected make counts: none is below zero.
        expected = found.records * np.outer(found.bins[i], found.bins[j])
        assert (excess + expected >= -1e-6).all()
    for pair, effect in found.effect_variance.items():
        assert effect >= 0
        assert found.sigma_of(*pair) == found.sigma_of(*pair[::-1])
        np.testing.assert_array_equal(found.excess_of(*pair).T, found.excess_of(*pair[::-1]))


def test_parents_are_ranked_by_dependence():
    codes, sizes = table_of()
    found = denoise_tables(measure(codes, sizes), attributes_of(sizes))
    assert candidate_parents(found, 1, [3, 0, 2])[0] == 0
    assert candidate_parents(found, 3, [0, 1, 2])[:2] == [1, 0]
    assert candidate_parents(found, 0, []) == []


def test_margins_of_all_tables_are_more_accurate_than_one_way_tables():
    """Mean distance of shares from the truth over 30 keys: two-way tables contain margins too."""
    codes, sizes = table_of()
    truth = np.bincount(codes[:, 0], minlength=4) / len(codes)
    alone, agreed = 0.0, 0.0
    for key in range(30):
        measured = measure(codes, sizes, mu=0.3, key=key)
        own = measured.values[0] / measured.records
        alone += np.abs(own - truth).sum()
        found = denoise_tables(measured, attributes_of(sizes))
        agreed += np.abs(found.values[0] - truth).sum()
    assert agreed < alone


def test_dependent_pairs_have_higher_scores():
    """Every pair may be measured again, a dependent pair far more often than an independent one."""
    codes, sizes = table_of()
    found = dependence_scores(measure(codes, sizes, mu=1.0), attributes_of(sizes))
    assert set(found) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert min(found.values()) > 0
    assert found[0, 1] == max(found.values())
    assert found[0, 1] > 20 * found[0, 2]


def test_a_remeasured_pair_has_less_noise():
    codes, sizes = table_of()
    once = measure(codes, sizes, mu=0.5)
    tables = {pair: 8 * once.pairs[pair] for pair in [(0, 1)]}
    often = replace(
        once, remeasured=tables, remeasure_counts={(0, 1): 8}, remeasured_sigma=once.pair_sigma
    )
    found = denoise_tables(often, attributes_of(sizes))
    assert found.sigma_of(0, 1) == pytest.approx(once.pair_sigma / 3)
    assert found.sigma_of(2, 0) == once.pair_sigma


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


def test_pairs_with_significant_cells_have_high_scores():
    """20 bins, one to one: no singular value is above the noise, but every cell is."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 20, 20_000)
    codes = codes_of(records_of(np.stack([first, first, rng.integers(0, 20, 20_000)], axis=1)), 3)
    found = dependence_scores(
        measure(codes, (20, 20, 20), mu=0.015, key=2), attributes_of((20, 20, 20))
    )
    assert found[0, 1] > 0.5
    assert max(found[0, 2], found[1, 2]) < 0.1
