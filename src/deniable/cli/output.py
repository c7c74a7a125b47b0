"""What commands print: progress bars, JSON, tables, paragraphs."""

import dataclasses
import io
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.cli.terminal import escape, escape_json, print_line, unescaped_errors

if TYPE_CHECKING:
    from rich.table import Table

    from deniable.drafting.draft import Draft
    from deniable.evaluation.metrics import Metrics
    from deniable.verification.claims import Check
    from deniable.workers import Progress

# Tables of one-way counts that are still listed one by one.
_MAX_LISTED_STAGES = 20
# Notes of a draft that are printed; the others are in the schema.
_MAX_NOTES_SHOWN = 10
# Short names of noise laws.
_LAW_NAMES = {
    "rounded_gaussian": "Gaussian",
    "discrete_laplace": "Laplace",
    "truncated_geometric": "geometric",
    "truncated_discrete_gaussian": "bounded Gaussian",
}
# Columns of the narrowest terminal that lines are wrapped for, and of the widest table: up to that
# width, names of columns are not broken, even on a narrower terminal.
_MIN_WIDTH = 20
_MAX_TABLE_WIDTH = 140


@contextmanager
def show_progress(*, quiet: bool) -> "Iterator[Progress]":
    """Show a progress bar for each stage on a terminal; nothing elsewhere, or if quiet."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        from deniable.workers import no_progress

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
    # The bars move the cursor, so their codes must reach the terminal; names of stages are escaped.
    console = Console(file=unescaped_errors())
    with ProgressBars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, of: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(escape(stage), total=None if of == 1 else of)
            bars.update(tasks[stage], completed=done, total=of if done or of > 1 else None)

        yield report


def program_name() -> str:
    """The command that starts this program, as the user called it."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("deniable", "__main__.py"):
        return "python -m deniable"
    is_not_on_path = called.stem == "deniable" and not shutil.which("deniable")
    return sys.argv[0] if is_not_on_path else "deniable"


def count_records(number: int) -> str:
    """The number of records in words: "1 record", "10,000 records"."""
    return "1 record" if number == 1 else f"{number:,} records"


def print_json(**content: Any) -> None:
    """Print one JSON object on a line of its own."""
    print_line(escape_json(content, getattr(sys.stdout, "encoding", None) or "utf-8"))


def print_text(*paragraphs: str) -> None:
    """Print paragraphs, wrapped to the width of the terminal, each with an empty line after it."""
    for paragraph in paragraphs:
        _print_wrapped(paragraph)
        print_line()


def print_list(heading: str, items: Iterable[str]) -> None:
    """Print a heading and a list below it, wrapped, with an empty line after them."""
    _print_wrapped(heading)
    for item in items:
        _print_wrapped(f"- {item}", indent="  ")
    print_line()


