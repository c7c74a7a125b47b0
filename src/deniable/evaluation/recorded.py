"""What a reproduction measured, as rows of numbers beside what the paper reports (Sec. 4 and 6).

Every row is made of the cells of one run: nothing in the columns of ours is written down here.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deniable.evaluation.confidence import spread
from deniable.evaluation.recipes import LEARNERS, OMEGAS, PERTURBED, RELEASES, SIDES, omega_text

# A measured value by its name: "facts", "passing ours", "release m-1 authors run 0".
Cells = Mapping[str, Any]

EPSILONS = ("inf", "1", "0.1")
SIDE_TITLES = {"authors": "authors' formulas", "ours": "ours"}
SCAN_TITLE = "authors' formulas, by scan"
_PACES = {f"pace {side}": SIDE_TITLES[side] for side in SIDES} | {"pace scan": SCAN_TITLE}

HEAD_OF_TABLE1 = ("paper", "type", "here", "type", "values in the paper", "values here")
HEAD = ("row", "column", "paper", "authors' formulas", "ours", "difference", "least", "greatest")
TITLES = {
    "table3": "Table 3: classifiers trained on released records",
    "table4": "Table 4: linear classifiers, private by themselves or trained on a release",
    "table5": "Table 5: telling released from real",
}
_COLUMNS = {
    "table3": [f"{what}, {name}" for what in ("accuracy", "agreement") for name in LEARNERS],
    "table4": ["logistic regression", "support vector machine"],
    "table5": ["forest", "tree"],
}


def paper_numbers() -> dict[str, Any]:
    """Return what the paper reports, by table and row."""
    text = Path(__file__).with_name("paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def rows_of(name: str, cells: Cells) -> list[list[Any]]:
    """Return one table as rows of ``HEAD``: the mean over runs, and the spread of ours."""
    paper = paper_numbers()[name]
    made = []
    names = ["reals", *RELEASES, "default"]
    if name == "table4":
        names[1:1] = PERTURBED
    for row in names:
        by_side = {str(side): runs_of(cells, name, row, side) for side in SIDES}
        width = max((len(run) for runs in by_side.values() for run in runs), default=0)
        for at in range(width):
            made.append(_row(name, row, at, paper.get(row), by_side))
    return made


def _row(
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
        row, _COLUMNS[name][at], reported, means["authors"], means["ours"], difference, least,
        greatest,
    ]  # fmt: skip


def runs_of(cells: Cells, name: str, row: str, side: str) -> list[list[float]]:
    """Return what every run measured for one row of one table."""
    if row in PERTURBED:
        return [c["private"][row] for c in _of(cells, "reals") if row in c.get("private", {})]
    if row == "reals":
        return [c[name] for c in _of(cells, "reals") if c[name]]
    return [c[name] for c in _of(cells, f"release {row} {side}") if c[name]]


def penalty_rows(cells: Cells) -> list[list[Any]]:
    """Return the λ of Table 4's private classifiers, run by run."""
    runs = [
        c["private"]["penalty"] for c in _of(cells, "reals") if "penalty" in c.get("private", {})
    ]
    return [
        [name, ", ".join(f"{of:g}" for of in each)]
        for name, *each in zip(_COLUMNS["table4"], *runs, strict=True)
        if runs
    ]


def means_of(cells: Cells, name: str, row: str, side: str) -> list[float]:
    """Return the mean over runs of one row of one table; nothing where it was not measured."""
    runs = runs_of(cells, name, row, side)
    return np.mean(runs, axis=0).tolist() if runs else []


def _of(cells: Cells, start: str) -> Iterable[Mapping[str, Any]]:
    return (cell for name, cell in cells.items() if name.startswith(f"{start} run"))


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None


def row_title(row: str, cells: Cells) -> str:
    """Return what a row is called in print: an ω by its number, where that is known."""
    if row not in OMEGAS:
        return "our default" if row == "default" else row
    if "facts" not in cells:
        return f"ω = {row}"
    omega = omega_text(row, len(cells["facts"]["attributes"]))
    return f"ω = {omega.replace('-', ' to ')}"


