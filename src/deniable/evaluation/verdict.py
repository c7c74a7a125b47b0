"""Verdict on a release: a grade by printed rules, and the findings behind it in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from deniable.evaluation.classifiers import learner_title
from deniable.evaluation.distances import Distances
from deniable.evaluation.distinguishability import Distinguishability
from deniable.evaluation.ml_efficacy import MlEfficacy
from deniable.evaluation.relation_figures import MIN_ASSOCIATION, MIN_CORRELATION
from deniable.evaluation.relations import Relations
from deniable.evaluation.subgroups import SubgroupFindings

Grade = Literal["good", "fair", "poor"]

# Distances from real rows, by width of the marginals, then by compared table.
DistancesByWidth = Mapping[str, Mapping[str, Distances]]

# If pairs differ less than this from independent columns, there is no dependence to keep.
_MIN_DEPENDENCE = 0.005
# Records whose pairs are this close to the distance of independent columns are no better.
_INDEPENDENT_DISTANCE_RATIO = 0.95
# Share of relations, above that of independent columns, below which records are no better; chance
# adds about 1/√rows, the error of a strength.
_MIN_RELATIONS_ABOVE_CHANCE = 0.1
# Kept shares of a good release, and those below which it is poor.
_GOOD_RELATIONS, _MIN_RELATIONS = 0.8, 0.4
_GOOD_DEPENDENCE, _MIN_KEPT_DEPENDENCE = 0.6, 0.3
# Score that the best model may lose in a good release, and that makes a release poor.
_GOOD_LOSS, _POOR_LOSS = 0.04, 0.1
# Maximum number of lost groups named in a finding.
_MAX_NAMED_GROUPS = 3

GRADING_RULES = (
    "How the grade is chosen. Good: at least 80 % of the relations between columns and 60 % of the "
    "dependence between pairs of columns were kept, the best model loses at most 4 points, and no "
    "group of rows lost more than half of its share. Poor: less than 40 % of the relations was "
    "kept (if there are none, less than 30 % of the dependence), pairs of columns are no better "
    "than independent columns, or the best model loses more than 10 points. Fair: everything else. "
    "Kept relations are the mean of what is left of strong associations, rank correlations "
    "and gaps between groups; kept dependence is measured by distances. Both are about 0 % for "
    "independent columns and 100 % for other real rows."
)

_HEADLINES: dict[Grade, str] = {
    "good": "These records can replace the real ones in most analyses.",
    "fair": "These records show the main patterns. Check details before you rely on them.",
    "poor": "These records keep little more than single columns. Do not draw conclusions about "
    "relations between columns from them.",
}
_INDEPENDENT_HEADLINE = (
    "In pairs of columns, these records are no better than independent columns. Do not draw "
    "conclusions about relations between columns from them."
)
_LEARNING_HEADLINE = (
    "These records show the main patterns, but models trained on them are much worse than models "
    "trained on real rows. Check every result."
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A grade, and the findings behind it in words.

    Attributes:
        grade: The grade by ``GRADING_RULES``.
        headline: What the grade means for use.
        findings: One sentence each.
        kept: Share of the dependence between pairs of columns that was kept, by their distance;
            None if the columns are nearly independent.
        relations: Share of the strong relations between columns that was kept; None if none is
            strong.
        is_independent: Whether pairs of columns are no better than in independent columns.
    """

    grade: Grade
    headline: str
    findings: tuple[str, ...]
    kept: float | None
    relations: float | None
    is_independent: bool

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "grade": self.grade,
            "headline": self.headline,
            "findings": list(self.findings),
            "kept": self.kept,
            "relations_kept": self.relations,
            "no_better_than_independent_columns": self.is_independent,
            "rules": GRADING_RULES,
        }


def judge(
    distances: DistancesByWidth,
    relations: Relations | None,
    learning: MlEfficacy | None,
    game: Distinguishability,
    groups: SubgroupFindings,
) -> Verdict:
    """Grade a release and describe the findings in words."""
    kept, share, is_independent = _dependence_kept(relations), None, False
    lost = None if learning is None else _best_learner_loss(learning)
    findings = []
    if relations is not None:
        share, is_independent = relations.kept, _is_independent(relations)
        findings += [
            _about_relations(share),
            _about_sample(relations),
            _about_pairs(relations, kept),
        ]
    findings.append(_about_columns(distances["attributes"]))
    if learning is not None and lost is not None:
        findings.append(_about_learning(learning, *lost))
    findings += [_about_game(game), _about_groups(groups)]
    grade = _grade(
        kept,
        share,
        0.0 if lost is None else lost[1],
        gone=bool(groups.lost),
        is_independent=is_independent,
    )
    return Verdict(
        grade=grade,
        headline=_headline(grade, share, is_independent=is_independent),
        findings=tuple(findings),
        kept=kept,
        relations=share,
        is_independent=is_independent,
    )


def _dependence_kept(relations: Relations | None) -> float | None:
    """Scale the distance of released pairs: independent columns are 0, real rows are 1."""
    if relations is None:
        return None
    span = relations.independent.pairs - relations.reals.pairs
    if span < _MIN_DEPENDENCE:
        return None
    return (relations.independent.pairs - relations.released.pairs) / span


def _is_independent(relations: Relations) -> bool:
    """Check whether strong relations are lost, and pairs are no closer than independent columns."""
    share, by_chance = relations.kept, relations.kept_by_chance
    if share is None or by_chance is None:
        return False
    if share < by_chance + _MIN_RELATIONS_ABOVE_CHANCE + relations.rows**-0.5:
        return True
    is_far = relations.released.pairs >= _INDEPENDENT_DISTANCE_RATIO * relations.independent.pairs
    return is_far and share < _MIN_RELATIONS


