"""Find relationships between columns: dependencies, formulas, orders and impossible combinations.

Each candidate is tested on a sample of rows first; all rows are read only if the sample agrees.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from deniable.arrays import Indices, Mask, Reals
from deniable.drafting.column_axes import column_axis
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.dependencies import Dependency, find_dependencies, spread_rows
from deniable.drafting.description import ColumnGuess
from deniable.drafting.empty_regions import Exclusion
from deniable.drafting.exclusions import find_exclusions
from deniable.drafting.linear_formulas import find_lines

_SAMPLE_ROWS = 1_000
_FORMULA_SAMPLE_ROWS = 64
# Columns among which sums and products are sought: the work grows with the cube of them.
_MAX_FORMULA_COLUMNS = 100
# Sampled rows without a missing cell that a formula needs.
_MIN_COMPLETE_SAMPLES = 8
# Rows that must support a formula or an order.
_MIN_SUPPORT_ROWS = 30
_MIN_ORDERED_VALUES = 10
_MAX_ORDERS = 20
# Candidates that are checked against all rows.
_MAX_CANDIDATES_CHECKED = 400


@dataclass(frozen=True, kw_only=True)
class ColumnFormula:
    """A column that equals a formula of others in every row.

    Attributes:
        column: The column.
        text: The formula, as a schema has it.
        decimals: Decimals of the result; None for integers.
    """

    column: str
    text: str
    decimals: int | None = None


@dataclass(frozen=True, kw_only=True)
class Relationships:
    """Relationships found between columns; each holds in every row.

    Attributes:
        formulas: Columns that equal another, a line of another, or a sum or product of two others.
        dependencies: Columns that follow from one other column.
        orders: Pairs of columns whose first never exceeds the second, and whether they are
            never equal.
        exclusions: Combinations of two columns that no row has.
    """

    formulas: list[ColumnFormula] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)
    orders: list[tuple[str, str, bool]] = field(default_factory=list)
    exclusions: list[Exclusion] = field(default_factory=list)


def find_relationships(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess]
) -> Relationships:
    """Find relationships between the columns of a table.

    A column that is computed from others takes no part in further relationships.
    """
    modelled = [j for j, guess in enumerate(guesses) if guess.draft.is_modelled]
    if columns[0].rows < _MIN_SUPPORT_ROWS or len(modelled) < 2:
        return Relationships()
    formulas = _find_formulas(columns, guesses, modelled)
    computed = {formula.column for formula in formulas}
    axes = [
        axis
        for j in modelled
        if columns[j].name not in computed
        and (axis := column_axis(columns[j], guesses[j])) is not None
    ]
    dependencies = find_dependencies(axes)
    computed |= {dependency.target for dependency in dependencies}
    others = [j for j in modelled if columns[j].name not in computed]
    orders = _find_orders(columns, guesses, others)
    exclusions = find_exclusions(
        [axis for axis in axes if axis.name not in computed],
        without=frozenset(frozenset(order[:2]) for order in orders),
    )
    return Relationships(
        formulas=formulas, dependencies=dependencies, orders=orders, exclusions=exclusions
    )


# Formulas


def _find_formulas(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess], modelled: Sequence[int]
) -> list[ColumnFormula]:
    """Find columns that equal another, a line of another, or the sum or product of two others."""
    usable = [j for j in modelled if guesses[j].scale == "number" and len(columns[j].values) > 2]
    rows = spread_rows(columns[0].rows, _FORMULA_SAMPLE_ROWS)
    samples = {j: _row_numbers(columns[j], guesses[j], rows) for j in usable}
    usable = [j for j in usable if np.isfinite(samples[j]).sum() >= _MIN_COMPLETE_SAMPLES]
    if len(usable) < 2:
        return []
    sample = np.stack([samples[j] for j in usable], axis=1)
    tolerances = np.array([_rounding_error(guesses[j].decimals) for j in usable])
    distinct = [len(columns[j].values) for j in usable]
    found: list[ColumnFormula] = []
    computed: set[int] = set()
    kept: list[tuple[int, ...]] = []
    checked = 0
    for target, terms, operator in _candidate_formulas(sample, tolerances, distinct):
        result, parts = usable[target], [usable[term] for term in terms]
        if result in computed or computed & set(parts) or checked >= _MAX_CANDIDATES_CHECKED:
            continue
        checked += 1
        if _formula_holds(columns, guesses, result, parts, operator):
            computed.add(result)
            kept.append(terms)
            text = f" {operator} ".join(_quote_name(columns[j].name) for j in parts)
            found.append(
                ColumnFormula(
                    column=columns[result].name, text=text, decimals=_decimals(guesses[result])
                )
            )
    free = [j not in computed for j in usable]
    own = [j for j, is_free in zip(usable, free, strict=True) if is_free]
    terms_used = {usable[term] for each in kept for term in each}
    return [*found, *_find_line_formulas(columns, guesses, own, sample[:, free], terms_used)]


def _find_line_formulas(
    columns: Sequence[ColumnProfile],
    guesses: Sequence[ColumnGuess],
    usable: Sequence[int],
    sample: Reals,
    parts: set[int],
) -> list[ColumnFormula]:
    """Find columns that are a line of another; ``parts`` of other formulas stay learnt."""
    by_length = sorted(range(len(usable)), key=lambda at: (-len(columns[usable[at]].values), at))
    longest = sorted(by_length[:_MAX_FORMULA_COLUMNS])
    found: list[ColumnFormula] = []
    computed: set[int] = set()
    own = [usable[at] for at in longest]
    decimals = [guesses[j].decimals for j in own]
    distinct = [len(columns[j].values) for j in own]
    tolerances = np.array([_rounding_error(each) for each in decimals])
    for line in find_lines(sample[:, longest], decimals, distinct, tolerances):
        result, source = own[line.target], own[line.source]
        if computed & {result, source} or result in parts:
            continue
        expected = line.of(_row_numbers(columns[source], guesses[source]))
        numbers = _row_numbers(columns[result], guesses[result])
        if _equal_in_all_rows(expected, numbers, tolerances[line.target]):
            computed.add(result)
            parts = parts | {source}
            text = line.text(_quote_name(columns[source].name))
            found.append(
                ColumnFormula(
                    column=columns[result].name, text=text, decimals=_decimals(guesses[result])
                )
            )
    return found


def _equal_in_all_rows(expected: Reals, numbers: Reals, tolerance: float) -> bool:
    """Whether a formula gives the numbers of a column, and is missing in the same rows."""
    present = np.isfinite(numbers)
    if not np.array_equal(np.isfinite(expected), present) or present.sum() < _MIN_SUPPORT_ROWS:
        return False
    return bool((np.abs(expected - numbers)[present] <= tolerance).all())


def _candidate_formulas(
    sample: Reals, tolerances: Reals, distinct: Sequence[int]
) -> Iterator[tuple[int, tuple[int, ...], str]]:
    """Yield columns that equal another, or a sum or product of two others, in the sample.

    Sums and products are sought among the columns with the most distinct values.
    """
    columns = range(sample.shape[1])
    for b in columns:
        for a in np.flatnonzero(_columns_equal_to(sample[:, [b]], sample, tolerances)):
            if a > b:
                yield int(a), (b,), "="
    longest = sorted(columns, key=lambda j: (-distinct[j], j))[:_MAX_FORMULA_COLUMNS]
    kept: Indices = np.array(sorted(longest), dtype=np.intp)
    sample, tolerances = sample[:, kept], tolerances[kept]
    for b, c in combinations(range(len(kept)), 2):
        total, product = sample[:, b] + sample[:, c], sample[:, b] * sample[:, c]
        for operator, result in (("+", total), ("*", product)):
            for a in np.flatnonzero(_columns_equal_to(result[:, None], sample, tolerances)):
                if a not in (b, c):
                    yield int(kept[a]), (int(kept[b]), int(kept[c])), operator


def _columns_equal_to(result: Reals, sample: Reals, tolerances: Reals) -> Mask:
    """Mask of the columns that equal ``result`` in all rows without a missing cell."""
    error = np.abs(result - sample)
    present = np.isfinite(error)
    enough = present.sum(axis=0) >= _MIN_COMPLETE_SAMPLES
    with np.errstate(invalid="ignore"):
        equal: Mask = ((error <= tolerances) | ~present).all(axis=0) & enough
    return equal


def _formula_holds(
    columns: Sequence[ColumnProfile],
    guesses: Sequence[ColumnGuess],
    result: int,
    parts: Sequence[int],
    operator: str,
) -> bool:
    """Whether a formula holds in all rows, with enough rows as evidence.

    The result is missing exactly where a term is, or the formula could not replace the column.
    """
    terms = [_row_numbers(columns[j], guesses[j]) for j in parts]
    expected = math.prod(terms) if operator == "*" else sum(terms)
    numbers = _row_numbers(columns[result], guesses[result])
    if not np.array_equal(np.isfinite(expected), np.isfinite(numbers)):
        return False
    error = np.abs(expected - numbers)
    present = np.isfinite(error)
    evidence = present.copy()
    for term in terms:
        # Adding zero, or multiplying by zero or one, is no evidence.
        evidence &= term != 0 if operator != "*" else (term != 0) & (term != 1)
    enough = evidence.sum() >= max(_MIN_SUPPORT_ROWS, 0.01 * present.sum())
    return bool(enough and (error[present] <= _rounding_error(guesses[result].decimals)).all())


def _decimals(guess: ColumnGuess) -> int | None:
    """Return the decimals that a column is written with; None for integers."""
    if guess.draft.kind != "real":
        return None
    # Integers with a decimal point, such as 162000.0, have a step of 1.0.
    return 1 if any(field.key == "step" for field in guess.draft.fields) else guess.decimals


def _quote_name(name: str) -> str:
    """Quote a column's name for a formula, unless it is an ASCII identifier."""
    return name if name.isidentifier() and name.isascii() else f"`{name}`"


