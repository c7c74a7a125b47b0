"""Empty regions of two columns: values, missing cells, and ends of ranges that no row combines.

Listed values are compared value by value; ranges by their ends. A bound that few rows support is
moved outward, and every bound is rounded outward: it forbids less, and is no cell of a few rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Counts, Mask
from deniable.drafting.column_axes import ColumnAxis
from deniable.drafting.description import TomlScalar

# Rows that independence expects in a combination that no row has.
MIN_EXPECTED_ROWS = 25.0
# Values of a list, and rows of each, that a combination can name.
_MAX_LISTED_VALUES = 200
_MIN_VALUE_ROWS = 20
# Numbers with at most this many values are treated as a list.
_MAX_NUMBERS_AS_LIST = 15
# A bound is sharp if the rows next to it are at least this share of what independence expects
# there. Of a bound that is not, this share of the empty tail is drafted.
_SHARP_SHARE = 0.3
_MIN_SHARP_ROWS = 10
_SOFT_TAIL_SHARE = 0.8

Bounds = dict[str, TomlScalar]


@dataclass(frozen=True, kw_only=True)
class AxisCondition:
    """Condition on one column of a combination, as ``forbid`` has it.

    Attributes:
        column: The column.
        values: The listed values, with the text for missing; empty if the condition is a bound.
        bounds: ``below`` or ``above`` and a value; or ``missing``.
    """

    column: str
    values: tuple[TomlScalar, ...] = ()
    bounds: tuple[tuple[str, TomlScalar], ...] = ()

    def to_toml(self) -> list[TomlScalar] | Bounds:
        """Convert the condition to its value in schema.toml."""
        return list(self.values) if self.values else dict(self.bounds)


# A condition, and the codes of its column that meet it.
Event = tuple[Mask, AxisCondition]


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """A combination that no row has.

    Attributes:
        conditions: One condition on each of two columns.
        masks: The codes of each column that meet its condition.
        expected: The number of rows that would have it if the columns were independent.
    """

    conditions: tuple[AxisCondition, AxisCondition]
    masks: tuple[Mask, Mask] = field(repr=False)
    expected: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it connects."""
        return tuple(each.column for each in self.conditions)

    def to_toml(self) -> dict[str, list[TomlScalar] | Bounds]:
        """Convert the combination to the value of ``forbid``."""
        return {each.column: each.to_toml() for each in self.conditions}


@dataclass(frozen=True, kw_only=True)
class AxisView:
    """A column as rules see it: values to list, or a range of numbers."""

    axis: ColumnAxis

    @property
    def is_list(self) -> bool:
        """Whether conditions list values, instead of bounding them."""
        axis = self.axis
        return not axis.is_range or axis.values <= _MAX_NUMBERS_AS_LIST

    @property
    def rows(self) -> int:
        """Number of rows of the table."""
        return len(self.axis.codes)

    def events(self) -> list[Event]:
        """List conditions with enough rows, each as a mask of codes.

        Of a list: each value, and missing. Of a range: missing and present.
        """
        axis, codes = self.axis, np.arange(self.axis.size)
        if not self.is_list:
            if axis.missing is None:
                return []
            conditions = [("missing", True), ("missing", False)]
            masks = [codes == axis.values, codes < axis.values]
            return [
                (mask, AxisCondition(column=axis.name, bounds=(condition,)))
                for mask, condition in zip(masks, conditions, strict=True)
                if axis.counts[mask].sum() >= _MIN_VALUE_ROWS
            ]
        frequent = np.flatnonzero(axis.counts >= _MIN_VALUE_ROWS)
        if len(frequent) > _MAX_LISTED_VALUES:
            return []
        present = AxisCondition(column=axis.name, bounds=(("missing", False),))
        return [
            (codes == code, AxisCondition(column=axis.name, values=(self.label(int(code)),)))
            for code in frequent
        ] + ([] if axis.missing is None else [(codes < axis.values, present)])

    def bound_mask(self, key: str, bound: TomlScalar) -> Mask:
        """Mark the codes that a bound admits, without missing."""
        before, after = self.axis.codes_beside(bound)
        codes = np.arange(self.axis.size)
        return (codes < before) if key == "below" else (codes >= after) & (codes < self.axis.values)

    def label(self, code: int) -> TomlScalar:
        """The value of a code; the text for missing."""
        return self.axis.labels[code] if code < self.axis.values else self.axis.missing or ""


def pair_exclusions(one: AxisView, other: AxisView) -> Iterator[Exclusion]:
    """Find the combinations of two columns that no row has."""
    events = one.events(), other.events()
    yield from _excluded_values(one, other, events)
    if not one.is_list:
        yield from _excluded_tails(other, one, events[1])
    if not other.is_list:
        yield from _excluded_tails(one, other, events[0])


