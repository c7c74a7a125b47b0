"""Findings of an artefact: each column with intervals, and which differences are real.

The columns, the target and the bands of single columns are chosen by the schema alone. The target
is compared between the groups of the artefact, which noisy one-way counts formed; interactions,
whose noise was drawn later, answer. So no number is shown because its own noise made it large. All
comparisons, shown or not, share one error of 5 % (Bonferroni).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.answers.measured_cells import MeasuredCells
from deniable.answers.query import ask_question, choose_cells
from deniable.answers.real_differences import (
    Difference,
    can_compare,
    count_comparisons,
    describe_differences,
    find_differences,
)
from deniable.release.artefact import Artefact
from deniable.release.query_answer import BandRule, Interval, QueryAnswer
from deniable.schema.attribute import Attribute

# Values of a column that are shown one by one; bands of numbers; and columns.
_MAX_VALUES = 24
_MAX_BANDS = 10
_MAX_COLUMNS = 60


@dataclass(frozen=True, kw_only=True)
class GroupShares:
    """The share of one value of the target in each group of another column.

    Attributes:
        column: The other column.
        target: The target.
        outcome: Label of the target's value.
        labels: Labels of the groups.
        shares: Its share in each group.
        differences: Comparisons of all values of the target between the groups.
    """

    column: str
    target: str
    outcome: str
    labels: tuple[str, ...]
    shares: tuple[Interval, ...]
    differences: tuple[Difference, ...] = field(repr=False)

    @property
    def sentences(self) -> list[str]:
        """The real differences, in words."""
        return describe_differences([self.column, self.target], self.differences)


@dataclass(frozen=True, kw_only=True)
class ArtefactFindings:
    """Tables of an artefact, with intervals.

    Attributes:
        columns: The table of each column.
        target: The column that others are compared by; "" if there is only one column.
        groups: Shares of the target in the groups of each other column.
        comparisons: The number of all comparisons, which hold together.
        not_counted: Columns whose pair with the target no noisy count answers, or is too
            large to compare.
    """

    columns: tuple[QueryAnswer, ...] = field(repr=False)
    target: str
    groups: tuple[GroupShares, ...] = field(repr=False)
    comparisons: int
    not_counted: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "columns": [answer.document() for answer in self.columns],
            "target": self.target,
            "comparisons": self.comparisons,
            "differences": [sentence for own in self.groups for sentence in own.sentences],
            "not_counted": list(self.not_counted),
        }


def describe_artefact(artefact: Artefact, *, target: str | None = None) -> ArtefactFindings:
    """Answer for each column, and compare the target between the groups of each other column.

    Args:
        artefact: The artefact.
        target: The column to compare; None: the first target of the schema, else the last column.
    """
    schema = artefact.schema
    learnt = [column for column in schema.columns if isinstance(column, Attribute)]
    chosen = target or (schema.target[0] if schema.target else learnt[-1].name)
    shown = learnt[:_MAX_COLUMNS]
    columns = tuple(
        artefact.query(own.name, by={own.name: rule})
        for own in shown
        if (rule := _public_rule(own)) is not None
    )
    others = [own.name for own in shown if own.name != chosen]
    cells = {name: _compared_cells(artefact, name, chosen) for name in others}
    found = {name: own for name, own in cells.items() if own is not None}
    comparisons = sum(
        count_comparisons(*(len(each.bands) for each in own.selections)) for own in found.values()
    )
    groups = [_group_shares(name, chosen, own, comparisons) for name, own in found.items()]
    return ArtefactFindings(
        columns=columns,
        target=chosen if others else "",
        groups=tuple(groups),
        comparisons=comparisons,
        not_counted=tuple(name for name in others if name not in found),
    )


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


def _compared_cells(artefact: Artefact, name: str, target: str) -> MeasuredCells | None:
    """The cells of a column and the target, if noisy counts answer and they can be compared."""
    _, cells = choose_cells(ask_question(artefact, [name, target]))
    return cells if cells is not None and can_compare(cells) else None


def _group_shares(name: str, target: str, cells: MeasuredCells, comparisons: int) -> GroupShares:
    groups, outcomes = (selection.bands for selection in cells.selections)
    last = len(outcomes) - 1
    while last > 0 and outcomes.labels[last] == "missing":
        last -= 1
    return GroupShares(
        column=name,
        target=target,
        outcome=outcomes.labels[last],
        labels=groups.labels,
        shares=tuple(cells.share((at, last), (at, None)) for at in range(len(groups))),
        differences=tuple(find_differences(cells, comparisons=comparisons)),
    )
