"""The page of a reproduction: tables beside the paper's, its figures anew, its sentences checked.

The same tables are written as Markdown, to be pasted into a text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deniable.evaluation.likeness import percent
from deniable.evaluation.markup import Markup, figure, paragraph, section, table, tag
from deniable.evaluation.plots import draw_boxes, draw_dots, draw_lines
from deniable.evaluation.recipes import SIDES
from deniable.evaluation.recorded import (
    HEAD,
    HEAD_OF_TABLE1,
    SIDE_TITLES,
    TITLES,
    Cells,
    attribute_rows,
    boxes,
    fact_rows,
    figure_rows,
    improvements,
    model_title,
    pace_rows,
    penalty_rows,
    row_title,
    rows_of,
    setup_rows,
    timed,
)
from deniable.evaluation.reported import HEAD_OF_STATEMENTS, statements

# A table in print: its title, its head, its rows, and how many of its columns are words.
Printed = tuple[str, Sequence[str], list[list[str]], int]

_FIGURES = {
    "figure1": "Figure 1: share of the marginals' errors that the model does not make",
    "figure2": "Figure 2: how often an attribute is told from the others",
    "figure3": "Figure 3: distance of single columns from held-out real rows",
    "figure4": "Figure 4: distance of pairs of columns from held-out real rows",
    "figure5": "Figure 5: time to learn and to generate",
    "figure6": "Figure 6: share of candidates that pass, by k",
}


def printed_tables(cells: Cells) -> list[Printed]:
    """Return every table of a reproduction, in the order of the paper, ready to be printed."""
    found: list[Printed] = []
    if "setup" in cells:
        head = ["", "paper", "here"]
        found.append(("Section 6.1: the setup", head, _said(setup_rows(cells)), 1))
    if "facts" in cells:
        found.append(("Table 1: attributes", HEAD_OF_TABLE1, _said(attribute_rows(cells)), 4))
        found.append(("Table 2: the table", ["", "paper", "here"], _said(fact_rows(cells)), 1))
    for name, title in TITLES.items():
        found.append((title, _HEAD, _beside(rows_of(name, cells), cells), 2))
        if name == "table4" and penalty_rows(cells):
            found.append((_PENALTY, ["", "λ, run by run"], penalty_rows(cells), 2))
    said = [[w.replace(" ", "\N{NO-BREAK SPACE}"), *of] for w, *of in _rows_of_statements(cells)]
    found.append((STATEMENTS, HEAD_OF_STATEMENTS, said, len(HEAD_OF_STATEMENTS)))
    # Of Figure 5 in short: one mark a run is for the picture.
    for name, (head, *rows) in (
        figure_rows(cells) | {"figure5": [_PACE, *pace_rows(cells)]}
    ).items():
        words = 2 if name in ("figure3", "figure4", "figure6") else 1
        found.append((_FIGURES[name], head, _said(rows), words))
    return found


def _rows_of_statements(cells: Cells) -> list[list[str]]:
    return [one.row() for one in statements(cells)]


_PENALTY = "Table 4: the λ that did best without noise"
_PACE = ["", "cores", "runs", "records in all", "seconds to learn", "records a second"]
STATEMENTS = "What the text and the captions say"
_HEAD = (*HEAD[:-2], "runs of ours")


def as_markdown(cells: Cells, words: str) -> str:
    """Return all tables as Markdown."""
    parts = [words]
    for title, head, rows, left in printed_tables(cells):
        rule = ["---" if at < left else "---:" for at in range(len(head))]
        lines = [_line(head), _line(rule), *map(_line, rows)]
        parts.append(f"**{title}**\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _said(rows: Iterable[Sequence[Any]]) -> list[list[str]]:
    return [[value if isinstance(value, str) else say(value) for value in row] for row in rows]


def say(value: object) -> str:
    """Return a number as text: a share in percent, a count with commas, nothing for None."""
    if isinstance(value, float):
        return percent(value)
    return "" if value is None else f"{value:,}"


def _beside(rows: Iterable[Sequence[Any]], cells: Cells) -> list[list[str]]:
    """Return the rows of a table beside the paper's."""
    return [
        [
            row_title(row, cells),
            column,
            *(say(value) for value in (paper, authors, ours)),
            "" if difference is None else f"{100 * difference:+.1f}",
            "" if least is None else f"{100 * least:.1f} to {100 * greatest:.1f}",
        ]
        for row, column, paper, authors, ours, difference, least, greatest in rows
    ]


