"""The sixth screen: every run under the root, what was spent on each table, compare, delete."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from deniable.errors import ConfigError, DeniableError
from deniable.studio.equivalent_command import paste_text, verify_command
from deniable.studio.release_view import ReleaseView, read_release
from deniable.studio.run_screen import TITLES, run_state
from deniable.studio.run_store import RunRecord
from deniable.studio.spent_budget import spending_of, spent_on
from deniable.studio.workspace import Call, Page, Redirect, Reply, address


def show_history(call: Call) -> Reply:
    """List all runs and releases, and what was spent on each table."""
    space = call.space
    runs = space.store.all()
    tables = list(dict.fromkeys(run.table for run in runs if run.table))
    rows = [_row(call, run) for run in runs]
    releases = space.root.find_releases()
    own = {run.out for run in runs}
    return Page(
        "history.html",
        {
            "spent": _unique(call, tables),
            "rows": rows,
            "releases": releases,
            "others": [each for each in releases if each not in own],
            "command": paste_text(space.root.path, *(verify_command(each) for each in releases[:5]))
            if releases
            else "",
        },
    )


def _unique(call: Call, tables: list[str]) -> list[Any]:
    """What was spent on each table; copies of one table are listed once."""
    found, seen = [], set[tuple[str, ...]]()
    for table in tables:
        spent = spent_on(call.space, table)
        key = tuple(each.run.id for each in spent.spendings)
        if key and key not in seen:
            seen.add(key)
            found.append(spent)
    return found


def _row(call: Call, run: RunRecord) -> dict[str, Any]:
    space = call.space
    cost = spending_of(space, run) if run.kind in ("release", "draft") else None
    is_there = False
    with suppress(DeniableError, OSError):
        is_there = bool(run.out) and space.root.locate(run.out).exists()
    return {
        "run": run,
        "title": TITLES[run.kind],
        "state": run_state(space.store.status(run)),
        "cost": cost,
        "is_there": is_there,
    }


def compare(call: Call) -> Reply:
    """Show two releases side by side."""
    names = call.query.get("release", "").split("\n")
    if len(names) != 2 or names[0] == names[1]:
        raise ConfigError("choose two different releases to compare")
    pair = [read_release(call.space, name.strip("/")) for name in names]
    return Page(
        "compare.html",
        {
            "pair": pair,
            "rows": _compared_rows(*pair),
            "plots": _compared_plots(*pair),
            "command": paste_text(
                call.space.root.path, *(verify_command(each.path) for each in pair)
            ),
        },
    )


def _compared_rows(one: ReleaseView, two: ReleaseView) -> list[tuple[str, str, str]]:
    """The figures of two releases."""
    rows = [(name, _fact(one, name), _fact(two, name)) for name in _FACTS]
    return [row for row in rows if row[1] or row[2]]


_FACTS: Mapping[str, tuple[str, ...]] = {
    "mode": ("manifest", "mode"),
    "ε": ("manifest", "guarantee", "epsilon"),
    "δ": ("manifest", "guarantee", "delta"),
    "who is protected": ("manifest", "guarantee", "unit"),
    "k": ("manifest", "parameters", "k"),
    "records": ("manifest", "parameters", "records"),
    "utility": ("metrics", "verdict", "grade"),
    "utility in words": ("metrics", "verdict", "headline"),
    "mean distance of single columns": ("metrics", "distances", "attributes", "mean"),
    "mean distance of pairs of columns": ("metrics", "distances", "pairs", "mean"),
}


def _fact(release: ReleaseView, name: str) -> str:
    first, *keys = _FACTS[name]
    value: Any = release.manifest if first == "manifest" else release.metrics
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return ""
    return (
        f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def _compared_plots(one: ReleaseView, two: ReleaseView) -> list[tuple[str, Any, Any]]:
    other = dict(two.plots)
    return [(name, drawn, other.get(name)) for name, drawn in one.plots if name in other]


def ask_delete(call: Call) -> Reply:
    """Ask before a run and its files are deleted."""
    run = call.space.store.load(call.query.get("run", ""))
    return Page("delete.html", {"run": run, "row": _row(call, run), "command": _remove(call, run)})


def delete(call: Call) -> Reply:
    """Delete the output of a run. What it cost stays in the sum, unless it was never shared."""
    space = call.space
    run = space.store.load(call.form.get("run", ""))
    if run_state(space.store.status(run)) == "running":
        raise ConfigError("this run goes on: cancel it first")
    _delete_files(call, run)
    cost = spending_of(space, run) if run.kind in ("release", "draft") else None
    if cost is None or "never_shared" in call.form:
        space.store.forget(run.id)
    else:
        space.store.change(run.id, deleted=True)
    return Redirect(address("/history"))


def _outputs(run: RunRecord) -> list[str]:
    if run.kind == "release":
        return [run.out, f"{run.out}.internal"]
    return [run.out, f"{run.out}.manifest.json"] if run.kind == "records" else []


def _delete_files(call: Call, run: RunRecord) -> None:
    for name in _outputs(run):
        try:
            path = call.space.root.locate(name)
        except FileNotFoundError:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _remove(call: Call, run: RunRecord) -> str:
    lines = paste_text(call.space.root.path).split("\n")
    names = [name for name in _outputs(run) if name]
    return "\n".join([*lines, *(f"rm -r -- '{name}'" for name in names)]) if names else ""
