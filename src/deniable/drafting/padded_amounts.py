"""Amounts written with leading zeros, such as 0160000, which look like codes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from deniable.arrays import Mask
from deniable.drafting.cell_patterns import (
    AMOUNT_WORDS,
    CLASS_INDEX,
    CODE_WORDS,
    CellClasses,
    split_name,
)
from deniable.drafting.column_profile import ColumnProfile
from deniable.drafting.description import ColumnGuess, DraftField
from deniable.drafting.identifier_columns import has_identifier_name
from deniable.drafting.numeric_columns import describe_numbers
from deniable.drafting.numeric_profile import NumericProfile

# Least digits, distinct numbers, and share of these that are multiples of a hundred. Codes of this
# length are rarely round.
_MIN_DIGITS = 5
_MIN_DISTINCT = 30
_MIN_ROUND_SHARE = 0.5

_INTEGER_CLASSES = [CLASS_INDEX[name] for name in ("zeros", "decimals 0", "bit")]
_NOTE = "taken for amounts with leading zeros: if they are codes, make it categorical"


def guess_padded_amounts(
    column: ColumnProfile, texts: pl.Series, classes: CellClasses, known: Mask, missing: list[str]
) -> ColumnGuess | None:
    """Describe integers with leading zeros, if they are amounts; None if they are codes.

    Args:
        column: The column.
        texts: Its distinct values.
        classes: The class of each.
        known: Which of them do not mean missing.
        missing: Texts that mean missing.
    """
    held = texts.filter(pl.Series(known))
    if not np.isin(classes[known], _INTEGER_CLASSES).all() or held.str.contains(r"[^-0-9]").any():
        return None
    integers = held.cast(pl.Int64).to_numpy()
    numbers = NumericProfile.from_positions(integers, column.counts[known], 0)
    if not _are_amounts(column.name, held.to_list(), numbers):
        return None
    draft, codes = describe_numbers(column.name, numbers, missing)
    if draft.kind != "integer":
        return None
    by_value = np.full(len(texts), np.nan)
    by_value[known] = integers
    by_value[np.isin(by_value, codes)] = np.nan
    padding = DraftField("format", f"{{:0{len(held[0])}d}}", "written with leading zeros")
    fields = (*draft.fields[:2], padding, *draft.fields[2:])
    draft = replace(draft, fields=fields).plus(notes=(_NOTE,))
    return ColumnGuess(draft=draft, scale="number", numbers=by_value)


def _are_amounts(name: str, texts: Sequence[str], numbers: NumericProfile) -> bool:
    """Whether padded integers of one length are amounts: by name, or because most are round."""
    words, lengths = split_name(name), {len(text) for text in texts}
    if words & CODE_WORDS or has_identifier_name(name):
        return False
    if len(lengths) != 1 or min(lengths) < _MIN_DIGITS or len(numbers.positions) < _MIN_DISTINCT:
        return False
    others = numbers.positions[numbers.positions != 0]
    is_round = float(np.mean(others % 100 == 0)) >= _MIN_ROUND_SHARE
    return bool(words & AMOUNT_WORDS) or is_round
