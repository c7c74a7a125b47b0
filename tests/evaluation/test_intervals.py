"""Confidence intervals against SciPy."""

import pytest
from scipy import stats

from deniable.evaluation.intervals import wilson_interval


def test_wilson_is_scipys():
    for rate, trials in ((0.0, 10), (0.3, 50), (1.0, 7)):
        theirs = stats.binomtest(round(rate * trials), trials).proportion_ci(method="wilson")
        assert wilson_interval(rate, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert wilson_interval(0.5, 0) == (0.0, 1.0)
