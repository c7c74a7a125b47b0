"""Find relationships between columns: functional dependencies, sums, products and orders.

Each candidate is tested on a sample of rows first; all rows are read only if the sample agrees.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Indices, Mask, Reals
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.description import ColumnGuess

_SAMPLE_ROWS = 1_000
_FORMULA_SAMPLE_ROWS = 64
# Sampled rows without a missing cell that a formula needs.
_MIN_COMPLETE_SAMPLES = 8
# Rows that must support a formula or an order.
_MIN_SUPPORT_ROWS = 30
# Minimum of -ln(probability) that a dependency holds by chance.
_MIN_LOG_EVIDENCE = 30.0
_MIN_ORDERED_VALUES = 10
_MAX_ORDERS = 20
# Candidates that are checked against all rows.
_MAX_CANDIDATES_CHECKED = 400


@dataclass(frozen=True, kw_only=True)
class Relationships:
    """Relationships found between columns.

    Attributes:
        remarks: Comments below a column's description, by column.
        notes: Decisions left to the user, by column.
        orders: Pairs of columns whose first never exceeds the second, and whether they are
            never equal.
    """

    remarks: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    orders: list[tuple[str, str, bool]] = field(default_factory=list)

    def add(self, name: str, *, remarks: Sequence[str] = (), note: str = "") -> None:
        """Add remarks and a note to one column."""
        self.remarks.setdefault(name, []).extend(remarks)
        if note:
            self.notes.setdefault(name, []).append(note)


def find_relationships(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess]
) -> Relationships:
    """Find relationships between the columns of a table."""
    found = Relationships()
    modelled = [j for j, guess in enumerate(guesses) if guess.draft.is_modelled]
    computed = _find_formulas(found, columns, guesses, modelled)
    others = [j for j in modelled if j not in computed]
    _find_dependencies(found, columns, others)
    _find_orders(found, columns, guesses, others)
    return found


# Functional dependencies


def _find_dependencies(
    found: Relationships, columns: Sequence[ColumnProfile], modelled: Sequence[int]
) -> None:
    """Add a note to each column that another column determines."""
    sizes = {j: len(columns[j].values) + bool(columns[j].nulls) for j in modelled}
    determined_by: dict[int, list[int]] = {}
    for one, other in _candidate_dependencies(columns, sizes):
        order = np.argsort(columns[one].value_indices, kind="stable")
        if _depends(columns[one].value_indices[order], columns[other].value_indices[order]):
            determined_by.setdefault(other, []).append(one)
    noted: set[frozenset[int]] = set()
    for other, by in determined_by.items():
        one = min(by, key=lambda j: (sizes[j], j))
        both = other in determined_by.get(one, [])
        if frozenset((one, other)) in noted:
            continue
        noted.add(frozenset((one, other)))
        found.add(columns[other].name, note=_dependency_note(columns[one].name, both=both))


def _dependency_note(by: str, *, both: bool) -> str:
    if both:
        return (
            f'it and "{by}" are equivalent: each follows from the other. Leave one out of the '
            "table and derive it afterwards, or records may contradict themselves"
        )
    return (
        f'it follows from "{by}" in every row. Leave it out of the table and derive it '
        "afterwards, or list the valid combinations in a [[constraint]]"
    )


def _candidate_dependencies(
    columns: Sequence[ColumnProfile], sizes: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns whose first determines the second in a sample of rows."""
    rows = columns[0].rows
    sample = _sample_rows(rows, _SAMPLE_ROWS)
    modelled = list(sizes)
    if not modelled:
        return
    cells = np.stack([columns[j].value_indices[sample] for j in modelled], axis=1)
    checked = 0
    for one in modelled:
        if not 2 <= sizes[one] <= rows / 10:
            continue
        own = columns[one].value_indices[sample]
        order = np.argsort(own, kind="stable")
        same = own[order][1:] == own[order][:-1]
        sorted_cells = cells[order]
        refuted = ((sorted_cells[1:] != sorted_cells[:-1]) & same[:, None]).any(axis=0)
        for at in np.flatnonzero(~refuted):
            other = modelled[at]
            if other == one or not 2 <= sizes[other] <= sizes[one]:
                continue
            if checked >= _MAX_CANDIDATES_CHECKED:
                return
            if _may_be_chance(columns[other], rows - sizes[one]):
                continue
            checked += 1
            yield one, other


def _may_be_chance(column: ColumnProfile, repeats: int) -> bool:
    """Whether ``repeats`` rows may repeat an earlier value because most rows have that value."""
    largest_share = max(int(column.counts.max()), column.nulls) / column.rows
    return -repeats * math.log(largest_share) < _MIN_LOG_EVIDENCE


def _depends(by: NDArray[np.uint32], other: NDArray[np.uint32]) -> bool:
    """Whether rows with equal values in ``by``, which is sorted, also agree in ``other``."""
    return not np.any((by[1:] == by[:-1]) & (other[1:] != other[:-1]))


# Formulas


