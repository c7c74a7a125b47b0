"""Find relationships between columns: dependencies, formulas, orders, impossible combinations.

Each candidate is tested on a sample of rows first; all rows are read only if the sample agrees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from deniable.arrays import Reals
from deniable.drafting.column_axes import ColumnAxis, column_axis
from deniable.drafting.column_formulas import ColumnFormula, find_formulas, row_numbers
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.dependencies import Dependency, find_dependencies, spread_rows
from deniable.drafting.description import ColumnGuess
from deniable.drafting.empty_regions import Exclusion
from deniable.drafting.exclusions import find_exclusions
from deniable.drafting.identifier_columns import measure_uniqueness

_SAMPLE_ROWS = 1_000
# Rows that must support an order.
_MIN_SUPPORT_ROWS = 30
_MIN_ORDERED_VALUES = 10
_MAX_ORDERS = 20
# Orders that are checked against all rows.
_MAX_CANDIDATES_CHECKED = 400


@dataclass(frozen=True)
class ColumnOrder:
    """Two columns whose first never exceeds the second.

    Attributes:
        low: The first.
        high: The second.
        is_strict: Whether they are never equal.
        expected: The number of rows that would break the order if the columns were independent.
    """

    low: str
    high: str
    is_strict: bool
    expected: float = field(default=0.0, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it connects."""
        return self.low, self.high


Relationship: TypeAlias = ColumnFormula | Dependency | ColumnOrder | Exclusion


@dataclass(frozen=True, kw_only=True)
class Relationships:
    """Relationships found between columns; each holds in every row.

    Attributes:
        formulas: Columns that equal another, or a sum, product, line or quotient of others.
        dependencies: Columns that follow from one other column.
        orders: Pairs of columns whose first never exceeds the second.
        exclusions: Combinations of two columns that no row has.
        left_out: How many more combinations were found than a draft has.
    """

    formulas: list[ColumnFormula] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)
    orders: list[ColumnOrder] = field(default_factory=list)
    exclusions: list[Exclusion] = field(default_factory=list)
    left_out: int = 0

    @property
    def all(self) -> list[Relationship]:
        """All of them."""
        return [*self.formulas, *self.dependencies, *self.orders, *self.exclusions]

    def only(self, kept: Sequence[Relationship]) -> "Relationships":
        """Keep some of them."""
        among = {id(each) for each in kept}
        return replace(
            self,
            formulas=[each for each in self.formulas if id(each) in among],
            dependencies=[each for each in self.dependencies if id(each) in among],
            orders=[each for each in self.orders if id(each) in among],
            exclusions=[each for each in self.exclusions if id(each) in among],
        )


def find_relationships(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess]
) -> Relationships:
    """Find relationships between the columns of a table.

    A column that is computed from others takes no part in further relationships. A column that may
    be a key has no constraints, and nothing is computed from it but a formula.
    """
    modelled = [j for j, guess in enumerate(guesses) if guess.draft.is_modelled]
    if columns[0].rows < _MIN_SUPPORT_ROWS or len(modelled) < 2:
        return Relationships()
    formulas = find_formulas(columns, guesses)
    computed = {formula.column for formula in formulas}
    axes = [
        axis
        for j in modelled
        if columns[j].name not in computed
        and (axis := column_axis(columns[j], guesses[j])) is not None
        and not _is_key_like(axis, guesses[j])
    ]
    dependencies = find_dependencies(axes)
    computed |= {dependency.target for dependency in dependencies}
    others = [j for j in modelled if columns[j].name not in computed]
    orders = _find_orders(columns, guesses, others)
    exclusions, left_out = find_exclusions([axis for axis in axes if axis.name not in computed])
    return Relationships(
        formulas=formulas,
        dependencies=dependencies,
        orders=orders,
        exclusions=exclusions,
        left_out=left_out,
    )


def _is_key_like(axis: ColumnAxis, guess: ColumnGuess) -> bool:
    """Whether a column may number persons or rows: what follows from its values says who they are.

    An amount in whole numbers that hardly repeat is taken for one, too.
    """
    is_whole = axis.numbers is not None and guess.scale == "number" and not guess.decimals
    seen = measure_uniqueness(axis.counts[: axis.values])
    return guess.draft.may_be_unit or (is_whole and seen.is_nearly_unique)


def _find_orders(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess], modelled: Sequence[int]
) -> list[ColumnOrder]:
    """Find pairs of numeric or date columns whose first never exceeds the second.

    An order that follows from two others is left out.
    """
    comparable = [
        j for j in modelled if guesses[j].scale is not None and not guesses[j].draft.may_be_unit
    ]
    usable = [j for j in comparable if len(columns[j].values) >= _MIN_ORDERED_VALUES]
    if len(usable) < 2:
        return []
    rows = spread_rows(columns[0].rows, _SAMPLE_ROWS)
    sample = np.stack([row_numbers(columns[j], guesses[j], rows) for j in usable], axis=1)
    found: dict[tuple[int, int], ColumnOrder] = {}
    checked = 0
    for at, low in enumerate(usable):
        never_above = ~(sample[:, [at]] > sample).any(axis=0)
        for high in (usable[k] for k in np.flatnonzero(never_above)):
            comparable_scale = guesses[low].scale == guesses[high].scale
            if low == high or not comparable_scale or checked >= _MAX_CANDIDATES_CHECKED:
                continue
            checked += 1
            numbers = (row_numbers(columns[j], guesses[j]) for j in (low, high))
            order = _check_order(columns[low].name, columns[high].name, *numbers)
            if order is not None and (high, low) not in found:
                found[low, high] = order
    direct = [
        order
        for (low, high), order in found.items()
        if not any((low, k) in found and (k, high) in found for k in usable)
    ]
    return direct[:_MAX_ORDERS]


def _check_order(low_name: str, high_name: str, low: Reals, high: Reals) -> ColumnOrder | None:
    """Check that ``low`` never exceeds ``high``.

    None if a row breaks the order, or if it also holds between different rows.
    """
    present = np.isfinite(low) & np.isfinite(high)
    low, high = low[present], high[present]
    if len(low) < _MIN_SUPPORT_ROWS or (low > high).any():
        return None
    others = np.roll(high, len(high) // 2 + 1)
    expected = int((low > others).sum())
    if expected < max(_MIN_SUPPORT_ROWS / 3, 0.05 * len(low)):
        return None
    return ColumnOrder(low_name, high_name, bool((low < high).all()), float(expected))
