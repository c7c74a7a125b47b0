"""Constraint solver: reject infeasible candidates, and redraw values that violate a constraint.

A record of codes is a *box*: for each constrained column, the first and the last position of its
code. ``forbid`` and ``allow`` split a box into smaller ones; an inequality tightens the ends of a
box. A record is feasible if a nonempty box remains.

The solver reads a candidate and the schema, never a row of the table. So rejecting candidates
affects neither plausible deniability nor differential privacy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import lcm

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask
from deniable.errors import InvariantError, SchemaError
from deniable.randomness import Rng
from deniable.schema.attribute import Attribute
from deniable.schema.constraint_axis import (
    MAX_POSITION,
    MIN_POSITION,
    MISSING_POSITION,
    ConstraintAxis,
)
from deniable.schema.constraints import Constraint

# Rejection sampling stops after this number of rounds, and values are constructed instead. If half
# of the draws satisfy a constraint, one record in a million is left by then.
_MAX_REDRAWS = 20
# A record that needs more boxes may be rejected although it is feasible.
_MAX_BOXES_PER_RECORD = 256
# Bounds memory: the boxes of a batch are in memory at the same time.
_RECORDS_PER_BATCH = 2**12
# Bound on the product of a position and a coefficient, so that sums fit in 64 bits.
_PRODUCT_LIMIT = 2**61

# The positions of columns of codes; or two rows, the first and the last position of each record.
FixedPositions = Mapping[int, Counts]
_Axes = list[ConstraintAxis]


@dataclass(frozen=True)
class _Boxes:
    """Boxes, one per row: the index of the record, and the ends in each constrained column."""

    owner: Indices
    low: Counts
    high: Counts

    def take(self, which: Mask | Indices) -> "_Boxes":
        return _Boxes(self.owner[which], self.low[which], self.high[which])

    def within(self, column: int, first: int, last: int) -> "_Boxes":
        """Intersect each box with ``first``..``last`` in one column; drop empty boxes."""
        low, high = self.low.copy(), self.high.copy()
        np.maximum(low[:, column], first, out=low[:, column])
        np.minimum(high[:, column], last, out=high[:, column])
        return _Boxes(self.owner, low, high).take(low[:, column] <= high[:, column])

    @classmethod
    def join(cls, parts: Sequence["_Boxes"]) -> "_Boxes":
        """Concatenate boxes, and keep at most ``_MAX_BOXES_PER_RECORD`` of each record."""
        owner = np.concatenate([part.owner for part in parts])
        order = np.argsort(owner, kind="stable")
        ordered = owner[order]
        rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        kept = order[rank < _MAX_BOXES_PER_RECORD]
        low = np.concatenate([part.low for part in parts])
        high = np.concatenate([part.high for part in parts])
        return cls(owner[kept], low[kept], high[kept])


@dataclass(frozen=True)
class _Forbid:
    """A ``forbid``: no record lies in all regions, each a column with disjoint intervals."""

    regions: tuple[tuple[int, Counts], ...]

    @property
    def max_boxes(self) -> int:
        """The maximum number of boxes that one box is split into."""
        return sum(len(intervals) + 1 for _, intervals in self.regions)

    def split(self, boxes: _Boxes, codes: Codes) -> _Boxes:  # noqa: ARG002 - as _Allow.split
        """Keep the boxes that avoid some region; cut the others down to the outside of each."""
        outside = np.zeros(len(boxes.owner), dtype=bool)
        for column, intervals in self.regions:
            at = np.searchsorted(intervals[:, 0], boxes.high[:, column], side="right") - 1
            outside |= (at < 0) | (intervals[at, 1] < boxes.low[:, column])
        if outside.all():
            return boxes
        parts = [boxes.take(outside)]
        inside = boxes.take(~outside)
        for column, intervals in self.regions:
            wide = inside.take(inside.low[:, column] < inside.high[:, column])
            if len(wide.owner):
                parts += [wide.within(column, *gap) for gap in _complement(intervals)]
        return _Boxes.join(parts)


@dataclass(frozen=True)
class _Allow:
    """An ``allow``: every record is one of the listed combinations.

    Combinations of codes form a trie, one level per column. Each leads to its rows of positions.

    Attributes:
        columns: The constrained columns of the combinations.
        keys: The ascending keys of each level: node of the parent level · size + code.
        sizes: The number of codes of each column.
        positions: The rows, sorted by combination of codes.
        starts: The first row of each combination of codes, and the number of rows.
    """

    columns: tuple[int, ...]
    keys: tuple[Counts, ...]
    sizes: tuple[int, ...]
    positions: Counts
    starts: Indices

    @property
    def max_boxes(self) -> int:
        """The maximum number of boxes that one box is split into."""
        return int(np.diff(self.starts).max())

    def split(self, boxes: _Boxes, codes: Codes) -> _Boxes:
        """Replace each box by the combinations that lie in it."""
        found = self._combinations(codes[boxes.owner])
        boxes, found = boxes.take(found >= 0), found[found >= 0]
        count = self.starts[found + 1] - self.starts[found]
        first = np.repeat(self.starts[found] - (np.cumsum(count) - count), count)
        rows = self.positions[first + np.arange(len(first))]
        boxes = boxes.take(np.repeat(np.arange(len(found)), count))
        columns = list(self.columns)
        fits = (boxes.low[:, columns] <= rows) & (rows <= boxes.high[:, columns])
        low, high = boxes.low.copy(), boxes.high.copy()
        low[:, columns] = high[:, columns] = rows
        return _Boxes.join([_Boxes(boxes.owner, low, high).take(np.all(fits, axis=1))])

    def _combinations(self, codes: Codes) -> Indices:
        """Look up the combination of codes of each record; -1 if it is not listed."""
        node = np.zeros(len(codes), dtype=np.int64)
        for column, keys, size in zip(self.columns, self.keys, self.sizes, strict=True):
            wanted = node * size + codes[:, column]
            found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            node = np.where((node >= 0) & (keys[found] == wanted), found, -1)
        return node


@dataclass(frozen=True)
class _Inequality:
    """a · first + gap ≤ b · second, in integers; satisfied if either cell is missing."""

    first: int
    second: int
    a: int
    b: int
    gap: int

    def raise_low(self, low: Counts) -> None:
        """Raise the low ends of the second column to the minimum that the first allows."""
        one, two = low[:, self.first], low[:, self.second]
        live = (one != MISSING_POSITION) & (two != MISSING_POSITION)
        least = -(-(self.a * np.where(live, one, 0) + self.gap) // self.b)
        np.copyto(two, np.maximum(two, least), where=live)

    def lower_high(self, high: Counts) -> None:
        """Lower the high ends of the first column to the maximum that the second allows."""
        one, two = high[:, self.first], high[:, self.second]
        live = (one != MISSING_POSITION) & (two != MISSING_POSITION)
        most = (self.b * np.where(live, two, 0) - self.gap) // self.a
        np.copyto(one, np.minimum(one, most), where=live)


class ConstraintSolver:
    """Solver for the constraints of a schema.

    Args:
        attributes: The learnt attributes, in the order of the columns of codes.
        constraints: The constraints of the schema.

    Raises:
        SchemaError: A constraint has a value that is not in its attribute's domain, compares
            incomparable columns, or the inequalities form a cycle.
    """

    def __init__(self, attributes: Sequence[Attribute], constraints: Sequence[Constraint]) -> None:
        named = {name for constraint in constraints for name in constraint.columns}
        self._columns = [j for j, a in enumerate(attributes) if a.name in named]
        self._axes = [ConstraintAxis(attributes[j]) for j in self._columns]
        at = {axis.attribute.name: i for i, axis in enumerate(self._axes)}
        self._splitters: list[_Forbid | _Allow] = []
        inequalities = []
        for constraint in constraints:
            columns = [at[name] for name in constraint.columns]
            axes = [self._axes[column] for column in columns]
            if constraint.kind == "forbid":
                self._splitters.append(_build_forbid(constraint, columns, axes))
            elif constraint.kind == "allow":
                self._splitters.append(_build_allow(constraint, columns, axes))
            else:
                inequalities.append(_build_inequality(constraint, columns, axes))
        # Those that make fewer boxes come first, to keep the number of boxes small.
        self._splitters.sort(key=lambda splitter: splitter.max_boxes)
        self._order = _topological_order(inequalities, len(self._axes), list(at))
        rank = {column: i for i, column in enumerate(self._order)}
        self._forward = sorted(inequalities, key=lambda each: rank[each.first])
        self._backward = sorted(inequalities, key=lambda each: -rank[each.second])

    def __bool__(self) -> bool:
        return bool(self._splitters or self._forward)

    def feasible(self, codes: Codes, fixed: FixedPositions | None = None) -> Mask:
        """Check which records have values inside their bins that satisfy all constraints.

        Exact, except that a record that needs more than ``_MAX_BOXES_PER_RECORD`` boxes may be
        rejected. The result for a record does not depend on other records. Columns that are
        ``fixed`` have their positions.
        """
        return self._has_box(codes[:, self._columns], *self._position_ranges(codes, fixed))

    def repair(
        self, codes: Codes, positions: Counts, rng: Rng, fixed: FixedPositions | None = None
    ) -> Counts:
        """Redraw positions within their bins where they violate a constraint.

        Positions that satisfy all constraints are unchanged. In other records, all constrained
        columns are redrawn uniformly in their bins until the constraints hold (rejection
        sampling), so the result is uniform among the allowed positions. After ``_MAX_REDRAWS``
        rounds, positions are constructed instead.

        Args:
            codes: Feasible records.
            positions: The grid position of each cell, in the bin of its code. Ignored for missing
                cells and for codes of a single value.
            rng: The source of randomness.
            fixed: Columns that stay unchanged; the records are feasible with them.

        Raises:
            InvariantError: A record is infeasible.
        """
        low, high = self._position_ranges(codes, fixed)
        own = codes[:, self._columns]
        drawn = np.where(low < high, positions[:, self._columns], low)
        violating = np.flatnonzero(~self._has_box(own, drawn, drawn))
        for _ in range(_MAX_REDRAWS):
            if not violating.size:
                break
            redrawn = _draw_uniform(low[violating], high[violating], rng)
            drawn[violating] = redrawn
            violating = violating[~self._has_box(own[violating], redrawn, redrawn)]
        if violating.size:
            drawn[violating] = self._construct(own[violating], low[violating], high[violating], rng)
        repaired = positions.copy()
        repaired[:, self._columns] = np.where(low < high, drawn, positions[:, self._columns])
        return repaired

    def _position_ranges(self, codes: Codes, fixed: FixedPositions | None) -> tuple[Counts, Counts]:
        """Look up the first and the last position of each constrained cell."""
        shape = len(codes), len(self._columns)
        low, high = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        for i, (column, axis) in enumerate(zip(self._columns, self._axes, strict=True)):
            low[:, i], high[:, i] = axis.low[codes[:, column]], axis.high[codes[:, column]]
            if fixed is not None and column in fixed:
                ends = np.broadcast_to(fixed[column], (2, len(codes)))
                low[:, i], high[:, i] = np.where(low[:, i] < high[:, i], ends, low[:, i])
        return low, high

    def _has_box(self, own: Codes, low: Counts, high: Counts) -> Mask:
        left = np.zeros(len(own), dtype=bool)
        for start in range(0, len(own), _RECORDS_PER_BATCH):
            part = slice(start, start + _RECORDS_PER_BATCH)
            left[start + self._boxes(own[part], low[part], high[part]).owner] = True
        return left

    def _boxes(self, own: Codes, low: Counts, high: Counts) -> _Boxes:
        """Compute the nonempty boxes; in each, the lowest positions satisfy all constraints.

        Raising the low ends in the order of the inequalities gives the smallest positions that
        satisfy them. If these are not in the box, no solution is.
        """
        boxes = self._tighten(_Boxes(np.arange(len(own)), low, high))
        for splitter in self._splitters:
            split = splitter.split(boxes, own)
            # Boxes that were not cut are as tight as before.
            boxes = boxes if split is boxes else self._tighten(split)
        return boxes

    def _tighten(self, boxes: _Boxes) -> _Boxes:
        if not self._forward:
            return boxes
        low, high = boxes.low.copy(), boxes.high.copy()
        for inequality in self._forward:
            inequality.raise_low(low)
        for inequality in self._backward:
            inequality.lower_high(high)
        return _Boxes(boxes.owner, low, high).take(np.all(low <= high, axis=1))

    def _construct(self, own: Codes, low: Counts, high: Counts, rng: Rng) -> Counts:
        """Construct positions that satisfy all constraints, in the first box of each record.

        Columns are drawn in the order of the inequalities. Each draw raises the low ends of later
        columns; the tightened high ends leave room for them.
        """
        boxes = self._boxes(own, low, high)
        owners, first = np.unique(boxes.owner, return_index=True)
        if len(owners) < len(own):
            raise InvariantError(
                "cannot repair an infeasible record: no values satisfy the constraints"
            )
        low, high = boxes.low[first], boxes.high[first]
        for column in self._order:
            low[:, [column]] = _draw_uniform(low[:, [column]], high[:, [column]], rng)
            for inequality in self._forward:
                if inequality.first == column:
                    inequality.raise_low(low)
        return low


def _draw_uniform(low: Counts, high: Counts, rng: Rng) -> Counts:
    """Draw a uniform integer in each low..high, column by column."""
    drawn = low.copy()
    for column in range(low.shape[1]):
        width = high[:, column] - low[:, column] + 1
        steps = (rng.random(len(low)) * width).astype(np.int64)
        drawn[:, column] += np.minimum(steps, width - 1)
    return drawn


def _complement(intervals: Counts) -> Iterator[tuple[int, int]]:
    """Yield the complement of intervals, without the position of a missing cell."""
    first = MIN_POSITION
    for low, high in intervals.tolist():
        if first < low:
            yield first, low - 1
        first = max(first, high + 1)
    if first <= MAX_POSITION:
        yield first, MAX_POSITION


def _build_forbid(constraint: Constraint, columns: list[int], axes: _Axes) -> _Forbid:
    regions = (
        axis.intervals(condition, constraint)
        for axis, condition in zip(axes, constraint.conditions, strict=True)
    )
    return _Forbid(tuple(zip(columns, regions, strict=True)))


def _build_allow(constraint: Constraint, columns: list[int], axes: list[ConstraintAxis]) -> _Allow:
    cells = [
        [axis.locate(value, constraint) for axis, value in zip(axes, row, strict=True)]
        for row in dict.fromkeys(constraint.rows)
    ]
    codes = np.array([[code for code, _ in row] for row in cells], dtype=np.int64)
    positions = np.array([[position for _, position in row] for row in cells], dtype=np.int64)
    sizes = tuple(axis.attribute.size for axis in axes)
    node, keys = np.zeros(len(codes), dtype=np.int64), []
    for column, size in enumerate(sizes):
        level, node = np.unique(node * size + codes[:, column], return_inverse=True)
        keys.append(level)
    order = np.argsort(node, kind="stable")
    starts = np.searchsorted(node[order], np.arange(len(keys[-1]) + 1))
    return _Allow(tuple(columns), tuple(keys), sizes, positions[order], starts)


def _build_inequality(constraint: Constraint, columns: list[int], axes: _Axes) -> _Inequality:
    one, two = axes
    if one.scale is None or two.scale is None or one.scale != two.scale:
        raise constraint.error(
            "these columns cannot be compared; compare numbers with numbers, dates with dates, or "
            "two ordered columns with the same values"
        )
    whole = lcm(one.step.denominator, two.step.denominator)
    a, b = int(one.step * whole), int(two.step * whole)
    if max(a * one.max_magnitude, b * two.max_magnitude) >= _PRODUCT_LIMIT:
        raise constraint.error("the numbers are too large to be compared; use coarser steps")
    gap = int(constraint.kind == "less")
    return _Inequality(first=columns[0], second=columns[1], a=a, b=b, gap=gap)


def _topological_order(
    inequalities: Sequence[_Inequality], columns: int, names: list[str]
) -> list[int]:
    """Order the columns so that the first of each inequality comes before its second."""
    before: dict[int, set[int]] = {column: set() for column in range(columns)}
    for inequality in inequalities:
        before[inequality.second].add(inequality.first)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        cycle = ", ".join(f'"{names[column]}"' for column in error.args[1])
        raise SchemaError(
            f"the constraints less and at_most form a cycle: {cycle}. Remove one of them. If the "
            'columns are always equal, learn one of them and make the other type = "computed"'
        ) from None
