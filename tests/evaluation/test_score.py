"""Our distances, accuracies and agreement rates are those of the scoring program, on real rows."""

import importlib.util
import sys
from itertools import combinations
from typing import Any

import polars as pl
import pytest

import deniable as dn
from deniable.data.table_io import read_codes
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.ml_efficacy import LearningTask, target_column
from deniable.evaluation.reference_tables import EvaluationTables

pytestmark = pytest.mark.shared

NAMES = {"rf": "forest", "tree": "tree", "ada": "ada", "lr": "linear"}


@pytest.fixture(scope="module")
def score(shared):
    path = shared.parent / "tools" / "score.py"
    if not path.is_file():
        pytest.skip(f"the scoring program is not here: {path}")
    spec = importlib.util.spec_from_file_location("score_of_shared", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["score_of_shared"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def files(shared, tmp_path_factory):
    """Some real rows to learn from and to test on; records that keep half of what they hold.

    Each column's least and greatest value is in the real rows: the scoring program cuts at them.
    """
    folder = tmp_path_factory.mktemp("score")
    train = pl.read_csv(shared / "acs13" / "acs13_train.csv").head(3_000)
    test = pl.read_csv(shared / "acs13" / "acs13_test.csv").head(1_500)
    released = train.with_columns(
        train[name].gather(train.select(pl.int_range(pl.len()).shuffle(seed=at)).to_series())
        for at, name in enumerate(train.columns[:5])
    )
    for name, frame in {"train": train, "test": test, "released": released}.items():
        frame.write_csv(folder / f"{name}.csv")
    return folder


@pytest.fixture(scope="module")
def both(score, files, examples):
    """The scores of both programs, for all learners of a report and of the paper."""
    names = ("train.csv", "test.csv", "released.csv")
    theirs = score.main(*(str(files / name) for name in names), cache=str(files))
    schema = dn.Schema.read(examples / "acs13" / "schema.toml")
    metrics = evaluate(
        files / "train.csv",
        files / "released.csv",
        schema,
        holdout=files / "test.csv",
        target="incc",
        effort=Effort(runs=1),
    )
    real, holdout, released = (read_codes(files / name, schema)[0] for name in names)
    tables = EvaluationTables.of(real, released, holdout, key=0)
    column = target_column(schema, "incc")
    task = LearningTask.of(tables, schema, column, Effort(runs=1))
    ours: dict[str, Any] = metrics.document()
    for learner in ("tree", "ada"):
        ours["learning"][learner] = {
            source: {"accuracy": score.value, "agreement": score.agreement}
            for source, score in task.score_learner(learner, lambda _run: None).items()
        }
    return theirs, ours


def test_distances_are_those_of_the_scoring_program(both):
    theirs, ours = both
    for name, width in (("tv1", "attributes"), ("tv2", "pairs")):
        found = ours["distances"][width]
        assert round(found["mean"], 5) == pytest.approx(theirs[f"{name}_mean"], abs=1e-5)
        assert round(found["max"], 5) == pytest.approx(theirs[f"{name}_max"], abs=1e-5)
        assert "*".join(found["worst"]) == theirs[f"{name}_argmax"]
    assert ours["distances"]["against"] == "holdout"


@pytest.mark.parametrize(("name", "learner"), NAMES.items())
def test_accuracies_and_agreement_are_those_of_the_scoring_program(both, name, learner):
    theirs, ours = both
    found = ours["learning"][learner]
    assert found["released"]["accuracy"] == pytest.approx(theirs[f"acc_{name}"], abs=5e-5)
    assert found["released"]["agreement"] == pytest.approx(theirs[f"agr_{name}"], abs=5e-5)
    assert found["real"]["accuracy"] == pytest.approx(theirs[f"real_acc_{name}"], abs=5e-5)


def test_guessing_is_that_of_the_scoring_program(both):
    theirs, ours = both
    assert ours["learning"]["guessing"] == pytest.approx(theirs["majority_acc"], abs=5e-5)


def test_the_game_is_as_hard_as_for_the_scoring_program(both):
    """Other rows of the same tables are drawn: the two rates differ by chance only.

    Each is a mean over 1,500 answers, so one error is at most 0.013; five of the difference.
    """
    theirs, ours = both
    found = ours["game"]["forest"]["released"]
    assert found["tested_on"] == 2 * theirs["dist_n"]
    assert abs(found["accuracy"] - theirs["dist_rf"]) < 5 * 2**0.5 * 0.013
    assert found["accuracy"] > 0.55


def test_every_pair_is_there(both, examples):
    _, ours = both
    names = dn.Schema.read(examples / "acs13" / "schema.toml").names
    each = [tuple(one["attributes"]) for one in ours["distances"]["pairs"]["each"]]
    assert each == list(combinations(names, 2))
