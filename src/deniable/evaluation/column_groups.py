"""Columns in groups: at most ten ranges of numbers, or the most frequent values and the rest.

Relations that people report, such as a difference in means between groups, are visible at this
resolution. The rules follow from real rows, so groups are confidential.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.schema.attribute import Attribute

# Ranges of numbers have equally many rows; a value with at least this share has its own group.
_RANGE_COUNT = 10
_MIN_SHARE_OF_VALUE = 0.05
# Values with their own group; all others are one group.
_MAX_VALUES = 12
# A column is a number if it has more values than this, and at least half of its cells.
_MAX_CODE_VALUES = 8
_MIN_PRESENT = 0.5
# Numbers beyond these quantiles are clipped: a few extremes would decide every mean.
_CLIP_QUANTILES = (0.01, 0.99)
# A listed column with more values per row than this has no groups to compare.
_MAX_VALUES_PER_ROW = 0.5

# Group of each row: there are far fewer than 256.
GroupNumbers = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class GroupedColumn:
    """Groups of one column, and its numbers if it has any.

    Attributes:
        name: Name of the attribute.
        column: Column of the codes.
        groups: Number of groups.
        group_of: Group of each code.
        level_of: Level of each code: its number after clipping, in increasing order. A missing
            cell has the last level. None: the column is not a number.
        numbers: Number of each level, in steps of the grid; NaN for a missing cell.
    """

    name: str
    column: int
    groups: int
    group_of: GroupNumbers
    level_of: Indices | None
    numbers: Reals

    def group(self, codes: Codes) -> GroupNumbers:
        """Look up the group of each row."""
        return self.group_of[codes[:, self.column]]


def group_columns(
    attributes: Sequence[Attribute], codes: Codes, *, skipped: Collection[str] = ()
) -> tuple[GroupedColumn, ...]:
    """Cut every column of real rows into groups; skip columns without groups to compare.

    Skipped are columns with a single value, listed ones with a value for every second row, and
    those of ``skipped``, which are no columns of the table.
    """
    found = (
        _group_column(attribute, column, np.bincount(codes[:, column], minlength=attribute.size))
        for column, attribute in enumerate(attributes)
        if attribute.name not in skipped
    )
    return tuple(each for each in found if each is not None)


def _group_column(attribute: Attribute, column: int, counts: Counts) -> GroupedColumn | None:
    present = counts[: attribute.bins]
    values, rows = np.count_nonzero(present), counts.sum()
    if values == 0 or np.count_nonzero(counts) < 2:
        return None
    level_of, numbers = None, np.empty(0)
    if attribute.is_numeric and values > _MAX_CODE_VALUES and present.sum() >= _MIN_PRESENT * rows:
        centres = attribute.first_positions + (attribute.widths - 1) / 2
        group_of = _ranges(centres, present, int(rows))
        level_of, numbers = _levels(centres, present)
        for _ in range(attribute.bins, attribute.size):  # missing, or not in the schema
            group_of = np.append(group_of, group_of.max() + 1)
            level_of = np.append(level_of, len(numbers) - 1)
    elif values > _MAX_VALUES_PER_ROW * rows:
        return None
    else:
        group_of = _frequent_values(counts)
    return GroupedColumn(
        name=attribute.name,
        column=column,
        groups=int(group_of.max()) + 1,
        group_of=group_of.astype(np.uint8),
        level_of=level_of,
        numbers=numbers,
    )


def _ranges(centres: Reals, counts: Counts, rows: int) -> Indices:
    """Assign numbers to ranges of equally many rows; a frequent value at a cut is a range."""
    cuts = np.unique(
        np.quantile(np.repeat(centres, counts), np.linspace(0, 1, _RANGE_COUNT + 1)[1:-1])
    )
    frequent = centres[counts >= _MIN_SHARE_OF_VALUE * rows]
    after = np.nextafter(np.intersect1d(cuts, frequent), np.inf)
    return np.searchsorted(np.union1d(cuts, after), centres, side="right")


def _levels(centres: Reals, counts: Counts) -> tuple[Indices, Reals]:
    """Clip numbers to their quantiles; return the level of each, and the number of each level."""
    low, high = np.quantile(np.repeat(centres, counts), _CLIP_QUANTILES)
    numbers, level_of = np.unique(np.clip(centres, low, high), return_inverse=True)
    return level_of, np.append(numbers, np.nan)


def _frequent_values(counts: Counts) -> Indices:
    """Assign the most frequent values to groups of their own, all others to the last group."""
    order = np.argsort(-counts, kind="stable")[:_MAX_VALUES]
    order = order[counts[order] > 0]
    group_of = np.full(len(counts), len(order), dtype=np.intp)
    group_of[order] = np.arange(len(order))
    return group_of
