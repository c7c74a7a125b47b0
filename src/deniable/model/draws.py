"""Drawing from many distributions at once: Walker's alias method, one table a distribution.

A draw costs two look-ups however many values there are. Rows are distributions (parent
configurations), columns are values; a draw takes one uniform number in [0, 1).
"""

from dataclasses import dataclass

import numpy as np

from deniable.arrays import CODE, Codes, Indices, Reals
from deniable.randomness import Rng

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class AliasTables:
    """Distributions over the same values, prepared for drawing.

    Value v of a row is kept with probability ``stay[row, v]``, else replaced by
    ``alias[row, v]``, after v was drawn uniformly. Flat, row by row.
    """

    values: int
    stay: Reals
    alias: Codes

    def draw(self, rows: Indices, uniform: Reals) -> Codes:
        """Return one value from each of the distributions ``rows``, by numbers in [0, 1)."""
        spread = uniform * self.values
        value = spread.astype(np.intp)
        spread -= value
        place = rows * self.values
        place += value
        stays = spread < self.stay[place]
        return np.where(stays, value.astype(CODE), self.alias[place])


def spread_evenly(rows: Indices, rng: Rng) -> Reals:
    """Return numbers in [0, 1), each uniform by itself, evenly spread among equal ``rows``.

    Records that draw from one distribution then have its values in about the right numbers, where
    independent draws would add noise of their own. In random order among equal rows, they are
    steps of the golden ratio, which leave no gap, from a random start.
    """
    order = np.argsort(
        (rows.astype(np.uint64) << np.uint64(32)) | (rng.words(len(rows)) >> np.uint64(32))
    )
    uniform = np.empty(len(rows))
    start = rng.random(1)[0]
    uniform[order] = (np.arange(len(rows)) * _GOLDEN + start) % 1.0
    return uniform


def alias_tables(probabilities: Reals) -> AliasTables:
    """Prepare each row of ``probabilities`` for drawing.

    The sweep of Vose's method, on all rows at once: in every row, one value that still lacks
    mass is filled up from one that has too much. A value that gave too much away lacks mass
    itself and is filled up next, so every step settles one value of every row.
    """
    rows, values = probabilities.shape
    mass = probabilities * values
    stay = np.ones((rows, values))
    alias = np.tile(np.arange(values, dtype=CODE), (rows, 1))
    # Ascending, so the donors are the tail of each row and `donor` walks down from its end.
    order = np.argsort(mass, axis=1, kind="stable")
    row = np.arange(rows)
    lacking = np.zeros(rows, dtype=np.intp)
    donor = np.full(rows, values - 1, dtype=np.intp)
    poor = order[row, lacking]
    for _ in range(values - 1):
        rich = order[row, donor]
        stay[row, poor] = np.minimum(mass[row, poor], 1.0)
        alias[row, poor] = rich
        mass[row, rich] -= 1.0 - stay[row, poor]
        # Rounding may leave a last donor a hair under 1 with nobody to fill it: it stays itself.
        becomes_poor = (mass[row, rich] < 1.0) & (donor - 1 > lacking)
        donor -= becomes_poor
        lacking += ~becomes_poor
        poor = np.where(becomes_poor, rich, order[row, np.minimum(lacking, donor)])
    stay[row, poor] = 1.0
    return AliasTables(values=values, stay=stay.ravel(), alias=alias.ravel())
