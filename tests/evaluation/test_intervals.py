"""Confidence intervals against SciPy and against closed forms."""

import numpy as np
import pytest
from scipy import stats

from deniable.evaluation.intervals import jackknife_interval, wilson_interval


def test_wilson_is_scipys():
    for rate, trials in ((0.0, 10), (0.3, 50), (1.0, 7)):
        theirs = stats.binomtest(round(rate * trials), trials).proportion_ci(method="wilson")
        assert wilson_interval(rate, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert wilson_interval(0.5, 0) == (0.0, 1.0)


def test_the_jackknife_of_a_mean_is_its_standard_error(rng):
    """Of a mean, leaving out one value at a time gives s/√n exactly."""
    values = rng.standard_normal(30)
    low, high = jackknife_interval(values.mean(), [np.delete(values, i).mean() for i in range(30)])
    assert (high - low) / 2 == pytest.approx(1.959964 * values.std(ddof=1) / 30**0.5)
