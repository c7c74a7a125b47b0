"""Private drafts depend on the rows through noisy counts only, for every kind of table.

Answers recorded on one table and fed back to a draft of an unrelated one give the same draft, byte
for byte. And one row more moves one exact count by one, whatever type it gives its column.
"""

import datetime as dt
import gzip
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable.data.table_io import read_codes
from deniable.drafting import noisy_lists, private_draft
from deniable.drafting.draft import draft_schema
from deniable.drafting.measured_column import MeasuredColumn
from deniable.drafting.noisy_histograms import HistogramMeasurer, NoisyHistogram
from deniable.schema.schema import Schema
from draft_replay import Record, record_draft, replay_draft

pytestmark = pytest.mark.slow

FORMATS = ("csv", "csv.gz", "parquet", "pandas", "polars", "lazy", "arrow")
COLUMNS = (
    *("years", "weight", "trade", "mixed", "smokes", "true", "born", "seen"),
    *("pay", "code", "bins", "ratio"),
)


def busy_table(n: int = 3_000) -> pl.DataFrame:
    """A table with a column for nearly every path of a private draft."""
    draws = np.random.default_rng(11)
    day, noon = dt.date(1950, 1, 1), dt.datetime(2001, 5, 5, 12)
    return pl.DataFrame(
        {
            "who": [f"P{x % 700}" for x in range(n)],
            "years": draws.integers(18, 95, n),
            "weight": draws.normal(70, 12, n).round(1),
            "trade": draws.choice(["tinsmith", "lacemaker", "wheelwright"], n, p=[0.1, 0.2, 0.7]),
            "mixed": draws.choice(["N", *map(str, range(1, 40))], n, p=[0.22, *[0.02] * 39]),
            "smokes": draws.choice(["yes", "no"], n),
            "true": draws.choice([True, False], n),
            "born": [day + dt.timedelta(days=int(x)) for x in draws.integers(0, 20_000, n)],
            "seen": [noon + dt.timedelta(minutes=int(x)) for x in draws.integers(0, 10**6, n)],
            "pay": np.round(draws.lognormal(8, 1.5, n)).astype(int),
            "code": draws.choice(["007", "012"], n),
            "bins": draws.choice(["1", "2-10", "11-100"], n),
            "ratio": draws.random(n),
        }
    )


def other_tables() -> dict[str, pl.DataFrame]:
    """Unrelated tables with the same columns: other sizes, and other types."""
    names = ["who", *COLUMNS]
    return {
        "no rows": busy_table(5).clear(),
        "no rows, no types": pl.DataFrame({name: [] for name in names}, schema=names),
        "one row": pl.DataFrame({name: ["axolotl"] for name in names}),
        "numbers": pl.DataFrame({name: np.arange(500.0) * 10**7 for name in names}),
        "dates": pl.DataFrame({name: [dt.date(1700, 1, 1)] * 77 for name in names}),
        "nothing": pl.DataFrame({name: [None] * 40 for name in names}),
        "reversed": busy_table(4_321).reverse(),
    }


def write_as(frame: pl.DataFrame, kind: str, folder: Path) -> Any:
    """Write a frame to a file, or convert it to another kind of frame."""
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.write_csv(path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    elif kind == "parquet":
        frame.write_parquet(path)
    else:
        frames = {"pandas": frame.to_pandas(), "lazy": frame.lazy(), "arrow": frame.to_arrow()}
        return frames.get(kind, frame)
    return path


# Which rows of a unit are read does not depend on types: no rows, one row and many are enough.
UNIT_OPTIONS = {"unit": "who", "max_rows_per_unit": 2, "draft_delta": 1e-6}
UNIT_TABLES = ("no rows", "one row", "reversed")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("options", "others"), [({}, tuple(other_tables())), (UNIT_OPTIONS, UNIT_TABLES)]
)
def test_the_same_answers_give_the_same_draft_on_any_table(tmp_path, kind, options, others):
    options = {**options, "epsilon": 10.0}
    first = record_draft(write_as(busy_table(), kind, tmp_path), **options)
    assert "[draft]" in first.text
    # Drafts that describe nothing would be equal too. polars gives pandas its dates as times.
    words = ("categorical", "integer", "real", "boolean", "datetime")
    for word in (*words, *["date"] * (kind != "pandas")):
        assert f'type = "{word}"' in first.text
    tables = other_tables()
    for name in others:
        (tmp_path / name).mkdir()
        again = write_as(tables[name], kind, tmp_path / name)
        replayed = replay_draft(again, first.answers, **options)
        assert replayed.text == first.text, name
        assert replayed.notes == first.notes, name


