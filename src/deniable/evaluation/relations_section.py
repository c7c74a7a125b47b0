"""Report sections on relations between columns: in words, as a plot, and by name."""

from deniable.evaluation.relation_figures import MAX_PAIRS, MIN_ASSOCIATION, RelationFigures
from deniable.evaluation.relations import Association, Relations
from deniable.evaluation.scatter_plot import draw_scatter
from deniable.evaluation.verdict import describe_relations, percent
from deniable.html import Content, Markup, figure, paragraph, section, table, tag

_TITLE = "Relations between columns"
# Relations listed by name: lost, kept, and exaggerated.
_MAX_NAMED = 5


def relations_section(relations: Relations, *, records: int) -> Markup:
    """Describe which relations survived: in words, in a plot, by name, and in figures."""
    drawn = figure(
        draw_scatter(relations.associations, strong=MIN_ASSOCIATION),
        "Each point is a pair of columns. On the dashed line, the association is as strong in the "
        "released records as in the real rows; below the line, strength was lost. Filled: "
        f"associations above {MIN_ASSOCIATION:g} in the real rows.{_shown(relations)}",
    )
    return section(
        _TITLE,
        paragraph("Are the relations that an analyst would report still there?"),
        tag("ul", [tag("li", sentence) for sentence in describe_relations(relations)]),
        tag("div", drawn, tag("div", _named(relations)), class_="two"),
        _figures_table(relations),
        paragraph(
            "Columns are cut into at most ten ranges of numbers, or into their twelve most "
            "frequent values and the rest. Kept strength is the ratio of the released to the real "
            "strength; an exaggeration counts as much as a loss. The sample equivalent is the size "
            "of a random sample of real rows whose pairs of columns are as far from the real rows "
            f"as those of the release, over {relations.sample.pairs:,} pairs of columns. With "
            f"{records:,} records, a perfect model would reach about "
            f"{percent(relations.sample.limit, digits=0)}: more records from the same artefact "
            "raise this limit.",
            class_="note",
        ),
    )


def _shown(relations: Relations) -> str:
    if len(relations.associations) < MAX_PAIRS:
        return ""
    return f" Compared: a random choice of {MAX_PAIRS} pairs of columns."


def _named(relations: Relations) -> list[Markup]:
    found = []
    for caption, none, chosen in (
        (
            "Strongest relations that were lost (less than half is left)",
            "No strong relation lost more than half of its strength.",
            relations.lost,
        ),
        (
            "Strongest relations that were kept (at least 80 % is left)",
            "No strong relation kept at least 80 % of its strength.",
            relations.well_kept,
        ),
        (
            "Most exaggerated relations (stronger than in any real rows, beyond chance)",
            "No relation is stronger than in real rows, beyond chance.",
            relations.exaggerated,
        ),
    ):
        rows = [_association_row(each) for each in chosen[:_MAX_NAMED]]
        if rows:
            found.append(table(["pair of columns", "real", "released"], rows, caption=caption))
        else:
            found.append(paragraph(none))
    return found


def _association_row(each: Association) -> list[Content]:
    return [" × ".join(each.names), f"{each.real:.2f}", f"{each.released:.2f}"]


def _figures_table(relations: Relations) -> Markup:
    rows = [
        (title, *(_format(getattr(figures, name)) for figures in _compared(relations)))
        for title, name in (
            ("Strength of associations kept", "associations_kept"),
            ("Rank correlations kept", "correlations_kept"),
            ("Gaps between groups kept", "gaps_kept"),
            ("Records with an impossible combination", "impossible"),
            ("Mean distance of pairs, in groups", "pairs"),
        )
    ]
    return table(["", "Released records", "Independent columns", "Other real rows"], rows)


def _compared(relations: Relations) -> tuple[RelationFigures, ...]:
    return relations.released, relations.independent, relations.reals


def _format(value: float | None) -> str:
    return "none is strong" if value is None else percent(value)
