"""The sixth screen: the runs, and what was spent."""

import shutil

import pytest

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


def test_a_cancelled_run_does_not_claim_the_release_of_another_at_its_path(released):
    cancelled = record_release(released, "out", epsilon=0.9)
    end_step(released, cancelled, 0, code=130)
    page = released.get("/history")
    words = text_of(page)
    assert words.count("Release : out") == 2
    assert page.count('href="/result?release=out"') == 1
    assert "table.csv 1 0.99" in words


def test_what_another_put_at_the_path_of_a_run_is_named_as_foreign(released, folder):
    [run] = released.space.store.all()
    released.space.control.advance(run)  # as it ended
    manifest = folder / "out" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"one-shot"', '"tested"'))
    words = text_of(released.get("/history"))
    assert "not made here" in words
    assert "table.csv 1 0.99" in words


def test_a_release_whose_folder_was_removed_still_counts(two, folder):
    for run in two.space.store.all():
        two.space.control.advance(run)  # as they ended
    shutil.rmtree(folder / "again")
    page = two.get("/history")
    assert f"table.csv 2 {total_of(two)}" in text_of(page)
    assert "release=again" not in page


def test_a_release_without_a_limit_stays_without(studio):
    record_release(studio, "one", epsilon="inf")
    assert "table.csv 1 no limit" in text_of(studio.get("/history"))


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
