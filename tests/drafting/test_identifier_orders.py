"""Drafts of identifiers that ascend with other columns."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.draft import draft_schema
from deniable.pipeline.api import synthesize
from deniable.randomness import Keyed
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

ROWS = 3_000


@pytest.fixture
def surveys():
    """A number for each row, by year and month; a second one without an order."""
    draws = np.random.default_rng(5)
    year, month = draws.integers(2001, 2009, ROWS), draws.integers(1, 13, ROWS)
    order = np.lexsort((month, year))
    return pl.DataFrame(
        {
            "record_id": np.arange(11, ROWS + 11),
            "year": year[order],
            "month": month[order],
            "weight": draws.normal(50, 9, ROWS).round(1),
            "token_id": draws.permutation(ROWS) + 1,
        }
    )


def drafted(table, name="record_id"):
    schema = Schema.parse(draft_schema(table).text)
    [column] = (each for each in schema.columns if each.name == name)
    assert isinstance(column, Identifier)
    return column


def test_an_identifier_that_ascends_with_columns_is_sorted_by_them(surveys):
    draft = draft_schema(surveys)
    column = drafted(surveys)
    assert column.sorted_by == ("year", "month")
    assert column.numbers == range(10, 3_011), "rounded outward"
    assert any("ascend with" in note and '"year", then "month"' in note for note in draft.notes)
    assert drafted(surveys, "token_id").sorted_by == ()


def test_the_order_of_columns_and_rows_does_not_matter(surveys):
    mixed = surveys.sample(fraction=1, shuffle=True, seed=1).select(*reversed(surveys.columns))
    assert drafted(mixed).sorted_by == ("year", "month")


def test_a_few_rows_out_of_order_do_not_matter(surveys):
    late = pl.when(pl.int_range(pl.len()) % 40 == 0).then(2001).otherwise(pl.col("year"))
    assert drafted(surveys.with_columns(year=late)).sorted_by[:1] == ("year",)


@pytest.mark.parametrize("name", ["year", "month"])
def test_a_loose_or_falling_relation_is_no_order(surveys, name):
    draws = np.random.default_rng(6)
    loose = surveys["record_id"].to_numpy() // 400 + draws.integers(0, 9, ROWS)
    falling = -surveys["record_id"].to_numpy() // 400
    for numbers in (loose, falling):
        table = surveys.drop("year", "month").with_columns(pl.Series(name, numbers))
        assert drafted(table).sorted_by == ()


def test_a_column_with_many_missing_cells_is_not_sorted_by(surveys):
    gaps = pl.when(pl.int_range(pl.len()) % 4 > 0).then(pl.col("year"))
    assert "year" not in drafted(surveys.with_columns(year=gaps)).sorted_by


@pytest.mark.parametrize(
    ("first", "is_sorted"), [(8 * 10**17, True), (10**18 - 3_011 * 10**13, True), (10**18, False)]
)
def test_long_numbers_are_drafted_up_to_the_largest_that_a_schema_has(surveys, first, is_sorted):
    """Such as the numbers of messages, which ascend with their time."""
    table = surveys.with_columns(pl.col("record_id") * 10**13 + first)
    assert drafted(table).sorted_by == (("year", "month") if is_sorted else ())


def test_negative_numbers_are_no_order(surveys):
    assert drafted(surveys.with_columns(pl.col("record_id") - 1_000)).sorted_by == ()


def test_a_private_draft_says_nothing_of_it(surveys):
    assert "sorted_by" not in draft_schema(surveys, draft_epsilon=1.0).text


@pytest.mark.slow
def test_records_keep_the_relation(surveys):
    """The default mode with a fixed source of noise: a key of its own for each record, in order."""
    release = synthesize(
        surveys,
        Schema.parse(draft_schema(surveys).text),
        records=2_000,
        noise=Keyed(3),
        accept_drafted_schema=True,
    )
    frame = release.frame().sort("record_id")
    assert frame["record_id"].n_unique() == 2_000
    assert frame["record_id"].is_between(10, 3_010).all()
    assert frame["year"].is_sorted()
