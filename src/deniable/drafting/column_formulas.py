"""Find columns that are computed from others: sums, products, lines, functions and quotients.

Each candidate is tested on a few rows first; all rows are read only if these agree.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Protocol

import numpy as np

from deniable.arrays import Indices, Mask, Reals
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.dependencies import spread_rows
from deniable.drafting.description import ColumnGuess
from deniable.drafting.formula_sample import FormulaSample, rounding_error
from deniable.drafting.function_formulas import find_functions
from deniable.drafting.linear_formulas import find_lines
from deniable.drafting.quotient_formulas import find_quotients

_SAMPLE_ROWS = 64
# Columns among which formulas are sought, those with the most different numbers: the work grows
# with the cube of them, and is more for quotients.
_MAX_COLUMNS, _MAX_QUOTIENT_COLUMNS = 100, 60
# Sampled rows without a missing cell that a formula needs.
_MIN_COMPLETE_SAMPLES = 8
# Rows that must support a formula.
_MIN_SUPPORT_ROWS = 30
# Candidates of a kind that are checked against all rows.
_MAX_CANDIDATES_CHECKED = 400


@dataclass(frozen=True, kw_only=True)
class ColumnFormula:
    """A column that equals a formula of others in every row.

    Attributes:
        column: The column.
        text: The formula, as a schema has it.
        decimals: Decimals of the result; None for integers.
        terms: The columns in the formula.
    """

    column: str
    text: str
    decimals: int | None = None
    terms: tuple[str, ...] = field(default=(), compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it connects."""
        return self.column, *self.terms


class _Candidate(Protocol):
    """A formula that holds in the sample; columns are indices in it."""

    @property
    def target(self) -> int:
        """The column that is computed."""
        ...

    @property
    def terms(self) -> tuple[int, ...]:
        """The columns from which it is computed."""
        ...

    def of(self, *terms: Reals) -> Reals:
        """Compute the target."""
        ...

    def text(self, *terms: str) -> str:
        """Write the formula, given the names of the terms, quoted if they have to be."""
        ...

    def evidence(self, *terms: Reals) -> Mask:
        """Mark the rows in which the formula would not hold anyway."""
        ...


_Search = Callable[[FormulaSample], Iterator[_Candidate]]


def find_formulas(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess]
) -> list[ColumnFormula]:
    """Find columns that equal another, or a sum, product, line or quotient of others.

    Terms of a formula stay learnt: none is computed from other columns in turn.
    """
    table, sample = _sample_numbers(columns, guesses)
    found: dict[int, ColumnFormula] = {}
    terms: set[int] = set()
    searches: tuple[tuple[_Search, int], ...] = (
        (_find_copies, len(table)),
        (_find_combinations, _MAX_COLUMNS),
        (find_lines, _MAX_COLUMNS),
        (find_functions, _MAX_COLUMNS),
        (find_quotients, _MAX_QUOTIENT_COLUMNS),
    )
    for search, most in searches:
        own = sample.longest([j for j in sample.columns if j not in found], most)
        checked = 0
        for candidate in search(sample.select(own)):
            target, parts = own[candidate.target], [own[term] for term in candidate.terms]
            if target in found or target in terms or found.keys() & set(parts):
                continue
            checked += 1
            if checked > _MAX_CANDIDATES_CHECKED:
                break
            result, others = table[target], [table[j] for j in parts]
            if _holds(candidate, result, others):
                terms |= set(parts)
                found[target] = ColumnFormula(
                    column=result.name,
                    text=candidate.text(*(_quote_name(other.name) for other in others)),
                    decimals=result.written_decimals,
                    terms=tuple(other.name for other in others),
                )
    return list(found.values())


@dataclass(frozen=True)
class _Column:
    """A numeric column and its description."""

    profile: ColumnProfile
    guess: ColumnGuess

    @property
    def name(self) -> str:
        """The column's header."""
        return self.profile.name

    @property
    def numbers(self) -> Reals:
        """The number of each row; NaN if it is missing."""
        return row_numbers(self.profile, self.guess)

    @property
    def written_decimals(self) -> int | None:
        """The decimals that the column is written with; None for integers."""
        if self.guess.draft.kind != "real":
            return None
        # Integers with a decimal point, such as 162000.0, have a step of 1.0.
        has_step = any(field.key == "step" for field in self.guess.draft.fields)
        return 1 if has_step else self.guess.decimals


