"""The sixth screen: what was spent, two releases side by side, and what deleting means."""

import html
import re
import shutil
import subprocess

import pytest

from deniable.studio import history_screen
from deniable.studio.release_view import read_release
from deniable.studio.spent_budget import cost_text
from studio_client import StudioClient, end_step, record_release, text_of


@pytest.fixture
def two(released, folder):
    for name in ("out", "out.internal"):
        shutil.copytree(folder / name, folder / name.replace("out", "again"))
    record_release(released, "again", epsilon=0.9)
    return released


def total_of(studio):
    """Twice the cost of the release that was copied, as the page rounds it."""
    return cost_text(2 * read_release(studio.space, "out").guarantee["epsilon"])


def test_what_was_spent_on_a_table_is_added_up(two):
    words = text_of(two.get("/history"))
    assert f"table.csv 2 {total_of(two)}" in words
    assert "ε adds up, and so does δ" in words
    assert words.count("Release : out") == 1


def test_an_empty_history_says_so(studio):
    assert "Nothing has been released from here" in studio.get("/history")


def test_releases_of_others_are_named_and_not_added(studio, folder, made_release):
    shutil.copytree(made_release / "out", folder / "foreign")
    words = text_of(studio.get("/history"))
    assert "foreign" in words
    assert "not made here" in words


def test_two_releases_are_compared(two):
    reply = two.client.get("/compare?release=out&release=again")
    words = text_of(reply.text)
    assert "mode one-shot one-shot" in words
    assert "mean distance of pairs of columns" in words
    assert reply.text.count("<svg") == 10
    for query in ("release=out&release=out", "release=out", "", "release=out&release=../x"):
        assert two.client.get(f"/compare?{query}").status_code in (403, 422)


def test_deleting_removes_the_files_but_not_the_cost(two, folder):
    run = next(each for each in two.space.store.all() if each.out == "again")
    page = text_of(two.get("/delete", run=run.id))
    assert "cannot be brought back" in page
    assert (folder / "again").exists()
    words = text_of(two.post("/delete", run=run.id))
    assert not (folder / "again").exists()
    assert not (folder / "again.internal").exists()
    assert (folder / "out").exists()
    assert (folder / "table.csv").exists()
    assert "deleted, still counted" in words
    assert f"table.csv 2 {total_of(two)}" in words


def test_what_nobody_has_seen_is_no_longer_counted(two):
    run = next(each for each in two.space.store.all() if each.out == "again")
    words = text_of(two.post("/delete", run=run.id, never_shared="on"))
    assert "table.csv 1 0.99" in words
    assert "again" not in words


def test_a_run_that_goes_on_is_not_deleted(studio):
    run = record_release(studio, "out")
    (studio.space.store.folder(run) / "0.lock").unlink()
    assert studio.client.post("/delete", data={"run": run}).status_code == 422
    assert studio.space.store.load(run)


def test_a_failed_run_is_forgotten(studio):
    run = record_release(studio, "out")
    end_step(studio, run, 0, code=2)
    studio.post("/delete", run=run)
    assert studio.space.store.all() == []


def test_a_link_in_place_of_a_release_is_not_deleted(released, folder, tmp_path):
    shutil.move(folder / "out", tmp_path / "precious")
    (folder / "out").symlink_to(tmp_path / "precious")
    run = released.space.store.all()[0]
    assert released.client.post("/delete", data={"run": run.id}).status_code == 403
    assert (tmp_path / "precious" / "manifest.json").exists()


def test_a_draft_is_forgotten_and_its_schema_stays(studio, folder):
    run = record_release(studio, "schema.toml", kind="draft", epsilon=None)
    assert "schema that it wrote stays" in text_of(studio.get("/delete", run=run))
    studio.post("/delete", run=run)
    assert (folder / "schema.toml").exists()
    assert studio.space.store.all() == []


def test_deleting_a_cancelled_run_leaves_the_release_of_another_at_its_path(released, folder):
    cancelled = record_release(released, "out", epsilon=0.9)
    end_step(released, cancelled, 0, code=130)
    assert "was not made by this run" in text_of(released.get("/delete", run=cancelled))
    words = text_of(released.get("/history"))
    assert words.count("Release : out") == 2
    assert released.get("/history").count('href="/result?release=out"') == 1
    assert "table.csv 1 0.99" in words
    released.post("/delete", run=cancelled)
    assert (folder / "out" / "manifest.json").exists()
    assert (folder / "out.internal" / "run.json").exists()
    assert "table.csv 1 0.99" in text_of(released.get("/history"))


def test_what_another_put_at_the_path_of_a_run_is_not_deleted(released, folder):
    run = released.space.store.all()[0]
    released.space.control.advance(run)  # as it ended
    manifest = folder / "out" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("0.3.0", "0.3.1"))
    assert "not made here" in text_of(released.get("/history"))
    words = text_of(released.post("/delete", run=run.id))
    assert manifest.exists()
    assert "deleted, still counted" in words


def test_a_killed_run_with_a_release_still_counts_once_it_is_deleted(released, folder):
    run = released.space.store.all()[0]
    (released.space.store.folder(run.id) / "0.progress").write_text("")
    words = text_of(released.post("/delete", run=run.id))
    assert not (folder / "out").exists()
    assert "table.csv 1 0.99" in words


def test_a_deleted_release_without_a_limit_stays_without(studio):
    run = record_release(studio, "one", epsilon="inf")
    assert "table.csv 1 no limit" in text_of(studio.post("/delete", run=run))
    assert studio.space.store.load(run).deleted


@pytest.mark.usefixtures("released")
def test_runs_with_another_root_are_counted_and_named(folder):
    parent = StudioClient(folder.parent)
    words = text_of(parent.get("/history"))
    assert "root/table.csv 1 0.99" in words
    assert "started with another --root" in words
    assert "not made here" not in words
    words = text_of(parent.get("/plan", table="root/table.csv", schema="root/schema.toml"))
    assert "has been released before" in words
    assert "1 of them started with another --root" in words


def test_records_of_another_run_at_the_same_name_are_not_deleted(released, folder):
    facts = {"kind": "records", "table": "", "schema": "out", "epsilon": None}
    cancelled = record_release(released, "more.csv", **facts)
    end_step(released, cancelled, 0, code=130)
    record_release(released, "more.csv", **facts)
    (folder / "more.csv").write_text("a\n1\n")
    (folder / "more.csv.manifest.json").write_text("{}")
    released.post("/delete", run=cancelled)
    assert (folder / "more.csv").exists()


def test_the_command_that_deletes_runs_nothing_that_a_name_says(studio, folder, monkeypatch):
    monkeypatch.setattr(history_screen, "owns_output", lambda *_: True)
    name = "a'$(touch pwned)'b"
    (folder / name).mkdir()
    run = record_release(studio, name)
    page = html.unescape(studio.get("/delete", run=run))
    [line] = [each for each in page.split("\n") if "rm -r" in each and "internal" not in each]
    line = re.sub("<[^>]*>", "", line)
    subprocess.run(["/bin/sh", "-c", line], cwd=folder, check=True)
    assert not (folder / name).exists()
    assert not (folder / "pwned").exists()
