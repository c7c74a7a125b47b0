"""A table with a column of every type: CSV, Parquet and data frames, in and out."""

from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records, record_dtypes
from deniable.data.dataframe_types import arrow_type, may_be_missing, pandas_dtype
from deniable.data.table_io import read_codes, read_table, write_table
from deniable.errors import InvariantError
from deniable.randomness import Keyed
from deniable.schema.schema import Schema

TEXT = """
format = 1

[[attribute]]
name = "id"
type = "identifier"
format = "P{:04d}"

[[attribute]]
name = "level"
type = "ordered"
values = ["low", "middle", "high", "top"]
buckets = { width = 2 }

[[attribute]]
name = "height"
type = "real"
min = 1.0
max = 2.5
decimals = 2
missing = ["NA", "-9"]

[[attribute]]
name = "pay"
type = "real"
min = -1000
max = 100_000
step = 0.25
bins = { edges = [0, 100.5, 5000] }
outside = "clip"

[[attribute]]
name = "smokes"
type = "boolean"
values = ["no", "yes"]
missing = ["?"]

[[attribute]]
name = "born"
type = "date"
min = 1900-01-01
max = 2020-12-31
format = "%d/%m/%Y"
bins = { width = 365 }
missing = [""]

[[attribute]]
name = "seen"
type = "datetime"
min = "2020-01-01"
max = 2020-01-31T23:00:00
step_seconds = 3600
outside = "drop"

[[attribute]]
name = "note"
type = "text"
values = ["fine", "ill"]
other = "something else"

[[attribute]]
name = "country"
type = "constant"
value = "PL"

[[attribute]]
name = "visits"
type = "integer"
min = 0
max = 99_999

[[attribute]]
name = "cost"
type = "computed"
formula = "visits * 12.5 + pay"
decimals = 2
"""
SCHEMA = Schema.parse(TEXT)
CSV = """id,level,height,pay,smokes,born,seen,note,country,visits,cost
A,low,1.00,-1000,no,01/01/1900,2020-01-01T00:00:00,fine,PL,0,1
B, top,2.5,0.1,YES,31/12/2020,2020-01-31T23:59:59,a private matter,PL,99999,2
C,high, 1.499 ,1e9,?,,2020-01-01T01:00:00,ill,PL,5,3
D,top,NA,99.99,no,02/01/1901,2021-01-01T00:00:00,fine,PL,6,4
E,top,-9.0,100.4,No, 02/01/1901 ,2020-01-02T00:30:00,something else,PL,1000,
""".replace(" top,2.5", "top,2.5")
CODES = [
    [0, 0, 0, 0, 0, 0, 0, 0],
    [3, 150, 1, 1, 121, 743, 2, 999],
    [2, 50, 3, 2, 122, 1, 1, 0],
    [3, 151, 2, 0, 1, 24, 2, 10],
]
NAMES = ["id", *SCHEMA.names[:-1], "country", "visits", "cost"]


def one(lines, name="x"):
    return Schema.parse(f'format = 1\n[[attribute]]\nname = "{name}"\n{lines}\n')


# The schema


def test_the_schema_s_text_reads_back_equal():
    assert Schema.parse(SCHEMA.text()) == SCHEMA
    assert SCHEMA.text() == Schema.parse(SCHEMA.text()).text()


def test_learnt_columns_are_attributes_and_all_are_columns():
    assert [column.name for column in SCHEMA.columns] == NAMES
    assert SCHEMA.names == (*NAMES[1:8], "visits")
    assert list(record_dtypes(SCHEMA.columns)) == NAMES
    level, height, pay, smokes, born, seen, note, visits = SCHEMA.attributes
    assert level.groups == (0, 0, 1, 1)
    assert (height.size, height.is_binned, height.buckets) == (152, False, 11)
    assert pay.starts == (-4000, 0, 402, 20_000)
    assert (smokes.size, smokes.missing_code) == (3, 2)
    assert isinstance(born.starts, range)
    assert (born.bins, born.starts.step, born.grid.value_at(0)) == (122, 365, date(1970, 1, 1))
    assert (seen.size, seen.is_binned) == (31 * 24, False)
    assert note.values == ("fine", "ill", "something else")
    assert (visits.size, visits.positions(1), visits.centre(0)) == (1000, range(100, 200), 49.5)