def _find_formulas(
    found: Relationships,
    columns: Sequence[ColumnProfile],
    guesses: Sequence[ColumnGuess],
    modelled: Sequence[int],
) -> set[int]:
    """Add columns that equal another, or the sum or product of two others; return them."""
    usable = [j for j in modelled if guesses[j].scale == "number" and len(columns[j].values) > 2]
    rows = _sample_rows(columns[0].rows, _FORMULA_SAMPLE_ROWS)
    samples = {j: _row_numbers(columns[j], guesses[j], rows) for j in usable}
    usable = [j for j in usable if np.isfinite(samples[j]).sum() >= _MIN_COMPLETE_SAMPLES]
    if len(usable) < 2:
        return set()
    sample = np.stack([samples[j] for j in usable], axis=1)
    tolerances = np.array([_rounding_error(guesses[j].decimals) for j in usable])
    computed: set[int] = set()
    checked = 0
    for target, terms, operator in _candidate_formulas(sample, tolerances):
        result, parts = usable[target], [usable[term] for term in terms]
        if result in computed or computed & set(parts) or checked >= _MAX_CANDIDATES_CHECKED:
            continue
        checked += 1
        if _formula_holds(columns, guesses, result, parts, operator):
            computed.add(result)
            _add_formula(found, columns[result].name, [columns[j].name for j in parts], operator)
    return computed


def _candidate_formulas(
    sample: Reals, tolerances: Reals
) -> Iterator[tuple[int, tuple[int, ...], str]]:
    """Yield columns that equal another, or a sum or product of two others, in the sample."""
    columns = range(sample.shape[1])
    for b in columns:
        for a in np.flatnonzero(_columns_equal_to(sample[:, [b]], sample, tolerances)):
            if a > b:
                yield int(a), (b,), "="
    for b, c in combinations(columns, 2):
        total, product = sample[:, b] + sample[:, c], sample[:, b] * sample[:, c]
        for operator, result in (("+", total), ("*", product)):
            for a in np.flatnonzero(_columns_equal_to(result[:, None], sample, tolerances)):
                if a not in (b, c):
                    yield int(a), (b, c), operator


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
    """Whether a formula holds in all rows, with enough rows as evidence."""
    terms = [_row_numbers(columns[j], guesses[j]) for j in parts]
    expected = math.prod(terms) if operator == "*" else sum(terms)
    error = np.abs(expected - _row_numbers(columns[result], guesses[result]))
    present = np.isfinite(error)
    evidence = present.copy()
    for term in terms:
        # Adding zero, or multiplying by zero or one, is no evidence.
        evidence &= term != 0 if operator != "*" else (term != 0) & (term != 1)
    enough = evidence.sum() >= max(_MIN_SUPPORT_ROWS, 0.01 * present.sum())
    return bool(enough and (error[present] <= _rounding_error(guesses[result].decimals)).all())


def _add_formula(found: Relationships, name: str, parts: Sequence[str], operator: str) -> None:
    formula = f" {operator} ".join(map(_quote_name, parts))
    found.add(
        name,
        remarks=(
            f"It equals {formula} in every row. If it is always computed so, replace the above by",
            'type = "computed"',
            f"formula = {json.dumps(formula, ensure_ascii=False)}",
        ),
        note=f"it equals {formula} in every row: if it is always computed so, make it computed",
    )


def _quote_name(name: str) -> str:
    """Quote a column's name for a formula, unless it is an ASCII identifier."""
    return name if name.isidentifier() and name.isascii() else f"`{name}`"


def _rounding_error(decimals: int) -> float:
    return 0.51 * 10.0**-decimals


# Orders


def _find_orders(
    found: Relationships,
    columns: Sequence[ColumnProfile],
    guesses: Sequence[ColumnGuess],
    modelled: Sequence[int],
) -> None:
    """Add pairs of numeric or date columns whose first never exceeds the second."""
    comparable = [j for j in modelled if guesses[j].scale is not None]
    usable = [j for j in comparable if len(columns[j].values) >= _MIN_ORDERED_VALUES]
    rows = _sample_rows(columns[0].rows, _SAMPLE_ROWS)
    sample = {j: _row_numbers(columns[j], guesses[j], rows) for j in usable}
    for a, b in combinations(usable, 2):
        if guesses[a].scale != guesses[b].scale:
            continue
        for low, high in ((a, b), (b, a)):
            if len(found.orders) >= _MAX_ORDERS or (sample[low] > sample[high]).any():
                continue
            lows, highs = (_row_numbers(columns[j], guesses[j]) for j in (low, high))
            strict = _check_order(lows, highs)
            if strict is None:
                continue
            if not strict and np.array_equal(lows, highs, equal_nan=True):
                found.add(columns[b].name, note=_dependency_note(columns[a].name, both=True))
                break
            found.orders.append((columns[low].name, columns[high].name, strict))


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


def _sample_rows(rows: int, limit: int) -> Indices:
    """Sample at most ``limit`` rows, evenly spaced over the table."""
    sample: Indices = np.unique(np.linspace(0, rows - 1, min(rows, limit)).astype(np.intp))
    return sample
