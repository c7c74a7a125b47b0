"""Draw the plots of docs/utility.md from the tables of benchmarks/utility.md, as SVG.

python tools/draw_plots.py
"""

import re
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path

from draw_pictures import FOLDER, picture, text

PAGE = Path(__file__).parents[1] / "benchmarks" / "utility.md"
_KINDS = ("a", "c", "b")


def rows_under(heading: str, first_cell: str) -> list[list[str]]:
    """Return the rows of the table below a heading whose head begins with ``first_cell``."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(heading)
    head = next(i for i in range(start, len(lines)) if lines[i].startswith(f"| {first_cell}"))
    rows: list[list[str]] = []
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip(" *") for cell in line.strip("|").split("|")])
    return rows


def number(cell: str) -> float | None:
    """Return the first number of a cell, or the mean of two; None without a number."""
    found = [float(each) for each in re.findall(r"\d*\.\d+", cell.partition("±")[0])]
    return sum(found) / len(found) if found else None


Bar = tuple[str, list[float | None]]


def bars(groups: Iterable[Bar], *, names: Iterable[str], most: float, title: str, note: str) -> str:
    """Draw groups of horizontal bars; each group has a label, each bar a colour and its number."""
    parts, y = [], 46.0
    for at, name in enumerate(names):
        parts.append(
            f'<rect x="{210 + 165 * at}" y="14" width="12" height="12" class="{_KINDS[at]}"/>'
        )
        parts.append(text(228 + 165 * at, 25, name, kind="soft"))
    for label, values in groups:
        shown = [(at, value) for at, value in enumerate(values) if value is not None]
        parts.append(text(200, y + 8 * len(shown) + 3, label, anchor="end"))
        for at, value in shown:
            width = 440 * min(value / most, 1)
            parts.append(
                f'<rect x="210" y="{y:g}" width="{width:.1f}" height="13" class="{_KINDS[at]}"/>'
            )
            parts.append(text(216 + width, y + 11, f"{value:.3g}", kind="soft"))
            y += 16
        y += 12
    parts.append(text(10, y + 12, note, kind="soft"))
    return picture(720, int(y) + 24, title, parts)


def draw_relations() -> str:
    """Kept relations of each table at ε = 1."""
    groups = [
        (row[0].partition(" (")[0], [number(cell) for cell in row[1:4]])
        for row in rows_under("## Relations", "| V")
    ]
    return bars(
        groups,
        names=("association", "rank correlation", "group means"),
        most=1.0,
        title="Share of the relations that was kept, by table",
        note="Share of what the training rows keep on test rows; 1 is all. ε = 1.",
    )


def _tool(cell: str) -> str:
    return re.split(r"[ ,(]", cell)[0].replace("one-shot", "ours").strip("*")


def draw_tools() -> str:
    """Distance of pairs of columns, for deniable and other tools."""
    measured: list[tuple[str, str, float | None]] = []
    for row in rows_under("## Other tools on other tables", "ACS-13 "):
        measured.append((f"ACS-13, ε = {row[1]}", _tool(row[0]), number(row[3])))
    table = ""
    for row in rows_under("## Other tools on other tables", "other tables"):
        table = row[0].partition(" (")[0] or table
        measured.append((f"{table}, ε = 1", _tool(row[1]), number(row[3])))
    groups: list[Bar] = []
    for label, tools in groupby(measured, key=lambda each: each[0]):
        found = {tool: value for _, tool, value in tools}
        others = [value for tool, value in found.items() if tool != "ours" and value is not None]
        groups.append((label, [found["ours"], min(others)]))
    return bars(
        groups,
        names=("deniable", "the best other tool measured"),
        most=max(value for _, values in groups for value in values if value is not None),
        title="Mean distance of pairs of columns, deniable and the best other tool measured",
        note="Mean total variation distance of pairs of columns to held-out rows; less is better.",
    )


PLOTS: dict[str, Callable[[], str]] = {"relations.svg": draw_relations, "tools.svg": draw_tools}

if __name__ == "__main__":
    for name, draw in PLOTS.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8", newline="\n")
