"""Report of a reproduction: tables next to the paper's, figures, and its statements checked.

The tables are also rendered as Markdown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deniable.evaluation.svg_plots import draw_box_plots, draw_dots, draw_lines
from deniable.evaluation.verdict import percent
from deniable.html import Markup, figure, paragraph, section, table, tag
from deniable.reproduction.experiments import SIDES
from deniable.reproduction.paper_statements import STATEMENT_HEADER, statements
from deniable.reproduction.tables import (
    SIDE_TITLES,
    TABLE1_HEADER,
    TABLE_HEADER,
    TABLE_TITLES,
    Cells,
    attribute_rows,
    fact_rows,
    figure_rows,
    improvements,
    mean_boxes,
    model_title,
    penalty_rows,
    row_title,
    run_time_rows,
    setup_rows,
    table_rows,
    timed_runs,
)

# A formatted table: title, header, rows, and number of leading text columns.
PrintedTable = tuple[str, Sequence[str], list[list[str]], int]

_FIGURE_TITLES = {
    "figure1": "Figure 1: relative improvement of the model over marginals",
    "figure2": "Figure 2: accuracy of predicting an attribute from the others",
    "figure3": "Figure 3: distance of single columns from held-out real rows",
    "figure4": "Figure 4: distance of pairs of columns from held-out real rows",
    "figure5": "Figure 5: time to learn and to generate",
    "figure6": "Figure 6: share of candidates that pass, by k",
}
PAGE_TITLE = "Reproduction of the paper's experiments"
_PENALTY_TITLE = "Table 4: the λ with the best accuracy without noise"
_STATEMENTS_TITLE = "Statements in the text and captions"
_RUN_TIME_HEADER = ["", "cores", "runs", "total records", "seconds to learn", "records per second"]
_COMPARISON_HEADER = (*TABLE_HEADER[:-2], "range of ours")
_SIDE_PHRASES = {"authors": "With the authors' formulas", "ours": "With our default model"}


def printed_tables(cells: Cells) -> list[PrintedTable]:
    """Format every table of a reproduction, in the order of the paper."""
    found: list[PrintedTable] = []
    if "setup" in cells:
        head = ["", "paper", "here"]
        found.append(("Section 6.1: the setup", head, _format_rows(setup_rows(cells)), 1))
    if "facts" in cells:
        found.append(("Table 1: attributes", TABLE1_HEADER, _format_rows(attribute_rows(cells)), 4))
        found.append(
            ("Table 2: the table", ["", "paper", "here"], _format_rows(fact_rows(cells)), 1)
        )
    for name, title in TABLE_TITLES.items():
        found.append(
            (title, _COMPARISON_HEADER, _comparison_rows(table_rows(name, cells), cells), 2)
        )
        if name == "table4" and penalty_rows(cells):
            found.append((_PENALTY_TITLE, ["", "λ of each run"], penalty_rows(cells), 2))
    checked = [
        [where.replace(" ", "\N{NO-BREAK SPACE}"), *rest]
        for where, *rest in (statement.row() for statement in statements(cells))
    ]
    found.append((_STATEMENTS_TITLE, STATEMENT_HEADER, checked, len(STATEMENT_HEADER)))
    # Figure 5 is summarised here; the plot shows every run.
    for name, (head, *rows) in (
        figure_rows(cells) | {"figure5": [_RUN_TIME_HEADER, *run_time_rows(cells)]}
    ).items():
        text_columns = 2 if name in ("figure3", "figure4", "figure6") else 1
        found.append((_FIGURE_TITLES[name], head, _format_rows(rows), text_columns))
    return found


def as_markdown(cells: Cells, introduction: str) -> str:
    """Render all tables as Markdown."""
    parts = [introduction]
    for title, head, rows, left in printed_tables(cells):
        rule = ["---" if at < left else "---:" for at in range(len(head))]
        lines = [_markdown_row(head), _markdown_row(rule), *map(_markdown_row, rows)]
        parts.append(f"**{title}**\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _format_rows(rows: Iterable[Sequence[Any]]) -> list[list[str]]:
    return [
        [value if isinstance(value, str) else format_cell(value) for value in row] for row in rows
    ]


def format_cell(value: object) -> str:
    """Format a number: a share in percent, a count with commas, None as empty text."""
    if isinstance(value, float):
        return percent(value)
    return "" if value is None else f"{value:,}"


def _comparison_rows(rows: Iterable[Sequence[Any]], cells: Cells) -> list[list[str]]:
    """Format the rows of a table of ``TABLE_HEADER``."""
    return [
        [
            row_title(row, cells),
            column,
            *(format_cell(value) for value in (paper, authors, ours)),
            "" if difference is None else f"{100 * difference:+.1f}",
            "" if least is None else f"{100 * least:.1f} to {100 * greatest:.1f}",
        ]
        for row, column, paper, authors, ours, difference, least, greatest in rows
    ]


def page_body(
    cells: Cells, figures: Mapping[str, tuple[Markup, str]], introduction: str
) -> list[Markup]:
    """Build the page of a reproduction."""
    drawn = [figure(picture, caption) for picture, caption in figures.values()]
    tables = {title: (head, rows, left) for title, head, rows, left in printed_tables(cells)}
    numbers = [title for title in tables if title in _FIGURE_TITLES.values()]
    return [
        tag("h1", PAGE_TITLE),
        paragraph(introduction),
        paragraph(
            "These results were measured on real rows without noise. They are confidential unless "
            "the table is public.",
            class_="warning",
        ),
        _statements_summary(cells),
        *(
            section(title, table(head, rows, left=left))
            for title, (head, rows, left) in tables.items()
            if title not in numbers
        ),
        section("Figures", tag("div", drawn, class_="side-by-side")),
        section(
            "Data of the figures",
            [
                table(tables[title][0], tables[title][1], left=tables[title][2], caption=title)
                for title in numbers
            ],
        ),
    ]


def _statements_summary(cells: Cells) -> Markup:
    """Count the paper's statements that hold here, and list those that do not."""
    checked = statements(cells)
    items = []
    for side in SIDES:
        outcomes = [(statement.claim, statement.outcomes[side]) for statement in checked]
        false = [claim for claim, outcome in outcomes if outcome is not None and not outcome[1]]
        measured = sum(outcome is not None for _, outcome in outcomes)
        words = f"{_SIDE_PHRASES[side]}, {measured - len(false)} of the "
        words += f"paper's {measured} statements are true here."
        if false:
            words += " False: " + "; ".join(false) + "."
        items.append(tag("li", words))
    return tag("div", tag("ul", items), class_="verdict")


