"""What was spent on a table: added up, never forgotten, never counted twice."""

import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.schema.draft_cost import DraftCost
from deniable.studio.made_output import made_by, manifest_hash, owns_output, record_made
from deniable.studio.other_stores import LocatedRun, located_runs, other_roots
from deniable.studio.run_store import RunStore
from deniable.studio.spent_budget import spending_of, spent_before, spent_on
from deniable.studio.table_facts import table_hash
from studio_client import StudioClient, end_step, record_release


def test_epsilon_and_delta_add_up_over_releases(studio):
    record_release(studio, "one", epsilon=0.5, delta=1e-9)
    record_release(studio, "two", epsilon=0.25, delta=2e-9)
    record_release(studio, "three", table="other.csv", epsilon=9.0)
    spent = spent_on(studio.space, "table.csv")
    assert spent.epsilon == pytest.approx(0.75)
    assert spent.epsilon >= 0.75
    assert spent.delta == pytest.approx(3e-9)
    assert len(spent.spendings) == 2


def test_the_cost_is_the_larger_of_the_plan_and_its_own_manifest(released):
    [spending] = spent_on(released.space, "table.csv").spendings
    assert 0.9 < spending.epsilon < 1.0  # the plan asked for 0.9
    assert spending.mode == "one-shot"
    released.space.store.change(spending.run.id, epsilon=5.0)
    assert spent_on(released.space, "table.csv").epsilon == 5.0


def test_a_changed_manifest_does_not_lower_the_cost(released, folder):
    [run] = released.space.store.all()
    released.space.control.advance(run)
    path = folder / "out" / "manifest.json"
    path.write_text(path.read_text().replace("0.999529", "0.000001"))
    assert spent_on(released.space, "table.csv").epsilon == pytest.approx(0.999529)


@pytest.mark.parametrize(("code", "counted"), [(0, 1), (2, 0), (130, 0)])
def test_a_run_that_released_nothing_costs_nothing(studio, code, counted):
    end_step(studio, record_release(studio, "one"), 0, code=code)
    assert len(spent_on(studio.space, "table.csv").spendings) == counted


def test_a_killed_run_counts_if_its_release_is_there(released):
    run = released.space.store.all()[0]
    (released.space.store.folder(run.id) / "0.progress").write_text("")
    assert released.space.store.status(run)[0].state == "killed"
    assert len(spent_on(released.space, "table.csv").spendings) == 1
    released.space.control.advance(run)  # the studio has noticed it
    shutil.rmtree(released.space.root.path / "out")
    assert len(spent_on(released.space, "table.csv").spendings) == 1


def test_a_killed_run_without_a_release_costs_nothing(studio):
    run = record_release(studio, "out")
    (studio.space.store.folder(run) / "0.progress").write_text("")
    assert spent_on(studio.space, "table.csv").spendings == []


def test_a_run_that_goes_on_counts_as_planned(studio):
    run = record_release(studio, "one", epsilon=0.5)
    (studio.space.store.folder(run) / "0.lock").unlink()
    assert spent_on(studio.space, "table.csv").epsilon == pytest.approx(0.5)


def test_a_copy_under_another_name_is_the_same_table(studio, folder):
    table = folder / "table.csv"
    facts = {"table_size": table.stat().st_size, "table_hash": table_hash(table)}
    record_release(studio, "one", epsilon=0.5, **facts)
    shutil.copy(table, folder / "renamed.csv")
    assert spent_on(studio.space, "renamed.csv").epsilon == pytest.approx(0.5)
    with (folder / "renamed.csv").open("a") as file:
        file.write("20,tinsmith,windmill,1,axolotl\n")
    assert spent_on(studio.space, "renamed.csv").spendings == []
    # The same path is the same table, whatever is in it now: most of its people are the same.
    table.write_text("a\n1\n")
    assert spent_on(studio.space, "table.csv").epsilon == pytest.approx(0.5)


def test_no_guarantee_is_an_infinite_cost(studio):
    record_release(studio, "one", epsilon="inf", delta=0.0)
    assert spent_on(studio.space, "table.csv").epsilon == math.inf
    record_release(studio, "two", epsilon=None)
    assert spent_on(studio.space, "table.csv").epsilon == math.inf


