import itertools
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.table_io import read_codes, read_table, write_table
from deniable.errors import DataError, OutputError
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

pytestmark = pytest.mark.slow

FORMATS = ["t.csv", "t.csv.gz", "t.parquet"]


def blocks_of(schema, codes, size=2):
    return (Codec(schema).decode(codes[i : i + size]) for i in range(0, len(codes), size))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_in_blocks_reads_back_equal(people, tmp_path, name):
    rows = [[0, 0, 0], [79, 1, 9], [5, 2, 10], [6, 3, 10], [7, 1, 10]]
    codes = np.array(rows, dtype=np.uint16)
    write_table(tmp_path / name, blocks_of(people, codes), people)
    back, kind = read_codes(str(tmp_path / name), people)
    assert back.tolist() == rows
    restored = kind.restore(Codec(people).decode(back))
    assert restored.equals(Codec(people).decode(codes))


def test_missing_is_written_as_its_first_text_and_an_empty_value_as_itself(people, tmp_path):
    codes = np.array([[0, 1, 10], [1, 3, 0]], dtype=np.uint16)
    write_table(tmp_path / "t.csv", blocks_of(people, codes), people)
    assert (tmp_path / "t.csv").read_text() == 'age,job,kids\n17,"",\n18,?,0\n'


def test_a_number_may_be_what_missing_is_written_as(tmp_path):
    schema = Schema((Attribute(name="n", kind="integer", values=range(3), missing=("-8", "")),))
    write_table(tmp_path / "t.csv", [pl.DataFrame({"n": [1, None]})], schema)
    assert (tmp_path / "t.csv").read_text() == "n\n1\n-8\n"


def test_missing_is_null_in_parquet(people, tmp_path):
    codes = np.array([[0, 3, 10]], dtype=np.uint16)
    write_table(tmp_path / "t.parquet", blocks_of(people, codes), people)
    assert pl.read_parquet(tmp_path / "t.parquet").rows() == [(17, None, None)]


ODD_NAMES = (
    *("\ufeff", "\ufeffa", "\ufeff\ufeffa", '\ufeff"a"', "\ufeffa,b", '"', 'a"b', '"a"', ",", "#a"),
    *(
        "a\nb",
        "\r",
        "a\tb",
        " a ",
        "\x00",
        "\x1b[2J",
        "\u202e",
        "\u2028",
        "=1+1",
        "1",
        "null",
        "[/b]",
    ),
)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("odd", ODD_NAMES, ids=ascii)
def test_a_column_of_any_name_reads_back(odd, name, tmp_path):
    """First or not. Readers drop a mark of the byte order, but only one, and only at the start."""
    for names in ((odd, "b"), ("b", odd)):
        schema = Schema(tuple(Attribute(name=n, kind="integer", values=range(3)) for n in names))
        codes = np.array([[0, 1], [2, 0]], dtype=np.uint16)
        write_table(tmp_path / name, blocks_of(schema, codes), schema)
        assert read_codes(tmp_path / name, schema)[0].tolist() == codes.tolist()


def test_a_usual_header_has_no_mark_of_the_byte_order(people, tmp_path):
    write_table(tmp_path / "t.csv", [], people)
    assert (tmp_path / "t.csv").read_bytes() == b"age,job,kids\n"


@pytest.mark.parametrize("name", FORMATS)
def test_no_blocks_make_a_file_of_no_records_that_is_read_like_any_other(people, tmp_path, name):
    write_table(tmp_path / name, [], people)
    assert read_codes(tmp_path / name, people)[0].shape == (0, 3)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("convert", [pl.DataFrame, pl.LazyFrame, pl.DataFrame.to_pandas,
                                     pl.DataFrame.to_arrow])  # fmt: skip
def test_a_table_without_rows_is_read_like_one_whose_rows_are_all_dropped(convert, drop, tmp_path):
    """Otherwise the existence of a release would reveal a single row."""
    n = Attribute(name="n", kind="integer", values=range(3), outside="drop")
    rows = pl.DataFrame({"n": [7], "id": ["a"]} if drop else {"n": [], "id": []})
    rows = rows.cast({"n": pl.Int64, "id": pl.String})
    rows.write_csv(tmp_path / "t.csv")
    rows.write_parquet(tmp_path / "t.parquet")
    schema = Schema((n, Identifier(name="id")), unit="id")
    for source in (convert(rows), tmp_path / "t.csv", tmp_path / "t.parquet"):
        table = read_table(source, schema)
        assert table.codes.shape == (0, 1)
        assert table.units.tolist() == []


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_file_does_not_tell_how_many_records_each_block_had(people, tmp_path, suffix):
    """In mode tested a block has as many records as passed, and that number is confidential."""
    frame = pl.DataFrame(
        {"age": [20, 30] * 60_000, "job": ["cook", "a,b"] * 60_000, "kids": [1, 2] * 60_000}
    )
    written = []
    for sizes in ([120_000], [1, 40_000, 39_999, 40_000], [7] * 50 + [119_650]):
        ends = [0, *itertools.accumulate(sizes)]
        blocks = [frame.slice(a, b - a) for a, b in itertools.pairwise(ends)]
        path = tmp_path / f"{len(sizes)}{suffix}"
        write_table(path, [frame.clear(), *blocks], people)
        written.append(path.read_bytes())
    assert written[0] == written[1] == written[2]


