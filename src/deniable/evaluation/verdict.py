"""Verdict on a release: a grade, and sentences. Both are made from the same table of measures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from deniable.data.batches import MIN_MOVED_SHARE
from deniable.evaluation.classifiers import learner_title
from deniable.evaluation.distances import Distances
from deniable.evaluation.distinguishability import Distinguishability
from deniable.evaluation.ml_efficacy import MlEfficacy
from deniable.evaluation.reference_tables import AdjustedColumn
from deniable.evaluation.relation_figures import MIN_ASSOCIATION, MIN_CORRELATION
from deniable.evaluation.relations import Relations
from deniable.evaluation.subgroups import SubgroupFindings

Grade = Literal["good", "fair", "poor", "unknown"]

# Distances from real rows, by width of the marginals, then by compared table.
DistancesByWidth = Mapping[str, Mapping[str, Distances]]

# Distances of pairs show dependence if other real rows are this much closer than independent
# columns, and at most this share of their distance.
_MIN_DEPENDENCE, _MAX_REAL_SHARE = 0.005, 0.8
# Distances of single columns show faults if those of other real rows are at most this.
_MAX_REAL_DISTANCE = 0.1
# Maximum number of groups, relations or coefficients named in a finding.
_MAX_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure that the grade depends on, with its two limits and what is said about them.

    At its limit, a figure has the grade of the side where figures are larger.

    Attributes:
        name: Key in metrics.json.
        good: A release is good on one side of this limit.
        poor: A release is poor beyond this limit; infinite if the measure makes none poor.
        rules: What a good release has, and what makes a release poor; "{}" is the limit.
        reasons: Why a release is only fair, and why it is poor.
    """

    name: str
    good: float
    poor: float
    rules: tuple[str, str]
    reasons: tuple[str, str]

    def grade(self, value: float) -> Grade:
        """Grade one value."""
        if self.good > self.poor:  # more is better
            return "good" if value >= self.good else "fair" if value >= self.poor else "poor"
        return "good" if value < self.good else "fair" if value < self.poor else "poor"

    @property
    def good_rule(self) -> str:
        """What a good release has."""
        return self.rules[0].format(f"{100 * self.good:.0f}")

    @property
    def poor_rule(self) -> str:
        """What makes a release poor; empty if nothing does."""
        return self.rules[1].format(f"{100 * self.poor:.0f}" if self.rules[1] else "")


MOVED = Measure(
    name="moved",
    good=0.02,
    poor=math.inf,
    rules=("the schema moves less than {} % of the cells of each column", ""),
    reasons=("the schema has no value for many cells of a column", ""),
)
RELATIONS = Measure(
    name="relations",
    good=0.8,
    poor=0.4,
    rules=(
        "at least {} % of the relations between columns were kept",
        "less than {} % of the relations were kept",
    ),
    reasons=(
        "some relations between columns were lost or exaggerated",
        "most relations between columns were lost or exaggerated",
    ),
)
PAIRS = Measure(
    name="pairs",
    good=0.6,
    poor=0.05,
    rules=(
        "at least {} % of the dependence between pairs of columns was kept",
        "pairs of columns are no better than independent columns (less than {} % of the dependence "
        "was kept)",
    ),
    reasons=(
        "only part of the dependence between pairs of columns was kept",
        "pairs of columns are no better than independent columns",
    ),
)
COLUMNS = Measure(
    name="columns",
    good=0.1,
    poor=0.5,
    rules=(
        "each column is less than {} points farther from the real rows than other real rows are",
        "a column is at least {} points farther from the real rows than other real rows are",
    ),
    reasons=(
        "the distribution of a column is far from the real one",
        "the distribution of a column is mostly wrong",
    ),
)
LEARNING = Measure(
    name="learning",
    good=0.04,
    poor=0.1,
    rules=(
        "the best model loses less than {} points",
        "the best model loses at least {} points",
    ),
    reasons=(
        "models trained on them are worse than models trained on real rows",
        "models trained on them are much worse than models trained on real rows",
    ),
)
LEARNT = Measure(
    name="learnt",
    good=0.5,
    poor=-math.inf,
    rules=("it keeps at least {} % of its gain over guessing", ""),
    reasons=("models trained on them are little better than guessing", ""),
)
GROUPS = Measure(
    name="groups",
    good=1,
    poor=math.inf,
    rules=("no group of rows lost more than half of its share", ""),
    reasons=("some small groups lost more than half of their share", ""),
)
EXAGGERATED = Measure(
    name="exaggerated",
    good=0.1,
    poor=math.inf,
    rules=("less than {} % of the strong relations are exaggerated", ""),
    reasons=("some relations between columns are exaggerated", ""),
)
COEFFICIENTS = Measure(
    name="coefficients",
    good=0.25,
    poor=math.inf,
    rules=("less than {} % of the largest coefficients of a regression are exaggerated", ""),
    reasons=("coefficients of a regression are exaggerated", ""),
)
MEASURES = (
    MOVED,
    RELATIONS,
    EXAGGERATED,
    PAIRS,
    COLUMNS,
    LEARNING,
    LEARNT,
    COEFFICIENTS,
    GROUPS,
)
# Without one of the first, nothing is known about several columns; without one of all, nothing.
_OF_SEVERAL_COLUMNS = (RELATIONS, PAIRS, LEARNING)
_NEEDED = (*_OF_SEVERAL_COLUMNS, COLUMNS)


