"""Rank correlations against SciPy, with ties, missing numbers and groups."""

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from deniable.drafting.rank_correlation import rank, rank_correlation


def numbers(key, size=500):
    """Two related columns with many ties."""
    draws = np.random.default_rng(key)
    one = draws.integers(0, 30, size).astype(float)
    return one, np.round(one / 3 + draws.normal(0, 3, size))


@pytest.mark.parametrize("key", range(5))
def test_it_is_spearmans_correlation(key):
    one, two = numbers(key)
    assert rank_correlation(rank(one), rank(two)) == pytest.approx(spearmanr(one, two).statistic)


def test_ranks_are_centred_means_and_missing_numbers_have_none():
    one, _ = numbers(7)
    one[::9] = np.nan
    present = np.isfinite(one)
    found, known = rank(one), rankdata(one[present])
    assert found[present] == pytest.approx((known - known.mean()) / present.sum())
    assert not found[~present].any()


def test_groups_are_ranked_apart():
    one, two = numbers(8)
    groups = np.random.default_rng(9).integers(0, 4, len(one))
    found = rank(two, groups)
    for group in range(4):
        own = groups == group
        assert found[own] == pytest.approx(rank(two[own]))
    assert rank_correlation(rank(one, groups), found) > 0.5


def test_constants_and_few_rows_have_no_correlation():
    one, two = numbers(10)
    assert rank_correlation(rank(one), rank(np.zeros(len(one)))) == 0
    assert rank_correlation(rank(one), rank(two), least=len(one) + 1) == 0
    assert rank_correlation(rank(np.empty(0)), rank(np.empty(0))) == 0