def test_an_unknown_ending_is_refused(people, tmp_path):
    for name in ("t.xlsx", "csv", "t.csv.zip"):
        with pytest.raises(DataError, match="the name of a table must end in"):
            read_codes(tmp_path / name, people)
        with pytest.raises(OutputError, match="the name of a table must end in"):
            write_table(tmp_path / name, [], people)


def test_a_file_that_is_no_parquet_is_refused(people, tmp_path):
    path = tmp_path / "t.parquet"
    with pytest.raises(DataError, match="there is no such file"):
        read_codes(path, people)
    codes = np.zeros((1000, 3), dtype=np.uint16)
    write_table(path, blocks_of(people, codes, 100), people)
    whole = path.read_bytes()
    for content in (b"", b"age,job,kids\n17,SECRET,1\n", whole[: len(whole) // 2], whole[30:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"t\.parquet cannot be read as Parquet") as caught:
            read_codes(path, people)
        assert "SECRET" not in str(caught.value)
        assert caught.value.__suppress_context__


def test_faults_of_a_parquet_file_are_found_by_row(people, tmp_path):
    frame = pl.DataFrame({"age": [17, 777], "job": ["cook", "SECRET"], "kids": [1, 2]})
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError) as caught:
        read_codes(tmp_path / "t.parquet", people)
    message = str(caught.value)
    assert 'column "age", row 2 of t.parquet: the value is outside 17..96' in message
    assert 'column "job", row 2 of t.parquet: the value is none of the 3' in message
    assert "777" not in message
    assert "SECRET" not in message


@pytest.mark.parametrize("name", FORMATS)
def test_a_place_that_cannot_be_written_to_is_an_output_error(people, tmp_path, name):
    codes = np.zeros((4, 3), dtype=np.uint16)
    with pytest.raises(OutputError, match=r"cannot be written: .*existing folder"):
        write_table(tmp_path / "absent" / name, blocks_of(people, codes), people)
    (tmp_path / name).mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        write_table(tmp_path / name, blocks_of(people, codes), people)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux can feign a full disk")
@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk_is_an_output_error(people, tmp_path, name):
    (tmp_path / name).symlink_to("/dev/full")
    codes = np.zeros((400_000, 3), dtype=np.uint16)
    with pytest.raises(OutputError, match=r"No space left on device.*Free some space"):
        write_table(tmp_path / name, blocks_of(people, codes, 100_000), people)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("error", [RuntimeError("mine"), OSError("mine"), DataError("mine")])
def test_what_the_blocks_raise_is_raised_as_it_is(people, tmp_path, name, error):
    def blocks():
        yield Codec(people).decode(np.zeros((4, 3), dtype=np.uint16))
        raise error

    with pytest.raises(type(error), match="mine") as caught:
        write_table(tmp_path / name, blocks(), people)
    assert caught.value is error


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_after_an_error_of_the_blocks_nobody_writes_on(people, tmp_path, name):
    """Were polars told of the error, one of its threads made the file anew in 1 run of 20."""

    def blocks():
        yield from ()
        raise ValueError("mine")

    for _ in range(200):
        with pytest.raises(ValueError, match="mine"):
            write_table(tmp_path / name, blocks(), people)
        (tmp_path / name).unlink(missing_ok=True)
    time.sleep(0.2)
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
import os, signal, sys, time
import polars as pl
from deniable.schema.schema import Attribute, Schema
from deniable.data.table_io import write_table

schema = Schema((Attribute(name="n", kind="integer", values=range(9)),))

def blocks():
    for i in range(200):
        if i == 3:
            os.kill(os.getpid(), signal.SIGINT)
        yield pl.DataFrame({"n": [1]})
        time.sleep(0.05)

try:
    write_table(sys.argv[1], blocks(), schema)
except KeyboardInterrupt:
    for _ in range(1000):
        str(_)
    print("cleaned up")
"""


def test_an_interrupt_is_raised_once_so_that_the_caller_can_clean_up(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED, tmp_path / "t.csv"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.stdout == "cleaned up\n", result.stderr


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_blocks_are_asked_for_as_they_are_written(people, tmp_path, name):
    """Bounded memory: were the blocks gathered first, the file would still be empty at the last."""
    path, written = tmp_path / name, []
    rng = np.random.default_rng(7)
    block = np.column_stack([rng.integers(0, size, 30_000) for size in people.sizes])

    def blocks():
        for _ in range(150):
            yield Codec(people).decode(block.astype(np.uint16))
            written.append(path.stat().st_size if path.exists() else 0)

    write_table(path, blocks(), people)
    assert written[-1] > path.stat().st_size / 2
