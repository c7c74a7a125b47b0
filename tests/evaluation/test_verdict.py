"""The verdict: one table of measures gives grade and sentences; a copy is good, noise is poor."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.evaluation import verdict
from deniable.evaluation.distances import Distances
from deniable.evaluation.distinguishability import ClassifierRound, Distinguishability
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.ml_efficacy import Coefficient, MlEfficacy, Score
from deniable.evaluation.relation_figures import RelationFigures
from deniable.evaluation.relations import Association, Relations
from deniable.evaluation.sample_equivalent import SampleEquivalent
from deniable.evaluation.subgroups import Subgroup, SubgroupFindings
from deniable.evaluation.verdict import MEASURES, Finding, Verdict, describe_relations, judge
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

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
    assert poor.findings.verdict.values["pairs"] < 0.3
    assert copy.findings.verdict.values["pairs"] > 0.9


def test_a_release_that_lost_a_group_is_at_best_fair_and_names_it(small_table, small_schema):
    effort = Effort(runs=1, rows=1_000, trees=10, game=500)
    without = small_table.filter(pl.col("pet") != "pangolin")
    found = evaluate(small_table, without, small_schema, target="home", effort=effort)
    assert found.findings.verdict.grade != "good"
    assert "small groups lost" in found.findings.verdict.headline
    assert "pet pangolin" in found.findings.verdict.findings[-1]


# Grade


def verdict_of(**values):
    return Verdict(results=(Finding(sentence="", values=values),))


@pytest.mark.parametrize(
    ("values", "grade"),
    [
        ({"relations": 0.8, "pairs": 0.6, "columns": 0.0, "learning": 0.0, "groups": 0}, "good"),
        ({"relations": 0.79, "pairs": 0.6}, "fair"),
        ({"relations": 0.8, "pairs": 0.59}, "fair"),
        ({"relations": 0.4, "pairs": 0.9}, "fair"),
        ({"relations": 0.39, "pairs": 0.9}, "poor"),
        ({"relations": 0.9, "pairs": 0.049}, "poor"),
        ({"pairs": 0.05}, "fair"),
        ({"learning": 0.0399}, "good"),
        ({"learning": 0.04}, "fair"),
        ({"learning": 0.1}, "poor"),
        ({"learning": 0.03, "learnt": 0.4}, "fair"),
        ({"relations": 0.98, "groups": 1}, "fair"),
        ({"relations": 0.98, "moved": 0.0199}, "good"),
        ({"relations": 0.98, "moved": 0.02}, "fair"),
        ({"relations": 0.3, "moved": 0.02}, "poor"),
        ({"moved": 0.0}, "unknown"),
        ({"columns": 0.1}, "fair"),
        ({"columns": 0.5}, "poor"),
        ({"columns": 0.0}, "good"),
        ({"groups": 0}, "unknown"),  # that no group is lost does not make a release good
        ({}, "unknown"),
    ],
)
def test_the_grade_is_the_worst_of_what_was_measured(values, grade):
    assert verdict_of(**values).grade == grade


def test_the_rules_are_printed_with_the_limits_of_the_grades():
    for limit in ("80 %", "60 %", "40 %", "5 %", "4 points", "10 points", "half of its share"):
        assert limit in verdict.GRADING_RULES
    for each in MEASURES:
        assert (each.poor_rule == "") == math.isinf(each.poor)
        assert each.good_rule in verdict.GRADING_RULES


@given(
    st.dictionaries(
        st.sampled_from([each.name for each in MEASURES]), st.floats(-0.5, 1.5), max_size=7
    )
)
def test_the_headline_has_exactly_the_reasons_of_the_grade(values):
    found = verdict_of(**values)
    for each in MEASURES:
        grade = found.grades.get(each.name)
        for reason, of in zip(each.reasons, ("fair", "poor"), strict=True):
            named = bool(reason) and f"{reason}" in found.headline
            assert named == (bool(reason) and grade == of == found.grade)
    assert ("can replace" in found.headline) == (found.grade == "good")


def test_without_relations_only_single_columns_are_praised():
    assert verdict_of(columns=0.0).headline.startswith("In single columns")
    assert verdict_of(relations=0.9).headline.startswith("These records can replace")


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
        associations=(Association(names=("a", "b"), real=strength, released=0.1, limit=1.0),),
        sample=SampleEquivalent(**{**given, "limit": 0.5, "pairs": 1, **sample}),
    )


# Any figures


def learning_of(real, released, guessing, *, beats=True, coefficients=()):
    def score(value, beats_guessing):
        return Score(
            value=value,
            interval=None,
            spread=(value, value),
            agreement=1.0,
            beats_guessing=beats_guessing,
        )

    scores = {"real": score(real, beats), "released": score(released, True)}
    return MlEfficacy(
        target="income",
        task="classification",
        scores={"forest": scores},
        baseline=guessing,
        event="income = high",
        coefficients=coefficients,
        rows=100,
        test_rows=100,
        runs=1,
        held_out=False,
    )


def group_of(*, is_lost):
    return Subgroup(
        attribute="pet",
        value="pangolin",
        rows=60,
        share=0.01,
        released=0.0,
        distance=1.0,
        chance=0.1,
        is_lost=is_lost,
    )


def judged(relations, learning, columns, lost):
    rounds = ClassifierRound(accuracy=0.5, interval=(0.4, 0.6), trained_on=10, tested_on=10)
    one = Distances(names=(("a",), ("b",)), values=(columns, 0.0))
    same = Distances(names=(("a",), ("b",)), values=(0.01, 0.0))
    return judge(
        {"attributes": {"released": one, "reals": same}},
        relations,
        learning,
        Distinguishability(rounds={"released": rounds, "marginals": rounds}, held_out=False),
        SubgroupFindings(subgroups=tuple(group_of(is_lost=each < lost) for each in range(5))),
    )


def sentence(found, start):
    """The finding that begins with a word."""
    [words] = [each for each in found.findings if each.startswith(start)]
    return words


WORDS_OF_POOR = ("no better than independent columns would be",)
WORDS_OF_FAULTS = ("Do not use these records to describe", "Unlike such a sample")


@st.composite
def any_relations(draw):
    kept = draw(st.none() | st.floats(-1, 1))
    rows = draw(st.sampled_from([40, 1_000, 100_000]))
    strength = 0.0 if kept is None else 1.0
    return relations_of(kept, pairs=draw(st.floats(0, 0.3)), compared=rows, strength=strength)


@st.composite
def any_learning(draw):
    real, released = draw(st.floats(0.32, 1)), draw(st.floats(0, 1))
    return learning_of(real, released, 0.3, beats=draw(st.booleans()))


@given(any_relations(), any_learning(), st.floats(0, 1), st.integers(0, 5))
def test_no_sentence_contradicts_the_grade(relations, learning, columns, lost):
    found = judged(relations, learning, columns, lost)
    text = " ".join(found.findings)
    if any(words in text for words in WORDS_OF_POOR):
        assert found.grade == "poor"
    if any(words in text for words in WORDS_OF_FAULTS):
        assert found.grade in ("fair", "poor")
    if "loses nothing" in text:
        assert "cannot be predicted" not in text
        assert learning.scores["forest"]["real"].beats_guessing
        assert found.grades["learning"] == "good"
    assert ("cannot be predicted" in text) == ("learning" not in found.grades)
    assert ("too few to judge them" in text) <= ("relations" not in found.grades)


def test_nothing_is_lost_only_where_real_rows_are_better_than_guessing():
    """70.2 % against 70.2 %, and guessing gives 70.2 %."""
    found = judged(None, learning_of(0.702, 0.702, 0.702, beats=False), 0.0, 0)
    words = sentence(found, "Predicting")
    assert "cannot be predicted from the others" in words
    assert "loses nothing" not in words
    words = sentence(judged(None, learning_of(0.9, 0.9, 0.702), 0.0, 0), "Predicting")
    assert "loses nothing" in words
    assert "guessing is correct 70.2" in words.replace("\xa0", " ")


@pytest.mark.parametrize(
    ("released", "independent", "shows_little"),
    [
        ((0.4, 0.6), (0.4, 0.6), True),
        ((0.8, 0.9), (0.4, 0.6), False),
        ((0.4, 0.6), (0.7, 0.9), False),
    ],
)
def test_a_classifier_that_sees_no_difference_shows_little(released, independent, shows_little):
    rounds = {
        name: ClassifierRound(accuracy=0.5, interval=interval, trained_on=9, tested_on=9)
        for name, interval in (("released", released), ("marginals", independent))
    }
    found = verdict._describe_game(Distinguishability(rounds=rounds, held_out=False))
    assert ("either, so this shows little" in found.sentence) == shows_little
    assert not found.values


def test_columns_are_not_judged_by_rows_that_are_far_themselves():
    far = Distances(names=(("a",), ("b",)), values=(0.35, 0.11))
    found = verdict._judge_columns({"released": replace(far, values=(0.9, 0.2)), "reals": far})
    assert "of every column, other real rows are more than 10 % away" in found.sentence.replace(
        "\xa0", " "
    )
    assert not found.values


def test_an_exaggerated_coefficient_is_named():
    exact = Coefficient(term="age", real=1.05, released=1.1, error=0.1)
    wrong = replace(exact, term="years", released=4.38)
    assert not replace(wrong, error=2.0).is_exaggerated  # chance
    found = judged(None, learning_of(0.9, 0.9, 0.5, coefficients=(exact, wrong)), 0.0, 0)
    words = sentence(found, "Coefficients")
    assert "years (4.38, in real rows 1.05)" in words
    assert "age" not in words
    assert found.grade == "fair"
    assert "coefficients of a regression are exaggerated" in found.headline


def test_an_exaggerated_relation_is_named():
    relations = relations_of(0.95)
    strong = Association(names=("a", "b"), real=0.82, released=0.97, limit=0.9)
    found = judged(replace(relations, associations=(strong,)), None, 0.0, 0)
    assert "a × b (0.97, in real rows 0.82)" in sentence(found, "Exaggerated")
    assert found.grade == "fair"
    assert "exaggerated" in found.headline


def test_a_lost_group_is_the_reason_of_a_fair_grade_not_the_relations():
    found = judged(relations_of(0.98), learning_of(0.9, 0.9, 0.5), 0.0, 1)
    assert found.grade == "fair"
    assert found.headline.endswith(
        "before you rely on these records: some small groups lost more than half of their share."
    )


def test_records_no_better_than_independent_columns_are_poor():
    found = judged(relations_of(0.5, pairs=0.2), None, 0.0, 0)
    assert "no better than independent columns would be" in sentence(found, "Pairs")
    assert found.grade == "poor"
    assert "no better than independent columns" in found.headline


def test_what_chance_makes_of_no_relation_is_no_relation():
    """In a table of few rows, independent columns seem to keep some relations, too."""
    assert relations_of(0.5, by_chance=0.45).kept == pytest.approx(0.05 / 0.55)
    assert relations_of(0.5, by_chance=0.2).kept == pytest.approx(0.3 / 0.8)


@pytest.mark.parametrize(("by_chance", "rows"), [(0.9, 10_000), (0.5, 10), (0.0, 20)])
def test_rows_that_cannot_show_relations_are_left_out_of_the_grade(by_chance, rows):
    relations = relations_of(0.1, by_chance=by_chance, compared=rows, strength=0.6)
    assert relations.kept is None
    found = judged(relations, None, 0.0, 0)
    assert "relations" not in found.grades
    assert "rows are too few to judge them" in sentence(found, "Relations")


def test_a_table_without_relations_is_not_blamed_for_having_lost_them():
    relations = relations_of(None, pairs=0.021, independent=0.021, strength=0.0)
    found = judged(relations, None, 0.0, 0)
    assert found.grade == "good"
    assert "no two columns of the real rows have a strong relation" in sentence(found, "Relations")
    assert "do not show whether dependence was kept" in sentence(found, "Pairs")
    assert "there are none in the real rows" in describe_relations(relations)[0]


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


@pytest.mark.parametrize("rows", [40, 60])
def test_few_rows_of_independent_columns_are_not_praised(small_schema, small_table, rows):
    """Half a table of 60 rows is as far from the other half as independent columns are."""
    effort = Effort(runs=1, rows=100, trees=5, game=30)
    few = small_table.head(rows)
    shuffled = few.select(pl.col(name).shuffle(seed=at) for at, name in enumerate(few.columns))
    found = evaluate(few, shuffled, small_schema, target="home", effort=effort).findings.verdict
    assert found.grade in ("poor", "unknown")
    assert "can replace" not in found.headline


@pytest.fixture(scope="module")
def independent_table():
    """Nothing can be predicted: 3,000 rows of independent columns."""
    rng = np.random.default_rng(5)
    columns = {name: rng.choice(["x", "y", "z"], 3_000, p=[0.702, 0.2, 0.098]) for name in "abcd"}
    attributes = [Attribute(name=n, kind="categorical", values=("x", "y", "z")) for n in "abcd"]
    return pl.DataFrame(columns), Schema(tuple(attributes))


def test_a_table_with_nothing_to_predict_is_said_to_be_one(independent_table):
    table, schema = independent_table
    effort = Effort(runs=1, rows=2_000, trees=5, game=500)
    found = evaluate(table, table.sample(fraction=1.0, seed=1), schema, effort=effort).findings
    text = " ".join(found.verdict.findings)
    assert "cannot be predicted from the others" in text
    assert "loses nothing" not in text
    assert "this shows little" in text
    assert not {"relations", "pairs", "learning"} & set(found.verdict.grades)


def test_the_default_target_has_the_strongest_relations(small_table, small_schema):
    effort = Effort(runs=1, rows=200, trees=2, game=50)

    def target(schema, table=small_table):
        return evaluate(table, table, schema, effort=effort).findings.learning.target

    found = evaluate(small_table, small_table, small_schema, effort=effort).findings
    means = {
        name: np.mean([a.real for a in found.relations.associations if name in a.names])
        for name in small_schema.names
    }
    assert found.learning.target == max(means, key=means.get)
    assert target(replace(small_schema, target=("pet", "home"))) == "pet"


# Cells that the schema moves

MOVING = (
    Attribute(name="x", kind="integer", values=range(50), outside="clip"),
    Attribute(name="codes", kind="integer", values=range(4), outside="clip"),
    Attribute(name="town", kind="text", values=("a", "b"), other="rest"),
    Attribute(name="c", kind="categorical", values=("no", "yes"), missing=("", "?")),
)


@pytest.fixture(scope="module")
def moved_table():
    """30 % of x and of town, and 1 % of the codes, have no value in the schema."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 50, 4_000)
    codes = x // 13
    x = np.where(np.arange(4_000) % 10 < 3, x + 100, x)
    codes = np.where(np.arange(4_000) % 100 == 0, np.where(x % 2, -9, 99), codes)
    town = np.where(np.arange(4_000) % 10 >= 7, "elsewhere", rng.choice(["a", "b"], 4_000))
    c = rng.choice(["no", "yes", "?"], 4_000)
    return pl.DataFrame({"x": x, "codes": codes, "town": town, "c": c})


