"""Constraint axis: map the values of one attribute to integer positions that can be compared."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import cast

import numpy as np

from deniable.arrays import Counts
from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute, format_value
from deniable.schema.constraints import Bound, Condition, Constraint, ConstraintValue

# Positions of values lie between these bounds; the position of a missing cell lies below them.
MISSING_POSITION = -(2**62)
MIN_POSITION = MISSING_POSITION + 1
MAX_POSITION = 2**62
_SECONDS_PER_DAY = 86_400


class ConstraintAxis:
    """Positions of the values of one attribute.

    For numeric kinds (integer, real, date, datetime), a position is a grid position, and a code
    may cover several. The position of a listed whole number is the number itself. The position of
    any other listed value is its code.

    Attributes:
        attribute: The attribute.
        low: The first position of each code.
        high: The last position of each code.
    """

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.low, self.high = self._code_ranges()
        if attribute.missing:
            self.low = np.append(self.low, MISSING_POSITION)
            self.high = np.append(self.high, MISSING_POSITION)

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring positions, in numbers or in seconds."""
        grid = self.attribute.grid
        if grid is None:
            return Fraction(1)
        return Fraction(_SECONDS_PER_DAY) if grid.kind == "date" else Fraction(grid.step)

    @cached_property
    def scale(self) -> str | tuple[object, ...] | None:
        """The scale of the values: columns of equal scale can be compared; None if unordered.

        Listed whole numbers count as numbers, unless an ordered kind lists them out of order.
        """
        kind, values = self.attribute.kind, self.attribute.values
        if kind in ("date", "datetime"):
            return "time"
        if self.attribute.is_numeric:
            return "number"
        if isinstance(values[0], int) and (kind != "ordered" or _is_ascending(values)):
            return "number"
        return tuple(values) if kind == "ordered" else None

    @property
    def max_magnitude(self) -> int:
        """The largest absolute value of a position."""
        present = self.low != MISSING_POSITION
        return int(max(-self.low[present].min(), self.high[present].max(), 0))

    def intervals(self, condition: Condition, constraint: Constraint) -> Counts:
        """Find the positions that meet a condition, as disjoint ascending closed intervals."""
        if condition.missing is not None:
            missing, present = [MISSING_POSITION] * 2, [MIN_POSITION, MAX_POSITION]
            return np.array([missing if condition.missing else present])
        if condition.values is not None:
            located = (self.locate(value, constraint) for value in condition.values)
            return _merge_positions([position for _, position in located])
        first, last = MIN_POSITION, MAX_POSITION
        for bound, value in condition.bounds:
            low, high = self._bound_range(bound, value, constraint)
            first, last = max(first, low), min(last, high)
        if first > last:
            raise self._error(constraint, "no value satisfies all its bounds; correct them")
        return np.array([[first, last]])

    def locate(self, value: ConstraintValue, constraint: Constraint) -> tuple[int, int]:
        """Find the code and the position of a value in a constraint."""
        missing = self.attribute.missing_code
        if missing is not None and str(value) in self.attribute.missing:
            return missing, MISSING_POSITION
        if not self.attribute.is_numeric:
            code = self._code_of(value, constraint)
            return code, int(self.low[code])
        position = self._position_of(value, constraint)
        if position.denominator > 1 or int(position) not in self.attribute.values:
            raise self._error(
                constraint, f"{_format_given(value)} is not one of its values; correct it"
            )
        after = np.searchsorted(self.attribute.first_positions, int(position), side="right")
        return int(after) - 1, int(position)

    def _bound_range(
        self, bound: Bound, value: ConstraintValue, constraint: Constraint
    ) -> tuple[int, int]:
        """Find the first and the last position that satisfy a bound."""
        at = self._position_of(value, constraint)
        at = min(max(at, Fraction(MIN_POSITION + 1)), Fraction(MAX_POSITION - 1))
        if bound == "below":
            return MIN_POSITION, ceil(at) - 1
        if bound == "at_most":
            return MIN_POSITION, floor(at)
        return (floor(at) + 1 if bound == "above" else ceil(at)), MAX_POSITION

    def _position_of(self, value: ConstraintValue, constraint: Constraint) -> Fraction:
        """Compute the position of a value; fractional for a value between grid points."""
        if self.scale is None:
            raise self._error(
                constraint, 'its values have no order; list them, or use type = "ordered"'
            )
        if self.scale == "number" and type(value) not in (int, float):
            raise self._error(
                constraint, f"{_format_given(value)} is not a number; write numbers without quotes"
            )
        grid = self.attribute.grid
        if grid is None:
            is_number = self.scale == "number"
            return Fraction(repr(value) if is_number else self._code_of(value, constraint))
        if isinstance(value, str):
            with suppress(ValueError):
                value = datetime.fromisoformat(value)
        try:
            return grid.position_of(value)  # type: ignore[arg-type]
        except TypeError:
            what = "write dates as 2024-12-31 and times as 2024-12-31T23:59:59"
            raise self._error(constraint, what) from None

    def _code_of(self, value: ConstraintValue, constraint: Constraint) -> int:
        """Look up the code of a listed value; a boolean also accepts ``true`` and ``false``."""
        if self.attribute.kind == "boolean" and isinstance(value, bool):
            return int(value)
        code = self._code_by_value.get((type(value), value))
        if code is None:
            raise self._error(
                constraint, f"{_format_given(value)} is not one of its values; correct it"
            )
        return code

    @cached_property
    def _code_by_value(self) -> dict[tuple[type, object], int]:
        """The code of each listed value, by type and value, as 1 == True in Python."""
        return {(type(value), value): code for code, value in enumerate(self.attribute.values)}

    def _code_ranges(self) -> tuple[Counts, Counts]:
        """Compute the first and the last position of each code, without the missing one."""
        attribute = self.attribute
        if attribute.is_numeric:
            first = attribute.first_positions
            return first, first + attribute.widths - 1
        listed = attribute.values if self.scale == "number" else range(attribute.bins)
        positions = np.array(cast("Sequence[int]", listed), dtype=np.int64)
        return positions, positions

    def _error(self, constraint: Constraint, what: str) -> SchemaError:
        return constraint.error(f'column "{self.attribute.name}": {what}')


def _format_given(value: ConstraintValue) -> str:
    return format_value(cast("str | int", value))


def _is_ascending(values: Sequence[object]) -> bool:
    return list(values) == sorted(cast("Sequence[int]", values))


def _merge_positions(positions: Sequence[int]) -> Counts:
    """Merge neighbouring positions into ascending closed intervals."""
    ordered = np.unique(np.array(positions, dtype=np.int64))
    is_last = np.append(np.diff(ordered) > 1, True)
    is_first = np.append(True, is_last[:-1])
    return np.stack([ordered[is_first], ordered[is_last]], axis=1)
