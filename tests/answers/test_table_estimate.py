"""Least squares in closed form: against dense matrices, and against all outcomes of small noise."""

from itertools import product

import numpy as np
import pytest

from deniable.answers.table_estimate import MarginEstimate, TableEstimate, TotalEstimate

SIZES = (3, 2, 4)
# The number of bins of three columns, and the variance of a cell of each measured table.
VARIANCES = {(0, 1): 4.0, (0, 2): 9.0, (1, 2): 2.5}
# Two rows of the coarse table are unions of bins.
GROUPS = np.array([0, 1, 1])


def margin_matrix(kept, sizes=SIZES):
    """The matrix that sums a joint table to the margin of ``kept`` columns."""
    cells = list(product(*map(range, sizes)))
    keys = list(product(*(range(sizes[i]) for i in kept)))
    matrix = np.zeros((len(keys), len(cells)))
    for at, cell in enumerate(cells):
        matrix[keys.index(tuple(cell[i] for i in kept)), at] = 1
    return matrix


def dense_least_squares(design, noise, observed, wanted):
    """Generalised least squares, literally: the estimate of ``wanted`` and its covariance."""
    weight = np.linalg.pinv(noise, rcond=1e-10)
    normal = np.linalg.pinv(design.T @ weight @ design, rcond=1e-10)
    return wanted @ normal @ design.T @ weight @ observed, wanted @ normal @ wanted.T


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(3)
    joint = rng.integers(0, 30, size=24).astype(float)
    return {
        pair: margin_matrix(pair) @ joint
        + np.sqrt(variance) * rng.standard_normal(SIZES[pair[0]] * SIZES[pair[1]])
        for pair, variance in VARIANCES.items()
    }


def shaped(tables, pair):
    return tables[pair].reshape(SIZES[pair[0]], SIZES[pair[1]])


def margin(tables, column):
    margins, variances = [], []
    for pair, variance in VARIANCES.items():
        if column in pair:
            axis = pair.index(column)
            margins.append(shaped(tables, pair).sum(axis=1 - axis))
            variances.append(variance * SIZES[pair[1 - axis]])
    return MarginEstimate.combine(margins, variances)


def total(tables):
    sums = [table.sum() for table in tables.values()]
    return TotalEstimate.combine(sums, [VARIANCES[pair] * tables[pair].size for pair in tables])


def estimate(tables, *, interactions, variance, row_of, rows=None):
    return TableEstimate(
        interactions=interactions,
        interaction_variance=variance,
        row_of=row_of,
        rows=margin(tables, 0) if rows is None else rows,
        column_of=np.arange(2),
        columns=margin(tables, 1),
        total=total(tables),
    )


def covariance_matrix(found):
    a, b = found.shape
    units = [unit.reshape(a, b) for unit in np.eye(a * b)]
    return np.array([[found.covariance(one, two) for two in units] for one in units])


def fine(tables, **other):
    return estimate(
        tables,
        interactions=shaped(tables, (0, 1)),
        variance=VARIANCES[0, 1],
        row_of=np.arange(3),
        **other,
    )


def assert_is_least_squares(found, expected, covariance):
    assert np.allclose(found.cells.ravel(), expected)
    assert np.allclose(covariance_matrix(found), covariance)


def fine_oracle(tables):
    design = np.concatenate([margin_matrix(pair) for pair in VARIANCES])
    noise = np.diag(np.concatenate([np.full(tables[p].size, v) for p, v in VARIANCES.items()]))
    observed = np.concatenate([tables[pair] for pair in VARIANCES])
    return dense_least_squares(design, noise, observed, margin_matrix((0, 1)))


def test_all_tables_of_three_columns_are_combined_as_by_dense_matrices(tables):
    assert_is_least_squares(fine(tables), *fine_oracle(tables))


def test_a_margin_that_is_counted_twice_is_caught(tables):
    once = margin(tables, 0)
    twice = MarginEstimate.combine([once.effects] * 2, [once.variance] * 2)
    with pytest.raises(AssertionError):
        assert_is_least_squares(fine(tables, rows=twice), *fine_oracle(tables))


def test_interactions_of_groups_are_combined_with_the_margins_of_bins(tables):
    """The table of the pair itself gives margins only: its interactions are not used."""
    rng = np.random.default_rng(4)
    variance = 1.7
    centring = np.kron(np.eye(2) - 1 / 2, np.eye(2) - 1 / 2)
    coarse = np.kron((np.arange(2)[:, None] == GROUPS).astype(float), np.eye(2))
    to_groups = coarse @ margin_matrix((0, 1))
    noisy = rng.standard_normal(4) * np.sqrt(variance) + np.array([30.0, -30, -30, 30])

    designs, noises, observed = [centring @ to_groups], [variance * centring], [centring @ noisy]
    for pair, own in VARIANCES.items():
        a, b = (SIZES[i] for i in pair)
        sums = np.concatenate([np.kron(np.eye(a), np.ones(b)), np.kron(np.ones(a), np.eye(b))])
        designs.append(sums @ margin_matrix(pair))
        noises.append(own * sums @ sums.T)
        observed.append(sums @ tables[pair])
    size = sum(map(len, designs))
    noise, at = np.zeros((size, size)), 0
    for block in noises:
        noise[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    expected = dense_least_squares(
        np.concatenate(designs), noise, np.concatenate(observed), to_groups
    )
    found = estimate(tables, interactions=noisy.reshape(2, 2), variance=variance, row_of=GROUPS)
    assert_is_least_squares(found, *expected)


def test_the_variance_is_that_of_all_outcomes_of_small_noise():
    """A 2 × 2 table with noise of -1, 0 or 1: 81 equally likely outcomes."""
    exact = np.array([[7.0, 2.0], [0.0, 5.0]])
    outcomes = []
    for noise in product((-1, 0, 1), repeat=4):
        table = exact + np.reshape(noise, (2, 2))
        found = TableEstimate(
            interactions=table,
            interaction_variance=2 / 3,
            row_of=np.arange(2),
            rows=MarginEstimate.combine([table.sum(axis=1)], [4 / 3]),
            column_of=np.arange(2),
            columns=MarginEstimate.combine([table.sum(axis=0)], [4 / 3]),
            total=TotalEstimate.combine([table.sum()], [8 / 3]),
        )
        outcomes.append(found.cells)
    assert np.allclose(np.mean(outcomes, axis=0), exact)
    for weights in (np.eye(2), np.ones((2, 2)), np.array([[1.0, 0], [0, 0]])):
        sums = [(weights * cells).sum() for cells in outcomes]
        assert np.isclose(np.var(sums), found.variance(weights))
        assert np.isclose(np.mean(sums), (weights * exact).sum())
