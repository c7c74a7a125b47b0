"""The tables and figures of a reproduction, beside what the paper reports."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deniable.evaluation.confidence import spread
from deniable.evaluation.likeness import percent
from deniable.evaluation.markup import Markup, figure, paragraph, section, table, tag
from deniable.evaluation.plots import draw_boxes, draw_dots, draw_lines
from deniable.evaluation.recipes import LEARNERS, OMEGAS, RELEASES, SIDES, omega_text

# A measured value by its place: (table, row, side), then one list a run.
Cells = Mapping[str, Any]

HEAD = ("row", "column", "paper", "authors' formulas", "ours", "difference", "least", "greatest")

_COLUMNS = {
    "table3": [f"{what}, {name}" for what in ("accuracy", "agreement") for name in LEARNERS],
    "table4": ["logistic regression", "support vector machine"],
    "table5": ["forest", "tree"],
}
TITLES = {
    "table3": "Table 3: classifiers trained on released records",
    "table4": "Table 4: linear classifiers, private by themselves or trained on a release",
    "table5": "Table 5: telling released from real",
}
_SIDE_TITLES = {"authors": "authors' formulas", "ours": "ours"}


def paper_numbers() -> dict[str, Any]:
    """Return what the paper reports, by table and row."""
    text = Path(__file__).with_name("paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def rows_of(name: str, cells: Cells) -> list[list[object]]:
    """Return one table as rows of ``HEAD``: the mean over runs, and the spread of ours."""
    paper = paper_numbers()[name]
    made = []
    names = ["reals", *RELEASES, "default"]
    if name == "table4":
        names[1:1] = ["output perturbation", "objective perturbation"]
    for row in names:
        by_side = {str(side): _runs(cells, name, row, side) for side in SIDES}
        width = max((len(run) for runs in by_side.values() for run in runs), default=0)
        for at in range(width):
            made.append(_row(name, row, at, paper.get(row), by_side))
    return made


def _row(
    name: str, row: str, at: int, paper: Sequence[float] | None, by_side: Mapping[str, Any]
) -> list[object]:
    reported = None if paper is None else paper[at]
    means = {side: _mean(run[at] for run in runs) for side, runs in by_side.items()}
    ours = [run[at] for run in by_side["ours"]]
    difference = None
    if reported is not None and means["ours"] is not None:
        difference = means["ours"] - reported
    least, greatest = spread(ours) if ours else (None, None)
    return [
        row, _COLUMNS[name][at], reported, means["authors"], means["ours"], difference, least,
        greatest,
    ]  # fmt: skip


def _runs(cells: Cells, name: str, row: str, side: str) -> list[list[float]]:
    """Return what every run measured for one row of one table."""
    if row in ("output perturbation", "objective perturbation"):
        return [c["private"][row] for c in _of(cells, "reals") if row in c.get("private", {})]
    if row == "reals":
        return [c[name] for c in _of(cells, "reals") if c[name]]
    return [c[name] for c in _of(cells, f"release {row} {side}") if c[name]]


def _of(cells: Cells, start: str) -> Iterable[Mapping[str, Any]]:
    return (cell for name, cell in cells.items() if name.startswith(f"{start} run"))


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None


def draw_figures(cells: Cells) -> dict[str, tuple[Markup, str]]:
    """Return the figures there are cells for, by file name, with what they show."""
    figures: dict[str, tuple[Markup, str]] = {}
    if "guesses" in cells:
        figures |= _draw_accuracy(cells)
    for number, (width, what) in enumerate(
        {"attributes": "single columns", "pairs": "pairs of columns"}.items(), start=3
    ):
        for side in SIDES:
            boxes = _boxes(cells, width, side)
            words = f"Figure {number}, {_SIDE_TITLES[side]}: distance from real rows of {what}."
            figures[f"figure{number}-{side}"] = draw_boxes(boxes), words
    if "pace authors" in cells and "pace ours" in cells:
        figures["figure5"] = _draw_pace(cells)
    for side in SIDES:
        if f"passing {side}" in cells:
            figures[f"figure6-{side}"] = _draw_passing(cells, side)
    return figures


def _draw_accuracy(cells: Cells) -> dict[str, tuple[Markup, str]]:
    guesses = cells["guesses"]
    names = [guess["attribute"] for guess in guesses]
    marginals = np.array([guess["marginals"] for guess in guesses])
    drawn = {}
    for side in SIDES:
        models = {e: np.array(cells[f"models {side} {e}"]["mean"]) for e in ("inf", "1", "0.1")}
        better = {
            _model_title(e): ((found - marginals) / np.maximum(1 - marginals, 1e-12)).tolist()
            for e, found in models.items()
        }
        accuracy = {
            "random forest": [guess["forest"] for guess in guesses],
            "model, no noise": models["inf"].tolist(),
            "commonest value": marginals.tolist(),
            "guessing": [guess["guessing"] for guess in guesses],
        }
        words = f"Figure 1, {_SIDE_TITLES[side]}: share of the marginals' errors that is avoided."
        drawn[f"figure1-{side}"] = draw_dots(names, better), words
        words = f"Figure 2, {_SIDE_TITLES[side]}: how often an attribute is told from the others."
        drawn[f"figure2-{side}"] = draw_dots(names, accuracy), words
    return drawn


def _model_title(epsilon: str) -> str:
    return "no noise" if epsilon == "inf" else f"ε = {epsilon}"


def _boxes(
    cells: Cells, width: str, side: str
) -> dict[str, tuple[float, float, float, float, float]]:
    """Return the mean over runs of each release's box."""
    boxes = {}
    for row in (*OMEGAS, "default", "marginals", "reals"):
        start = "reals" if row == "reals" else f"release {row} {side}"
        runs = [cell["boxes"][width] for cell in _of(cells, start)]
        if runs:
            low, q1, median, q3, high = np.mean(runs, axis=0).tolist()
            boxes[row_title(row, cells)] = (low, q1, median, q3, high)
    return boxes


