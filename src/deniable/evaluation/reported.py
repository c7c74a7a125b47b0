"""What the paper says in its text and captions (Sec. 6), and whether it is so here.

Its figures come without numbers, so each sentence is given a rule that can fail. The rule is
printed with it: "significantly" is ours to define, and whoever reads it may disagree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.evaluation.likeness import percent
from deniable.evaluation.recipes import LEARNERS, OMEGAS, PERTURBED, SIDES
from deniable.evaluation.recorded import (
    SCAN_TITLE,
    SIDE_TITLES,
    Cells,
    boxes,
    improvements,
    means_of,
    timed,
)

# What was measured, in words, and whether the rule is kept; None: cannot be measured here.
Found = tuple[str, bool] | None
Check = Callable[[Cells, str], Found]

_K = 100
_OF_PAPER = 10_000


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A sentence of the paper, and what becomes of it here.

    Attributes:
        where: Figure, table or section.
        says: What the paper says, shortened.
        rule: When we call it true.
        found: By side.
    """

    where: str
    says: str
    rule: str
    found: dict[str, Found]

    def row(self) -> list[Any]:
        """Return it as a row of ``HEAD_OF_STATEMENTS``."""
        said = []
        for side in SIDES:
            found = self.found[side]
            said += ["", ""] if found is None else [found[0], "yes" if found[1] else "no"]
        return [self.where, self.says, self.rule, *said]


HEAD_OF_STATEMENTS = (
    "where", "the paper says", "true if", "authors' formulas", "true", "ours", "true",
)  # fmt: skip


def statements(cells: Cells) -> list[Statement]:
    """Return every statement that these cells can answer."""
    made = [
        Statement(
            where=where,
            says=says,
            rule=rule,
            found={str(side): check(cells, str(side)) for side in SIDES},
        )
        for where, says, rule, check in _STATEMENTS
    ]
    return [one for one in made if any(one.found.values())]


def _points(share: float) -> str:
    return f"{100 * share:+.1f} points"


def _improves(cells: Cells, side: str) -> Found:
    if "guesses" not in cells:
        return None
    of = np.array(improvements(cells, side)["1"])
    better = int((of > 0).sum())
    words = f"mean {percent(float(of.mean()))}; {better} of {len(of)} attributes"
    return words, bool(of.mean() > 0 and 2 * better > len(of))


def _keeps(epsilon: str) -> Check:
    def check(cells: Cells, side: str) -> Found:
        if "guesses" not in cells:
            return None
        means = {e: float(np.mean(of)) for e, of in improvements(cells, side).items()}
        words = f"{percent(means[epsilon])}, without noise {percent(means['inf'])}"
        return words, means[epsilon] >= 2 / 3 * means["inf"]

    return check


def _other_graphs(cells: Cells, side: str) -> Found:
    if "guesses" not in cells:
        return None
    of = improvements(cells, side)
    change = np.abs(np.array(of["1"]) - np.array(of["0.1"]))
    names = [guess["attribute"] for guess in cells["guesses"]]
    largest = np.argsort(-change, kind="stable")[:2]
    words = ", ".join(f"{names[i]} {percent(float(change[i]))}" for i in largest)
    return words, bool(change.max() >= 0.05)


def _above_marginals(cells: Cells, side: str) -> Found:
    if "guesses" not in cells:
        return None
    model = cells[f"models {side} inf"]["mean"]
    rows = list(zip(model, cells["guesses"], strict=True))
    better = sum(found >= guess["marginals"] + 0.01 for found, guess in rows)
    chance = sum(found > guess["guessing"] for found, guess in rows)
    words = f"marginals: {better} of {len(rows)} by a point or more; guessing: {chance}"
    return words, 2 * better >= len(rows) and chance == len(rows)


def _forest_above(cells: Cells, side: str) -> Found:
    if "guesses" not in cells:
        return None
    model = cells[f"models {side} inf"]["mean"]
    higher = [g["forest"] > found for found, g in zip(model, cells["guesses"], strict=True)]
    return f"{sum(higher)} of {len(higher)} attributes", sum(higher) > 0


def _medians(cells: Cells, width: str, side: str) -> dict[str, float]:
    return {row: five[2] for row, five in boxes(cells, width, side).items()}


