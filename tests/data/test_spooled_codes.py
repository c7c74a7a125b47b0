"""Spooled codes: equal to codes in memory, in an anonymous file that is freed at the end."""

import errno
import gc
import os
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.arrays import CODE
from deniable.data import spooled_codes
from deniable.data.partition import limit_rows_per_unit, split_records
from deniable.data.spooled_codes import (
    CodeSpool,
    SpooledCodes,
    count_distinct_rows,
    row_batches,
    select_rows,
)
from deniable.data.table_io import read_table
from deniable.errors import DataError, OutputError
from deniable.randomness import Keyed
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from worlds import property_test

pytestmark = pytest.mark.slow

WIDTH = 3


@pytest.fixture(autouse=True)
def few_in_memory(monkeypatch):
    """Hold at most 100 rows of three codes in memory; read batches of seven rows."""
    monkeypatch.setattr(spooled_codes, "MAX_BYTES_IN_MEMORY", 100 * WIDTH * 2)
    monkeypatch.setattr(spooled_codes.row_batches, "__defaults__", (7,))


def some_codes(rows, width=WIDTH, high=5):
    return np.asfortranarray(np.random.default_rng(rows).integers(0, high, (rows, width), CODE))


def spool(codes, at_once=30):
    taker = CodeSpool(codes.shape[1])
    for part in row_batches(codes, at_once):
        taker.add(part)
    return taker.codes()


def open_files():
    gc.collect()
    return {path.name for path in Path("/proc/self/fd").iterdir()}


# What it holds


@pytest.mark.parametrize("rows", [0, 1, 100])
def test_few_codes_stay_in_memory(rows):
    codes = some_codes(rows)
    held = spool(codes)
    assert type(held) is np.ndarray
    assert held.flags.f_contiguous
    assert np.array_equal(held, codes)
    assert held.dtype == CODE
    assert held.shape == (rows, WIDTH)


@pytest.mark.parametrize("rows", [101, 1_000])
@pytest.mark.parametrize("at_once", [1, 30, 2_000])
def test_many_codes_go_to_a_file_and_are_the_same(rows, at_once):
    codes = some_codes(rows)
    held = spool(codes, at_once)
    assert isinstance(held, SpooledCodes)
    assert held.shape == codes.shape
    assert held.dtype == CODE
    assert np.array_equal(np.asarray(held), codes)


@pytest.mark.parametrize("few", [2**16, 3])
def test_indexing_codes_in_a_file_equals_indexing_the_array(monkeypatch, few):
    monkeypatch.setattr(spooled_codes, "_MAX_ROWS_READ_SINGLY", few)
    codes = some_codes(400)
    held = spool(codes)
    rows = np.array([399, 0, 7, 7, 250])
    mask = codes[:, 0] == 1
    for index in [
        slice(None), slice(5, 90), slice(90, 5), slice(-3, None), slice(395, 900), slice(0, 50, 3),
        rows, rows.astype(np.uint16), rows[:0], mask, 17, -1, [1, 2], (rows, 1),
        (rows, np.int64(-1)),
        (rows, slice(0, 2)), (rows, np.array([2, 0, 1, 1, 2])), (slice(None), 2),
        (slice(3, 9), [0, 1]), (4, 1), (mask, 0), ..., (np.array([[1], [2]]), np.array([0, 2])),
    ]:  # fmt: skip
        found, wanted = held[index], codes[index]
        assert not isinstance(found, SpooledCodes)
        assert np.array_equal(found, wanted), index
        assert np.shape(found) == np.shape(wanted), index
    assert np.array_equal(held + 1, codes + 1)
    assert held.max() == codes.max()
    assert np.array_equal(held.T, codes.T)
    assert type(held + 1) is np.ndarray


@pytest.mark.parametrize("row", [400, -1])
def test_a_row_number_out_of_range_is_refused(row):
    with pytest.raises(IndexError, match=r"outside 0\.\.399"):
        spool(some_codes(400))[np.array([3, row])]


