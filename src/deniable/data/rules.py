"""Rules: keep candidates, and the values drawn inside their bins, to the schema's constraints.

A record of codes is a *box*: in each constrained column the first and the last position that its
code stands for. A constraint that offers a choice splits a box into smaller ones, each of which
takes one side; an inequality moves a box's ends. A record is possible if some box is left.

What is done here reads a candidate and the schema, never a row of the table: leaving candidates
out keeps deniability and differential privacy as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import lcm

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask
from deniable.data.attributes import Attribute
from deniable.data.constraints import Constraint
from deniable.data.positions import LAST, MISSING, Axis
from deniable.errors import InvariantError, SchemaError
from deniable.randomness import Rng

# Rounds in which values are drawn anew before they are constructed: by then a constraint that
# half of the draws keep is broken by one record in a million.
_ROUNDS = 20
# Boxes followed for one record. One that would need more is left out, though it may be possible.
_MOST_BOXES = 256
# Records followed at a time: all their boxes are held at once.
_SLICE = 2**12
# Products of a position and a scale stay below it, so that sums fit 64 bits.
_LARGEST = 2**61


@dataclass(frozen=True)
class _Boxes:
    """Boxes of some records, a row each: which record, and the ends in each constrained column."""

    owner: Indices
    low: Counts
    high: Counts

    def take(self, which: Mask | Indices) -> "_Boxes":
        return _Boxes(self.owner[which], self.low[which], self.high[which])

    def within(self, column: int, first: int, last: int) -> "_Boxes":
        """Return what of each box lies in ``first``..``last`` of a column."""
        low, high = self.low.copy(), self.high.copy()
        np.maximum(low[:, column], first, out=low[:, column])
        np.minimum(high[:, column], last, out=high[:, column])
        return _Boxes(self.owner, low, high).take(low[:, column] <= high[:, column])

    @classmethod
    def join(cls, parts: Sequence["_Boxes"]) -> "_Boxes":
        """Return all boxes of ``parts``, at most ``_MOST_BOXES`` of one record."""
        owner = np.concatenate([part.owner for part in parts])
        order = np.argsort(owner, kind="stable")
        ordered = owner[order]
        place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        kept = order[place < _MOST_BOXES]
        low = np.concatenate([part.low for part in parts])
        high = np.concatenate([part.high for part in parts])
        return cls(owner[kept], low[kept], high[kept])


@dataclass(frozen=True)
class _Forbid:
    """No record lies in all regions; a region is intervals of one column, apart and ascending."""

    regions: tuple[tuple[int, Counts], ...]

    @property
    def width(self) -> int:
        """The most boxes that it makes of one."""
        return sum(len(intervals) + 1 for _, intervals in self.regions)

    def split(self, boxes: _Boxes, codes: Codes) -> _Boxes:  # noqa: ARG002 - as _Allow.split
        """Return the boxes that are outside already, and the outer sides of the others."""
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
                parts += [wide.within(column, *gap) for gap in _gaps(intervals)]
        return _Boxes.join(parts)


@dataclass(frozen=True)
class _Allow:
    """Every record is one of the combinations: codes that lead to rows of positions.

    Attributes:
        columns: The constrained columns it speaks of.
        steps: For each of them, ascending: place of the combination so far · size + code.
        sizes: For each of them: the number of codes.
        positions: The rows, those of one combination of codes together.
        starts: Where the rows of each combination of codes start, and where the last end.
    """

    columns: tuple[int, ...]
    steps: tuple[Counts, ...]
    sizes: tuple[int, ...]
    positions: Counts
    starts: Indices

    @property
    def width(self) -> int:
        """The most boxes that it makes of one."""
        return int(np.diff(self.starts).max())

    def split(self, boxes: _Boxes, codes: Codes) -> _Boxes:
        """Return each box cut down to each of the combinations that lie in it."""
        place = self._place(codes[boxes.owner])
        boxes, place = boxes.take(place >= 0), place[place >= 0]
        number = self.starts[place + 1] - self.starts[place]
        first = np.repeat(self.starts[place] - (np.cumsum(number) - number), number)
        rows = self.positions[first + np.arange(len(first))]
        boxes = boxes.take(np.repeat(np.arange(len(place)), number))
        columns = list(self.columns)
        fits = (boxes.low[:, columns] <= rows) & (rows <= boxes.high[:, columns])
        low, high = boxes.low.copy(), boxes.high.copy()
        low[:, columns] = high[:, columns] = rows
        return _Boxes.join([_Boxes(boxes.owner, low, high).take(np.all(fits, axis=1))])

    def _place(self, codes: Codes) -> Indices:
        """Return which combination of codes each record has; -1 where it has none of them."""
        place = np.zeros(len(codes), dtype=np.int64)
        for column, step, size in zip(self.columns, self.steps, self.sizes, strict=True):
            wanted = place * size + codes[:, column]
            found = np.minimum(np.searchsorted(step, wanted), len(step) - 1)
            place = np.where((place >= 0) & (step[found] == wanted), found, -1)
        return place


@dataclass(frozen=True)
class _Inequality:
    """a · first + gap ≤ b · second, in whole numbers; a missing cell keeps it."""

    first: int
    second: int
    a: int
    b: int
    gap: int

    def raise_low(self, low: Counts) -> None:
        """Raise the second's low ends to what the first's ask for."""
        one, two = low[:, self.first], low[:, self.second]
        live = (one != MISSING) & (two != MISSING)
        least = -(-(self.a * np.where(live, one, 0) + self.gap) // self.b)
        np.copyto(two, np.maximum(two, least), where=live)

    def lower_high(self, high: Counts) -> None:
        """Lower the first's high ends to what the second's ask for."""
        one, two = high[:, self.first], high[:, self.second]
        live = (one != MISSING) & (two != MISSING)
        most = (self.b * np.where(live, two, 0) - self.gap) // self.a
        np.copyto(one, np.minimum(one, most), where=live)


class Rules:
    """A schema's constraints, ready to be kept.

    Args:
        attributes: The learnt attributes, in the order of the columns of codes.
        constraints: As in the schema.

    Raises:
        SchemaError: A constraint asks for a value that its attribute does not have, compares
            what cannot be compared, or inequalities run in a circle.
    """

    def __init__(self, attributes: Sequence[Attribute], constraints: Sequence[Constraint]) -> None:
        named = {name for constraint in constraints for name in constraint.columns}
        self._columns = [j for j, a in enumerate(attributes) if a.name in named]
        self._axes = [Axis(attributes[j]) for j in self._columns]
        at = {axis.attribute.name: i for i, axis in enumerate(self._axes)}
        self._choices: list[_Forbid | _Allow] = []
        inequalities = []
        for constraint in constraints:
            columns = [at[name] for name in constraint.columns]
            axes = [self._axes[column] for column in columns]
            if constraint.kind == "forbid":
                self._choices.append(_forbid(constraint, columns, axes))
            elif constraint.kind == "allow":
                self._choices.append(_allow(constraint, columns, axes))
            else:
                inequalities.append(_inequality(constraint, columns, axes))
        # What needs fewer boxes first: less is followed.
        self._choices.sort(key=lambda choice: choice.width)
        self._order = _in_order(inequalities, len(self._axes), list(at))
        rank = {column: place for place, column in enumerate(self._order)}
        self._rising = sorted(inequalities, key=lambda each: rank[each.first])
        self._falling = sorted(inequalities, key=lambda each: -rank[each.second])

    def __bool__(self) -> bool:
        return bool(self._choices or self._rising)

    def possible(self, codes: Codes) -> Mask:
        """Return which records some choice of values inside their bins brings past all constraints.

        Exact, except for a record that would need more than 256 boxes to be followed: that one
        counts as impossible. A record depends on itself alone.
        """
        return self._is_left(codes[:, self._columns], *self._spans(codes))

    def holds(self, codes: Codes, positions: Counts) -> Mask:
        """Return which records, with these positions inside their bins, keep all constraints."""
        low, high = self._spans(codes)
        drawn = np.where(low < high, positions[:, self._columns], low)
        return self._is_left(codes[:, self._columns], drawn, drawn)

    def settle(self, codes: Codes, positions: Counts, rng: Rng) -> Counts:
        """Return positions in the same bins that keep all constraints.

        Where the given ones do, they stay. Elsewhere all constrained columns are drawn anew,
        uniformly in their bins, until the constraints are kept: what comes is uniform among what
        is allowed. What is not found in some rounds is constructed.

        Args:
            codes: Records that are possible.
            positions: A grid position for each cell, in its code's bin; where a code stands for
                one value, and for a missing cell, it is not looked at.
            rng: What is drawn anew is drawn from it.

        Raises:
            InvariantError: A record is not possible.
        """
        low, high = self._spans(codes)
        own = codes[:, self._columns]
        drawn = np.where(low < high, positions[:, self._columns], low)
        bad = np.flatnonzero(~self._is_left(own, drawn, drawn))
        for _ in range(_ROUNDS):
            if not bad.size:
                break
            fresh = _draw(low[bad], high[bad], rng)
            drawn[bad] = fresh
            bad = bad[~self._is_left(own[bad], fresh, fresh)]
        if bad.size:
            drawn[bad] = self._construct(own[bad], low[bad], high[bad], rng)
        settled = positions.copy()
        settled[:, self._columns] = np.where(low < high, drawn, positions[:, self._columns])
        return settled

    def _spans(self, codes: Codes) -> tuple[Counts, Counts]:
        """Return the first and last position of each constrained cell."""
        shape = len(codes), len(self._columns)
        low, high = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        for i, (column, axis) in enumerate(zip(self._columns, self._axes, strict=True)):
            low[:, i], high[:, i] = axis.low[codes[:, column]], axis.high[codes[:, column]]
        return low, high

    def _is_left(self, own: Codes, low: Counts, high: Counts) -> Mask:
        left = np.zeros(len(own), dtype=bool)
        for start in range(0, len(own), _SLICE):
            part = slice(start, start + _SLICE)
            left[start + self._boxes(own[part], low[part], high[part]).owner] = True
        return left

    def _boxes(self, own: Codes, low: Counts, high: Counts) -> _Boxes:
        """Return the boxes, in each of which the lowest positions keep all constraints.

        Raising low ends in the order of the inequalities leads to the least positions that keep
        them; if these are in the box, so is a record, and if not, none is.
        """
        boxes = self._tighten(_Boxes(np.arange(len(own)), low, high))
        for choice in self._choices:
            boxes = self._tighten(choice.split(boxes, own))
        return boxes

    def _tighten(self, boxes: _Boxes) -> _Boxes:
        if not self._rising:
            return boxes
        low, high = boxes.low.copy(), boxes.high.copy()
        for inequality in self._rising:
            inequality.raise_low(low)
        for inequality in self._falling:
            inequality.lower_high(high)
        return _Boxes(boxes.owner, low, high).take(np.all(low <= high, axis=1))

    def _construct(self, own: Codes, low: Counts, high: Counts, rng: Rng) -> Counts:
        """Return positions that keep all constraints, in the first box of each record.

        Column by column in the order of the inequalities: what is drawn raises the low ends of
        later columns, and stays below high ends that leave them room.
        """
        boxes = self._boxes(own, low, high)
        owners, first = np.unique(boxes.owner, return_index=True)
        if len(owners) < len(own):
            raise InvariantError("values were asked for a record that no values make possible")
        low, high = boxes.low[first], boxes.high[first]
        for column in self._order:
            low[:, [column]] = _draw(low[:, [column]], high[:, [column]], rng)
            for inequality in self._rising:
                if inequality.first == column:
                    inequality.raise_low(low)
        return low


def _draw(low: Counts, high: Counts, rng: Rng) -> Counts:
    """Return a uniform whole number in each low..high, drawn column by column."""
    drawn = low.copy()
    for column in range(low.shape[1]):
        width = high[:, column] - low[:, column] + 1
        steps = (rng.random(len(low)) * width).astype(np.int64)
        drawn[:, column] += np.minimum(steps, width - 1)
    return drawn


def _gaps(intervals: Counts) -> Iterator[tuple[int, int]]:
    """Yield what lies between intervals, and beyond them; a missing cell is never there."""
    first = MISSING + 1
    for low, high in intervals.tolist():
        if first < low:
            yield first, low - 1
        first = max(first, high + 1)
    if first <= LAST:
        yield first, LAST


def _forbid(constraint: Constraint, columns: list[int], axes: list[Axis]) -> _Forbid:
    regions = (
        axis.region(condition, constraint)
        for axis, condition in zip(axes, constraint.conditions, strict=True)
    )
    return _Forbid(tuple(zip(columns, regions, strict=True)))


def _allow(constraint: Constraint, columns: list[int], axes: list[Axis]) -> _Allow:
    cells = [
        [axis.place(value, constraint) for axis, value in zip(axes, row, strict=True)]
        for row in dict.fromkeys(constraint.rows)
    ]
    codes = np.array([[code for code, _ in row] for row in cells], dtype=np.int64)
    positions = np.array([[position for _, position in row] for row in cells], dtype=np.int64)
    sizes = tuple(axis.attribute.size for axis in axes)
    place, steps = np.zeros(len(codes), dtype=np.int64), []
    for column, size in enumerate(sizes):
        step, place = np.unique(place * size + codes[:, column], return_inverse=True)
        steps.append(step)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(steps[-1]) + 1))
    return _Allow(tuple(columns), tuple(steps), sizes, positions[order], starts)


def _inequality(constraint: Constraint, columns: list[int], axes: list[Axis]) -> _Inequality:
    one, two = axes
    if one.scale is None or two.scale is None or one.scale != two.scale:
        raise constraint.error(
            "its columns cannot be compared; compare numbers with numbers, dates with dates, or "
            "two ordered columns of the same values"
        )
    whole = lcm(one.unit.denominator, two.unit.denominator)
    a, b = int(one.unit * whole), int(two.unit * whole)
    if max(a * one.largest, b * two.largest) >= _LARGEST:
        raise constraint.error("its numbers are too large to be compared; use coarser steps")
    gap = int(constraint.kind == "less")
    return _Inequality(first=columns[0], second=columns[1], a=a, b=b, gap=gap)


def _in_order(inequalities: Sequence[_Inequality], columns: int, names: list[str]) -> list[int]:
    """Return the columns, the first of an inequality before its second."""
    before: dict[int, set[int]] = {column: set() for column in range(columns)}
    for inequality in inequalities:
        before[inequality.second].add(inequality.first)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        circle = ", ".join(f'"{names[column]}"' for column in error.args[1])
        raise SchemaError(
            f"the constraints less and at_most run in a circle: {circle}. Remove one of them; "
            'columns that are always equal are one attribute and one of type = "computed"'
        ) from None