def draw_figures(cells: Cells) -> dict[str, tuple[Markup, str]]:
    """Draw the figures that were measured, by file name, with their captions."""
    figures: dict[str, tuple[Markup, str]] = {}
    if "guesses" in cells:
        figures |= _draw_accuracy(cells)
    for number, (width, what) in enumerate(
        {"attributes": "single columns", "pairs": "pairs of columns"}.items(), start=3
    ):
        figures |= _draw_distances(cells, number, width, what)
    for side in SIDES:
        if f"passing {side}" in cells:
            figures[f"figure6-{side}"] = _draw_pass_rates(cells, side)
    if timed_runs(cells):  # last, because it has one plot for both sides
        figures["figure5"] = _draw_run_times(cells)
    return figures


def _draw_distances(
    cells: Cells, number: int, width: str, what: str
) -> dict[str, tuple[Markup, str]]:
    """Draw Figure 3 or 4 for both sides, on the same scale."""
    by_side = {side: mean_boxes(cells, width, side) for side in SIDES}
    greatest = max((five[4] for found in by_side.values() for five in found.values()), default=0.0)
    drawn = {}
    for side, found in by_side.items():
        rows = {row_title(row, cells): five for row, five in found.items()}
        words = f"Figure {number}, {SIDE_TITLES[side]}: distance of {what} from real rows."
        if rows:
            drawn[f"figure{number}-{side}"] = draw_box_plots(rows, greatest=greatest), words
    return drawn


def _draw_accuracy(cells: Cells) -> dict[str, tuple[Markup, str]]:
    guesses = cells["guesses"]
    names = [guess["attribute"] for guess in guesses]
    drawn = {}
    for side in SIDES:
        better = {model_title(e): of for e, of in improvements(cells, side).items()}
        words = f"Figure 1, {SIDE_TITLES[side]}: relative improvement of the model over marginals."
        drawn[f"figure1-{side}"] = draw_dots(names, better), words
    for side in SIDES:
        accuracy = {
            "random forest": [guess["forest"] for guess in guesses],
            "model, no noise": cells[f"models {side} inf"]["mean"],
            "most common value": [guess["marginals"] for guess in guesses],
            "guessing": [guess["guessing"] for guess in guesses],
        }
        words = (
            f"Figure 2, {SIDE_TITLES[side]}: accuracy of predicting an attribute from the others."
        )
        drawn[f"figure2-{side}"] = draw_dots(names, accuracy), words
    return drawn


def _draw_run_times(cells: Cells) -> tuple[Markup, str]:
    lines = {
        f"{what}, {title}": [(run["records"], run[what]) for run in instances]
        for title, instances in timed_runs(cells).items()
        for what in ("learning", "generation")
    }
    drawn = draw_lines(lines, across="records", up="seconds", points_only=True)
    return drawn, "Figure 5: time to learn and to generate, one mark per run."


def _draw_pass_rates(cells: Cells, side: str) -> tuple[Markup, str]:
    lines = {
        row_title(row, cells): [(rate["k"], rate["passed"]) for rate in found]
        for row, found in cells[f"passing {side}"].items()
    }
    how = {
        "authors": "γ = 2, ω hidden, at most 100,000 seeds checked",
        "ours": "each candidate under its own ω, all seeds checked",
    }[side]
    words = f"Figure 6, {SIDE_TITLES[side]}: share of candidates that pass ({how})."
    return draw_lines(lines, across="k", up="pass", as_percent=True), words
