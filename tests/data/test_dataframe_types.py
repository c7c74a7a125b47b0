"""Columns of a returned frame: the type of the input, if it can hold every value."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records, record_dtypes
from deniable.data.table_io import read_codes
from deniable.schema.schema import Schema


def one(lines, name="x"):
    return Schema.parse(f'format = 1\n[[attribute]]\nname = "{name}"\n{lines}\n')


NARROW = {
    "real": ('type = "real"\nmin = 0\nmax = 9\ndecimals = 1\nmissing = [""]', 1.5),
    "whole real": ('type = "real"\nmin = 0\nmax = 9\ndecimals = 0\nmissing = [""]', 2.0),
    "boolean": ('type = "boolean"\nmissing = [""]', True),
    "date": ('type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nmissing = [""]', date(2020, 5, 1)),
    "datetime": (
        'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nstep_seconds = 86400\n'
        'missing = [""]',
        datetime(2020, 5, 1),
    ),
    "integer": ('type = "integer"\nmin = 0\nmax = 9\nmissing = [""]', 2),
}


@pytest.mark.parametrize(
    ("kind", "dtype", "back"),
    [
        ("real", pl.Float32, pl.Float32),
        ("real", pl.Decimal(8, 3), pl.Decimal(8, 3)),
        ("real", pl.Decimal(8, 0), pl.Float64),
        ("real", pl.String, pl.String),
        ("whole real", pl.Int16, pl.Int16),
        ("whole real", pl.Float64, pl.Float64),
        ("boolean", pl.String, pl.String),
        ("boolean", pl.UInt8, pl.UInt8),
        ("boolean", pl.Float64, pl.Float64),
        ("boolean", pl.Categorical, pl.Categorical),
        ("date", pl.Datetime("ms"), pl.Datetime("ms")),
        ("date", pl.String, pl.String),
        ("date", pl.Datetime("us", "Asia/Tokyo"), pl.Datetime("us", "Asia/Tokyo")),
        ("datetime", pl.Datetime("ns"), pl.Datetime("ns")),
        ("datetime", pl.Date, pl.Datetime("us")),
        ("integer", pl.Decimal(8, 2), pl.Decimal(8, 2)),
        ("integer", pl.String, pl.String),
        ("integer", pl.Enum(["2", "5"]), pl.String),
    ],
)
def test_a_polars_type_is_kept_if_it_holds_every_value(kind, dtype, back):
    lines, value = NARROW[kind]
    schema = one(lines)
    natural = pl.DataFrame(
        {"x": pl.Series([value, None], dtype=record_dtypes(schema.columns)["x"])}
    )
    texts = {"boolean": "true", "integer": "2", "date": "2020-05-01", "real": "1.5"}
    is_text = dtype in (pl.String, pl.Categorical, pl.Enum)
    cells: Any = [texts[kind], None] if is_text else natural["x"]
    if isinstance(dtype, pl.Decimal) and dtype.scale == 0:
        cells = [Decimal(2), None]
    frame = pl.DataFrame({"x": pl.Series(cells).cast(dtype)})
    codes, frame_kind = read_codes(frame, schema)
    restored = frame_kind.restore(decode_records(Codec(schema), codes))
    assert restored.dtypes == [back]
    if dtype == back:
        assert restored.equals(frame)


@pytest.mark.parametrize(
    ("kind", "series", "back"),
    [
        ("real", pd.Series([1.5, None]), "float64"),
        ("real", pd.Series([1.5, None], dtype="Float32"), "Float32"),
        ("real", pd.Series([1.5, None], dtype="double[pyarrow]"), "double[pyarrow]"),
        ("real", pd.Series(["1.5", None], dtype=object), "object"),
        ("whole real", pd.Series([2, 2]), "float64"),
        ("boolean", pd.Series([True, False]), "object"),
        ("boolean", pd.Series([True, None], dtype=object), "object"),
        ("boolean", pd.Series([True, None], dtype="boolean"), "boolean"),
        ("boolean", pd.Series([True, None], dtype="bool[pyarrow]"), "bool[pyarrow]"),
        ("boolean", pd.Series([1, 0]), "float64"),
        ("date", pd.Series([datetime(2020, 5, 1), None], dtype="datetime64[ns]"), "datetime64[ns]"),
        ("date", pd.Series([date(2020, 5, 1), None], dtype=object), "object"),
        ("date", pd.Series(["2020-05-01", None]), "str"),
        ("datetime", pd.Series([datetime(2020, 5, 1), None], dtype="datetime64[s]"), None),
        ("datetime", pd.Series([pd.Timestamp("2020-05-01", tz="UTC"), None]), None),
        ("integer", pd.Series([2, None], dtype="Int8"), "Int8"),
        ("integer", pd.Series([2, None]), "float64"),
        ("integer", pd.Series(["2", "5"]).astype("category"), "category"),
    ],
)
def test_a_pandas_dtype_does_not_depend_on_missing_cells(kind, series, back):
    schema = one(NARROW[kind][0])
    codes, frame_kind = read_codes(pd.DataFrame({"x": series}), schema)
    missing = np.array([[schema.sizes[0] - 1]], dtype=np.uint16)
    codes = np.concatenate([codes, missing])
    restored = frame_kind.restore(decode_records(Codec(schema), codes))
    assert str(restored.dtypes["x"]) == (back or str(series.dtype))
    assert restored["x"].isna().tolist()[-1]
    again, _ = read_codes(restored, schema)
    assert np.array_equal(again, codes)


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("real", pa.array([1.5, None], pa.float32())),
        ("real", pa.array([Decimal("1.5"), None], pa.decimal128(10, 2))),
        ("boolean", pa.array([True, None])),
        ("date", pa.array([date(2020, 5, 1), None], pa.date32())),
        ("date", pa.array([date(2020, 5, 1), None], pa.date64())),
        ("datetime", pa.array([datetime(2020, 5, 1), None], pa.timestamp("s"))),
        ("datetime", pa.array([datetime(2020, 5, 1), None], pa.timestamp("us", "Asia/Tokyo"))),
        ("date", pa.array(["2020-05-01", None], pa.large_string())),
        ("integer", pa.array([2, None], pa.int8())),
    ],
)
def test_an_arrow_type_is_kept(kind, array):
    schema = one(NARROW[kind][0])
    table = pa.table({"x": array})
    codes, frame_kind = read_codes(table, schema)
    restored = frame_kind.restore(decode_records(Codec(schema), codes))
    assert restored.schema.field("x").type == array.type
    again, _ = read_codes(restored, schema)
    assert np.array_equal(again, codes)