def improvements(cells: Cells, side: str) -> dict[str, list[float]]:
    """Return Figure 1: by ε, the share of the marginals' errors that the model does not make."""
    marginals = np.array([guess["marginals"] for guess in cells["guesses"]])
    wrong = np.maximum(1 - marginals, 1e-12)
    models = {e: np.array(cells[f"models {side} {e}"]["mean"]) for e in EPSILONS}
    return {e: ((found - marginals) / wrong).tolist() for e, found in models.items()}


def boxes(
    cells: Cells, width: str, side: str
) -> dict[str, tuple[float, float, float, float, float]]:
    """Return Figure 3 or 4: the mean over runs of each release's box, by row."""
    found = {}
    for row in (*OMEGAS, "default", "marginals", "reals"):
        start = "reals" if row == "reals" else f"release {row} {side}"
        runs = [cell["boxes"][width] for cell in _of(cells, start) if width in cell["boxes"]]
        if runs:
            low, q1, median, q3, high = np.mean(runs, axis=0).tolist()
            found[row] = (low, q1, median, q3, high)
    return found


def timed(cells: Cells) -> dict[str, list[Mapping[str, Any]]]:
    """Return Figure 5: the timed runs, by how the records were made."""
    return {title: cells[name]["instances"] for name, title in _PACES.items() if name in cells}


def figure_rows(cells: Cells) -> dict[str, list[list[Any]]]:
    """Return the numbers that each figure draws, by file name; the first row is the head."""
    found: dict[str, list[list[Any]]] = {}
    if "guesses" in cells:
        found |= {"figure1": _figure1(cells), "figure2": _figure2(cells)}
    for name, width in (("figure3", "attributes"), ("figure4", "pairs")):
        head = ["row", "side", "least", "lower quartile", "median", "upper quartile", "greatest"]
        found[name] = [head] + [
            [row_title(row, cells), SIDE_TITLES[side], *five]
            for side in SIDES
            for row, five in boxes(cells, width, side).items()
        ]
    found["figure5"] = [["side", "records", "seconds to learn", "seconds to generate"]] + [
        [title, one["records"], one["learning"], one["generation"]]
        for title, instances in timed(cells).items()
        for one in instances
    ]
    if all(f"passing {side}" in cells for side in SIDES):
        found["figure6"] = _figure6(cells)
    return found


def model_title(epsilon: str) -> str:
    """Return what a model is called: by its ε."""
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
    ks = [one["k"] for one in cells["passing ours"]["m"]]
    return [["row", "side", *(f"k = {k}" for k in ks)]] + [
        [row_title(row, cells), SIDE_TITLES[side], *(one["passed"] for one in found)]
        for side in SIDES
        for row, found in cells[f"passing {side}"].items()
    ]


def pace_rows(cells: Cells) -> list[list[Any]]:
    """Return Figure 5 in short: cores, runs, records, median seconds to learn, records a second."""
    rows = []
    for name, title in _PACES.items():
        if name in cells:
            instances = cells[name]["instances"]
            learning = float(np.median([one["learning"] for one in instances]))
            rate = float(np.median([one["records"] / one["generation"] for one in instances]))
            total = sum(one["records"] for one in instances)
            shape = [cells[name]["cores"], len(instances), total]
            rows.append([title, *shape, f"{learning:.2f}", round(rate)])
    return rows


def setup_rows(cells: Cells) -> list[list[Any]]:
    """Return the paper's setup (Sec. 6.1) beside this run's: what it is, paper, here."""
    here, paper = cells["setup"], paper_numbers()["setup"]
    return [[name, paper.get(name, ""), value] for name, value in here.items()]


def fact_rows(cells: Cells) -> list[list[Any]]:
    """Return Table 2 beside this run's table."""
    facts, paper = cells["facts"], paper_numbers()["table2"]
    return [[name.replace("_", " "), reported, facts.get(name)] for name, reported in paper.items()]


def attribute_rows(cells: Cells) -> list[list[Any]]:
    """Return Table 1 beside this run's attributes: one by one if there are as many, or none."""
    paper = [[name, *of] for name, of in paper_numbers()["table1"].items()]
    here = [[one["name"], one["kind"], one["size"]] for one in cells["facts"]["attributes"]]
    if len(paper) != len(here):
        paper = [["", "", None]] * len(here)
    return [
        [name, kind, own_name, own_kind, size, own_size]
        for (name, kind, size), (own_name, own_kind, own_size) in zip(paper, here, strict=True)
    ]
