"""The plan of a run, printed: its cost, the noise of every stage, the forecast, other modes."""

import io
import shutil
from typing import TYPE_CHECKING, Any

from deniable.cli.output import print_caution, print_list, print_text, print_wrapped
from deniable.cli.terminal import escape, print_line

if TYPE_CHECKING:
    from rich.table import Table

# Tables of one-way counts that are still listed one by one.
_MAX_LISTED_STAGES = 20
# Short names of noise laws.
_LAW_NAMES = {
    "rounded_gaussian": "Gaussian",
    "discrete_laplace": "Laplace",
    "truncated_geometric": "geometric",
}
# Columns of the widest table: up to that width, names of columns are not broken, even on a narrower
# terminal.
_MAX_TABLE_WIDTH = 140


def show_plan(report: dict[str, Any], *, caution: str = "", show_all: bool) -> None:
    """Print the plan of a run; with ``show_all``, also what other modes would cost."""
    asked, cost = report["asked"], report["cost"]
    print_text(
        f"Mode {report['mode']}, data use {report['data_use']}: ε = {asked['epsilon']}, "
        f"δ = {asked['delta']} requested; the run costs ε = {cost['epsilon']}, "
        f"δ = {cost['delta']}."
    )
    print_caution(caution)
    if report["asked"]["epsilon"] != "inf" and cost["epsilon"] > asked["epsilon"]:
        print_text("WARNING: the run costs more than requested; only the true cost is claimed.")
    _show_draft(report["draft"])
    if report["stages"]:
        print_wrapped("Noise of every stage, and its cost if it were alone:")
        print_table(_stage_table(report["stages"]))
    _show_forecast(report["forecast"])
    print_text(*([report["no_forecast"]] if "no_forecast" in report else []))
    if report["threshold"] is not None:
        print_text(
            f"A combination of values is copied only if its noisy count is at least "
            f"{report['threshold']} (k = {report['k']} plus the noise bound {report['r']})."
        )
    if report["test"] is not None:
        _show_test(report["test"])
    if show_all:
        print_wrapped(f"Cost in ε of N records, by mode (k = {report['k']}):")
        print_table(_mode_table(report["records"]))
    if show_all or report["mode"] == "randomized":
        print_wrapped("One candidate of the randomized test; a larger t lowers ε and raises δ:")
        print_table(_trade_off_table(report["trade_off"]))
    if not show_all:
        print_wrapped("Add --all to compare the modes.")


def _show_test(test: dict[str, Any]) -> None:
    print_text(
        f"Randomized test of {test['records']:,} records: k = {test['k']}, ε0 = "
        f"{test['epsilon0']:.4g}, t = {test['t']}, {test['dummies']} dummy seeds. Each costs "
        f"ε = {test['each']['epsilon']}, δ = {test['each']['delta']}; all of them "
        f"ε = {test['cost']['epsilon']}."
    )


def _show_draft(draft: dict[str, Any] | None) -> None:
    if draft is None:
        return
    print_text(
        "This covers the private draft of the schema, which alone costs "
        f"ε = {draft['epsilon']}, δ = {draft['delta']}."
    )
    if not draft["entries"]:
        print_text(
            'No entry of the schema says confirmed = "draft": an earlier version drafted it, or '
            'all entries were replaced. Write confirmed = "draft" where the draft is in use, so '
            "that its cost cannot be lost with the section [draft]."
        )


def _show_forecast(forecast: dict[str, Any] | None) -> None:
    if forecast is None:
        return
    heading, *sentences = forecast["text"]
    print_list(heading, sentences)
    print_text(*(f"WARNING: {warning}" for warning in forecast["warnings"]))


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
        add_row(
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
        add_row(
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
        add_row(table, str(row["t"]), f"{row['epsilon']:.4g}", f"{row['delta']:.3g}")
    return table


def print_table(table: "Table") -> None:
    """Print a table without colours; its cells are literal texts."""
    from rich.console import Console

    drawn = io.StringIO()
    console = Console(file=drawn, width=_MAX_TABLE_WIDTH, force_terminal=False, color_system=None)
    console.width = max(shutil.get_terminal_size().columns, console.measure(table).maximum)
    console.print(table)
    for line in drawn.getvalue().splitlines():
        print_line(line.rstrip())


def add_row(table: "Table", *cells: str) -> None:
    """Add a row of literal cells: no markup, no emoji codes, no control characters."""
    from rich.text import Text

    table.add_row(*(Text(escape(cell)) for cell in cells))
