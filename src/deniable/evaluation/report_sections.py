"""Report sections on results measured on real rows: distances, learning, subgroups and method."""

from collections.abc import Mapping

from deniable.evaluation.classifiers import LEARNER_TITLES, learner_title
from deniable.evaluation.distances import Distances
from deniable.evaluation.distinguishability import (
    COMPARED_WITH_REAL,
    DISTINGUISHERS,
    Distinguishability,
)
from deniable.evaluation.html import Content, Markup, figure, paragraph, section, table, tag
from deniable.evaluation.intervals import JACKKNIFE_GROUPS, wilson_interval
from deniable.evaluation.metrics import Findings
from deniable.evaluation.ml_efficacy import TRAINING_SOURCES, MlEfficacy
from deniable.evaluation.private_erm import LOSS_TITLES
from deniable.evaluation.subgroups import MIN_GROUP_ROWS, SubgroupFindings
from deniable.evaluation.svg_plots import draw_box_plots, draw_heatmap
from deniable.evaluation.verdict import DistancesByWidth, percent

# A larger heatmap cannot be read; only the columns with the largest distances are shown.
_MAX_HEATMAP_COLUMNS = 30
_MAX_WORST_LISTED = 10
# Up to this many columns, the heatmap leaves room for a table next to it.
_MAX_COLUMNS_SIDE_BY_SIDE = 12

_BOX_CAPTION = (
    "Line: smallest to largest distance. Box: the middle half of the distances. Bar: median."
)

_FIRST_REPORT = (
    " This is a first report: scores of models trained on more rows are higher, for real rows and "
    "released records alike, and a classifier tells more records apart. The option --thorough "
    "trains more models on more rows; distances, relations and groups stay the same."
)

# Names in the report.
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
_PRIVATE_TITLES = {
    "not private": "Real rows, no privacy",
    "output perturbation": "Real rows, noise on the result",
    "objective perturbation": "Real rows, noise on the objective",
    "released": "Released records",
    "marginals": "Independent columns",
}


def distances_section(found: Findings) -> Markup:
    """Describe the distances of columns, pairs and triples from the real rows."""
    against = (
        "held-out real rows that the release was not learnt from"
        if found.held_out
        else "the same real rows the release was learnt from, because no held-out table was given"
    )
    pictures, rows = [], []
    for width, title in (("attributes", "Single columns"), ("pairs", "Pairs of columns")):
        if width not in found.distances:
            continue
        boxes = {_COMPARED_TITLES[name]: of.box for name, of in _ordered(found.distances[width])}
        pictures.append(tag("div", tag("h3", title), figure(draw_box_plots(boxes), _BOX_CAPTION)))
    for width, compared in found.distances.items():
        rows += [[width, *_distance_row(compared)]]
    return section(
        "Distances",
        paragraph(
            "The distance between two distributions (total variation) is the share of records that "
            "would have to change to make them equal. Here it is measured against "
            f"{against}. There are two baselines. Other real rows show how large the distance is "
            "by chance alone. Independent columns show how large it is if no relationship between "
            "columns is kept.",
        ),
        tag("div", pictures, class_="two"),
        table(["mean distance", *_COMPARED_TITLES.values()], rows),
    )


def _ordered(compared: Mapping[str, Distances]) -> list[tuple[str, Distances]]:
    return [(name, compared[name]) for name in _COMPARED_TITLES]


def _distance_row(compared: Mapping[str, Distances]) -> list[Content]:
    return [_with_interval(of.mean, of.interval) for _, of in _ordered(compared)]


def _with_interval(value: float, interval: tuple[float, float]) -> Content:
    low, high = interval
    return [f"{percent(value)} ", tag("small", f"{100 * max(low, 0):.1f} to {100 * high:.1f}")]


def pairs_section(distances: DistancesByWidth) -> Markup:
    """Describe the distance of every pair of columns, and list the largest."""
    pairs = distances["pairs"]
    released, reals = pairs["released"], pairs["reals"]
    real_distances = dict(zip(reals.names, reals.values, strict=True))
    rows = [
        [" × ".join(names), percent(value), percent(real_distances[names])]
        for names, value in released.worst(_MAX_WORST_LISTED)
    ]
    values = {
        (names[0], names[1]): value
        for names, value in zip(released.names, released.values, strict=True)
    }
    names, note = _heatmap_columns(distances["attributes"]["released"], values)
    return section(
        "Pairs of columns",
        tag(
            "div",
            figure(
                tag("div", draw_heatmap(names, values), class_="scroll"),
                f"Distance of every pair of columns, in percent. Darker is larger.{note}",
                class_="wide",
            ),
            table(["largest distances", "released", "other real rows"], rows),
            class_="two" if len(names) <= _MAX_COLUMNS_SIDE_BY_SIDE else None,
        ),
    )


