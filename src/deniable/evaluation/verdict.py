"""Verdict on a release: a grade by printed rules, and the findings behind it in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from deniable.evaluation.classifiers import learner_title
from deniable.evaluation.distances import Distances
from deniable.evaluation.distinguishability import Distinguishability
from deniable.evaluation.ml_efficacy import MlEfficacy
from deniable.evaluation.subgroups import SubgroupFindings

Grade = Literal["good", "fair", "poor"]

# Distances from real rows, by width of the marginals, then by compared table.
DistancesByWidth = Mapping[str, Mapping[str, Distances]]

# If pairs differ less than this from independent columns, there is no dependence to keep.
_MIN_DEPENDENCE = 0.005
# Maximum number of lost groups named in a finding.
_MAX_NAMED_GROUPS = 3

GRADING_RULES = (
    "How the grade is chosen. Good: at least 60 % of the dependence between pairs of columns was "
    "kept, the best model loses at most 4 points, and no group of rows lost more than half of its "
    "share. Poor: less than 30 % was kept, or the best model loses more than 10 points. Fair: "
    "everything else. Kept dependence is 0 % for independent columns and 100 % for other real rows."
)

_HEADLINES: dict[Grade, str] = {
    "good": "These records can replace the real ones in most analyses.",
    "fair": "These records show the main patterns. Check details before you rely on them.",
    "poor": "These records keep at most single columns. Do not draw conclusions from them.",
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A grade, and the findings behind it in words.

    Attributes:
        grade: The grade by ``GRADING_RULES``.
        headline: What the grade means for use.
        findings: One sentence each.
        kept: Share of the dependence between pairs of columns that was kept; None if the columns
            are nearly independent.
    """

    grade: Grade
    headline: str
    findings: tuple[str, ...]
    kept: float | None

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "grade": self.grade,
            "headline": self.headline,
            "findings": list(self.findings),
            "kept": self.kept,
            "rules": GRADING_RULES,
        }


def judge(
    distances: DistancesByWidth,
    learning: MlEfficacy | None,
    game: Distinguishability,
    groups: SubgroupFindings,
) -> Verdict:
    """Grade a release and describe the findings in words."""
    kept = _dependence_kept(distances.get("pairs"))
    lost = None if learning is None else _best_learner_loss(learning)
    findings = [_about_columns(distances["attributes"])]
    if "pairs" in distances:
        findings.append(_about_pairs(distances["pairs"], kept))
    if learning is not None and lost is not None:
        findings.append(_about_learning(learning, *lost))
    findings += [_about_game(game), _about_groups(groups)]
    grade = _grade(kept, 0.0 if lost is None else lost[1], gone=bool(groups.lost))
    return Verdict(grade=grade, headline=_HEADLINES[grade], findings=tuple(findings), kept=kept)


def _dependence_kept(pairs: Mapping[str, Distances] | None) -> float | None:
    """Scale the distance of released pairs: independent columns are 0, real rows are 1."""
    if pairs is None:
        return None
    span = pairs["marginals"].mean - pairs["reals"].mean
    if span < _MIN_DEPENDENCE:
        return None
    return (pairs["marginals"].mean - pairs["released"].mean) / span


def _best_learner_loss(learning: MlEfficacy) -> tuple[str, float]:
    """Find the best learner on real rows, and the score it loses when trained on the release."""
    best = max(learning.scores, key=lambda name: learning.scores[name]["real"].value)
    scores = learning.scores[best]
    return best, scores["real"].value - scores["released"].value


def _grade(kept: float | None, lost: float, *, gone: bool) -> Grade:
    share = 1.0 if kept is None else kept
    if share >= 0.6 and lost <= 0.04 and not gone:
        return "good"
    return "poor" if share < 0.3 or lost > 0.1 else "fair"


def _about_columns(columns: Mapping[str, Distances]) -> str:
    released, reals = columns["released"], columns["reals"]
    (worst,), distance = released.worst(1)[0]
    return (
        f"Single columns: on average, {percent(released.mean)} of the records would have to change "
        f"to match the real distribution of a column (other real rows: {percent(reals.mean)}). The "
        f"largest distance is {percent(distance)}, for {worst}."
    )


def _about_pairs(pairs: Mapping[str, Distances], kept: float | None) -> str:
    released, reals, marginals = (pairs[name].mean for name in ("released", "reals", "marginals"))
    facts = (
        f"mean distance {percent(released)}; other real rows {percent(reals)}, independent columns "
        f"{percent(marginals)}"
    )
    if kept is None:
        return f"Pairs of columns: the columns are nearly independent in this table ({facts})."
    if kept < 0:
        return f"Pairs of columns: less accurate than independent columns would be ({facts})."
    share = percent(min(kept, 1.0), digits=0)
    return f"Pairs of columns: {share} of the dependence between columns was kept ({facts})."


def _about_learning(learning: MlEfficacy, learner: str, lost: float) -> str:
    scores = learning.scores[learner]
    what = "is correct" if learning.task == "classification" else "explains"
    of = "of the time" if learning.task == "classification" else "of the variance"
    versus = "loses nothing" if lost <= 0 else f"loses {100 * lost:.1f} points"
    name = learner_title(learner, learning.task).lower()
    return (
        f"Predicting {learning.target}: the best model ({name}) {what} "
        f"{percent(scores['released'].value)} {of} when trained on released records, and "
        f"{percent(scores['real'].value)} when trained on real rows: it {versus}."
    )


def _about_game(game: Distinguishability) -> str:
    rate = game.rounds["forest"]["released"].accuracy
    limits = [(0.55, "rarely"), (0.65, "sometimes"), (0.8, "often")]
    frequency = next((word for limit, word in limits if rate <= limit), "nearly always")
    return (
        f"Distinguishability: a random forest can {frequency} distinguish released records from "
        f"real ones. It is correct {percent(rate)} of the time; random guessing is correct 50 % of "
        "the time."
    )


def _about_groups(groups: SubgroupFindings) -> str:
    if not groups.subgroups:
        return "Groups: no group is large enough to be evaluated separately."
    if not groups.lost:
        return f"Groups: none of {len(groups.subgroups):,} groups lost more than half of its share."
    named = [
        f"{group.attribute} {group.value} ({percent(group.share)} of real rows, "
        f"{percent(group.released)} of released records)"
        for group in groups.lost[:_MAX_NAMED_GROUPS]
    ]
    more = len(groups.lost) - len(named)
    rest = f", and {more:,} more" if more else ""
    return (
        f"Groups: {len(groups.lost):,} of {len(groups.subgroups):,} groups lost more than half of "
        f"their share: {', '.join(named)}{rest}. Do not use these records to describe these groups."
    )


def percent(share: float, *, digits: int = 1) -> str:
    """Format a share as a percentage.

    >>> percent(0.1234).split(), percent(0.5, digits=0).split()
    (['12.3', '%'], ['50', '%'])
    """
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