def _best_learner_loss(learning: MlEfficacy) -> tuple[str, float]:
    """Find the best learner on real rows, and the score it loses when trained on the release."""
    best = max(learning.scores, key=lambda name: learning.scores[name]["real"].value)
    scores = learning.scores[best]
    return best, _score(scores["real"].value) - _score(scores["released"].value)


def _score(value: float) -> float:
    """Return a score, at least 0: a model worse than the mean explains nothing of the variance."""
    return max(value, 0.0)


def _grade(
    kept: float | None, relations: float | None, lost: float, *, gone: bool, is_independent: bool
) -> Grade:
    """Grade by ``GRADING_RULES``; what cannot be measured does not count."""
    dependence, share = (1.0 if value is None else value for value in (kept, relations))
    too_little = share < _MIN_RELATIONS
    if relations is None:
        too_little = dependence < _MIN_KEPT_DEPENDENCE
    if is_independent or too_little or lost > _POOR_LOSS:
        return "poor"
    is_good = share >= _GOOD_RELATIONS and dependence >= _GOOD_DEPENDENCE
    return "good" if is_good and lost <= _GOOD_LOSS and not gone else "fair"


def _headline(grade: Grade, relations: float | None, *, is_independent: bool) -> str:
    if is_independent:
        return _INDEPENDENT_HEADLINE
    if grade == "poor" and relations is not None and relations >= _MIN_RELATIONS:
        return _LEARNING_HEADLINE
    return _HEADLINES[grade]


def describe_relations(relations: Relations) -> tuple[str, ...]:
    """Describe in words which relations survived, and how large a sample would be as good."""
    one, other = relations.released, relations.reals
    found = [
        _about_strong(
            f"Associations (Cramér's V above {MIN_ASSOCIATION:g})",
            _count_pairs(len(relations.strong), "columns"),
            (one.associations_kept, other.associations_kept),
        ),
        _about_strong(
            f"Rank correlations (above {MIN_CORRELATION:g})",
            _count_pairs(relations.correlations, "numbers"),
            (one.correlations_kept, other.correlations_kept),
        ),
    ]
    if one.gaps_kept is not None:
        found.append(
            "Gaps between groups (the mean of a number in a group against its mean in all rows): "
            f"{_kept_words(one.gaps_kept, other.gaps_kept)}"
        )
    found.append(
        f"Impossible combinations: {percent(one.impossible)} of the records have two values "
        "together that no real row has, although chance alone would give several such rows."
    )
    return (*found, _about_sample(relations))


def _about_relations(share: float | None) -> str:
    if share is None:
        return "Relations: no two columns of the real rows have a strong relation."
    return (
        f"Relations: {percent(share, digits=0)} of the strength of associations, rank correlations "
        "and gaps between groups is left."
    )


def _about_sample(relations: Relations) -> str:
    sample = relations.sample
    start = "Sample equivalent: for pairs of columns, these records are"
    if sample.bound == "above":
        return f"{start} as good as all the real rows."
    if sample.bound == "below":
        return f"{start} worse than a random sample of {sample.rows} of the real rows."
    low, high = (_rough_percent(value) for value in sample.interval)
    words = (
        f"{start} about as good as a random sample of {_rough_percent(sample.fraction)} of the "
        f"real rows (95\N{NO-BREAK SPACE}% interval: {low} to {high})."
    )
    if relations.kept is not None and relations.kept < _MIN_RELATIONS:
        words += " Unlike such a sample, they do not keep most relations."
    return words


def _about_strong(title: str, where: str, kept: tuple[float | None, float | None]) -> str:
    one, other = kept
    if one is None:
        return f"{title}: there are none in the real rows."
    return f"{title}: real rows have them in {where}. Of their strength, {_kept_words(one, other)}"


def _count_pairs(number: int, what: str) -> str:
    return f"{number:,} pair{'' if number == 1 else 's'} of {what}"


def _kept_words(kept: float, by_real_rows: float | None) -> str:
    words = f"{percent(max(kept, 0.0), digits=0)} was kept"
    if by_real_rows is None:
        return f"{words}."
    return f"{words}; other real rows keep {percent(max(by_real_rows, 0.0), digits=0)}."


def _rough_percent(share: float) -> str:
    """Format a share with two significant digits."""
    return f"{float(f'{100 * share:.2g}'):g}\N{NO-BREAK SPACE}%"


def _about_columns(columns: Mapping[str, Distances]) -> str:
    released, reals = columns["released"], columns["reals"]
    (worst,), distance = released.worst(1)[0]
    return (
        f"Single columns: on average, {percent(released.mean)} of the records would have to change "
        f"to match the real distribution of a column (other real rows: {percent(reals.mean)}). The "
        f"largest distance is {percent(distance)}, for {worst}."
    )


def _about_pairs(relations: Relations, kept: float | None) -> str:
    released, reals = relations.released.pairs, relations.reals.pairs
    independent = relations.independent.pairs
    facts = (
        f"mean distance {percent(released)}; other real rows {percent(reals)}, independent columns "
        f"{percent(independent)}"
    )
    if kept is None and relations.kept is None:
        return f"Pairs of columns: the columns are nearly independent in this table ({facts})."
    if released >= _INDEPENDENT_DISTANCE_RATIO * independent:
        return f"Pairs of columns: no better than independent columns would be ({facts})."
    if kept is None:
        return f"Pairs of columns: rows are too few to show how columns depend ({facts})."
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
        f"{percent(_score(scores['released'].value))} {of} when trained on released records, and "
        f"{percent(_score(scores['real'].value))} when trained on real rows: it {versus}."
    )


def _about_game(game: Distinguishability) -> str:
    rate = game.rounds["released"].accuracy
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
