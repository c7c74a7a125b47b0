"""Report section on the table itself: the shares of each column, with error bars.

Computed from the noisy counts of the artefact, so a public report has it too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deniable.evaluation.html import Markup, paragraph, section, tag
from deniable.evaluation.interval_plot import draw_intervals
from deniable.evaluation.release_claim import ReleaseClaim
from deniable.release.artefact import Artefact, load
from deniable.release.query_answer import BandRule, QueryAnswer
from deniable.schema.attribute import Attribute

# Values of a column that are shown one by one; bands of numbers; and columns.
_MAX_VALUES = 24
_MAX_BANDS = 10
_MAX_COLUMNS = 60


def find_estimates(synthetic: object, claim: ReleaseClaim | None) -> tuple[QueryAnswer, ...]:
    """Answer for each column of a release; none if it has no artefact, or was not verified.

    Args:
        synthetic: The released records, or their folder. Their artefact is in a folder next to
            them.
        claim: The verified claim of the release.
    """
    if claim is None or claim.failures or not isinstance(synthetic, str | Path):
        return ()
    path = Path(synthetic)
    release = path if path.is_dir() else path.parent
    is_release = (release / "manifest.json").is_file()
    if not (is_release and (release / "artefact" / "artefact.json").is_file()):
        return ()
    return describe_columns(load(release / "artefact"))


def describe_columns(artefact: Artefact) -> tuple[QueryAnswer, ...]:
    """Answer for each column, in bands that follow from the schema alone.

    A column with too many values is left out, and one that no noisy count answers.
    """
    learnt = [each for each in artefact.schema.columns if isinstance(each, Attribute)]
    answers = (
        artefact.query(own.name, by={own.name: rule})
        for own in learnt[:_MAX_COLUMNS]
        if (rule := _public_rule(own)) is not None
    )
    return tuple(answer for answer in answers if answer.measured)


def _public_rule(attribute: Attribute) -> BandRule | None:
    """Choose few bands of a column by its schema alone; None if it has too many values."""
    if attribute.grid is None:
        return "values" if attribute.size <= _MAX_VALUES else None
    if attribute.bins <= _MAX_BANDS:
        return "values"
    firsts = np.arange(1, _MAX_BANDS) * attribute.bins // _MAX_BANDS
    edges: Sequence[Any] = [
        attribute.grid.value_at(int(attribute.first_positions[first])) for first in firsts
    ]
    return edges


def estimates_section(answers: Sequence[QueryAnswer]) -> Markup:
    """Show the shares of each column."""
    return section(
        "Estimates of the table, with error bars",
        paragraph(
            "Estimates of the confidential table itself, from the artefact's noisy counts and the "
            "known law of their noise. No row was read, and the records are not used. A dot is the "
            "estimate, a bar its 95 % interval: of 20 bars, 19 cover the share that the table "
            "has, on average."
        ),
        tag("div", [_figure(answer) for answer in answers], class_="many"),
    )


def _figure(answer: QueryAnswer) -> Markup:
    (name,) = answer.columns
    labels = [cell.labels[0] for cell in answer.cells]
    shares = [cell.share for cell in answer.cells]
    plot = draw_intervals(labels, shares, title=f"Shares of {name} with intervals")
    return tag("figure", tag("h3", name), plot)
