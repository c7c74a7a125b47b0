"""Units: which cells name one. A cell means the same in a column of any type."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.data.table_io import read_table
from deniable.data.typed_texts import decimal_texts, has_text, moment_text, number_text
from deniable.errors import DataError
from deniable.schema.schema import Schema

INF = float("inf")


def schema_of(missing='["0"]', outside="drop"):
    return Schema.parse(f"""
format = 1
unit = "id"
max_rows_per_unit = 9
[[attribute]]
name = "id"
type = "identifier"
missing = {missing}
outside = "{outside}"
[[attribute]]
name = "row"
type = "integer"
min = 0
max = 9
""")


def units_of(cells, schema=None):
    """Return the unit of each row, by the row; dropped rows are absent."""
    frame = {"id": cells, "row": range(len(cells))}
    kind = pl.DataFrame if isinstance(cells, pl.Series) else pd.DataFrame
    table = read_table(kind(frame), schema or schema_of())
    rows = table.codes[:, 0].tolist()
    return dict(zip(rows, table.units.tolist(), strict=True))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64", "Int64", object, "str"])
def test_a_text_that_means_missing_does_so_in_a_column_of_any_type(dtype):
    assert units_of(pd.Series([0, 1, 1, 2]).astype(dtype)) == {1: 1, 2: 1, 3: 2}


def test_one_text_does_not_change_which_units_are_missing():
    assert units_of(pd.Series([0, 1, 1, 2, "x"], dtype=object)) == {1: 1, 2: 1, 3: 2, 4: 3}


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        (pl.Series([True, False]), '["True"]'),
        (pl.Series([date(2020, 1, 1), date(2020, 1, 2)]), '["2020-01-01"]'),
        (pl.Series([datetime(2020, 1, 1), datetime(2020, 1, 2)]), '["2020-01-01T00:00:00"]'),
        (pl.Series([Decimal("2.50"), Decimal("2.51")]), '["2.5"]'),
        (pl.Series([2.5, 2.51]), '["2.5"]'),
        (pl.Series(["a", "b"], dtype=pl.Categorical), '["a"]'),
    ],
)
def test_every_typed_cell_has_a_text(cells, missing):
    assert units_of(cells, schema_of(missing)) == {1: 1}
    objects = pd.Series([*cells.to_list(), "x"], dtype=object)
    assert list(units_of(objects, schema_of(missing))) == [1, 2]


def test_an_infinite_number_names_no_unit():
    numbers = [INF, -INF, float("nan"), 1.0]
    assert units_of(pd.Series(numbers)) == {3: 1}
    assert list(units_of(pd.Series([*numbers, Decimal("Infinity"), "x"], dtype=object))) == [3, 5]


def test_floats_that_may_have_been_other_integers_are_refused():
    """pandas makes integers floats if one cell is missing; two units could then be one."""
    large = [2**53, 2**53 + 1]
    assert len(set(units_of(pd.Series(large)).values())) == 2
    for outside in ("drop", "error"):
        with pytest.raises(DataError, match="2\\^53"):
            units_of(pd.Series([*large, None]), schema_of(outside=outside))
    assert len(set(units_of(pd.Series([*large, None], dtype="Int64")).values())) == 2


def test_times_of_objects_keep_every_digit():
    """Arrow would drop the nanoseconds of one time because another has none."""
    later = pd.Timestamp("2020-01-01 00:00:00.000000001")
    cells = pd.Series([datetime(2020, 1, 1), later], dtype=object)
    assert len(set(units_of(cells).values())) == 2


OMITTED = Schema.parse("""
format = 1
unit = "id"
max_rows_per_unit = 9
[[attribute]]
name = "id"
type = "identifier"
release = "omit"
missing = ["?"]
outside = "drop"
[[attribute]]
name = "row"
type = "integer"
min = 0
max = 9
""")
IDS: dict[str, list[Any]] = {
    "texts": ["a", "b", "a", "?", ""],
    "integers": [1, 2, 1, 3],
    "floats": [1.5, 2.0, 1.5, INF, float("nan")],
    "times": [datetime(2020, 1, 1), datetime(2020, 1, 2), datetime(2020, 1, 1)],
    "durations": [timedelta(1), timedelta(2), timedelta(1)],
    "UUIDs": [UUID(int=1), UUID(int=2), UUID(int=1)],
}


def same_units(found, expected):
    """Whether the rows of ``expected`` are there, and two have one unit if they had one."""
    pairs = {(found.get(row), unit) for row, unit in expected.items()}
    kept = [row for row in found if row in expected]
    return kept == list(expected) and len(pairs) == len(set(expected.values()))


@pytest.mark.parametrize("odd", [[1], b"x", b"\xff", 1 + 2j, {"a": 1}, "\ud800"])
@pytest.mark.parametrize("kind", IDS)
def test_one_odd_cell_leaves_the_others_their_units(kind, odd):
    """All rows were dropped because of it: the column became null as a whole."""
    cells = IDS[kind]
    expected = units_of(pd.Series(cells), OMITTED)
    assert list(expected)[:3] == [0, 1, 2]
    assert expected[0] == expected[2] != expected[1]
    columns = [pd.Series([*cells, odd], dtype=object)]
    if not isinstance(odd, str):  # pandas itself refuses to infer a type for it
        columns.append(pd.Series([*cells, odd]))
    for column in columns:
        found = units_of(column, OMITTED)
        assert set(found) - set(expected) <= {len(cells)}
        assert same_units(found, expected)


def test_complex_numbers_that_may_have_been_other_integers_are_refused():
    with pytest.raises(DataError, match="2\\^53"):
        units_of(pd.Series([2**53, 2**53 + 1, 1j]), OMITTED)


def arrow_texts(cells: list[bytes], arrow_type: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(arrow_type, len(cells), pa.array(cells, pa.binary()).buffers())


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.binary()])
@pytest.mark.parametrize("odd", [b"x", b"\xff"])
def test_one_cell_of_bytes_leaves_the_others_their_units(arrow_type, odd):
    """In Arrow it makes all cells bytes, and those that mean missing were units."""
    cells = [b"a", b"b", b"a", b"?", b""]
    for names in (
        arrow_texts([*cells, odd], arrow_type),
        arrow_texts([*cells, odd, odd], arrow_type),
    ):
        table = pa.table({"id": names, "row": range(len(names))})
        for source in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
            read = read_table(source, OMITTED)
            found = dict(zip(read.codes[:, 0].tolist(), read.units.tolist(), strict=True))
            expected = {0: 1, 1: 2, 2: 1, **dict.fromkeys(range(5, len(names)), 3)}
            assert list(found) == list(expected)
            assert same_units(found, expected)


def test_a_column_without_equality_is_refused():
    with pytest.raises(DataError, match="Convert it to text"):
        units_of(pl.Series([[1], [2]]))


# Texts of typed cells: equal numbers have equal texts, in Python and in polars


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((7, 7.0, Decimal("7.00"), Decimal("0.7E+1")), "7"),
        ((0, 0.0, -0.0, Decimal("-0.0")), "0"),
        ((2.5, Decimal("2.50")), "2.5"),
        ((10**20, 1e20, Decimal("1E20")), "1" + 20 * "0"),
        ((INF, Decimal("Infinity")), "inf"),
        ((-INF,), "-inf"),
    ],
)
def test_equal_numbers_have_one_text(numbers, text):
    assert [number_text(number) for number in numbers] == [text] * len(numbers)


def test_one_instant_has_one_text():
    tokyo = timezone(timedelta(hours=9))
    same = [datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)]
    same.append(datetime(2020, 1, 1, 9, tzinfo=tokyo))
    assert {moment_text(moment) for moment in same} == {"2020-01-01T00:00:00"}
    assert moment_text(date(2020, 1, 1)) == "2020-01-01"


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([0, 9, 2**62, None]),
        pl.Series([0, 2**63, 2**64 - 1, None], dtype=pl.UInt64),
        pl.Series([0.0, -0.0, 9.0, 2.5, 1e-7, 1e20, 2.0**53, INF, -INF, None]),
        pl.Series([0.5, 0.25, None], dtype=pl.Float32),
        pl.Series([True, False, None]),
        pl.Series([Decimal("2.50"), Decimal("10.00"), Decimal("0.00"), None]),
        pl.Series([date(2020, 1, 1), date(1900, 1, 1), None]),
        pl.Series([datetime(2020, 1, 1), datetime(1900, 1, 1, 5, 6, 7, 8), None]),
        pl.Series([datetime(2020, 1, 1), None], dtype=pl.Datetime("ms")),
        pl.Series([datetime(2020, 1, 1), None], dtype=pl.Datetime("ns")),
        pl.Series(["a", "", None]),
    ],
)
def test_a_typed_cell_has_its_own_text_and_no_other(cells):
    frame = cells.to_frame("x")

    def with_text(text):
        found = frame.select(found=has_text(pl.col("x"), cells.dtype, [text, "?"])).to_series()
        return found.fill_null(value=False).to_list() if len(found) > 1 else [found.item()]

    for cell in cells.drop_nulls():
        text = text_of(cell)
        expected = [other is not None and text_of(other) == text for other in cells]
        assert with_text(text) == expected
    for text in (f"{2**53 + 1}", "09", "9.0", "1e3", "NaN", "2020-01-01 00:00:00", "9" * 400):
        assert not any(with_text(text))


def text_of(cell):
    if isinstance(cell, bool | str):
        return str(cell)
    return moment_text(cell) if isinstance(cell, date) else number_text(cell)


def test_decimals_are_written_as_in_python():
    cells = pl.Series("x", [Decimal("2.50"), Decimal("10.00"), Decimal("0.00"), None])
    written = cells.to_frame().select(decimal_texts(pl.col("x"), cells.dtype)).to_series()
    assert written.to_list() == ["2.5", "10", "0", None]
    whole = pl.Series("x", [Decimal(100)], dtype=pl.Decimal(9, 0))
    assert whole.to_frame().select(decimal_texts(pl.col("x"), whole.dtype)).item() == "100"
