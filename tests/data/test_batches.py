"""Batches are in row order, even if polars is not; rows have owners; adjusted cells are counted."""

import gc
import threading
from datetime import date

import numpy as np
import polars as pl
import pytest

from deniable.data.batches import iter_batches
from deniable.data.table_io import read_table
from deniable.errors import DataError, InvariantError
from deniable.schema.schema import Schema

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


# Row owners


def schema_of(*columns, top=""):
    """A schema with the integer n, 0 to 9, and the given columns."""
    tables = ['name = "n"\ntype = "integer"\nmin = 0\nmax = 9\nmissing = [""]', *columns]
    return Schema.parse(f"format = 1\n{top}\n" + "\n".join(f"[[attribute]]\n{t}" for t in tables))


def identifier(lines="", name="id"):
    return f'name = "{name}"\ntype = "identifier"\n{lines}'


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
        (REAL, ["0", "8.94", "9"], {}),
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


def test_columns_without_a_fallback_are_not_counted():
    clipped = CLIPPED.replace("\nfallback = 4", "")
    assert read_table(pl.DataFrame({"x": [50, 5]}), described_schema(("x", clipped))).adjusted == {}


def test_counts_add_up_over_batches():
    frame = pl.DataFrame({"x": [5, 50] * 300_000})
    assert read_table(frame, described_schema(("x", CLIPPED))).adjusted == {
        "x": {"clipped": 300_000}
    }


def test_counts_are_not_printed():
    table = read_table(pl.DataFrame({"x": [50]}), described_schema(("x", CLIPPED)))
    assert "clipped" not in repr(table)