def test_positions_of_all_codes_are_all_positions():
    for attribute in SCHEMA.attributes:
        if attribute.is_numeric:
            ranges = [attribute.positions(code) for code in range(attribute.bins)]
            assert ranges[0][0] == attribute.values[0]
            assert ranges[-1][-1] == attribute.values[-1]
            assert all(a[-1] + 1 == b[0] for a, b in pairwise(ranges))
            assert attribute.widths.tolist() == [len(inside) for inside in ranges]


# Files


def test_cells_of_a_csv_file_become_codes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    assert read_codes(path, SCHEMA)[0].tolist() == CODES


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_records_that_are_written_read_back_as_the_same_codes(tmp_path, name):
    codes = np.array(CODES * 50, dtype=np.uint16)
    records = decode_records(Codec(SCHEMA), codes, Keyed(1).at("records"))
    assert records.schema == record_dtypes(SCHEMA.columns)
    write_table(tmp_path / name, [records[:7], records[7:]], SCHEMA)
    back, kind = read_codes(tmp_path / name, SCHEMA)
    assert np.array_equal(back, codes)
    assert kind.restore(records).equals(records)


def test_csv_has_decimals_formats_and_texts_as_declared(tmp_path):
    codes = np.array([CODES[0], CODES[2]], dtype=np.uint16)
    records = decode_records(Codec(SCHEMA), codes, Keyed(1).at("records"))
    write_table(tmp_path / "t.csv", [records], SCHEMA)
    _, first, second = (tmp_path / "t.csv").read_text().splitlines()
    cells = first.split(",")
    assert cells[:3] == ["P0001", "low", "1.00"]
    assert cells[4] == "no"
    assert datetime.strptime(cells[5], "%d/%m/%Y").year == 1900
    assert cells[6:9] == ["2020-01-01T00:00:00", "fine", "PL"]
    assert len(cells[3].partition(".")[2]) == len(cells[10].partition(".")[2]) == 2
    cells = second.split(",")
    assert cells[:3] == ["P0002", "high", "1.50"]
    assert (cells[4], cells[5], cells[7]) == ("?", "", "ill")


def test_parquet_is_typed(tmp_path):
    records = decode_records(
        Codec(SCHEMA), np.array(CODES, dtype=np.uint16), Keyed(1).at("records")
    )
    write_table(tmp_path / "t.parquet", [records], SCHEMA)
    types = pl.read_parquet(tmp_path / "t.parquet").schema
    assert types == {
        "id": pl.String,
        "level": pl.String,
        "height": pl.Float64,
        "pay": pl.Float64,
        "smokes": pl.Boolean,
        "born": pl.Date,
        "seen": pl.Datetime("us"),
        "note": pl.String,
        "country": pl.String,
        "visits": pl.Int64,
        "cost": pl.Float64,
    }


# Drawing values within bins


def test_values_inside_a_bin_are_uniform():
    """Chi-square of 200,000 draws in a bin of 40 positions, at a false-alarm rate of 1e-6."""
    schema = one('type = "real"\nmin = 0\nmax = 9.9\ndecimals = 1\nbins = { edges = [3.0, 7.0] }')
    codes = np.full((200_000, 1), 1, dtype=np.uint16)
    drawn = Codec(schema).draw_positions(codes, Keyed(8).at("records"))[:, 0]
    assert (drawn.min(), drawn.max()) == (30, 69)
    assert stats.chisquare(np.bincount(drawn - 30)).pvalue > 1e-6
    one_more_often = np.append(drawn, np.full(500, 30))
    assert stats.chisquare(np.bincount(one_more_often - 30)).pvalue < 1e-6


def test_the_same_rng_gives_the_same_values_and_another_gives_others():
    codes = np.array(CODES * 20, dtype=np.uint16)
    first, again, other = (
        decode_records(Codec(SCHEMA), codes, Keyed(k).at("records")) for k in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)
    assert first.select("level", "height", "smokes", "seen", "note").equals(
        other.select("level", "height", "smokes", "seen", "note")
    )


def test_without_rng_only_codes_of_single_values_are_decoded():
    with pytest.raises(InvariantError, match="pass rng"):
        Codec(SCHEMA).decode(np.array(CODES, dtype=np.uint16))
    single = one('type = "date"\nmin = 2020-01-01\nmax = 2020-12-31')
    decoded = Codec(single).decode(np.array([[59]], dtype=np.uint16))
    assert decoded.rows() == [(date(2020, 2, 29),)]


