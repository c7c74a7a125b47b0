"""Statements of the paper's text and captions (Sec. 6), checked against the measured cells.

The paper's figures have no numbers, so each statement has a rule that can fail. The rule is printed
with it, because words such as "significantly" are defined by us.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.evaluation.verdict import percent
from deniable.reproduction.experiments import OMEGA_ROWS, PAPER_LEARNERS, PERTURBATIONS, SIDES
from deniable.reproduction.tables import (
    SCAN_TITLE,
    SIDE_TITLES,
    Cells,
    improvements,
    mean_boxes,
    mean_values,
    timed_runs,
)

# The measured values in words, and whether the rule holds; None: not measurable on this table.
Outcome = tuple[str, bool] | None
StatementCheck = Callable[[Cells, str], Outcome]
STATEMENT_HEADER = (
    "where", "the paper says", "true if", "authors' formulas", "true", "ours", "true",
)  # fmt: skip
_FIGURE6_K = 100
_FIGURE5_RECORDS = 10_000
_TEN_MINUTES = 600


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of the paper, and its outcome here.

    Attributes:
        where: Figure, table or section.
        claim: The paper's statement, shortened.
        rule: The condition under which we call it true.
        outcomes: The outcome by side.
    """

    where: str
    claim: str
    rule: str
    outcomes: dict[str, Outcome]

    def row(self) -> list[Any]:
        """Return the statement as a row of ``STATEMENT_HEADER``."""
        row = [self.where, self.claim, self.rule]
        for side in SIDES:
            outcome = self.outcomes[side]
            row += ["", ""] if outcome is None else [outcome[0], "yes" if outcome[1] else "no"]
        return row


def statements(cells: Cells) -> list[Statement]:
    """Check every statement that was measured."""
    checked = [
        Statement(
            where=where,
            claim=claim,
            rule=rule,
            outcomes={str(side): check(cells, str(side)) for side in SIDES},
        )
        for where, claim, rule, check in _STATEMENTS
    ]
    return [statement for statement in checked if any(statement.outcomes.values())]


def _points(share: float) -> str:
    return f"{100 * share:+.1f} points"


def _model_beats_marginals(cells: Cells, side: str) -> Outcome:
    if "guesses" not in cells:
        return None
    of = np.array(improvements(cells, side)["1"])
    better = int((of > 0).sum())
    words = f"mean {percent(float(of.mean()))}; {better} of {len(of)} attributes"
    return words, bool(of.mean() > 0 and 2 * better > len(of))


def _improvement_with_noise(epsilon: str) -> StatementCheck:
    def check(cells: Cells, side: str) -> Outcome:
        if "guesses" not in cells:
            return None
        means = {e: float(np.mean(of)) for e, of in improvements(cells, side).items()}
        words = f"{percent(means[epsilon])}, without noise {percent(means['inf'])}"
        return words, means[epsilon] >= 2 / 3 * means["inf"]

    return check


def _graphs_differ(cells: Cells, side: str) -> Outcome:
    if "guesses" not in cells:
        return None
    of = improvements(cells, side)
    change = np.abs(np.array(of["1"]) - np.array(of["0.1"]))
    names = [guess["attribute"] for guess in cells["guesses"]]
    largest = np.argsort(-change, kind="stable")[:2]
    words = ", ".join(f"{names[i]} {percent(float(change[i]))}" for i in largest)
    return words, bool(change.max() >= 0.05)


def _accuracy_above_marginals(cells: Cells, side: str) -> Outcome:
    if "guesses" not in cells:
        return None
    model = cells[f"models {side} inf"]["mean"]
    rows = list(zip(model, cells["guesses"], strict=True))
    better = sum(found >= guess["marginals"] + 0.01 for found, guess in rows)
    chance = sum(found > guess["guessing"] for found, guess in rows)
    words = f"marginals: {better} of {len(rows)} by a point or more; guessing: {chance}"
    return words, 2 * better >= len(rows) and chance == len(rows)


def _forest_sometimes_better(cells: Cells, side: str) -> Outcome:
    if "guesses" not in cells:
        return None
    model = cells[f"models {side} inf"]["mean"]
    higher = [g["forest"] > found for found, g in zip(model, cells["guesses"], strict=True)]
    return f"{sum(higher)} of {len(higher)} attributes", sum(higher) > 0


def _medians(cells: Cells, width: str, side: str) -> dict[str, float]:
    return {row: five[2] for row, five in mean_boxes(cells, width, side).items()}


def _single_distances_small(cells: Cells, side: str) -> Outcome:
    medians = _medians(cells, "attributes", side)
    medians.pop("default", None)
    return f"medians up to {percent(max(medians.values()))}", max(medians.values()) <= 0.05


