"""The verdict: a copy is good, noise is poor, a lost group is named."""

import polars as pl
import pytest

from deniable.evaluation import verdict
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.relation_figures import RelationFigures
from deniable.evaluation.relations import Association, Relations
from deniable.evaluation.sample_equivalent import SampleEquivalent
from deniable.evaluation.verdict import describe_relations

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
    ("kept", "relations", "lost", "gone", "grade"),
    [
        (0.6, 0.8, 0.04, False, "good"),
        (0.59, 0.8, 0.04, False, "fair"),
        (0.6, 0.79, 0.04, False, "fair"),
        (0.6, 0.8, 0.041, False, "fair"),
        (0.9, 0.9, 0.0, True, "fair"),
        (0.9, 0.4, 0.1, False, "fair"),
        (0.9, 0.39, 0.0, False, "poor"),  # a small distance does not make up for lost relations
        (0.29, 0.4, 0.0, False, "fair"),
        (0.29, None, 0.0, False, "poor"),
        (0.9, 0.9, 0.101, True, "poor"),
        (None, None, 0.0, False, "good"),
        (None, 0.2, 0.0, False, "poor"),  # a tiny table: distances show nothing, relations do
    ],
)
def test_grades_follow_the_printed_rules(kept, relations, lost, gone, grade):
    assert verdict._grade(kept, relations, lost, gone=gone, is_independent=False) == grade
    assert verdict._grade(kept, relations, lost, gone=gone, is_independent=True) == "poor"


def test_the_rules_are_printed_with_the_limits_of_the_grades():
    for limit in ("80 %", "60 %", "40 %", "30 %", "4 points", "10 points", "half of its share"):
        assert limit in verdict.GRADING_RULES


# Relations


def figures(kept, *, pairs=0.05, impossible=0.0):
    return RelationFigures(
        pairs=pairs,
        association_error=0.1,
        associations_kept=kept,
        correlation_error=None,
        correlations_kept=None,
        gap_error=None,
        gaps_kept=kept,
        impossible=impossible,
    )


def relations_of(
    kept, *, pairs=0.05, independent=0.2, by_chance=0.0, compared=10_000, strength=0.5, **sample
):
    """Relations of which a share was kept; with ``strength`` 0 there are none."""
    given = {"fraction": 0.123, "interval": (0.1, 0.15), "rows": 123, "bound": None}
    return Relations(
        released=figures(kept, pairs=pairs, impossible=0.07),
        reals=figures(1.0, pairs=0.02),
        independent=figures(None if kept is None else by_chance, pairs=independent),
        rows=compared,
        correlations=0,
        associations=(Association(names=("a", "b"), real=strength, released=0.1),),
        sample=SampleEquivalent(**{**given, "limit": 0.5, "pairs": 1, **sample}),
    )


@pytest.mark.parametrize(
    ("kept", "pairs", "is_independent"),
    [
        (0.05, 0.01, True),  # no relation is left, at whatever distance
        (0.3, 0.2, True),
        (0.3, 0.1, False),
        (0.5, 0.2, False),  # relations are left, though cells are as far
    ],
)
def test_records_no_better_than_independent_columns_are_called_so(kept, pairs, is_independent):
    relations = relations_of(kept, pairs=pairs)
    assert verdict._is_independent(relations) == is_independent
    headline = verdict._headline("poor", kept, is_independent=is_independent)
    assert ("no better than independent columns" in headline) == is_independent
    words = verdict._about_pairs(relations, verdict._dependence_kept(relations))
    assert ("no better than independent columns" in words) == (pairs == 0.2)


def test_what_chance_makes_of_no_relation_is_no_relation():
    """In a table of few rows, independent columns seem to keep some relations, too."""
    assert verdict._is_independent(relations_of(0.5, by_chance=0.45))
    assert not verdict._is_independent(relations_of(0.5, by_chance=0.2))
    assert verdict._is_independent(relations_of(0.15, compared=100))
    assert not verdict._is_independent(relations_of(0.15, compared=1_000))


def test_a_table_without_relations_is_not_blamed_for_having_lost_them():
    relations = relations_of(None, pairs=0.021, independent=0.021, strength=0.0)
    assert not verdict._is_independent(relations)
    assert "nearly independent" in verdict._about_pairs(relations, None)
    assert "there are none in the real rows" in describe_relations(relations)[0]


def test_the_headline_names_the_cause():
    assert "models trained on them" in verdict._headline("poor", 0.7, is_independent=False)
    assert "single columns" in verdict._headline("poor", 0.2, is_independent=False)


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (
            {},
            "about as good as a random sample of 12 % of the real rows (95 % interval: 10 % to 15",
        ),
        ({"fraction": 0.00451}, "random sample of 0.45 % of"),
        ({"bound": "above"}, "as good as all the real rows"),
        ({"bound": "below", "rows": 12}, "worse than a random sample of 12 of the real rows"),
    ],
)
def test_the_sample_equivalent_is_put_in_words(sample, words):
    sentence = describe_relations(relations_of(0.9, **sample))[-1].replace("\xa0", " ")
    assert words in sentence
    assert "Unlike" not in sentence
    lost = describe_relations(relations_of(0.3, **sample))[-1]
    assert ("Unlike such a sample" in lost) == ("bound" not in sample)


def test_relations_are_described_with_those_of_real_rows():
    first, _, gaps, impossible, _ = (
        sentence.replace("\xa0", " ") for sentence in describe_relations(relations_of(0.834))
    )
    assert (
        "in 1 pair of columns. Of their strength, 83 % was kept; other real rows keep 100 %"
        in first
    )
    assert "83 % was kept" in gaps
    assert "7.0 % of the records" in impossible
    reversed_ = describe_relations(relations_of(-0.4))[0].replace("\xa0", " ")
    assert " 0 % was kept" in reversed_


def test_few_rows_of_independent_columns_are_not_fair(small_schema, small_table):
    """Half a table of 60 rows is as far from the other half as independent columns are."""
    effort = Effort(runs=1, rows=100, trees=5, game=30)
    few = small_table.head(60)
    shuffled = few.select(pl.col(name).shuffle(seed=at) for at, name in enumerate(few.columns))
    found = evaluate(few, shuffled, small_schema, target="home", effort=effort).findings.verdict
    assert found.grade == "poor"
    assert found.is_independent
    assert "no better than independent columns" in found.headline
