"""Noisy pairs: noise alone shows nothing, what is there survives, tables agree with each other."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deniable.engine.local import count
from deniable.model.pairs import learn_pairs
from deniable.model.shrinkage import (
    centred,
    decide,
    fill,
    find_dependence,
    rake,
    shrink,
    stands_out,
    strengths,
    strongest,
)
from deniable.privacy.pairs import pair_noise
from deniable.randomness import Keyed
from worlds import codes_of, plain_attribute, property_test, records_of

shapes = st.tuples(st.integers(2, 9), st.integers(2, 9))


def noise(rows, columns, key, sigma=1.0):
    """White noise whose rows and columns were made to sum to zero, as that of a table."""
    return centred(sigma * np.random.default_rng(key).normal(size=(rows, columns)))


def signal(rows, columns, size):
    """One direction of so large a singular value, rows and columns summing to zero."""
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
        left.append(np.linalg.norm(shrink(table, 1.0)))
        before.append(np.linalg.norm(table))
    survived = int(np.count_nonzero(left))
    rate = 1 / 5 if min(rows, columns) > 3 else 1 / 3
    assert stats.binom.sf(survived - 1, 400, rate) > 1e-6, f"{survived} of 400 were not zero"
    assert np.sum(np.square(left)) < 0.3 * np.sum(np.square(before))


@property_test
@given(shapes, st.integers(0, 2**32))
def test_without_noise_nothing_is_taken_off(shape, key):
    table = noise(*shape, key)
    np.testing.assert_allclose(shrink(table, 0.0), table, atol=1e-9)


@property_test
@given(shapes, st.integers(0, 2**32), st.floats(0.1, 10))
def test_shrinking_adds_nothing_and_keeps_rows_and_columns_at_zero(shape, key, sigma):
    table = noise(*shape, key) + signal(*shape, 5.0)
    shrunk = shrink(table, sigma)
    found, kept = (np.linalg.svd(each, compute_uv=False) for each in (table, shrunk))
    assert (kept <= found + 1e-9).all()
    np.testing.assert_allclose(shrunk.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(shrunk.sum(axis=1), 0, atol=1e-9)


@pytest.mark.parametrize("size", [0.0, 5.0, 15.0, 60.0])
def test_what_is_shrunk_is_nearer_to_the_truth_than_what_is_not(size):
    """Mean squares over 100 tables; and a strong signal survives nearly whole."""
    truth = signal(10, 12, size)
    raw, shrunk = 0.0, 0.0
    for key in range(100):
        table = truth + noise(10, 12, key)
        raw += np.square(table - truth).sum()
        shrunk += np.square(shrink(table, 1.0) - truth).sum()
    assert shrunk < 0.6 * raw
    if size == 60.0:
        assert shrunk < 0.05 * 100 * size**2


def test_a_table_of_one_row_says_nothing():
    assert not shrink(np.ones((1, 5)), 1.0).any()
    assert not shrink(np.ones((5, 1)), 1.0).any()


@property_test
@given(shapes, st.integers(0, 2**32))
def test_a_raked_table_has_its_margins_and_nothing_below_zero(shape, key):
    rng = np.random.default_rng(key)
    rows, columns = rng.random(shape[0]) + 0.1, rng.random(shape[1]) + 0.1
    rows, columns = 100 * rows / rows.sum(), 100 * columns / columns.sum()
    fitted = rake(np.outer(rows, columns) / 100 + rng.normal(size=shape), rows, columns)
    assert (fitted > 0).all()
    np.testing.assert_allclose(fitted.sum(axis=0), columns, rtol=1e-9)
    np.testing.assert_allclose(fitted.sum(axis=1), rows, rtol=0.05)


# Tables in agreement


def attributes_of(sizes):
    return [plain_attribute(f"x{i}", size) for i, size in enumerate(sizes)]


def measure(codes, sizes, *, mu=math.inf, key=1):
    attributes = attributes_of(sizes)
    laws = replace(pair_noise(sizes, mu_values=mu, mu_pairs=mu), looks=0)
    measured, _ = learn_pairs(
        Keyed(key).at("noise"),
        partial(count, attributes, codes, workers=1),
        lambda binned: partial(count, binned, codes, workers=1),
        attributes,
        laws,
    )
    return measured


def table_of(rows=6_000, key=3):
    """x1 follows x0; x2 is by itself; x3 follows x1, weakly."""
    rng = np.random.default_rng(key)
    first = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    second = np.where(rng.random(rows) < 0.7, first, rng.integers(0, 4, rows))
    third = rng.integers(0, 3, rows)
    fourth = np.where(rng.random(rows) < 0.3, second % 2, rng.integers(0, 2, rows))
    columns = [first, second, third, fourth]
    return codes_of(records_of(np.stack(columns, axis=1)), 4), (4, 4, 3, 2)


def test_a_bin_that_noise_hid_keeps_a_quarter_of_its_deviation():
    """As a rare missing cell: every table says that nobody is there."""
    codes, sizes = table_of()
    seen = measure(codes, sizes, mu=0.5)
    assert [int(groups.max()) + 1 for groups in seen.bins] == list(sizes)
    values = [table.copy() for table in seen.values]
    pairs = {pair: table.copy() for pair, table in seen.pairs.items()}
    # Who was there is in the next bin, and 40 more in each cell: totals stay.
    for table in (values[2], pairs[0, 2].T, pairs[1, 2].T, pairs[2, 3]):
        table[1] += table[0] + 40
        table[0] = -40
    hidden = replace(seen, values=tuple(values), pairs=pairs)
    others = sum(1 / (seen.sigma**2 * sizes[j]) for j in (0, 1, 3))
    sure = 1 / seen.sigmas[2] ** 2 + others
    found = find_dependence(hidden, attributes_of(sizes))
    assert found.bins[2][0] * found.records == pytest.approx(0.25 / math.sqrt(sure), rel=0.01)


def test_without_noise_values_and_excess_are_those_of_the_table():
    codes, sizes = table_of()
    found = find_dependence(measure(codes, sizes), attributes_of(sizes))
    assert found.records == pytest.approx(len(codes))
    for i, size in enumerate(sizes):
        share = np.bincount(codes[:, i], minlength=size) / len(codes)
        np.testing.assert_allclose(found.values[i], share, atol=1e-6)
    table = np.zeros((4, 4))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    expected = len(codes) * np.outer(found.bins[0], found.bins[1])
    np.testing.assert_allclose(found.excess[0, 1], table - expected, atol=0.5)


@pytest.mark.parametrize("mu", [math.inf, 1.0, 0.1])
def test_every_attribute_has_a_distribution_and_excess_sums_to_nothing(mu):
    codes, sizes = table_of()
    found = find_dependence(measure(codes, sizes, mu=mu), attributes_of(sizes))
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
    for pair, effect in found.effect.items():
        assert effect >= 0
        assert found.sigma_of(*pair) == found.sigma_of(*pair[::-1])
        np.testing.assert_array_equal(found.excess_of(*pair).T, found.excess_of(*pair[::-1]))


def test_parents_are_ranked_by_what_they_say():
    codes, sizes = table_of()
    found = find_dependence(measure(codes, sizes), attributes_of(sizes))
    assert strongest(found, 1, [3, 0, 2])[0] == 0
    assert strongest(found, 3, [0, 1, 2])[:2] == [1, 0]
    assert strongest(found, 0, []) == []


def test_values_and_pairs_together_know_more_than_values_alone():
    """The mean distance of shares from the truth over 30 keys: pairs speak of values too."""
    codes, sizes = table_of()
    truth = np.bincount(codes[:, 0], minlength=4) / len(codes)
    alone, agreed = 0.0, 0.0
    for key in range(30):
        measured = measure(codes, sizes, mu=0.3, key=key)
        own = measured.values[0] / measured.records
        alone += np.abs(own - truth).sum()
        found = find_dependence(measured, attributes_of(sizes))
        agreed += np.abs(found.values[0] - truth).sum()
    assert agreed < alone


def test_the_second_look_goes_where_dependence_is():
    """Every pair may be looked at again; one that depends gets far more than one that does not."""
    codes, sizes = table_of()
    found = strengths(measure(codes, sizes, mu=1.0), attributes_of(sizes))
    assert set(found) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert min(found.values()) > 0
    assert found[0, 1] == max(found.values())
    assert found[0, 1] > 20 * found[0, 2]


def test_a_pair_that_is_looked_at_often_has_less_noise():
    codes, sizes = table_of()
    once = measure(codes, sizes, mu=0.5)
    tables = {pair: 8 * once.pairs[pair] for pair in [(0, 1)]}
    often = replace(once, again=tables, looks={(0, 1): 8}, sigma_again=once.sigma)
    found = find_dependence(often, attributes_of(sizes))
    assert found.sigma_of(0, 1) == pytest.approx(once.sigma / 3)
    assert found.sigma_of(2, 0) == once.sigma


# One attribute that decides another


def one_to_one(bins, rows):
    """Every bin of one goes with one bin of the other."""
    return np.eye(bins) * rows / bins


@pytest.mark.parametrize("key", range(5))
def test_a_table_that_has_all_directions_is_believed_by_its_cells(key):
    """16 bins, 10,000 records, σ = 70: each singular value is 625, and noise makes up to 560. By
    directions half of the records would leave their cell."""
    truth, margin = one_to_one(16, 10_000), np.full(16, 625.0)
    expected = np.outer(margin, margin) / 10_000
    seen = centred(truth - expected) + noise(16, 16, key, sigma=70.0)
    table = decide(seen, 70.0, margin, margin)
    assert np.abs(table - truth).sum() / 20_000 < 0.08
    by_direction = rake(expected + shrink(seen, 70.0), margin, margin)
    assert np.abs(by_direction - truth).sum() / 20_000 > 0.25
    np.testing.assert_allclose(table.sum(axis=0), margin, rtol=1e-6)


def test_what_decides_nothing_is_left_to_directions():
    """Without noise; with too few records in cells that stand out; and where these are not all."""
    margin = np.full(16, 625.0)
    expected = np.outer(margin, margin) / 10_000
    truth = one_to_one(16, 10_000)
    assert decide(centred(truth - expected), 0.0, margin, margin) is None
    half = 0.5 * truth + 0.5 * expected
    assert decide(centred(half - expected), 50.0, margin, margin) is None
    beside = 0.85 * truth + 0.15 * np.roll(truth, 1, axis=1)
    assert decide(centred(beside - expected), 18.0, margin, margin) is None
    assert decide(centred(beside - expected), 60.0, margin, margin) is not None


def test_cells_keep_what_they_hold_and_the_others_share_the_rest():
    rows, columns = np.array([60.0, 40.0]), np.array([30.0, 30.0, 40.0])
    held = np.array([[20.0, 0.0, 0.0], [0.0, 0.0, 40.0]])
    expected = [[20.0, 30.0, 0.0], [0.0, 0.0, 40.0]]
    found = fill(held, np.array([50.0, 40.0]), np.array([20.0, 30.0, 40.0]))
    np.testing.assert_allclose(found, expected, atol=0.2)
    table = fill(held, rows, columns)
    np.testing.assert_allclose(table.sum(axis=0), columns, rtol=1e-6)
    assert min(table[1, 2] / 40, table[0, 0] / 20) > 0.9


def test_no_cell_holds_more_than_its_row_or_column():
    rows = columns = np.array([50.0, 50.0])
    table = fill(np.array([[80.0, 0.0], [0.0, 45.0]]), rows, columns)
    np.testing.assert_allclose(table, [[47.5, 2.5], [2.5, 47.5]], atol=2.6)
    assert table.sum() == pytest.approx(100)


@pytest.mark.parametrize("shape", [(4, 5), (20, 20)])
def test_noise_seldom_stands_out(shape):
    """Above σ √(2 ln n) lies the fullest of n cells of noise at most once in three times. 400
    tables; one-sided false-alarm rate 1e-6, fixed keys."""
    found = sum(bool(stands_out(noise(*shape, key), 1.0).any()) for key in range(400))
    assert stats.binom.sf(found - 1, 400, 1 / 3) > 1e-6
    assert stands_out(np.array([[3.0, 1.0], [1.0, 1.0]]), 1.0).tolist() == [
        [True, False],
        [False, False],
    ]


def test_pairs_that_stand_out_by_cells_are_looked_at_again():
    """20 bins, one to one, where the first look shows no direction but every cell."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 20, 20_000)
    codes = codes_of(records_of(np.stack([first, first, rng.integers(0, 20, 20_000)], axis=1)), 3)
    found = strengths(measure(codes, (20, 20, 20), mu=0.015, key=2), attributes_of((20, 20, 20)))
    assert found[0, 1] > 0.5
    assert max(found[0, 2], found[1, 2]) < 0.1
