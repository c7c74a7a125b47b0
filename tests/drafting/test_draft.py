"""Whole drafts: the text parses, describes its own table, and lists what to decide."""

import datetime as dt
import gzip
import tomllib

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.data.table_io import read_codes
from deniable.drafting.draft import draft_schema
from deniable.errors import ConfigError, DataError, DeniableError
from deniable.randomness import Keyed
from deniable.schema.schema import Schema

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    """A table with a column of nearly every kind."""
    draws, n = np.random.default_rng(3), 600
    start = [dt.date(2001, 1, 1) + dt.timedelta(days=int(x)) for x in draws.integers(0, 7000, n)]
    rent, food = draws.integers(10, 900, n), draws.integers(10, 300, n)
    return pl.DataFrame(
        {
            "id": [f"P{x:04d}" for x in range(n)],
            "person_id": [f"K{x:05d}" for x in draws.integers(0, 250, n)],
            "years": draws.integers(17, 91, n),
            "trade": draws.choice(["kelpfarmer", "tinsmith", "lacemaker", ""], n),
            "smokes": draws.choice(["yes", "no"], n),
            "start": start,
            "end": [day + dt.timedelta(days=i % 900 + 1) for i, day in enumerate(start)],
            "when": [dt.datetime(2020, 1, 1, 0, i % 60) + dt.timedelta(hours=i) for i in range(n)],
            "weight": draws.normal(70, 12, n).round(1),
            "pay": np.round(draws.lognormal(8, 2, n)).astype(int),
            "rent": rent,
            "food": food,
            "total": rent + food,
            "country": ["Elbonia"] * n,
            "remark": [f"the {x}. visitor was content and left again" for x in range(n)],
        }
    )


def kinds(schema: Schema) -> dict[str, str]:
    return {column.name: column.kind for column in schema.columns}


