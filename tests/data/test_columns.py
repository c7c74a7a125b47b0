"""Columns that are not learnt: identifiers, constants, computed ones; and units."""

import re
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deniable.data.arithmetic import Formula
from deniable.data.schema import Draft, Schema
from deniable.data.tables import read_codes, read_table, write_table
from deniable.errors import DataError, SchemaError
from deniable.randomness import Keyed

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def schema_of(*columns, top=""):
    """A schema of the integer n, 0 to 9, and of what is given."""
    tables = ['name = "n"\ntype = "integer"\nmin = 0\nmax = 9\nmissing = [""]', *columns]
    return Schema.parse(f"format = 1\n{top}\n" + "\n".join(f"[[attribute]]\n{t}" for t in tables))


def records(schema, *codes, **options):
    return schema.records(np.array(codes, dtype=np.uint16).reshape(-1, 1), **options)


# Identifiers


def identifier(lines="", name="id"):
    return f'name = "{name}"\ntype = "identifier"\n{lines}'


@pytest.mark.parametrize(
    ("text", "first", "expected"),
    [
        ("number", 1, [1, 2, 3]),
        ("number", 8, [8, 9, 10]),
        ("P{:03d}", 9, ["P009", "P010", "P011"]),
        ("{}", 9, ["9", "10", "11"]),
        ("{:d}/{{x}}", 1, ["1/{x}", "2/{x}", "3/{x}"]),
        ("a {{{:02}}} b", 99, ["a {99} b", "a {100} b", "a {101} b"]),
    ],
)
def test_identifiers_are_the_running_numbers_of_records(text, first, expected):
    schema = schema_of(identifier(f'format = "{text}"'))
    assert records(schema, 1, 2, 3, first_record=first)["id"].to_list() == expected
    assert Schema.parse(schema.text()) == schema


def test_uuids_have_their_form_and_follow_from_number_and_salt():
    schema = schema_of(identifier('format = "uuid"'))
    codes = [0] * 2000
    ids = records(schema, *codes)["id"]
    assert all(UUID.fullmatch(text) for text in ids)
    assert ids.n_unique() == len(ids)
    assert records(schema, *codes[5:], first_record=6)["id"].equals(ids[5:])
    assert not set(records(schema, *codes, salt=b"other")["id"]) & set(ids)


def test_an_identifier_is_required_unless_it_is_omitted():
    with pytest.raises(DataError, match='has no column "id"'):
        read_codes(pl.DataFrame({"n": [1]}), schema_of(identifier()))
    omitted = schema_of(identifier('release = "omit"'))
    assert read_codes(pl.DataFrame({"n": [1]}), omitted)[0].tolist() == [[1]]
    _, kind = read_codes(pl.DataFrame({"id": ["A"], "n": [1]}), omitted)
    assert kind.restore(records(omitted, 3)).rows() == [(3,)]


def test_no_cell_of_an_identifier_is_released():
    schema = schema_of(identifier(), identifier('format = "uuid"', "name"))
    table = pd.DataFrame({"id": [4711, 4712], "n": [1, 2], "name": ["SECRET", "SECRET2"]})
    codes, kind = read_codes(table, schema)
    back = kind.restore(schema.records(codes))
    assert back["id"].tolist() == [1, 2]
    assert not back["name"].str.contains("SECRET").any()
    assert list(back.columns) == ["id", "n", "name"]


# Constants


@pytest.mark.parametrize(
    ("value", "cells", "written"),
    [
        ('"PL"', pl.Series(["PL"]), "PL"),
        ('"PL"', pl.Series(["PL"], dtype=pl.Categorical), "PL"),
        ("3", pl.Series([3.0]), "3"),
        ("3", pl.Series(["3"]), "3"),
        ("2.50", pl.Series([2.5], dtype=pl.Float32), "2.5"),
        ("true", pl.Series([True]), "true"),
        ("false", pl.Series(["false"]), "false"),
        ('""', pl.Series([None]), ""),
        ('""', pl.Series([None], dtype=pl.Float64), ""),
        ('""', pl.Series([""]), ""),
        ("1e15", pl.Series([1e15]), "1000000000000000"),
    ],
)
def test_a_constant_is_compared_and_written_back(tmp_path, value, cells, written):
    schema = schema_of(f'name = "c"\ntype = "constant"\nvalue = {value}')
    assert Schema.parse(schema.text()) == schema
    codes, kind = read_codes(pl.DataFrame({"n": [1], "c": cells}), schema)
    assert codes.tolist() == [[1]]
    back = kind.restore(schema.records(codes))
    assert back["c"].to_list() == [None] if value == '""' else back["c"].equals(cells.alias("c"))
    for name in ("t.csv", "t.parquet"):
        write_table(tmp_path / name, [records(schema, 1, 2)], schema)
        assert read_codes(tmp_path / name, schema)[0].tolist() == [[1], [2]]
    assert (tmp_path / "t.csv").read_text() == f"n,c\n1,{written}\n2,{written}\n"


