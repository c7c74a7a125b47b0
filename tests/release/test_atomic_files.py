"""Atomic writes: all or nothing; equal bytes for equal content."""

import errno
import fcntl
import hashlib
import json
import math
import os
import subprocess
import sys
import threading
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from deniable.errors import ArtefactError, BudgetError, OutputError
from deniable.files import tracked_outputs
from deniable.release import atomic_files
from deniable.release.atomic_files import (
    Target,
    encode_json,
    file_hash,
    hash_files,
    make_file,
    make_folder,
    new_file,
    pack_npz,
    remove_litter,
    require_free,
    staged,
    staged_file,
    staged_folder,
    write_files,
    write_json,
    write_text,
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


def modes_of(folder):
    """The mode of everything below a folder, by its relative path."""
    return {name: (folder / name).stat().st_mode & 0o777 for name in everything_below(folder)}


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o377], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_confidential_output_is_its_owner_s_alone_from_the_start(tmp_path, umask):
    """Also for a umask that would take rights from the owner."""
    with staged_folder(tmp_path / "release", confidential=True) as stage:
        assert stage.stat().st_mode & 0o777 == 0o700
        make_folder(stage / "inner")
        for folder in (stage, stage / "inner"):
            write_files(folder, {"file": b"x"})
            write_json(folder / "json", {})
            make_file(folder / "table")
        assert set(modes_of(stage).values()) == {0o700, 0o600}
    with staged_file(tmp_path / "draft", confidential=True) as stage:
        assert stage.stat().st_mode & 0o777 == 0o600
        stage.write_text("x")
    write_text(tmp_path / "text", "x", confidential=True)
    names = ["", "/inner", "/file", "/json", "/table", "/inner/file", "/inner/json", "/inner/table"]
    assert modes_of(tmp_path) == {
        **{f"release{name}": 0o700 if name in ("", "/inner") else 0o600 for name in names},
        **dict.fromkeys(("draft", "text"), 0o600),
    }
    assert umask == os.umask(umask)


def test_other_output_has_the_modes_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        with staged_folder(tmp_path / "release") as stage:
            make_folder(stage / "inner")
            write_files(stage / "inner", {"file": b"x"})
        write_text(tmp_path / "text", "x")
    finally:
        os.umask(before)
    folders, files = ["release", "release/inner"], ["release/inner/file", "text"]
    assert modes_of(tmp_path) == dict.fromkeys(folders, 0o750) | dict.fromkeys(files, 0o640)


def test_everything_is_flushed_before_it_is_renamed_and_the_folder_after(tmp_path, monkeypatch):
    events = []
    fsync, rename = os.fsync, Path.rename

    def flush(file):
        events.append(Path(f"/proc/self/fd/{file}").readlink().name)
        fsync(file)

    def move(path, target):
        events.append(f"rename {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Path, "rename", move)
    with staged_folder(tmp_path / "release") as stage:
        make_folder(stage / "inner")
        write_files(stage / "inner", {"a": b"x"})
        write_files(stage, {"b": b"x"})
    temporary = f".partial.{os.getpid()}.release"
    assert events == ["b", "a", "inner", temporary, "rename release", tmp_path.name]


def test_what_cannot_be_flushed_is_not_put_in_place(tmp_path, monkeypatch):
    def fail(_file):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="Input/output error"):
        write_text(tmp_path / "text", "x")
    assert everything_below(tmp_path) == []


def test_a_file_system_that_cannot_flush_is_no_error(tmp_path, monkeypatch):
    def fail(_file):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fail)
    write_text(tmp_path / "text", "x")
    assert everything_below(tmp_path) == ["text"]


# Several targets


def two_targets(folder):
    return Target(path=folder / "one", is_folder=True), Target(path=folder / "two")


