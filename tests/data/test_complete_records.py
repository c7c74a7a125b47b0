"""Complete records: identifiers, constants and computed columns are added."""

import gc
import re
import threading
import tomllib
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deniable.data.batches import iter_batches, moved_columns, moved_shares
from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records, permute_numbers, record_dtypes
from deniable.data.table_io import read_codes, read_table, write_table
from deniable.errors import DataError, InvariantError, SchemaError
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


# Batches are in row order, even if polars is not; rows have owners; adjusted cells are counted

TABLE = pl.DataFrame({"a": range(10)})
UNIT = 'unit = "id"\nmax_rows_per_unit = 3'


def batches(monkeypatch, *rows):
    """Run ``iter_batches`` on a polars that returns batches of these rows."""
    monkeypatch.setattr(
        pl.LazyFrame,
        "sink_batches",
        lambda self, queue, **_: [queue(self.collect()[list(batch)]) for batch in rows],
    )
    return list(iter_batches(TABLE.lazy(), [pl.col("a"), (pl.col("a") * 2).alias("b")]))


def test_batches_out_of_order_are_reordered(monkeypatch):
    found = batches(monkeypatch, range(6, 10), range(2, 6), (), range(2))
    assert [batch["a"].to_list() for batch in found] == [[0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]
    assert pl.concat(found)["b"].to_list() == list(range(0, 20, 2))


@pytest.mark.parametrize("rows", [[range(2), range(4, 10)], [[0, 2, 4]], [range(1, 10)]])
def test_omitted_rows_are_an_error(monkeypatch, rows):
    with pytest.raises(InvariantError, match="polars"):
        batches(monkeypatch, *rows)


def test_batches_of_polars_cover_the_table_in_order():
    whole = pl.concat(iter_batches(TABLE.lazy(), [pl.col("a")]))
    assert whole.equals(TABLE)
    assert list(iter_batches(TABLE.head(0).lazy(), [pl.col("a")])) == []


def test_a_panic_of_polars_is_no_end_of_the_table():
    """polars 2.1 ends ``collect_batches`` without an error where one of its threads panics."""
    days = pl.Series("a", [2**31 - 1] * 3, dtype=pl.Int32).cast(pl.Date).to_frame()
    with pytest.raises(pl.exceptions.PanicException):
        list(iter_batches(days.lazy(), [pl.col("a").cast(pl.Datetime("us"))]))


def test_an_error_of_polars_is_raised():
    with pytest.raises(pl.exceptions.InvalidOperationError):
        list(iter_batches(pl.LazyFrame({"a": ["x"]}), [pl.col("a").cast(pl.Int64)]))


def test_polars_stops_when_no_more_batches_are_wanted():
    table = pl.LazyFrame({"a": range(2_000_000)})
    for batch in iter_batches(table, [pl.col("a").sin()]):
        assert batch.height
        break
    gc.collect()
    assert not any(thread.name == "batches" for thread in threading.enumerate())


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
def test_records_of_one_unit_have_the_same_number(cells):
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
def test_units_match_their_records_when_some_are_dropped(tmp_path, name):
    owner = identifier('outside = "drop"\nmissing = ["?"]')
    schema = Schema.parse(
        f"format = 1\n{UNIT}\n[[attribute]]\n{owner}\n"
        '[[attribute]]\nname = "n"\ntype = "integer"\nmin = 0\nmax = 9\noutside = "drop"\n'
    )
    frame = pl.DataFrame({"id": ["A", "B", "?", "07", "A", "7", ""], "n": [1, 77, 2, 3, 4, 5, 6]})
    getattr(frame, "write_csv" if name == "t.csv" else "write_parquet")(tmp_path / name)
    table = read_table(tmp_path / name, schema)
    assert table.codes[:, 0].tolist() == [1, 3, 4, 5]
    assert table.units is not None
    assert table.units[0] == table.units[2]
    assert len(set(table.units.tolist())) == 3


def test_a_record_without_a_unit_is_a_fault(tmp_path):
    schema = schema_of(identifier(), top=UNIT)
    (tmp_path / "t.csv").write_text("id,n\nSECRET,1\n,2\n,3\n")
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / "t.csv", schema)
    assert 'column "id", line 3 of t.csv: the cell is missing, so the unit' in str(caught.value)
    assert "2 lines have this fault" in str(caught.value)
    for empty in ([None, "x"], [float("nan"), 1.0]):
        with pytest.raises(DataError, match='column "id", row 1 of the table'):
            read_table(pl.DataFrame({"id": empty, "n": [1, 2]}), schema)
    with pytest.raises(DataError, match=r"is the unit .*, but has type List\(Int64\)"):
        read_table(pl.DataFrame({"id": [[1]], "n": [1]}), schema)


