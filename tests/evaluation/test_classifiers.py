"""Learners of the evaluation."""

import sys

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from command_line import runner
from deniable.audit.table_audit import audit_table
from deniable.demo import demo_schema
from deniable.errors import ConfigError
from deniable.evaluation.classifiers import fit_predict, fit_predict_each, learner_title
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.intervals import wilson_interval
from deniable.reproduction.reproduce import reproduce

LEARNERS = ("forest", "linear", "tree", "ada")


def test_a_single_class_is_predicted_without_a_model():
    train = np.zeros((5, 2), dtype=np.uint16)
    found = fit_predict(
        "forest", "classification", train=train, labels=np.full(5, 3, dtype=np.uint16),
        test=train[:2], trees=2, key=0,
    )  # fmt: skip
    assert found.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_finds_a_label_that_is_one_of_the_features(name, task, rng):
    codes = rng.integers(0, 3, (600, 3)).astype(np.uint16)
    predicted = fit_predict(
        name, task, train=codes[:400], labels=codes[:400, 1], test=codes[400:], trees=20, key=0
    )
    assert np.abs(predicted - codes[400:, 1]).mean() < 0.1


def test_the_same_key_gives_the_same_predictions(rng):
    codes = rng.integers(0, 3, (300, 4)).astype(np.uint16)
    one, same, other = (
        fit_predict(
            "forest", "classification",
            train=codes[:200, :3], labels=codes[:200, 3], test=codes[200:, :3], trees=3, key=key,
        ).tolist()
        for key in (1, 1, 2)
    )  # fmt: skip
    assert one == same != other


@pytest.mark.parametrize("name", LEARNERS)
def test_tables_at_the_same_time_give_what_each_gives_alone(name, rng):
    codes = rng.integers(0, 3, (500, 4)).astype(np.uint16)
    training = [(codes[at : at + 100, :3], codes[at : at + 100, 3]) for at in (0, 100, 200)]
    training.append((codes[:9, :3], np.full(9, 2, dtype=np.uint16)))  # a single class
    settings = {"test": codes[300:, :3], "trees": 3, "key": 4}
    before = [each["num_threads"] for each in threadpool_info()]
    found = fit_predict_each(name, "classification", training=training, **settings)
    alone = [
        fit_predict(name, "classification", train=train, labels=labels, **settings)
        for train, labels in training
    ]
    assert [each.tolist() for each in found] == [each.tolist() for each in alone]
    assert found[0].tolist() != found[1].tolist()
    assert [each["num_threads"] for each in threadpool_info()][: len(before)] == before


def test_a_code_absent_from_training_is_ignored_by_the_linear_model(rng):
    train = rng.integers(0, 2, (200, 2)).astype(np.uint16)
    test = np.array([[0, 7], [1, 7]], dtype=np.uint16)
    predicted = fit_predict(
        "linear", "classification", train=train, labels=train[:, 0], test=test, trees=1, key=0
    )
    assert predicted.tolist() == [0.0, 1.0]


def test_the_linear_model_is_named_by_its_task():
    assert learner_title("linear", "classification") == "Logistic regression"
    assert learner_title("linear", "regression") == "Ridge regression"
    assert learner_title("forest", "regression") == "Random forest"


@pytest.fixture
def without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)


@pytest.mark.usefixtures("without_scikit_learn")
def test_what_trains_models_names_the_extra_before_it_reads_a_table(tmp_path):
    schema = demo_schema()
    missing = tmp_path / "no such table.csv"
    for start in (
        lambda: evaluate(missing, missing, schema),
        lambda: audit_table(missing, schema, out=tmp_path / "audit"),
        lambda: reproduce(missing, schema, tmp_path / "reproduction"),
    ):
        with pytest.raises(ConfigError, match=r"scikit-learn.*deniable\[evaluate\]"):
            start()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_scikit_learn")
def test_the_demo_names_the_extra_and_writes_nothing(tmp_path, monkeypatch, capsys):
    run = runner(monkeypatch, capsys, tmp_path)
    assert run("demo", "--out", tmp_path / "demo").complains(2, "deniable[evaluate]")
    assert [path.name for path in tmp_path.iterdir()] == ["cwd"]


def test_an_evaluation_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="at least 1"):
        Effort(runs=0)
    assert Effort.quick().rows < Effort().rows


@pytest.mark.parametrize("name", ["runs", "rows", "trees", "game", "test_rows"])
def test_every_size_is_at_least_1(name):
    with pytest.raises(ConfigError, match=name):
        Effort(**{name: 0})


def test_only_the_defaults_and_more_are_thorough():
    assert Effort(key=7).is_thorough
    assert Effort(runs=5).is_thorough
    assert not Effort.quick().is_thorough
    assert not Effort(test_rows=10_000).is_thorough


def test_wilson_is_scipys():
    for rate, trials in ((0.0, 10), (0.3, 50), (1.0, 7)):
        theirs = stats.binomtest(round(rate * trials), trials).proportion_ci(method="wilson")
        assert wilson_interval(rate, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert wilson_interval(0.5, 0) == (0.0, 1.0)
