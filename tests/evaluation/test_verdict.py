"""The verdict: a copy is good, noise is poor, a lost group is named."""

import polars as pl
import pytest

from deniable.evaluation import verdict
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate

pytestmark = pytest.mark.slow


def test_a_copy_of_the_table_is_good_and_noise_is_poor(small_table, small_schema):
    effort = Effort(runs=1, rows=1_000, trees=10, game=500)
    copy = evaluate(small_table, small_table, small_schema, target="home", effort=effort)
    assert copy.findings.verdict.grade == "good"
    noise = small_table.select(
        pl.col(name).shuffle(seed=at) for at, name in enumerate(small_table.columns)
    )
    poor = evaluate(small_table, noise, small_schema, target="home", effort=effort)
    assert poor.findings.verdict.grade == "poor"
    assert poor.findings.verdict.kept is not None
    assert copy.findings.verdict.kept is not None
    assert poor.findings.verdict.kept < 0.3
    assert copy.findings.verdict.kept > 0.9


def test_a_release_that_lost_a_group_is_at_best_fair_and_names_it(small_table, small_schema):
    effort = Effort(runs=1, rows=1_000, trees=10, game=500)
    without = small_table.filter(pl.col("pet") != "pangolin")
    found = evaluate(small_table, without, small_schema, target="home", effort=effort)
    assert found.findings.verdict.grade != "good"
    assert "pet pangolin" in found.findings.verdict.findings[-1]


@pytest.mark.parametrize(
    ("kept", "lost", "gone", "grade"),
    [
        (0.6, 0.04, False, "good"),
        (0.59, 0.04, False, "fair"),
        (0.6, 0.041, False, "fair"),
        (0.9, 0.0, True, "fair"),
        (0.3, 0.1, False, "fair"),
        (0.29, 0.0, False, "poor"),
        (0.9, 0.101, True, "poor"),
        (None, 0.0, False, "good"),
    ],
)
def test_grades_follow_the_printed_rules(kept, lost, gone, grade):
    assert verdict._grade(kept, lost, gone=gone) == grade


def test_the_rules_are_printed_with_the_limits_of_the_grades():
    for limit in ("60 %", "30 %", "4 points", "10 points", "half of its share"):
        assert limit in verdict.GRADING_RULES
