"""Private drafts always run: whatever noise hid, a table fits the schema that was drafted from it.

A private draft sees frequent values only. A text among numbers, one date in another format or one
huge number must neither stop the run that follows nor change another record.
"""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deniable as dn
from deniable.data.table_io import read_codes
from deniable.drafting.draft import draft_schema
from deniable.schema.schema import Schema
from draft_replay import FixedSecret

pytestmark = pytest.mark.slow

N = 600
EPSILONS = (0.05, 20.0)
KEYS = range(4)
DAY = dt.date(2020, 1, 31)


def hostile_columns() -> dict[str, list[Any]]:
    """Columns of which one cell, or every cell, is odd."""
    draws = np.random.default_rng(3)
    codes = draws.integers(0, 6, N).tolist()
    dates = [(DAY + dt.timedelta(days=int(x))).isoformat() for x in draws.integers(0, 900, N)]
    return {
        "text among numbers": ["thirty", *map(str, codes[1:])],
        "number among texts": ["12", *draws.choice(["oak", "elm"], N - 1).tolist()],
        "date in another format": ["31/01/2020", *dates[1:]],
        "date that no calendar has": ["2020-02-31", *dates[1:]],
        "minus nine": [*["-9"] * 200, *map(str, codes[200:])],
        "one fraction": ["2.5", *map(str, codes[1:])],
        "one missing": ["", *map(str, codes[1:])],
        "one NA": ["NA", *draws.choice(["yes", "no"], N - 1).tolist()],
        "complete": [*map(str, codes)],
        "row_id": [f"P{i:05d}" for i in range(N)],
        "nr": [*map(str, range(1, N + 1))],
        "all missing": [""] * N,
        "one value": ["7"] * N,
        "one huge number": ["9" * 30, *map(str, codes[1:])],
        "one infinite": ["inf", *draws.normal(0, 1, N - 1).round(3).astype(str).tolist()],
        "exponents": draws.normal(0, 1e-7, N).astype(str).tolist(),
        "quotes": ['a "b", c\nd', *draws.choice(['"', "\x7f", " ", "\t"], N - 1).tolist()],
        "other": ["other", *draws.choice(["(other)", "oak"], N - 1).tolist()],
        "zeros": draws.choice(["007", "7", "012"], N).tolist(),
        "telephone": draws.choice(["A191", "A192"], N).tolist(),
    }


def read_all(source: object, draft: str) -> int:
    codes, _ = read_codes(source, Schema.parse(draft))
    return len(codes)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_row_of_a_hostile_csv_file_fits_its_private_draft(tmp_path, epsilon):
    path = tmp_path / "table.csv"
    pl.DataFrame(hostile_columns()).write_csv(path)
    for key in KEYS:
        draft = draft_schema(path, draft_epsilon=epsilon, noise=FixedSecret(key))
        assert read_all(path, draft.text) == N, key


def typed_columns() -> dict[str, list[Any]]:
    """Objects of several types in a column, nearly all of one."""
    draws = np.random.default_rng(4)
    integers, reals = draws.integers(1, 9, N).tolist(), draws.normal(50, 9, N).tolist()
    days = [DAY + dt.timedelta(days=int(x)) for x in draws.integers(0, 900, N)]
    return {
        "fraction": [2.5, *integers[1:]],
        "text": ["thirty", *integers[1:]],
        "gap": [None, *integers[1:]],
        "true": [True, *integers[1:]],
        "list": [[1, 2], *integers[1:]],
        "huge": [2**70, *integers[1:]],
        "large": [2**60 + 1, *integers[1:]],
        "infinite": [float("inf"), *reals[1:]],
        "decimal": [Decimal("1.23456789012"), *reals[1:]],
        "bytes": [b"\xff", *draws.choice(["oak", "elm"], N - 1).tolist()],
        "surrogate": ["\ud800", *draws.choice(["oak", "elm"], N - 1).tolist()],
        "time": [dt.datetime(2020, 1, 1, 12), *days[1:]],
        "zone": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), *days[1:]],
        "date": ["31/01/2020", *days[1:]],
        "clock": [dt.time(12, 30)] * N,
        "duration": [dt.timedelta(days=3)] * N,
        "nothing": [None] * N,
        "lists": [[1]] * N,
        "flags": [None, *draws.choice([True, False], N - 1).tolist()],
    }


@pytest.mark.parametrize("name", typed_columns())
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_row_of_a_hostile_frame_fits_its_private_draft(name, epsilon):
    """Of pandas, and of polars with a column of Python objects."""
    cells = typed_columns()[name]
    objects = pl.Series(name, cells, dtype=pl.Object)
    frames = [
        pd.DataFrame({name: pd.Series(cells, dtype=object), "y": 1}),
        *([] if name == "surrogate" else [pd.DataFrame({name: pd.Series(cells), "y": 1})]),
        pl.DataFrame({name: objects, "y": pl.Series([1] * N)}),
    ]
    for frame in frames:
        draft = draft_schema(frame, draft_epsilon=epsilon, noise=FixedSecret(2))
        assert read_all(frame, draft.text) == N


