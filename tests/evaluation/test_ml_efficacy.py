"""Machine learning efficacy: classification, regression, private baselines, targets."""

from typing import Any

import numpy as np
import pytest

from deniable.errors import ConfigError
from deniable.evaluation.effort import Effort
from deniable.evaluation.ml_efficacy import measure_ml_efficacy, target_column
from deniable.evaluation.reference_tables import EvaluationTables
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow


def test_learning_from_independent_columns_is_guessing(tables, small_schema, little):
    found = measure_ml_efficacy(tables, small_schema, little, target="home")
    assert found.task == "classification"
    tree = found.scores["tree"]
    assert tree["real"].agreement == 1
    assert tree["real"].value > found.baseline + 0.1
    assert tree["released"].value < tree["real"].value - 0.1
    assert tree["released"].interval[0] < tree["released"].value < tree["released"].interval[1]
    assert set(found.private) == {"logistic", "huber"}
    assert found.private["logistic"]["not private"] > found.private["logistic"]["marginals"]
    document: dict[str, Any] = found.document()
    private = document["private"]["logistic"]
    assert private["epsilon"] == 1
    low, high = private["released"]["interval"]
    assert low < private["released"]["accuracy"] < high


def test_several_classes_have_no_private_classifier_to_compare_with(tables, small_schema, little):
    found = measure_ml_efficacy(tables, small_schema, little, target="pet")
    assert found.task == "classification"
    assert found.private == {}


def test_a_number_is_predicted_by_regression(tables, small_schema, little):
    found = measure_ml_efficacy(tables, small_schema, little, target="years")
    assert found.task == "regression"
    assert found.baseline == 0
    ridge = found.scores["linear"]
    # boats moves years: a ridge regression explains some of it, from reals only.
    assert ridge["real"].value > 0.3
    assert abs(ridge["released"].value) < 0.15
    assert ridge["half"].agreement > 0.9
    document: dict[str, Any] = found.document()
    assert "explained" in document["linear"]["released"]


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
        low, high = found.scores["linear"]["real"].interval
        widths[test_rows] = high - low
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
    found = measure_ml_efficacy(tables, schema, effort, target="d")
    # A tree tells every common value, and all rare ones as one.
    assert found.scores["tree"]["real"].value == 1.0


def test_an_unknown_target_is_named(small_schema):
    with pytest.raises(ConfigError, match=r'"petz" is not an attribute.*years, trade'):
        target_column(small_schema, "petz")
    with pytest.raises(ConfigError, match="only one attribute"):
        target_column(Schema((small_schema.attributes[0],)), None)
    assert target_column(small_schema, None) == 4
