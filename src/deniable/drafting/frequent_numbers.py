"""Frequent numbers of a private draft, and words that stand for a missing one."""

from decimal import Decimal, InvalidOperation

import numpy as np

from deniable.arrays import Counts
from deniable.drafting.description import DRAFTED_PRIVATELY, DraftField, TomlScalar
from deniable.drafting.measured_column import CLEARLY_SEEN_SIGMAS, Details
from deniable.drafting.numeric_profile import MAX_EXACT_REAL
from deniable.drafting.type_histogram import FRACTION_INTERVALS, WHOLE_INTERVALS, ColumnTypes
from deniable.schema.bins import MAX_UNBINNED_POSITIONS, leading_digit_starts

# Words that stand for a missing number.
REASONS = ("N", "n", "X", "x", "-", "--", "*", "Unknown", "unknown", "UNKNOWN", "none", "Refused")
# Doubles tell the positions of a grid below this apart.
MAX_POSITION = int(MAX_EXACT_REAL)
# Intervals of equal width in which a wide range is counted, at most twice as many.
FINE_INTERVALS = 50
# A schema has at most 65,535 values, and a bin of its own may cut a number's neighbours in two.
_MAX_OWN_BINS = 10_000
# In units of the noise: a word that other answers make likely needs this.
_CONFIRMED_SIGMAS = 2.5
BOUND_COMMENTS = DRAFTED_PRIVATELY, DRAFTED_PRIVATELY


def seen_reasons(details: Details, types: ColumnTypes) -> dict[str, int]:
    """List the words for a missing number that were seen; they are the first cells.

    Where the types show texts, the most frequent word needs less evidence.
    """
    counts = dict(zip(REASONS, details.cells[: len(REASONS)].tolist(), strict=True))
    seen = {word: n for word, n in counts.items() if n > CLEARLY_SEEN_SIGMAS * details.sigma}
    if not seen and types.is_seen("text"):
        best = max(counts, key=lambda word: counts[word])
        if counts[best] > _CONFIRMED_SIGMAS * details.sigma:
            return {best: types.count("text")}
    return seen


def is_skewed(counts: Counts, first: int, last: int) -> bool:
    """Whether less than half of the numbers are in the upper part of their range."""
    intervals = WHOLE_INTERVALS if len(counts) == len(WHOLE_INTERVALS) else FRACTION_INTERVALS
    seen = np.maximum(counts[first : last + 1], 0)
    sizes = np.array([max(abs(a), abs(b)) for a, b in intervals[first : last + 1]], dtype=float)
    return bool(2 * seen[sizes > sizes.max() / 5].sum() < seen.sum())


def split_numbers(texts: dict[str, int]) -> tuple[dict[Decimal, int], dict[str, int]]:
    """Separate frequent numbers from frequent texts."""
    numbers: dict[Decimal, int] = {}
    others: dict[str, int] = {}
    for text, rows in texts.items():
        try:
            number = Decimal(text.strip(" \t"))
        except InvalidOperation:
            others[text] = rows
            continue
        if number.is_finite() and abs(number) < MAX_POSITION:
            numbers[number] = rows
    return numbers, others


def with_spikes(
    fields: list[DraftField], spikes: list[int], low: int, high: int, decimals: int | None
) -> list[DraftField]:
    """Give frequent numbers of a wide range a bin of their own, at most 10,000 of them.

    Args:
        fields: Bounds and bins.
        spikes: Positions of the frequent numbers, the most important first.
        low: Position of the lower bound.
        high: Position of the upper bound.
        decimals: Decimals of the grid; None for integers.
    """
    inside = [spike for spike in spikes if low <= spike <= high][:_MAX_OWN_BINS]
    if not inside or high - low < MAX_UNBINNED_POSITIONS:
        return fields
    skewed = any(field.key == "bins" and "digits" in str(field.value) for field in fields)
    values = range(low, high + 1)
    between = leading_digit_starts(values, 2) if skewed else values[:: len(values) // 100]
    edges = sorted({*between, *inside, *(spike + 1 for spike in inside)})
    listed: list[TomlScalar] = [
        edge if decimals is None else Decimal(edge).scaleb(-decimals)
        for edge in edges
        if low < edge <= high
    ]
    bins = DraftField("bins", {"edges": listed}, "a frequent number has its own bin")
    kept = [field for field in fields if field.key != "bins"]
    return [*kept, bins]
