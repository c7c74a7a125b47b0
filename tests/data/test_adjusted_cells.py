import polars as pl
import pytest

from deniable.data.table_io import read_table
from deniable.schema.schema import Schema

CLIPPED = 'type = "integer"\nmin = 0\nmax = 9\noutside = "clip"\nmissing = ["-9"]\nfallback = 4'
LISTED = 'type = "categorical"\nvalues = [0, 1, 4]\nfallback = 4'
REAL = 'type = "real"\nmin = 0\nmax = 9\ndecimals = 1\noutside = "clip"\nfallback = 4'
TEXT = 'type = "text"\nvalues = ["a"]\nother = "rest"\nmissing = [""]\nfallback = ""'
YEARS = 'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\noutside = "clip"\nfallback = 2020-02-01'


def schema_of(*described):
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
    schema = schema_of(("k", 'type = "categorical"\nvalues = [1]'), ("x", lines))
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
    table = read_table(pl.DataFrame({"x": cells}), schema_of(("x", lines)))
    assert table.adjusted == ({"x": counts} if counts else {})


def test_rows_that_are_dropped_are_not_counted():
    dropping = 'type = "categorical"\nvalues = ["yes"]\noutside = "drop"'
    frame = pl.DataFrame({"x": [50, 60, 5], "y": ["yes", "no", "yes"]})
    table = read_table(frame, schema_of(("x", CLIPPED), ("y", dropping)))
    assert len(table.codes) == 2
    assert table.adjusted == {"x": {"clipped": 1}}


def test_columns_without_a_fallback_are_not_counted():
    clipped = CLIPPED.replace("\nfallback = 4", "")
    assert read_table(pl.DataFrame({"x": [50, 5]}), schema_of(("x", clipped))).adjusted == {}


def test_counts_add_up_over_batches():
    frame = pl.DataFrame({"x": [5, 50] * 300_000})
    assert read_table(frame, schema_of(("x", CLIPPED))).adjusted == {"x": {"clipped": 300_000}}


def test_counts_are_not_printed():
    table = read_table(pl.DataFrame({"x": [50]}), schema_of(("x", CLIPPED)))
    assert "clipped" not in repr(table)
