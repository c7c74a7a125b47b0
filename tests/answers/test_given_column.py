"""Cells of given rows: which are filled, their codes and positions, and what is wrong."""

import polars as pl
import pytest

from deniable.answers.given_column import given_column
from deniable.schema.schema import Schema

SCHEMA = Schema.parse("""
format = 1
[[attribute]]
name = "w{}"
type = "real"
min = 0
max = 9.9
decimals = 1
[[attribute]]
name = "t"
type = "datetime"
min = 2020-01-01T00:00:00
max = 2020-01-02T00:00:00
[[attribute]]
name = "n"
type = "integer"
min = 0
max = 50
outside = "clip"
missing = ["", "-1"]
""")


def computed(name, cells, origin="typed"):
    frame = pl.DataFrame({name: cells}, strict=False)
    column = next(each for each in SCHEMA.columns if each.name == name)
    given = given_column(column, frame.schema, origin, SCHEMA)
    faults = [frame.select(mark).to_series().to_list() for _, mark in given.faults()]
    return frame.select(given.expressions()), faults, given


def test_blank_cells_are_not_filled_and_texts_for_missing_are():
    found, [wrong], given = computed("n", ["7", "", " ", "-1", None, "51"])
    assert found[given.filled_name].to_list() == [True, False, False, True, False, True]
    assert found[given.code_name].to_list()[:4] == [7, 51, 51, 51]
    assert wrong == [False, False, False, False, False, True]  # not clipped


@pytest.mark.parametrize(
    ("cells", "wrong"), [([2.5, 2.55, None], [False, True, False]), (["0.1", "x"], [False, True])]
)
def test_a_number_between_two_values_of_the_grid_does_not_fit(cells, wrong):
    found, [marks], given = computed("w{}", cells)
    assert marks == wrong
    assert found[given.position_name].to_list()[0] in (25, 1)
    [(message, _)] = given.faults()
    assert 'column "w{}", HERE:' in message.format(place="HERE", affected="2 rows have")


def test_a_time_between_two_values_of_the_grid_does_not_fit():
    cells = pl.Series(["2020-01-01T00:00:01", "2020-01-01T00:00:01.5"]).str.to_datetime()
    _, [marks], _ = computed("t", cells)
    assert marks == [False, True]