def test_a_learnt_column_may_be_the_unit():
    schema = schema_of('name = "house"\ntype = "integer"\nmin = 0\nmax = 999', top='unit = "house"')
    table = read_table(pl.DataFrame({"n": [1, 2, 3], "house": [5, 5, 700]}), schema)
    assert table.units.tolist() == [5, 5, 700]
    assert read_table(pl.DataFrame({"n": [1]}), schema_of()).units is None


def test_an_omitted_identifier_is_required_if_it_is_the_unit():
    schema = schema_of(identifier('release = "omit"'), top=UNIT)
    with pytest.raises(DataError, match='has no column "id"'):
        read_table(pl.DataFrame({"n": [1]}), schema)


# Cells that a fallback adjusts


CLIPPED = 'type = "integer"\nmin = 0\nmax = 9\noutside = "clip"\nmissing = ["-9"]\nfallback = 4'
LISTED = 'type = "categorical"\nvalues = [0, 1, 4]\nfallback = 4'
REAL = 'type = "real"\nmin = 0\nmax = 9\ndecimals = 1\noutside = "clip"\nfallback = 4'
TEXT = 'type = "text"\nvalues = ["a"]\nother = "rest"\nmissing = [""]\nfallback = ""'
CODES = 'type = "integer"\nmin = 0\nmax = 3\nmissing = ["-9", "99"]'
WORDS = 'type = "categorical"\nvalues = ["y"]\nmissing = ["?", "", "NA"]'
YEARS = 'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\noutside = "clip"\nfallback = 2020-02-01'


def described_schema(*described):
    columns = (f'[[attribute]]\nname = "{name}"\n{lines}' for name, lines in described)
    return Schema.parse("format = 1\n\n" + "\n\n".join(columns))


@pytest.mark.parametrize(
    ("lines", "cells", "counts"),
    [
        (CLIPPED, ["0", "9", "4.0", "-9"], {}),
        (
            CLIPPED,
            ["-1", "10", "9e20", "x", "", "3.5"],
            {"clipped": 3, "replaced": 2, "rounded": 1},
        ),
        (CLIPPED, ["99.5", "4.4", "4.6"], {"clipped": 1, "rounded": 2}),
        (LISTED, ["0", "1", "4"], {}),
        (LISTED, ["2", "x", "1.2", "2.2"], {"replaced": 3, "rounded": 1}),
        (REAL, ["0", "8.9", "9"], {}),
        (REAL, ["0", "8.94", "0.1", "0.3"], {"rounded": 1}),
        (REAL, ["-0.1", "11", "?", "?"], {"clipped": 2, "replaced": 2}),
        (TEXT, ["a", "rest", ""], {}),
        (TEXT, ["b", "c", "a"], {"other": 2}),
        (YEARS, ["2020-05-05"], {}),
        (YEARS, ["2019-05-05", "2021-01-01", "soon"], {"clipped": 2, "replaced": 1}),
    ],
)
def test_cells_that_a_fallback_adjusts_are_counted(tmp_path, lines, cells, counts):
    path = tmp_path / "t.csv"
    path.write_text("k,x\n" + "".join(f"1,{cell}\n" for cell in cells))
    schema = described_schema(("k", 'type = "categorical"\nvalues = [1]'), ("x", lines))
    assert read_table(path, schema).adjusted == ({"x": counts} if counts else {})
    frame = pl.DataFrame({"k": [1] * len(cells), "x": cells})
    assert read_table(frame, schema).adjusted == ({"x": counts} if counts else {})


