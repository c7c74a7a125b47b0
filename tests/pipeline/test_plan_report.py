"""The report of a plan: stages with their noise, and the cost of other modes."""

import json
import math
from dataclasses import replace

import pytest

from deniable.cli.plan_tables import show_plan
from deniable.config import Config
from deniable.pipeline.plan_report import compare_modes, report_plan
from deniable.pipeline.run_plan import plan_run
from deniable.privacy.theorems import candidate_cost
from deniable.privacy.wording import round_up
from deniable.schema.unmodelled_columns import Identifier


def report(schema, records=None, rows=None, **options):
    config = Config.assemble(options)
    run = plan_run(schema, config, records=records)
    return report_plan(run, schema, config, records=records, rows=rows)


@pytest.mark.parametrize("estimator", ["pairs", "norm-sub"])
def test_every_spend_of_the_plan_is_in_one_stage(small_schema, estimator):
    spends = plan_run(small_schema, Config(estimator=estimator)).privacy.spends
    stages = report(small_schema, estimator=estimator)["stages"]
    assert sum(stage["number"] for stage in stages) == len(spends)
    assert len({stage["what"] for stage in stages}) == len(stages)
    combined = [stage["number"] for stage in stages if stage["what"] == "tables of counts"]
    assert combined == ([5] if estimator == "norm-sub" else [])


def test_the_deviation_is_that_of_the_noise(small_schema):
    spends = plan_run(small_schema, Config()).privacy.spends
    stages = report(small_schema)["stages"]
    for spend, stage in zip(spends, stages, strict=True):
        squares = sum(
            z * z * spend.law.probability(z) for z in range(-spend.law.radius, spend.law.radius + 1)
        )
        assert stage["noise_deviation"] == pytest.approx(math.sqrt(squares), abs=0.001)


def test_the_forecast_is_for_the_rows_given(small_schema):
    found = report(small_schema, rows=777)["forecast"]
    assert (found["rows"], found["rows_guessed"]) == (777, False)
    assert report(small_schema)["forecast"]["rows"] == small_schema.rows_max
    assert report(small_schema, estimator="clip")["forecast"] is None


def test_the_threshold_is_k_and_the_bound_of_the_noise(small_schema):
    found = report(small_schema, k=33)
    assert found["threshold"] == 33 + found["r"]
    assert found["r"] > 0
    seedless = report(small_schema, mode="seedless")
    assert (seedless["r"], seedless["threshold"]) == (None, None)


def test_without_noise_there_are_no_stages_and_the_report_is_still_json(small_schema):
    found = report(small_schema, epsilon=math.inf)
    assert found["stages"] == []
    assert found["cost"]["epsilon"] == "inf"
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_randomized_test_is_reported_with_its_cost(small_schema):
    found = report(small_schema, 3, mode="randomized", k=400, delta=1e-6)
    test = found["test"]
    assert (test["records"], test["k"]) == (3, 400)
    assert test["each"]["epsilon"] <= test["cost"]["epsilon"] < found["cost"]["epsilon"] <= 1
    assert report(small_schema)["test"] is None


def test_modes_are_compared_for_the_requested_number_too():
    rows = compare_modes(Config(k=200, delta=1e-6), 77)
    assert [row["records"] for row in rows] == [1, 77, 100, 10_000, 1_000_000]
    assert {row["one-shot"] for row in rows} == {1.0}
    costs = [row["randomized"] for row in rows if row["randomized"] is not None]
    assert costs == sorted(set(costs)), "more records must cost more"
    assert [row["records"] for row in compare_modes(Config(), 100)] == [1, 100, 10_000, 1_000_000]


def test_without_a_comparison_of_modes_the_rest_is_the_same(small_schema):
    config = Config()
    run = plan_run(small_schema, config)
    whole = report_plan(run, small_schema, config)
    short = report_plan(run, small_schema, config, compares_modes=False)
    assert whole["records"]
    assert whole["trade_off"]
    assert short == whole | {"records": [], "trade_off": []}


def test_a_randomized_test_without_any_epsilon_is_null():
    """k = 2 leaves only t = 1, whose δ is far above 1e-9."""
    assert {row["randomized"] for row in compare_modes(Config(k=2), None)} == {None}


def test_the_trade_off_is_the_theorem_at_every_t(small_schema):
    rows = report(small_schema, k=6, epsilon0=0.5)["trade_off"]
    expected = [candidate_cost(k=6, epsilon0=0.5, t=t) for t in range(1, 6)]
    assert rows == [
        {"t": t, "epsilon": round_up(cost.epsilon), "delta": round_up(cost.delta)}
        for t, cost in enumerate(expected, start=1)
    ]
    assert report(small_schema, k=1)["trade_off"] == []


def test_with_a_unit_there_is_no_forecast_but_the_reason(small_schema, capsys):
    """It was of all 5,000 rows, where the run learns from one row of each of 545 people."""
    person = Identifier(name="person")
    schema = replace(small_schema, columns=(person, *small_schema.columns), unit="person")
    for rows in (None, 5_000):
        found = report(schema, rows=rows)
        assert found["forecast"] is None
        assert 'of each "person" at most one row is used' in found["no_forecast"]
        assert "Records have one row a person" in found["no_forecast"]
    show_plan(found, show_all=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert found["no_forecast"] in printed
    assert "Forecast for" not in printed
    several = report(replace(schema, max_rows_per_unit=3))["no_forecast"]
    assert "at most 3 rows are used" in several
    assert "no_forecast" not in report(small_schema)
