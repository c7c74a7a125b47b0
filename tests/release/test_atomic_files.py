"""Atomic writes: all or nothing; equal bytes for equal content."""

import errno
import hashlib
import json
import math
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from deniable.errors import BudgetError, OutputError
from deniable.release.atomic_files import (
    encode_json,
    file_hash,
    hash_files,
    pack_npz,
    require_free,
    staged_file,
    staged_folder,
    write_files,
    write_json,
)

FAULTS = [BudgetError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), SystemExit(3)]


def everything_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# A folder


def test_a_staged_folder_becomes_the_target(tmp_path):
    with staged_folder(tmp_path / "release") as stage:
        (stage / "a").mkdir()
        (stage / "a" / "file").write_text("x")
        assert not (tmp_path / "release").exists()
    assert everything_below(tmp_path) == ["release", "release/a", "release/a/file"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_failed_folder_leaves_nothing(tmp_path, fault):
    def fail():
        with staged_folder(tmp_path / "release") as stage:
            (stage / "half").write_text("x")
            raise fault

    with pytest.raises(type(fault)):
        fail()
    assert everything_below(tmp_path) == []


def test_an_empty_folder_may_be_the_target_and_stays_after_a_fault(tmp_path):
    target = tmp_path / "release"
    target.mkdir()

    def fail():
        with staged_folder(target) as stage:
            (stage / "half").write_text("x")
            raise BudgetError("no")

    with pytest.raises(BudgetError):
        fail()
    assert everything_below(tmp_path) == ["release"]
    with staged_folder(target) as stage:
        (stage / "file").write_text("x")
    assert everything_below(tmp_path) == ["release", "release/file"]


def test_parent_folders_are_created(tmp_path):
    with staged_folder(tmp_path / "a" / "b" / "release"):
        pass
    assert everything_below(tmp_path) == ["a", "a/b", "a/b/release"]


def test_a_private_folder_is_its_owner_s_alone(tmp_path):
    with staged_folder(tmp_path / "release", mode=0o700) as stage:
        assert stage.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "release").stat().st_mode & 0o777 == 0o700


def test_of_two_concurrent_writers_the_second_fails(tmp_path):
    """Two runs start with the same target: the first to finish gets it."""

    def both():
        with staged_folder(tmp_path / "release") as stage:
            (stage / "mine").write_text("x")
            other = tmp_path / "release"
            other.mkdir()
            (other / "theirs").write_text("y")

    with pytest.raises(OutputError, match="release cannot be written"):
        both()
    assert everything_below(tmp_path) == ["release", "release/theirs"]


# A file


def test_a_staged_file_becomes_the_target_and_keeps_its_suffixes(tmp_path):
    with staged_file(tmp_path / "records.csv.gz") as stage:
        assert stage.name.endswith("records.csv.gz")
        stage.write_text("x")
        assert not (tmp_path / "records.csv.gz").exists()
    assert everything_below(tmp_path) == ["records.csv.gz"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_failed_file_leaves_nothing(tmp_path, fault):
    def fail():
        with staged_file(tmp_path / "records.csv") as stage:
            stage.write_text("half")
            raise fault

    with pytest.raises(type(fault)):
        fail()
    assert everything_below(tmp_path) == []


def test_a_file_that_was_never_written_is_an_error_and_leaves_nothing(tmp_path):
    def write_nothing():
        with staged_file(tmp_path / "records.csv"):
            pass

    with pytest.raises(OutputError, match=r"records\.csv cannot be written"):
        write_nothing()
    assert everything_below(tmp_path) == []


# Targets that cannot be written


@pytest.mark.parametrize("stage", [staged_folder, staged_file])
def test_below_a_file_nothing_can_be_written(tmp_path, stage):
    (tmp_path / "file").write_text("x")

    def write():
        with stage(tmp_path / "file" / "release"):
            raise AssertionError("not reached")

    with pytest.raises(OutputError, match="cannot be written"):
        write()
    assert everything_below(tmp_path) == ["file"]


@pytest.mark.parametrize("stage", [staged_folder, staged_file])
def test_existing_files_are_not_overwritten(tmp_path, stage):
    target = tmp_path / "release"
    target.mkdir()
    (target / "old").write_text("x")

    def write():
        with stage(target):
            raise AssertionError("not reached")

    with pytest.raises(OutputError, match="exists and is not empty; remove it, or choose another"):
        write()
    assert everything_below(tmp_path) == ["release", "release/old"]


def test_a_target_is_free_or_not(tmp_path):
    require_free(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    require_free(tmp_path / "empty")
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "dangling"):
        with pytest.raises(OutputError, match=name):
            require_free(tmp_path / name)


def test_a_full_disk_is_an_output_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match=r"No space left on device.*free some space"):
        write_json(tmp_path / "manifest.json", {})
    with pytest.raises(OutputError, match="No space left on device"):
        write_files(tmp_path, {"schema.toml": b""})


def test_a_full_device_is_an_output_error():
    """Every write to /dev/full fails with ENOSPC."""
    with pytest.raises(OutputError, match="No space left on device"):
        write_json(Path("/dev/full"), {"a": 1})


# Bytes


def test_json_is_strict_and_keeps_greek_letters():
    assert encode_json({"ε": 1, "a": [1.5, "inf"]}) == (
        '{\n  "ε": 1,\n  "a": [\n    1.5,\n    "inf"\n  ]\n}\n'.encode()
    )
    for number in (math.inf, math.nan):
        with pytest.raises(ValueError, match="not JSON compliant"):
            encode_json({"epsilon": number})


def test_equal_arrays_have_equal_bytes(monkeypatch):
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.asfortranarray(np.eye(3))}
    one = pack_npz(arrays)
    monkeypatch.setattr("time.time", lambda: 4e9)  # a zip may hold the time of day
    assert pack_npz({"a": arrays["a"].copy(order="F"), "b": arrays["b"].copy(order="C")}) == one
    with np.load(BytesIO(one), allow_pickle=False) as back:
        assert {name: back[name].tolist() for name in back} == {
            name: array.tolist() for name, array in arrays.items()
        }


def test_object_arrays_are_not_packed():
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        pack_npz({"a": np.array([{}], dtype=object)})


def test_packed_arrays_are_a_zip_of_npy_files():
    archive = zipfile.ZipFile(BytesIO(pack_npz({"a": np.zeros(2)})))
    assert archive.namelist() == ["a.npy"]
    assert archive.testzip() is None


def test_hashes_are_sha_256(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"ccc")
    (tmp_path / "a").write_bytes(b"aaa")
    expected = {"a": hashlib.sha256(b"aaa").hexdigest(), "b/c": hashlib.sha256(b"ccc").hexdigest()}
    assert hash_files(tmp_path) == expected
    assert list(hash_files(tmp_path)) == ["a", "b/c"]
    assert file_hash(tmp_path / "a") == expected["a"]


def test_small_files_are_written_as_they_are(tmp_path):
    write_files(tmp_path, {"a": b"\x00\xff", "b": b""})
    assert (tmp_path / "a").read_bytes() == b"\x00\xff"
    write_json(tmp_path / "c", {"a": 1})
    assert json.loads((tmp_path / "c").read_text()) == {"a": 1}
