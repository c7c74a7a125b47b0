"""Numbers that people round, through the whole run: learnt, paid for, stored, drawn, verified."""

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.data.codec import Codec
from deniable.pipeline import api
from deniable.pipeline.api import plan
from deniable.reproduction.experiments import decode_modelled_columns
from deniable.schema.schema import Schema

SCHEMA = """
format = 1
rows_max = 10_000

[[attribute]]
name = "sex"
type = "categorical"
values = ["f", "m"]

[[attribute]]
name = "wage"
type = "integer"
min = 0
max = 89_999
bins = { width = 1_000 }
heaps = [10, 500]
"""


@pytest.fixture(scope="module")
def wages():
    """7 in 10 say a full 500; of the others every number is as likely as another."""
    rng = np.random.default_rng(1)
    wage = rng.integers(0, 90_000, 6_000)
    wage = np.where(rng.random(6_000) < 0.7, wage - wage % 500, wage)
    return pl.DataFrame({"sex": rng.choice(["f", "m"], 6_000), "wage": wage})


def test_heaps_survive_in_every_way_to_learn(wages):
    schema = Schema.parse(SCHEMA)
    split = {"data_use": "split", "estimator": "norm-sub"}
    for options in ({}, {"mode": "seedless"}, split, {"estimator": "norm-sub"}):
        made = deniable.synthesize(wages, schema, records=4_000, epsilon=2.0, **options)
        frame = made.frame()
        assert frame.columns == ["sex", "wage"]
        full = (frame["wage"] % 500 == 0).mean()
        assert full == pytest.approx(0.7, abs=0.06), options
    plain = Schema.parse(SCHEMA.replace("heaps = [10, 500]", ""))
    without = deniable.synthesize(wages, plain, records=4_000, epsilon=2.0).frame()
    assert (without["wage"] % 500 == 0).mean() < 0.02


def test_heaps_are_in_the_plan_and_only_where_they_are_declared():
    declared, plain = Schema.parse(SCHEMA), Schema.parse(SCHEMA.replace("heaps = [10, 500]", ""))
    what = "values of wage is a multiple of"
    assert what in [spend.what for spend in plan(declared).privacy.spends]
    assert what not in [spend.what for spend in plan(plain).privacy.spends]
    assert plan(declared).cost.epsilon <= 1.0


def test_an_artefact_keeps_heaps_and_same_key_is_same_records(wages, tmp_path):
    schema = Schema.parse(SCHEMA)
    deniable.learn(wages, schema, epsilon=2.0).save(tmp_path / "artefact")
    artefact = deniable.load(tmp_path / "artefact")
    one, two = (artefact.generate(3_000, key=5, workers=workers) for workers in (1, 2))
    assert one.equals(two)
    assert (one["wage"] % 500 == 0).mean() == pytest.approx(0.7, abs=0.06)
    assert deniable.verify(tmp_path / "artefact").passed


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_tested_release_with_heaps_passes_against_its_table(wages, tmp_path, missing):
    """A kept roundness may be one that the drawn bin has not, or that of a missing cell."""
    text = SCHEMA.replace("width = 1_000", "digits = 2").replace("[10, 500]", "[10, 100, 1_000]")
    schema = Schema.parse(text + 'missing = [""]\n')
    gone = np.random.default_rng(2).random(len(wages)) < missing
    table = wages.with_columns(pl.when(~pl.Series(gone)).then("wage").alias("wage"))
    made = deniable.synthesize(table, schema, records=5_000, mode="tested", omega="1", epsilon=2.0)
    made.write(tmp_path / "out")
    deniable.verify(tmp_path / "out", against=table).require()


def test_a_generated_file_with_heaps_is_verified_without_its_schema(wages, tmp_path):
    deniable.learn(wages, Schema.parse(SCHEMA), epsilon=2.0).save(tmp_path / "artefact")
    made = api.generate(deniable.load(tmp_path / "artefact"), 500, key=3)
    made.write_file(tmp_path / "records.csv")
    deniable.verify(tmp_path / "records.csv").require()


def test_a_plain_table_of_heaps_has_the_same_codes_again(wages):
    schema = Schema.parse(SCHEMA)
    codes = Codec(schema).encode(wages)
    frame, plain = decode_modelled_columns(schema, codes)
    assert Codec(plain).encode(frame)[:, [0, 2]].tolist() == codes[:, [0, 2]].tolist()
