"""Choose records at random: split them into D_S, D_T and D_P; bound the rows of each unit."""

from collections.abc import Mapping

import numpy as np

from deniable.arrays import Codes, Counts, Mask, Reals, Words
from deniable.data.spooled_codes import CodeSpool, row_batches, select_rows
from deniable.errors import ConfigError
from deniable.randomness import Randomness, Rng, Stage

# Rows that share one stream of random words. So a task that has some rows of a table draws the
# same words for them as a single machine.
ROWS_PER_STREAM = 2**18


def draw_row_words(randomness: Randomness, stage: Stage, start: int, stop: int) -> Words:
    """Draw a word for each row from ``start`` to ``stop``; it depends on the row's number only."""
    drawn = [np.empty(0, dtype=np.uint64)]
    for block in range(start // ROWS_PER_STREAM, -(-stop // ROWS_PER_STREAM)):
        first = block * ROWS_PER_STREAM
        words = randomness.at(stage, block).words(min(stop - first, ROWS_PER_STREAM))
        drawn.append(words[max(start - first, 0) :])
    return np.concatenate(drawn)


def choose_parts(words: Words, bounds: Reals) -> Counts:
    """Map each row's word to the number of its part; the number of parts means none."""
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.searchsorted(bounds, uniform, side="right")


def part_bounds(fractions: Mapping[str, float]) -> Reals:
    """Return the cumulative probabilities of the parts.

    Raises:
        ConfigError: They are not above 0, or sum to more than 1.
    """
    bounds: Reals = np.cumsum(list(fractions.values()))
    if min(fractions.values()) <= 0 or bounds[-1] > 1 + 1e-12:
        raise ConfigError("the parts' probabilities must be above 0 and sum to at most 1")
    return bounds


def split_records(
    codes: Codes, fractions: Mapping[str, float], randomness: Randomness
) -> dict[str, Codes]:
    """Assign each record independently to one of the named parts, or to none.

    Args:
        codes: Encoded records.
        fractions: The probability of each part; they sum to at most 1.
        randomness: Draws the part of each record, from stage ``split``.

    Privacy:
        Neighbours: add or remove one record of the table.
        Covers: guarantee.md, Theorem 10. Each record is assigned on its own, with public
            probabilities that do not depend on the number of records.
        Assumes: the part of each record and the sizes of the parts stay secret, and so do
            the draws.
    """
    bounds = part_bounds(fractions)
    spools, start = [CodeSpool(codes.shape[1]) for _ in fractions], 0
    for batch in row_batches(codes):
        words = draw_row_words(randomness, "split", start, start + len(batch))
        drawn, start = choose_parts(words, bounds), start + len(batch)
        for number, spool in enumerate(spools):
            spool.add(batch[drawn == number])
    return {part: spool.codes() for part, spool in zip(fractions, spools, strict=True)}


def limit_rows_per_unit(
    codes: Codes, units: Counts, randomness: Randomness, *, max_rows: int
) -> Codes:
    """Bound the contribution of each unit: keep at most ``max_rows`` of its rows, at random.

    Args:
        codes: Encoded records.
        units: The unit of each record: equal numbers mean the same unit.
        randomness: Chooses the rows to keep, from stage ``units``.
        max_rows: The number of rows of a unit to keep.

    Privacy:
        Neighbours: add or remove all rows of one unit. The results then differ by at most
            ``max_rows`` rows, since the rows kept of one unit do not depend on other units.
        Assumes: ``randomness`` is secret, or at least independent of the table.
    """
    words = draw_row_words(randomness, "units", 0, len(units))
    return select_rows(codes, keep_lowest_words(units, words, max_rows=max_rows))


def choose_rows_per_unit(units: Counts, rng: Rng, *, max_rows: int) -> Mask:
    """Choose at most ``max_rows`` rows of each unit, at random; return a mask of all rows.

    Privacy: as ``limit_rows_per_unit``.
    """
    return keep_lowest_words(units, rng.words(len(units)), max_rows=max_rows)


def keep_lowest_words(units: Counts, words: Words, *, max_rows: int) -> Mask:
    """Keep the ``max_rows`` rows of each unit with the lowest words; return a mask of all rows."""
    order = np.lexsort((words, units))
    sorted_units = units[order]
    starts = np.flatnonzero(np.r_[True, sorted_units[1:] != sorted_units[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    kept: Mask = np.zeros(len(order), dtype=bool)
    kept[order[rank < max_rows]] = True
    return kept
