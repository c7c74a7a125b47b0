"""Amounts with leading zeros are numbers and come back padded; codes stay values."""

import numpy as np
import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records, format_csv_cells
from deniable.data.table_io import read_codes
from deniable.drafting.draft import draft_schema
from deniable.randomness import Keyed
from deniable.schema.schema import Schema
from drafted_columns import draft_column, fields_of

RNG = np.random.default_rng(2)
AMOUNTS = [f"{int(x) // 100 * 100:07d}" for x in np.exp(RNG.normal(10.5, 1, 2000))]


def test_round_amounts_are_a_range_of_integers():
    draft = draft_column(AMOUNTS, "x")
    assert draft.kind == "integer"
    assert fields_of(draft)["format"] == "{:07d}"
    assert fields_of(draft)["min"] >= 0


def test_the_name_makes_amounts_of_numbers_that_are_not_round():
    cells = [f"{int(x):07d}" for x in np.exp(RNG.normal(10, 1, 2000))]
    assert draft_column(cells, "wage").kind == "integer"
    assert draft_column(cells, "x").kind != "integer"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("zip", [f"{x:05d}" for x in RNG.integers(1, 300, 3000)]),
        ("x", [f"{x:05d}" for x in RNG.integers(1, 300, 3000)]),
        ("county code", [f"{x * 100:07d}" for x in RNG.integers(1, 300, 3000)]),
        ("industry", [f"{x * 10:04d}" for x in RNG.integers(1, 900, 9000)]),
        ("x", ["007", "0160000"] * 500),
    ],
)
def test_codes_stay_values(name, cells):
    assert draft_column(cells, name).kind not in ("integer", "real")


def test_amounts_come_back_with_their_zeros(tmp_path):
    path = tmp_path / "t.csv"
    pl.DataFrame({"wage": AMOUNTS, "sex": ["f", "m"] * 1000}).write_csv(path)
    schema = Schema.parse(draft_schema(path).text)
    codes, _ = read_codes(path, schema)
    records = decode_records(Codec(schema), codes, Keyed(1).at("values"))
    written = records.select(format_csv_cells(schema.columns[0]))["wage"]
    assert written.str.contains(r"^\d{7}$").all()
    assert Schema.parse(schema.text()) == schema
