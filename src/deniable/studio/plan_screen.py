"""The third screen: what a release will cost and be worth, before a row is read; then start it."""

from collections.abc import Container, Mapping, Sequence
from pathlib import PurePosixPath
from threading import Lock
from typing import Any

from deniable.errors import BudgetError, ConfigError, DeniableError, InputError, SchemaError
from deniable.release.release import release_folders
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema
from deniable.studio.equivalent_command import (
    evaluate_command,
    paste_text,
    plan_command,
    synthesize_command,
    verify_command,
)
from deniable.studio.plan_consequences import Consequences, consequences
from deniable.studio.plan_form import SLIDERS, PlanForm, nearest_position
from deniable.studio.root_folder import RootFolder, require_disk_space
from deniable.studio.run_store import Step
from deniable.studio.spent_budget import cost_text, spent_before
from deniable.studio.stage_words import findings, is_in_rows
from deniable.studio.table_facts import describe_misfit, table_hash
from deniable.studio.workspace import Call, Page, Redirect, Reply, address
from deniable.studio.zip_stream import is_internal

_LAWS = {
    "rounded_gaussian": "Gaussian",
    "discrete_laplace": "Laplace",
    "truncated_geometric": "geometric",
}
# Stages that are listed one by one; the one-way tables of more columns share a row.
_MAX_LISTED = 20
_STARTING = Lock()


def show_plan(call: Call) -> Reply:
    """Show the form of a plan, and what it means."""
    given = call.query
    schema = _read_schema(call, given)
    form = PlanForm.sent(given, moved=call.trigger if call.is_partial else "")
    found = _consequences(call, given, schema, form)
    content = _content(call, given, schema, form, found)
    return Page("plan_partial.html" if call.is_partial else "plan.html", content)


def _consequences(
    call: Call, given: Mapping[str, str], schema: Schema, form: PlanForm
) -> Consequences:
    """What the plan means; no plan is possible for a table that the schema does not describe."""
    misfit = describe_misfit(call.space.root, given.get("table", ""), schema)
    return Consequences(error=misfit) if misfit else consequences(form, schema)


def _content(
    call: Call, given: Mapping[str, str], schema: Schema, form: PlanForm, found: Consequences
) -> dict[str, Any]:
    table = given.get("table", "")
    out = given.get("out", "") or release_path(call.space.root, table, used_names(call))
    spent = spent_before(call.space, table, given.get("schema", ""), schema.draft)
    measures = "measures" in given or "records" not in given
    attributes = [each.name for each in schema.columns if isinstance(each, Attribute)]
    return {
        "table": table,
        "schema": given.get("schema", ""),
        "error": "",
        "form": form,
        "found": found,
        "stages": _stage_rows(found.report.get("stages", ())),
        "out": out,
        "measures": measures,
        "spent": spent,
        "total": _total(spent.epsilon, found),
        "drafted": schema.drafted,
        "attributes": attributes,
        "targets": form.texts.get("target", "").split("\n"),
        "records_text": form.texts.get("records", "10000"),
        "records_slider": nearest_position("records", form.texts.get("records", "10000")),
        "record_positions": len(SLIDERS["records"]),
        "is_partial": call.is_partial,
        "moved": call.trigger.removesuffix("_slider") if call.is_partial else "",
        "commands": _commands(call, {**given, **_ticked(measures)}, form, out),
    }


def _ticked(measures: bool) -> dict[str, str]:
    """The field that a ticked box sends: a page that was not sent yet has it ticked."""
    return {"measures": "on"} if measures else {}


def start_run(call: Call) -> Reply:
    """Start a release with the plan of the form; show the form again if it cannot start."""
    try:
        # One at a time: two that start at once must not choose the same folder.
        with _STARTING:
            return _start(call)
    except (InputError, BudgetError) as fault:
        schema, form = _read_schema(call, call.form), PlanForm.sent(call.form)
        found = _consequences(call, call.form, schema, form)
        content = _content(call, call.form, schema, form, found)
        return Page("plan.html", {**content, "error": str(fault)}, status=422)


def _start(call: Call) -> Reply:
    given, root = call.form, call.space.root
    table = given.get("table", "")
    path, schema = root.locate(table), _read_schema(call, given)
    form = PlanForm.sent(given)
    found = _consequences(call, given, schema, form)
    if found.error:
        raise ConfigError(found.error)
    if schema.drafted and "accept_drafted_schema" not in given:
        raise SchemaError(
            f"{len(schema.drafted)} entries of the schema are not confirmed. Confirm them on the "
            "schema screen, or tick that you accept them as they are"
        )
    out = given.get("out", "").strip() or release_path(root, table, used_names(call))
    out = free_folder(call, out)
    require_disk_space(root.path, schema, records=form.records, file_format=form.file_format)
    spent = spent_before(call.space, table, given.get("schema", ""), schema.draft)
    if spent.spendings and "spend_more" not in given:
        raise ConfigError(
            "this table has releases already, and their costs add up: tick on the plan that you "
            "know, then start again"
        )
    run = call.space.store.create(
        kind="release",
        table=table,
        schema=given.get("schema", ""),
        out=out,
        steps=_steps(table, given, form, out),
        table_size=path.stat().st_size,
        table_hash=table_hash(path),
        epsilon=found.report["cost"]["epsilon"],
        delta=found.report["cost"]["delta"],
        mode=found.report["mode"],
    )
    call.space.control.begin(run)
    return Redirect(address(f"/run/{run.id}"))


