import csv
import gzip
import itertools
import tempfile
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.data import csv_reader
from deniable.data.codec import CellSource, Codec, encode_cells
from deniable.data.csv_reader import CsvFile, read_csv
from deniable.data.polars_errors import POLARS_ERRORS
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

pytestmark = pytest.mark.slow

AGE = Attribute(name="age", kind="integer", values=range(17, 97))
JOB = Attribute(name="job", kind="categorical", values=("cook", "nurse"))
BOTH = Codec(Schema((AGE, JOB)))
MAYBE = Attribute(name="job", kind="categorical", values=("cook", "nurse"), missing=("", "?"))
KIDS = Attribute(name="kids", kind="integer", values=range(10), missing=("", "-8"))


def read(tmp_path, content, *attributes):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_csv(path, Codec(Schema(attributes or (AGE, JOB)))).codes.tolist()


def refusal(tmp_path, content, *attributes):
    with pytest.raises(DataError) as caught:
        read(tmp_path, content, *attributes)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "age,job\n17,cook\n96,nurse\n",
        "age,job\n17,cook\n96,nurse",
        "job,age\ncook,17\nnurse,96\n",
        "\ufeffage,job\n17,cook\n96,nurse\n",
        "age,job\r\n17,cook\r\n96,nurse\r\n",
        '"age","job"\n"17","cook"\n"96","nurse"\n',
        "age,job\n+17,cook\n096,nurse\n",
        "age,job\n17.0,cook\n 96 ,nurse\n",
    ],
)
def test_the_same_table_is_read_however_it_is_written(tmp_path, content):
    assert read(tmp_path, content) == [[0, 0], [79, 1]]


def test_gzip_is_read_in_one_member_or_several(tmp_path):
    path = tmp_path / "t.CSV.GZ"
    path.write_bytes(gzip.compress(b"age,job\n17,cook\n") + gzip.compress(b"96,nurse\n"))
    assert read_csv(path, BOTH).codes.tolist() == [[0, 0], [79, 1]]


def test_missing_texts_are_those_of_the_column(tmp_path):
    content = 'kids,job\n3,cook\n,\n-8,?\n"",""\n'
    assert read(tmp_path, content, KIDS, MAYBE) == [[3, 0], [10, 2], [10, 2], [10, 2]]


def test_a_text_that_means_missing_may_occur_among_numbers(tmp_path):
    kids = Attribute(name="kids", kind="integer", values=range(10), missing=("NA", "-8", "."))
    assert read(tmp_path, "kids\n3\nNA\n-8\n.\n", kids) == [[3], [10], [10], [10]]
    message = refusal(tmp_path, "kids\n3\n\n", kids)
    assert 'line 3 of t.csv: the cell is empty, but only "NA", "-8", "." means missing' in message


def test_an_empty_cell_is_missing_only_where_the_schema_says_so(tmp_path):
    coded = Attribute(name="kids", kind="integer", values=range(10), missing=("-8",))
    message = refusal(tmp_path, "age,kids\n17,3\n17,\n", AGE, coded)
    assert 'column "kids", line 3 of t.csv: the cell is empty, but only "-8" means' in message
    message = refusal(tmp_path, "age,job\n,cook\n17,cook\n")
    assert 'column "age", line 2 of t.csv: the cell is missing' in message
    message = refusal(tmp_path, "job,age\n,17\ncook,17\n")
    assert 'column "job", line 2 of t.csv: the cell is missing' in message


def test_the_empty_text_may_be_a_value(tmp_path):
    text = Attribute(name="job", kind="categorical", values=("", "cook"), missing=("?",))
    assert read(tmp_path, 'age,job\n17,""\n17,\n17,?\n', AGE, text) == [[0, 0], [0, 0], [0, 2]]


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("SECRET", "not a whole number"),
        ("5_1", "not a whole number"),
        ("51.53125", "not a whole number"),
        ("inf", "not a whole number"),
        ("٣٣", "not a whole number"),
        ("777", r"outside 17\.\.96"),
        ("99999999999999999999999", r"outside 17\.\.96"),
    ],
)
def test_a_fault_names_column_line_and_number_and_hides_the_cell(tmp_path, cell, what):
    content = f"age,job\n17,cook\n{cell},nurse\n20,cook\n{cell},cook\n"
    message = refusal(tmp_path, content)
    assert cell not in message
    with pytest.raises(DataError, match=rf'column "age", line 3 of t.csv: .*{what}.* 2 lines have'):
        read(tmp_path, content)


def test_a_text_that_is_not_listed_is_a_fault(tmp_path):
    message = refusal(tmp_path, "age,job\n17,cook\n18,SECRET\n")
    assert 'column "job", line 3 of t.csv: the value is none of the 2' in message
    assert "SECRET" not in message