def test_draws_in_bins_too_wide_for_floats_stay_inside():
    schema = one(f'type = "integer"\nmin = 0\nmax = {2**62 - 1}\nbins = {{ width = {2**62} }}')
    drawn = Codec(schema).draw_positions(np.zeros((1000, 1), np.uint16), Keyed(1).at("records"))
    assert 0 <= drawn.min() < drawn.max() < 2**62

    class Last:
        def random(self, size):
            return np.full(size, 1 - 2.0**-53)

    last = Codec(schema).draw_positions(np.zeros((1, 1), np.uint16), Last())
    assert last[0, 0] <= 2**62 - 1


# Data frames


def typed(convert):
    """The table above as a frame of typed columns, without the dropped record."""
    rows = decode_records(Codec(SCHEMA), np.array(CODES, dtype=np.uint16), Keyed(4).at("records"))
    return convert(rows)


@pytest.mark.parametrize(
    "convert", [pl.DataFrame.clone, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow]
)
def test_a_frame_comes_back_with_the_same_values(convert):
    frame = typed(convert)
    table = read_table(frame, SCHEMA)
    assert table.codes.tolist() == CODES
    records = decode_records(Codec(SCHEMA), table.codes, Keyed(4).at("records"))
    back = table.kind.restore(records)
    if isinstance(frame, pl.DataFrame):
        assert back.equals(frame)
    elif isinstance(frame, pd.DataFrame):
        order = pd.CategoricalDtype(["low", "middle", "high", "top"], ordered=True)
        frame = frame.astype({"smokes": "boolean", "born": "datetime64[us]", "level": order})
        pd.testing.assert_frame_equal(back, frame)
    else:
        assert back.schema.types == frame.schema.types
        assert back.to_pylist() == frame.to_pylist()


def test_columns_come_back_in_the_order_of_the_input_and_absent_ones_after_them():
    frame = typed(pl.DataFrame.clone).drop("cost")
    frame = frame.select(reversed(frame.columns))
    _, kind = read_codes(frame, SCHEMA)
    back = kind.restore(typed(pl.DataFrame.clone))
    assert back.columns == [*frame.columns, "cost"]
    assert kind.restore(typed(pl.DataFrame.clone)).drop("cost").equals(frame)
    pandas = frame.to_pandas()
    _, kind = read_codes(pandas, SCHEMA)
    assert list(kind.restore(typed(pl.DataFrame.clone)).columns) == [*frame.columns, "cost"]
    _, kind = read_codes(frame.to_arrow(), SCHEMA)
    assert kind.restore(typed(pl.DataFrame.clone)).column_names == [*frame.columns, "cost"]


# Column types of a returned frame: those of the schema, whatever the rows made of the input's

TEXT_TYPE = str(pd.Series(["a"]).dtype)
KINDS = {
    "integer": 'type = "integer"\nmin = 0\nmax = 9',
    "integers": 'type = "ordered"\nvalues = [1, 5, 3]',
    "categorical": 'type = "categorical"\nvalues = ["1", "2"]',
    "ordered": 'type = "ordered"\nvalues = ["low", "high", "mid"]',
    "real": 'type = "real"\nmin = 0\nmax = 9\ndecimals = 1',
    "whole real": 'type = "real"\nmin = 0\nmax = 9\ndecimals = 0',
    "boolean": 'type = "boolean"',
    "date": 'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31',
    "datetime": 'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nstep_seconds = 86400',
    "text": 'type = "text"\nvalues = ["a"]\nother = "b"',
}
MOMENTS = ("datetime64[us]", "datetime64[us]")
TYPES = {
    "integer": (("int64", "Int64"), pl.Int64, pa.int64()),
    "integers": (("int64", "Int64"), pl.Int64, pa.int64()),
    "categorical": ((TEXT_TYPE, TEXT_TYPE), pl.String, pa.large_string()),
    "ordered": (("category", "category"), pl.String, pa.large_string()),
    "real": (("float64", "float64"), pl.Float64, pa.float64()),
    "whole real": (("float64", "float64"), pl.Float64, pa.float64()),
    "boolean": (("bool", "boolean"), pl.Boolean, pa.bool_()),
    "date": (MOMENTS, pl.Date, pa.date32()),
    "datetime": (MOMENTS, pl.Datetime("us"), pa.timestamp("us")),
    "text": ((TEXT_TYPE, TEXT_TYPE), pl.String, pa.large_string()),
}


def restored(source, schema, codes):
    """Read a frame for its kind; return records of these codes as such a frame."""
    _, kind = read_codes(source, schema)
    return kind.restore(decode_records(Codec(schema), codes, Keyed(1).at("records")))