def join_clauses(clauses: Sequence[str]) -> str:
    """Join clauses with commas, and "and" before the last.

    >>> join_clauses(["a", "b", "c"])
    'a, b, and c'
    """
    if len(clauses) < 3:
        return " and ".join(clauses)
    return f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


GRADING_RULES = (
    f"How the grade is chosen. Good: {join_clauses([each.good_rule for each in MEASURES])}. "
    f"Poor: {', or '.join(each.poor_rule for each in MEASURES if each.poor_rule)}. Fair: "
    "everything else. What these rows cannot show, since real rows are no better than independent "
    "columns or than guessing, does not count; if they show nothing, the grade is unknown. "
    "Kept relations are the mean of what is left of strong associations, rank correlations "
    "and gaps between groups, where an exaggeration counts as much as a loss; kept dependence is "
    "measured by distances. Both are 0 % for independent columns and 100 % for other real rows."
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence of the verdict, and the measured values that it describes.

    Attributes:
        sentence: What was found.
        values: Value of each measure; of none, if the rows cannot show it.
    """

    sentence: str
    values: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A grade, and the findings behind it.

    Attributes:
        results: The findings, in the order of the report.
    """

    results: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[str, ...]:
        """One sentence each."""
        return tuple(each.sentence for each in self.results)

    @property
    def values(self) -> dict[str, float]:
        """The value of each measure that the rows can show."""
        return {name: value for each in self.results for name, value in each.values.items()}

    @property
    def grades(self) -> dict[str, Grade]:
        """The grade of each measure that the rows can show."""
        values = self.values
        return {
            each.name: each.grade(values[each.name]) for each in MEASURES if each.name in values
        }

    @property
    def grade(self) -> Grade:
        """The worst grade of a measure; unknown if nothing that could be measured shows much."""
        found = self.grades
        for grade in ("poor", "fair"):
            if grade in found.values():
                return grade
        return "good" if any(each.name in found for each in _NEEDED) else "unknown"

    @property
    def headline(self) -> str:
        """What the grade means for use, and its reasons."""
        grade = self.grade
        if grade == "unknown":
            return "The rows are too few, or their columns too independent, to judge these records."
        if grade == "good":
            if any(each.name in self.grades for each in _OF_SEVERAL_COLUMNS):
                return "These records can replace the real ones in most analyses."
            return (
                "In single columns, these records can replace the real ones. The rows show no "
                "relation between columns that could be judged."
            )
        reasons = [
            each.reasons[grade == "poor"]
            for each in MEASURES
            if self.grades.get(each.name) == grade
        ]
        start = "Do not rely on" if grade == "poor" else "Check details before you rely on"
        return f"{start} these records: {join_clauses(reasons)}."

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "grade": self.grade,
            "headline": self.headline,
            "findings": list(self.findings),
            "measures": {
                name: {"value": self.values[name], "grade": grade}
                for name, grade in self.grades.items()
            },
            "rules": GRADING_RULES,
        }


def judge(
    distances: DistancesByWidth,
    relations: Relations | None,
    learning: MlEfficacy | None,
    game: Distinguishability,
    groups: SubgroupFindings,
    *,
    adjusted: Sequence[AdjustedColumn] = (),
) -> Verdict:
    """Grade a release and describe the findings in words."""
    found = [_judge_moved(adjusted)]
    if relations is not None:
        found += [_judge_relations(relations), _judge_exaggeration(relations)]
        found.append(_judge_pairs(relations))
        if dependence_kept(relations) is not None:
            found.append(Finding(sentence=_about_sample(relations), values={}))
    found.append(_judge_columns(distances["attributes"]))
    if learning is not None:
        found += [_judge_learning(learning), _judge_coefficients(learning)]
    found += [_describe_game(game), _judge_groups(groups)]
    return Verdict(results=tuple(found))


