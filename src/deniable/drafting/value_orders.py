"""Find a better order of listed values: schools by the mean income that follows from the school.

The model merges neighbours of a long list. Where a number follows from each value, values of
similar numbers are more alike than values of similar names: then what the number goes with is
still there after they are merged.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.drafting.column_axes import ColumnAxis
from deniable.drafting.dependencies import Dependency, spread_rows
from deniable.drafting.description import TomlScalar
from deniable.drafting.rank_correlation import rank, rank_correlation

# Rows that are compared, and columns that a list is compared with.
_SAMPLE_ROWS = 5_000
_MAX_COMPARED = 100
# Lists that are compared.
_MAX_LISTS = 50
# A shorter list is hardly merged.
_MIN_VALUES = 15
# An order is better if the sum of its squared rank correlations with other columns is larger by
# this factor, and if one of them is at least this.
_MIN_GAIN = 1.2
_MIN_CORRELATION = 0.25


@dataclass(frozen=True, kw_only=True)
class ValueOrder:
    """A better order of the values of a column.

    Attributes:
        column: The column.
        by: The column of the numbers that follow from its values.
        values: Its values, by ascending number.
    """

    column: str
    by: str
    values: tuple[TomlScalar, ...] = field(repr=False)


def find_value_orders(
    axes: Sequence[ColumnAxis], dependencies: Sequence[Dependency]
) -> list[ValueOrder]:
    """Find better orders for long lists of values.

    Args:
        axes: The columns.
        dependencies: The columns that follow from another.
    """
    by_name = {axis.name: axis for axis in axes}
    found, tried = [], 0
    for source in axes:
        followers = [each.target for each in dependencies if each.source == source.name]
        targets = [
            each
            for each in dependencies
            if each.source == source.name and not each.by_steps and _has_numbers(each, by_name)
        ]
        # Whole numbers may be codes; others are amounts, and have the order of their size.
        is_code = all(type(label) in (str, int) for label in source.labels)
        is_long = is_code and source.is_closed and source.values >= _MIN_VALUES
        if not targets or not is_long:
            continue
        others = [
            axis for axis in axes if axis.is_ordered and axis.name not in (source.name, *followers)
        ]
        if tried == _MAX_LISTS:
            break
        tried += 1
        if (best := _best_order(source, targets, others[:_MAX_COMPARED])) is not None:
            found.append(best)
    return found


def _has_numbers(found: Dependency, axes: Mapping[str, ColumnAxis]) -> bool:
    """Whether a number follows from most values; it may be missing for others."""
    target = axes[found.target]
    missing = sum(result == target.missing for _, result in found.pairs)
    return target.is_range and 2 * missing < len(found.pairs)


def _best_order(
    source: ColumnAxis, targets: Sequence[Dependency], others: Sequence[ColumnAxis]
) -> ValueOrder | None:
    """Choose the number that goes best with other columns; None if the order is better as it is."""
    rows = spread_rows(len(source.codes), _SAMPLE_ROWS)
    rows = rows[source.codes[rows] < source.values]
    if len(rows) < 2 or not others:
        return None
    compared = [_known_ranks(axis, rows) for axis in others]
    own = np.zeros(len(others))
    if source.is_ordered:
        own = _correlations(source.codes[rows].astype(np.float64), compared)
    best, chosen = _MIN_GAIN * float(np.square(own).sum()), None
    for target in targets:
        places = _places(source, dict(target.pairs))
        found = _correlations(places[source.codes[rows]].astype(np.float64), compared)
        score = float(np.square(found).sum())
        if score > best and np.abs(found).max() >= _MIN_CORRELATION:
            best, chosen = score, (target, places)
    if chosen is None:
        return None
    target, places = chosen
    values = tuple(source.labels[code] for code in np.argsort(places))
    return ValueOrder(column=source.name, by=target.target, values=values)


def _known_ranks(axis: ColumnAxis, rows: Indices) -> Reals:
    """Rank the codes of some rows; missing cells have none."""
    codes = axis.codes[rows]
    return rank(np.where(codes < axis.values, codes, np.nan))


def _places(source: ColumnAxis, results: Mapping[TomlScalar, TomlScalar]) -> Reals:
    """Compute the place of each value by ascending result; equal ones keep their order.

    Missing results come last.
    """
    numbers = [
        math.inf if isinstance(result := results[label], str) else float(result)  # type: ignore[arg-type]
        for label in source.labels
    ]
    places = np.empty(len(numbers))
    places[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
    return places


def _correlations(numbers: Reals, others: Sequence[Reals]) -> Reals:
    """Rank correlations of numbers with others, given the ranks of these."""
    own = rank(numbers)
    return np.array([rank_correlation(own, other) for other in others])
