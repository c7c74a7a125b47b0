"""Opening tables and profiling columns: distinct values, counts, and the value of each row."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.column_profile import is_unsupported, open_table, require_column
from deniable.errors import ConfigError, DataError


def test_a_profile_restores_every_row():
    cells = ["oak", None, "elm", "oak", None, "ash"]
    [column] = open_table(pl.DataFrame({"tree": cells})).read()
    assert column.values.to_list() == ["ash", "elm", "oak"]
    assert (column.counts.tolist(), column.nulls, column.rows) == ([1, 1, 2], 2, 6)
    values = [*column.values, None]
    assert [values[i] for i in column.value_indices] == cells


def test_nan_counts_as_null():
    [column] = open_table(pl.DataFrame({"x": [1.5, float("nan"), None]})).read()
    assert (column.values.to_list(), column.nulls) == ([1.5], 2)


def test_columns_read_in_groups_are_the_same(monkeypatch):
    frame = pl.DataFrame({name: [1, 2, 2] for name in "abcd"})
    together = open_table(frame).read()
    monkeypatch.setattr("deniable.drafting.column_profile._MAX_CELLS_IN_MEMORY", 3)
    steps: list[tuple[int, int]] = []
    alone = open_table(frame).read(lambda _, done, total: steps.append((done, total)))
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for one, other in zip(together, alone, strict=True):
        assert one.name == other.name
        assert np.array_equal(one.counts, other.counts)


def test_rows_without_a_unit_are_dropped_and_further_rows_too():
    who = ["a", "a", "", None, "a", "b", None]
    table = open_table(pl.DataFrame({"who": who, "row": range(7)})).limit_rows_per_unit("who", 2)
    _, row = table.read()
    assert row.values.to_list() == [0, 1, 5]


def test_a_cell_is_never_quoted_when_polars_fails():
    frame = pl.DataFrame({"x": ["axolotl"]}).lazy().with_columns(pl.col("x").cast(pl.Int64))
    with pytest.raises(DataError, match="cannot be read") as error:
        open_table(frame).read()
    assert "axolotl" not in str(error.value)


def test_pandas_columns_with_equal_names_are_rejected():
    frame = pl.DataFrame({"a": [1], "b": [2]}).to_pandas()
    frame.columns = ["a", "a"]
    with pytest.raises(DataError, match="same name"):
        open_table(frame)


def test_a_unit_must_be_a_column():
    opened = open_table(pl.DataFrame({"a": [1]}))
    require_column(opened, "a")
    with pytest.raises(ConfigError, match="no such column"):
        require_column(opened, "b")


def test_only_types_that_a_schema_describes_are_supported():
    assert not any(map(is_unsupported, (pl.String(), pl.Int8(), pl.Date(), pl.Boolean())))
    assert all(map(is_unsupported, (pl.List(pl.Int64), pl.Duration("us"), pl.Binary())))