def _judge_moved(adjusted: Sequence[AdjustedColumn]) -> Finding:
    """Name every column of which the schema moves many cells."""
    most = max((each.moved for each in adjusted), default=0.0)
    named = [f"{each.name} ({percent(each.moved)})" for each in adjusted if each.is_named]
    if not named:
        words = "Moved cells: the schema has a value for every cell."
        if most:
            words = (
                f"Moved cells: the schema moves less than {percent(MIN_MOVED_SHARE)} of the cells "
            )
            words += "of each column, as it has no value for them."
        return Finding(sentence=words, values={MOVED.name: most})
    return Finding(
        sentence="Moved cells: the schema has no value for some cells, which it clips, replaces or "
        f"makes other, so that no record can have what stands in the table: {', '.join(named)}.",
        values={MOVED.name: most},
    )


# Relations


def _judge_relations(relations: Relations) -> Finding:
    share = relations.kept
    if share is not None:
        words = (
            f"Relations: {percent(share, digits=0)} of the strength of associations, rank "
            "correlations and gaps between groups was kept; an exaggeration counts as much as a "
            "loss."
        )
        return Finding(sentence=words, values={RELATIONS.name: share})
    if relations.has_strong:
        words = (
            "Relations: rows are too few to judge them. Other real rows keep hardly more of the "
            "strong relations than independent columns seem to keep by chance."
        )
    else:
        words = "Relations: no two columns of the real rows have a strong relation."
    return Finding(sentence=words, values={})


def _judge_exaggeration(relations: Relations) -> Finding:
    """Name the relations that are stronger in the records than in any real rows."""
    found = relations.exaggerated
    if not found:
        return Finding(
            sentence="Exaggerated: no relation is stronger than in real rows, beyond chance.",
            values={EXAGGERATED.name: 0.0},
        )
    strong = len({each.names for each in (*relations.strong, *found)})
    named = [
        f"{' × '.join(each.names)} ({each.released:.2f}, in real rows {each.real:.2f})"
        for each in found[:_MAX_NAMED]
    ]
    return Finding(
        sentence=f"Exaggerated: {len(found):,} of {strong:,} relations are stronger than in real "
        f"rows, beyond chance: {', '.join(named)}{_and_more(found)}.",
        values={EXAGGERATED.name: len(found) / strong},
    )


def _and_more(found: Sequence[object]) -> str:
    """Count those that are not named."""
    more = len(found) - _MAX_NAMED
    return f", and {more:,} more" if more > 0 else ""


def dependence_kept(relations: Relations) -> float | None:
    """Scale the distance of released pairs: independent columns are 0, other real rows are 1.

    None if other real rows are no closer than independent columns.
    """
    reals, independent = relations.reals.pairs, relations.independent.pairs
    span = independent - reals
    if span < _MIN_DEPENDENCE or reals > _MAX_REAL_SHARE * independent:
        return None
    return (independent - relations.released.pairs) / span


def _judge_pairs(relations: Relations) -> Finding:
    kept = dependence_kept(relations)
    facts = (
        f"mean distance {percent(relations.released.pairs)}; other real rows "
        f"{percent(relations.reals.pairs)}, independent columns "
        f"{percent(relations.independent.pairs)}"
    )
    if kept is None:
        return Finding(
            sentence="Pairs of columns: other real rows are no better than independent columns, so "
            f"these rows do not show whether dependence was kept ({facts}).",
            values={},
        )
    if PAIRS.grade(kept) == "poor":
        words = f"Pairs of columns: no better than independent columns would be ({facts})."
    else:
        share = percent(min(kept, 1.0), digits=0)
        words = f"Pairs of columns: {share} of the dependence between columns was kept ({facts})."
    return Finding(sentence=words, values={PAIRS.name: kept})


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
    if dependence_kept(relations) is not None:
        found.append(_about_sample(relations))
    return tuple(found)


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
    if relations.kept is not None and RELATIONS.grade(relations.kept) == "poor":
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


# Columns, learning, and groups


def _judge_columns(columns: Mapping[str, Distances]) -> Finding:
    """Judge the column that is farthest from the real rows, beyond other real rows."""
    released, reals = columns["released"], columns["reals"]
    excess = {
        names[0]: (one - other, one, other)
        for names, one, other in zip(released.names, released.values, reals.values, strict=True)
        if other <= _MAX_REAL_DISTANCE
    }
    words = (
        f"Single columns: on average, {percent(released.mean)} of the records would have to change "
        f"to match the real distribution of a column (other real rows: {percent(reals.mean)})."
    )
    if not excess:
        return Finding(
            sentence=f"{words} Rows are too few to judge columns by this: of every column, other "
            f"real rows are more than {percent(_MAX_REAL_DISTANCE, digits=0)} away.",
            values={},
        )
    worst = max(excess, key=lambda name: excess[name][0])
    beyond, distance, other = excess[worst]
    words += (
        f" The column farthest beyond other real rows is {worst}: {percent(distance)}, against "
        f"{percent(other)}."
    )
    return Finding(sentence=words, values={COLUMNS.name: beyond})