def body(cells: Cells, figures: Mapping[str, tuple[Markup, str]], words: str) -> list[Markup]:
    """Return the page of a reproduction."""
    drawn = [figure(picture, caption) for picture, caption in figures.values()]
    tables = {title: (head, rows, left) for title, head, rows, left in printed_tables(cells)}
    numbers = [title for title in tables if title in _FIGURES.values()]
    return [
        tag("h1", "The paper's experiments, made again"),
        paragraph(words),
        paragraph(
            "Measured on real rows, without noise: confidential unless the table is public.",
            class_="warning",
        ),
        _verdict(cells),
        *(
            section(title, table(head, rows, left=left))
            for title, (head, rows, left) in tables.items()
            if title not in numbers
        ),
        section("Figures", tag("div", drawn, class_="beside")),
        section(
            "The figures in numbers",
            [
                table(tables[title][0], tables[title][1], left=tables[title][2], caption=title)
                for title in numbers
            ],
        ),
    ]


_BY = {"authors": "By the authors' formulas", "ours": "By our default model"}


def _verdict(cells: Cells) -> Markup:
    """Return how many of the paper's sentences are true here, and which are not."""
    made = statements(cells)
    said = []
    for side in SIDES:
        found = [(one, one.found[side]) for one in made]
        wrong = [one.says for one, answer in found if answer is not None and not answer[1]]
        of = sum(answer is not None for _, answer in found)
        words = f"{_BY[side]}, {of - len(wrong)} of the "
        words += f"paper's {of} statements are true here."
        if wrong:
            words += " Not so: " + "; ".join(wrong) + "."
        said.append(tag("li", words))
    return tag("div", tag("ul", said), class_="verdict")


def draw_figures(cells: Cells) -> dict[str, tuple[Markup, str]]:
    """Return the figures there are cells for, by file name, with what they show."""
    figures: dict[str, tuple[Markup, str]] = {}
    if "guesses" in cells:
        figures |= _draw_accuracy(cells)
    for number, (width, what) in enumerate(
        {"attributes": "single columns", "pairs": "pairs of columns"}.items(), start=3
    ):
        figures |= _draw_distances(cells, number, width, what)
    for side in SIDES:
        if f"passing {side}" in cells:
            figures[f"figure6-{side}"] = _draw_passing(cells, side)
    if timed(cells):  # the only one without a second: at the end
        figures["figure5"] = _draw_pace(cells)
    return figures


def _draw_distances(
    cells: Cells, number: int, width: str, what: str
) -> dict[str, tuple[Markup, str]]:
    """Return Figure 3 or 4 of both sides, on one scale."""
    by_side = {side: boxes(cells, width, side) for side in SIDES}
    greatest = max((five[4] for found in by_side.values() for five in found.values()), default=0.0)
    drawn = {}
    for side, found in by_side.items():
        rows = {row_title(row, cells): five for row, five in found.items()}
        words = f"Figure {number}, {SIDE_TITLES[side]}: distance from real rows of {what}."
        if rows:
            drawn[f"figure{number}-{side}"] = draw_boxes(rows, greatest=greatest), words
    return drawn


def _draw_accuracy(cells: Cells) -> dict[str, tuple[Markup, str]]:
    guesses = cells["guesses"]
    names = [guess["attribute"] for guess in guesses]
    drawn = {}
    for side in SIDES:
        better = {model_title(e): of for e, of in improvements(cells, side).items()}
        words = f"Figure 1, {SIDE_TITLES[side]}: share of the marginals' errors that is avoided."
        drawn[f"figure1-{side}"] = draw_dots(names, better), words
    for side in SIDES:
        accuracy = {
            "random forest": [guess["forest"] for guess in guesses],
            "model, no noise": cells[f"models {side} inf"]["mean"],
            "commonest value": [guess["marginals"] for guess in guesses],
            "guessing": [guess["guessing"] for guess in guesses],
        }
        words = f"Figure 2, {SIDE_TITLES[side]}: how often an attribute is told from the others."
        drawn[f"figure2-{side}"] = draw_dots(names, accuracy), words
    return drawn


def _draw_pace(cells: Cells) -> tuple[Markup, str]:
    lines = {
        f"{what}, {title}": [(one["records"], one[what]) for one in instances]
        for title, instances in timed(cells).items()
        for what in ("learning", "generation")
    }
    drawn = draw_lines(lines, across="records", up="seconds", points_only=True)
    return drawn, "Figure 5: time to learn and to generate, one mark a run."


def _draw_passing(cells: Cells, side: str) -> tuple[Markup, str]:
    lines = {
        row_title(row, cells): [(one["k"], one["passed"]) for one in found]
        for row, found in cells[f"passing {side}"].items()
    }
    how = {
        "authors": "γ = 2, ω hidden, at most 100,000 seeds checked",
        "ours": "each under its own ω, all seeds counted",
    }[side]
    words = f"Figure 6, {SIDE_TITLES[side]}: share of candidates that pass ({how})."
    return draw_lines(lines, across="k", up="pass", as_percent=True), words