def all_codes(schema, rows=4):
    """The first codes and the last, the code of a missing cell where there is plain_schema."""
    return np.array([[0], [0], [1]] * rows + [[schema.sizes[0] - 1]], dtype=np.uint16)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_types_are_those_of_the_schema(kind, missing):
    schema = one(KINDS[kind] + ('\nmissing = ["?"]' if missing else ""))
    pandas, polars, arrow = TYPES[kind]
    frame = pl.DataFrame({"x": pl.Series([], dtype=polars)})
    for codes in (all_codes(schema), all_codes(schema)[:1], all_codes(schema)[:0]):
        from_pandas = restored(frame.to_pandas(), schema, codes)
        assert str(from_pandas.dtypes["x"]) == pandas[missing]
        assert from_pandas.index.equals(pd.RangeIndex(len(codes)))
        assert restored(frame, schema, codes).schema == {"x": polars}
        from_arrow = restored(frame.to_arrow(), schema, codes)
        assert from_arrow.schema.equals(pa.schema([("x", arrow)]), check_metadata=True)
        from_arrow.validate(full=True)
    back = restored(frame.to_pandas(), schema, all_codes(schema))["x"].isna()
    assert back.tolist() == [False] * 12 + [missing]


@pytest.mark.parametrize(
    ("lines", "pandas", "arrow"),
    [
        ('type = "identifier"', "int64", pa.int64()),
        ('type = "identifier"\nformat = "uuid"', TEXT_TYPE, pa.large_string()),
        ('type = "constant"\nvalue = 3', "int64", pa.int64()),
        ('type = "constant"\nvalue = 3.5', "float64", pa.float64()),
        ('type = "constant"\nvalue = true', "bool", pa.bool_()),
        ('type = "constant"\nvalue = ""', TEXT_TYPE, pa.large_string()),
        ('type = "computed"\nformula = "x + 1"', "Int64", pa.int64()),
        ('type = "computed"\nformula = "x / 2"', "float64", pa.float64()),
        ('type = "computed"\nformula = "x / x"\ndecimals = 0', "Int64", pa.int64()),
    ],
)
def test_types_of_unmodelled_columns(lines, pandas, arrow):
    schema = Schema.parse(f'{one(KINDS["integer"]).text()}\n[[attribute]]\nname = "y"\n{lines}\n')
    column = schema.columns[1]
    assert str(np.dtype(pandas) if pandas == "int64" else pandas) == str(
        pandas_dtype(column, schema.columns)
    )
    assert arrow_type(column, schema.columns) == arrow
    _, kind = read_codes(pd.DataFrame({"x": [1], "y": pd.Series([None])}).head(0), schema)
    records = decode_records(Codec(schema), np.array([[0], [1]], np.uint16), salt=b"s")
    frame = kind.restore(records)
    assert [str(dtype) for dtype in frame.dtypes] == ["int64", pandas]
    assert frame["y"].isna().any() <= may_be_missing(column)


# Pairs of pandas columns whose types differ because of plain_schema row

M = '\nmissing = ["", "?"]'
D = '\noutside = "drop"'
NEIGHBOURS = [
    ("integer" + M, [1, 2], [1, 2, None]),
    ("integer" + M, [1, 2], [1, 2, "?"]),
    ("integer" + M, [1, 2], ["1", "2", "?"]),
    ("integer" + M, [], [None]),
    ("integer" + D, [1, 2], [1, 2, None]),
    ("integer" + D, [1, 2], [1, 2, "abc"]),
    ("integer" + D, [1, 2], [1, 2, 2.5]),
    ("integer" + D, [1, 2], [1, 2, 10**30]),
    ("integers" + D, [1, 5], [1, 5, 2.5]),
    ("whole real", [1, 2], [1, 2, 2.5]),
    ("whole real" + M, [1, 2], [1, 2, None]),
    ("real" + D, [1, 2], [1, 2, "abc"]),
    ("real" + D, [1.5, 2.5], [1.5, 2.5, Decimal("3.5")]),
    ("boolean" + M, [True, False], [True, False, None]),
    ("boolean" + M, [True, False], [True, False, "?"]),
    ("boolean" + D, [True, False], [True, False, 7]),
    ("boolean" + D, [1, 0], [1, 0, "abc"]),
    ("boolean" + D, [1, 0], [1, 0, 0.5]),
    ("date" + M, [date(2020, 5, 1)], [date(2020, 5, 1), None]),
    ("date" + D, [date(2020, 5, 1)], [date(2020, 5, 1), "abc"]),
    ("datetime" + D, [datetime(2020, 5, 2, 7)], [datetime(2020, 5, 2, 7), "2020-05"]),
    ("categorical" + D, ["1", "2"], ["1", "2", None]),
    ("categorical" + D, ["1", "2"], ["1", "2", 3.5]),
]


