"""Utility for small groups of rows.

A deniability test suppresses rare values, and noise hides small counts. Both affect small groups
first, which a mean over all records does not show.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Self

import numpy as np

from deniable.arrays import Counts, Reals
from deniable.counting.contingency import ContingencyTable, QueryAxis
from deniable.counting.local import count
from deniable.evaluation.marginals import value_label
from deniable.evaluation.reference_tables import EvaluationTables
from deniable.schema.attribute import Attribute
from deniable.workers import count_cores

# Groups are reported if they have enough reference rows and their attribute has few values.
MIN_GROUP_ROWS = 50
_MAX_GROUP_VALUES = 40
# Non-empty cells, at most, of the two-way tables that are counted at the same time.
_MAX_CELLS_PER_BATCH = 2**22
# Standard errors; large enough that no group of a wide table is called lost by chance.
_LOST_Z_SCORE = 4.5


@dataclass(frozen=True, kw_only=True)
class Subgroup:
    """Rows with one value of one attribute.

    Attributes:
        attribute: Name of the attribute.
        value: The value, as written in the schema.
        rows: Number of reference rows in the group.
        share: Share of reference rows in the group.
        released: Share of released records in the group.
        distance: Mean total variation distance of the other attributes within the group, between
            released records and the reference; 1 if no record was released.
        chance: The same distance between two tables of real rows.
        is_lost: Whether the released share is below half of the real share, and the difference is
            too large to be due to chance.
    """

    attribute: str
    value: str
    rows: int
    share: float
    released: float
    distance: float
    chance: float
    is_lost: bool

    @property
    def loss(self) -> float:
        """Distance in excess of the distance between real rows."""
        return self.distance - self.chance


@dataclass(frozen=True, kw_only=True)
class SubgroupFindings:
    """Subgroups sorted by loss, largest first."""

    subgroups: tuple[Subgroup, ...]

    @property
    def lost(self) -> tuple[Subgroup, ...]:
        """The groups marked ``is_lost``, the largest first."""
        found = [group for group in self.subgroups if group.is_lost]
        return tuple(sorted(found, key=lambda group: -group.rows))

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {"subgroups": [asdict(group) for group in self.subgroups]}


def measure_subgroups(
    attributes: Sequence[Attribute], tables: EvaluationTables
) -> SubgroupFindings:
    """Measure how well small groups are represented, from two-way tables of pairs of columns."""
    distances = {
        column: _GroupDistances.empty(attribute.size)
        for column, attribute in enumerate(attributes)
        if attribute.size <= _MAX_GROUP_VALUES
    }
    pairs = [
        pair
        for pair in combinations(range(len(attributes)), 2)
        if not distances.keys().isdisjoint(pair)
    ]
    for pair, counts in _count_pairs(attributes, tables, pairs):
        dense = [table.dense() for table in counts]
        for axis, column in enumerate(pair):
            if column in distances:
                distances[column].add([np.moveaxis(table, axis, 0) for table in dense])
    found = [
        group
        for column, measured in distances.items()
        for group in _subgroups_of(attributes[column], tables, column, measured)
    ]
    found.sort(key=lambda group: group.loss, reverse=True)
    return SubgroupFindings(subgroups=tuple(found))


def _count_pairs(
    attributes: Sequence[Attribute], tables: EvaluationTables, pairs: Sequence[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], list[ContingencyTable]]]:
    """Count pairs of columns in the reference, the release and the two tables of real rows."""
    compared = (tables.reference, tables.released, *tables.ceiling)
    rows = max(map(len, compared))
    cells = [min(rows, math.prod(attributes[i].size for i in pair)) for pair in pairs]
    batch = np.cumsum(cells) // _MAX_CELLS_PER_BATCH
    for number in np.unique(batch):
        chosen = [pairs[at] for at in np.flatnonzero(batch == number).tolist()]
        queries = [tuple(QueryAxis(i) for i in pair) for pair in chosen]
        counted = {
            id(codes): count(attributes, codes, queries, workers=count_cores())
            for codes in compared
        }
        for at, pair in enumerate(chosen):
            yield pair, [counted[id(codes)][at] for codes in compared]


@dataclass(frozen=True)
class _GroupDistances:
    """Sums, over the other columns, of distances within each group of rows.

    Attributes:
        released: Distance between released records and the reference.
        reals: Distance between two tables of real rows.
    """

    released: Reals
    reals: Reals

    @classmethod
    def empty(cls, groups: int) -> Self:
        return cls(np.zeros(groups), np.zeros(groups))

    def add(self, tables: Sequence[Counts]) -> None:
        """Add one other column: reference, release and two of real rows, groups by values."""
        shares = [table / np.maximum(table.sum(axis=1, keepdims=True), 1) for table in tables]
        reference, released, first, second = shares
        self.released[:] += 0.5 * np.abs(reference - released).sum(axis=1)
        self.reals[:] += 0.5 * np.abs(first - second).sum(axis=1)


def _subgroups_of(
    attribute: Attribute, tables: EvaluationTables, column: int, distances: _GroupDistances
) -> list[Subgroup]:
    """List the groups of one column that have enough reference rows."""
    reference, released, first, second = (
        np.bincount(codes[:, column], minlength=attribute.size)
        for codes in (tables.reference, tables.released, *tables.ceiling)
    )
    others = max(1, tables.reference.shape[1] - 1)
    found = []
    # Cells that no record can have are no group: they are counted as moved.
    codes = attribute.bins + bool(attribute.missing)
    for code in np.flatnonzero(reference[:codes] >= MIN_GROUP_ROWS).tolist():
        share = int(reference[code]) / len(tables.reference)
        kept = int(released[code]) / max(1, len(tables.released))
        real_rows = min(first[code], second[code])
        found.append(
            Subgroup(
                attribute=attribute.name,
                value=value_label(attribute, code),
                rows=int(reference[code]),
                share=share,
                released=kept,
                distance=float(distances.released[code]) / others if kept else 1.0,
                chance=float(distances.reals[code]) / others if real_rows else 1.0,
                is_lost=_is_lost(share, kept, (len(tables.reference), len(tables.released))),
            )
        )
    return found


def _is_lost(share: float, kept: float, sizes: tuple[int, int]) -> bool:
    """Check whether less than half of a share is left and chance cannot explain it."""
    error = np.sqrt(sum(share * (1 - share) / max(1, size) for size in sizes))
    return kept < share / 2 and share - kept > _LOST_Z_SCORE * float(error)
