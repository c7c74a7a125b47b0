"""Report sections on results measured on real rows: distances, learning, subgroups and method."""

from collections.abc import Sequence

from deniable.evaluation.classifiers import learner_title
from deniable.evaluation.distinguishability import COMPARED_WITH_REAL, Distinguishability
from deniable.evaluation.intervals import Interval
from deniable.evaluation.metrics import Findings
from deniable.evaluation.ml_efficacy import TRAINING_SOURCES, MlEfficacy
from deniable.evaluation.reference_tables import AdjustedColumn
from deniable.evaluation.subgroups import MIN_GROUP_ROWS, SubgroupFindings
from deniable.evaluation.verdict import DistancesByWidth, percent
from deniable.html import Content, Markup, paragraph, section, table, tag

_MAX_WORST_LISTED = 10

_FIRST_REPORT = (
    " This is a first report: scores of models trained on more rows are higher, for real rows and "
    "released records alike, and a classifier tells more records apart. The option --thorough "
    "trains more models on more rows; distances, relations and groups stay the same."
)

# Names in the report.
_WIDTH_TITLES = {"attributes": "Single columns", "pairs": "Pairs of columns"}
_COMPARED_TITLES = {
    "released": "Released records",
    "marginals": "Independent columns",
    "reals": "Other real rows",
}
_SOURCE_TITLES = {
    "real": "Real rows",
    "half": "Half of the real rows",
    "released": "Released records",
    "marginals": "Independent columns",
}


def adjusted_section(adjusted: Sequence[AdjustedColumn]) -> list[Markup]:
    """List the columns with cells whose value the schema has not, if there are any."""
    if not adjusted:
        return []
    rows = [
        [each.name, percent(each.moved), percent(each.rounded), percent(each.missing)]
        for each in adjusted
    ]
    return [
        section(
            "Cells that the schema changes",
            paragraph(
                "Moved: clipped to a bound, replaced by the fallback, or made other; no record can "
                "have the value that stands in the table, so it counts as distance everywhere in "
                'this report, as "not in the schema". Rounded: to the step. Missing: written as '
                "the first of the texts that mean missing.",
            ),
            table(["column", "moved", "rounded", "missing"], rows),
        )
    ]


def distances_section(found: Findings) -> Markup:
    """Describe the distances of columns and pairs from the real rows; list the largest of pairs."""
    against = (
        "held-out real rows that the release was not learnt from"
        if found.held_out
        else "the same real rows the release was learnt from, because no held-out table was given"
    )
    rows = [
        [_WIDTH_TITLES[width], *(percent(compared[name].mean) for name in _COMPARED_TITLES)]
        for width, compared in found.distances.items()
    ]
    return section(
        "Distances",
        paragraph(
            "The distance between two distributions (total variation) is the share of records that "
            "would have to change to make them equal. Here it is measured against "
            f"{against}. There are two baselines. Other real rows show how large the distance is "
            "by chance alone. Independent columns show how large it is if no relationship between "
            "columns is kept.",
        ),
        table(["mean distance", *_COMPARED_TITLES.values()], rows),
        *_worst_pairs(found.distances),
    )


def _worst_pairs(distances: DistancesByWidth) -> list[Markup]:
    """List the pairs of columns with the largest distances."""
    if "pairs" not in distances:
        return []
    released, reals = distances["pairs"]["released"], distances["pairs"]["reals"]
    real_distances = dict(zip(reals.names, reals.values, strict=True))
    rows = [
        [" × ".join(names), percent(value), percent(real_distances[names])]
        for names, value in released.worst(_MAX_WORST_LISTED)
    ]
    return [table(["largest distances of pairs", "released", "other real rows"], rows)]


def _with_interval(value: float, interval: Interval | None) -> Content:
    if interval is None:
        return percent(value)
    low, high = interval
    return [f"{percent(value)} ", tag("small", f"{100 * max(low, 0):.1f} to {100 * high:.1f}")]


