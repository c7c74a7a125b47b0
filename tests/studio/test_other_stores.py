"""Runs of roots above and below this one are found; links and folders too deep are not."""

from deniable.studio.other_stores import located_runs, other_roots
from deniable.studio.run_store import RunStore
from deniable.studio.spent_budget import spent_on
from studio_client import StudioClient, record_release


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