def test_another_value_than_the_constant_fails_or_drops_its_record():
    lines = 'name = "c"\ntype = "constant"\nvalue = "PL"\n'
    frame = pl.DataFrame({"n": [1, 2, 3], "c": ["PL", "SECRET", None]})
    with pytest.raises(DataError) as caught:
        read_codes(frame, schema_of(lines))
    assert 'column "c", row 2 of the table: the value is not "PL"' in str(caught.value)
    assert 'column "c", row 3 of the table: the cell is missing' in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert read_codes(frame, schema_of(lines + 'outside = "drop"'))[0].tolist() == [[1]]


@pytest.mark.parametrize("value", ["1e-300", "1e300", "123456789.123456789e-9"])
def test_a_constant_of_too_many_digits_is_refused(value):
    with pytest.raises(SchemaError, match=r'"c": (value has too many digits|.*as text)'):
        schema_of(f'name = "c"\ntype = "constant"\nvalue = {value}')


# Computed columns


def computed(formula, more=""):
    return f'name = "c"\ntype = "computed"\nformula = "{formula}"\n{more}'


OTHERS = (
    'name = "big pay"\ntype = "real"\nmin = 0\nmax = 9\ndecimals = 2\nbins = { width = 0.01 }',
    'name = "from"\ntype = "date"\nmin = 2020-01-01\nmax = 2020-12-31',
    'name = "k"\ntype = "constant"\nvalue = 4',
)


@pytest.mark.parametrize(
    ("formula", "more", "expected"),
    [
        ("n + 1", "", 6),
        ("-n * (2 - +k)", "", 10),
        ("n / 2", "", 2.5),
        ("n / 3", "decimals = 2", 1.67),
        ("n / 3", "decimals = 0", 2),
        ("n / (k - 4)", "", None),
        ("`big pay` * 2 + n", "", 8.0),
        ("`from` - 18000", "", (date(2020, 2, 1) - date(1970, 1, 1)).days - 18000),
        ("n * 1.0", "", 5.0),
        ("`n`*`n`*1e300*1e300", "", None),
    ],
)
def test_a_computed_column_follows_from_the_others(formula, more, expected):
    schema = schema_of(*OTHERS, computed(formula, more))
    assert Schema.parse(schema.text()) == schema
    codes = np.array([[5, 150, 31]], dtype=np.uint16)
    frame = schema.records(codes)
    assert frame["c"].to_list() == [expected]
    assert frame.schema == schema.dtypes
    if expected is not None:
        assert type(frame["c"][0]) is type(expected)


def test_what_is_computed_of_a_missing_cell_is_missing(tmp_path):
    schema = schema_of(computed("n * 2", 'missing = ["NA"]'))
    frame = records(schema, 3, 10)
    assert frame["c"].to_list() == [6, None]
    write_table(tmp_path / "t.csv", [frame], schema)
    assert (tmp_path / "t.csv").read_text() == "n,c\n3,6\n,NA\n"


def test_a_computed_column_is_written_with_its_decimals(tmp_path):
    schema = schema_of(computed("n / 3", "decimals = 3"))
    write_table(tmp_path / "t.csv", [records(schema, 1, 3)], schema)
    assert (tmp_path / "t.csv").read_text() == "n,c\n1,0.333\n3,1.000\n"


def test_a_computed_column_need_not_be_there_and_is_not_checked():
    schema = schema_of(computed("n + 1"))
    assert read_codes(pl.DataFrame({"n": [1]}), schema)[0].tolist() == [[1]]
    assert read_codes(pl.DataFrame({"n": [1], "c": ["x"]}), schema)[0].tolist() == [[1]]


