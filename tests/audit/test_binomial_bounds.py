"""Clopper-Pearson bounds against their definition, scipy's own, and by exact coverage."""

import numpy as np
import pytest
from scipy import stats

from deniable.audit.binomial_bounds import (
    lower_rate,
    lower_rates,
    upper_rate,
    upper_rates,
)
from deniable.errors import InvariantError

CASES = [(0, 10), (1, 10), (5, 10), (10, 10), (3, 1_000), (997, 1_000), (0, 1), (1, 1)]


@pytest.mark.parametrize(("successes", "trials"), CASES)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_a_lower_bound_is_the_rate_at_which_so_many_successes_are_just_unlikely(
    successes, trials, confidence
):
    """The definition: at the bound, that many successes or more have probability 1 - confidence."""
    bound = lower_rate(successes, trials, confidence=confidence)
    if successes == 0:
        assert bound == 0
    else:
        tail = stats.binom.sf(successes - 1, trials, bound)
        assert tail == pytest.approx(1 - confidence, rel=1e-9)


@pytest.mark.parametrize(("successes", "trials"), CASES)
def test_an_upper_bound_mirrors_the_lower_one(successes, trials):
    assert upper_rate(successes, trials) == pytest.approx(
        1 - lower_rate(trials - successes, trials)
    )
    if successes < trials:
        tail = stats.binom.cdf(successes, trials, upper_rate(successes, trials))
        assert tail == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize(("successes", "trials"), CASES)
def test_an_interval_is_that_of_scipy(successes, trials):
    theirs = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    ours = [bound(successes, trials, confidence=0.975) for bound in (lower_rate, upper_rate)]
    assert ours == pytest.approx([theirs.low, theirs.high], abs=1e-12)


@pytest.mark.parametrize("rate", [0.001, 0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("trials", [5, 50, 400])
def test_bounds_cover_the_rate_with_at_least_their_confidence(rate, trials):
    """Coverage as a sum over all outcomes: exact, so nothing is left to chance."""
    outcomes = np.arange(trials + 1)
    chances = stats.binom.pmf(outcomes, trials, rate)
    lower = lower_rates(outcomes, trials, confidence=0.95)
    upper = upper_rates(outcomes, trials, confidence=0.95)
    assert chances[lower <= rate].sum() >= 0.95 - 1e-12
    assert chances[upper >= rate].sum() >= 0.95 - 1e-12
    # A bound from the normal approximation would not: it fails for a rare event.
    if (rate, trials) == (0.02, 50):
        share = outcomes / trials
        normal = share + 1.645 * np.sqrt(share * (1 - share) / trials)
        assert chances[normal >= rate].sum() < 0.65


def test_without_trials_nothing_is_known():
    assert lower_rate(0, 0) == 0
    assert upper_rate(0, 0) == 1


@pytest.mark.parametrize(("successes", "trials"), [(-1, 10), (11, 10)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(InvariantError, match="successes"):
        lower_rate(successes, trials)
