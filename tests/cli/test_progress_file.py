"""Progress for other programs: a file of JSON lines, from the process ID to the exit code."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.cli.output import show_progress
from deniable.cli.progress_file import append_line, file_progress


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("DENIABLE_PROGRESS", str(tmp_path / "progress"))
    return tmp_path / "progress"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_the_variable_nothing_is_written(monkeypatch):
    monkeypatch.delenv("DENIABLE_PROGRESS", raising=False)
    assert file_progress() is None
    append_line(exit=0)


def test_reports_go_to_the_file_also_if_nothing_is_printed(file, capsys):
    with show_progress(quiet=True) as progress:
        progress("read", 0, 3)
        progress("read", 3, 3)
    assert lines(file) == [
        {"stage": "read", "done": 0, "of": 3},
        {"stage": "read", "done": 3, "of": 3},
    ]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mode_before", [None, 0o644, 0o666])
def test_only_the_owner_can_read_the_file_also_if_it_was_there(file, mode_before):
    if mode_before is not None:
        file.touch()
        file.chmod(mode_before)
    append_line(pid=1)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert lines(file) == [{"pid": 1}]


def test_a_device_keeps_its_mode(monkeypatch):
    monkeypatch.setenv("DENIABLE_PROGRESS", os.devnull)
    before = Path(os.devnull).stat().st_mode
    append_line(pid=1)
    assert Path(os.devnull).stat().st_mode == before


def test_a_link_is_not_followed(file):
    """What it leads to may be read by others, and must stay as it is."""
    precious = file.with_name("precious")
    precious.write_text("x")
    precious.chmod(0o644)
    file.symlink_to(precious)
    append_line(pid=1)
    assert precious.read_text() == "x"
    assert stat.S_IMODE(precious.stat().st_mode) == 0o644
    file.unlink()
    file.symlink_to(file.with_name("absent"))
    append_line(pid=1)
    assert not file.with_name("absent").exists()


def test_the_mode_is_that_of_the_opened_file_whatever_has_its_name_now(file, monkeypatch):
    moved, fstat = file.with_name("moved"), os.fstat

    def swap(opened):
        if file.exists():
            file.rename(moved)
            file.with_name("other").touch(mode=0o644)
            file.symlink_to("other")
        return fstat(opened)

    file.touch(mode=0o644)
    monkeypatch.setattr(os, "fstat", swap)
    append_line(pid=1)
    assert stat.S_IMODE(moved.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert lines(moved) == [{"pid": 1}]


def test_the_file_of_another_user_is_not_written_and_stays_open_in_no_process(file, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    file.touch(mode=0o666)
    for owner in (os, Path):
        monkeypatch.setattr(owner, "fchmod" if owner is os else "chmod", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        append_line(pid=1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert file.read_text() == ""


@pytest.mark.parametrize("has_reader", [False, True])
def test_a_pipe_is_written_if_somebody_reads_it_and_waited_for_by_nobody(file, has_reader):
    os.mkfifo(file)
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK) if has_reader else None
    program = "from deniable.cli.progress_file import append_line; append_line(pid=1)"
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
    if reader is not None:
        assert json.loads(os.read(reader, 1000)) == {"pid": 1}
        os.close(reader)


def test_many_reports_of_a_stage_are_thinned_out(file):
    report = file_progress()
    assert report is not None
    for done in range(1001):
        report("generate", done, 1000)
    written = lines(file)
    assert written[0]["done"] == 0
    assert written[-1]["done"] == 1000
    assert len(written) < 500


def test_a_file_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("DENIABLE_PROGRESS", str(tmp_path))
    report = file_progress()
    assert report is not None
    report("stage", 0, 1)


@pytest.mark.slow
def test_a_run_reports_its_process_its_stages_and_its_end(file, small_files):
    command = [sys.executable, "-m", "deniable", "synthesize", str(small_files / "table.csv")]
    command += ["--schema", str(small_files / "schema.toml"), "--records", "50", "--quiet"]
    process = subprocess.Popen([*command, "--out", str(file.with_name("out"))], env=os.environ)
    assert process.wait() == 0
    first, *stages, last = lines(file)
    assert first == {"pid": process.pid}
    assert last == {"exit": 0}
    names = list(dict.fromkeys(each["stage"] for each in stages))
    assert names[:2] == ["read the table", "learn the model"]
    assert {
        "count single columns",
        "count pairs of columns",
        "count shared combinations",
    } <= set(names)
    ends = {each["stage"]: (each["done"], each["of"]) for each in stages}
    assert all(done == of for done, of in ends.values())


@pytest.mark.slow
def test_a_failed_command_reports_its_code(file):
    command = [sys.executable, "-m", "deniable", "verify", "absent"]
    code = subprocess.run(command, capture_output=True, check=False).returncode
    assert lines(file)[-1] == {"exit": code} == {"exit": 2}