def test_a_computed_column_may_use_one_before_it():
    later = 'name = "d"\ntype = "computed"\nformula = "c * 10"'
    assert records(schema_of(computed("n + 1"), later), 1).rows() == [(1, 2, 20)]
    with pytest.raises(SchemaError, match='needs "c", which is computed too, and does not come'):
        schema_of(later, computed("n + 1"))
    with pytest.raises(SchemaError, match='needs "c", which is computed too'):
        schema_of(computed("c + 1"))


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("", "a formula is a text of at most 1,000"),
        ("1 + 2", 'for a fixed value, use type = "constant"'),
        ("n +", "it cannot be read"),
        ("n ** 9", "something else"),
        ("n // 9", "something else"),
        ("abs(n)", "something else"),
        ("n if n else n", "something else"),
        ("n.real", "something else"),
        ("[n]", "something else"),
        ("__import__('os').system('true')", "something else"),
        ("n + 'a'", "something else"),
        ("n + True", "something else"),
        ("n + 1e999", "too large"),
        ("n + " + "9" * 400, "too large"),
        ("n" + " + n" * 600, "at most 1,000"),
        ("(" * 400 + "n" + ")" * 400, "it cannot be read"),
        ("x + 1", 'needs "x", which is not declared'),
        ("`a b` + 1", 'needs "a b", which is not declared'),
        ("t + 1", 'needs "t", which is no column of numbers'),
        ("id + 1", 'needs "id", which is no column of numbers'),
    ],
)
def test_a_formula_that_is_none_is_refused(formula, why):
    text = 'name = "t"\ntype = "categorical"\nvalues = ["a"]'
    with pytest.raises(SchemaError, match=re.escape(why)):
        schema_of(text, identifier(), computed(formula))


def test_the_decimals_of_a_computed_column_are_few():
    with pytest.raises(SchemaError, match='"c": decimals is from 0 to 9'):
        schema_of(computed("n + 1", "decimals = 10"))


def test_a_formula_knows_the_columns_that_it_names():
    assert set(Formula("a + `b c` * a - `column_0`").names) == {"a", "b c", "column_0"}
    assert set(Formula("column_0 - `b c`").names) == {"column_0", "b c"}


# Units


UNIT = 'unit = "id"\nmax_rows_per_unit = 3'


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series(["A", "B", "A", "C"]),
        pl.Series(["A", "B", "A", "C"], dtype=pl.Categorical),
        pl.Series([7, 5, 7, 2**63 - 1]),
        pl.Series([7.0, 5.0, 7.0, 0.5]),
        pl.Series([date(2020, 1, i) for i in (7, 5, 7, 1)]),
    ],
)
def test_units_say_which_records_are_of_one_person(cells):
    schema = schema_of(identifier(), top=UNIT)
    assert (schema.unit, schema.max_rows_per_unit) == ("id", 3)
    assert Schema.parse(schema.text()) == schema
    table = read_table(pl.DataFrame({"id": cells, "n": [1, 2, 3, 4]}), schema)
    assert table.codes[:, 0].tolist() == [1, 2, 3, 4]
    assert table.units.dtype == np.int64
    one, two, again, other = table.units.tolist()
    assert one == again
    assert len({one, two, other}) == 3


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_units_stay_beside_their_records_where_some_are_dropped(tmp_path, name):
    owner = identifier('outside = "drop"\nmissing = ["?"]')
    schema = Schema.parse(
        f"format = 1\n{UNIT}\n[[attribute]]\n{owner}\n"
        '[[attribute]]\nname = "n"\ntype = "integer"\nmin = 0\nmax = 9\noutside = "drop"\n'
    )
    frame = pl.DataFrame({"id": ["A", "B", "?", "07", "A", "7", ""], "n": [1, 77, 2, 3, 4, 5, 6]})
    getattr(frame, "write_csv" if name == "t.csv" else "write_parquet")(tmp_path / name)
    table = read_table(tmp_path / name, schema)
    assert table.codes[:, 0].tolist() == [1, 3, 4, 5]
    assert table.units[0] == table.units[2]
    assert len(set(table.units.tolist())) == 3