def facts(frame):
    """All that a pandas frame shows apart from its cells."""
    return [str(dtype) for dtype in frame.dtypes], list(frame.columns), frame.index, frame.attrs


@pytest.mark.parametrize(("kind", "fewer", "more"), NEIGHBOURS)
def test_one_row_changes_neither_the_returned_frame_nor_the_other_codes(kind, fewer, more):
    name, _, rest = kind.partition("\n")
    schema = one(f"{KINDS[name]}\n{rest}")
    codes, results = [], []
    for cells in (fewer, more):
        frame = pd.DataFrame({"x": pd.Series(cells) if cells else pd.Series(cells, dtype=object)})
        codes.append(read_codes(frame, schema)[0].tolist())
        results.append(facts(restored(frame, schema, all_codes(schema))))
    assert codes[1][: len(codes[0])] == codes[0]
    assert len(codes[0]) == len(fewer)
    assert results[0][:2] == results[1][:2]
    assert results[0][2].equals(results[1][2])
    assert results[0][3] == results[1][3] == {}


@pytest.mark.parametrize(
    ("kind", "one_type", "other"),
    [
        ("integer", pl.Int64, pl.Float64),
        ("integer", pl.Int8, pl.String),
        ("real", pl.Float32, pl.Decimal(8, 3)),
        ("real", pl.Int64, pl.Float64),
        ("categorical", pl.Enum(["1", "2", "3"]), pl.Categorical),
        ("categorical", pl.String, pl.Enum(["2"])),
        ("boolean", pl.Boolean, pl.String),
        ("boolean", pl.Int64, pl.Null),
        ("date", pl.Date, pl.Datetime("ms")),
        ("datetime", pl.Datetime("us", "Asia/Tokyo"), pl.Datetime("ns")),
    ],
)
def test_types_of_polars_and_arrow_inputs_are_not_used(kind, one_type, other):
    """polars infers types from cells as well: pl.read_csv does."""
    schema = one(KINDS[kind] + '\nmissing = [""]')
    one_frame, other_frame = (
        pl.DataFrame({"x": pl.Series([None], dtype=dtype)}) for dtype in (one_type, other)
    )
    codes = all_codes(schema)
    assert restored(one_frame, schema, codes).equals(restored(other_frame, schema, codes))
    assert restored(one_frame, schema, codes).schema == {"x": TYPES[kind][1]}
    nullable = one_frame.to_arrow().replace_schema_metadata({"rows": "1"})
    strict = pa.table(
        [pa.array([], nullable.schema.field("x").type)],
        schema=pa.schema([nullable.schema.field("x").with_nullable(False)]),
    )
    tables = [restored(table, schema, codes) for table in (nullable, strict)]
    assert tables[0].equals(tables[1], check_metadata=True)
    assert tables[0].schema.metadata is None


def test_a_pandas_frame_reads_back_as_the_same_codes():
    for lines in KINDS.values():
        schema = one(lines + '\nmissing = ["?"]')
        frame = restored(pd.DataFrame({"x": pd.Series([None])}), schema, all_codes(schema))
        assert np.array_equal(read_codes(frame, schema)[0], all_codes(schema))


@pytest.mark.parametrize("missing", ["", '\nmissing = ["?"]'])
def test_ordered_values_come_back_to_pandas_in_the_order_of_the_schema(missing):
    schema = one(KINDS["ordered"] + missing)
    typed = pd.Categorical(["mid", "low"], categories=["low", "high", "mid"], ordered=True)
    for cells in (typed, ["mid", "low"]):  # the schema decides, not the type of the input
        codes, kind = read_codes(pd.DataFrame({"x": cells}), schema)
        assert codes.tolist() == [[2], [0]]
        back = kind.restore(decode_records(Codec(schema), codes))["x"]
        assert back.tolist() == ["mid", "low"]
        assert back.dtype == typed.dtype
        assert (back.min(), back.max()) == ("low", "mid")


def test_large_integers_are_not_rounded():
    schema = one(f'type = "integer"\nmin = {2**60}\nmax = {2**60 + 2}\nmissing = [""]')
    frame = restored(pd.DataFrame({"x": [2**60]}), schema, all_codes(schema))
    assert frame["x"].tolist()[2] == 2**60 + 1
