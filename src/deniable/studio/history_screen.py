"""The sixth screen: all runs under the root, and the budget spent on each table."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from deniable.errors import DeniableError
from deniable.studio.equivalent_command import paste_text, verify_command
from deniable.studio.made_output import owns_output
from deniable.studio.other_stores import LocatedRun, located_runs
from deniable.studio.run_screen import TITLES, run_state
from deniable.studio.run_store import RunRecord
from deniable.studio.spent_budget import Spending, Spent, foreign_releases, spending_of, spent_on
from deniable.studio.workspace import Call, Page, Reply


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
    is_there = False
    with suppress(DeniableError, OSError):
        is_there = bool(run.out) and space.root.locate(run.out).exists()
    return {
        "run": run,
        "title": TITLES[run.kind],
        "state": run_state(space.store.status(run)),
        "cost": spending_of(LocatedRun(run=run, space=space)),
        "is_there": is_there and owns_output(space.store, space.root.path, run),
    }
