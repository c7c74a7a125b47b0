"""The chapters of a report that are about real rows: distances, learning, game, what was lost."""

from collections.abc import Mapping

from deniable.evaluation.classifiers import TITLES, title_of
from deniable.evaluation.confidence import wilson
from deniable.evaluation.distances import Distances
from deniable.evaluation.erm import TITLES as LINEAR_TITLES
from deniable.evaluation.game import OPPONENTS, PLAYERS, Game
from deniable.evaluation.groups import Groups
from deniable.evaluation.learning import SOURCES, Learning
from deniable.evaluation.likeness import Compared, percent
from deniable.evaluation.markup import Content, Markup, figure, paragraph, section, table, tag
from deniable.evaluation.metrics import Findings
from deniable.evaluation.plots import draw_boxes, draw_heat

# More names than these make no picture that can be read; the furthest apart are drawn.
_MOST_IN_HEAT = 30
_WORST = 10
# Up to so many columns, a picture of all pairs leaves room beside it.
_MOST_BESIDE = 12

# In the words of the report.
_COMPARED = {
    "released": "Released records",
    "marginals": "Independent columns",
    "reals": "Other real rows",
}
_SOURCES = {
    "real": "Real rows",
    "half": "Half of the real rows",
    "released": "Released records",
    "marginals": "Independent columns",
}
_PRIVATE = {
    "not private": "Real rows, no privacy",
    "output perturbation": "Real rows, noise on the result",
    "objective perturbation": "Real rows, noise on the objective",
    "released": "Released records",
    "marginals": "Independent columns",
}


def about_distances(found: Findings) -> Markup:
    """Return how far columns, pairs and triples are from the real ones."""
    against = (
        "held-out rows that the release was not learnt from"
        if found.held_out
        else "the very rows the release was learnt from, as no held-out table was given"
    )
    pictures, rows = [], []
    for width, title in (("attributes", "Single columns"), ("pairs", "Pairs of columns")):
        if width not in found.distances:
            continue
        boxes = {_COMPARED[name]: of.box for name, of in _ordered(found.distances[width])}
        pictures.append(tag("div", tag("h3", title), figure(draw_boxes(boxes), _BOX_CAPTION)))
    for width, compared in found.distances.items():
        rows += [[width, *_distance_row(compared)]]
    return section(
        "Distances",
        paragraph(
            "The distance of two distributions is the share of records that would have to change "
            f"to turn one into the other. It is measured against {against}. Other real rows show "
            "what chance alone makes of it, independent columns what it is if nothing but single "
            "columns is kept.",
        ),
        tag("div", pictures, class_="two"),
        table(["mean distance of", *_COMPARED.values()], rows),
    )


_BOX_CAPTION = "Line: from the least to the greatest distance. Box: the middle half; bar: median."


def _ordered(compared: Mapping[str, Distances]) -> list[tuple[str, Distances]]:
    return [(name, compared[name]) for name in _COMPARED]


def _distance_row(compared: Mapping[str, Distances]) -> list[Content]:
    return [_with_interval(of.mean, of.interval) for _, of in _ordered(compared)]


def _with_interval(value: float, interval: tuple[float, float]) -> Content:
    low, high = interval
    return [f"{percent(value)} ", tag("small", f"{100 * max(low, 0):.1f} to {100 * high:.1f}")]


def about_pairs(distances: Compared) -> Markup:
    """Return the distance of every pair, the worst by name."""
    pairs = distances["pairs"]
    released, reals = pairs["released"], pairs["reals"]
    beside = dict(zip(reals.names, reals.values, strict=True))
    rows = [
        [" × ".join(names), percent(value), percent(beside[names])]
        for names, value in released.worst(_WORST)
    ]
    values = {
        (names[0], names[1]): value
        for names, value in zip(released.names, released.values, strict=True)
    }
    names, note = _names_in_heat(distances["attributes"]["released"], values)
    return section(
        "Pairs of columns",
        tag(
            "div",
            figure(
                tag("div", draw_heat(names, values), class_="scroll"),
                f"Distance of every pair, in per cent; darker is further apart.{note}",
                class_="wide",
            ),
            table(["furthest apart", "released", "other real rows"], rows),
            class_="two" if len(names) <= _MOST_BESIDE else None,
        ),
    )


def _names_in_heat(
    single: Distances, values: Mapping[tuple[str, str], float]
) -> tuple[list[str], str]:
    """Return the columns to draw: all, or those whose pairs are furthest apart."""
    every = [name for (name,) in single.names]
    if len(every) <= _MOST_IN_HEAT:
        return every, ""
    total = {name: sum(v for pair, v in values.items() if name in pair) for name in every}
    chosen = set(sorted(every, key=lambda name: -total[name])[:_MOST_IN_HEAT])
    note = f" The {_MOST_IN_HEAT} of {len(every)} columns that are furthest apart are shown."
    return [name for name in every if name in chosen], note


