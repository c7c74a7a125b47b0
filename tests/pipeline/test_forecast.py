"""Forecasts: near what the noisy counts show afterwards, and in the right order."""

import json
import math
import re

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.config import Config
from deniable.errors import ConfigError
from deniable.model.pairwise.table_layout import apportion
from deniable.pipeline import forecast as module
from deniable.pipeline.forecast import MOSTLY_NOISE, forecast_run
from deniable.pipeline.run_plan import plan_run
from deniable.schema.schema import Schema
from small_runs import NOISE
from worlds import plain_attribute


def schema_of(columns, size=4, **more):
    return Schema(tuple(plain_attribute(f"x{i}", size) for i in range(columns)), **more)


def forecast(schema, rows=None, **options):
    config = Config.assemble(options)
    return forecast_run(plan_run(schema, config), schema, config, rows=rows)


@pytest.mark.parametrize("target", [[], ["x1"]])
def test_the_forecast_is_what_the_noisy_counts_show_afterwards(target):
    """Values are about equally frequent, as the forecast assumes; 15 % covers noisy groups."""
    schema, n = schema_of(6, rows_max=10_000), 10_000
    codes = np.random.default_rng(3).integers(0, 4, size=(n, 6))
    table = {f"x{i}": [schema.attributes[i].values[c] for c in codes[:, i]] for i in range(6)}
    options = {"target": target, "mode": "seedless"}
    found = deniable.learn(pl.DataFrame(table), schema, noise=NOISE, **options).kept.level
    level = forecast(schema, n, **options).level
    assert (level.pairs, level.groups) == (found.pairs, found.groups)
    for name in ("rows", "value_error", "visible_association", "sample_share"):
        assert getattr(found, name) == pytest.approx(getattr(level, name), rel=0.15), name


@pytest.mark.parametrize(("rows", "has_triples"), [(100_000, True), (200, False)])
def test_tables_that_are_given_up_for_triples_are_not_counted(monkeypatch, rows, has_triples):
    totals = []

    def counted(total, weights):
        totals.append(total)
        return apportion(total, weights)

    monkeypatch.setattr(module, "apportion", counted)
    schema = schema_of(6)
    noise = plan_run(schema, Config.assemble({})).privacy.pairs
    assert 0 < noise.reserved_count < noise.table_count
    forecast(schema, rows)
    assert totals == [noise.table_count - has_triples * noise.reserved_count]


def test_more_rows_and_a_larger_epsilon_show_more():
    schema = schema_of(8)
    levels = [
        forecast(schema, rows, epsilon=epsilon).level
        for rows, epsilon in ((1_000, 0.3), (1_000, 1.0), (10_000, 1.0), (10_000, 3.0))
    ]
    strengths = [level.visible_association for level in levels]
    shares = [level.sample_share for level in levels]
    assert strengths == sorted(strengths, reverse=True)
    assert shares == sorted(shares)
    assert len(set(shares)) == 4


def test_pairs_with_a_target_show_more_and_the_others_less():
    schema = schema_of(8)
    plain, named = forecast(schema, 10_000), forecast(schema, 10_000, target=["x2"])
    assert plain.target_level is None
    assert named.target_level.pairs == 7
    assert named.target_level.visible_association < plain.level.visible_association
    assert named.level.visible_association > plain.level.visible_association
    assert named.target_level.sample_share > plain.level.sample_share
    assert "Two columns, one of them x2: a dependence stands out" in " ".join(named.sentences)
    assert "All pairs with x2: about as good as a random sample" in " ".join(named.sentences)


def test_the_number_of_rows_is_given_or_guessed():
    schema = schema_of(3, rows_max=12_345)
    guessed, given = forecast(schema), forecast(schema, 777)
    assert (guessed.rows, guessed.is_guess) == (12_345, True)
    assert guessed.sentences[0] == (
        "Forecast for 12,345 rows, a guess (rows_max); give --rows for another number:"
    )
    assert forecast(schema, rows_max=99).rows == 99
    assert (given.rows, given.sentences[0]) == (777, "Forecast for 777 rows:")


@pytest.mark.parametrize("rows", [0, -3, 2**60])
def test_an_impossible_number_of_rows_is_refused(rows):
    with pytest.raises(ConfigError, match=re.escape(f"--rows {rows}: must lie between")):
        forecast(schema_of(3), rows)


@pytest.mark.parametrize(
    ("columns", "rows", "epsilon", "noisy"),
    [
        (5, 2, 1.0, True),
        pytest.param(5, 10_000, 0.0001, True, marks=pytest.mark.slow),
        (50, 500, 1.0, True),
        (1, 3, 1.0, True),
        (10, 10_000, 1.0, False),
        (1, 1_000, 1.0, False),
    ],
)
def test_a_run_of_noise_is_announced(columns, rows, epsilon, noisy):
    found = forecast(schema_of(columns), rows, epsilon=epsilon)
    assert found.warning == (MOSTLY_NOISE if noisy else "")
    assert found.document()["warnings"] == ([MOSTLY_NOISE] if noisy else [])


def test_without_noise_or_pairs_there_is_no_forecast():
    assert forecast(schema_of(3), epsilon=math.inf) is None
    assert forecast(schema_of(3), estimator="norm-sub") is None


def test_a_forecast_is_json_in_figures_and_words():
    found = forecast(schema_of(5), 5_000, target=["x0"])
    document = found.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["text"] == list(found.sentences)
    assert document["rows"] == 5_000
    assert document["rows_guessed"] is False
    assert document["with_target"]["pairs"] == 4
    assert 0 < document["sample_share"] < 1