def test_several_targets_are_put_in_place_together(tmp_path):
    with tracked_outputs() as tracker, staged(*two_targets(tmp_path)) as (folder, file):
        (folder / "inner").write_text("x")
        file.write_text("y")
        assert tracker.paths == []
    assert everything_below(tmp_path) == ["one", "one/inner", "two"]
    assert tracker.paths == [tmp_path / "one", tmp_path / "two"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_if_the_second_cannot_be_put_in_place_the_first_is_withdrawn(tmp_path, monkeypatch, fault):
    """Also if Ctrl-C is pressed between the two."""
    rename = Path.rename

    def move(path, target):
        if target.name == "two":
            raise fault
        return rename(path, target)

    def write():
        with staged(*two_targets(tmp_path)) as (folder, _):
            (folder / "inner").write_text("x")

    monkeypatch.setattr(Path, "rename", move)
    with tracked_outputs() as tracker:
        with pytest.raises(OutputError if isinstance(fault, OSError) else type(fault)):
            write()
        assert tracker.paths == []
    assert everything_below(tmp_path) == []


def test_a_file_that_appeared_meanwhile_is_not_overwritten(tmp_path):
    def write():
        with staged_file(tmp_path / "records.csv") as stage:
            stage.write_text("mine")
            (tmp_path / "records.csv").write_text("theirs")

    with pytest.raises(OutputError, match="exists"):
        write()
    assert (tmp_path / "records.csv").read_text() == "theirs"
    assert everything_below(tmp_path) == ["records.csv"]


# Remains of a killed run


@pytest.mark.parametrize("stage", [staged_folder, staged_file])
def test_the_remains_of_a_killed_run_are_named(tmp_path, stage):
    """Nothing is overwritten or removed: they may be all that somebody has, or still be written."""
    (tmp_path / ".partial.77.release").mkdir()
    (tmp_path / ".partial.78.release").write_text("half")

    def write():
        with stage(tmp_path / "release"):
            raise AssertionError("not reached")

    with pytest.raises(OutputError) as refused:
        write()
    for words in ("unfinished run", ".partial.77.release", ".partial.78.release", "rm -r"):
        assert words in str(refused.value)
    assert everything_below(tmp_path) == [".partial.77.release", ".partial.78.release"]


def test_the_remains_of_a_run_into_another_place_do_not_matter(tmp_path):
    for name in (
        ".partial.77.other.csv",
        ".partial.77.out.csv.manifest.json",
        ".partial.x.out.csv",
    ):
        (tmp_path / name).write_text("half")
    require_free(tmp_path / "out.csv")


def test_the_current_folder_is_a_target_by_its_own_name(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with staged_folder(Path()) as stage:
        assert stage.parent == tmp_path
        assert stage.name.endswith(".here")


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


def test_a_staged_file_is_there_and_empty_so_that_its_mode_is_right_from_the_start(tmp_path):
    with staged_file(tmp_path / "records.csv") as stage:
        assert stage.read_bytes() == b""


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


def test_a_pipe_is_not_hashed(tmp_path):
    """Opening it would wait for a writer."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArtefactError, match="a pipe"):
        file_hash(tmp_path / "pipe")


def test_small_files_are_written_as_they_are(tmp_path):
    write_files(tmp_path, {"a": b"\x00\xff", "b": b""})
    assert (tmp_path / "a").read_bytes() == b"\x00\xff"
    write_json(tmp_path / "c", {"a": 1})
    assert json.loads((tmp_path / "c").read_text()) == {"a": 1}


def test_a_new_file_is_made_for_what_its_block_writes(tmp_path):
    with new_file(tmp_path / "table"):
        assert (tmp_path / "table").read_bytes() == b""
        (tmp_path / "table").write_text("x")
    assert (tmp_path / "table").read_text() == "x"


def test_only_what_the_system_refuses_is_an_output_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"), new_file(tmp_path / "file" / "t"):
        pass
    with pytest.raises(OutputError, match="No space left"), new_file(tmp_path / "t"):
        raise OSError(errno.ENOSPC, "full")
    with pytest.raises(BudgetError, match="too few passed"), new_file(tmp_path / "t"):
        raise BudgetError("too few passed")


def test_what_this_process_writes_is_no_litter(tmp_path):
    """Of both targets of a release: its folder, and the internal one next to it."""
    target = tmp_path / "release"
    litter = [tmp_path / f".partial.1.release{end}" for end in ("", ".internal")]
    for folder in litter:
        (folder / "inner").mkdir(parents=True)
    others = [tmp_path / name for name in (".partial.1.release2", ".partial.x.release", "release3")]
    for other in others:
        other.touch()
    with pytest.raises(OutputError, match="--clean"):
        require_free(target)
    remove_litter(target)
    with staged_folder(target) as stage:
        remove_litter(target)
        assert stage.is_dir()
        with pytest.raises(OutputError, match="has not ended"):
            require_free(target)
    assert sorted(tmp_path.iterdir()) == sorted([*others, target])
    require_free(tmp_path / "release4")


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "_LOCKS", None)
    left = tmp_path / ".partial.1.release"
    left.mkdir()
    remove_litter(tmp_path / "release")
    assert left.is_dir()
    with pytest.raises(OutputError, match=r"has no locks.*rm -r"):
        require_free(tmp_path / "release")
    with staged_folder(tmp_path / "other"):
        pass
    assert (tmp_path / "other").is_dir()


def test_a_link_under_a_temporary_name_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (tmp_path / ".partial.1.release").symlink_to(precious)
    remove_litter(tmp_path / "release")
    assert (precious / "file").exists()


STAGES = pytest.mark.parametrize("stage", [staged_folder, staged_file])


@STAGES
@pytest.mark.parametrize("fault", [errno.EBADF, errno.EACCES, errno.EIO, errno.ENOLCK])
def test_a_file_system_that_refuses_locks_fails_no_run(tmp_path, monkeypatch, stage, fault):
    """Over NFS the fault is "Bad file descriptor". What may be held is removed by nobody."""

    def refuse(_file, _operation):
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with stage(tmp_path / "release") as temporary:
        remove_litter(tmp_path / "release")
        assert temporary.exists()
        with pytest.raises(OutputError, match="has not ended"):
            require_free(tmp_path / "release")
    assert everything_below(tmp_path) == ["release"]


@STAGES
def test_locks_hold_where_they_need_a_file_that_can_be_written(tmp_path, monkeypatch, stage):
    """Over NFS. Folders, which nobody can open for writing, are locked by the kernel itself."""
    lock = fcntl.flock

    def over_nfs(file, operation):
        is_folder = Path(f"/proc/self/fd/{file}").is_dir()
        if not is_folder and fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", over_nfs)
    with stage(tmp_path / "release") as temporary:
        remove_litter(tmp_path / "release")
        assert temporary.exists()
    killed = tmp_path / ".partial.1.other"
    killed.touch()
    remove_litter(tmp_path / "other")
    assert everything_below(tmp_path) == ["release"]


def test_a_lock_that_would_keep_the_run_from_its_own_file_is_given_up(tmp_path, monkeypatch):
    """Over CIFS, a locked file can be read and written through the descriptor of the lock alone."""
    lock, read, close = fcntl.flock, os.read, os.close
    locked = set()

    def over_cifs(file, operation):
        lock(file, operation)
        locked.add(file)

    def read_unlocked(file, size):
        if locked - {file}:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return read(file, size)

    def unlock(file):
        close(file)
        locked.discard(file)

    monkeypatch.setattr(fcntl, "flock", over_cifs)
    monkeypatch.setattr(os, "read", read_unlocked)
    monkeypatch.setattr(os, "close", unlock)
    with staged_file(tmp_path / "records.csv") as temporary:
        assert not locked
        remove_litter(tmp_path / "records.csv")
        assert temporary.exists()
    assert everything_below(tmp_path) == ["records.csv"]


def after_creation(monkeypatch, act):
    """Let another process act between the creation of a temporary file or folder and its lock."""
    create = Target.create

    def create_and_act(target):
        create(target)
        act(target)

    monkeypatch.setattr(Target, "create", create_and_act)


@STAGES
def test_what_another_process_removed_before_it_was_locked_is_created_again(
    tmp_path, monkeypatch, stage
):
    removals = [True, True]

    def clean(target):
        if removals and removals.pop():
            remove_litter(target.path)
            assert not target.stage.exists()

    after_creation(monkeypatch, clean)
    with stage(tmp_path / "release") as temporary:
        assert not removals
        remove_litter(tmp_path / "release")
        assert temporary.exists()
    assert everything_below(tmp_path) == ["release"]


def test_what_is_removed_again_and_again_is_an_error(tmp_path, monkeypatch):
    after_creation(monkeypatch, lambda target: remove_litter(target.path))

    def write():
        with staged_folder(tmp_path / "release"):
            raise AssertionError("not reached")

    with pytest.raises(OutputError, match="release cannot be written"):
        write()
    assert everything_below(tmp_path) == []


@STAGES
@pytest.mark.parametrize("operation", [fcntl.LOCK_SH, fcntl.LOCK_EX])
def test_a_process_that_only_looks_does_not_disturb(tmp_path, monkeypatch, stage, operation):
    """Neither one that starts to write nor another one that looks."""

    def look(path):
        file = os.open(path, os.O_RDONLY)
        fcntl.flock(file, operation)
        threading.Timer(0.1, os.close, [file]).start()

    left = tmp_path / ".partial.1.other"
    left.mkdir()
    look(left)
    with pytest.raises(OutputError, match="it was killed"):
        require_free(tmp_path / "other")
    left.rmdir()
    after_creation(monkeypatch, lambda target: look(target.stage))
    with stage(tmp_path / "release") as temporary:
        remove_litter(tmp_path / "release")
        assert temporary.exists()
    assert everything_below(tmp_path) == ["release"]


def test_a_pipe_under_a_temporary_name_stops_nobody(tmp_path):
    """Opening it would wait for a writer. A killed run leaves none: it is named, and it stays."""
    os.mkfifo(tmp_path / ".partial.1.release")
    program = (
        "import pathlib, sys; from deniable.release.atomic_files import remove_litter, require_free"
        "; out = pathlib.Path(sys.argv[1]); remove_litter(out); require_free(out)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "release")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "OutputError: another run" in ended.stderr
    assert everything_below(tmp_path) == [".partial.1.release"]
