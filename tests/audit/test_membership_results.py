"""Results of membership attacks: bounds by coins and by retrainings, on made-up scores."""

import math

import pytest

from audited_tables import RUNS, made_up_results
from deniable.audit.membership_results import DENSITY, FIXED, LEARNED, RATIO, OneRunResult


def test_strong_scores_exceed_a_small_promise_by_every_measure():
    found = made_up_results(4.0, 0.5)
    assert found.success(RATIO).exceeds
    assert found.fixed_epsilon[0] > found.fixed_epsilon[1] > 0.5
    assert found.one_run.epsilon > found.one_run.proven > 0.5
    assert not found.success(DENSITY).exceeds  # the same answers in every run
    assert found.main == RATIO


def test_scores_that_show_nothing_exceed_nothing():
    found = made_up_results(0.0, 0.1)
    assert not any(found.success(attack).exceeds for attack in found.trials)
    assert found.fixed_epsilon[1] == 0
    assert found.one_run.proven == 0


def test_results_are_given_by_tenth_and_for_the_most_exposed():
    found = made_up_results(1.0, math.inf)
    assert list(found.trials) == [FIXED, RATIO, DENSITY, LEARNED]
    deciles = found.by_decile(RATIO)
    assert list(deciles) == list(range(1, 11))
    assert all(sum(each.trials) == 2 * RUNS for each in deciles.values())
    written = found.document()["attacks"][RATIO]
    assert written["all"]["trials"]["with"] + written["all"]["trials"]["without"] == 600
    assert sum(written["most_exposed"]["trials"].values()) == 300


def test_guesses_are_of_the_largest_and_smallest_scores():
    coins = [True] * 50 + [False] * 50
    perfect = OneRunResult.of(list(range(100, 0, -1)), coins, delta=0.0)
    assert (perfect.guesses, perfect.correct) == (20, 20)
    # Pr[20 of 20 right] = p^20 = 5 %, and p = e^ε / (1 + e^ε).
    p = 0.05 ** (1 / 20)
    assert perfect.epsilon == pytest.approx(math.log(p / (1 - p)), abs=1e-4)
    wrong = OneRunResult.of(list(range(100)), coins, delta=0.0)
    assert (wrong.correct, wrong.epsilon) == (0, 0)