def _excluded_values(
    one: AxisView,
    other: AxisView,
    events: tuple[list[Event], list[Event]],
) -> Iterator[Exclusion]:
    """Yield empty combinations of two events; those that share one of them are merged."""
    if not (events[0] and events[1]):
        return
    left, right = (np.stack([mask for mask, _ in each]).astype(np.int64) for each in events)
    sizes = one.axis.size, other.axis.size
    table = np.bincount(
        one.axis.codes.astype(np.int64) * sizes[1] + other.axis.codes, minlength=sizes[0] * sizes[1]
    ).reshape(sizes)
    counts = left @ table @ right.T
    expected = np.outer(left @ table.sum(axis=1), right @ table.sum(axis=0)) / one.rows
    empty = (counts == 0) & (expected >= MIN_EXPECTED_ROWS)
    _drop_covered(empty, events[1], other)
    _drop_covered(empty.T, events[0], one)
    if len(np.unique(empty, axis=1).T) < len(np.unique(empty, axis=0)):
        empty, expected, events = empty.T, expected.T, (events[1], events[0])
    patterns, of_row = np.unique(empty, axis=0, return_inverse=True)
    for at, pattern in enumerate(patterns):
        rows, columns = np.flatnonzero(of_row.ravel() == at), np.flatnonzero(pattern)
        for chosen in _mergeable(events[1], columns.tolist()):
            for among in _mergeable(events[0], rows.tolist()):
                yield Exclusion(
                    conditions=(_merge(events[0], among), _merge(events[1], chosen)),
                    masks=(_merge_masks(events[0], among), _merge_masks(events[1], chosen)),
                    expected=float(expected[np.ix_(among, chosen)].sum()),
                )


def _drop_covered(empty: Mask, events: Sequence[Event], view: AxisView) -> None:
    """Unmark, in place, single values of a list where all present values are excluded together."""
    mask, condition = events[-1]
    if not view.is_list or condition.values:
        return
    singles = [at for at, (own, _) in enumerate(events[:-1]) if (own & mask).any()]
    for row in np.flatnonzero(empty[:, -1]):
        empty[row, singles] = False


def _mergeable(events: Sequence[Event], indices: list[int]) -> list[list[int]]:
    """Split events by condition: values may be listed together, others stand alone."""
    listed = [index for index in indices if events[index][1].values]
    alone = [[index] for index in indices if not events[index][1].values]
    return [listed, *alone] if listed else alone


def _merge(events: Sequence[Event], indices: Sequence[int]) -> AxisCondition:
    first = events[indices[0]][1]
    values = tuple(value for index in indices for value in events[index][1].values)
    return AxisCondition(column=first.column, values=values, bounds=first.bounds)


def _merge_masks(events: Sequence[Event], indices: Sequence[int]) -> Mask:
    merged: Mask = np.any([events[index][0] for index in indices], axis=0)
    return merged


def _excluded_tails(by: AxisView, of: AxisView, events: Sequence[Event]) -> Iterator[Exclusion]:
    """Yield the ends of a range in which no row with a certain value of ``by`` lies.

    Values with the same bound are merged.
    """
    tails: dict[tuple[str, TomlScalar], list[tuple[int, float]]] = {}
    marginal = of.axis.counts[: of.axis.values]
    for index, (mask, _) in enumerate(events):
        own = np.bincount(of.axis.codes[mask[by.axis.codes]], minlength=of.axis.size)
        share = int(own.sum()) / of.rows
        for key, code in _tails(own[: of.axis.values], marginal, share):
            bound = of.axis.coarse_bound(code, up=key == "above")
            if bound is None:
                continue
            expected = share * float(of.axis.counts[of.bound_mask(key, bound)].sum())
            if expected >= MIN_EXPECTED_ROWS:
                tails.setdefault((key, bound), []).append((index, expected))
    for (key, bound), found in tails.items():
        condition = AxisCondition(column=of.axis.name, bounds=((key, bound),))
        for among in _mergeable(events, [index for index, _ in found]):
            yield Exclusion(
                conditions=(_merge(events, among), condition),
                masks=(_merge_masks(events, among), of.bound_mask(key, bound)),
                expected=sum(expected for index, expected in found if index in among),
            )


def _tails(own: Counts, marginal: Counts, share: float) -> Iterator[tuple[str, int]]:
    """Yield the empty tails of a distribution over codes: key, and code of the bound."""
    seen = np.flatnonzero(own)
    if not len(seen):
        return
    last = len(own) - 1
    yield "below", _soften(own, marginal, int(seen[0]), share)
    yield "above", last - _soften(own[::-1], marginal[::-1], last - int(seen[-1]), share)


def _soften(own: Counts, marginal: Counts, first: int, share: float) -> int:
    """Move the bound of an empty lower tail outward, unless the rows next to it are many.

    The lowest of a few rows is not a bound: the next row may well be lower.
    """
    tail = int(marginal[:first].sum())
    if not tail:
        return first
    cumulative = np.cumsum(marginal[first:])
    near = int(np.searchsorted(cumulative, min(tail, cumulative[-1] / 20)) + 1)
    expected = share * float(marginal[first : first + near].sum())
    rows = int(own[first : first + near].sum())
    if rows >= _MIN_SHARP_ROWS and rows >= _SHARP_SHARE * expected:
        return first
    return int(np.searchsorted(np.cumsum(marginal[:first]), _SOFT_TAIL_SHARE * tail))
