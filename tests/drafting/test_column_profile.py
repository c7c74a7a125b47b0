"""Opening tables and profiling columns: distinct values, counts, and the value of each row."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deniable.drafting.column_profile import is_unsupported, open_table, require_column
from deniable.errors import ConfigError, DataError
from deniable.randomness import Keyed


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
    assert steps == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    for one, other in zip(together, alone, strict=True):
        assert one.name == other.name
        assert np.array_equal(one.counts, other.counts)


WHO = ["a", "a", "", None, "a", "b", None, "NA", " "]


def rows_kept(who, max_rows: int, key: int = 1) -> list[int]:
    """The rows that are read of a table, by their numbers."""
    table = open_table(pl.DataFrame({"who": who, "row": range(len(who))}), private=True)
    kept = table.limit_rows_per_unit("who", max_rows, Keyed(key).at("units"))
    return sorted(int(text) for text in kept.read_texts()[1].texts)


def test_rows_without_a_unit_are_dropped_and_further_rows_too():
    kept = rows_kept(WHO, 2)
    assert len(kept) == 3
    assert set(kept) < {0, 1, 4, 5}
    assert 5 in kept
    assert rows_kept([float("nan"), float("inf"), 7.0, None], 1) == [2]
    assert rows_kept([[1], [1], None], 1) == []
    assert rows_kept([], 1) == []


def test_the_rows_of_a_unit_are_chosen_at_random():
    """Every row is kept for some key: the first one is not special."""
    found = {row for key in range(60) for row in rows_kept(["a"] * 6, 1, key)}
    assert found == set(range(6))


@pytest.mark.parametrize(
    "units",
    [
        [2**53, 2**53 + 1],
        [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
        [True, False],
        [Decimal("1.50"), Decimal("1.51")],
        ["7", "7.0"],
    ],
)
def test_different_units_stay_different(units):
    assert rows_kept(units, 1) == [0, 1]
    objects = pd.DataFrame({"who": pd.Series([*units, *units], dtype=object), "row": range(4)})
    table = open_table(objects, private=True).limit_rows_per_unit("who", 1, Keyed(1).at("units"))
    assert table.read_texts()[0].counts.sum() == 2


def test_a_lazy_frame_is_computed_once_when_rows_are_chosen():
    computed: list[int] = []

    def once(frame: pl.DataFrame) -> pl.DataFrame:
        computed.append(len(frame))
        return frame

    frame = pl.DataFrame({"who": ["a", "b"], "x": [1, 2]}).lazy().map_batches(once)
    table = open_table(frame, private=True).limit_rows_per_unit("who", 1, Keyed(1).at("units"))
    table.read_texts()
    assert computed == [2]


@pytest.mark.parametrize("private", [False, True])
def test_only_a_private_draft_accepts_a_table_without_rows(private):
    table = open_table(pl.DataFrame({"x": pl.Series([], dtype=pl.Int64)}), private=private)
    [texts] = table.read_texts()
    assert (len(texts.texts), texts.nulls) == (0, 0)
    with pytest.raises(DataError, match="no records"):
        table.read()


def test_a_column_of_mixed_types_is_refused_unless_the_draft_is_private():
    frame = pd.DataFrame({"x": pd.Series([1, "axolotl", [2]], dtype=object)})
    with pytest.raises(DataError, match="several types") as error:
        open_table(frame)
    assert "axolotl" not in str(error.value)
    [column] = open_table(frame, private=True).read_texts()
    assert column.texts.to_list() == ["\0unsupported", "1", "axolotl"]


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