def _single_distances_like_marginals(cells: Cells, side: str) -> Outcome:
    medians = _medians(cells, "attributes", side)
    if not {"m", "m-1", "marginals"} <= set(medians):
        return None
    far = [abs(medians[row] - medians["marginals"]) for row in ("m", "m-1")]
    words = f"medians {percent(medians['m'])}, {percent(medians['m-1'])}"
    return f"{words}; marginals {percent(medians['marginals'])}", max(far) <= 0.02


def _marginals_sometimes_closer(cells: Cells, side: str) -> Outcome:
    medians = _medians(cells, "attributes", side)
    nearer = [row for row in OMEGA_ROWS if medians["marginals"] < medians[row]]
    return f"marginals have the smaller median for {len(nearer)} of {len(OMEGA_ROWS)} ω", bool(
        nearer
    )


def _pairs_closer(cells: Cells, side: str) -> Outcome:
    medians = _medians(cells, "pairs", side)
    if not medians:
        return None
    worst = max(medians[row] for row in OMEGA_ROWS)
    words = f"medians up to {percent(worst)}; marginals {percent(medians['marginals'])}"
    return words, worst <= 2 / 3 * medians["marginals"]


def _closer_to_reals(cells: Cells, side: str) -> Outcome:
    reals = mean_values(cells, "table3", "reals", side)
    floor = mean_values(cells, "table3", "marginals", side)
    rows = [mean_values(cells, "table3", row, side) for row in OMEGA_ROWS]
    if not (reals and floor and all(rows)):
        return None
    closer = sum(
        abs(value - real) < abs(low - real)
        for row in rows
        for value, real, low in zip(row, reals, floor, strict=True)
    )
    of = len(rows) * len(reals)
    return f"{closer} of {of} values ({len(PAPER_LEARNERS)} learners, {len(rows)} ω)", closer == of


def _linear_accuracy(cells: Cells, side: str, loss: int) -> tuple[float, float] | None:
    """Return the lowest accuracy of the releases, and that of objective perturbation."""
    rows = [mean_values(cells, "table4", row, side) for row in OMEGA_ROWS]
    private = mean_values(cells, "table4", PERTURBATIONS[1], side)
    return (min(row[loss] for row in rows), private[loss]) if private and all(rows) else None


def _beats_private_regression(cells: Cells, side: str) -> Outcome:
    found = _linear_accuracy(cells, side, 0)
    if found is None:
        return None
    return f"at least {percent(found[0])}, private {percent(found[1])}", found[0] > found[1]


def _close_to_private_svm(cells: Cells, side: str) -> Outcome:
    found = _linear_accuracy(cells, side, 1)
    if found is None:
        return None
    worst, private = found
    words = f"at least {percent(worst)}, private {percent(private)} ({_points(worst - private)})"
    return words, worst >= private - 0.015


def _marginals_distinguishable(cells: Cells, side: str) -> Outcome:
    floor = mean_values(cells, "table5", "marginals", side)
    if not floor:
        return None
    words = f"forest {percent(floor[0])}, tree {percent(floor[1])}"
    return words, floor[0] >= 0.75 and floor[1] >= 0.70


def _synthetics_less_distinguishable(cells: Cells, side: str) -> Outcome:
    floor = mean_values(cells, "table5", "marginals", side)
    rows = [mean_values(cells, "table5", row, side) for row in OMEGA_ROWS]
    if not (floor and all(rows)):
        return None
    best = [max(row[at] for row in rows) for at in (0, 1)]
    words = f"at most {percent(best[0])} (forest), {percent(best[1])} (tree)"
    return words, all(value <= low - 0.1 for value, low in zip(best, floor, strict=True))


def _run_times(cells: Cells, side: str) -> list[tuple[str, list[Any], int]]:
    """Return the timed runs of a side, with their titles and numbers of cores."""
    methods = {SIDE_TITLES[side]: f"pace {side}"}
    if side == "authors":
        methods[SCAN_TITLE] = "pace scan"
    found = timed_runs(cells)
    return [(title, found[title], cells[name]["cores"]) for title, name in methods.items()]


def _ten_thousand_in_ten_minutes(cells: Cells, side: str) -> Outcome:
    """Estimate the seconds for 10,000 records on one core, from the largest timed run."""
    if f"pace {side}" not in cells:
        return None
    seconds = {}
    for title, instances, cores in _run_times(cells, side):
        largest = max(instances, key=lambda run: run["records"])
        per_record = largest["generation"] * cores / largest["records"]
        seconds[title] = largest["learning"] + per_record * _FIGURE5_RECORDS
    words = [
        f"{t:.1f} s" + (" by scan" if title == SCAN_TITLE else "") for title, t in seconds.items()
    ]
    return ", ".join(words), max(seconds.values()) < _TEN_MINUTES


def _cores(number: int) -> str:
    return "1 core" if number == 1 else f"{number} cores"


