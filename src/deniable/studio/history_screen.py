"""The sixth screen: all runs under the root, the budget spent on each table, compare, delete."""

import math
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from deniable.errors import ConfigError, DeniableError
from deniable.studio.equivalent_command import paste_text, verify_command
from deniable.studio.made_output import owns_output
from deniable.studio.other_stores import LocatedRun, located_runs
from deniable.studio.release_view import ReleaseView, read_release
from deniable.studio.run_screen import TITLES, run_state
from deniable.studio.run_store import RunRecord
from deniable.studio.spent_budget import Spending, Spent, foreign_releases, spending_of, spent_on
from deniable.studio.workspace import Call, Page, Redirect, Reply, address


def show_history(call: Call) -> Reply:
    """List all runs and releases, and what was spent on each table."""
    space = call.space
    runs = located_runs(space)
    rows = [_row(call, run) for run in space.store.all()]
    releases = space.root.find_releases()
    spent = _unique(call, _tables(call, runs))
    return Page(
        "history.html",
        {
            "spent": spent,
            "elsewhere": _elsewhere(spent),
            "rows": rows,
            "releases": releases,
            "others": foreign_releases(space, runs),
            "command": paste_text(space.root.path, *(verify_command(each) for each in releases[:5]))
            if releases
            else "",
        },
    )


def _tables(call: Call, runs: Sequence[LocatedRun]) -> list[str]:
    """The tables of all runs that are below the root, by their path in it."""
    found = []
    for each in runs:
        if each.run.table:
            with suppress(DeniableError):
                found.append(call.space.root.relative(each.path(each.run.table)))
    return list(dict.fromkeys(found))


def _elsewhere(spent: Sequence[Spent]) -> list[Spending]:
    """The costs of runs with another ``--root``, each once."""
    return list({each.run.id: each for one in spent for each in one.elsewhere}.values())


def _unique(call: Call, tables: list[str]) -> list[Spent]:
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
    cost = spending_of(LocatedRun(run=run, space=space))
    is_there = False
    with suppress(DeniableError, OSError):
        is_there = bool(run.out) and space.root.locate(run.out).exists()
    is_own = is_there and owns_output(space.store, space.root.path, run)
    return {
        "run": run,
        "title": TITLES[run.kind],
        "state": run_state(space.store.status(run)),
        "cost": cost,
        "is_there": is_own,
        "is_foreign": is_there and not is_own and run.kind in ("release", "records"),
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
    # Before its files are gone: what a killed run cost is known from them alone.
    cost = spending_of(LocatedRun(run=run, space=space))
    if cost is not None and "never_shared" not in call.form:
        epsilon = "inf" if math.isinf(cost.epsilon) else cost.epsilon
        run = space.store.change(
            run.id, epsilon=epsilon, delta=cost.delta, mode=run.mode or cost.mode
        )
    _delete_files(call, run)
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
    """Delete what this run made. What others put at its path stays."""
    space = call.space
    if not run.out:
        return
    with suppress(FileNotFoundError):
        space.root.locate(run.out)
    if not owns_output(space.store, space.root.path, run):
        return
    for name in _outputs(run):
        try:
            path = space.root.locate(name)
        except FileNotFoundError:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _remove(call: Call, run: RunRecord) -> str:
    lines = paste_text(call.space.root.path).split("\n")
    is_own = owns_output(call.space.store, call.space.root.path, run)
    names = [name for name in _outputs(run) if name] if is_own else []
    removed = [shlex.join(("rm", "-r", "--", name)) for name in names]
    return "\n".join([*lines, *removed]) if names else ""
