"""Machine learning efficacy: classification, regression, targets."""

from typing import Any

import numpy as np
import pytest

from deniable.errors import ConfigError
from deniable.evaluation.effort import Effort
from deniable.evaluation.ml_efficacy import LearningTask, measure_ml_efficacy, target_column
from deniable.evaluation.reference_tables import EvaluationTables
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow


def test_learning_from_independent_columns_is_guessing(tables, small_schema, little):
    found = measure_ml_efficacy(tables, small_schema, little, target="home")
    assert found.task == "classification"
    assert list(found.scores) == ["forest", "linear"]
    forest = found.scores["forest"]
    assert forest["real"].agreement == 1
    assert forest["real"].value > found.baseline + 0.1
    assert forest["released"].value < forest["real"].value - 0.1
    assert forest["real"].beats_guessing
    assert not forest["marginals"].beats_guessing
    interval = forest["released"].interval
    assert interval is not None
    low, high = interval
    assert low < forest["released"].value < high


def test_a_number_is_predicted_by_regression(tables, small_schema, little):
    found = measure_ml_efficacy(tables, small_schema, little, target="years")
    assert found.task == "regression"
    assert found.baseline == 0
    ridge = found.scores["linear"]
    # boats moves years: a ridge regression explains some of it, from reals only.
    assert ridge["real"].value > 0.3
    assert abs(ridge["released"].value) < 0.15
    assert ridge["half"].agreement > 0.9
    assert ridge["released"].interval is None
    document: dict[str, Any] = found.document()
    assert "explained" in document["linear"]["released"]
    assert ridge["real"].beats_guessing


def test_rows_with_a_missing_number_are_not_tested():
    numbers = Attribute(name="n", kind="integer", values=range(30), missing=("?",))
    schema = Schema((Attribute(name="c", kind="categorical", values=("x", "y")), numbers))
    codes = np.stack([np.arange(400) % 2, np.arange(400) % 31], axis=1).astype(np.uint16)
    tables = EvaluationTables.of(codes, codes, codes, key=0)
    found = measure_ml_efficacy(
        tables, schema, Effort(runs=1, rows=100, trees=2, game=10), target="n"
    )
    assert found.test_rows == int((codes[:, 1] != 30).sum())


def test_intervals_are_those_of_the_test_rows_that_were_used(tables, small_schema):
    """Fewer test rows, a wider interval: by the square root of their number."""
    widths = {}
    for test_rows in (100, 400):
        effort = Effort(runs=1, rows=100, trees=2, game=10, test_rows=test_rows)
        found = measure_ml_efficacy(tables, small_schema, effort, target="pet")
        assert found.test_rows == test_rows
        interval = found.scores["linear"]["real"].interval
        assert interval is not None
        widths[test_rows] = interval[1] - interval[0]
    assert 1.5 < widths[100] / widths[400] < 2.5


def test_rare_classes_are_merged():
    values = tuple(f"v{i}" for i in range(80))
    schema = Schema(
        (
            Attribute(name="c", kind="categorical", values=values),
            Attribute(name="d", kind="categorical", values=values),
        )
    )
    # The first 49 values are common, the other 31 rare.
    column = np.concatenate([np.repeat(np.arange(49), 10), np.arange(49, 80)]).astype(np.uint16)
    codes = np.stack([column, column], axis=1)
    tables = EvaluationTables.of(codes, codes, codes, key=0)
    effort = Effort(runs=1, rows=10_000, trees=2, game=10)
    scores = LearningTask.of(tables, schema, 1, effort).score_learner("tree", lambda _run: None)
    # A tree tells every common value, and all rare ones as one.
    assert scores["real"].value == 1.0


def test_an_unknown_target_is_named(small_schema):
    with pytest.raises(ConfigError, match=r'"petz" is not an attribute.*years, trade'):
        target_column(small_schema, "petz")
    with pytest.raises(ConfigError, match="only one attribute"):
        target_column(Schema((small_schema.attributes[0],)), None)
    assert target_column(small_schema, None) == 4
