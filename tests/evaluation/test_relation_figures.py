"""Figures of relations: Cramér's V, kept shares, and the choice of columns."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import contingency

from deniable.evaluation.relation_figures import ColumnSets, choose_sets, cramers_v, kept_share
from deniable.randomness import Keyed


def test_v_is_one_for_a_copy_and_zero_for_independent_columns():
    assert cramers_v(np.diag([100, 200, 300])) == pytest.approx(1)
    assert cramers_v(np.outer([100, 200], [50, 60, 70])) == 0
    assert cramers_v(np.array([[5, 7]])) == 0
    assert cramers_v(np.array([[5, 0], [7, 0]])) == 0


def test_for_many_rows_v_is_that_of_scipy(rng):
    """Without a correction of the bias, which vanishes with the number of rows."""
    table = rng.integers(1, 50, (4, 6)) * 100_000
    expected = contingency.association(table, method="cramer")
    assert cramers_v(table) == pytest.approx(expected, abs=1e-4)
    padded = np.zeros((6, 6), dtype=np.int64)
    padded[:4] = table
    assert cramers_v(padded) == cramers_v(table)


def test_the_bias_of_few_rows_is_corrected(rng):
    """Means of 300 tables of 100 independent rows: 0.03 is ten standard errors above the bias."""
    found, biased = [], []
    for _ in range(300):
        table = np.bincount(rng.integers(0, 25, 100), minlength=25).reshape(5, 5)
        found.append(cramers_v(table))
        biased.append(contingency.association(table, method="cramer"))
    assert np.mean(biased) > 0.17
    assert np.mean(found) < 0.07


def test_a_kept_share_is_at_most_one_and_at_least_minus_one():
    found = kept_share(np.array([0.0, 0.4, 1.0, 1.3, 2.5, -0.2, -3.0, 9.0]))
    assert found == pytest.approx([0, 0.4, 1, 0.7, -0.5, -0.2, -1, -1])


def test_all_sets_of_few_columns_are_compared():
    sets = ColumnSets.choose(6, Keyed(0).at("records"))
    assert sets.pairs == list(combinations(range(6), 2))
    assert sets.groupings == list(range(6))


def test_of_many_columns_a_bounded_sample_is_compared():
    sets = ColumnSets.choose(5_000, Keyed(0).at("records"))
    assert (len(sets.pairs), len(sets.groupings)) == (400, 60)
    assert sets.pairs == sorted(set(sets.pairs))
    assert all(a < b for a, b in sets.pairs)
    assert sets == ColumnSets.choose(5_000, Keyed(0).at("records"))


def test_every_set_can_be_drawn():
    drawn = {
        pair
        for block in range(40)
        for pair in choose_sets(6, 2, limit=3, rng=Keyed(1).at("records", block))
    }
    assert drawn == set(combinations(range(6), 2))
