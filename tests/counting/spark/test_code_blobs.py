"""Code blobs, without a cluster: what tasks yield, and that they never raise."""

import os

import polars as pl
import pyarrow as pa
import pytest

from deniable.counting.spark import code_blobs
from deniable.counting.spark.code_blobs import (
    BLOB_TYPES,
    NO_ROW,
    BlobReader,
    FileEncoder,
    FrameEncoder,
    PartItem,
    item_of,
    run_guarded,
    task_of,
)
from deniable.counting.spark.spark_errors import TaskFault
from deniable.data.table_io import read_table
from deniable.errors import DataError
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

KEY = bytes(32)
CELL = "heliotrope-marsh"
pytestmark = pytest.mark.filterwarnings("ignore:PySpark")


def numbers(*items):
    return iter([pa.RecordBatch.from_pydict({"id": list(items)})])


def encode(kernel, batches):
    return [row for batch in kernel.run(batches) for row in batch.to_pylist()]


@pytest.fixture
def small_blobs(monkeypatch):
    monkeypatch.setattr(code_blobs, "_BLOB_BYTES", 7000)


@pytest.mark.usefixtures("small_blobs")
def test_blobs_hold_the_codes_of_a_file(small_files, small_schema, small_codes):
    kernel = FileEncoder((PartItem(str(small_files / "table.csv")),), small_schema, KEY)
    rows = encode(kernel, numbers(0))
    assert [row["rows"] for row in rows] == [700, 700, 600]
    assert [row["blob"] for row in rows] == [0, 1, 2]
    reader = BlobReader(5, {row["blob"]: row["digest"] for row in rows}, KEY)
    batches = kernel.run(numbers(0))
    found = [code for codes in reader.iter_codes(batches, []) for code in codes.tolist()]
    assert found == small_codes.tolist()


def test_times_are_moments_whatever_the_zone_of_the_session():
    """Spark hands over its timestamps in the zone of the session, which says nothing of them."""
    lines = 'name = "x"\ntype = "datetime"\nmin = 2020-06-01\nmax = 2020-06-30\nstep_seconds = 3600'
    schema = Schema.parse(f"format = 1\n[[attribute]]\n{lines}\n")
    made = []
    for zone in ("UTC", "Europe/Warsaw", "Asia/Tokyo"):
        cells = pa.array([1_590_973_200_000_000], pa.timestamp("us", "UTC"))  # 2020-06-01 01:00
        batch = pa.RecordBatch.from_pydict({"0": cells.cast(pa.timestamp("us", zone))})
        made += encode(FrameEncoder(schema, KEY, ("x",)), iter([batch]))
    assert [row["fault"] for row in made] == [None] * 3
    assert {row["codes"] for row in made} == {b"\1\0"}


def test_a_blob_with_other_codes_is_refused(small_files, small_schema):
    kernel = FileEncoder((PartItem(str(small_files / "table.csv")),), small_schema, KEY)
    [row] = encode(kernel, numbers(0))
    reader = BlobReader(5, {0: bytes(32)}, KEY)
    with pytest.raises(DataError, match="other rows when it is computed again"):
        list(reader.iter_codes(kernel.run(numbers(0)), []))
    assert row["fault"] is None


@pytest.mark.parametrize("blob", [None, 7])
def test_a_blob_that_was_not_there_is_refused(blob):
    """A file that has vanished is a fault, without a blob, when its part is computed again."""
    reader = BlobReader(5, {0: bytes(32)}, KEY)
    rows = [{"blob": blob, "codes": None, "owners": None}]
    batch = pa.RecordBatch.from_pylist(rows, schema=BLOB_TYPES)
    for read in (lambda each: reader.iter_codes(each, []), reader.iter_owners):
        with pytest.raises(DataError, match="other rows when it is computed again"):
            list(read(iter([batch])))


@pytest.mark.parametrize("seen", [[], [4], [4, 5, 5], [4, 5, 6]])
def test_blobs_that_were_not_seen_once_are_noticed(seen):
    reader = BlobReader(5, {5: bytes(32), 4: bytes(32)}, KEY)
    reader.require_all([5, 4])
    with pytest.raises(DataError, match="other rows when it is computed again"):
        reader.require_all(seen)


def test_a_task_prints_nothing(capfd, monkeypatch):
    """Rust writes the message of a panic to standard error itself; so may any library."""

    class Printing(Raising):
        def run(self, batches):
            os.write(2, CELL.encode())
            yield from super().run(batches)

    for debug, shown in (("", ""), ("1", CELL)):
        monkeypatch.setenv("DENIABLE_DEBUG", debug)
        [batch] = task_of(Printing(KeyError(CELL)))(iter([]))
        assert TaskFault.decode(batch.column(1)[0].as_py()).origin == "bug"
        assert capfd.readouterr().err == shown


