"""The fourth screen: a run as it goes, and how to cancel it."""

from collections.abc import Sequence
from typing import Any

from deniable.studio.equivalent_command import paste_text
from deniable.studio.made_output import owns_output
from deniable.studio.run_store import RunRecord, StepStatus
from deniable.studio.workspace import Call, Page, Redirect, Reply, address

TITLES = {
    "draft": "Draft of a schema",
    "release": "Release",
    "records": "More records",
    "check": "Check of a release",
}


def show_run(call: Call) -> Reply:
    """Show a run; one that ends while it is watched leads to its result.

    The part that is polled is first replaced by one that asks once where to go: if it led there
    itself, the next poll would ask for the result anew, before a slow one has come.
    """
    run = call.space.store.load(call.parts["id"])
    content = _content(call, run)
    if not call.is_partial:
        return Page("run.html", content)
    is_done = content["state"] == "done"
    if is_done and "leave" in call.query:
        return Page("run_status.html", content, headers={"HX-Redirect": content["next"]})
    return Page("run_status.html", content | {"leave": is_done})


def cancel_run(call: Call) -> Reply:
    """Cancel a run."""
    run = call.space.store.load(call.parts["id"])
    call.space.control.cancel(run)
    return Redirect(address(f"/run/{run.id}"))


def list_runs(call: Call) -> Reply:
    """Lead to the newest run that goes on; else to the history."""
    for run in call.space.store.all():
        if run_state(call.space.store.status(run)) == "running":
            return Redirect(address(f"/run/{run.id}"))
    return Redirect(address("/history"))


def _content(call: Call, run: RunRecord) -> dict[str, Any]:
    statuses = call.space.store.status(run)
    state = run_state(statuses)
    is_made = statuses[0].state == "done" or _is_in_place(call, run)
    failed = next((each for each in statuses if each.state in ("failed", "killed")), None)
    return {
        "run": run,
        "title": TITLES[run.kind],
        "table": run.table,
        "schema": run.schema,
        "statuses": [(each, _stages(each)) for each in statuses],
        "state": state,
        "failed": failed,
        "message": "" if failed is None else failure_message(failed, is_made=is_made),
        "obstacle": call.space.control.obstacle(run) if state == "running" else "",
        "is_made": is_made,
        "is_cancelled": call.space.store.is_cancelled(run),
        "next": _next_page(run),
        "leave": False,
        "command": paste_text(call.space.root.path, *(each.step.arguments for each in statuses)),
    }


def run_state(statuses: Sequence[StepStatus]) -> str:
    """The state of a run: running, done, failed, cancelled or killed."""
    states = [each.state for each in statuses]
    for state in ("killed", "failed", "cancelled"):
        if state in states[:1]:
            return state
    if "running" in states or ("waiting" in states and "cancelled" not in states):
        return "running"
    # The release itself is in place: a later step that failed is reported on its page.
    return "done"


def _is_in_place(call: Call, run: RunRecord) -> bool:
    """Whether the output of a run is there, however its process ended."""
    if run.kind != "release":
        return False
    return owns_output(call.space.store, call.space.root.path, run)


def failure_message(status: StepStatus, *, is_made: bool = False) -> str:
    """What a failed step printed; for a killed one, what that means."""
    if status.state == "killed":
        outcome = (
            "The release itself is in place, and its cost is spent."
            if is_made
            else "Nothing was released; what it had begun to write was removed."
        )
        return (
            "The process ended without a word: it was killed, the disk was full, or the computer "
            f"ran out of memory or was restarted. {outcome}"
        )
    return status.errors.strip() or f"It ended with exit code {status.code}."


def _stages(status: StepStatus) -> list[dict[str, Any]]:
    return [
        {"name": name, "done": done, "of": of, "is_done": done >= of}
        for name, (done, of) in status.stages.items()
    ]


def _next_page(run: RunRecord) -> str:
    if run.kind == "draft":
        return address("/schema", table=run.table, schema=run.out)
    release = run.out if run.kind == "release" else run.schema
    return address("/result", release=release)