def test_codes_in_a_file_cannot_be_changed():
    held = spool(some_codes(400))
    with pytest.raises(ValueError, match="read-only"):
        held[3, 1] = 0


def test_rows_that_are_asked_for_are_not_mapped(monkeypatch):
    """Slices and row numbers are read from the file; mapped pages would count as memory."""
    held = spool(some_codes(400))
    monkeypatch.setattr(np, "asarray", lambda *_: pytest.fail("the mapping was asked"))
    assert len(held[5:50]) == 45
    assert len(held[np.arange(9)]) == 9
    assert len(held[np.arange(9), 1]) == 9


# Where it is, and for how long


def test_the_file_has_no_name_and_only_its_owner_could_read_it(tmp_path, monkeypatch):
    monkeypatch.setattr(spooled_codes, "_temporary_folder", lambda: tmp_path)
    before = open_files()
    held = spool(some_codes(400))
    assert list(tmp_path.iterdir()) == []
    [status] = [os.fstat(file) for file in {held._file}]
    assert status.st_nlink == 0
    assert stat.S_IMODE(status.st_mode) & 0o077 == 0
    assert status.st_size == 400 * WIDTH * 2
    del held
    assert open_files() == before


def test_an_unfinished_spool_closes_its_file():
    before = open_files()
    taker = CodeSpool(WIDTH)
    taker.add(some_codes(400))
    assert len(open_files()) == len(before) + 1
    del taker
    assert open_files() == before


def test_a_view_outlives_the_array():
    codes = some_codes(400)
    column = spool(codes)[:, 1]
    gc.collect()
    assert np.array_equal(column, codes[:, 1])