def replays(first: Record, table: pl.DataFrame) -> bool:
    return replay_draft(table, first.answers, epsilon=20.0).text == first.text


def test_texts_in_the_order_of_their_exact_frequency_would_be_caught(monkeypatch):
    """The test above can fail: a fault that sorts released texts by their exact counts."""
    real = private_draft.draft_texts

    def by_frequency(measured, details):
        draft, column = real(measured, details), measured.column
        rows = dict(zip(column.texts, column.counts.tolist(), strict=True))
        values, *others = draft.fields
        ordered = sorted(values.value, key=lambda text: -rows.get(text, 0))
        return replace(draft, fields=(replace(values, value=ordered), *others))

    table = busy_table().select("trade")
    assert replays(record_draft(table, epsilon=20.0), table.clear())
    monkeypatch.setattr(private_draft, "draft_texts", by_frequency)
    assert not replays(record_draft(table, epsilon=20.0), table.clear())


def test_a_number_of_rows_without_noise_would_be_caught(monkeypatch):
    real = private_draft._draft_columns

    def with_exact_rows(columns, measurer):
        return replace(real(columns, measurer), rows=int(columns[0].counts.sum()))

    table = busy_table().select("years")
    monkeypatch.setattr(private_draft, "_draft_columns", with_exact_rows)
    assert not replays(record_draft(table, epsilon=20.0), table.clear())


def test_shares_that_follow_from_exact_rows_would_be_caught(monkeypatch):
    """The noise of another table would differ: ``replay_draft`` compares it with the recorded."""
    real = private_draft._measure_columns

    def with_exact_rows(columns, measurer, _rows):
        return real(columns, measurer, max(int(columns[0].counts.sum()), 1))

    table = busy_table().select("trade")
    assert replays(record_draft(table, epsilon=20.0), table.clear())
    monkeypatch.setattr(private_draft, "_measure_columns", with_exact_rows)
    first = record_draft(table, epsilon=20.0)
    with pytest.raises(AssertionError, match="the noise depends on the table"):
        replays(first, table.clear())


def many_woods(n: int = 40_000) -> pl.DataFrame:
    """Two frequent texts and sixty rare ones: enough rows without a name for a second list."""
    woods = ["oak", "elm", *(f"wood {i}" for i in range(60))]
    shares = [0.45, 0.25, *[0.005] * 60]
    return pl.DataFrame({"wood": np.random.default_rng(5).choice(woods, n, p=shares)})


def test_texts_that_were_not_named_are_no_public_cells_of_the_second_list(monkeypatch):
    """And the replay would catch it: cells of another table differ in number."""
    asked: list[bool] = []
    real_measure = MeasuredColumn.measure_details

    def spy(self, cells, size, *, lists: bool, **options):
        asked.append(lists)
        return real_measure(self, cells, size, lists=lists, **options)

    monkeypatch.setattr(MeasuredColumn, "measure_details", spy)
    first = record_draft(many_woods(), epsilon=0.5)
    assert asked == [True, True], "so that there was a second list"
    for other in (many_woods().clear(), many_woods(77), pl.DataFrame({"wood": ["axolotl"] * 99})):
        assert replay_draft(other, first.answers, epsilon=0.5).text == first.text

    def with_rare_texts(measured, details):
        """All texts of two rows are known in advance; none of them is named for that."""
        column = measured.column
        rare = column.texts.filter(pl.Series(column.counts >= 2)).to_list()
        known = sorted({*noisy_lists._WORDS, *details.texts, *rare})
        second = measured.measure_details(
            measured.listed_cells(known), len(known), lists=True, part=0.0, reserved=True
        )
        return replace(details, texts=details.texts | second.texts)

    monkeypatch.setattr(noisy_lists, "_measure_again", with_rare_texts)
    first = record_draft(many_woods(), epsilon=0.5)
    with pytest.raises(AssertionError):
        replay_draft(many_woods().clear(), first.answers, epsilon=0.5)


@pytest.mark.parametrize(
    "table",
    [
        {"x": [999_999.0] * 17_000 + [round(0.37 * i, 2) for i in range(3, 3_003)]},
        {"x": [-9_999.0] * 17_000 + [round(0.371 * i, 3) for i in range(3, 3_003)]},
        {"x": np.repeat(np.arange(1, 200_000) / 100, 10)},
    ],
    ids=["a code above all numbers", "a code below", "200,000 frequent numbers"],
)
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 10.0])
def test_codes_and_many_frequent_fractions_give_a_draft_that_parses(table, epsilon):
    frame = pl.DataFrame(table)
    schema = Schema.parse(draft_schema(frame, draft_epsilon=epsilon).text)
    assert len(read_codes(frame, schema)[0]) == len(frame)