def _small(cells: Cells, side: str) -> Found:
    medians = _medians(cells, "attributes", side)
    medians.pop("default", None)
    return f"medians up to {percent(max(medians.values()))}", max(medians.values()) <= 0.05


def _like_marginals(cells: Cells, side: str) -> Found:
    medians = _medians(cells, "attributes", side)
    if not {"m", "m-1", "marginals"} <= set(medians):
        return None
    far = [abs(medians[row] - medians["marginals"]) for row in ("m", "m-1")]
    words = f"medians {percent(medians['m'])}, {percent(medians['m-1'])}"
    return f"{words}; marginals {percent(medians['marginals'])}", max(far) <= 0.02


def _marginals_win(cells: Cells, side: str) -> Found:
    medians = _medians(cells, "attributes", side)
    nearer = [row for row in OMEGAS if medians["marginals"] < medians[row]]
    return f"marginals have the smaller median for {len(nearer)} of {len(OMEGAS)} ω", bool(nearer)


def _pairs_nearer(cells: Cells, side: str) -> Found:
    medians = _medians(cells, "pairs", side)
    if not medians:
        return None
    worst = max(medians[row] for row in OMEGAS)
    words = f"medians up to {percent(worst)}; marginals {percent(medians['marginals'])}"
    return words, worst <= 2 / 3 * medians["marginals"]


def _closer_to_reals(cells: Cells, side: str) -> Found:
    reals = means_of(cells, "table3", "reals", side)
    floor = means_of(cells, "table3", "marginals", side)
    rows = [means_of(cells, "table3", row, side) for row in OMEGAS]
    if not (reals and floor and all(rows)):
        return None
    closer = sum(
        abs(value - real) < abs(low - real)
        for row in rows
        for value, real, low in zip(row, reals, floor, strict=True)
    )
    of = len(rows) * len(reals)
    return f"{closer} of {of} values ({len(LEARNERS)} learners, {len(rows)} ω)", closer == of


def _linear(cells: Cells, side: str, loss: int) -> tuple[float, float] | None:
    """Return the worst of the releases, and objective perturbation, for one kind of classifier."""
    rows = [means_of(cells, "table4", row, side) for row in OMEGAS]
    private = means_of(cells, "table4", PERTURBED[1], side)
    return (min(row[loss] for row in rows), private[loss]) if private and all(rows) else None


def _beats_private_regression(cells: Cells, side: str) -> Found:
    found = _linear(cells, side, 0)
    if found is None:
        return None
    return f"at least {percent(found[0])}, private {percent(found[1])}", found[0] > found[1]


def _near_private_svm(cells: Cells, side: str) -> Found:
    found = _linear(cells, side, 1)
    if found is None:
        return None
    worst, private = found
    words = f"at least {percent(worst)}, private {percent(private)} ({_points(worst - private)})"
    return words, worst >= private - 0.015


def _told_apart(cells: Cells, side: str) -> Found:
    floor = means_of(cells, "table5", "marginals", side)
    if not floor:
        return None
    words = f"forest {percent(floor[0])}, tree {percent(floor[1])}"
    return words, floor[0] >= 0.75 and floor[1] >= 0.70


def _harder_to_tell(cells: Cells, side: str) -> Found:
    floor = means_of(cells, "table5", "marginals", side)
    rows = [means_of(cells, "table5", row, side) for row in OMEGAS]
    if not (floor and all(rows)):
        return None
    best = [max(row[at] for row in rows) for at in (0, 1)]
    words = f"at most {percent(best[0])} (forest), {percent(best[1])} (tree)"
    return words, all(value <= low - 0.1 for value, low in zip(best, floor, strict=True))


def _paces(cells: Cells, side: str) -> list[tuple[str, list[Any], int]]:
    """Return the ways records were timed, with the cores they had."""
    ways = {SIDE_TITLES[side]: f"pace {side}"}
    if side == "authors":
        ways[SCAN_TITLE] = "pace scan"
    found = timed(cells)
    return [(title, found[title], cells[name]["cores"]) for title, name in ways.items()]


def _in_ten_minutes(cells: Cells, side: str) -> Found:
    """Seconds for so many records on one core: generation is charged for every core it had."""
    if f"pace {side}" not in cells:
        return None
    said = {}
    for title, instances, cores in _paces(cells, side):
        last = max(instances, key=lambda one: one["records"])
        each = last["generation"] * cores / last["records"]
        said[title] = last["learning"] + each * _OF_PAPER
    words = [
        f"{t:.1f} s" + (" by scan" if title == SCAN_TITLE else "") for title, t in said.items()
    ]
    return ", ".join(words), max(said.values()) < 600


