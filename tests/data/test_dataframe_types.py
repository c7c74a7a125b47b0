"""Column types of a returned frame: those of the schema, whatever the rows made of the input's."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records
from deniable.data.dataframe_types import arrow_type, may_be_missing, pandas_dtype
from deniable.data.table_io import read_codes
from deniable.randomness import Keyed
from deniable.schema.schema import Schema

TEXT = str(pd.Series(["a"]).dtype)
KINDS = {
    "integer": 'type = "integer"\nmin = 0\nmax = 9',
    "integers": 'type = "ordered"\nvalues = [1, 5, 3]',
    "categorical": 'type = "categorical"\nvalues = ["1", "2"]',
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
    "categorical": ((TEXT, TEXT), pl.String, pa.large_string()),
    "real": (("float64", "float64"), pl.Float64, pa.float64()),
    "whole real": (("float64", "float64"), pl.Float64, pa.float64()),
    "boolean": (("bool", "boolean"), pl.Boolean, pa.bool_()),
    "date": (MOMENTS, pl.Date, pa.date32()),
    "datetime": (MOMENTS, pl.Datetime("us"), pa.timestamp("us")),
    "text": ((TEXT, TEXT), pl.String, pa.large_string()),
}


def one(lines):
    return Schema.parse(f'format = 1\n[[attribute]]\nname = "x"\n{lines}\n')


def restored(source, schema, codes):
    """Read a frame for its kind; return records of these codes as such a frame."""
    _, kind = read_codes(source, schema)
    return kind.restore(decode_records(Codec(schema), codes, Keyed(1).at("records")))


def all_codes(schema, rows=4):
    """The first codes and the last, the code of a missing cell where there is one."""
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
        ('type = "identifier"\nformat = "uuid"', TEXT, pa.large_string()),
        ('type = "constant"\nvalue = 3', "int64", pa.int64()),
        ('type = "constant"\nvalue = 3.5', "float64", pa.float64()),
        ('type = "constant"\nvalue = true', "bool", pa.bool_()),
        ('type = "constant"\nvalue = ""', TEXT, pa.large_string()),
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


# Pairs of pandas columns whose types differ because of one row

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


def test_large_integers_are_not_rounded():
    schema = one(f'type = "integer"\nmin = {2**60}\nmax = {2**60 + 2}\nmissing = [""]')
    frame = restored(pd.DataFrame({"x": [2**60]}), schema, all_codes(schema))
    assert frame["x"].tolist()[2] == 2**60 + 1