def test_a_record_of_nobody_is_a_fault(tmp_path):
    schema = schema_of(identifier(), top=UNIT)
    (tmp_path / "t.csv").write_text("id,n\nSECRET,1\n,2\n,3\n")
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / "t.csv", schema)
    assert 'column "id", line 3 of t.csv: the cell is missing, so that nobody' in str(caught.value)
    assert "2 lines have this fault" in str(caught.value)
    for empty in ([None, "x"], [float("nan"), 1.0]):
        with pytest.raises(DataError, match='column "id", row 1 of the table'):
            read_table(pl.DataFrame({"id": empty, "n": [1, 2]}), schema)
    with pytest.raises(DataError, match=r"of type List\(Int64\), but says whose record"):
        read_table(pl.DataFrame({"id": [[1]], "n": [1]}), schema)


def test_a_learnt_column_may_be_the_unit():
    schema = schema_of('name = "house"\ntype = "integer"\nmin = 0\nmax = 999', top='unit = "house"')
    table = read_table(pl.DataFrame({"n": [1, 2, 3], "house": [5, 5, 700]}), schema)
    assert table.units.tolist() == [5, 5, 700]
    assert read_table(pl.DataFrame({"n": [1]}), schema_of()).units is None


@pytest.mark.parametrize(
    "column",
    [
        'type = "integer"\nmin = 0\nmax = 99999',
        'type = "integer"\nmin = 0\nmax = 99\noutside = "clip"',
        'type = "integer"\nmin = 0\nmax = 99\nbins = { width = 10 }',
        'type = "text"\nvalues = ["a"]\nother = "b"',
    ],
)
def test_a_column_that_pools_persons_is_no_unit(column):
    """Rows are bounded by code: were two persons one, one gone would let rows of the other in."""
    with pytest.raises(SchemaError, match="two persons could have the same code"):
        schema_of(f'name = "house"\n{column}', top='unit = "house"')


def test_a_draft_bought_for_rows_is_not_one_for_units():
    draft = "\n[draft]\nepsilon = 0.5\ndelta = 1e-9\n"
    with pytest.raises(SchemaError, match="bought for single rows"):
        schema_of(identifier(), top=UNIT + draft)
    with pytest.raises(SchemaError, match="bought for"):
        schema_of(identifier(), top=UNIT + draft + 'unit = "household"\n')
    assert schema_of(identifier(), top=UNIT + draft + 'unit = "id"\n').draft.unit == "id"


def test_a_unit_that_is_omitted_may_not_be_absent_from_the_table():
    schema = schema_of(identifier('release = "omit"'), top=UNIT)
    with pytest.raises(DataError, match='has no column "id"'):
        read_table(pl.DataFrame({"n": [1]}), schema)


# The rest of a schema


def test_draft_constraints_and_unit_read_back_equal():
    text = """
format = 1
unit = "id"

[draft]
epsilon = 0.5
delta = 1e-9
unit = "id"

[[attribute]]
name = "id"
type = "identifier"
confirmed = false

[[attribute]]
name = "a b"
type = "integer"
min = 0
max = 9

[[attribute]]
name = "day"
type = "date"
min = 2020-01-01
max = 2020-12-31

[[attribute]]
name = "t"
type = "categorical"
values = ["x", "y\\"z"]

[[constraint]]
forbid = { "a b" = { below = 3 }, t = ["y\\"z"], day = { at_least = 2020-02-02 } }

[[constraint]]
allow = { columns = ["a b", "t"], rows = [[4, "x"], [5, "y\\"z"]] }
"""
    schema = Schema.parse(text)
    assert schema.draft == Draft(epsilon=0.5, delta=1e-9, unit="id")
    assert [constraint.kind for constraint in schema.constraints] == ["forbid", "allow"]
    assert schema.drafted == ("id",)
    assert Schema.parse(schema.text()) == schema


def test_records_keep_the_constraints_inside_their_bins():
    schema = Schema.parse(
        "format = 1\n"
        + "".join(
            f'[[attribute]]\nname = "{name}"\ntype = "integer"\nmin = 0\nmax = 99\n'
            "bins = { width = 10 }\n"
            for name in "ab"
        )
        + '[[constraint]]\nless = ["a", "b"]\n'
    )
    codes = np.full((500, 2), 3, dtype=np.uint16)
    frame = schema.records(codes, Keyed(2).at("records"))
    assert (frame["a"] < frame["b"]).all()
    assert frame["a"].is_between(30, 39).all()
