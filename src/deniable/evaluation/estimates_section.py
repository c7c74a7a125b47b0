"""Report section on the table itself: shares with error bars, and which differences are real.

Computed from the noisy counts of the artefact, so a public report has it too.
"""

from pathlib import Path

from deniable.answers.artefact_findings import ArtefactFindings, GroupShares, describe_artefact
from deniable.answers.real_differences import describe_real, describe_too_few
from deniable.evaluation.html import Markup, paragraph, section, tag
from deniable.evaluation.interval_plot import draw_intervals
from deniable.evaluation.release_claim import ReleaseClaim
from deniable.release.artefact import load

# Real differences of each column that are listed; metrics.json has all of them.
_MAX_SENTENCES = 3


def find_estimates(
    synthetic: object, claim: ReleaseClaim | None, *, target: str | None
) -> ArtefactFindings | None:
    """Describe the artefact of a release; None if there is none, or if it was not verified.

    Args:
        synthetic: The released records, or their folder. Their artefact is in a folder next to
            them.
        claim: The verified claim of the release.
        target: The column to compare; None: the schema's, or the last.
    """
    if claim is None or claim.failures or not isinstance(synthetic, str | Path):
        return None
    path = Path(synthetic)
    release = path if path.is_dir() else path.parent
    is_release = (release / "manifest.json").is_file()
    if not (is_release and (release / "artefact" / "artefact.json").is_file()):
        return None
    return describe_artefact(load(release / "artefact"), target=target)


def estimates_section(found: ArtefactFindings) -> Markup:
    """Show the shares of each column, then of the target by every other column, and in words."""
    columns = [
        _figure(
            answer.columns[0],
            draw_intervals(
                [cell.labels[0] for cell in answer.cells],
                [cell.share for cell in answer.cells],
                title=f"Shares of {answer.columns[0]} with intervals",
            ),
        )
        for answer in found.columns
    ]
    return section(
        "Estimates of the table, with error bars",
        paragraph(
            "Estimates of the confidential table itself, from the artefact's noisy counts and the "
            "known law of their noise. No row was read, and the records are not used. A dot is the "
            "estimate, a bar its 95 % interval: of 20 bars, 19 cover the share that the table "
            "has, on average."
        ),
        *_differences(found),
        tag("h3", "Columns"),
        tag("div", columns, class_="many"),
    )


def _differences(found: ArtefactFindings) -> list[Markup]:
    """State which differences of the target are real, and draw its shares in all groups."""
    if not found.groups:
        return []
    sentences = []
    for own in found.groups:
        names = (own.column, own.target)
        sentences += describe_real(names, own.differences)[:_MAX_SENTENCES]
        sentences += describe_too_few(names, own.differences)
    every = [each for own in found.groups for each in own.differences]
    real = sum(each.is_real for each in every)
    hidden = sum(each.has_rows and not each.is_real for each in every)
    summary = (
        f"Of {found.comparisons:,} comparisons, {real:,} show a real difference, and in {hidden:,} "
        f"it is within the noise. Listed are the {_MAX_SENTENCES} largest of each column; "
        "metrics.json has all."
    )
    missing = f" Not compared with it: {', '.join(found.not_counted)}." if found.not_counted else ""
    return [
        tag("h3", f"Which differences in {found.target} are real?"),
        tag("ul", [tag("li", sentence) for sentence in sentences]),
        paragraph(
            f"{summary} All stated differences hold together with a confidence of 95 %: each "
            "comparison, of a group with all other rows, has an error of 5 % divided by their "
            f"number (Bonferroni).{missing}",
            class_="note",
        ),
        tag("div", [_group_figure(own) for own in found.groups], class_="many"),
    ]


def _group_figure(own: GroupShares) -> Markup:
    title = f'Share of {own.target} "{own.outcome}" by {own.column}'
    return _figure(title, draw_intervals(own.labels, own.shares, title=title))


def _figure(title: str, plot: Markup) -> Markup:
    return tag("figure", tag("h3", title), plot)
