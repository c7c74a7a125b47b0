"""Columns of pandas frames and Arrow tables: whatever their types, none stops a private draft."""

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.data.table_io import read_codes
from deniable.drafting.cell_patterns import UNSUPPORTED_CELL
from deniable.drafting.column_profile import open_table
from deniable.drafting.draft import draft_schema
from deniable.drafting.frame_columns import arrow_columns, pandas_columns
from deniable.errors import DataError
from deniable.schema.schema import Schema

LONG = Decimal("1." + "1" * 50)
LONG_TABLES = {
    "arrow": pa.table({"x": [Decimal("1.50"), LONG]}),
    "arrow list": pa.table({"x": [[Decimal("1.50")], [LONG]]}),
    "arrow dictionary": pa.table(
        {"x": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([Decimal("1.50"), LONG]))}
    ),
    "pandas": pd.DataFrame({"x": [Decimal("1.50"), LONG]}),
    "pandas arrow": pd.DataFrame(
        {"x": pd.Series([LONG], dtype=pd.ArrowDtype(pa.decimal256(60, 50)))}
    ),
}


def texts_of(source: object) -> list[str]:
    """The counted texts of a table with one column."""
    [column] = open_table(source, private=True).read_texts()
    return sorted(column.texts)


@pytest.fixture
def silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Nothing is written to the file descriptors: Rust prints panics there."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("case", LONG_TABLES)
def test_long_decimals_do_not_make_polars_panic(case):
    texts = texts_of(LONG_TABLES[case])
    assert texts == ([UNSUPPORTED_CELL] if case == "arrow list" else texts)
    assert ("1.5" in texts) == (case in ("arrow", "arrow dictionary", "pandas"))
    with pytest.raises(DataError, match="several types"):
        open_table(LONG_TABLES[case])


@pytest.mark.parametrize(
    "odd", [np.complex64(2j), 2j, np.clongdouble(2j), np.longdouble(3), np.longdouble("1e4000")]
)
def test_one_complex_number_or_long_double_leaves_the_other_cells(odd):
    before = pd.DataFrame({"x": [1.0, 2.5, float("nan"), 0.1 + 0.2]})
    after = pd.DataFrame({"x": np.append(before["x"].to_numpy(), odd)})
    assert after["x"].dtype.kind in "cf"
    assert after["x"].dtype != before["x"].dtype
    own = [UNSUPPORTED_CELL] if np.iscomplex(odd) or np.isinf(float(odd.real)) else ["3"]
    assert texts_of(after) == sorted([*texts_of(before), *own])
    assert 'name = "x"' in draft_schema(after, draft_epsilon=1.0).text
    with pytest.raises(DataError, match="several types"):
        draft_schema(after)


ARROW_TYPES = [
    *(pa.float16(), pa.string_view(), pa.binary(3), pa.date64(), pa.time32("s"), pa.duration("s")),
    *(pa.timestamp("us", "+05:30"), pa.timestamp("ns", "Nowhere/Land"), pa.decimal128(5, -2)),
    *(pa.decimal256(50, 2), pa.null(), pa.month_day_nano_interval(), pa.list_view(pa.int8())),
    *(pa.dictionary(pa.int32(), pa.int64()), pa.list_(pa.decimal256(50, 2)), pa.uuid()),
    *(pa.map_(pa.string(), pa.int8()), pa.run_end_encoded(pa.int32(), pa.int64())),
]


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("dtype", ARROW_TYPES, ids=str)
def test_no_arrow_type_stops_a_private_draft(dtype):
    [column] = arrow_columns(pa.table({"x": pa.nulls(3, dtype)}), private=True)
    assert (column.name, column.null_count()) == ("x", 3)


def test_categories_with_an_order_are_drafted_in_it():
    levels, cells = ["none", "school", "degree", "doctorate"], ["school", "none", "degree"] * 20
    ordered = pd.Categorical([*cells, None], categories=levels, ordered=True)
    codes = pa.array([*([1, 0, 2] * 20), None])
    arrow = pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=True)
    for source in (
        pd.DataFrame({"x": ordered}),
        pl.DataFrame({"x": pl.Series([*cells, None], dtype=pl.Enum(levels))}),
        pa.table({"x": arrow}),
    ):
        [x] = Schema.parse(draft_schema(source).text).attributes
        assert (x.kind, list(x.values), x.missing) == ("ordered", levels, ("",))
        assert read_codes(source, Schema.parse(draft_schema(source).text))[0][0].tolist() == [1]
    plain = pd.DataFrame({"x": ordered.as_unordered()})
    [x] = Schema.parse(draft_schema(plain).text).attributes
    assert (x.kind, list(x.values)) == ("categorical", ["degree", "none", "school"])


@pytest.mark.parametrize("zone", ["+05:30", "Nowhere/Land", "UTC"])
def test_times_in_any_zone_are_read(zone):
    column = pa.array([1, None], pa.timestamp("ns", zone))
    assert texts_of(pa.table({"x": column})) == ["1970-01-01T00:00:00"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.period_range("2020-01", periods=2, freq="M")),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series(pd.arrays.SparseArray([1, 2])),
        pd.Series(["oak", "elm"], dtype="string"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series(pd.to_datetime(["2020-01-01 01:00+05:30"])),
        pd.Series([pd.Timestamp("2020-01-01")], dtype=pd.ArrowDtype(pa.date64())),
    ],
    ids=lambda column: str(column.dtype),
)
def test_a_pandas_type_and_its_objects_have_the_same_texts(column):
    typed, objects = (pd.DataFrame({"x": each}) for each in (column, column.astype(object)))
    assert texts_of(typed) == texts_of(objects)
    assert [each.name for each in pandas_columns(typed, private=True)] == ["x"]