def row_title(row: str, cells: Cells) -> str:
    """Return what a row is called in print: an ω by its number, where that is known."""
    if row not in OMEGAS:
        return row
    if "facts" not in cells:
        return f"ω = {row}"
    omega = omega_text(row, len(cells["facts"]["attributes"]))
    return f"ω = {omega.replace('-', ' to ')}"


def _draw_pace(cells: Cells) -> tuple[Markup, str]:
    lines = {}
    for side in SIDES:
        for what in ("learning", "generation"):
            found = [(one["records"], one[what]) for one in cells[f"pace {side}"]]
            lines[f"{what}, {_SIDE_TITLES[side]}"] = found
    drawn = draw_lines(lines, across="records", up="seconds", points_only=True)
    return drawn, "Figure 5: time to learn and to generate, one mark a run."


def _draw_passing(cells: Cells, side: str) -> tuple[Markup, str]:
    lines = {
        row_title(row, cells): [(one["k"], one["passed"]) for one in found]
        for row, found in cells[f"passing {side}"].items()
    }
    how = {
        "authors": "γ = 2, ω hidden, at most 100,000 seeds checked",
        "ours": "each under its own ω, all seeds counted",
    }[side]
    words = f"Figure 6, {_SIDE_TITLES[side]}: share of candidates that pass ({how})."
    return draw_lines(lines, across="k", up="pass", as_percent=True), words


def body(cells: Cells, figures: Mapping[str, tuple[Markup, str]], words: str) -> list[Markup]:
    """Return the report of a reproduction."""
    drawn = [figure(picture, caption) for picture, caption in figures.values()]
    return [
        tag("h1", "The paper's experiments, made again"),
        paragraph(words),
        paragraph(
            "Measured on real rows, without noise: confidential unless the table is public.",
            class_="warning",
        ),
        _about_table(cells.get("facts")),
        *(section(TITLES[name], _printed(rows_of(name, cells), cells)) for name in TITLES),
        section("Figures", tag("div", drawn, class_="many")),
    ]


def _about_table(facts: Mapping[str, Any] | None) -> Markup:
    if facts is None:
        return section("Table 2: the table")
    reported = paper_numbers()["table2"]
    rows = [
        [name, _figure(reported.get(name)), _figure(facts[name])]
        for name in ("records", "possible", "unique", "unique_share")
    ]
    return section(
        "Table 2: the table", table(["", "paper", "here"], rows), _attributes(facts["attributes"])
    )


def _attributes(attributes: Sequence[Mapping[str, Any]]) -> Markup:
    rows = [[a["name"], a["kind"], f"{a['size']:,}"] for a in attributes]
    return table(["name", "type", "values"], rows, left=2, caption="Table 1: attributes")


def _figure(value: object) -> str:
    if isinstance(value, float):
        return percent(value)
    return "" if value is None else f"{value:,}"


def _printed(rows: Sequence[Sequence[Any]], cells: Cells) -> Markup:
    shown = []
    for row, column, paper, authors, ours, difference, least, greatest in rows:
        shown.append(
            [
                row_title(row, cells),
                column,
                *(_figure(value) for value in (paper, authors, ours)),
                "" if difference is None else f"{100 * difference:+.1f}",
                "" if least is None else f"{100 * least:.1f} to {100 * greatest:.1f}",
            ]
        )
    head = ["row", "column", "paper", "authors' formulas", "ours", "difference", "runs of ours"]
    return table(head, shown, left=2)