def test_nothing_is_left_of_a_process_that_is_killed(tmp_path):
    code = """if True:
        import time, numpy as np
        from deniable.data import spooled_codes
        spooled_codes.MAX_BYTES_IN_MEMORY = 10
        spool = spooled_codes.CodeSpool(3)
        spool.add(np.ones((100, 3), dtype=np.uint16))
        print("written", flush=True)
        time.sleep(600)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "written\n"
        files = [path.resolve() for path in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert any(path.is_relative_to(tmp_path) for path in files), "it is there"
        process.kill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [True, False])
def test_the_folder_is_that_of_tmpdir_else_one_on_disk(tmp_path, given):
    code = "from deniable.data.spooled_codes import _temporary_folder; print(_temporary_folder())"
    rest = {name: text for name, text in os.environ.items() if name != "TMPDIR"}
    chosen = {"TMPDIR": str(tmp_path)} if given else {}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=rest | chosen, capture_output=True, text=True, check=True
    )
    assert Path(ran.stdout.strip()) == (tmp_path if given else Path("/var/tmp"))  # noqa: S108


@pytest.mark.parametrize("written", [0, 1])
def test_a_full_disk_is_reported_and_leaves_no_file(tmp_path, monkeypatch, written):
    def write(_file, data):
        nonlocal written
        if written == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written -= 1
        return len(data) // 2 * 2

    monkeypatch.setattr(spooled_codes, "_temporary_folder", lambda: tmp_path)
    monkeypatch.setattr(os, "write", write)
    before = open_files()
    with pytest.raises(OutputError, match=r"No space left on device.*TMPDIR") as error:
        spool(some_codes(400))
    assert error.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []
    del error
    assert open_files() == before


def test_partial_reads_and_writes_are_completed(monkeypatch):
    """The system may write fewer bytes than it was given, and read fewer than requested."""
    write, read = os.write, os.preadv
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:11]))
    monkeypatch.setattr(
        os, "preadv", lambda file, into, at: read(file, [memoryview(into[0])[:13]], at)
    )
    codes = some_codes(400)
    assert np.array_equal(spool(codes)[2:300], codes[2:300])


# Selecting and counting rows


@property_test
@given(st.integers(0, 300), st.integers(0, 2**32), st.sampled_from([3, 400]))
def test_distinct_rows_are_counted(rows, key, high):
    codes = np.random.default_rng(key).integers(0, high, (rows, 4), CODE)
    for large in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spooled_codes.row_batches, "__defaults__", (37,))
            if large:
                patch.setattr(spooled_codes, "MAX_DENSE_COMBINATIONS", 1)
            found, counts = count_distinct_rows(codes, [2, 0], [high, high])
            nothing, everyone = count_distinct_rows(codes, [], [])
        assert nothing.shape == (min(rows, 1), 0)
        assert everyone.tolist() == [rows][:rows]
        wanted = sorted(Counter(map(tuple, codes[:, [2, 0]].tolist())).items())
        assert found.dtype == CODE
        assert found.shape == (len(counts), 2)
        assert list(zip(map(tuple, found.tolist()), counts.tolist(), strict=True)) == wanted


def test_some_rows_of_codes_in_a_file_are_those_of_codes_in_memory():
    codes = some_codes(900)
    for share in (0.05, 0.5):
        wanted = np.random.default_rng(4).random(900) < share
        chosen = select_rows(spool(codes), wanted)
        assert isinstance(chosen, SpooledCodes) == (share > 0.2)
        assert np.array_equal(chosen, codes[wanted])


def test_a_split_of_codes_in_a_file_is_that_of_codes_in_memory(monkeypatch):
    codes = some_codes(2_000)
    shares = {"seeds": 0.45, "structure": 0.35, "parameters": 0.04}
    spooled = split_records(spool(codes), shares, Keyed(3))
    monkeypatch.undo()
    plain = split_records(codes, shares, Keyed(3))
    assert [isinstance(part, SpooledCodes) for part in spooled.values()] == [True, True, False]
    for part, rows in plain.items():
        assert type(rows) is np.ndarray
        assert np.array_equal(spooled[part], rows)


def test_rows_of_units_are_bounded_alike_in_a_file_and_in_memory():
    codes, units = some_codes(2_000), np.arange(2_000) % 90
    spooled = limit_rows_per_unit(spool(codes), units, Keyed(3), max_rows=4)
    plain = limit_rows_per_unit(codes, units, Keyed(3), max_rows=4)
    assert isinstance(spooled, SpooledCodes)
    assert len(plain) == 360
    assert np.array_equal(spooled, plain)


# Reading large tables


@pytest.mark.parametrize("kind", [".csv", ".csv.gz", ".parquet", "frame"])
@pytest.mark.parametrize("unit", [{}, {"unit": "person"}, {"unit": "boats"}])
def test_a_large_table_reads_as_a_small_one(small_schema, small_table, tmp_path, kind, unit):
    schema = Schema((Identifier(name="person"), *small_schema.attributes), **unit)
    table = small_table.with_columns(person=pl.arange(0, pl.len()) // 3)
    path = tmp_path / f"table{kind}"
    if kind == ".parquet":
        table.write_parquet(path, row_group_size=300)
    elif kind != "frame":
        texts = table.with_columns(pl.col("trade").fill_null("?"))
        texts.write_csv(path, compression="gzip" if kind == ".csv.gz" else "uncompressed")
    source = table if kind == "frame" else path
    large = read_table(source, schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spooled_codes, "MAX_BYTES_IN_MEMORY", 2**30)
        small = read_table(source, schema)
    assert type(small.codes) is np.ndarray
    assert isinstance(large.codes, SpooledCodes)
    assert np.array_equal(large.codes, small.codes)
    assert (small.units is None) == (not unit)
    assert np.array_equal(large.units, small.units) if unit else large.units is None


def test_a_fault_in_a_large_table_is_reported_with_its_line(
    small_schema, small_files, tmp_path, monkeypatch
):
    lines = (small_files / "table.csv").read_text().splitlines()
    for row in (1_500, 1_900):
        lines[row] = lines[row].replace(lines[row].split(",")[0], "999", 1)
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    messages = []
    for most in (2**30, 4_000):
        monkeypatch.setattr(spooled_codes, "MAX_BYTES_IN_MEMORY", most)
        with pytest.raises(DataError, match='column "years", line 1,501') as error:
            read_table(path, small_schema)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "2 lines have this fault" in messages[0]
