"""One-hot designs: products are those of scipy.sparse, to the last bit."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, diags

from deniable.model.pairwise.one_hot_design import OneHotDesign


def random_design(key, *, rows, columns):
    """A design with blocks of one, two and three ones in a row, and SciPy's form of it."""
    rng = np.random.default_rng(key)
    blocks = [
        rng.permuted(np.tile(np.arange(columns), (rows, 1)), axis=1)[:, :n] for n in (1, 2, 3)
    ]
    design = OneHotDesign.of(blocks, columns=columns)
    ones = np.ones(len(design.places), dtype=np.float32)
    shape = (3 * rows, columns)
    return design, csr_matrix((ones, design.places, design.row_ends), shape=shape), rng


def test_rows_have_ones_in_their_columns():
    design = OneHotDesign.of([np.array([[0, 2], [1, 2]]), np.array([[3]])], columns=4)
    assert design.rows == 3
    identity = np.eye(4, dtype=np.float32)
    assert design.times(identity).tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("values", [1, 5, 24])
def test_products_are_those_of_scipy_to_the_last_bit(values):
    """A sum in another order would change the last bits, and with them every record."""
    design, matrix, rng = random_design(values, rows=400, columns=9)
    by_column = rng.normal(size=(9, values)).astype(np.float32)
    by_row = rng.normal(size=(1_200, values)).astype(np.float32)
    weights = rng.integers(1, 40, 1_200) * 4.37
    factors = weights.astype(np.float32)
    weighted = (matrix.T @ diags(factors)).tocsr()
    assert np.array_equal(design.times(by_column), matrix @ by_column)
    assert np.array_equal(design.transposed_times(by_row), matrix.T @ by_row)
    total = np.zeros((9, values), dtype=np.float32)
    design.add_transposed_times(total, by_row, factors)
    assert np.array_equal(total, weighted @ by_row)


def test_a_product_can_be_put_into_an_array_that_was_used_before():
    design, matrix, rng = random_design(3, rows=40, columns=9)
    by_column = rng.normal(size=(9, 5)).astype(np.float32)
    out = np.full((30, 5), np.nan, dtype=np.float32)
    for rows in (slice(0, 30), slice(50, 80), slice(0, 30)):
        assert design.times(by_column, rows, out=out) is out
        assert np.array_equal(out, matrix[rows] @ by_column)


def test_blocks_of_rows_add_up_to_all_rows_to_the_last_bit():
    """Also across rows of one, two and three ones."""
    design, matrix, rng = random_design(3, rows=50, columns=6)
    by_column = rng.normal(size=(6, 4)).astype(np.float32)
    by_row, weights = rng.normal(size=(150, 4)), rng.random(150)
    by_row, weights = by_row.astype(np.float32), weights.astype(np.float32)
    total, parts = np.zeros((6, 4), dtype=np.float32), []
    for rows in (slice(0, 37), slice(37, 100), slice(100, 170)):
        parts.append(design.times(by_column, rows))
        design.add_transposed_times(total, by_row[rows], weights[rows], rows)
    whole = np.zeros((6, 4), dtype=np.float32)
    design.add_transposed_times(whole, by_row, weights)
    assert np.array_equal(np.concatenate(parts), matrix @ by_column)
    assert np.array_equal(total, whole)
    assert whole.any()


def test_a_matrix_that_is_not_contiguous_is_multiplied_by_its_rows():
    design, matrix, rng = random_design(1, rows=30, columns=5)
    dense = rng.normal(size=(4, 5)).astype(np.float32).T
    assert np.array_equal(design.times(dense), matrix @ dense)