def assert_describes(source, *, rows: int, **options) -> Schema:
    draft = draft_schema(source, **options)
    schema = Schema.parse(draft.text)
    codes, _ = read_codes(source, schema)
    assert len(codes) == rows
    return schema


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_draft_of_a_file_parses_and_describes_it(table, tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    if ending == "parquet":
        table.write_parquet(path)
    elif ending == "csv":
        table.write_csv(path)
    else:
        path.write_bytes(gzip.compress(table.write_csv().encode()))
    schema = assert_describes(path, rows=len(table))
    found = kinds(schema)
    assert found["id"] == found["person_id"] == found["remark"] == "identifier"
    assert found["start"] == found["end"] == "date"
    assert found["when"] == "datetime"
    assert found["country"] == "constant"
    assert (found["smokes"], found["weight"], found["pay"]) == ("boolean", "real", "integer")
    assert found["total"] == "computed"
    order = 'constraint less on "start", "end"'
    assert schema.drafted == ("rows_max", order, *table.columns)


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow"])
def test_a_draft_of_a_frame_parses_and_describes_it(table, kind):
    source = {
        "polars": lambda: table,
        "lazy": table.lazy,
        "pandas": table.to_pandas,
        "arrow": table.to_arrow,
    }[kind]()
    assert_describes(source, rows=len(table))


def test_progress_moves_with_every_column(table):
    said: list[tuple[str, int, int]] = []
    few = table.select(table.columns[:4])
    draft_schema(few, progress=lambda *each: said.append(each))
    assert [done for stage, done, of in said if stage == "read columns" and of == 4] == [*range(5)]
    assert said[-1] == ("compare columns", 1, 1)


def test_what_is_read_from_the_data_is_marked_and_notes_list_decisions(table):
    draft = draft_schema(table)
    for line in draft.text.splitlines():
        if line.startswith(("min =", "max =", "value =", "decimals =", "confirmed =")):
            assert "read from the data" in line
    notes = " ".join(draft.notes)
    assert "rent + food" in notes
    assert "unit" in notes
    assert '# unit = "person_id"' in draft.text
    assert '\nless = ["start", "end"]\nconfirmed = false' in draft.text
    assert all(note in " ".join(draft.text.replace("#", " ").split()) for note in draft.notes)


def test_notes_show_no_cell(table):
    draft = draft_schema(table)
    notes = " ".join(draft.notes)
    for word in ("kelpfarmer", "tinsmith", "Elbonia", "visitor", "K00"):
        assert word not in notes


def test_a_drafted_constraint_and_a_computed_column_are_unconfirmed(table):
    schema = Schema.parse(draft_schema(table).text)
    [constraint] = schema.constraints
    assert (constraint.kind, constraint.columns) == ("less", ("start", "end"))
    assert not constraint.confirmed
    [total] = [column for column in schema.columns if column.name == "total"]
    assert (total.kind, total.confirmed) == ("computed", False)
    read_codes(table, schema)


def test_the_most_important_notes_come_first(table):
    notes = [*draft_schema(table).notes]
    unit = next(i for i, note in enumerate(notes) if "person_id" in note)
    constant = next(i for i, note in enumerate(notes) if "same value" in note)
    computed = next(i for i, note in enumerate(notes) if "rent + food" in note)
    assert unit < computed < constant


def bucket_table():
    """Columns of many and of few values of each kind that may have buckets, and of two others."""
    rows = np.arange(4_000)
    start = dt.datetime(2020, 1, 1)
    return pl.DataFrame(
        {
            "age": 18 + rows % 73,
            "children": rows % 9,
            "wage": rows % 3_000 * 10,
            "ratio": np.round(rows % 51 / 10, 1),
            "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(n) * 7 % 20_000) for n in rows],
            "seen": [start + dt.timedelta(hours=int(n) % 700) for n in rows],
            "tens": rows % 40 * 10,
            "pay": np.exp(rows % 1_000 / 70 + 2).astype(int),
            "word": [f"word {n % 30:02d}" for n in rows],
            "key": [f"P{n:06d}" for n in rows],
        }
    )


@pytest.mark.parametrize("options", [{}, {"draft_epsilon": 3.0, "noise": Keyed(1)}])
def test_the_paper_s_profile_drafts_about_ten_buckets_and_the_default_none(options):
    table = bucket_table()
    assert "bucket" not in draft_schema(table, **options).text
    text = draft_schema(table, profile="paper", **options).text
    described = {each["name"]: each for each in tomllib.loads(text)["attribute"]}
    assert {name for name, each in described.items() if "buckets" in each} == {
        *("age", "wage", "ratio", "born", "seen", "tens")
    }
    assert described["age"]["buckets"] == {"width": 10}
    for attribute in Schema.parse(text).attributes:
        most = 20 if "buckets" in described[attribute.name] else attribute.size
        assert 4 <= attribute.buckets <= most
    assert Schema.parse(Schema.parse(text).text()) == Schema.parse(text)


def test_an_unknown_profile_of_a_draft_is_refused():
    with pytest.raises(ConfigError, match="must be one of default, paper"):
        draft_schema(bucket_table(), profile="papers")


def written(numbers, form):
    return [form.format(int(number)) for number in numbers]


def test_written_numbers_and_times_are_values_or_identifiers_that_read_back(tmp_path):
    """Few of them are values. Many, with a few rows each, look like generated keys."""
    draws = np.random.default_rng(4)
    minutes = draws.integers(0, 1_440, 2_000)
    columns = {
        "wage": written(np.exp(draws.normal(10, 1, 2_000)), "{:07d}"),
        "fee": written(500 * draws.integers(0, 9, 2_000), "{:05d}"),
        "seen": [f"{minute // 60:02d}:{minute % 60:02d}" for minute in minutes],
        "hour": written(minutes // 60, "{:02d}:00"),
        "pets": draws.integers(-1, 9, 2_000),
    }
    path = tmp_path / "t.csv"
    gaps = pl.when(pl.int_range(pl.len()) % 9 > 0).then(pl.all())
    pl.DataFrame(columns).with_columns(gaps.name.keep()).write_csv(path)
    schema = Schema.parse(draft_schema(path).text)
    assert {column.name: column.kind for column in schema.columns} == {
        "wage": "identifier",
        "fee": "categorical",
        "seen": "identifier",
        "hour": "categorical",
        "pets": "integer",
    }
    codes, _ = read_codes(path, schema)
    assert len(codes) == 2_000


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_separator_is_asked_about(tmp_path, separator):
    path = tmp_path / "t.csv"
    path.write_text(separator.join("ab") + "\n" + separator.join("12") + "\n")
    with pytest.raises(DataError, match="separated by") as error:
        draft_schema(path)
    assert separator.join("ab") not in str(error.value), "the first line may be a record"


def test_a_wide_table_is_drafted_without_a_search_for_relationships():
    """2,000 columns of 10 rows: no formula or order has enough rows to be sought."""
    rows = {f"c{j}": [(j * r) % 7 for r in range(10)] for j in range(2_000)}
    draft = draft_schema(pl.DataFrame(rows))
    assert len(draft.attributes) == 2_000
    assert "[[constraint]]" not in draft.text


def test_a_given_unit_is_written(table):
    draft = draft_schema(table, unit="person_id")
    schema = Schema.parse(draft.text)
    assert schema.unit == "person_id"
    assert schema.max_rows_per_unit == 1, "the true maximum would be read from the data"
    assert "# unit" not in draft.text
    with pytest.raises(ConfigError, match="no such column"):
        draft_schema(table, unit="absent")
    with pytest.raises(ConfigError, match="max_rows_per_unit"):
        draft_schema(table, max_rows_per_unit=3)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("t.csv", b"", "empty"),
        ("t.csv", b"a,b\n", "no records"),
        ("t.csv", b"a,b\n1,2\n3\n", "line 3"),
        ("t.csv", "a,b\né,2\n".encode("latin-1"), "UTF-8"),
        ("t.csv", b"a,a\n1,2\n", "same name"),
        ("t.csv", b",a\n0,axolotl\n", "no name"),
        ("t.csv", b'a,b\n"axolotl,2\n', "quotation mark"),
        ("t.csv.gz", b"a,b\n1,2\n", "gzip"),
        ("t.parquet", b"axolotl", "Parquet"),
        ("t.xlsx", b"axolotl", "must end in"),
    ],
)
def test_errors_of_unreadable_tables_quote_no_cell(tmp_path, name, content, what):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=what) as error:
        draft_schema(path)
    assert "axolotl" not in str(error.value)