def about_learning(learning: Learning) -> Markup:
    """Return what learners make of the records."""
    by_class = learning.task == "classification"
    measure = "share of right answers" if by_class else "share of the variance explained"
    agreement = "share of equal answers" if by_class else "correlation of answers"
    rows = []
    for source in SOURCES:
        scores = [learning.scores[name][source] for name in learning.scores]
        cells = [[_with_interval(s.value, s.interval)] for s in scores]
        rows.append([_SOURCES[source], *cells])
    same = [
        [_SOURCES[s], *(percent(of[s].agreement) for of in learning.scores.values())]
        for s in SOURCES
        if s != "real"
    ]
    heads = [title_of(name, learning.task) for name in learning.scores]
    return section(
        "Learning",
        paragraph(
            f"Learners are trained to tell {learning.target} from the other columns, and tested on "
            f"{learning.test_rows:,} real rows; mean of {learning.runs} "
            f"run{'s' if learning.runs > 1 else ''}, with what the choice of test rows makes of it."
            f" Guessing alone scores {percent(learning.guessing)}."
        ),
        table(["trained on", *heads], rows, caption=f"Score: {measure}"),
        table(
            ["trained on", *heads],
            same,
            caption=f"Agreement with the same learner trained on real rows: {agreement}",
        ),
        paragraph(
            "Half of the real rows: its agreement is with a learner trained on the other half.",
            class_="note",
        ),
        *_about_private(learning),
    )


def _about_private(learning: Learning) -> list[Markup]:
    if not learning.private:
        return []
    rows = [
        [title, *(_accuracy(found[name], learning) for found in learning.private.values())]
        for name, title in _PRIVATE.items()
    ]
    epsilon = next(iter(learning.private.values()))["epsilon"]
    caption = (
        f"Linear classifiers: private ones made for this task alone (ε = {epsilon:g}), and ones "
        "trained on the release"
    )
    heads = [LINEAR_TITLES[loss] for loss in learning.private]
    return [table(["trained on", *heads], rows, caption=caption)]


def _accuracy(value: float, learning: Learning) -> Content:
    return _with_interval(value, wilson(value, learning.test_rows))


def about_game(game: Game) -> Markup:
    """Return how well learners tell released records from real ones."""
    rows = [
        [
            TITLES[player],
            *(
                _with_interval(one.accuracy, one.interval)
                for one in map(rounds.get, OPPONENTS)
                if one
            ),
        ]
        for player, rounds in ((player, game.rounds[player]) for player in PLAYERS)
    ]
    trained = game.rounds[PLAYERS[0]]["released"].trained_on
    return section(
        "Telling released from real",
        paragraph(
            f"A learner sees {trained:,} records, half of them real, and must say of others which "
            "they are. Guessing is right 50 % of the time, and so it should be for other real "
            "rows: that is the control.",
        ),
        table(["right answers of", *(_COMPARED[name] for name in OPPONENTS)], rows),
    )


def about_groups(groups: Groups) -> Markup:
    """Return what became of rare combinations and of small groups."""
    bands = [
        [_band_name(b.least, b.below), percent(b.reference), percent(b.reals), percent(b.released)]
        for b in groups.bands
    ]
    worst = [
        [
            f"{g.attribute}: {g.value}", f"{g.rows:,}", percent(g.share), percent(g.released),
            percent(g.distance), percent(g.chance),
        ]
        for g in groups.subgroups[:_WORST]
    ]  # fmt: skip
    return section(
        "What could not be kept",
        paragraph(
            "What only few rows share is suppressed by the deniability test or drowned in noise: "
            "that is the price of privacy, and small groups pay it first.",
        ),
        table(
            ["pairs of values that occur", "real rows", "other real rows", "released"],
            bands,
            caption="Share of records that have such a pair, a mean over all pairs of columns",
        ),
        table(
            ["group", "rows", "real share", "released share", "distance inside", "by chance"],
            worst,
            caption="Groups that the records describe least well",
        ),
        paragraph(
            "Distance inside: the mean distance of all other columns within the group; by chance: "
            "that of other real rows. Groups of fewer than 50 real rows are not listed.",
            class_="note",
        ),
    )


def _band_name(least: int, below: int | None) -> str:
    if below is None:
        return f"{least:,} times or more"
    if below == 1:
        return "never in the real rows"
    return f"{least:,} to {below - 1:,} times"


def about_measuring(found: Findings, *, records: int) -> Markup:
    """Return what everything was measured on, and how."""
    effort = found.effort
    tables = [("released records", records), *found.rows.items()]
    rows = [[name, f"{number:,}"] for name, number in tables]
    return section(
        "How it was measured",
        table(["table", "rows"], rows),
        paragraph(
            f"Learners had at most {effort.rows:,} rows, forests {effort.trees} trees; everything "
            f"drawn comes from key {effort.key}. Small figures are intervals that hold in 19 of "
            "20 cases: Wilson's for shares, the jackknife's over ten groups of rows for distances. "
            "Columns enter as the codes of the schema; linear models see one feature a code.",
        ),
    )