def _judge_learning(learning: MlEfficacy) -> Finding:
    """Judge what the best learner on real rows loses when trained on the release."""
    best = learning.best
    real, released = (learning.scores[best][name] for name in ("real", "released"))
    by_class = learning.task == "classification"
    what = "is correct" if by_class else "explains"
    of = "of the time" if by_class else "of the variance"
    name = learner_title(best, learning.task).lower()
    scores = (
        f"the best model ({name}) {what} {percent(_score(released.value))} {of} when trained on "
        f"released records, and {percent(_score(real.value))} when trained on real rows; guessing "
        f"{what} {percent(learning.baseline)}"
    )
    target = learning.target
    if not real.beats_guessing:
        return Finding(
            sentence=f"Predicting {target}: it cannot be predicted from the others. A model "
            "trained on real rows is no better than guessing, beyond the chance of "
            f"{learning.test_rows:,} test rows: {scores}.",
            values={},
        )
    lost = _score(real.value) - _score(released.value)
    gained = _score(real.value) - learning.baseline
    versus = f"loses {100 * lost:.1f} points" if lost > 0 else "loses nothing"
    return Finding(
        sentence=f"Predicting {target}: {scores}. It {versus}.",
        values={LEARNING.name: lost, LEARNT.name: 1 - lost / gained},
    )


def _judge_coefficients(learning: MlEfficacy) -> Finding:
    """Name the coefficients of a regression that are exaggerated."""
    found, number = learning.exaggerated, len(learning.coefficients)
    kind = f"a regression of {learning.event or learning.target}"
    if not number:
        return Finding(sentence=f"Coefficients: {kind} has none to compare.", values={})
    values = {COEFFICIENTS.name: len(found) / number}
    if not found:
        words = f"Coefficients: of the {number} largest of {kind}, none is exaggerated."
        return Finding(sentence=words, values=values)
    named = [
        f"{each.term} ({each.released:.2f}, in real rows {each.real:.2f})"
        for each in found[:_MAX_NAMED]
    ]
    return Finding(
        sentence=f"Coefficients: of the {number} largest of {kind}, {len(found)} "
        f"{'is' if len(found) == 1 else 'are'} exaggerated: "
        f"{', '.join(named)}{_and_more(found)}.",
        values=values,
    )


def _score(value: float) -> float:
    """Return a score, at least 0: a model worse than the mean explains nothing of the variance."""
    return max(value, 0.0)


def _describe_game(game: Distinguishability) -> Finding:
    """Describe how often a classifier is right. The grade does not depend on it."""
    released, independent = (game.rounds[name] for name in ("released", "marginals"))
    words = (
        "Distinguishability: a random forest that distinguishes released records from real ones is "
        f"correct {percent(released.accuracy)} of the time; random guessing is correct 50 % of the "
        "time."
    )
    if max(released.interval[0], independent.interval[0]) <= 0.5:
        words += " It cannot tell independent columns from real rows, either, so this shows little."
    return Finding(sentence=words, values={})


def _judge_groups(groups: SubgroupFindings) -> Finding:
    if not groups.subgroups:
        return Finding(
            sentence="Groups: no group is large enough to be evaluated separately.", values={}
        )
    values, of = {GROUPS.name: float(len(groups.lost))}, len(groups.subgroups)
    if not groups.lost:
        words = f"Groups: none of {of:,} groups lost more than half of its share."
        return Finding(sentence=words, values=values)
    named = [
        f"{group.attribute} {group.value} ({percent(group.share)} of real rows, "
        f"{percent(group.released)} of released records)"
        for group in groups.lost[:_MAX_NAMED]
    ]
    words = (
        f"Groups: {len(groups.lost):,} of {of:,} groups lost more than half of their share: "
        f"{', '.join(named)}{_and_more(groups.lost)}. Do not use these records to describe these "
        "groups."
    )
    return Finding(sentence=words, values=values)


def percent(share: float, *, digits: int = 1) -> str:
    """Format a share as a percentage.

    >>> percent(0.1234).split(), percent(0.5, digits=0).split()
    (['12.3', '%'], ['50', '%'])
    """
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