@pytest.mark.parametrize("source", [3, pl.DataFrame(), pl.DataFrame({"a": []})])
def test_a_source_that_is_not_a_table_is_rejected(source):
    with pytest.raises(DataError):
        draft_schema(source)


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_panic_of_polars_is_an_error_that_quotes_no_cell(monkeypatch, table, epsilon):
    def panic(*_args, **_options):
        raise pl.exceptions.PanicException("axolotl")

    monkeypatch.setattr("deniable.drafting.draft.guess_columns", panic)
    monkeypatch.setattr("deniable.drafting.private_draft._draft_column", panic)
    with pytest.raises(DataError, match="cannot be drafted") as error:
        draft_schema(table, draft_epsilon=epsilon)
    assert "axolotl" not in str(error.value)
    assert error.value.__cause__ is None


def test_one_row_can_be_drafted_and_few_rows_get_a_note(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("a,b,c,d\n1,oak,2020-01-01,2.5\n")
    assert_describes(path, rows=1)
    assert "few rows (1)" in draft_schema(path).notes[0]


def test_names_of_any_kind_survive():
    names = ['say "hi"', "naïve\tname", "[x]", "a\nb", "#", "\x01"]
    frame = pl.DataFrame({name: [1, 2, 3] * 10 for name in names})
    schema = assert_describes(frame, rows=30)
    assert [column.name for column in schema.columns] == names


CELL = st.one_of(
    st.sampled_from(["", "NA", "None", "yes", "no", "0", "1", "-8", "99", "2020-01-05"]),
    st.sampled_from(["1/2/1999", "13/2/1999", "2020-01-05 10:00", "07", " 7", "N", "1e5"]),
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(str),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=6),
)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 40))
def test_any_table_of_text_gets_a_draft_that_describes_it(data, rows):
    """Two columns, one with few different cells and one with many: no cell is invalid."""
    pool = data.draw(st.lists(CELL, min_size=1, max_size=4))
    few = data.draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows))
    cells = data.draw(st.lists(CELL, min_size=rows, max_size=rows))
    frame = pl.DataFrame({"few": few, "many": cells, "plain": [i % 3 for i in range(rows)]})
    assert_describes(frame, rows=rows)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(allow_infinity=False)), min_size=1, max_size=30),
)
def test_any_column_of_doubles_gets_a_draft_that_describes_it(cells):
    frame = pl.DataFrame(
        {"x": pl.Series(cells, dtype=pl.Float64), "plain": [i % 3 for i in range(len(cells))]}
    )
    try:
        assert_describes(frame, rows=len(cells))
    except DeniableError as error:
        raise AssertionError(str(error)) from error