def test_lines_are_counted_as_an_editor_does(tmp_path):
    note = Attribute(name="note", kind="categorical", values=("a", "two\nlines", "x,y"))
    message = refusal(tmp_path, 'note,age\n"two\nlines",17\n"x,y",18\na,777\n', note, AGE)
    assert 'column "age", line 5 of t.csv' in message


def test_drop_leaves_out_what_cannot_be_parsed(tmp_path):
    age = Attribute(name="age", kind="integer", values=range(17, 97), outside="drop")
    assert read(tmp_path, "job,age\ncook,17\ncook,abc\nnurse,\nnurse,18\n", JOB, age) == [
        [0, 0],
        [1, 1],
    ]


@pytest.mark.parametrize("last", [MAYBE, JOB])
@pytest.mark.parametrize(
    ("record", "what"),
    [
        ("20", "has 1 cell where the header has 2"),
        ("20,cook,SECRET", "has 3 cells where the header has 2"),
        ("", "is blank"),
        ('"20"', "has 1 cell where the header has 2"),
    ],
)
def test_a_record_with_too_few_or_too_many_cells_is_found(tmp_path, last, record, what):
    content = f"age,job\n17,cook\n{record}\n20,cook\n{record}\n"
    message = refusal(tmp_path, content, AGE, last)
    assert f"line 3 of t.csv {what}. 2 records do not match the header" in message
    assert "SECRET" not in message


def test_a_record_cut_short_is_found_even_where_an_empty_cell_would_be_dropped(tmp_path):
    job = Attribute(name="job", kind="categorical", values=("cook",), outside="drop")
    assert "line 3 of t.csv has 1 cell" in refusal(tmp_path, "age,job\n17,cook\n18", AGE, job)


@pytest.mark.parametrize("record", ["", "18", ",", "17,cook,cook"])
def test_a_record_cut_short_is_found_even_where_its_row_would_be_dropped(tmp_path, record):
    """A blank line is not dropped as a row: it may be part of a quoted cell or of a cut file."""
    age = Attribute(name="age", kind="integer", values=range(17, 18), outside="drop")
    content = f"age,job\n17,cook\n{record}\n17,cook\n"
    if record == ",":
        assert read(tmp_path, content, age, JOB) == [[0, 0], [0, 0]]
    else:
        assert "line 3 of t.csv " in refusal(tmp_path, content, age, JOB)


def test_a_short_record_is_found_among_quoted_ones(tmp_path):
    text = Attribute(name="job", kind="categorical", values=("a,b",), missing=("",))
    message = refusal(tmp_path, 'age,job\n17,"a,b"\n18\n', AGE, text)
    assert "line 3 of t.csv has 1 cell" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv or its first line is empty"),
        ("\n17,cook\n", "its first line is"),
        ("age,job,age\n17,cook,17\n", "columns 1, 3 of t.csv have the same name"),
        ("age,job,age\n17,cook,17\n", "init --no-header"),
        ("age\n17\n", 't.csv has no column "job"'),
        ("age,job,pay\n17,cook,3\n", 'does not describe column "pay" of t.csv'),
        ("SECRET,17\nSECRET,18\n", "Is its header line missing"),
        ('age,job\n17,"cook\n', "begins on line 2 of t.csv is not CSV"),
        ('age,job\n17,cook\n17,"cook"SECRET\n', "begins on line 3 of t.csv is not CSV"),
        ('age,job\n17,SECR"ET\n17,cook\n', "t.csv cannot be read as CSV"),
        ("age,job\r17,SECRET\r", "t.csv has CR line endings"),
        ("age,job\n17,cook\n18,é\n".encode("latin-1"), "line 3 of t.csv is not UTF-8"),
        ("âge,job\n17,cook\n".encode("latin-1"), "line 1 of t.csv is not UTF-8"),
        (gzip.compress(b"age,job\n17,cook\n", mtime=0), "not UTF-8"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, content, message):
    said = refusal(tmp_path, content)
    assert message in said
    assert "SECR" not in said


def test_a_header_alone_is_a_table_without_records(tmp_path):
    assert read(tmp_path, "age,job\n") == []
    assert read(tmp_path, "age,job") == []


