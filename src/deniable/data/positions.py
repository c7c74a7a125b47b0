"""Axis: one attribute's values as whole numbers on a line, where constraints are asked."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import cast

import numpy as np

from deniable.arrays import Counts
from deniable.data.attributes import Attribute, show
from deniable.data.constraints import Bound, Condition, Constraint, Given
from deniable.errors import SchemaError

# Where a missing cell lies: below every position. No position is above the last.
MISSING = -(2**62)
LAST = 2**62
_DAY = 86_400


class Axis:
    """The positions of one attribute's codes.

    On a grid (integer, real, date, datetime) a position is one of the grid, and a code may stand
    for several. Whole numbers in a list lie at themselves. Other values lie at their codes.

    Attributes:
        attribute: The attribute.
        low: The first position of each code.
        high: The last position of each code.
    """

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.low, self.high = self._spans()
        if attribute.missing:
            self.low, self.high = np.append(self.low, MISSING), np.append(self.high, MISSING)

    @property
    def unit(self) -> Fraction:
        """What one step means, in numbers or in seconds."""
        unit = self.attribute.unit
        if unit is None:
            return Fraction(1)
        return Fraction(_DAY) if unit.kind == "date" else Fraction(unit.step)

    @cached_property
    def scale(self) -> str | tuple[object, ...] | None:
        """What the line measures: two columns of one scale can be compared; None: no order.

        Listed whole numbers are numbers, unless their list says another order.
        """
        kind, values = self.attribute.kind, self.attribute.values
        if kind in ("date", "datetime"):
            return "time"
        if self.attribute.is_numeric:
            return "number"
        if isinstance(values[0], int) and (kind != "ordered" or _ascends(values)):
            return "number"
        return tuple(values) if kind == "ordered" else None

    @property
    def largest(self) -> int:
        """The largest distance of a position from 0."""
        there = self.low != MISSING
        return int(max(-self.low[there].min(), self.high[there].max(), 0))

    def region(self, condition: Condition, constraint: Constraint) -> Counts:
        """Return the intervals of positions that meet a condition: apart, ascending, closed."""
        if condition.missing is not None:
            whole = [[MISSING, MISSING]] if condition.missing else [[MISSING + 1, LAST]]
            return np.array(whole)
        if condition.values is not None:
            return _intervals([self.place(value, constraint)[1] for value in condition.values])
        first, last = MISSING + 1, LAST
        for bound, value in condition.bounds:
            low, high = self._side(bound, value, constraint)
            first, last = max(first, low), min(last, high)
        if first > last:
            raise self._error(constraint, "no value keeps all its bounds; correct them")
        return np.array([[first, last]])

    def place(self, value: Given, constraint: Constraint) -> tuple[int, int]:
        """Return the code and the position of a value that a constraint gives."""
        missing = self.attribute.missing_code
        if missing is not None and str(value) in self.attribute.missing:
            return missing, MISSING
        if not self.attribute.is_numeric:
            code = self._listed(value, constraint)
            return code, int(self.low[code])
        position = self._measure(value, constraint)
        if position.denominator > 1 or int(position) not in self.attribute.values:
            raise self._error(constraint, f"it never holds {_show(value)}; correct the value")
        after = np.searchsorted(self.attribute.first_positions, int(position), side="right")
        return int(after) - 1, int(position)

    def _side(self, bound: Bound, value: Given, constraint: Constraint) -> tuple[int, int]:
        """Return the first and the last position that keep one bound."""
        at = self._measure(value, constraint)
        at = min(max(at, Fraction(MISSING + 2)), Fraction(LAST - 1))
        if bound == "below":
            return MISSING + 1, ceil(at) - 1
        if bound == "at_most":
            return MISSING + 1, floor(at)
        return (floor(at) + 1 if bound == "above" else ceil(at)), LAST

    def _measure(self, value: Given, constraint: Constraint) -> Fraction:
        """Return where a value lies on the line; between two positions, perhaps."""
        if self.scale is None:
            raise self._error(constraint, 'its values have no order; list them, or use "ordered"')
        if self.scale == "number" and type(value) not in (int, float):
            raise self._error(constraint, f"{_show(value)} is no number; write one without quotes")
        unit = self.attribute.unit
        if unit is None:
            is_number = self.scale == "number"
            return Fraction(repr(value) if is_number else self._listed(value, constraint))
        if isinstance(value, str):
            with suppress(ValueError):
                value = datetime.fromisoformat(value)
        try:
            return unit.place_of(value)  # type: ignore[arg-type]
        except TypeError:
            what = "write its dates as 2024-12-31, its times as 2024-12-31T23:59:59"
            raise self._error(constraint, what) from None

    def _listed(self, value: Given, constraint: Constraint) -> int:
        """Return the code of a listed value; ``true`` and ``false`` are those of a boolean."""
        if self.attribute.kind == "boolean" and isinstance(value, bool):
            return int(value)
        code = self._codes.get((type(value), value))
        if code is None:
            raise self._error(constraint, f"it never holds {_show(value)}; correct the value")
        return code

    @cached_property
    def _codes(self) -> dict[tuple[type, object], int]:
        """The code of each listed value; the type beside it, as 1 equals true."""
        return {(type(value), value): code for code, value in enumerate(self.attribute.values)}

    def _spans(self) -> tuple[Counts, Counts]:
        """Return the first and the last position of each code but that of a missing cell."""
        attribute = self.attribute
        if attribute.is_numeric:
            first = attribute.first_positions
            return first, first + attribute.widths - 1
        places = attribute.values if self.scale == "number" else range(attribute.bins)
        listed = np.array(cast("Sequence[int]", places), dtype=np.int64)
        return listed, listed

    def _error(self, constraint: Constraint, what: str) -> SchemaError:
        return constraint.error(f'column "{self.attribute.name}": {what}')


def _show(value: Given) -> str:
    return show(cast("str | int", value))


def _ascends(values: Sequence[object]) -> bool:
    return list(values) == sorted(cast("Sequence[int]", values))


def _intervals(positions: Sequence[int]) -> Counts:
    """Return the intervals that hold exactly these positions."""
    ordered = np.unique(np.array(positions, dtype=np.int64))
    is_last = np.append(np.diff(ordered) > 1, True)
    is_first = np.append(True, is_last[:-1])
    return np.stack([ordered[is_first], ordered[is_last]], axis=1)