TYPED = {
    "floats": pl.Series([0.5, 1.0, 2.0] * 200),
    "whole floats": pl.Series([1.0, 2.0, None] * 200),
    "large floats": pl.Series([2.0**60, 2.0**61, None] * 200),
    "integers": pl.Series([1, 2, 2**62] * 200),
    "unsigned": pl.Series([1, 2, 2**64 - 1] * 200, dtype=pl.UInt64),
    "decimals": pl.Series([Decimal("1.50"), Decimal("2.25")] * 300),
    "flags": pl.Series([True, False, None] * 200),
    "dates": pl.Series([DAY, None] * 300),
    "times": pl.Series([dt.datetime(2020, 1, 1, 12), None] * 300),
    "clocks": pl.Series([dt.time(12, 30)] * 600),
    "durations": pl.Series([dt.timedelta(days=3)] * 600),
    "lists": pl.Series([[1, 2]] * 600),
    "structs": pl.Series([{"a": 1}] * 600),
    "bytes": pl.Series([b"a", b"b"] * 300),
    "categories": pl.Series(["oak", "elm", None] * 200, dtype=pl.Categorical),
    "nulls": pl.Series([None] * 600, dtype=pl.Null),
}


@pytest.mark.parametrize("rows", [0, 1, 600])
@pytest.mark.parametrize("name", TYPED)
def test_every_typed_column_fits_its_private_draft(tmp_path, name, rows):
    """Each type of polars, in a Parquet file, a frame and an Arrow table; at any number of rows."""
    frame = pl.DataFrame({name: TYPED[name].head(rows), "y": pl.Series([1] * rows, dtype=pl.Int64)})
    frame.write_parquet(tmp_path / "t.parquet")
    sources: list[object] = [tmp_path / "t.parquet", frame, frame.lazy(), frame.to_arrow()]
    for source in sources:
        for epsilon in EPSILONS:
            draft = draft_schema(source, draft_epsilon=epsilon, noise=FixedSecret(5))
            assert read_all(source, draft.text) == rows


def test_an_arrow_type_that_polars_does_not_know_becomes_the_fallback():
    cells = pa.array([Decimal(1), Decimal(2)] * 300, type=pa.decimal256(60, 2))
    table = pa.table({"x": cells, "y": pa.array([1] * 600)})
    draft = draft_schema(table, draft_epsilon=1.0, noise=FixedSecret(1))
    assert read_all(table, draft.text) == 600


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_table_of_hardly_any_row_can_be_drafted_and_released(tmp_path, rows, epsilon):
    path = tmp_path / "table.csv"
    pl.DataFrame(hostile_columns()).head(rows).write_csv(path)
    schema = Schema.parse(draft_schema(path, draft_epsilon=epsilon).text)
    release = dn.synthesize(path, schema, records=5, epsilon=epsilon + 1.0)
    assert len(release.frame()) == 5


@pytest.mark.parametrize("cell", ["oak", "", "3.7", "1e400", "-1", "NA"])
def test_a_row_that_fits_nothing_leaves_the_other_records_as_they_are(tmp_path, cell):
    """The same schema reads both tables, and the odd row becomes one more record."""
    cells = [str(x) for x in np.random.default_rng(5).integers(1, 9, 3_000)]
    codes = []
    for number, more in enumerate(([], [cell])):
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join(["x,y", *(f"{x},1" for x in [*cells, *more])]) + "\n")
        draft = draft_schema(tmp_path / "0.csv", draft_epsilon=1.0, noise=FixedSecret(1))
        codes.append(read_codes(path, Schema.parse(draft.text))[0])
    assert len(codes[1]) == len(codes[0]) + 1
    assert np.array_equal(codes[1][:-1], codes[0])


def test_a_unit_that_one_row_does_not_name_drops_that_row(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"p{i % 90},{i % 4}" for i in range(900)]
    path.write_text("\n".join(["who,x", *rows, ",1"]) + "\n")
    options = {"unit": "who", "max_rows_per_unit": 10}
    draft = draft_schema(path, draft_epsilon=5.0, noise=FixedSecret(1), **options)
    assert read_all(path, draft.text) == 900


REAL_TABLES = ("german_credit", "titanic", "sd2011", "nltcs", "sdnist", "bank_marketing", "adult")


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_real_tables_fit_their_private_drafts(shared, epsilon):
    for path in (path for name in REAL_TABLES for path in sorted((shared / name).glob("*.csv*"))):
        rows = len(pl.read_csv(path, infer_schema=False))
        draft = draft_schema(path, draft_epsilon=epsilon, noise=FixedSecret(1))
        assert read_all(path, draft.text) == rows, path.name
