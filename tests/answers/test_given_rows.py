"""Given rows: files, blocks, line numbers; which cells are filled, and what is wrong."""

import polars as pl
import pytest

from deniable.answers.given_column import given_column
from deniable.answers.given_rows import GivenRows
from deniable.errors import DataError
from deniable.schema.schema import Schema


@pytest.fixture
def csv(tmp_path):
    def write(text, name="rows.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_csv_file_is_read_in_blocks_of_equal_size(rich, csv):
    lines = [f"{i % 100},{'yes' if i % 3 == 0 and i % 100 > 17 else ''}" for i in range(1_000)]
    rows = GivenRows.read(csv("age,smoker\n" + "\n".join(lines) + "\n"), rich.schema)
    assert (rows.number, rows.names) == (1_000, ("age", "smoker"))
    blocks = list(rows.blocks(300))
    assert [len(block) for block in blocks] == [300, 300, 300, 100]
    assert [block.first_row for block in blocks] == [0, 300, 600, 900]
    age = rich.schema.names.index("age")
    assert blocks[1].positions[7, age] == 307 % 100
    assert blocks[1].codes[7, age] == 0
    assert blocks[1].filled[:, age].all()
    assert not blocks[1].filled[0, rich.schema.names.index("smoker")]
    assert not blocks[1].filled[:, rich.schema.names.index("pay")].any()


def test_parquet_files_are_given_rows_too(rich, tmp_path):
    pl.DataFrame({"weight": [2.5, None], "town": ["Ulm", "Jena"]}).write_parquet(
        tmp_path / "r.parquet"
    )
    [block] = GivenRows.read(tmp_path / "r.parquet", rich.schema).blocks(10)
    assert block.copied["town"].to_list() == ["Ulm", "Jena"]
    assert block.positions[0, rich.schema.names.index("weight")] == 25


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("age,smoker\n", "rows.csv has no rows"),
        ("ages\n5\n", "none of the schema"),
        ("age,hight\n5,4\n", 'does not describe column "hight"'),
        ("age,age\n5,4\n", "same name"),
        ("age,smoker\n5\n", "line 2 of rows.csv has 1 cell"),
        ("age,smoker\n5,\n1000,no\n", 'column "age", line 3 of rows.csv'),
    ],
)
def test_files_that_do_not_fit_are_refused(rich, csv, text, words):
    with pytest.raises(DataError) as raised:
        GivenRows.read(csv(text), rich.schema)
    assert words in str(raised.value)
    assert "1000" not in str(raised.value)


def test_absent_and_unknown_files_are_refused(rich, csv, tmp_path):
    with pytest.raises(DataError, match="no such file"):
        GivenRows.read(tmp_path / "absent.csv", rich.schema)
    with pytest.raises(DataError, match="must end in"):
        GivenRows.read(csv("age\n1\n", "rows.txt"), rich.schema)
    with pytest.raises(DataError, match="not a table"):
        GivenRows.read(7, rich.schema)


SCHEMA = Schema.parse("""
format = 1
[[attribute]]
name = "w{}"
type = "real"
min = 0
max = 9.9
decimals = 1
[[attribute]]
name = "t"
type = "datetime"
min = 2020-01-01T00:00:00
max = 2020-01-02T00:00:00
[[attribute]]
name = "n"
type = "integer"
min = 0
max = 50
outside = "clip"
missing = ["", "-1"]
""")


def computed(name, cells, origin="typed"):
    frame = pl.DataFrame({name: cells}, strict=False)
    column = next(each for each in SCHEMA.columns if each.name == name)
    given = given_column(column, frame.schema, origin, SCHEMA)
    faults = [frame.select(mark).to_series().to_list() for _, mark in given.faults()]
    return frame.select(given.expressions()), faults, given


def test_blank_cells_are_not_filled_and_texts_for_missing_are():
    found, [wrong], given = computed("n", ["7", "", " ", "-1", None, "51"])
    assert found[given.filled_name].to_list() == [True, False, False, True, False, True]
    assert found[given.code_name].to_list()[:4] == [7, 51, 51, 51]
    assert wrong == [False, False, False, False, False, True]  # not clipped


@pytest.mark.parametrize(
    ("cells", "wrong"), [([2.5, 2.55, None], [False, True, False]), (["0.1", "x"], [False, True])]
)
def test_a_number_between_two_values_of_the_grid_does_not_fit(cells, wrong):
    found, [marks], given = computed("w{}", cells)
    assert marks == wrong
    assert found[given.position_name].to_list()[0] in (25, 1)
    [(message, _)] = given.faults()
    assert 'column "w{}", HERE:' in message.format(place="HERE", affected="2 rows have")


def test_a_time_between_two_values_of_the_grid_does_not_fit():
    cells = pl.Series(["2020-01-01T00:00:01", "2020-01-01T00:00:01.5"]).str.to_datetime()
    _, [marks], _ = computed("t", cells)
    assert marks == [False, True]
