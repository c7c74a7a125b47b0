"""Several rows of one person: at most so many of them count."""

import numpy as np

from deniable.arrays import Codes, Counts
from deniable.data.bulk import select_rows
from deniable.randomness import Rng


def bound_rows(codes: Codes, units: Counts, rng: Rng, *, most: int) -> Codes:
    """Return the records of a table, at most ``most`` of each unit, chosen at random.

    Privacy:
        Neighbours: add or remove all rows of one unit; the tables that come out then differ by at
            most ``most`` rows: what is kept of one unit does not depend on the others.
        Assumes: ``rng`` is secret, or at least independent of the table.
    """
    chance = rng.words(len(codes))
    order = np.lexsort((chance, units))
    sorted_units = units[order]
    starts = np.flatnonzero(np.r_[True, sorted_units[1:] != sorted_units[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    kept = np.zeros(len(order), dtype=bool)
    kept[order[rank < most]] = True
    return select_rows(codes, kept)
