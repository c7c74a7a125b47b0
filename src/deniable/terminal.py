"""What the command line draws: tables that fit a terminal."""

from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from deniable.release.questions import Check


def show_plan(answer: dict[str, Any]) -> None:
    """Print what ``deniable plan`` found."""
    console = Console(highlight=False)
    asked, cost = answer["asked"], answer["cost"]
    console.print(
        f"Mode {answer['mode']}, data use {answer['data_use']}: asked for ε = {asked['epsilon']}, "
        f"δ = {asked['delta']}; will cost ε = {cost['epsilon']}, δ = {cost['delta']}.\n"
    )
    if answer["stages"]:
        console.print("Noise of every stage, and what it would cost alone:")
        console.print(_stages(answer["stages"]))
    if answer["threshold"] is not None:
        console.print(
            f"A prefix of seeds is kept where at least k = {answer['k']} rows share it and its "
            f"noisy count is at least k + r = {answer['threshold']} (noise: ± {answer['r']}).\n"
        )
    if answer["test"] is not None:
        test = answer["test"]
        console.print(
            f"Randomized test of {test['records']:,} records: k = {test['k']}, ε0 = "
            f"{test['epsilon0']:.4g}, t = {test['t']}, {test['dummies']} dummy seeds; each costs "
            f"ε = {test['each']['epsilon']}, δ = {test['each']['delta']}, all of them "
            f"ε = {test['cost']['epsilon']}.\n"
        )
    console.print(f"What N records cost in ε, by mode (k = {answer['k']}):")
    console.print(_modes(answer["records"]))
    console.print("One candidate of the randomized test; a larger t lowers ε and raises δ:")
    console.print(_trade_off(answer["trade_off"]))


def show_report(checks: Iterable[Check], unknown: Iterable[str]) -> None:
    """Print what ``deniable verify`` asked, and what it could not ask."""
    console = Console(highlight=False, markup=False)
    for check in checks:
        console.print(f"{'yes' if check.passed else 'NO '}  {check.name}: {check.explanation}")
    console.print("\nWhat this cannot tell:")
    for sentence in unknown:
        console.print(f"  - {sentence}")


# Attributes that still get a row each.
_MOST_ROWS = 20
# How laws are called where there is little room.
_LAWS = {
    "rounded_gaussian": "Gaussian",
    "discrete_laplace": "Laplace",
    "truncated_geometric": "geometric",
    "truncated_discrete_gaussian": "bounded Gaussian",
}


def _stages(stages: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE)
    for name in ("stage", "a row moves", "noise of each", "sd", "ε alone"):
        table.add_column(name, justify="left" if name == "stage" else "right", no_wrap=True)
    for row in _gathered(stages):
        several = row["number"] > 1
        table.add_row(
            f"{row['number']} {row['what']}" if several else row["what"],
            f"{row['moved'] * row['number']:,}",
            _LAWS.get(row["law"]["name"], row["law"]["name"]),
            row.get("deviations", f"{row['noise_deviation']:,.1f}"),
            row.get("epsilons", f"{row['epsilon']:.4f}{' each' if several else ''}"),
        )
    return table


def _gathered(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages with the values of many attributes in one row."""
    values = [row for row in stages if row["what"].startswith("values of ")]
    if len(values) <= _MOST_ROWS:
        return stages
    deviations = [row["noise_deviation"] for row in values]
    epsilons = [row["epsilon"] for row in values]
    together = {
        **values[0],
        "what": "tables of values",
        "number": len(values),
        "deviations": f"{min(deviations):,.0f}–{max(deviations):,.0f}",
        "epsilons": f"{min(epsilons):.3f}–{max(epsilons):.3f}",
    }
    return [together, *(row for row in stages if row not in values)]


def _modes(rows: list[dict[str, Any]]) -> Table:
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
            "no ε will do" if randomized is None else f"{randomized:,.4g} + model",
            "not for seeds",
        )
    return table


def _trade_off(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE)
    for name in ("t", "ε", "δ"):
        table.add_column(name, justify="right")
    step = max(1, len(rows) // 7)
    for row in rows[::step]:
        table.add_row(str(row["t"]), f"{row['epsilon']:.4g}", f"{row['delta']:.3g}")
    return table