def _print_wrapped(text: str, *, indent: str = "") -> None:
    """Print a text literally, wrapped at spaces: names and paths are never cut.

    Args:
        text: The text.
        indent: Put before each line but the first.
    """
    width = max(_MIN_WIDTH, shutil.get_terminal_size().columns)
    lines = textwrap.wrap(
        escape(text),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        print_line(line)


def _print_table(table: "Table") -> None:
    """Print a table without colours; its cells are literal texts."""
    from rich.console import Console

    drawn = io.StringIO()
    console = Console(file=drawn, width=_MAX_TABLE_WIDTH, force_terminal=False, color_system=None)
    console.width = max(shutil.get_terminal_size().columns, console.measure(table).maximum)
    console.print(table)
    for line in drawn.getvalue().splitlines():
        print_line(line.rstrip())


def _add_row(table: "Table", *cells: str) -> None:
    """Add a row of literal cells: no markup, no emoji codes, no control characters."""
    from rich.text import Text

    table.add_row(*(Text(escape(cell)) for cell in cells))


def show_draft(draft: "Draft", out: Path, *, show_all: bool, quiet: bool, as_json: bool) -> None:
    """Print the result of ``init``: the open questions, and what to do next.

    Without ``show_all``, the ten most important ones; the schema lists all of them.
    """
    if as_json:
        cost = None if draft.cost is None else dataclasses.asdict(draft.cost)
        print_json(schema=str(out), notes=list(draft.notes), cost=cost)
    if quiet or as_json:
        return
    print_text(f"Draft in {out}")
    shown = draft.notes if show_all else draft.notes[:_MAX_NOTES_SHOWN]
    for note in shown:
        print_text(f"- {note}")
    if more := len(draft.notes) - len(shown):
        notes = "1 more note is" if more == 1 else f"{more} more notes are"
        print_text(f"{notes} at the top of {out}; init --all prints them all.")
    if draft.cost is not None:
        print_text("It was drafted with differential privacy: its cost is part of every total.")
    else:
        print_text(
            f"{out} was read off the table. It is as confidential as the table until you have "
            "checked each column and set confirmed = true."
        )
    print_text(f"Next: {program_name()} plan --schema {out}")


def show_metrics(metrics: "Metrics", out: Path) -> None:
    """Print the verdict of an evaluation, and where its report is."""
    if metrics.findings is not None:
        from deniable.evaluation.verdict import describe_relations

        verdict, relations = metrics.findings.verdict, metrics.findings.relations
        print_text(f"{verdict.grade.capitalize()}. {verdict.headline}")
        for sentence in () if relations is None else describe_relations(relations):
            _print_wrapped(f"- {sentence}", indent="  ")
        print_line()
        print_text("Confidential: the report is measured on real rows.")
    print_text(f"Report in {out}/report.html, numbers in {out}/metrics.json")


def show_plan(report: dict[str, Any], *, show_all: bool) -> None:
    """Print the plan of a run; with ``show_all``, also what other modes would cost."""
    asked, cost = report["asked"], report["cost"]
    print_text(
        f"Mode {report['mode']}, data use {report['data_use']}: ε = {asked['epsilon']}, "
        f"δ = {asked['delta']} requested; the run costs ε = {cost['epsilon']}, "
        f"δ = {cost['delta']}."
    )
    if report["asked"]["epsilon"] != "inf" and cost["epsilon"] > asked["epsilon"]:
        print_text("WARNING: the run costs more than requested; only the true cost is claimed.")
    if report["draft"] is not None:
        draft = report["draft"]
        print_text(
            f"The private draft of the schema has cost ε = {draft['epsilon']}, "
            f"δ = {draft['delta']}, part of this total."
        )
    if report["stages"]:
        _print_wrapped("Noise of every stage, and its cost if it were alone:")
        _print_table(_stage_table(report["stages"]))
    _show_forecast(report["forecast"])
    if report["threshold"] is not None:
        print_text(
            f"A combination of values is copied only if its noisy count is at least "
            f"{report['threshold']} (k = {report['k']} plus the noise bound {report['r']})."
        )
    if report["test"] is not None:
        test = report["test"]
        print_text(
            f"Randomized test of {test['records']:,} records: k = {test['k']}, ε0 = "
            f"{test['epsilon0']:.4g}, t = {test['t']}, {test['dummies']} dummy seeds. Each costs "
            f"ε = {test['each']['epsilon']}, δ = {test['each']['delta']}; all of them "
            f"ε = {test['cost']['epsilon']}."
        )
    if show_all:
        _print_wrapped(f"Cost in ε of N records, by mode (k = {report['k']}):")
        _print_table(_mode_table(report["records"]))
    if show_all or report["mode"] == "randomized":
        _print_wrapped("One candidate of the randomized test; a larger t lowers ε and raises δ:")
        _print_table(_trade_off_table(report["trade_off"]))
    if not show_all:
        _print_wrapped("Add --all to compare the modes.")


def _show_forecast(forecast: dict[str, Any] | None) -> None:
    if forecast is None:
        return
    heading, *sentences = forecast["text"]
    print_list(heading, sentences)
    print_text(*(f"WARNING: {warning}" for warning in forecast["warnings"]))


def show_verification(
    checks: "Iterable[Check]", unknown: Iterable[str], *, place: str, accepted: bool = False
) -> None:
    """Print each check as PASS, FAIL or INEXACT, what cannot be checked, and the verdict.

    Args:
        checks: The checks.
        unknown: What cannot be checked.
        place: The path of the release.
        accepted: Whether inexact checks, of a release of another platform, are accepted.
    """
    failed = inexact = total = 0
    for check in checks:
        total, failed = total + 1, failed + (not check.passed)
        inexact += check.passed and not check.exact
        result = ("PASS" if check.exact else "INEXACT") if check.passed else "FAIL"
        # The indent keeps a text from a manifest from looking like a line of this report.
        _print_wrapped(f"{result}  {check.name}: {check.explanation}", indent=" " * 6)
    print_line()
    _print_wrapped("Not checked, because files alone cannot show it:")
    for sentence in unknown:
        _print_wrapped(f"  - {sentence}", indent=" " * 4)
    if failed:
        print_line()
        _print_wrapped(f"FAIL: {failed} of {total} checks failed; do not trust {place}.")
    elif inexact:
        print_line()
        _print_wrapped(
            f"{inexact} of {total} checks of {place} have a tolerance for another platform"
            f"{', which was accepted' if accepted else ''}."
        )
        # On a line of its own, so that it is the last one however long the path is.
        _print_wrapped(f"{'PASS, but ' if accepted else ''}NOT VERIFIED EXACTLY")
    else:
        print_line()
        _print_wrapped(f"PASS: all {total} checks passed; {place} is what its manifest states.")


def _stage_table(stages: list[dict[str, Any]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for name in ("stage", "cells per row", "noise", "std. dev.", "ε if alone"):
        is_name = name == "stage"
        table.add_column(
            name, justify="left" if is_name else "right", no_wrap=not is_name, overflow="fold"
        )
    for row in _group_one_way(stages):
        several = row["number"] > 1
        _add_row(
            table,
            f"{row['number']} {row['what']}" if several else row["what"],
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
        _add_row(
            table,
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
        _add_row(table, str(row["t"]), f"{row['epsilon']:.4g}", f"{row['delta']:.3g}")
    return table