def test_a_large_delta_of_a_private_draft_must_be_accepted():
    table = pl.DataFrame({"colour": ["red", "blue"] * 200})
    with pytest.raises(ConfigError, match=r"draft_delta = 0\.01 is above.*--accept-large-delta"):
        draft_schema(table, draft_epsilon=1.0, draft_delta=0.01)
    draft = draft_schema(table, draft_epsilon=1.0, draft_delta=0.01, accept_large_delta=True)
    assert draft.cost.delta == 0.01


def test_only_a_private_draft_that_promises_something_may_be_published():
    table = pl.DataFrame({"colour": ["red", "blue"] * 200})

    def introduction(**options):
        draft = draft_schema(table, accept_large_delta=True, **options)
        return " ".join(draft.text.partition("[draft]")[0].replace("#", "").split())

    assert "It may be published: what it discloses" in introduction(draft_epsilon=1.0)
    for options, warning in (
        ({"draft_epsilon": 1.0, "draft_delta": 0.5}, "No meaningful guarantee"),
        ({"draft_epsilon": 12.0}, "promises next to nothing"),
    ):
        text = introduction(**options)
        assert warning in text
        assert "Keep it as confidential as the table. What it discloses" in text
        assert "may be published" not in text


# Tables without a header line: the first person's cells would be the names of columns.
PERSONS = "34,Utrecht,2.5,yes\n41,Zwolle,1.25,no\n52,Utrecht,3.5,yes\n34,Zwolle,2.5,no\n"
TOWNS = "a1,Utrecht,farmer\na2,Utrecht,baker\na3,Zwolle,farmer\n"


@pytest.mark.parametrize("content", [PERSONS, TOWNS, "2020-01-31\n2020-02-01\n", "7\n8\n"])
def test_a_missing_header_line_is_asked_about_and_no_cell_is_shown(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content * 3)
    with pytest.raises(DataError, match="is the header line missing") as caught:
        draft_schema(path)
    cells = content.replace("\n", ",").split(",")
    assert not any(cell in str(caught.value) for cell in cells if len(cell) > 2)
    names = [draft.name for draft in draft_schema(path, header=True).attributes]
    assert names == cells[: len(names)]
    draft = draft_schema(path, header=False)
    assert [each.name for each in draft.attributes] == [
        f"column_{i + 1}" for i in range(len(names))
    ]
    assert not tomllib.loads(draft.text)["header"]


def test_a_private_draft_judges_the_first_line_alone(tmp_path):
    path = tmp_path / "t.csv"
    private = {"draft_epsilon": 1.0, "noise": Keyed(1)}
    path.write_text(TOWNS)
    assert "Utrecht" in draft_schema(path, **private).text, "what occurs is an exact answer"
    path.write_text("34,Utrecht,2.5,yes,no\n" * 2)
    with pytest.raises(DataError, match="is the header line missing"):
        draft_schema(path, **private)
    with pytest.raises(DataError, match="is the header line missing"):
        draft_schema(path)
    text = draft_schema(path, header=False, **private).text
    assert "header = false" in text
    assert "column_5" in text


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a" * 101 + ",b", "the name of column 1 has more than 100 characters"),
        ("a,b,a", "columns 1, 3 of t.csv have the same name"),
        ("a,,b", "column 2 of t.csv has no name"),
    ],
)
def test_names_that_are_too_long_repeated_or_empty_are_asked_about_by_position(
    tmp_path, header, message
):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n" + "x,y,z\n"[: 2 * header.count(",") + 1] + "\n")
    for options in ({}, {"draft_epsilon": 1.0, "noise": Keyed(1)}):
        with pytest.raises(DataError, match=message) as caught:
            draft_schema(path, **options)
        assert "--no-header" in str(caught.value)
        assert "aaa" not in str(caught.value)


def test_only_csv_files_lack_a_header_line():
    with pytest.raises(ConfigError, match="only for CSV"):
        draft_schema(pl.DataFrame({"2020": [1, 2]}), header=False)
    assert draft_schema(pl.DataFrame({"2020": [1, 2], "2021": [1, 2]}, strict=False)).attributes


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_an_empty_file_without_a_header_line_cannot_be_drafted(tmp_path, epsilon):
    """Its first record would show how many columns there are: one record does."""
    path = tmp_path / "table.csv"
    path.write_text("")
    with pytest.raises(DataError, match="is empty"):
        draft_schema(path, draft_epsilon=epsilon, header=False)
    path.write_text("5,x\n")
    assert "header = false" in draft_schema(path, draft_epsilon=epsilon, header=False).text
