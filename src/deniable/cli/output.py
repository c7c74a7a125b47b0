"""What commands print: progress bars, JSON, tables, paragraphs."""

import dataclasses
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from deniable.drafting.draft import Draft
    from deniable.progress import Progress
    from deniable.release.manifest import Certificate
    from deniable.release.release import Release
    from deniable.verification.claims import Check

# Tables of one-way counts that are still listed one by one.
_MAX_LISTED_STAGES = 20
# Short names of noise laws.
_LAW_NAMES = {
    "rounded_gaussian": "Gaussian",
    "discrete_laplace": "Laplace",
    "truncated_geometric": "geometric",
    "truncated_discrete_gaussian": "bounded Gaussian",
}


@contextmanager
def show_progress(*, quiet: bool) -> "Iterator[Progress]":
    """Show a progress bar for each stage on a terminal; nothing elsewhere, or if quiet."""
    if quiet or not sys.stderr.isatty():
        from deniable.progress import no_progress

        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, of: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=None if of == 1 else of)
            bars.update(tasks[stage], completed=done, total=of if done or of > 1 else None)

        yield report


def program_name() -> str:
    """The command that starts this program, as the user called it."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("deniable", "__main__.py"):
        return "python -m deniable"
    is_not_on_path = called.stem == "deniable" and not shutil.which("deniable")
    return sys.argv[0] if is_not_on_path else "deniable"


def summarize_claim(certificate: "Certificate") -> dict[str, Any]:
    """Summarize the guarantee of a release, for JSON."""
    from deniable.release.manifest import json_number

    return {
        "mode": certificate.mode,
        "epsilon": json_number(certificate.cost.epsilon),
        "delta": certificate.cost.delta,
        "guarantee": certificate.sentence,
    }


def count_records(number: int) -> str:
    """The number of records in words: "1 record", "10,000 records"."""
    return "1 record" if number == 1 else f"{number:,} records"


def print_json(**content: Any) -> None:
    """Print one JSON object on a line of its own."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def print_text(*paragraphs: str) -> None:
    """Print paragraphs, wrapped to the width of the terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for paragraph in paragraphs:
        console.print(paragraph + "\n")


def show_draft(draft: "Draft", out: Path, *, quiet: bool, as_json: bool) -> None:
    """Print the result of ``init``: the open questions, and what to do next."""
    if as_json:
        cost = None if draft.cost is None else dataclasses.asdict(draft.cost)
        print_json(schema=str(out), notes=list(draft.notes), cost=cost)
    if quiet or as_json:
        return
    print_text(f"Draft in {out}")
    for note in draft.notes:
        print_text(f"- {note}")
    if draft.cost is not None:
        print_text("It was drafted with differential privacy: its cost is part of every total.")
    else:
        print_text(
            f"{out} was read off the table. It is as confidential as the table until you have "
            "checked each column and set confirmed = true."
        )
    print_text(f"Next: {program_name()} plan --schema {out}")


def show_release(
    release: "Release", out: Path, records: int, *, quiet: bool, as_json: bool
) -> None:
    """Print the result of a run: the guarantee, and what may be published."""
    if as_json:
        print_json(records=records, folder=str(out), **summarize_claim(release.certificate))
    elif not quiet:
        print_text(count_records(records) + f" in {out}", release.guarantee)
        if release.certificate.claims_privacy:
            print_text(
                f"Publish {out}/. Keep {out}.internal/ confidential. {out}/manifest.json lists "
                f"the costs; {program_name()} verify {out} checks them."
            )


def show_plan(report: dict[str, Any], *, show_all: bool) -> None:
    """Print the plan of a run; with ``show_all``, also what other modes would cost."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    asked, cost = report["asked"], report["cost"]
    console.print(
        f"Mode {report['mode']}, data use {report['data_use']}: ε = {asked['epsilon']}, "
        f"δ = {asked['delta']} requested; the run costs ε = {cost['epsilon']}, "
        f"δ = {cost['delta']}.\n"
    )
    if report["stages"]:
        console.print("Noise of every stage, and its cost alone:")
        console.print(_stage_table(report["stages"]))
    if report["threshold"] is not None:
        console.print(
            f"A prefix of seeds is kept if at least k = {report['k']} rows share it and its noisy "
            f"count is at least k + r = {report['threshold']} (noise: ± {report['r']}).\n"
        )
    if report["test"] is not None:
        test = report["test"]
        console.print(
            f"Randomized test of {test['records']:,} records: k = {test['k']}, ε0 = "
            f"{test['epsilon0']:.4g}, t = {test['t']}, {test['dummies']} dummy seeds. Each costs "
            f"ε = {test['each']['epsilon']}, δ = {test['each']['delta']}; all of them "
            f"ε = {test['cost']['epsilon']}.\n"
        )
    if show_all:
        console.print(f"Cost in ε of N records, by mode (k = {report['k']}):")
        console.print(_mode_table(report["records"]))
    if show_all or report["mode"] == "randomized":
        console.print("One candidate of the randomized test; a larger t lowers ε and raises δ:")
        console.print(_trade_off_table(report["trade_off"]))
    if not show_all:
        console.print("Add --all to compare the modes.")