@pytest.mark.parametrize(
    ("lines", "cells", "counts"),
    [
        (CLIPPED, [5, 12, None], {"clipped": 1}),
        (CLIPPED, [5.0, 12.5, 3.5, float("nan")], {"clipped": 1, "rounded": 1}),
        (CLIPPED, [True, None], {"replaced": 1}),
        (LISTED, [1, 3, None], {"replaced": 2}),
        (TEXT, [1, 2, None], {"other": 2}),
        (TEXT, [None, None], {}),
    ],
)
def test_typed_cells_that_a_fallback_adjusts_are_counted(lines, cells, counts):
    table = read_table(pl.DataFrame({"x": cells}), described_schema(("x", lines)))
    assert table.adjusted == ({"x": counts} if counts else {})


def test_rows_that_are_dropped_are_not_counted():
    dropping = 'type = "categorical"\nvalues = ["yes"]\noutside = "drop"'
    frame = pl.DataFrame({"x": [50, 60, 5], "y": ["yes", "no", "yes"]})
    table = read_table(frame, described_schema(("x", CLIPPED), ("y", dropping)))
    assert len(table.codes) == 2
    assert table.adjusted == {"x": {"clipped": 1}}


@pytest.mark.parametrize(
    ("lines", "cells", "counts"),
    [
        (CLIPPED.replace("\nfallback = 4", ""), ["50", "5"], {"clipped": 1}),
        ('type = "text"\nvalues = ["a"]\nother = "rest"', ["a", "b", "rest"], {"other": 1}),
        ('type = "real"\nmin = 0\nmax = 9\nstep = 0.05', ["0.15", "0.35", "1.02"], {"rounded": 1}),
        (CODES, ["-9", "99", "1", "99"], {"missing": 2}),
        (CODES, ["-9", "-9", "1"], {}),
        (WORDS, ["?", "", "NA", "y"], {"missing": 2}),
    ],
)
def test_cells_of_columns_without_a_fallback_are_counted(tmp_path, lines, cells, counts):
    path = tmp_path / "t.csv"
    path.write_text("k,x\n" + "".join(f"1,{cell}\n" for cell in cells))
    schema = described_schema(("k", 'type = "categorical"\nvalues = [1]'), ("x", lines))
    assert read_table(path, schema).adjusted == ({"x": counts} if counts else {})
    frame = pl.DataFrame({"k": [1] * len(cells), "x": cells})
    assert read_table(frame, schema).adjusted == ({"x": counts} if counts else {})


def test_typed_missing_codes_are_counted():
    found = read_table(pl.DataFrame({"x": [-9, 99, 1, None]}), described_schema(("x", CODES)))
    assert found.adjusted == {"x": {"missing": 1}}


def test_moved_cells_can_have_a_code_of_their_own():
    """Rounding moves nothing, nor does another text that means missing."""
    schema = described_schema(("x", CLIPPED), ("y", CODES), ("t", TEXT))
    frame = pl.DataFrame({"x": ["5", "50", "4.6"], "y": ["1", "99", "-9"], "t": ["a", "a", "zz"]})
    plain = read_table(frame, schema)
    marked = read_table(frame, schema, marks_moved=True)
    moved = marked.codes != plain.codes
    assert moved.tolist() == [[False, False, False], [True, False, False], [False, False, True]]
    sizes = np.array([each.size for each in schema.attributes])
    assert ((marked.codes == sizes) == moved).all()
    assert marked.adjusted == plain.adjusted


def test_columns_are_named_from_half_a_percent_of_moved_cells():
    adjusted = {
        "a": {"clipped": 3, "replaced": 2, "rounded": 500},
        "b": {"other": 4, "missing": 900},
        "c": {"other": 10},
        "d": {"rounded": 1_000},
    }
    assert moved_columns(adjusted, 1_000) == ("c", "a")
    assert moved_shares(adjusted, 1_000) == {"a": 0.005, "b": 0.004, "c": 0.01}


def test_counts_add_up_over_batches():
    frame = pl.DataFrame({"x": [5, 50] * 300_000})
    assert read_table(frame, described_schema(("x", CLIPPED))).adjusted == {
        "x": {"clipped": 300_000}
    }


def test_counts_are_not_printed():
    table = read_table(pl.DataFrame({"x": [50]}), described_schema(("x", CLIPPED)))
    assert "clipped" not in repr(table)
