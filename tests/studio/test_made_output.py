"""What a run has made: recorded when its first step ends, and told apart from what others made."""

from pathlib import Path

from deniable.studio.made_output import made_by, manifest_hash, owns_output, record_made
from deniable.studio.run_store import RunStore
from studio_client import StudioClient, end_step, record_release


def place(studio: StudioClient) -> tuple[RunStore, Path]:
    return studio.space.store, studio.space.root.path


def test_what_a_run_made_is_recorded_once(released, folder):
    [run] = released.space.store.all()
    run = record_made(*place(released), run)
    assert run.made is not None
    assert run.made["manifest_hash"] == manifest_hash(folder / "out" / "manifest.json")
    assert run.made["epsilon"] == 0.999529
    assert released.space.store.load(run.id) == run
    (folder / "out" / "manifest.json").write_text("{}")
    assert record_made(*place(released), run) == run
    assert not owns_output(*place(released), run)


def test_a_run_that_goes_on_has_made_nothing_yet(studio):
    run = studio.space.store.load(record_release(studio, "out"))
    (studio.space.store.folder(run.id) / "0.lock").unlink()
    assert made_by(*place(studio), run) is None
    assert record_made(*place(studio), run).made is None


def test_of_two_runs_with_one_output_the_one_that_ended_well_owns_it(released):
    cancelled = record_release(released, "out")
    end_step(released, cancelled, 0, code=130)
    owners = [run.id for run in released.space.store.all() if owns_output(*place(released), run)]
    assert len(owners) == 1
    assert cancelled not in owners


def test_a_manifest_that_is_damaged_is_owned_and_states_nothing(released, folder):
    (folder / "out" / "manifest.json").write_text('{"guarantee": 3}')
    [run] = released.space.store.all()
    made = made_by(*place(released), run)
    assert made.manifest_hash
    assert made.epsilon is None


def test_a_link_is_no_manifest(folder):
    (folder / "link").symlink_to(folder / "table.csv")
    assert manifest_hash(folder / "link") == ""
    assert manifest_hash(folder / "table.csv" / "absent") == ""
