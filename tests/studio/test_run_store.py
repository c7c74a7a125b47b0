"""Runs on disk: private, whole, and found again."""

import fcntl
import json
import os
import stat

import pytest

from deniable.errors import ConfigError
from deniable.studio.run_store import RunStore, Step, is_locked

STEPS = (Step(name="one", arguments=("synthesize",)), Step(name="two", arguments=("verify",)))


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def make(store):
    return store.create(kind="release", table="t.csv", schema="s.toml", out="o", steps=STEPS)


def write(store, run, at, *lines, held=False):
    folder = store.folder(run.id)
    lock = os.open(folder / f"{at}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    (folder / f"{at}.progress").write_text("".join(f"{line}\n" for line in lines))
    if held:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock
    os.close(lock)
    return None


def test_a_run_is_read_back_equal_and_the_newest_is_first(store):
    first = make(store)
    assert store.load(first.id) == first
    store.change(first.id, mode="seedless")
    assert store.load(first.id).mode == "seedless"
    second = make(store)
    assert {each.id for each in store.all()} == {first.id, second.id}
    assert [each.id for each in store.all()] == sorted((first.id, second.id), reverse=True)
    store.forget(first.id)
    assert [each.id for each in store.all()] == [second.id]


def test_only_its_owner_can_read_it(store, tmp_path):
    os.umask(0)
    run = make(store)
    for path in (tmp_path / ".deniable-studio", store.folder(run.id)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    files = list(store.folder(run.id).iterdir())
    assert [each.name for each in files] == ["run.json"]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", "..", "../x", "20200101-000000-zzzzzz", "x/y"])
def test_a_name_that_is_none_is_refused(store, name):
    with pytest.raises(ConfigError, match="no such run"):
        store.load(name)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"steps": 3}', '{"steps": [{}]}'])
def test_a_damaged_run_is_an_error_and_is_not_listed(store, text):
    run = make(store)
    (store.folder(run.id) / "run.json").write_text(text)
    with pytest.raises(ConfigError):
        store.load(run.id)
    assert store.all() == []


def test_unknown_keys_of_a_later_version_are_ignored(store):
    run = make(store)
    path = store.folder(run.id) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "blue"}))
    assert store.load(run.id) == run


def test_states_follow_from_locks_and_progress(store):
    run = make(store)
    assert [each.state for each in store.status(run)] == ["waiting", "waiting"]
    lock = write(store, run, 0, '{"pid": 7}', '{"stage": "read", "done": 1, "of": 3}', held=True)
    status = store.status(run)[0]
    assert (status.state, status.pid, dict(status.stages)) == ("running", 7, {"read": (1, 3)})
    os.close(lock)
    assert store.status(run)[0].state == "killed"
    for code, state in (
        (0, "done"),
        (130, "cancelled"),
        (2, "failed"),
        (3, "failed"),
        (4, "failed"),
    ):
        write(store, run, 0, '{"pid": 7}', json.dumps({"exit": code}))
        assert store.status(run)[0].state == state


def test_a_cancelled_run_starts_no_further_step(store):
    run = make(store)
    write(store, run, 0, '{"exit": 0}')
    assert [each.state for each in store.status(run)] == ["done", "waiting"]
    store.mark_cancelled(run)
    assert [each.state for each in store.status(run)] == ["done", "cancelled"]
    write(store, run, 1, '{"pid": 3}')
    assert store.status(run)[1].state == "cancelled"


def test_lines_that_are_no_progress_are_skipped(store):
    run = make(store)
    write(store, run, 0, "not json", "[1]", '{"stage": "a", "done": 1, "of": 1}', '{"sta')
    assert dict(store.status(run)[0].stages) == {"a": (1, 1)}


def test_two_who_look_at_the_same_time_do_not_see_each_other(store):
    run = make(store)
    write(store, run, 0)
    path = store.folder(run.id) / "0.lock"
    other = os.open(path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_SH)
    assert not is_locked(path)
    os.close(other)
    assert not is_locked(path.with_name("absent"))


def test_a_link_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".deniable-studio").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="link"):
        RunStore(tmp_path).prepare()


def test_what_a_command_printed_is_its_result(store):
    run = make(store)
    write(store, run, 0, '{"exit": 0}')
    out = store.folder(run.id) / "0.out"
    for text, found in (('{"a": 1}\n', {"a": 1}), ("text", {}), ("[1]", {}), ("", {})):
        out.write_text(text)
        assert store.status(run)[0].result == found