@pytest.mark.parametrize("held_out", [False, True])
def test_moved_cells_are_named_first_and_count_as_distance(moved_table, held_out, tmp_path):
    """A copy of the clipped table is perfect, were it compared with the clipped table."""
    copy = moved_table.with_columns(
        pl.col("x").clip(0, 49),
        pl.col("codes").clip(0, 3),
        pl.col("town").replace("elsewhere", "rest"),
    )
    effort = Effort(runs=1, rows=1_000, trees=5, game=300)
    holdout = moved_table.reverse() if held_out else None
    metrics = evaluate(
        moved_table, copy, Schema(MOVING), holdout=holdout, effort=effort, out=tmp_path / "report"
    )
    found = metrics.findings.verdict
    assert found.grade != "good"
    assert found.values["moved"] == 0.3
    first = found.findings[0].replace("\xa0", " ")
    assert first.endswith("x (30.0 %), town (30.0 %), codes (1.0 %).")
    document = json.loads((tmp_path / "report" / "metrics.json").read_text())
    assert document["moved"]["columns"] == {"x": 0.3, "town": 0.3, "codes": 0.01}
    assert document["moved"]["cells"]["c"] == {"missing": int((moved_table["c"] == "?").sum())}
    distances = dict(
        zip(
            metrics.findings.distances["attributes"]["released"].names,
            metrics.findings.distances["attributes"]["released"].values,
            strict=True,
        )
    )
    assert distances["x",] == pytest.approx(0.3)
    assert distances["town",] == pytest.approx(0.3)
    assert distances["codes",] == pytest.approx(0.01)
    assert distances["c",] == 0
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.index("x (30.0\xa0%)") < page.index("Relations:")
    assert page.count("not in the schema") > 3
    town = metrics.findings.marginals[2]
    assert dict(zip(town.labels, town.real, strict=True))["not in the schema"] == pytest.approx(0.3)
    assert dict(zip(town.labels, town.released, strict=True))["not in the schema"] == 0


def test_a_table_that_the_schema_fits_moves_nothing(small_table, small_schema, tmp_path):
    effort = Effort(runs=1, rows=200, trees=2, game=50)
    metrics = evaluate(small_table, small_table, small_schema, effort=effort, out=tmp_path / "r")
    assert metrics.document()["moved"] == {"columns": {}, "cells": {}}
    assert metrics.findings.verdict.findings[0].endswith("a value for every cell.")
    assert "Cells that the schema changes" not in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.parametrize("target", ["x", "codes", "town"])
def test_moved_cells_of_the_target_are_no_numbers(moved_table, target):
    effort = Effort(runs=1, rows=500, trees=2, game=50)
    copy = moved_table.with_columns(pl.col("x").clip(0, 49), pl.col("codes").clip(0, 3))
    found = evaluate(moved_table, copy, Schema(MOVING), target=target, effort=effort).findings
    share = {"x": 0.7, "codes": 1.0, "town": 1.0}[target]
    assert found.learning.test_rows == pytest.approx(1_200 * share, abs=60)
    assert not [group for group in found.groups.subgroups if group.value == "not in the schema"]
