"""Results of membership attacks on made-up scores."""

import math

from audited_tables import RUNS, TARGETS, made_up_results
from deniable.audit.membership_results import LEARNED, RATIO


def test_strong_scores_exceed_a_small_promise():
    found = made_up_results(4.0, 0.5)
    assert found.success(RATIO).exceeds
    assert not found.success(LEARNED).exceeds  # the same answers in every run
    assert found.main == RATIO


def test_scores_that_show_nothing_exceed_nothing():
    found = made_up_results(0.0, 0.1)
    assert not any(found.success(attack).exceeds for attack in found.trials)


def test_results_are_given_for_all_targets_and_for_the_most_exposed():
    found = made_up_results(1.0, math.inf)
    assert list(found.trials) == [RATIO, LEARNED]
    written = found.document()["attacks"][RATIO]
    assert sum(written["all"]["trials"].values()) == RUNS * TARGETS
    assert sum(written["most_exposed"]["trials"].values()) == RUNS * 10