def test_any_answers_give_a_draft_that_parses_and_fits(monkeypatch):
    """Noise and rows may give any answers, so no draft and no run may fail because of them."""
    words = ["N", "oak", "other", "é", "7", "2-10", "x" * 50, "1e300", "-0.5", "inf", "1e-300"]

    def draft(key: int) -> str:
        draws = np.random.default_rng(key)

        def answer(self, public, listed=None, *, share):
            asked.append((share, listed is not None))
            sigma = 1 / (self.noise.mu * share**0.5)
            noisy = np.rint(draws.normal(0, sigma, len(public))).astype(np.int64)
            cells = draws.integers(0, max(len(public), 1), draws.integers(0, 5))
            if len(public) == 1:  # the number of rows: without rows nothing else is asked
                cells = np.zeros(1, dtype=np.int64)
            elif draws.random() < 0.3:
                cells = np.append(cells, draws.choice([0, len(public) - 1]))
            noisy[cells] += draws.integers(1, 10**6, len(cells))
            texts = sorted(
                draws.choice(words, draws.integers(0, 4) * (listed is not None)).tolist()
            )
            return NoisyHistogram(noisy, dict.fromkeys(texts, 99), sigma)

        monkeypatch.setattr(HistogramMeasurer, "measure", answer)
        return draft_schema(TINY, draft_epsilon=1.0).text

    kinds: Counter[str] = Counter()
    asked: list[tuple[float, bool]] = []
    for key in range(40):
        asked.clear()
        text = draft(key)
        schema = Schema.parse(text)
        assert 'release = "omit"' not in text, "records have every column of the table"
        assert sum(share for share, _ in asked) <= 1 + 1e-9
        assert len(asked) <= 1 + 5 * len(schema.columns)
        assert sum(is_list for _, is_list in asked) <= 2 * len(schema.columns)
        kinds.update(column.kind for column in schema.columns)
        codes, _ = read_codes(TINY, schema)
        assert len(codes) == 3
    assert set(kinds) >= {"integer", "real", "categorical", "text", "date", "datetime"}


# Of every type: each draft is of as many columns that any answers may be given for.
TINY = pl.DataFrame(
    {
        "a": ["1", "oak", None],
        "b": [2, 3, 10**17],
        "c": [dt.date(2020, 1, 1)] * 3,
        "d": [0.5, None, 1e300],
        "e": [True, False, None],
        "f": ["2020-01-31", "7.50", "é"],
        "g": [dt.datetime(2020, 1, 31, 12, 30)] * 3,
    }
)


# Rows that change the type of a pandas column when they are added to it.
UTC = dt.UTC
WIDENING = {
    "integers and a missing cell": ([1, 2, 35] * 99, None),
    "integers and a fraction": ([1, 2, 35] * 99, 2.5),
    "integers and a text": ([1, 2, 35] * 99, "axolotl"),
    "integers and a huge integer": ([1, 2, 35] * 99, 2**70),
    "integers and an infinite number": ([1, 2, 35] * 99, float("inf")),
    "integers and true": ([1, 2, 35] * 99, True),
    "integers beyond 2^53 and a missing cell": ([10**16 - 1, 2**53 + 1] * 99, None),
    "floats and a text": ([1.5, 2.0, 0.1 + 0.2, 1e300, 5e-324] * 99, "n/a"),
    "floats and a list": ([1.5, 2.0] * 99, [1, 2]),
    "booleans and a missing cell": ([True, False] * 99, None),
    "booleans and a number": ([True, False] * 99, 3),
    "texts and a number": (["oak", "7", "7.50", "elm"] * 99, 7.5),
    "texts and bytes": (["oak", "elm"] * 99, b"axolotl"),
    "nothing and a number": ([None] * 99, 7),
    "nothing and a list": ([None] * 99, ["axolotl"]),
    "dates and a time": ([dt.date(2020, 1, 31)] * 99, dt.datetime(2020, 1, 1, 12)),
    "times and a date": ([dt.datetime(2020, 1, 1, 12, 30)] * 99, dt.date(2020, 1, 1)),
    "times and a time zone": (
        [dt.datetime(2020, 1, 1, 12, 30)] * 99,
        dt.datetime(2020, 1, 1, 12, tzinfo=UTC),
    ),
    "decimals and more decimals": ([Decimal("1.50"), Decimal("-2.00")] * 99, Decimal("0.00123")),
    "decimals and a float": ([Decimal("1.005"), Decimal("2")] * 99, 1.5),
}


# Those that pandas can write to Parquet, with and without that row.
WRITABLE = (
    *("integers and a missing cell", "integers and a fraction", "integers and an infinite number"),
    *("integers beyond 2^53 and a missing cell", "booleans and a missing cell", "texts and bytes"),
    *("nothing and a number", "nothing and a list", "dates and a time", "times and a time zone"),
    "decimals and more decimals",
)