def test_kept_rows_are_selected_in_order(small_files, small_schema, small_codes):
    kernel = FileEncoder((PartItem(str(small_files / "table.csv")),), small_schema, KEY)
    [row] = encode(kernel, numbers(0))
    batch = pa.RecordBatch.from_pylist(
        [
            {"blob": 0, "codes": row["codes"], "kept": [9, NO_ROW, 2]},
            {"blob": 0, "codes": row["codes"]},
        ]
    )
    first, second = BlobReader(5, {0: row["digest"]}, KEY).iter_codes(iter([batch]), [])
    assert first.tolist() == small_codes[[2, 9]].tolist()
    assert second.tolist() == []


def test_owners_are_hashes_that_are_equal_across_parts(tmp_path, small_schema, small_table):
    schema = Schema((Identifier(name="who"), *small_schema.columns), unit="who")
    table = small_table[:6].with_columns(pl.col("trade").fill_null("?"))
    for at, who in enumerate((["a", "b", CELL], ["b", CELL, CELL])):
        part = table[3 * at : 3 * at + 3].with_columns(who=pl.Series(who))
        part.write_csv(tmp_path / f"{at}.csv")
    items = tuple(PartItem(str(tmp_path / f"{at}.csv")) for at in range(2))
    first, second = encode(FileEncoder(items, schema, KEY), numbers(0, 1))
    owners = [row["owners"][i : i + 16] for row in (first, second) for i in (0, 16, 32)]
    assert owners[1] == owners[3]
    assert owners[2] == owners[4] == owners[5]
    assert len(set(owners)) == 3
    other = encode(FileEncoder(items, schema, bytes([1] * 32)), numbers(0))
    assert other[0]["owners"] != first["owners"]
    assert item_of(second["blob"]) == 1
    assert CELL.encode() not in b"".join(map(repr_bytes, (first, second)))


def repr_bytes(row):
    return repr(row).encode()


def test_rows_of_a_frame_are_those_of_a_table(small_table, small_schema, small_codes):
    """Spark knows the columns by numbers, whatever their names are."""
    numbered = small_table.rename({name: f"c{at}" for at, name in enumerate(small_table.columns)})
    batches = numbered.to_arrow().to_batches(max_chunksize=300)
    rows = encode(FrameEncoder(small_schema, KEY, tuple(small_table.columns)), iter(batches))
    assert sum(row["rows"] for row in rows) == 2000
    joined = b"".join(row["codes"] for row in rows)
    assert len(joined) == small_codes.nbytes
    assert read_table(small_table, small_schema).codes.tolist() == small_codes.tolist()


def test_no_rows_are_a_blob(small_table, small_schema):
    empty = small_table.head(0).to_arrow()
    batches = iter(pa.RecordBatch.from_pylist([], schema=empty.schema) for _ in range(1))
    [row] = encode(FrameEncoder(small_schema, KEY, tuple(small_table.columns)), batches)
    assert (row["rows"], row["codes"]) == (0, b"")


def test_a_fault_is_a_value_without_the_cell(tmp_path, small_schema, small_table):
    wrong = small_table.with_columns(pl.col("trade").fill_null("?"), pet=pl.lit(CELL))
    wrong.write_csv(tmp_path / "t.csv")
    items = (PartItem(str(tmp_path / "t.csv")),)
    [row] = encode(FileEncoder(items, small_schema, KEY), numbers(0))
    fault = TaskFault.decode(row["fault"])
    assert (fault.origin, fault.item) == ("data", 0)
    assert "More than 100 lines have this fault" in fault.message
    encoder = FrameEncoder(small_schema, KEY, tuple(wrong.columns))
    [row] = encode(encoder, iter(wrong.to_arrow().to_batches()))
    assert "partition 0 of the table" in row["fault"]
    assert CELL not in row["fault"]


class Raising:
    types = pa.schema({"n": pa.int64(), "fault": pa.string()})

    def __init__(self, error):
        self.error = error

    def run(self, batches):
        yield from batches
        raise self.error


@pytest.mark.parametrize("error", [ValueError(CELL), pl.exceptions.PanicException(CELL)])
def test_a_task_does_not_raise(error):
    *_, last = run_guarded(Raising(error), iter([]), "1", "1")
    fault = TaskFault.decode(last.column(1)[0].as_py())
    assert fault.origin == "bug"
    assert type(error).__name__ in fault.message
    assert CELL not in fault.message


def test_another_version_on_the_executors_is_a_fault():
    [batch] = run_guarded(Raising(ValueError()), iter([]), "0.3.0", "0.2.0")
    fault = TaskFault.decode(batch.column(1)[0].as_py())
    assert fault.origin == "version"
    assert "deniable 0.2.0, and this program is 0.3.0" in fault.message