def _million_in_ten_minutes(cells: Cells, side: str) -> Outcome:
    if f"pace {side}" not in cells:
        return None
    _, instances, cores = _run_times(cells, side)[0]
    total = sum(run["records"] for run in instances)
    spent = sum(run["learning"] + run["generation"] for run in instances)
    rate = sum(run["generation"] for run in instances) / max(1, total)
    words = (
        f"{total:,} in {len(instances)} runs, {spent:.0f} s on {_cores(cores)}; "
        f"a million at once: {instances[-1]['learning'] + 1e6 * rate:.0f} s"
    )
    return words, instances[-1]["learning"] + 1e6 * rate < _TEN_MINUTES


def _pass_rates(cells: Cells, side: str) -> dict[str, list[Any]]:
    return dict(cells.get(f"passing {side}", {}))


def _half_pass(cells: Cells, side: str) -> Outcome:
    for rate in _pass_rates(cells, side).get("m-6..m", []):
        if rate["k"] == _FIGURE6_K:
            return percent(rate["passed"]), rate["passed"] > 0.5
    return None


def _falls_with_k(cells: Cells, side: str) -> Outcome:
    curves = [[rate["passed"] for rate in row] for row in _pass_rates(cells, side).values()]
    if not curves:
        return None
    falls = all(a >= b for curve in curves for a, b in pairwise(curve))
    least = min(curve[-1] for curve in curves)
    greatest = max(rate["k"] for row in _pass_rates(cells, side).values() for rate in row)
    return f"at k = {greatest} still {percent(least)} or more", falls and least > 0.1


_STATEMENTS: list[tuple[str, str, str, StatementCheck]] = [
    (
        "Figure 1",
        "a clear improvement of the model's accuracy over marginals",
        "at ε = 1 the mean and more than half of the attributes are above 0",
        _model_beats_marginals,
    ),
    (
        "Figure 1",
        "the improvement at ε = 1 is comparable to that without noise",
        "the mean is at least two thirds of that without noise",
        _improvement_with_noise("1"),
    ),
    (
        "Figure 1",
        "the improvement at ε = 0.1 is comparable to that without noise",
        "the mean is at least two thirds of that without noise",
        _improvement_with_noise("0.1"),
    ),
    (
        "Figure 1",
        "noise can change the graph: RACE and WAOB differ between ε = 1 and 0.1",
        "at least one attribute differs by 5 points of improvement",
        _graphs_differ,
    ),
    (
        "Figure 2",
        "in many cases the model is significantly better than marginals and guessing",
        "at least half of the attributes are a point above marginals, and all are above guessing",
        _accuracy_above_marginals,
    ),
    (
        "Figure 2",
        "a random forest is sometimes better than the model",
        "it is for at least one attribute",
        _forest_sometimes_better,
    ),
    (
        "Figure 3",
        "the distance of single attributes is small for all releases",
        "medians ≤ 5 %",
        _single_distances_small,
    ),
    (
        "Figure 3",
        "ω = 11 and ω = 10 are about as far from reals as marginals",
        "medians within 2 points",
        _single_distances_like_marginals,
    ),
    (
        "Section 6.2",
        "for single attributes marginals sometimes outperform synthetics",
        "for at least one ω",
        _marginals_sometimes_closer,
    ),
    (
        "Figure 4",
        "pairs of synthetics are significantly closer to reals than pairs of marginals",
        "the median of every ω is at most two thirds of that of marginals",
        _pairs_closer,
    ),
    (
        "Section 6.3",
        "accuracy and agreement of synthetics are closer to reals than marginals are",
        "every value is closer",
        _closer_to_reals,
    ),
    (
        "Section 6.3",
        "trained on synthetics, LR is better than private LR (objective perturbation)",
        "for every ω",
        _beats_private_regression,
    ),
    (
        "Section 6.3",
        "trained on synthetics, SVM is about 1 % below private SVM",
        "at most 1.5 points below, for every ω",
        _close_to_private_svm,
    ),
    (
        "Section 6.4",
        "marginals are distinguished from reals with accuracy 79.8 % and 73.2 %",
        "at least 75 % and 70 %",
        _marginals_distinguishable,
    ),
    (
        "Section 6.4",
        "synthetics are distinguished from reals with much lower accuracy (63 %)",
        "at least 10 points below marginals, for every ω",
        _synthetics_less_distinguishable,
    ),
    (
        "Figure 5",
        "10,000 records take less than 10 minutes on one core",
        "learning and 10,000 records take less, adding up all cores",
        _ten_thousand_in_ten_minutes,
    ),
    (
        "Figure 5",
        "a million records in the same time, with 100 instances",
        "a million records take less than 10 minutes on this machine",
        _million_in_ten_minutes,
    ),
    (
        "Section 6.5",
        "at k = 100 more than half of the candidates pass for ω in 5-11",
        "more than 50 %",
        _half_pass,
    ),
    (
        "Figure 6",
        "the share falls with k but remains significant",
        "it never rises, and is above 10 % at the largest k, for every ω",
        _falls_with_k,
    ),
]