def ml_efficacy_section(learning: MlEfficacy) -> Markup:
    """Describe the accuracy of learners trained on the released records."""
    by_class = learning.task == "classification"
    measure = "share of correct predictions" if by_class else "share of the variance explained"
    agreement = "share of equal predictions" if by_class else "correlation of the predictions"
    rows = []
    for source in TRAINING_SOURCES:
        scores = [learning.scores[name][source] for name in learning.scores]
        cells = [[_with_interval(s.value, s.interval)] for s in scores]
        rows.append([_SOURCE_TITLES[source], *cells])
    same = [
        [_SOURCE_TITLES[s], *(percent(of[s].agreement) for of in learning.scores.values())]
        for s in TRAINING_SOURCES
        if s != "real"
    ]
    heads = [learner_title(name, learning.task) for name in learning.scores]
    return section(
        "Machine learning",
        paragraph(
            f"Models are trained to predict {learning.target} from the other columns. They are "
            f"tested on {learning.test_rows:,} real rows. Scores are means of {learning.runs} "
            f"run{'s' if learning.runs > 1 else ''}. Always predicting the most common value "
            f"scores {percent(learning.baseline)}."
        ),
        table(["trained on", *heads], rows, caption=f"Score: {measure}"),
        table(
            ["trained on", *heads],
            same,
            caption=f"Agreement with the same model trained on real rows: {agreement}",
        ),
        paragraph(
            "For half of the real rows, agreement is with a model trained on the other half.",
            class_="note",
        ),
        *_coefficients(learning),
    )


def _coefficients(learning: MlEfficacy) -> list[Markup]:
    """List the largest coefficients of a regression; name those that are exaggerated."""
    rows = [
        [each.term, f"{each.real:.2f}", f"{each.released:.2f}",
         "exaggerated" if each.is_exaggerated else ""]
        for each in learning.coefficients
    ]  # fmt: skip
    kind = f"Logistic regression of {learning.event}" if learning.event else (
        f"Ridge regression of {learning.target}, in standard deviations"
    )  # fmt: skip
    return [
        table(["term", "real", "released", ""], rows, caption=f"{kind}: the largest coefficients"),
        paragraph(
            "A number counts in standard deviations, a value against the commonest one of its "
            "column. Exaggerated: more than 1.5 times the real coefficient, by more than 3 "
            "standard errors.",
            class_="note",
        ),
    ]


def distinguishability_section(game: Distinguishability) -> Markup:
    """Describe how well a classifier distinguishes released records from real rows."""
    results = [game.rounds[name] for name in COMPARED_WITH_REAL]
    row = [_with_interval(result.accuracy, result.interval) for result in results]
    trained = game.rounds["released"].trained_on
    return section(
        "Distinguishability",
        paragraph(
            f"A random forest is trained on {trained:,} records, half of them real, and then "
            "decides for other records whether they are real or released. Random guessing is right "
            "50 % of the time: the closer to 50 %, the harder the records are to distinguish. "
            "Other real rows are the control and should give about 50 %.",
        ),
        table(
            ["", *(_COMPARED_TITLES[name] for name in COMPARED_WITH_REAL)],
            [["correct decisions", *row]],
        ),
    )


def subgroups_section(groups: SubgroupFindings) -> Markup:
    """Describe how well small groups are represented."""
    worst = [
        [
            f"{g.attribute}: {g.value}", f"{g.rows:,}", percent(g.share), percent(g.released),
            percent(g.distance), percent(g.chance),
        ]
        for g in groups.subgroups[:_MAX_WORST_LISTED]
    ]  # fmt: skip
    return section(
        "Small groups",
        paragraph(
            "Privacy protection hides what only a few rows have in common: the deniability test "
            "suppresses it, or noise covers it. Small groups are affected most.",
        ),
        table(
            ["group", "rows", "real share", "released share", "distance", "distance by chance"],
            worst,
            caption="Groups that the released records represent least well",
        ),
        paragraph(
            "Distance: mean distance of all other columns within the group. Distance by chance: "
            f"the same for other real rows. Groups with fewer than {MIN_GROUP_ROWS} real rows are "
            "not listed.",
            class_="note",
        ),
    )


def method_section(found: Findings) -> Markup:
    """Describe the tables and methods of the evaluation."""
    effort = found.effort
    tables = [("released records", found.records), *found.rows.items()]
    rows = [[name, f"{number:,}"] for name, number in tables]
    first = "" if effort.is_thorough else _FIRST_REPORT
    return section(
        "Method",
        table(["table", "rows"], rows),
        paragraph(
            f"Models were trained on at most {effort.rows:,} rows; random forests have "
            f"{effort.trees} trees.{first} Random choices use key {effort.key}. Small numbers are "
            f"95 % confidence intervals (Wilson). Models see each column as the schema's codes; "
            "linear models use one-hot encoding.",
        ),
    )