def show_verification(checks: "Iterable[Check]", unknown: Iterable[str], *, place: str) -> None:
    """Print each check as PASS or FAIL, what cannot be checked, and the verdict."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    failed = total = 0
    for check in checks:
        total, failed = total + 1, failed + (not check.passed)
        console.print(f"{'PASS' if check.passed else 'FAIL'}  {check.name}: {check.explanation}")
    console.print("\nNot checked, because files alone cannot show it:")
    for sentence in unknown:
        console.print(f"  - {sentence}")
    if failed:
        console.print(f"\nFAIL: {failed} of {total} checks failed; do not trust {place}.")
    else:
        console.print(f"\nPASS: all {total} checks passed; {place} is what its manifest states.")


def _stage_table(stages: list[dict[str, Any]]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE)
    for name in ("stage", "cells a row moves", "noise", "sd", "ε alone"):
        table.add_column(name, justify="left" if name == "stage" else "right", no_wrap=True)
    for row in _group_one_way(stages):
        several = row["number"] > 1
        table.add_row(
            Text(f"{row['number']} {row['what']}" if several else row["what"]),
            f"{row['moved'] * row['number']:,}",
            _LAW_NAMES.get(row["law"]["name"], row["law"]["name"]),
            row.get("deviations", f"{row['noise_deviation']:,.1f}"),
            row.get("epsilons", f"{row['epsilon']:.4f}{' each' if several else ''}"),
        )
    return table


def _group_one_way(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Combine the one-way tables of many attributes into one row."""
    values = [row for row in stages if row["what"].startswith("values of ")]
    if len(values) <= _MAX_LISTED_STAGES:
        return stages
    deviations = [row["noise_deviation"] for row in values]
    epsilons = [row["epsilon"] for row in values]
    combined = {
        **values[0],
        "what": "tables of values",
        "number": len(values),
        "deviations": f"{min(deviations):,.0f}–{max(deviations):,.0f}",
        "epsilons": f"{min(epsilons):.3f}–{max(epsilons):.3f}",
    }
    return [combined, *(row for row in stages if row not in values)]


def _mode_table(rows: list[dict[str, Any]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    table.add_column("N", justify="right")
    for mode in ("one-shot", "seedless", "randomized", "tested"):
        table.add_column(mode, justify="right")
    for row in rows:
        randomized = row["randomized"]
        table.add_row(
            f"{row['records']:,}",
            str(row["one-shot"]),
            str(row["seedless"]),
            "impossible" if randomized is None else f"{randomized:,.4g} + model",
            "seeds not covered",
        )
    return table


def _trade_off_table(rows: list[dict[str, Any]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for name in ("t", "ε", "δ"):
        table.add_column(name, justify="right")
    step = max(1, len(rows) // 7)
    for row in rows[::step]:
        table.add_row(str(row["t"]), f"{row['epsilon']:.4g}", f"{row['delta']:.3g}")
    return table
