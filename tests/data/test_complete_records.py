"""Complete records: identifiers, constants and computed columns are added."""

import re
import tomllib
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records, permute_numbers, record_dtypes
from deniable.data.table_io import read_codes, write_table
from deniable.errors import DataError, SchemaError
from deniable.randomness import Keyed
from deniable.schema.schema import Schema

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def schema_of(*columns, top=""):
    """A schema with the integer n, 0 to 9, and the given columns."""
    tables = ['name = "n"\ntype = "integer"\nmin = 0\nmax = 9\nmissing = [""]', *columns]
    return Schema.parse(f"format = 1\n{top}\n" + "\n".join(f"[[attribute]]\n{t}" for t in tables))


def records(schema, *codes, **options):
    return decode_records(Codec(schema), np.array(codes, dtype=np.uint16).reshape(-1, 1), **options)


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


def test_further_identifiers_have_an_order_of_their_own():
    """A customer is not equal to the order; whole releases keep one number for one record."""
    names = ("id", "customer", "branch", "left out")
    columns = [identifier(name=name) for name in names[:3]]
    schema = schema_of(identifier('release = "omit"', names[3]), *columns)
    frame = records(schema, *[0] * 3_000)
    assert frame["id"].to_list() == list(range(1, 3_001))
    for name in names[1:3]:
        assert frame[name].n_unique() == 3_000
        assert frame[name].min() > 0
        assert abs(np.corrcoef(frame["id"], frame[name])[0, 1]) < 0.08
    assert abs(np.corrcoef(frame["customer"], frame["branch"])[0, 1]) < 0.08
    assert records(schema, *[0] * 10, first_record=991).equals(frame[990:1000])


@pytest.mark.parametrize("size", [1, 2, 3, 9, 64, 999, 20_000])
def test_permuted_numbers_are_those_that_were_given(size):
    numbers = np.arange(1, 3 * size + 1)
    orders = [permute_numbers(numbers, name=name, size=size) for name in ("order", "customer")]
    for found in orders:
        for block in range(0, 3 * size, size):
            own = slice(block, block + size)
            assert np.array_equal(np.sort(found[own]), numbers[own])
    if size >= 999:
        assert (orders[0] != numbers).mean() > 0.99
        assert (orders[0] != orders[1]).mean() > 0.99


def test_uuids_are_well_formed_and_depend_on_number_and_salt():
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
    back = kind.restore(decode_records(Codec(schema), codes))
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
    back = kind.restore(decode_records(Codec(schema), codes))
    expected = tomllib.loads(f"c = {value}")["c"]
    assert back["c"].to_list() == [None if expected == "" else expected]
    for name in ("t.csv", "t.parquet"):
        write_table(tmp_path / name, [records(schema, 1, 2)], schema)
        assert read_codes(tmp_path / name, schema)[0].tolist() == [[1], [2]]
    assert (tmp_path / "t.csv").read_text() == f"n,c\n1,{written}\n2,{written}\n"


def test_a_value_other_than_the_constant_fails_or_drops_its_record():
    lines = 'name = "c"\ntype = "constant"\nvalue = "PL"\n'
    frame = pl.DataFrame({"n": [1, 2, 3], "c": ["PL", "SECRET", None]})
    with pytest.raises(DataError) as caught:
        read_codes(frame, schema_of(lines))
    assert 'column "c", row 2 of the table: the value is not "PL"' in str(caught.value)
    assert 'column "c", row 3 of the table: the cell is missing' in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert read_codes(frame, schema_of(lines + 'outside = "drop"'))[0].tolist() == [[1]]


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
    frame = decode_records(Codec(schema), codes)
    assert frame["c"].to_list() == [expected]
    assert frame.schema == record_dtypes(schema.columns)
    if expected is not None:
        assert type(frame["c"][0]) is type(expected)


def test_a_value_computed_from_a_missing_cell_is_missing(tmp_path):
    schema = schema_of(computed("n * 2", 'missing = ["NA"]'))
    frame = records(schema, 3, 10)
    assert frame["c"].to_list() == [6, None]
    write_table(tmp_path / "t.csv", [frame], schema)
    assert (tmp_path / "t.csv").read_text() == "n,c\n3,6\n,NA\n"


def test_a_computed_column_is_written_with_its_decimals(tmp_path):
    schema = schema_of(computed("n / 3", "decimals = 3"))
    write_table(tmp_path / "t.csv", [records(schema, 1, 3)], schema)
    assert (tmp_path / "t.csv").read_text() == "n,c\n1,0.333\n3,1.000\n"


def test_a_computed_column_may_be_absent_and_is_not_checked():
    schema = schema_of(computed("n + 1"))
    assert read_codes(pl.DataFrame({"n": [1]}), schema)[0].tolist() == [[1]]
    assert read_codes(pl.DataFrame({"n": [1], "c": ["x"]}), schema)[0].tolist() == [[1]]


def test_a_computed_column_may_use_one_before_it():
    later = 'name = "d"\ntype = "computed"\nformula = "c * 10"'
    assert records(schema_of(computed("n + 1"), later), 1).rows() == [(1, 2, 20)]
    with pytest.raises(SchemaError, match='needs "c", which is also computed and does not come'):
        schema_of(later, computed("n + 1"))
    with pytest.raises(SchemaError, match='needs "c", which is also computed'):
        schema_of(computed("c + 1"))


def test_a_formula_may_use_a_map_after_it():
    """A map needs a learnt column only, so all maps are computed before formulas."""
    by_map = 'name = "d"\ntype = "computed"\nfrom = "n"\nsteps = [[0, 0.5], [3, 2.5]]'
    schema = schema_of(computed("n + d"), by_map)
    assert Schema.parse(schema.text()) == schema
    assert records(schema, 1, 3).rows() == [(1, 1.5, 0.5), (3, 5.5, 2.5)]
    with pytest.raises(SchemaError, match='needs "d", which is not a numeric column'):
        schema_of(computed("n + d"), by_map.replace("0.5", "'few'").replace("2.5", "'many'"))


# Constraints


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
    frame = decode_records(Codec(schema), codes, Keyed(2).at("records"))
    assert (frame["a"] < frame["b"]).all()
    assert frame["a"].is_between(30, 39).all()
