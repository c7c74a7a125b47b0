"""Numbers of identifiers that ascend with other columns: order numbers grow with the date.

A record's number is its place among all records of the release, sorted by those columns. Records
are made in blocks that do not know each other, so the place is computed from the record's place in
its block: blocks have the same distribution, and take turns.
"""

from collections.abc import Mapping

import numpy as np

from deniable.arrays import Codes, Counts, Indices
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier

# Numbers of identifiers that are sorted by other columns, by name.
SortedNumbers = Mapping[str, Counts]
NO_NUMBERS: SortedNumbers = {}


def number_along_columns(
    codes: Codes, schema: Schema, *, first_record: int, total: int, block: int
) -> SortedNumbers:
    """Number records for each identifier that is sorted by other columns.

    Args:
        codes: The encoded records of one block or of several ones, complete.
        schema: Their schema.
        first_record: The running number of the first of them, from 1.
        total: The number of records of the release.
        block: The records of a block; the last one may have fewer.
    """
    if not len(codes):
        return NO_NUMBERS
    names = [attribute.name for attribute in schema.attributes]
    found = {}
    for column in schema.columns:
        if not isinstance(column, Identifier) or not column.sorted_by:
            continue
        by = [names.index(name) for name in column.sorted_by]
        places = np.empty(len(codes), dtype=np.int64)
        for start in range(0, len(codes), block):
            ranks = _rank_rows(codes[start : start + block][:, by])
            number = (first_record - 1 + start) // block
            places[start : start + block] = place_in_release(ranks, number, total, block)
        found[column.name] = spread_places(places, total, column.numbers)
    return found


def _rank_rows(codes: Codes) -> Indices:
    """Rank rows by their columns, the first one first; equal rows in their order."""
    order = np.lexsort(codes.T[::-1])
    ranks = np.empty(len(codes), dtype=np.intp)
    ranks[order] = np.arange(len(codes))
    return ranks


def place_in_release(ranks: Indices, number: int, total: int, block: int) -> Counts:
    """Compute the place of records among all, from 0, given their rank in their block.

    Rank r of n records stands for the quantile (r + 1/2) / n of its block. All records are ordered
    by that, then by block. So each place is taken once.

    Args:
        ranks: Ranks in the block, from 0.
        number: The number of the block, from 0.
        total: The number of records of all blocks.
        block: The records of every block but the last.
    """
    full, last = divmod(total, block)
    own = ranks.astype(np.int64)
    if number < full:
        # Ranks of the last block with (2t + 1) / 2 last < (2r + 1) / 2 block.
        below = np.maximum(-((block - (2 * own + 1) * last) // (2 * block)), 0)
        return own * full + number + below
    # Ranks of a full block with (2r + 1) / 2 block <= (2t + 1) / 2 last.
    up_to = np.maximum(((2 * own + 1) * block - last) // (2 * last) + 1, 0)
    places: Counts = own + full * up_to
    return places


def spread_places(places: Counts, total: int, numbers: range | None) -> Counts:
    """Turn places among all records into numbers, evenly spread; 1, 2, 3, … by default.

    With more records than numbers, they are consecutive, and the last ones exceed the largest.
    """
    if numbers is None:
        return places + 1
    step, rest = divmod(max(len(numbers), total), total)
    spread: Counts = numbers.start + places * step + places * rest // total
    return spread
