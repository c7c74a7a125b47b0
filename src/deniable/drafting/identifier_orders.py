"""Find the columns along which an identifier ascends: order numbers grow with the date.

New identifiers that were unrelated to all columns would lose that relation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Reals
from deniable.drafting.column_formulas import row_numbers
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.dependencies import spread_rows
from deniable.drafting.description import ColumnGuess
from deniable.drafting.rank_correlation import rank, rank_correlation
from deniable.drafting.round_numbers import nice_above
from deniable.schema.unmodelled_columns import MAX_IDENTIFIER_NUMBER

# Rows that are compared.
_SAMPLE_ROWS = 20_000
# An identifier ascends with a column from this rank correlation on. With a further column, the
# correlation is that within groups of equal values of the columns before it.
_MIN_CORRELATION = 0.9
_MAX_COLUMNS = 3
# Distinct numbers of an identifier, as a share of the rows.
_MIN_DISTINCT_SHARE = 0.5
# Rows in which a column must vary within its group, and the largest share of missing cells.
_MIN_SUPPORT_ROWS = 100
_MAX_MISSING_SHARE = 0.05
# Identifiers, and columns that each is compared with.
_MAX_IDENTIFIERS = 20
_MAX_COMPARED = 100
# Bounds are rounded outward to one of about this many numbers.
_BOUND_STEPS = 1_000


@dataclass(frozen=True, kw_only=True)
class IdentifierOrder:
    """An identifier whose numbers ascend with other columns.

    Attributes:
        column: The identifier.
        sorted_by: The columns, the most important first.
        low: Its smallest number, rounded outward.
        high: Its largest number, rounded outward.
    """

    column: str
    sorted_by: tuple[str, ...]
    low: int = field(repr=False)
    high: int = field(repr=False)


def find_identifier_orders(
    columns: Sequence[ColumnProfile], guesses: Sequence[ColumnGuess], learnt: Sequence[int]
) -> list[IdentifierOrder]:
    """Find the identifiers that ascend with ``learnt`` columns."""
    rows = spread_rows(columns[0].rows, _SAMPLE_ROWS)
    keys = [j for j, guess in enumerate(guesses) if _is_numbered(columns[j], guess)]
    if not keys:
        return []
    comparable = [j for j in learnt if guesses[j].scale is not None][:_MAX_COMPARED]
    candidates = {
        columns[j].name: numbers
        for j in comparable
        if np.isnan(numbers := row_numbers(columns[j], guesses[j], rows)).mean()
        <= _MAX_MISSING_SHARE
    }
    ranks = {name: rank(numbers) for name, numbers in candidates.items()}
    found = []
    for j in keys[:_MAX_IDENTIFIERS]:
        own = row_numbers(columns[j], guesses[j])
        low, high = np.nanmin(own), np.nanmax(own)
        sorted_by = _find_columns(own[rows], candidates, ranks)
        step = nice_above(max(high - low, 1) / _BOUND_STEPS)
        ends = int(low) // step * step, -(-int(high) // step) * step
        if sorted_by and low >= 0 and ends[1] <= MAX_IDENTIFIER_NUMBER:
            found.append(
                IdentifierOrder(
                    column=columns[j].name,
                    sorted_by=sorted_by,
                    # Not 0, unless there is a 0.
                    low=max(ends[0], min(int(low), 1)),
                    high=ends[1],
                )
            )
    return found


def _is_numbered(column: ColumnProfile, guess: ColumnGuess) -> bool:
    """Whether a column is an identifier of integers, most of which identify a single row."""
    if guess.draft.kind != "identifier" or guess.numbers is None:
        return False
    distinct = int(np.isfinite(guess.numbers).sum())
    return distinct >= _MIN_DISTINCT_SHARE * column.rows


def _find_columns(
    key: Reals, candidates: Mapping[str, Reals], ranks: Mapping[str, Reals]
) -> tuple[str, ...]:
    """Find the columns along which a key ascends, the most important first.

    Args:
        key: The key in the sampled rows.
        candidates: The numbers of other columns in these rows.
        ranks: Their ranks among all of these rows.
    """
    found: list[str] = []
    groups = np.zeros(len(key), dtype=np.intp)
    while len(found) < _MAX_COLUMNS:
        own = rank(key, groups)
        strengths = (
            (rank_correlation(own, other, least=_MIN_SUPPORT_ROWS), name)
            for name, other in ranks.items()
        )
        best, name = max(strengths, default=(0.0, ""))
        if best < _MIN_CORRELATION:
            break
        found.append(name)
        _, values = np.unique(candidates[name], return_inverse=True)
        _, groups = np.unique(groups * (int(values.max()) + 1) + values, return_inverse=True)
        ranks = {
            other: rank(numbers, groups)
            for other, numbers in candidates.items()
            if other not in found
        }
    return tuple(found)
