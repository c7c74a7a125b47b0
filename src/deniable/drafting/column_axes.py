"""Column axes: the cells of a drafted column as codes that relationships are searched in.

Listed values have one code each; numbers and dates have one code for each distinct number, in
ascending order. Missing cells have the last code.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Counts, Reals
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.description import ColumnGuess, TomlScalar
from deniable.drafting.numeric_profile import MAX_EXACT_REAL
from deniable.drafting.round_numbers import coarser_numbers, coarser_times

AxisCodes = NDArray[np.int32]

_EPOCH = datetime(1970, 1, 1)
# A bound is no value of fewer rows: it would be a cell of these.
MIN_BOUND_ROWS = 10


@dataclass(frozen=True, kw_only=True)
class ColumnAxis:
    """One modelled column: the code of each row, and what a code means. Confidential.

    Attributes:
        name: The column's header.
        codes: The code of each row.
        labels: The value of each code, without missing.
        numbers: The number of each code, ascending; None for listed values.
        missing: The text for missing; None if no cell is missing.
        is_closed: Whether the schema has exactly these values, so that each may be mapped.
        is_ordered: Whether the values have an order.
        is_listed: Whether the schema lists the values, one by one.
    """

    name: str
    codes: AxisCodes = field(repr=False)
    labels: Sequence[TomlScalar] = field(repr=False)
    numbers: Reals | None = field(default=None, repr=False)
    missing: str | None = None
    is_closed: bool = True
    is_ordered: bool = False
    is_listed: bool = True

    @property
    def is_range(self) -> bool:
        """Whether the values are numbers or dates, which constraints can bound."""
        return self.numbers is not None

    @property
    def values(self) -> int:
        """Number of codes without that of missing."""
        return len(self.labels)

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.values + (self.missing is not None)

    @cached_property
    def counts(self) -> Counts:
        """Number of rows of each code."""
        return np.bincount(self.codes, minlength=self.size).astype(np.int64)

    def codes_beside(self, bound: TomlScalar) -> tuple[int, int]:
        """Return the first code that is not below a number or date, and the first above it."""
        labels = cast("Sequence[int]", self.labels)  # numbers, or dates: each sequence of one type
        number = cast("int", bound)
        return bisect_left(labels, number), bisect_right(labels, number)

    def coarse_bound(
        self, code: int, *, up: bool, beyond: TomlScalar | None = None
    ) -> TomlScalar | None:
        """Round the value of a code down, or up, to a bound that is no cell of a few rows.

        Args:
            code: The code of a number or date.
            up: Whether to round up.
            beyond: The bound has to be above this value.

        Returns:
            The finest coarse bound that no row has, or ``MIN_BOUND_ROWS``; None if there is none.
        """
        for bound in self._coarser(self.labels[code], up=up):
            before, after = self.codes_beside(bound)
            rows = int(self.counts[before:after].sum())
            is_beyond = beyond is None or cast("int", bound) > cast("int", beyond)
            if is_beyond and (not rows or rows >= MIN_BOUND_ROWS):
                return bound
        return None

    def _coarser(self, label: TomlScalar, *, up: bool) -> Iterator[TomlScalar]:
        if isinstance(label, date):
            yield from coarser_times(label, up=up)
            return
        ends = [Decimal(cast("int", self.labels[at])) for at in (0, -1)]
        for bound in coarser_numbers(
            Decimal(cast("int", label)), span=ends[1] - ends[0], unit=self._unit, up=up
        ):
            yield bound if isinstance(label, Decimal) else int(bound)

    @cached_property
    def _unit(self) -> Decimal:
        """The last decimal of the numbers."""
        exponents = (
            int(each.as_tuple().exponent) for each in self.labels if isinstance(each, Decimal)
        )
        return Decimal(1).scaleb(min(exponents, default=0))


def column_axis(column: ColumnProfile, guess: ColumnGuess) -> ColumnAxis | None:
    """Build the axis of a drafted column; None if it is not modelled or has an open list."""
    draft = guess.draft
    fields = {field.key: field.value for field in draft.fields}
    if not draft.is_modelled or "other" in fields or fields.get("outside") == "drop":
        return None
    texts = fields.get("missing", [])
    missing = str(texts[0]) if isinstance(texts, list) and texts else None
    listed = fields.get("values")
    is_listed = isinstance(listed, list) or draft.kind == "boolean"
    if guess.numbers is not None and (not is_listed or _are_integers(listed)):
        if np.nanmax(np.abs(guess.numbers), initial=0.0) >= MAX_EXACT_REAL:
            return None
        return _numeric_axis(column, guess, missing, listed=listed if is_listed else None)
    if not is_listed:
        return None
    return _listed_axis(column, guess, missing, listed)


def _numeric_axis(
    column: ColumnProfile, guess: ColumnGuess, missing: str | None, *, listed: object
) -> ColumnAxis:
    """Build the axis of numbers or dates; listed integers are ordered by their numbers too.

    Numbers that are equal once rounded, as the schema rounds them, have one code.
    """
    numbers = np.append(np.asarray(guess.numbers, dtype=np.float64), np.nan)
    if guess.draft.kind == "real":
        numbers = np.array([round(number, guess.decimals) for number in numbers.tolist()])
    distinct, inverse = np.unique(numbers[np.isfinite(numbers)], return_inverse=True)
    by_value = np.full(len(numbers), len(distinct), dtype=np.int32)
    by_value[np.isfinite(numbers)] = inverse
    kind = guess.draft.kind
    labels = [_scalar(number, kind, guess.decimals) for number in distinct.tolist()]
    span = distinct[-1] - distinct[0] + 1 if len(distinct) else 0
    ends = {field.key: field.value for field in guess.draft.fields}
    is_full = (ends.get("min"), ends.get("max")) == (labels[0], labels[-1]) if labels else False
    closed = listed is not None or (kind == "integer" and is_full and span == len(distinct))
    return ColumnAxis(
        name=column.name,
        codes=by_value[column.value_indices],
        labels=labels,
        numbers=distinct if kind != "categorical" else None,
        missing=missing,
        is_closed=closed,
        is_ordered=kind != "categorical",
        is_listed=listed is not None,
    )


def _listed_axis(
    column: ColumnProfile, guess: ColumnGuess, missing: str | None, listed: object
) -> ColumnAxis | None:
    labels: list[TomlScalar] = [False, True] if listed is None else list(listed)  # type: ignore[call-overload]
    is_text = column.values.dtype == pl.String
    cells = column.values.to_list() if is_text or listed is None else []
    at = {label: code for code, label in enumerate(labels)}
    by_value = np.full(len(column.values) + 1, len(labels), dtype=np.int32)
    for index, cell in enumerate(cells):
        by_value[index] = at.get(cell, len(labels))
    codes = by_value[column.value_indices]
    unknown = int((codes == len(labels)).sum())
    if (unknown and missing is None) or unknown == len(codes):
        return None
    is_ordered = guess.draft.kind in ("ordered", "boolean")
    return ColumnAxis(
        name=column.name, codes=codes, labels=labels, missing=missing, is_ordered=is_ordered
    )


def _are_integers(listed: object) -> bool:
    return isinstance(listed, list) and all(type(value) is int for value in listed)


def _scalar(number: float, kind: str, decimals: int) -> TomlScalar:
    """Convert a number of an axis to the value that a schema has for it."""
    if kind in ("date", "datetime"):
        moment = _EPOCH + timedelta(seconds=number)
        return moment.date() if kind == "date" else moment
    if kind == "real":
        return Decimal(repr(round(number, decimals)))
    return round(number)
