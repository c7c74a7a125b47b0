"""Column axes: the cells of a drafted column as codes that relationships are searched in.

Listed values have one code each; numbers and dates have one code for each distinct number, in
ascending order. Missing cells have the last code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deniable.arrays import Counts, Reals
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.description import ColumnGuess, TomlScalar
from deniable.drafting.numeric_profile import MAX_EXACT_REAL

AxisCodes = NDArray[np.int32]

_EPOCH = datetime(1970, 1, 1)


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
    """Build the axis of numbers or dates; listed integers are ordered by their numbers too."""
    numbers = np.append(np.asarray(guess.numbers, dtype=np.float64), np.nan)
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
