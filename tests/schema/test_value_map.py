"""Value maps: computed columns that follow from one other column."""

import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records, format_csv_cells, record_dtypes
from deniable.data.table_io import read_codes
from deniable.errors import SchemaError
from deniable.schema.schema import Schema

SOURCE = """format = 1
[[attribute]]
name = "code"
type = "categorical"
values = ["a", "b", "c"]
missing = ["N"]

[[attribute]]
name = "age"
type = "integer"
min = 0
max = 99

[[attribute]]
name = "flag"
type = "boolean"
values = ["no", "yes"]
"""


def schema_with(*lines: str) -> Schema:
    computed = ["[[attribute]]", 'name = "x"', 'type = "computed"', *lines]
    return Schema.parse(SOURCE + "\n".join(computed) + "\n")


def results(schema: Schema, records) -> list:
    table = pl.DataFrame(records, schema=["code", "age", "flag"], orient="row")
    codes, _ = read_codes(table, schema)
    return decode_records(Codec(schema), codes)["x"].to_list()


RECORDS = [("a", 0, "no"), ("b", 17, "yes"), ("c", 18, "no"), (None, 99, "yes")]


@pytest.mark.parametrize(
    ("lines", "expected", "dtype"),
    [
        (('from = "code"', 'map = [["a", 1], ["b", 1], ["c", 2]]'), [1, 1, 2, None], pl.Int64),
        (
            ('from = "code"', 'map = [["a", "x"], ["b", "y"], ["c", "x"], ["N", "none"]]'),
            ["x", "y", "x", "none"],
            pl.String,
        ),
        (
            ('from = "code"', 'map = [["a", 1], ["b", ""], ["c", 2], ["N", 9]]', 'missing = [""]'),
            [1, None, 2, 9],
            pl.Int64,
        ),
        (
            ('from = "age"', 'steps = [[0, "-"], [18, "x"]]', 'missing = ["?", "-"]'),
            [None, None, "x", "x"],
            pl.String,
        ),
        (
            ('from = "code"', 'map = [["a", 0.5], ["b", 1.25], ["c", 2]]', "decimals = 2"),
            [0.5, 1.25, 2.0, None],
            pl.Float64,
        ),
        (
            ('from = "age"', 'steps = [[0, "child"], [18, "adult"]]'),
            ["child", "child", "adult", "adult"],
            pl.String,
        ),
        (('from = "flag"', 'map = [["no", 0], ["yes", 1]]'), [0, 1, 0, 1], pl.Int64),
        (('from = "flag"', "map = [[true, true], [false, false]]"), [False, True] * 2, pl.Boolean),
    ],
)
def test_results_follow_from_the_source(lines, expected, dtype):
    schema = schema_with(*lines)
    assert results(schema, RECORDS) == expected
    assert record_dtypes(schema.columns)["x"] == dtype()
    assert Schema.parse(schema.text()) == schema


def test_missing_and_decimals_are_written_as_described():
    schema = schema_with(
        'from = "code"',
        'map = [["a", 0.5], ["b", 1.25], ["c", 2]]',
        "decimals = 2",
        'missing = ["none"]',
    )
    frame = pl.DataFrame({"x": results(schema, RECORDS)})
    written = frame.select(format_csv_cells(schema.columns[-1]))["x"].to_list()
    assert written == ["0.50", "1.25", "2.00", "none"]


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (('from = "code"', 'map = [["a", 1], ["b", 1]]'), '"c" of "code" has no pair|\'c\''),
        (('from = "code"', 'map = [["a", 1], ["b", 1], ["c", 2], ["d", 3]]'), "not a value"),
        (('from = "code"', 'map = [["a", 1], ["a", 2], ["b", 1], ["c", 2]]'), "twice"),
        (('from = "code"', 'map = [["a", 1], ["b", "z"], ["c", 2]]'), "all text, all numbers"),
        (('from = "code"', "map = []"), "list of pairs"),
        (
            ('from = "code"', 'map = [["a", 99999999999999999999], ["b", 1], ["c", 1]]'),
            "whole numbers must be below 2",
        ),
        (
            ('from = "code"', 'map = [["a", ""], ["b", ""], ["c", ""]]', 'missing = [""]'),
            "all of its results are missing",
        ),
        (
            ('from = "code"', 'map = [["a", ""], ["b", 1], ["c", 1]]'),
            "must be all text, all numbers",
        ),
        (('from = "code"', 'map = [["a", 1, 2]]'), "list of pairs"),
        (('map = [["a", 1]]',), "needs from"),
        (('from = "absent"', 'map = [["a", 1]]'), "must name a learnt column"),
        (('from = "code"', 'steps = [[0, "x"], [1, "y"]]'), "steps need numbers"),
        (('from = "age"', 'steps = [[18, "x"], [0, "y"]]'), "ascending"),
        (('from = "age"', 'steps = [["a", "x"], ["b", "y"]]'), "must be a number"),
        (('from = "age"', 'formula = "age"', 'steps = [[0, "x"]]'), "either a formula"),
        (('from = "age"', 'steps = [[0, "x"]]', "decimals = 1"), "fractions only"),
        (('from = "age"', "steps = [[0, inf]]"), "finite"),
    ],
)
def test_an_invalid_map_is_rejected_with_its_place(lines, what):
    with pytest.raises(SchemaError, match=what) as error:
        schema_with(*lines)
    assert '"x"' in str(error.value)
