"""Success of attacks: against scikit-learn, closed forms, and what Gaussian scores must show."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from deniable.audit.attack_success import (
    AttackTrials,
    allowed_advantage,
    measure_success,
    roc_auc,
    true_positives,
)
from deniable.audit.trade_off import allowed_by_guarantee
from deniable.errors import InvariantError


def gaussian_trials(shift, runs=200, targets=20, key=3):
    """Scores N(0, 1), moved by ``shift`` where the target is present."""
    rng = np.random.default_rng(key)
    present = rng.random((runs, targets)) < 0.5
    scores = rng.normal(size=present.shape) + shift * present
    run, target = np.indices(present.shape)
    return AttackTrials(
        scores=scores.ravel(),
        present=present.ravel(),
        targets=target.ravel(),
        runs=run.ravel(),
    )


def test_the_area_equals_that_of_another_implementation():
    trials = gaussian_trials(0.7)
    rounded = AttackTrials(
        scores=np.round(trials.scores, 1),  # with ties
        present=trials.present,
        targets=trials.targets,
        runs=trials.runs,
    )
    for each in (trials, rounded):
        assert roc_auc(each) == pytest.approx(roc_auc_score(each.present, each.scores))


def test_intervals_hold_what_gaussian_scores_have():
    """95 % each: of 40, fewer than 33 hold it with probability 10⁻³, if the keys were fresh."""
    area, rate = norm.cdf(1 / math.sqrt(2)), norm.sf(norm.isf(0.01) - 1)
    held = [0, 0]
    for key in range(40):
        trials = gaussian_trials(1.0, runs=40, key=key)
        found = measure_success(trials, epsilon=math.inf, delta=0.0)
        figures = ((found.auc, area), (found.true_positives[0.01], rate))
        for at, (figure, true) in enumerate(figures):
            held[at] += figure.interval[0] < true < figure.interval[1]
            assert figure.interval[0] < (figure.estimate or 0.0) < figure.interval[1]
        assert found.auc.interval[1] - found.auc.interval[0] < 0.12
        assert found.auc.proven < found.auc.interval[0]
    assert min(held) >= 33


def test_a_test_that_cannot_see_anything_finds_as_many_as_it_has_false_alarms():
    blind = gaussian_trials(0.0)
    tied = AttackTrials(
        scores=np.zeros_like(blind.scores),
        present=blind.present,
        targets=blind.targets,
        runs=blind.runs,
    )
    assert roc_auc(tied) == 0.5
    assert true_positives(tied, 0.01) == pytest.approx(0.01)


def test_more_than_allowed_is_found_and_less_is_not():
    strong = measure_success(gaussian_trials(3.0), epsilon=0.5, delta=1e-9)
    assert strong.exceeds
    assert strong.auc.exceeds
    weak = measure_success(gaussian_trials(0.1), epsilon=0.5, delta=1e-9)
    assert not weak.exceeds
    unlimited = measure_success(gaussian_trials(3.0), epsilon=math.inf, delta=0.0)
    assert unlimited.auc.allowed is None
    assert not unlimited.exceeds


def test_too_few_trials_give_no_rate():
    few = measure_success(gaussian_trials(1.0, runs=10, targets=2), epsilon=1.0, delta=1e-9)
    assert few.true_positives[0.001].estimate is None
    assert not few.true_positives[0.001].exceeds


def test_the_advantage_is_the_largest_distance_of_the_allowed_curve_from_guessing():
    grid = np.linspace(0, 1, 100_001)
    for epsilon, delta in ((1.0, 1e-9), (0.1, 0.01), (3.0, 0.3)):
        curve = allowed_by_guarantee(grid, epsilon=epsilon, delta=delta)
        expected = float((curve - grid).max())
        assert allowed_advantage(epsilon=epsilon, delta=delta) == pytest.approx(expected, abs=1e-4)
    assert allowed_advantage(epsilon=math.inf, delta=0.0) == 1


def test_a_score_that_is_no_number_is_refused():
    with pytest.raises(InvariantError):
        AttackTrials(
            scores=np.array([math.nan]),
            present=np.array([True]),
            targets=np.array([0]),
            runs=np.array([0]),
        )
