"""Processes of runs: steps in order, cancelled and killed ones, found again by another server."""

import errno
import os
import signal
import sys
import time

import pytest

from deniable.studio import run_process, run_store
from deniable.studio.run_process import PROGRAM, RunControl, hash_table
from deniable.studio.run_screen import run_state
from deniable.studio.run_store import RunStore, Step

pytestmark = pytest.mark.slow

# A program in place of deniable: it reports as deniable does, and does what its arguments say.
SCRIPT = """
import json, os, pathlib, signal, sys, time
def say(**line):
    with open(os.environ["DENIABLE_PROGRESS"], "a") as file:
        file.write(json.dumps(line) + "\\n")
say(pid=os.getpid())
what, code = sys.argv[1], 0
partial = pathlib.Path(f".partial.{os.getpid()}.out")
if what == "wait":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    partial.mkdir()
    say(stage="wait", done=0, of=2)
    try:
        for _ in range(1200):  # a signal just before one long sleep would be noticed after it
            time.sleep(0.05)
    except KeyboardInterrupt:
        partial.rmdir()
        code = 130
elif what == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    partial.mkdir()
    say(stage="wait", done=0, of=2)
    time.sleep(60)
elif what == "fail":
    print("DataError: no", file=sys.stderr)
    code = 2
else:
    print(json.dumps({"arguments": sys.argv[1:], "folder": os.getcwd()}))
say(exit=code)
sys.exit(code)
"""


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


@pytest.fixture
def controls():
    """Those that a test has made; their processes are waited for at its end."""
    made: list[RunControl] = []
    yield made
    for control in made:
        for process in control.processes:
            process.wait(30)


@pytest.fixture
def control(tmp_path, store, controls):
    return make_control(tmp_path, store, controls)


def make_control(root, store, controls):
    controls.append(RunControl(root, store, (sys.executable, "-S", "-c", SCRIPT)))
    return controls[-1]


def begin(store, control, *commands):
    steps = tuple(Step(name=each, arguments=(each,)) for each in commands)
    run = store.create(kind="release", table="t.csv", schema="s", out="out", steps=steps)
    control.begin(run)
    return run


def wait(check):
    """Wait until something is so; it takes far less than the limit."""
    for _ in range(1200):
        if check():
            return
        time.sleep(0.025)
    raise AssertionError("it does not happen")


def states(store, run):
    return [each.state for each in store.status(run)]


def follow(store, control, run):
    def has_ended():
        control.advance(run)
        return run_state(store.status(run)) != "running"

    wait(has_ended)
    control.advance(run)  # it may have ended since the last look: its remains are removed now
    return states(store, run)


def test_steps_run_one_after_the_other_in_the_root(store, control, tmp_path):
    run = begin(store, control, "synthesize", "verify")
    assert follow(store, control, run) == ["done", "done"]
    result = store.status(run)[1].result
    assert result == {"arguments": ["verify", "--json"], "folder": str(tmp_path)}


def test_a_failed_step_ends_the_run_and_its_message_is_kept(store, control):
    run = begin(store, control, "fail", "verify")
    wait(lambda: states(store, run)[0] == "failed")
    control.advance(run)
    status = store.status(run)
    assert [each.state for each in status] == ["failed", "waiting"]
    assert status[0].errors == "DataError: no\n"
    assert status[0].code == 2


def test_a_cancelled_run_leaves_nothing(store, control, tmp_path):
    run = begin(store, control, "wait", "verify")
    wait(lambda: store.status(run)[0].stages)
    control.cancel(run)
    assert follow(store, control, run) == ["cancelled", "cancelled"]
    assert [path.name for path in tmp_path.iterdir()] == [".deniable-studio"]


def test_a_process_that_does_not_listen_is_ended_by_a_second_cancel(store, control, tmp_path):
    run = begin(store, control, "stubborn")
    wait(lambda: store.status(run)[0].stages)
    control.cancel(run)
    time.sleep(0.1)
    assert states(store, run) == ["running"]
    control.cancel(run)
    assert follow(store, control, run) == ["cancelled"]
    assert [path.name for path in tmp_path.iterdir()] == [".deniable-studio"]


def test_a_killed_run_is_recognized_and_its_remains_are_removed(store, control, tmp_path):
    run = begin(store, control, "wait", "verify")
    wait(lambda: store.status(run)[0].stages)
    assert any(path.name.startswith(".partial.") for path in tmp_path.iterdir())
    os.kill(store.status(run)[0].pid, signal.SIGKILL)
    wait(lambda: states(store, run)[0] == "killed")
    control.advance(run)
    assert [path.name for path in tmp_path.iterdir()] == [".deniable-studio"]
    assert states(store, run) == ["killed", "waiting"]


def test_a_run_is_cancelled_before_its_process_can_listen(store, control):
    run = begin(store, control, "synthesize")
    control.cancel(run)
    assert follow(store, control, run)[0] in ("cancelled", "done")


def test_another_server_finds_the_run_and_goes_on(store, control, controls, tmp_path):
    """The first server is gone: nothing of it is used by the second one."""
    run = begin(store, control, "wait", "verify")
    wait(lambda: store.status(run)[0].stages)
    other = make_control(tmp_path, RunStore(tmp_path), controls)
    other.start()
    assert states(store, run)[0] == "running"
    other.cancel(run)
    wait(lambda: states(store, run)[0] == "cancelled")
    later = begin(store, other, "synthesize", "verify")
    wait(lambda: states(store, later) == ["done", "done"])
    other.stop()