def test_mode_tested_is_said_not_to_be_covered(studio):
    record_release(studio, "one", mode="tested")
    assert spent_on(studio.space, "table.csv").has_partial


@pytest.fixture
def drafted(studio):
    """A studio with a private draft of ε = 0.5."""
    record_draft(studio)
    return studio


def record_draft(studio):
    return record_release(studio, "d.toml", kind="draft", epsilon="0.5", delta=1e-10, mode="")


def record_with_draft(studio, out, **draft):
    facts = {"manifest_hash": "0", "epsilon": 1.0, "delta": 1e-9, "mode": "one-shot"}
    made = {**facts, "draft": draft or None}
    return record_release(studio, out, schema="d.toml", epsilon=1.0, made=made)


def epsilon(studio):
    return spent_on(studio.space, "table.csv").epsilon


def test_a_private_draft_counts_until_a_release_contains_its_cost(drafted):
    assert epsilon(drafted) == pytest.approx(0.5)
    record_with_draft(drafted, "one", epsilon=0.5, delta=1e-10)
    assert epsilon(drafted) == pytest.approx(1.0)


@pytest.mark.parametrize("stated", [{}, {"epsilon": 0.1, "delta": 1e-10}, {"epsilon": 0.5}])
def test_a_release_that_does_not_state_the_draft_does_not_contain_it(drafted, stated):
    record_with_draft(drafted, "one", **stated)
    assert epsilon(drafted) == pytest.approx(1.5)


def test_a_release_contains_one_draft_of_its_schema(drafted):
    record_draft(drafted)
    record_with_draft(drafted, "one", epsilon=0.5, delta=1e-10)
    assert epsilon(drafted) == pytest.approx(1.5)


def test_a_plan_with_the_drafted_schema_contains_its_cost(drafted):
    """Its total has the draft, so the page must not add it a second time, or ask for a tick."""

    def before(path, cost):
        return spent_before(drafted.space, "table.csv", path, cost).epsilon

    stated = DraftCost(epsilon=0.5, delta=1e-10, unit=None)
    assert before("d.toml", stated) == 0
    assert before("d.toml", None) == pytest.approx(0.5)
    assert before("other.toml", stated) == pytest.approx(0.5)
    assert before("d.toml", replace(stated, epsilon=0.4)) == pytest.approx(0.5)
    record_draft(drafted)
    assert before("d.toml", stated) == pytest.approx(0.5)  # one of the two


def test_a_plain_draft_and_more_records_cost_nothing(studio):
    for kind in ("draft", "records", "check"):
        run = record_release(studio, "x", kind=kind, epsilon=None)
        assert spending_of(LocatedRun(run=studio.space.store.load(run), space=studio.space)) is None


def test_releases_that_the_studio_did_not_make_are_named(studio, folder, made_release):
    shutil.copytree(made_release / "out", folder / "foreign")
    assert spent_on(studio.space, "table.csv").others == ["foreign"]


def test_roots_above_and_below_are_found(tmp_path):
    root = tmp_path / "a" / "b"
    near, deep, hidden = root / "c", root / "1/2/3/4/5", root / ".h"
    for folder in (tmp_path, near, deep, hidden):
        folder.mkdir(parents=True, exist_ok=True)
        RunStore(folder).prepare()
    (root / "link").symlink_to(near)
    assert other_roots(root) == [tmp_path, near]


def test_the_cost_is_the_same_seen_from_above_and_from_below(studio, folder):
    record_release(studio, "one", epsilon=0.5)
    parent = StudioClient(folder.parent)
    record_release(parent, "two", table="root/table.csv", epsilon=0.25)
    assert spent_on(parent.space, "root/table.csv").epsilon == 0.75
    assert spent_on(studio.space, "table.csv").epsilon == 0.75
    assert [each.home for each in located_runs(studio.space)] == ["", str(folder.parent)]
    assert spent_on(parent.space, "table.csv").spendings == []


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