def test_a_broken_gzip_file_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    whole = gzip.compress(b"age,job\n" + b"17,cook\n18,nurse\n" * 20_000)
    for content in (b"age,job\n17,cook\n", whole[: len(whole) // 2], whole[:-9], b"\x1f\x8b"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"t.csv.gz is not a complete gzip file"):
            read_csv(path, BOTH)


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_csv(tmp_path / "t.csv", BOTH)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match=r"d\.csv is a folder, not a regular file"):
        read_csv(tmp_path / "d.csv", BOTH)


def test_a_name_with_brackets_is_no_pattern(tmp_path):
    path = tmp_path / "t[1]*.csv"
    path.write_text("age,job\n17,cook\n")
    assert read_csv(path, BOTH).codes.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("content", "is_full"),
    [
        ("a,b\n1,2\n", True),
        ("a,b\r\n1,2\r\n", True),
        ('a,b\n"1","x,y"\n', True),
        ('"a","b ""c"""\n"1 ""x"", y",""\n', True),
        ("a,b\n1\n", False),
        ("a,b\n1,2,3\n", False),
        ("a,b\n1,2\n\n", False),
        ('a,b\n1,"x\ny"\n', False),
        ('a,b\n1,x"y,z"\n', False),
        ('a,b\n1,"x"y\n', False),
        ('a\n"1,2\n', False),
        ('a\nx"1,2"y\n', False),
    ],
)
def test_lines_that_are_full_records_are_recognized(tmp_path, content, is_full):
    path = tmp_path / "t.csv"
    path.write_text(content, newline="")
    assert CsvFile.open(path).has_full_lines is is_full


NAME = Identifier(name="name")


@pytest.mark.parametrize("first", [NAME, JOB, MAYBE])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(
    ("cells", "count"), [("cook,40,5,3", 4), ("cook,40,5,", 4), ("cook,40,5,3,x,y", 6)]
)
def test_surplus_cells_are_refused_even_if_a_column_is_not_read(
    tmp_path, first, quote, cells, count
):
    """polars cuts such a record off where it does not read every column."""
    broken = ",".join(f"{quote}{cell}{quote}" for cell in cells.split(","))
    required = Attribute(name="kids", kind="integer", values=range(10))
    for last in (required, KIDS, Identifier(name="kids", release="omit")):
        content = f"{first.name},age,kids\ncook,20,1\n{broken}\ncook,20,1\n"
        message = refusal(tmp_path, content, first, AGE, last)
        assert f"line 3 of t.csv has {count} cells where the header has 3. 1 record" in message


def test_a_comma_at_the_end_of_every_line_is_refused(tmp_path):
    assert "line 2 of t.csv has 3 cells where the header has 2. 2 records do not" in refusal(
        tmp_path, "age,job\n17,cook,\n18,cook,\n"
    )
    assert "column 3 of t.csv has no name" in refusal(tmp_path, "age,job,\n17,cook,\n")


CELL_PARTS = st.sampled_from(['"', '""', ",", "\n", "\r\n", "a", "é", " ", ""])
CELLS_OF_ANY_FORM = st.one_of(
    st.lists(CELL_PARTS, max_size=4).map("".join),
    st.lists(CELL_PARTS, max_size=4).map(lambda p: '"' + "".join(p).replace('"', '""') + '"'),
)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.lists(st.lists(CELLS_OF_ANY_FORM, min_size=1, max_size=4), max_size=4), st.integers(1, 3))
def test_polars_and_the_csv_module_read_the_same_cells_or_the_file_is_refused(rows, width):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        text = "\n".join([",".join("xyz"[:width]), *map(",".join, rows)]) + "\n"
        path.write_text(text, newline="", encoding="utf-8")
        try:
            file = CsvFile.open(path)
            file.require_full_records()
            scanned = file.scan(dict.fromkeys(file.names, pl.String())).collect()
        except (DataError, pl.exceptions.PolarsError):
            return
        with path.open(newline="", encoding="utf-8") as stream:
            _, *records = csv.reader(stream, strict=True)
        assert [list(row) for row in scanned.rows()] == [row or [""] for row in records]


def test_a_large_table_takes_the_fast_path(tmp_path, monkeypatch):
    pl.DataFrame({"age": [17, 18] * 1000, "job": ["cook", "nurse"] * 1000}).write_csv(
        tmp_path / "t.csv"
    )
    monkeypatch.setattr("deniable.data.csv_reader._encode_text", None)
    assert len(read_csv(tmp_path / "t.csv", BOTH).codes) == 2000


CELLS = [
    *("", " ", "  ", "\t", "5", " 5", "5 ", "\t5", "+5", "-5", "--5", "05", "5.0", "5.", "5e0"),
    *("1e1", "0x5", "5_0", "٥", "\u00a05", "nan", "NaN", "inf", "null", "NA", "true", "-0", "-"),
    *(
        "+",
        ".",
        "5\r",
        "9223372036854775807",
        "9223372036854775808",
        "1" * 30,
        " -5",
        "- 5",
        "\x0b5",
        "5,0",
        "1e400",
        "-1e400",
        "5.04",
        ".5",
        "5f",
        "infinity",
        "19700102",
        " 19700102",
        "TRUE",
    ),
]