def test_a_number_given_to_another_process_is_never_signalled(store, control):
    """The lock is free, so the number in the file is no process of ours: here it is this one."""
    run = begin(store, control, "synthesize")
    follow(store, control, run)
    (store.folder(run.id) / "0.pid").write_text(f"{os.getpid()}\n")
    control.cancel(run)  # would end this test


def test_two_servers_do_not_start_a_step_twice(store, control, tmp_path):
    run = begin(store, control, "synthesize")
    other = RunControl(tmp_path, store, ("/absent/program",))
    other.advance(run)
    assert follow(store, control, run) == ["done"]


def test_a_program_that_cannot_be_started_is_a_failed_step(store, tmp_path):
    control = RunControl(tmp_path, store, ("/absent/program",))
    run = begin(store, control, "synthesize")
    status = store.status(run)[0]
    assert status.state == "failed"
    assert "could not be started" in status.errors


def fail_times(monkeypatch, owner, name, times, number=errno.EMFILE):
    """Let a function fail with a system error, some times."""
    real, left = getattr(owner, name), [times]

    def failing(*given, **named):
        if left[0] > 0:
            left[0] -= 1
            raise OSError(number, os.strerror(number))
        return real(*given, **named)

    monkeypatch.setattr(owner, name, failing)
    return left


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_a_system_error_that_passes_does_not_lose_the_run(store, control, monkeypatch, number):
    run = begin(store, control, "synthesize", "verify")
    left = fail_times(monkeypatch, control, "_start_step", 2, number)
    control.start()
    wait(lambda: states(store, run) == ["done", "done"])
    control.stop()
    assert left == [0]


def test_a_step_whose_failure_cannot_be_written_is_tried_again(store, control, monkeypatch):
    fail_times(monkeypatch, control, "_spawn", 1, errno.ENOSPC)
    fail_times(monkeypatch, run_process.Path, "write_text", 1, errno.ENOSPC)
    run = begin(store, control, "synthesize")
    assert states(store, run) == ["waiting"]
    assert control.obstacle(run) == os.strerror(errno.ENOSPC)
    assert follow(store, control, run) == ["done"]
    assert control.obstacle(run) == ""


def test_what_stops_the_watch_is_told_until_it_passes(store, control, monkeypatch):
    run = begin(store, control, "wait")
    wait(lambda: store.status(run)[0].stages)
    with monkeypatch.context() as patched:
        fail_times(patched, control, "advance", 10**6)
        control.start()
        wait(lambda: control.obstacle(run) == os.strerror(errno.EMFILE))
    wait(lambda: control.obstacle(run) == "")
    control.cancel(run)
    wait(lambda: states(store, run) == ["cancelled"])
    control.stop()


def test_a_process_whose_number_cannot_be_written_is_not_started_twice(store, control, monkeypatch):
    fail_times(monkeypatch, run_process.Path, "write_text", 1, errno.ENOSPC)
    run = begin(store, control, "synthesize")
    assert len(control.processes) == 1
    assert follow(store, control, run) == ["done"]
    assert len(control.processes) == 1


def test_a_live_process_is_not_taken_for_a_killed_one(store, control, monkeypatch, tmp_path):
    """Its lock cannot be opened: nothing of it may be removed."""
    run = begin(store, control, "wait")
    wait(lambda: store.status(run)[0].stages)
    with monkeypatch.context() as patched:
        fail_times(patched, run_store.os, "open", 1)
        with pytest.raises(OSError, match="open files"):
            control.advance(run)
    assert any(path.name.startswith(".partial.") for path in tmp_path.iterdir())
    control.cancel(run)
    assert follow(store, control, run) == ["cancelled"]


def test_a_run_whose_folder_vanished_is_no_longer_watched(store, control):
    run = begin(store, control, "wait")
    wait(lambda: store.status(run)[0].stages)
    control.cancel(run)
    follow(store, control, run)
    control.cancel(run)  # watched again
    store.forget(run.id)
    control.start()
    wait(lambda: run.id not in control._watched)
    control.stop()


def test_what_was_made_and_what_is_checked_are_recorded(store, control, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text("{}")
    steps = (
        Step(name="make", arguments=("synthesize",)),
        Step(name="check", arguments=("verify", "out")),
    )
    run = store.create(kind="release", table="t.csv", schema="s", out="out", steps=steps)
    control.begin(run)
    assert follow(store, control, store.load(run.id)) == ["done", "done"]
    assert store.load(run.id).made["manifest_hash"].startswith("44136fa355b3678a")
    assert store.status(run)[1].files["manifest"].startswith("44136fa355b3678a")
    assert list(store.status(run)[1].files["files"]) == ["manifest.json"]


def test_modules_in_the_folder_of_the_table_are_not_imported():
    assert "-P" in PROGRAM


def test_the_hash_of_a_table(tmp_path):
    (tmp_path / "t").write_bytes(b"abc")
    assert hash_table(tmp_path / "t").startswith("ba7816bf8f01cfea414140de5dae2223")