def _steps(table: str, given: Mapping[str, str], form: PlanForm, out: str) -> tuple[Step, ...]:
    """Synthesize, verify, and measure the utility if that is wanted."""
    schema, records = given.get("schema", ""), str(form.records)
    flags = form.flags()
    make = synthesize_command(table, schema=schema, records=records, out=out, options=flags)
    steps = [
        Step(name="Make the release", arguments=make),
        Step(name="Check it", arguments=verify_command(out)),
    ]
    if "measures" in given:
        file = f"synthetic.{form.file_format}"
        arguments = evaluate_command(table, out, file)
        steps.append(Step(name="Measure how useful it is", arguments=arguments))
    return tuple(steps)


def _commands(call: Call, given: Mapping[str, str], form: PlanForm, out: str) -> str:
    """The commands that show this plan, and start this run."""
    try:
        flags, records = form.flags(), str(form.records)
    except DeniableError:
        return ""
    schema = given.get("schema", "")
    rows = "" if form.rows is None else str(form.rows)
    own = [flag for flag in flags if flag not in ("--format", "parquet")]
    plan = plan_command(schema, records=records, options=own, rows=rows)
    steps = _steps(given.get("table", ""), given, form, out)
    return paste_text(call.space.root.path, plan, *(step.arguments for step in steps))


def release_path(root: RootFolder, table: str, used: Container[str] = ()) -> str:
    """A free name for a release, next to its table; no run has ever had it."""
    stem = PurePosixPath(table).name.split(".")[0] or "table"
    parent = PurePosixPath(table).parent
    for number in range(1, 10_000):
        out = (parent / f"{stem}-release-{number}").as_posix()
        if out.casefold() in used:
            continue
        if not any(root.new_path(f"{out}{end}").exists() for end in ("", ".internal")):
            return out
    raise ConfigError("there are too many releases here; choose another name")


def used_names(call: Call) -> set[str]:
    """The outputs of all runs, also of those that failed: none is used again."""
    return {run.out.casefold() for run in call.space.store.all() if run.out}


def free_folder(call: Call, out: str) -> str:
    """Check the folder of a new release: free, never used by a run, and in no other release.

    Raises:
        ConfigError: It was used, lies in a release, or is named as an internal folder.
        OutputError: It exists.
        PathError: It leaves the root.
    """
    root = call.space.root
    names = root.parts(out)
    if any(is_internal(name) for name in names):
        raise ConfigError("a release must not be named .internal: that is for what stays inside")
    release_folders(root.new_path(out))
    out = "/".join(names)
    used = used_names(call)
    if out.casefold() in used:
        raise ConfigError(
            f"an earlier run had the folder {out}; choose another name, so that the costs and the "
            "files of the two are never mixed up"
        )
    above = ["/".join(names[:at]) for at in range(len(names))]
    if any(
        name.casefold() in used or (root.path / name / "manifest.json").exists() for name in above
    ):
        raise ConfigError("this folder lies in another release; choose one next to it")
    return out


def _read_schema(call: Call, given: Mapping[str, str]) -> Schema:
    return Schema.read(call.space.root.locate(given.get("schema", "")))


def _total(spent: float, found: Consequences) -> str:
    """What all releases together will have cost."""
    if found.error:
        return ""
    return cost_text(spent + float(found.report["cost"]["epsilon"]))


def _stage_rows(stages: Any) -> list[dict[str, str]]:
    """The noise and the cost of each stage, as texts."""
    values = [each for each in stages if str(each["what"]).startswith("values of ")]
    if len(values) <= _MAX_LISTED:
        return [_stage_row(str(each["what"]), [each]) for each in stages]
    rest = [_stage_row(str(each["what"]), [each]) for each in stages if each not in values]
    return [_stage_row("tables of values", values), *rest]


def _stage_row(what: str, stages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """A row for stages of one kind: a number, or the smallest and the largest of several."""
    number = sum(each["number"] for each in stages)
    law = stages[0]["law"]["name"]
    deviation = _span([each["noise_deviation"] for each in stages], digits=1)
    epsilon = _span([each["epsilon"] for each in stages], digits=4)
    return {
        "what": f"{number} {what}" if number > 1 else what,
        "finds": findings(what),
        "law": _LAWS.get(law, law),
        "deviation": deviation if is_in_rows(what) else "a score, not rows",
        "epsilon": f"{epsilon} each" if number > 1 else epsilon,
    }


def _span(numbers: Sequence[float], *, digits: int) -> str:
    """One number, or the two between which all are."""
    low, high = (f"{end(numbers):,.{digits}f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"
