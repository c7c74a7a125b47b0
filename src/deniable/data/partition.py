"""Choose records at random: split them into D_S, D_T and D_P; bound the rows of each unit."""

from collections.abc import Mapping

import numpy as np

from deniable.arrays import Codes, Counts, Mask
from deniable.data.spooled_codes import CodeSpool, row_batches, select_rows
from deniable.errors import ConfigError
from deniable.randomness import Rng


def split_records(codes: Codes, fractions: Mapping[str, float], rng: Rng) -> dict[str, Codes]:
    """Assign each record independently to one of the named parts, or to none.

    Args:
        codes: Encoded records.
        fractions: The probability of each part; they sum to at most 1.
        rng: Draws the part of each record.

    Privacy:
        Neighbours: add or remove one record of the table.
        Covers: guarantee.md, Theorem 10. Each record is assigned on its own, with public
            probabilities that do not depend on the number of records.
        Assumes: the part of each record and the sizes of the parts stay secret; ``rng`` is secret.
    """
    bounds = np.cumsum(list(fractions.values()))
    if min(fractions.values()) <= 0 or bounds[-1] > 1 + 1e-12:
        raise ConfigError("the parts' probabilities must be above 0 and sum to at most 1")
    spools = [CodeSpool(codes.shape[1]) for _ in fractions]
    for batch in row_batches(codes):
        drawn = np.searchsorted(bounds, rng.random(len(batch)), side="right")
        for number, spool in enumerate(spools):
            spool.add(batch[drawn == number])
    return {part: spool.codes() for part, spool in zip(fractions, spools, strict=True)}


def limit_rows_per_unit(codes: Codes, units: Counts, rng: Rng, *, max_rows: int) -> Codes:
    """Bound the contribution of each unit: keep at most ``max_rows`` of its rows, at random.

    Args:
        codes: Encoded records.
        units: The unit of each record: equal numbers mean the same unit.
        rng: Chooses the rows to keep.
        max_rows: The number of rows of a unit to keep.

    Privacy:
        Neighbours: add or remove all rows of one unit. The results then differ by at most
            ``max_rows`` rows, since the rows kept of one unit do not depend on other units.
        Assumes: ``rng`` is secret, or at least independent of the table.
    """
    return select_rows(codes, choose_rows_per_unit(units, rng, max_rows=max_rows))


def choose_rows_per_unit(units: Counts, rng: Rng, *, max_rows: int) -> Mask:
    """Choose at most ``max_rows`` rows of each unit, at random; return a mask of all rows.

    Privacy: as ``limit_rows_per_unit``.
    """
    order = np.lexsort((rng.words(len(units)), units))
    sorted_units = units[order]
    starts = np.flatnonzero(np.r_[True, sorted_units[1:] != sorted_units[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    kept: Mask = np.zeros(len(order), dtype=bool)
    kept[order[rank < max_rows]] = True
    return kept