def _heatmap_columns(
    single: Distances, values: Mapping[tuple[str, str], float]
) -> tuple[list[str], str]:
    """Choose the columns to draw: all, or those with the largest distances."""
    every = [name for (name,) in single.names]
    if len(every) <= _MAX_HEATMAP_COLUMNS:
        return every, ""
    total = {name: sum(v for pair, v in values.items() if name in pair) for name in every}
    chosen = set(sorted(every, key=lambda name: -total[name])[:_MAX_HEATMAP_COLUMNS])
    note = f" Shown: the {_MAX_HEATMAP_COLUMNS} of {len(every)} columns with the largest distances."
    return [name for name in every if name in chosen], note


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
            f"run{'s' if learning.runs > 1 else ''}; the small numbers are 95 % intervals. Always "
            f"predicting the most common value scores {percent(learning.baseline)}."
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
        *_private_erm_table(learning),
    )


def _private_erm_table(learning: MlEfficacy) -> list[Markup]:
    if not learning.private:
        return []
    rows = [
        [title, *(_accuracy(found[name], learning) for found in learning.private.values())]
        for name, title in _PRIVATE_TITLES.items()
    ]
    epsilon = next(iter(learning.private.values()))["epsilon"]
    caption = (
        f"Accuracy of linear classifiers: trained on real rows with differential privacy "
        f"(ε = {epsilon:g}) for this task only, and trained on the released records"
    )
    heads = [LOSS_TITLES[loss] for loss in learning.private]
    return [table(["trained on", *heads], rows, caption=caption)]


def _accuracy(value: float, learning: MlEfficacy) -> Content:
    return _with_interval(value, wilson_interval(value, learning.test_rows))


def distinguishability_section(game: Distinguishability) -> Markup:
    """Describe how well classifiers distinguish released records from real rows."""
    rows = [
        [
            LEARNER_TITLES[classifier],
            *(
                _with_interval(result.accuracy, result.interval)
                for result in map(rounds.get, COMPARED_WITH_REAL)
                if result
            ),
        ]
        for classifier, rounds in ((name, game.rounds[name]) for name in DISTINGUISHERS)
    ]
    trained = game.rounds[DISTINGUISHERS[0]]["released"].trained_on
    return section(
        "Distinguishability",
        paragraph(
            f"A classifier is trained on {trained:,} records, half of them real, and then decides "
            "for other records whether they are real or released. Random guessing is right 50 % of "
            "the time: the closer to 50 %, the harder the records are to distinguish. Other real "
            "rows are the control and should give about 50 %.",
        ),
        table(
            ["correct decisions", *(_COMPARED_TITLES[name] for name in COMPARED_WITH_REAL)], rows
        ),
    )


def subgroups_section(groups: SubgroupFindings) -> Markup:
    """Describe how well rare pairs of values and small groups are represented."""
    bands = [
        [_band_name(b.least, b.below), percent(b.reference), percent(b.reals), percent(b.released)]
        for b in groups.bands
    ]
    worst = [
        [
            f"{g.attribute}: {g.value}", f"{g.rows:,}", percent(g.share), percent(g.released),
            percent(g.distance), percent(g.chance),
        ]
        for g in groups.subgroups[:_MAX_WORST_LISTED]
    ]  # fmt: skip
    return section(
        "Rare values and small groups",
        paragraph(
            "Privacy protection hides what only a few rows have in common: the deniability test "
            "suppresses it, or noise covers it. Small groups are affected most.",
        ),
        table(
            ["pair of values occurs", "real rows", "other real rows", "released"],
            bands,
            caption="Share of records with such a pair, averaged over all pairs of columns",
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


def _band_name(least: int, below: int | None) -> str:
    if below is None:
        return f"{least:,} times or more"
    if below == 1:
        return "never in real rows"
    return f"{least:,} to {below - 1:,} times"


def method_section(found: Findings, *, records: int) -> Markup:
    """Describe the tables and methods of the evaluation."""
    effort = found.effort
    tables = [("released records", records), *found.rows.items()]
    rows = [[name, f"{number:,}"] for name, number in tables]
    first = "" if effort.is_thorough else _FIRST_REPORT
    return section(
        "Method",
        table(["table", "rows"], rows),
        paragraph(
            f"Models were trained on at most {effort.rows:,} rows; random forests have "
            f"{effort.trees} trees.{first} Random choices use key {effort.key}. Small numbers are "
            f"95 % confidence intervals: Wilson intervals for shares, the jackknife over "
            f"{JACKKNIFE_GROUPS} groups of rows for distances. Models see each column as the "
            "schema's codes; linear models use one-hot encoding.",
        ),
    )
