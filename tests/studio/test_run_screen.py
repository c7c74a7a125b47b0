"""The page of a run: its stages, its end."""

import fcntl
import os

import pytest

from deniable.studio.run_screen import failure_message, run_state
from deniable.studio.run_store import Step, StepStatus
from studio_client import end_step, record_release, text_of

STEPS = (
    Step(name="Make the release", arguments=("synthesize", "table.csv")),
    Step(name="Check it", arguments=("verify", "out")),
)


@pytest.fixture
def run(studio):
    return studio.space.store.create(
        kind="release",
        table="table.csv",
        schema="schema.toml",
        out="out",
        steps=STEPS,
        epsilon=0.9,
        delta=1e-9,
    )


@pytest.fixture
def going(studio, run):
    """The same run, whose first step goes on: somebody holds its lock."""
    folder = studio.space.store.folder(run.id)
    lock = os.open(folder / "0.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    lines = ['{"pid": 1}', '{"stage": "read the table", "done": 1, "of": 1}']
    lines += ['{"stage": "count single columns", "done": 1, "of": 1}']
    (folder / "0.progress").write_text("\n".join(lines) + "\n")
    yield run
    os.close(lock)


def test_a_run_that_goes_on_shows_its_stages(studio, going):
    page = studio.get(f"/run/{going.id}")
    words = text_of(page)
    assert "read the table" in words
    assert "count single columns" in words
    assert "Cancel the run" in words
    assert "deniable synthesize table.csv" in words
    assert 'http-equiv="refresh"' in page  # without scripts


def test_the_part_that_is_polled_polls_until_the_end(studio, going):
    partial = {"HX-Request": "true"}
    reply = studio.client.get(f"/run/{going.id}", headers=partial)
    assert 'hx-trigger="every 1s"' in reply.text
    assert "<html" not in reply.text


def test_the_newest_run_that_goes_on_is_found_again(studio, going):
    assert studio.client.get("/run").url.path == f"/run/{going.id}"


def test_without_one_the_history_is_shown(studio, run):
    end_step(studio, run.id, 0)
    end_step(studio, run.id, 1)
    assert studio.client.get("/run").url.path == "/history"


def test_a_finished_run_leads_to_its_result(studio, run):
    end_step(studio, run.id, 0)
    end_step(studio, run.id, 1)
    headers = {"HX-Request": "true"}
    polled = studio.client.get(f"/run/{run.id}", headers=headers)
    assert "hx-redirect" not in polled.headers  # a poll would ask for the result again and again
    assert f'hx-get="/run/{run.id}?leave=1" hx-trigger="load"' in polled.text
    assert "every 1s" not in polled.text
    reply = studio.client.get(f"/run/{run.id}?leave=1", headers=headers)
    assert reply.headers["hx-redirect"] == "/result?release=out"


def test_a_finished_run_that_is_looked_at_later_stays(studio, run):
    end_step(studio, run.id, 0)
    end_step(studio, run.id, 1)
    page = studio.get(f"/run/{run.id}")
    assert "hx-get" not in page
    assert 'href="/result?release=out">See the result' in page


@pytest.mark.parametrize(
    ("code", "words"),
    [(2, "It failed. DataError: column"), (130, "Cancelled. Nothing was written, so nothing")],
)
def test_a_run_that_ended_early_says_how(studio, run, code, words):
    errors = 'DataError: column "<b>": 3 cells' if code == 2 else ""
    end_step(studio, run.id, 0, code=code, errors=errors)
    page = studio.get(f"/run/{run.id}")
    assert words in " ".join(text_of(page).split())
    assert "<b>:" not in page
    assert "Back to the plan" in page


def test_a_killed_run_says_whether_the_release_is_there(studio, run, folder):
    (studio.space.store.folder(run.id) / "0.lock").touch()
    assert "Nothing was released" in studio.get(f"/run/{run.id}")
    (folder / "out").mkdir()
    (folder / "out" / "manifest.json").write_text("{}")
    assert "its cost is spent" in studio.get(f"/run/{run.id}")


def test_cancelling_leads_back_to_the_run(studio, run):
    end_step(studio, run.id, 0, code=130)
    reply = studio.client.post(f"/run/{run.id}/cancel")
    assert reply.url.path == f"/run/{run.id}"
    assert studio.space.store.is_cancelled(run)


def test_a_run_that_is_not_there_is_no_bug(studio):
    for name in ("20260101-000000-abcdef", "x"):
        assert studio.client.get(f"/run/{name}").status_code in (404, 422)


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        (["waiting", "waiting"], "running"),
        (["done", "running"], "running"),
        (["done", "failed"], "done"),
        (["done", "cancelled"], "done"),
        (["killed", "waiting"], "killed"),
        (["failed", "waiting"], "failed"),
        (["cancelled", "cancelled"], "cancelled"),
        (["done", "done"], "done"),
    ],
)
def test_the_state_of_a_run_follows_from_its_steps(states, whole):
    assert run_state([StepStatus(step=STEPS[0], state=each) for each in states]) == whole


def test_a_step_that_failed_without_a_word_has_its_exit_code():
    assert "exit code 4" in failure_message(StepStatus(step=STEPS[0], state="failed", code=4))


def test_a_check_leads_back_to_its_release(studio):
    run = record_release(studio, "", kind="check", schema="sub/out")
    headers = {"HX-Request": "true"}
    reply = studio.client.get(f"/run/{run}?leave=1", headers=headers)
    assert reply.headers["hx-redirect"] == "/result?release=sub%2Fout"


def test_a_cancelled_run_does_not_claim_the_release_of_another(released):
    run = record_release(released, "out")
    end_step(released, run, 0, code=130)
    words = text_of(released.get(f"/run/{run}"))
    assert "nothing was spent" in words


def test_what_keeps_the_next_step_from_starting_is_shown(studio, run):
    studio.space.control.obstacle = lambda _: "No space left on device"
    words = text_of(studio.get(f"/run/{run.id}"))
    assert "Running." in words
    assert "The next step cannot start now (No space left on device)." in words
    studio.space.control.cancel(run)
    studio.space.control.obstacle = lambda _: ""
    assert "cannot start now" not in studio.get(f"/run/{run.id}")
