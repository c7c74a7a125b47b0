"""Units: which cells name one. A cell means the same in a column of any type."""

from datetime import date, datetime
from decimal import Decimal

import pandas as pd
import polars as pl
import pytest

from deniable.data.table_io import read_table
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


def test_a_column_without_equality_is_refused():
    with pytest.raises(DataError, match="Convert it to text"):
        units_of(pl.Series([[1], [2]]))