@pytest.mark.parametrize("missing", [(), ("",), ("NA",), ("", "-8")])
@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_the_code_of_a_cell_does_not_depend_on_the_pass(tmp_path, cell, missing):
    """A record that forces the slower pass must not change the code of any other record.

    Otherwise one more row would change many, and the privacy guarantee would not hold.
    """
    kinds = [
        Attribute(name="a", kind="integer", values=range(-7, 100), missing=missing, outside="drop"),
        Attribute(name="a", kind="categorical", values=(1, 5, 50), missing=missing, outside="drop"),
        Attribute(
            name="a", kind="categorical", values=("5", " 5"), missing=missing, outside="drop"
        ),
        Attribute(name="a", kind="ordered", values=(5, 1, 50), missing=missing, outside="drop"),
        Attribute(name="a", kind="text", values=("5",), other="o", missing=missing, outside="drop"),
        Attribute(name="a", kind="boolean", values=("5", "6"), missing=missing, outside="drop"),
        Attribute(
            name="a",
            kind="integer",
            values=range(-7, 100),
            starts=(-7, 0, 6),
            missing=missing,
            outside="clip",
        ),
        Attribute(
            name="a",
            kind="real",
            values=range(-70, 1000),
            grid=Grid(kind="real", step=Decimal("0.1")),
            missing=missing,
            outside="drop",
        ),
        Attribute(
            name="a",
            kind="date",
            values=range(-3000, 5000),
            grid=Grid(kind="date", format="%Y%m%d"),
            missing=tuple(text for text in missing if text != "-8"),
            outside="drop",
        ),
    ]
    other = Attribute(name="b", kind="categorical", values=("x",))
    for attribute, (quote, last) in itertools.product(kinds, (("", False), ('"', True))):
        written = f"{quote}{cell}{quote}"
        rows = ("b,a", f"x,{written}", "x,5") if last else ("a,b", f"{written},x", "5,x")
        path = tmp_path / "table.csv"
        path.write_text("\n".join(rows) + "\n", newline="")
        file = csv_reader.CsvFile.open(path)
        source = CellSource(
            table_name="t", origin="csv", record_noun="line", record_numbers=file.line_numbers
        )
        codec = Codec(Schema((attribute, other)))
        typed = file.scan({each.name: csv_reader.csv_dtype(each) for each in codec.columns})
        try:
            quickly = encode_cells(codec, typed, source)
        except (*POLARS_ERRORS, DataError):
            continue
        slowly = csv_reader._encode_text(file, codec, source)
        assert quickly.codes.tolist() == slowly.codes.tolist()


def test_a_stored_index_of_pandas_is_skipped(tmp_path):
    assert read(tmp_path, "__index_level_0__,age,job\nany,17,cook\n") == [[0, 0]]


# without a header line

PLAIN = Schema((AGE, JOB), header=False)
KEYED = Schema((AGE, Identifier(name="key", release="omit"), JOB), header=False)


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        (PLAIN, "17,cook\n96,nurse\n"),
        (PLAIN, "\ufeff17,cook\r\n96,nurse\r\n"),
        (PLAIN, '"17","cook"\n96,"nurse"'),
        (KEYED, "17,a,cook\n96,b,nurse\n"),
        (KEYED, "17,cook\n96,nurse\n"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_without_a_header_line_every_line_is_a_record(tmp_path, schema, content, suffix):
    """Records lack the columns that are left out."""
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(content.encode()) if suffix == ".csv.gz" else content.encode())
    assert read_csv(path, Codec(schema)).codes.tolist() == [[0, 0], [79, 1]]


def test_an_empty_file_without_a_header_line_has_no_records(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"")
    assert read_csv(path, Codec(PLAIN)).codes.tolist() == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("17,cook\n18\n", "line 2 of t.csv has 1 cell where the table has 2"),
        ("17,cook,1\n", "line 1 of t.csv has 3 cells where the table has 2"),
        ("\n17,cook\n", "line 1 of t.csv is blank"),
        ("age,job\n17,cook\n", 'column "age", line 1'),
        ("17,cook\n17,smith\n", 'column "job", line 2'),
        ('17,cook\n"1\n7",cook\n17,smith\n', 'column "job", line 4'),
    ],
)
def test_faults_of_a_file_without_a_header_line_are_found_by_line(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read_csv(path, Codec(PLAIN))
    assert message in str(caught.value)
    assert "smith" not in str(caught.value)
