"""The verdict in words: how like the real records, by rules that are printed with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from deniable.evaluation.classifiers import title_of
from deniable.evaluation.distances import Distances
from deniable.evaluation.game import Game
from deniable.evaluation.groups import Groups
from deniable.evaluation.learning import Learning

Grade = Literal["good", "fair", "poor"]

# By width, then by what was compared with real rows.
Compared = Mapping[str, Mapping[str, Distances]]

# Below this, columns say too little about each other to speak of what was kept of it.
_NO_DEPENDENCE = 0.005
# So many lost groups are named.
_NAMED = 3

RULES = (
    "Good: at least 60 % of what pairs of columns hold beyond single columns was kept, and a "
    "learner loses at most 4 points. Poor: less than 30 % was kept, or it loses more than 10 "
    "points. Fair: all else, and whenever a group of rows lost more than half of its share. What "
    "pairs hold is counted from independent columns (0 %) to other real "
    "rows (100 %)."
)

_HEADLINES: dict[Grade, str] = {
    "good": "These records can stand in for the real ones in most analyses.",
    "fair": "These records serve for main patterns; check finer ones before you rely on them.",
    "poor": "These records keep single columns at best; do not draw conclusions from them.",
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A grade, and the findings behind it, in words.

    Attributes:
        grade: By ``RULES``.
        headline: What it means.
        findings: One sentence each.
        kept: The share of what pairs hold beyond single columns; None where they hold nothing.
    """

    grade: Grade
    headline: str
    findings: tuple[str, ...]
    kept: float | None

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        return {
            "grade": self.grade,
            "headline": self.headline,
            "findings": list(self.findings),
            "kept": self.kept,
            "rules": RULES,
        }


def judge(distances: Compared, learning: Learning | None, game: Game, groups: Groups) -> Verdict:
    """Return the verdict on a release."""
    kept = _kept(distances.get("pairs"))
    lost = None if learning is None else _lost(learning)
    findings = [_about_columns(distances["attributes"])]
    if "pairs" in distances:
        findings.append(_about_pairs(distances["pairs"], kept))
    if learning is not None and lost is not None:
        findings.append(_about_learning(learning, *lost))
    findings += [_about_game(game), _about_groups(groups)]
    grade = _grade(kept, 0.0 if lost is None else lost[1], gone=bool(groups.lost))
    return Verdict(grade=grade, headline=_HEADLINES[grade], findings=tuple(findings), kept=kept)


def _kept(pairs: Mapping[str, Distances] | None) -> float | None:
    """Return where released pairs stand between independent columns (0) and real rows (1)."""
    if pairs is None:
        return None
    span = pairs["marginals"].mean - pairs["reals"].mean
    if span < _NO_DEPENDENCE:
        return None
    return (pairs["marginals"].mean - pairs["released"].mean) / span


def _lost(learning: Learning) -> tuple[str, float]:
    """Return the learner that does best on real rows, and what it loses on released ones."""
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
        f"Single columns: on average {percent(released.mean)} of the records would have to change "
        f"to give a column its real distribution (other real rows: {percent(reals.mean)}); "
        f"worst is {worst}, {percent(distance)}."
    )


def _about_pairs(pairs: Mapping[str, Distances], kept: float | None) -> str:
    released, reals, marginals = (pairs[name].mean for name in ("released", "reals", "marginals"))
    facts = (
        f"{percent(released)} for released records, {percent(reals)} for other real rows, "
        f"{percent(marginals)} if columns were independent"
    )
    if kept is None:
        return f"Pairs of columns: they hardly depend on each other in this table ({facts})."
    if kept < 0:
        return f"Pairs of columns: further from the real ones than independent columns ({facts})."
    share = percent(min(kept, 1.0), digits=0)
    return f"Pairs of columns: {share} of what they say about each other was kept ({facts})."


def _about_learning(learning: Learning, learner: str, lost: float) -> str:
    scores = learning.scores[learner]
    what = "is right" if learning.task == "classification" else "explains"
    of = "of the time" if learning.task == "classification" else "of the variance"
    versus = "loses nothing" if lost <= 0 else f"loses {100 * lost:.1f} points"
    name = title_of(learner, learning.task).lower()
    return (
        f"Learning {learning.target}: {name}, the best learner here, {what} "
        f"{percent(scores['released'].value)} {of} when trained on released records and "
        f"{percent(scores['real'].value)} when trained on real ones: it {versus}."
    )


def _about_game(game: Game) -> str:
    rate = game.rounds["forest"]["released"].accuracy
    words = [(0.55, "hardly"), (0.65, "sometimes"), (0.8, "often")]
    often = next((word for limit, word in words if rate <= limit), "nearly always")
    return (
        f"Telling apart: a random forest can {often} tell a released record from a real one: it "
        f"is right {percent(rate)} of the time, and guessing is right 50 %."
    )


def _about_groups(groups: Groups) -> str:
    if not groups.subgroups:
        return "Groups: none is large enough to be looked at by itself."
    if not groups.lost:
        return f"Groups: none of {len(groups.subgroups):,} lost more than half of its share."
    named = [
        f"{group.attribute} {group.value} ({percent(group.share)} of real rows, "
        f"{percent(group.released)} of released records)"
        for group in groups.lost[:_NAMED]
    ]
    more = len(groups.lost) - len(named)
    rest = f", and {more:,} more" if more else ""
    return (
        f"Groups: {len(groups.lost):,} of {len(groups.subgroups):,} lost more than half of their "
        f"share: {', '.join(named)}{rest}. Do not use these records to speak about them."
    )


def percent(share: float, *, digits: int = 1) -> str:
    """Return a share as text.

    >>> percent(0.1234).split(), percent(0.5, digits=0).split()
    (['12.3', '%'], ['50', '%'])
    """
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