def pandas_pair(cells: list[Any], more: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A frame, and the same with one more row, each with the type that pandas finds for it."""
    before = pd.DataFrame({"x": pd.Series(cells), "y": 1})
    return before, pd.DataFrame({"x": pd.Series([*cells, more]), "y": 1})


def assert_neighbours(one: object, other: object) -> None:
    """One row more moves at most one count by one, and the same answers give the same draft."""
    first = record_draft(one, epsilon=20.0)
    second = replay_draft(other, first.answers, epsilon=20.0)
    assert second.text == first.text
    moved = [a.distance(b) for a, b in zip(first.questions, second.questions, strict=True)]
    assert max(moved) == 1


@pytest.mark.parametrize("case", WIDENING)
def test_a_row_that_changes_the_type_of_a_column_moves_one_count(case):
    before, after = pandas_pair(*WIDENING[case])
    assert_neighbours(before, after)
    assert_neighbours(after, before)


@pytest.mark.parametrize("case", WRITABLE)
def test_a_row_that_changes_the_type_of_a_parquet_column_moves_one_count(tmp_path, case):
    """Written by pandas, and as an Arrow table."""
    tables = []
    for name, frame in zip(("before", "after"), pandas_pair(*WIDENING[case]), strict=True):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        tables.append(pa.Table.from_pandas(frame))
    assert_neighbours(tmp_path / "before.parquet", tmp_path / "after.parquet")
    assert_neighbours(*tables)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pl.Int8, pl.Int64),
        (pl.Int64, pl.Float64),
        (pl.Int16, pl.Float32),
        (pl.Int32, pl.Int128),
        (pl.Int32, pl.Decimal(20, 7)),
        (pl.Decimal(10, 1), pl.Decimal(30, 9)),
        (pl.Int64, pl.Object),
        (pl.Int64, pl.String),
    ],
)
def test_a_wider_type_gives_the_same_histograms(before, after):
    cells = [1, 0, -7, 100, None]
    frames = [pl.DataFrame({"x": pl.Series(cells).cast(before), "y": 1})]
    wide = pl.Series(cells, dtype=pl.Object) if after == pl.Object else pl.Series(cells).cast(after)
    frames.append(pl.DataFrame({"x": wide, "y": 1}))
    first, second = (record_draft(frame, epsilon=20.0) for frame in frames)
    assert first.questions[0].distance(second.questions[0]) == 0
    assert first.text == second.text


def test_categories_of_pandas_are_counted_by_their_values():
    cells = [3, 7, 7] * 99
    plain = pd.DataFrame({"x": cells})
    coded = pd.DataFrame({"x": pd.Categorical([*cells, None, "oak"])})
    first = record_draft(plain, epsilon=20.0)
    second = replay_draft(coded, first.answers, epsilon=20.0)
    assert first.questions[0].distance(second.questions[0]) == 2
    assert 'type = "categorical"' in first.text


def test_an_index_that_pandas_stored_because_of_a_missing_row_does_not_show(tmp_path):
    whole = pd.DataFrame({"x": [1, 2, 35] * 99})
    whole.to_parquet(tmp_path / "whole.parquet")
    whole.drop(index=5).to_parquet(tmp_path / "less.parquet")
    assert "__index_level_0__" in pl.read_parquet(tmp_path / "less.parquet").columns
    assert_neighbours(tmp_path / "whole.parquet", tmp_path / "less.parquet")
    assert_neighbours(pa.Table.from_pandas(whole), pa.Table.from_pandas(whole.drop(index=5)))
    schema = Schema.parse(record_draft(tmp_path / "less.parquet", epsilon=20.0).text)
    codes, _ = read_codes(tmp_path / "less.parquet", schema)
    assert len(codes) == 296


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_no_row_or_one_is_drafted_like_any_other(tmp_path, kind, rows):
    draft = record_draft(write_as(busy_table(1).head(rows), kind, tmp_path))
    assert draft.text.count("[[attribute]]") == 13
    assert "too few rows to find its type" in " ".join(draft.notes)


@pytest.mark.parametrize("named", [0, 1])
def test_a_table_in_which_hardly_any_row_names_its_unit_is_drafted(named):
    frame = pl.DataFrame({"who": ["a"] * named + [None] * 5, "x": [1] * (named + 5)})
    draft = record_draft(frame, unit="who", max_rows_per_unit=1)
    assert draft.text == record_draft(frame.clear(), unit="who", max_rows_per_unit=1).text
    assert {int(q.public.sum()) for q in draft.questions} == {named}
