"""Tables and figures of a reproduction, as rows of numbers next to the paper's (Sec. 4 and 6).

Our numbers come from the measured cells, the paper's from paper.toml.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deniable.evaluation.intervals import spread
from deniable.reproduction.experiments import (
    OMEGA_ROWS,
    PAPER_LEARNERS,
    PERTURBATIONS,
    RELEASE_ROWS,
    SIDES,
    omega_text,
)

# Measured cells by name: "facts", "passing ours", "release m-1 authors run 0".
Cells = Mapping[str, Any]

EPSILONS = ("inf", "1", "0.1")
SIDE_TITLES = {"authors": "authors' formulas", "ours": "ours"}
SCAN_TITLE = "authors' formulas, by scan"
_RUN_TIME_TITLES = {f"pace {side}": SIDE_TITLES[side] for side in SIDES} | {"pace scan": SCAN_TITLE}

TABLE1_HEADER = ("paper", "type", "here", "type", "values in the paper", "values here")
TABLE_HEADER = (
    "row",
    "column",
    "paper",
    "authors' formulas",
    "ours",
    "difference",
    "least",
    "greatest",
)
TABLE_TITLES = {
    "table3": "Table 3: classifiers trained on released records",
    "table4": "Table 4: linear classifiers, with their own privacy or trained on a release",
    "table5": "Table 5: distinguishability of released and real records",
}
_TABLE_COLUMNS = {
    "table3": [f"{what}, {name}" for what in ("accuracy", "agreement") for name in PAPER_LEARNERS],
    "table4": ["logistic regression", "support vector machine"],
    "table5": ["forest", "tree"],
}


def paper_numbers() -> dict[str, Any]:
    """Read the paper's numbers, by table and row."""
    text = Path(__file__).with_name("paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def table_rows(name: str, cells: Cells) -> list[list[Any]]:
    """Build one table as rows of ``TABLE_HEADER``: means over runs, and the range of ours."""
    paper = paper_numbers()[name]
    rows = []
    names = ["reals", *RELEASE_ROWS, "default"]
    if name == "table4":
        names[1:1] = PERTURBATIONS
    for row in names:
        by_side = {str(side): run_values(cells, name, row, side) for side in SIDES}
        width = max((len(run) for runs in by_side.values() for run in runs), default=0)
        for at in range(width):
            rows.append(_table_row(name, row, at, paper.get(row), by_side))
    return rows


def _table_row(
    name: str, row: str, at: int, paper: Sequence[float] | None, by_side: Mapping[str, Any]
) -> list[Any]:
    reported = None if paper is None else paper[at]
    means = {side: _mean(run[at] for run in runs) for side, runs in by_side.items()}
    ours = [run[at] for run in by_side["ours"]]
    difference = None
    if reported is not None and means["ours"] is not None:
        difference = means["ours"] - reported
    least, greatest = spread(ours) if ours else (None, None)
    return [
        row, _TABLE_COLUMNS[name][at], reported, means["authors"], means["ours"], difference, least,
        greatest,
    ]  # fmt: skip


def run_values(cells: Cells, name: str, row: str, side: str) -> list[list[float]]:
    """Return the values of every run for one row of one table."""
    if row in PERTURBATIONS:
        return [
            c["private"][row] for c in _run_cells(cells, "reals") if row in c.get("private", {})
        ]
    if row == "reals":
        return [c[name] for c in _run_cells(cells, "reals") if c[name]]
    return [c[name] for c in _run_cells(cells, f"release {row} {side}") if c[name]]


def penalty_rows(cells: Cells) -> list[list[Any]]:
    """List the λ of the private classifiers of Table 4, run by run."""
    runs = [
        c["private"]["penalty"]
        for c in _run_cells(cells, "reals")
        if "penalty" in c.get("private", {})
    ]
    return [
        [name, ", ".join(f"{of:g}" for of in each)]
        for name, *each in zip(_TABLE_COLUMNS["table4"], *runs, strict=True)
        if runs
    ]


def mean_values(cells: Cells, name: str, row: str, side: str) -> list[float]:
    """Average one row of one table over runs; empty if it was not measured."""
    runs = run_values(cells, name, row, side)
    return np.mean(runs, axis=0).tolist() if runs else []


def _run_cells(cells: Cells, start: str) -> Iterable[Mapping[str, Any]]:
    return (cell for name, cell in cells.items() if name.startswith(f"{start} run"))


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None


def row_title(row: str, cells: Cells) -> str:
    """Return the printed title of a row, with the value of ω if the attributes are known."""
    if row not in OMEGA_ROWS:
        return "our default" if row == "default" else row
    if "facts" not in cells:
        return f"ω = {row}"
    omega = omega_text(row, len(cells["facts"]["attributes"]))
    return f"ω = {omega.replace('-', ' to ')}"


def improvements(cells: Cells, side: str) -> dict[str, list[float]]:
    """Compute Figure 1: relative improvement over marginals of each attribute, by ε."""
    marginals = np.array([guess["marginals"] for guess in cells["guesses"]])
    wrong = np.maximum(1 - marginals, 1e-12)
    models = {e: np.array(cells[f"models {side} {e}"]["mean"]) for e in EPSILONS}
    return {e: ((found - marginals) / wrong).tolist() for e, found in models.items()}


def mean_boxes(
    cells: Cells, width: str, side: str
) -> dict[str, tuple[float, float, float, float, float]]:
    """Compute Figure 3 or 4: the box plot of each row, averaged over runs."""
    found = {}
    for row in (*OMEGA_ROWS, "default", "marginals", "reals"):
        start = "reals" if row == "reals" else f"release {row} {side}"
        runs = [cell["boxes"][width] for cell in _run_cells(cells, start) if width in cell["boxes"]]
        if runs:
            low, q1, median, q3, high = np.mean(runs, axis=0).tolist()
            found[row] = (low, q1, median, q3, high)
    return found


def timed_runs(cells: Cells) -> dict[str, list[Mapping[str, Any]]]:
    """Return the timed runs of Figure 5, by method."""
    return {
        title: cells[name]["instances"] for name, title in _RUN_TIME_TITLES.items() if name in cells
    }


def figure_rows(cells: Cells) -> dict[str, list[list[Any]]]:
    """Return the data of each figure, by file name; the first row is the header."""
    found: dict[str, list[list[Any]]] = {}
    if "guesses" in cells:
        found |= {"figure1": _figure1(cells), "figure2": _figure2(cells)}
    for name, width in (("figure3", "attributes"), ("figure4", "pairs")):
        head = ["row", "side", "least", "lower quartile", "median", "upper quartile", "greatest"]
        found[name] = [head] + [
            [row_title(row, cells), SIDE_TITLES[side], *five]
            for side in SIDES
            for row, five in mean_boxes(cells, width, side).items()
        ]
    found["figure5"] = [["side", "records", "seconds to learn", "seconds to generate"]] + [
        [title, run["records"], run["learning"], run["generation"]]
        for title, instances in timed_runs(cells).items()
        for run in instances
    ]
    if all(f"passing {side}" in cells for side in SIDES):
        found["figure6"] = _figure6(cells)
    return found


def model_title(epsilon: str) -> str:
    """Return the title of a model: its ε."""
    return "no noise" if epsilon == "inf" else f"ε = {epsilon}"


def _figure1(cells: Cells) -> list[list[Any]]:
    columns = {
        f"{SIDE_TITLES[side]}, {model_title(e)}": values
        for side in SIDES
        for e, values in improvements(cells, side).items()
    }
    names = [guess["attribute"] for guess in cells["guesses"]]
    rows = [[name, *values] for name, *values in zip(names, *columns.values(), strict=True)]
    return [["attribute", *columns], *rows]


def _figure2(cells: Cells) -> list[list[Any]]:
    models = [cells[f"models {side} inf"]["mean"] for side in SIDES]
    head = ["attribute", "guessing", "marginals", "forest"]
    rows = [
        [*(guess[name] for name in head), *of]
        for guess, *of in zip(cells["guesses"], *models, strict=True)
    ]
    return [[*head, *(f"model, {SIDE_TITLES[side]}" for side in SIDES)], *rows]


def _figure6(cells: Cells) -> list[list[Any]]:
    ks = [rate["k"] for rate in cells["passing ours"]["m"]]
    return [["row", "side", *(f"k = {k}" for k in ks)]] + [
        [row_title(row, cells), SIDE_TITLES[side], *(rate["passed"] for rate in found)]
        for side in SIDES
        for row, found in cells[f"passing {side}"].items()
    ]


def run_time_rows(cells: Cells) -> list[list[Any]]:
    """Summarise Figure 5: cores, runs, records, median seconds to learn, records per second."""
    rows = []
    for name, title in _RUN_TIME_TITLES.items():
        if name in cells:
            instances = cells[name]["instances"]
            learning = float(np.median([run["learning"] for run in instances]))
            rate = float(np.median([run["records"] / run["generation"] for run in instances]))
            total = sum(run["records"] for run in instances)
            shape = [cells[name]["cores"], len(instances), total]
            rows.append([title, *shape, f"{learning:.2f}", round(rate)])
    return rows


def setup_rows(cells: Cells) -> list[list[Any]]:
    """List the setup: name, value in the paper (Sec. 6.1), value of this run."""
    here, paper = cells["setup"], paper_numbers()["setup"]
    return [[name, paper.get(name, ""), value] for name, value in here.items()]


def fact_rows(cells: Cells) -> list[list[Any]]:
    """List the facts of Table 2: name, value in the paper, value of this table."""
    facts, paper = cells["facts"], paper_numbers()["table2"]
    return [[name.replace("_", " "), reported, facts.get(name)] for name, reported in paper.items()]


def attribute_rows(cells: Cells) -> list[list[Any]]:
    """List the attributes of Table 1 and of this table; the paper's only if the numbers match."""
    paper = [[name, *of] for name, of in paper_numbers()["table1"].items()]
    here = [
        [attribute["name"], attribute["kind"], attribute["size"]]
        for attribute in cells["facts"]["attributes"]
    ]
    if len(paper) != len(here):
        paper = [["", "", None]] * len(here)
    return [
        [name, kind, own_name, own_kind, size, own_size]
        for (name, kind, size), (own_name, own_kind, own_size) in zip(paper, here, strict=True)
    ]