def _cores(number: int) -> str:
    return "1 core" if number == 1 else f"{number} cores"


def _a_million(cells: Cells, side: str) -> Found:
    if f"pace {side}" not in cells:
        return None
    _, instances, cores = _paces(cells, side)[0]
    total = sum(one["records"] for one in instances)
    spent = sum(one["learning"] + one["generation"] for one in instances)
    rate = sum(one["generation"] for one in instances) / max(1, total)
    words = (
        f"{total:,} in {len(instances)} runs, {spent:.0f} s on {_cores(cores)}; "
        f"a million at once: {instances[-1]['learning'] + 1e6 * rate:.0f} s"
    )
    return words, instances[-1]["learning"] + 1e6 * rate < 600


def _shares(cells: Cells, side: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = cells.get(f"passing {side}", {})
    return found


def _half_pass(cells: Cells, side: str) -> Found:
    for one in _shares(cells, side).get("m-6..m", []):
        if one["k"] == _K:
            return percent(one["passed"]), one["passed"] > 0.5
    return None


def _falls_with_k(cells: Cells, side: str) -> Found:
    curves = [[one["passed"] for one in row] for row in _shares(cells, side).values()]
    if not curves:
        return None
    falls = all(a >= b for curve in curves for a, b in pairwise(curve))
    least = min(curve[-1] for curve in curves)
    greatest = max(one["k"] for row in _shares(cells, side).values() for one in row)
    return f"at k = {greatest} still {percent(least)} or more", falls and least > 0.1


_STATEMENTS: list[tuple[str, str, str, Check]] = [
    (
        "Figure 1",
        "a clear improvement of the model's accuracy over marginals",
        "at ε = 1 the mean is above 0, and more than half of the attributes are",
        _improves,
    ),
    (
        "Figure 1",
        "the improvement at ε = 1 is comparable to that without noise",
        "its mean is at least two thirds",
        _keeps("1"),
    ),
    ("Figure 1", "the same at ε = 0.1", "its mean is at least two thirds", _keeps("0.1")),
    (
        "Figure 1",
        "noise can change the graph: RACE and WAOB differ between ε = 1 and 0.1",
        "some attribute differs by 5 % of the marginals' errors",
        _other_graphs,
    ),
    (
        "Figure 2",
        "in many cases the model is significantly better than marginals and guessing",
        "half of the attributes by a point, and all above guessing",
        _above_marginals,
    ),
    ("Figure 2", "a random forest is sometimes better than the model", "it is once", _forest_above),
    ("Figure 3", "the distance of single attributes is small for all", "medians ≤ 5 %", _small),
    (
        "Figure 3",
        "ω = 11 and ω = 10 are about as far from reals as marginals",
        "medians within 2 points",
        _like_marginals,
    ),
    (
        "Section 6.2",
        "for single attributes marginals sometimes outperform synthetics",
        "for one ω at least",
        _marginals_win,
    ),
    (
        "Figure 4",
        "pairs of synthetics are significantly nearer than those of marginals",
        "every ω's median is at most two thirds of theirs",
        _pairs_nearer,
    ),
    (
        "Section 6.3",
        "accuracy and agreement of synthetics are closer to reals than marginals are",
        "every value is",
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
        _near_private_svm,
    ),
    (
        "Section 6.4",
        "marginals are told from reals with 79.8 % and 73.2 %",
        "75 % and 70 % or more",
        _told_apart,
    ),
    (
        "Section 6.4",
        "synthetics with much lower accuracy (63 %)",
        "10 points below marginals, for every ω",
        _harder_to_tell,
    ),
    (
        "Figure 5",
        "10,000 records take less than 10 minutes on one core",
        "learning and 10,000 records, all cores added up",
        _in_ten_minutes,
    ),
    (
        "Figure 5",
        "a million records in the same time, with 100 instances",
        "a million on this machine in 10 minutes",
        _a_million,
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
        "it never rises, and is above 10 % at the greatest k, for every ω",
        _falls_with_k,
    ),
]
