"""Relationships in a draft: the text parses, is unconfirmed, and records obey it."""

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.drafting.draft import draft_schema
from deniable.schema.schema import Schema

RNG = np.random.default_rng(4)
ROWS = 5000


@pytest.fixture(scope="module")
def census() -> pl.DataFrame:
    ages = RNG.integers(0, 90, ROWS)
    trade = RNG.integers(0, 30, ROWS)
    visits = RNG.integers(0, 40, ROWS)
    return pl.DataFrame(
        {
            "age": ages,
            "group": np.where(ages < 18, "child", np.where(ages < 65, "adult", "old")),
            "trade": [f"t{x:02d}" for x in trade],
            "branch": [f"b{x % 5}" for x in trade],
            "pay": [None if a < 15 else int(RNG.integers(1, 60)) for a in ages],
            "visits": visits,
            "calls": visits + RNG.integers(0, 40, ROWS),
        }
    )


@pytest.fixture(scope="module")
def schema(census) -> Schema:
    return Schema.parse(draft_schema(census).text)


def test_what_follows_is_computed_and_everything_is_unconfirmed(schema):
    kinds = {column.name: column.kind for column in schema.columns}
    assert (kinds["group"], kinds["branch"]) == ("computed", "computed")
    assert len(schema.constraints) == 3
    assert not any(each.confirmed for each in (*schema.columns, *schema.constraints))
    assert len(schema.drafted) == 1 + len(schema.columns) + len(schema.constraints)
    assert Schema.parse(schema.text()) == schema


def test_values_are_listed_by_the_group_they_belong_to(schema):
    """The model merges neighbours of a list."""
    [trade] = [column for column in schema.columns if column.name == "trade"]
    branches = [int(value[1:]) % 5 for value in trade.values]
    assert branches == sorted(branches)


def test_records_obey_what_was_drafted_even_if_noise_hides_it(census, schema):
    release = deniable.synthesize(
        census, schema, records=1000, epsilon=0.02, key=3, accept_drafted_schema=True
    )
    records = release.frame()
    branches = [f"b{int(value[1:]) % 5}" for value in records["trade"]]
    assert records["branch"].to_list() == branches
    ages = records["age"].to_numpy()
    expected = np.where(ages < 18, "child", np.where(ages < 65, "adult", "old"))
    assert records["group"].to_list() == expected.tolist()
    assert ((ages < 15) == records["pay"].is_null().to_numpy()).all()
    assert (records["visits"] <= records["calls"]).all()