def _rounding_error(decimals: int) -> float:
    return 0.51 * 10.0**-decimals


# Orders


def _find_orders(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess], modelled: Sequence[int]
) -> list[tuple[str, str, bool]]:
    """Find pairs of numeric or date columns whose first never exceeds the second.

    An order that follows from two others is left out.
    """
    comparable = [j for j in modelled if guesses[j].scale is not None]
    usable = [j for j in comparable if len(columns[j].values) >= _MIN_ORDERED_VALUES]
    if len(usable) < 2:
        return []
    rows = spread_rows(columns[0].rows, _SAMPLE_ROWS)
    sample = np.stack([_row_numbers(columns[j], guesses[j], rows) for j in usable], axis=1)
    found: dict[tuple[int, int], bool] = {}
    checked = 0
    for at, low in enumerate(usable):
        never_above = ~(sample[:, [at]] > sample).any(axis=0)
        for high in (usable[k] for k in np.flatnonzero(never_above)):
            comparable_scale = guesses[low].scale == guesses[high].scale
            if low == high or not comparable_scale or checked >= _MAX_CANDIDATES_CHECKED:
                continue
            checked += 1
            strict = _check_order(*(_row_numbers(columns[j], guesses[j]) for j in (low, high)))
            if strict is not None and (high, low) not in found:
                found[low, high] = strict
    direct = [
        (columns[low].name, columns[high].name, strict)
        for (low, high), strict in found.items()
        if not any((low, k) in found and (k, high) in found for k in usable)
    ]
    return direct[:_MAX_ORDERS]


def _check_order(low: Reals, high: Reals) -> bool | None:
    """Check that ``low`` never exceeds ``high``: True if it is always smaller, False if not.

    None if a row breaks the order, or if it also holds between different rows.
    """
    present = np.isfinite(low) & np.isfinite(high)
    low, high = low[present], high[present]
    if len(low) < _MIN_SUPPORT_ROWS or (low > high).any():
        return None
    others = np.roll(high, len(high) // 2 + 1)
    if (low > others).sum() < max(_MIN_SUPPORT_ROWS / 3, 0.05 * len(low)):
        return None
    return bool((low < high).all())


def _row_numbers(
    column: ColumnProfile, guess: ColumnGuess, rows: Indices | slice = slice(None)
) -> Reals:
    """Look up the number of each row; NaN if it is missing."""
    if guess.numbers is None:
        return np.full(len(column.value_indices[rows]), np.nan)
    return np.append(guess.numbers, np.nan)[column.value_indices[rows]]
