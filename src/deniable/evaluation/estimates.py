"""Estimates of the table itself, from the noisy counts of a verified artefact: a public edition."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deniable.evaluation.release_claim import ReleaseClaim
from deniable.evaluation.verdict import percent
from deniable.html import Markup, paragraph, section, table, tag
from deniable.release.artefact import Artefact, load
from deniable.release.query_answer import BandRule, QueryAnswer
from deniable.schema.attribute import Attribute

# Values of a column that are shown one by one; bands of numbers; and columns.
_MAX_VALUES = 24
_MAX_BANDS = 10
_MAX_COLUMNS = 60


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """What an artefact says of its table.

    Attributes:
        columns: The shares of each column, with intervals.
        bounds: What the noise hides, in words; empty without noise, and for the paper's estimators.
    """

    columns: tuple[QueryAnswer, ...]
    bounds: tuple[str, ...]

    @classmethod
    def of(cls, artefact: Artefact) -> "Estimates":
        """Answer for each column, in bands that follow from the schema alone.

        A column with too many values is left out, and one that no noisy count answers.
        """
        learnt = [each for each in artefact.schema.columns if isinstance(each, Attribute)]
        answers = (
            artefact.query(own.name, by={own.name: rule})
            for own in learnt[:_MAX_COLUMNS]
            if (rule := _public_rule(own)) is not None
        )
        return cls(
            columns=tuple(answer for answer in answers if answer.measured),
            bounds=() if artefact.kept is None else artefact.kept.sentences,
        )

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "columns": [answer.document() for answer in self.columns],
            "bounds": list(self.bounds),
        }


def find_estimates(synthetic: object, claim: ReleaseClaim) -> Estimates | None:
    """Describe the table of a release by its artefact; None if there is none.

    Args:
        synthetic: The released records, or their folder. Their artefact is in a folder next to
            them.
        claim: The verified claim of the release.
    """
    if not claim.holds or not isinstance(synthetic, str | Path):
        return None
    path = Path(synthetic)
    release = path if path.is_dir() else path.parent
    is_release = (release / "manifest.json").is_file()
    if not (is_release and (release / "artefact" / "artefact.json").is_file()):
        return None
    return Estimates.of(load(release / "artefact"))


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


def estimates_section(found: Estimates) -> Markup:
    """Show the shares of all columns in one table, and what the noise hides."""
    rows = [
        [
            answer.columns[0] if at == 0 else "",
            cell.labels[0],
            percent(cell.share.estimate) if cell.share.estimate >= 0 else "unknown",
            f"{percent(cell.share.low)} to {percent(cell.share.high)}",
        ]
        for answer in found.columns
        for at, cell in enumerate(answer.cells)
    ]
    return section(
        "The table, with error bars",
        paragraph(
            "Estimates of the confidential table itself, from the artefact's noisy counts and the "
            "known law of their noise. No row was read, and the records are not used. Of 20 "
            "intervals, 19 hold the share that the table has, on average."
        ),
        tag("ul", [tag("li", sentence) for sentence in found.bounds]),
        table(["column", "value", "share of rows", "95 % interval"], rows, left=2),
    )
