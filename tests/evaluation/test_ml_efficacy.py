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


def sex_and_pay(rows, seed, slope):
    """Pay is high more often with every step of a number; a letter has nothing to do with it."""
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 40, rows)
    standard = (number - 19.5) / np.sqrt((40**2 - 1) / 12)
    high = rng.random(rows) < 1 / (1 + np.exp(-slope * standard))
    columns = [number, rng.integers(0, 3, rows), high]
    return np.asfortranarray(np.stack(columns, axis=1).astype(np.uint16))


ATTRIBUTES = (
    Attribute(name="number", kind="integer", values=range(40)),
    Attribute(name="letter", kind="categorical", values=("x", "y", "z")),
    Attribute(name="pay", kind="categorical", values=("low", "high")),
)


@pytest.mark.parametrize("slope", [1.05, 4.38])
def test_coefficients_are_those_of_the_logistic_regression_that_made_the_rows(slope):
    tables = EvaluationTables.of(
        sex_and_pay(20_000, 1, 1.05), sex_and_pay(20_000, 2, slope), None, key=0
    )
    found = measure_ml_efficacy(tables, Schema(ATTRIBUTES), Effort.quick(), target="pay")
    first = found.coefficients[0]
    sign = 1 if found.event == "pay = high" else -1
    assert first.term == "number"
    assert sign * first.real == pytest.approx(1.05, abs=0.1)
    assert sign * first.released == pytest.approx(slope, abs=0.3)
    assert [each.term for each in found.exaggerated] == ["number"] * (slope > 2)
    listed: Any = found.document()["coefficients"]
    assert listed[0]["exaggerated"] == (slope > 2)
    assert all(abs(each.real) < 4 * each.error for each in found.coefficients[1:])


def test_coefficients_of_a_number_are_in_standard_deviations():
    codes = sex_and_pay(5_000, 1, 3.0)
    tables = EvaluationTables.of(codes, codes, None, key=0)
    found = measure_ml_efficacy(tables, Schema(ATTRIBUTES), Effort.quick(), target="number")
    assert found.task == "regression"
    assert found.event == ""
    [pay] = [each for each in found.coefficients if each.term.startswith("pay")]
    assert 1 < abs(pay.real) < 2
    assert pay.released == pytest.approx(pay.real, abs=4 * pay.error)


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
