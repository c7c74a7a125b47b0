"""Intervals of counts and ratios: against the test that they invert, and known special cases."""

import math

import numpy as np
import pytest
from scipy import stats

from deniable.answers.noise_intervals import (
    NoisySums,
    count_interval,
    critical_value,
    ratio_interval,
    share_interval,
)
from deniable.release.query_answer import Interval

Z = critical_value()


def sums(x, y, vx=4.0, c=1.0, vy=9.0):
    return NoisySums(numerator=x, denominator=y, variance=vx, covariance=c, denominator_variance=vy)


def test_the_critical_value_is_the_normal_one():
    assert pytest.approx(1.959964, abs=1e-6) == Z
    assert critical_value(0.99) > Z


@pytest.mark.parametrize(
    "sampling",
    [0.0, 1.0, 2.0],
)
@pytest.mark.parametrize("count", [-3.0, 0.0, 12.0, 180.0])
def test_an_interval_of_a_count_holds_what_the_test_accepts(count, sampling):
    found = count_interval(count, 25.0, z=Z, sampling=sampling, rows=200.0)
    accepted = [
        x
        for x in range(201)
        if (count - x) ** 2 <= Z**2 * (25 + sampling * x * (1 - x / 200)) + 1e-9
    ]
    assert accepted == [x for x in range(201) if found.low <= x <= found.high]
    assert found.estimate == max(count, 0.0)


def test_a_count_without_noise_is_exact():
    assert count_interval(17.0 + 1e-9, 1e-12, z=Z) == Interval(
        estimate=17.0 + 1e-9, low=17.0, high=17.0
    )


@pytest.mark.parametrize("sampling", [0.0, 1.0])
def test_a_count_far_below_zero_does_not_exclude_all_rows(sampling):
    found = count_interval(-50.0, 16.0, z=Z, sampling=sampling)
    assert (found.estimate, found.low) == (0.0, 0.0)
    # That of a count one standard deviation below 0.
    assert found.high == pytest.approx(count_interval(-4.0, 16.0, z=Z, sampling=sampling).high)
    assert found.high >= math.floor((Z - 1) * 4)
    assert count_interval(-1e-6, 1e-12, z=Z).high == 0.0


@pytest.mark.parametrize("truth", [0, 2, 5, 30])
def test_counts_near_zero_are_covered_at_the_nominal_rate(truth):
    """By the exact law of the noise, on a grid of its quantiles."""
    noise = 4.0 * stats.norm.ppf((np.arange(4_000) + 0.5) / 4_000)
    found = [count_interval(truth + e, 16.0, z=Z) for e in noise]
    assert np.mean([own.low <= truth <= own.high for own in found]) >= 0.949
    assert min(own.high for own in found) > 0


def test_shares_far_below_zero_or_above_one_keep_an_interval():
    low = share_interval(sums(-40.0, 500.0), z=Z)
    assert (low.low, low.high) == (0.0, share_interval(sums(-2.0, 500.0), z=Z).high)
    assert low.high > 0
    high = share_interval(sums(540.0, 500.0), z=Z)
    assert high.high == 1.0
    assert 0.9 < high.low < 1


@pytest.mark.parametrize("x", [-5.0, 3.0, 40.0, 60.0])
def test_an_interval_of_a_ratio_holds_what_the_test_accepts(x):
    found = ratio_interval(sums(x, 50.0), z=Z, dispersion=2.0)
    p = np.linspace(-1, 3, 4001)
    accepted = (x - p * 50) ** 2 <= Z**2 * (4 - 2 * p + 9 * p**2 + 2)
    inside = (found.low <= p) & (p <= found.high)
    assert (accepted == inside).all()
    assert found.estimate == x / 50


def test_without_noise_the_interval_of_a_share_is_wilsons():
    found = share_interval(sums(30.0, 120.0, 0, 0, 0), z=Z, sampling=1.0)
    wilson = stats.binomtest(30, 120).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high))


@pytest.mark.parametrize("rows", [-20.0, 0.0, 5.0])
def test_a_share_of_too_few_rows_may_be_anything(rows):
    found = share_interval(sums(2.0, rows), z=Z)
    assert (found.low, found.high) == (0.0, 1.0)
    assert math.isnan(found.estimate)
    assert math.isinf(ratio_interval(sums(2.0, rows), z=Z).high)


def test_shares_stay_between_0_and_1():
    assert share_interval(sums(49.0, 50.0), z=Z).high == 1.0
    assert share_interval(sums(-3.0, 50.0), z=Z).low == 0.0