def _sample_numbers(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess]
) -> tuple[list[_Column], FormulaSample]:
    """List the numeric columns with enough numbers, and sample their rows."""
    rows = spread_rows(columns[0].rows, _SAMPLE_ROWS)
    kept: list[_Column] = []
    sampled: list[Reals] = []
    for column, guess in zip(columns, guesses, strict=True):
        # A formula cannot name a column with a backquote in its name.
        is_number = guess.draft.is_modelled and guess.scale == "number"
        if is_number and len(column.values) > 2 and "`" not in column.name:
            numbers = row_numbers(column, guess, rows)
            if np.isfinite(numbers).sum() >= _MIN_COMPLETE_SAMPLES:
                kept.append(_Column(column, guess))
                sampled.append(numbers)
    return kept, FormulaSample(
        numbers=np.array(sampled).reshape(len(kept), len(rows)).T,
        decimals=tuple(each.guess.decimals for each in kept),
        distinct=tuple(len(each.profile.values) for each in kept),
    )


@dataclass(frozen=True)
class _Combination:
    """A column that equals another, or the sum or product of two.

    Attributes:
        target: The column.
        terms: The others.
        operator: ``+`` or ``*``.
    """

    target: int
    terms: tuple[int, ...]
    operator: str

    def of(self, *terms: Reals) -> Reals:
        """Compute the target."""
        table = np.stack(terms)
        result: Reals = table.prod(axis=0) if self.operator == "*" else table.sum(axis=0)
        return result

    def text(self, *terms: str) -> str:
        """Write the formula."""
        return f" {self.operator} ".join(terms)

    def evidence(self, *terms: Reals) -> Mask:
        """Adding zero, or multiplying by zero or one, is no evidence."""
        trivial = (0.0, 1.0) if self.operator == "*" else (0.0,)
        return np.asarray(~np.isin(np.stack(terms), trivial).any(axis=0))


def _find_copies(sample: FormulaSample) -> Iterator[_Combination]:
    """Yield columns that equal an earlier one in the sample."""
    for b in sample.columns:
        for a in np.flatnonzero(_equal_columns(sample.numbers[:, b], sample)).tolist():
            if a > b:
                yield _Combination(a, (b,), "+")


def _find_combinations(sample: FormulaSample) -> Iterator[_Combination]:
    """Yield columns that are the sum or product of two others, or a square, in the sample."""
    for b, c in combinations_with_replacement(sample.columns, 2):
        one, two = sample.numbers[:, b], sample.numbers[:, c]
        for operator, result in (("+", one + two), ("*", one * two)):
            if b == c and operator == "+":
                continue  # a line
            for a in np.flatnonzero(_equal_columns(result, sample)).tolist():
                if a not in (b, c):
                    yield _Combination(a, (b, c), operator)


def _equal_columns(result: Reals, sample: FormulaSample) -> Mask:
    """Mark the columns that equal ``result`` in all rows without a missing cell."""
    error = np.abs(result[:, None] - sample.numbers)
    present = np.isfinite(error)
    enough = present.sum(axis=0) >= _MIN_COMPLETE_SAMPLES
    with np.errstate(invalid="ignore"):
        equal: Mask = ((error <= sample.tolerances) | ~present).all(axis=0) & enough
    return equal


def _holds(candidate: _Candidate, target: _Column, terms: Sequence[_Column]) -> bool:
    """Whether a formula holds in all rows, with enough rows as evidence.

    The result is missing exactly where a term is, or the formula could not replace the column.
    """
    numbers, result = [term.numbers for term in terms], target.numbers
    expected, present = candidate.of(*numbers), np.isfinite(result)
    if not np.array_equal(np.isfinite(expected), present):
        return False
    evidence = int((candidate.evidence(*numbers) & present).sum())
    if evidence < max(_MIN_SUPPORT_ROWS, 0.01 * present.sum()):
        return False
    return bool((np.abs(expected - result)[present] <= rounding_error(target.guess.decimals)).all())


def _quote_name(name: str) -> str:
    """Quote a column's name for a formula, unless it is an ASCII identifier."""
    return name if name.isidentifier() and name.isascii() else f"`{name}`"


def row_numbers(
    column: ColumnProfile, guess: ColumnGuess, rows: Indices | slice = slice(None)
) -> Reals:
    """Look up the number of each row; NaN if it is missing."""
    if guess.numbers is None:
        return np.full(len(column.value_indices[rows]), np.nan)
    return np.append(guess.numbers, np.nan)[column.value_indices[rows]]
