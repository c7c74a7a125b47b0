"""Drawing from many distributions at once: Walker's alias method, one table a distribution.

A draw costs one look-up or two however many values there are. Rows are distributions (parent
configurations), columns are values; a draw takes one uniform number.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import CODE, Codes, HalfWords, Indices, Reals, Words
from deniable.randomness import Rng

# The golden ratio, as a fraction of 2^32.
_GOLDEN = np.uint32(2654435769)

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


@dataclass(frozen=True)
class AliasTables:
    """Distributions over the same values, prepared for drawing.

    Value v of a row is kept with probability ``stay[row, v]``, else replaced by
    ``alias[row, v]``, after v was drawn uniformly. Flat, row by row.
    """

    values: int
    stay: Reals
    alias: Codes

    def draw_finely(self, rows: Indices, uniform: Reals) -> Indices:
        """Return one value from each of the distributions ``rows``, by numbers in [0, 1).

        Probabilities are right to 2^-53: for records whose probability is asked afterwards.
        """
        spread = uniform * self.values
        value = spread.astype(np.intp)
        spread -= value
        place = rows * self.values
        place += value
        stays = spread < self.stay[place]
        return np.where(stays, value, self.alias[place])

    def draw(self, begins: Indices, words: HalfWords) -> Indices:
        """Return one value from each of some distributions, by uniform 32-bit words.

        Probabilities are right to a few units of 2^-32; what cannot occur never does.

        Args:
            begins: Where each distribution begins: its row times ``values``. Overwritten.
            words: The words. Each gives a value, by its first bits, and the rest of them tell
                whether the value is replaced.
        """
        spread = np.multiply(words, np.uint64(self.values), dtype=np.uint64)
        value = spread >> _HALF
        begins += value.view(np.int64)
        found = self._packed.take(begins, mode="clip")
        spread <<= _HALF
        replaced = spread <= found
        # A choice would be guessed wrong by the processor every second time: no branch.
        found &= _LOW
        found *= replaced
        found ^= value
        return found.view(np.intp)

    def prepare(self) -> None:
        """Do now what the first draw would have to do."""
        self._packed  # noqa: B018 - remembered when it is first asked for

    @cached_property
    def _packed(self) -> Words:
        """Both in one look-up: which ends of a word are replaced, all up to this; then by what.

        By what: the bits in which the alias differs from the value. What always stays is replaced
        by itself.
        """
        own = np.arange(len(self.stay), dtype=np.uint64) % np.uint64(self.values)
        replaced = np.ceil((1.0 - self.stay) * 2.0**32).astype(np.uint64)
        alias = np.where(replaced == 0, own, self.alias)
        last = np.maximum(replaced, np.uint64(1)) - np.uint64(1)
        packed: Words = (last << _HALF) | (alias ^ own)
        return packed


def spread_evenly(rows: Indices, order: Indices, rng: Rng) -> HalfWords:
    """Return 32-bit words, each uniform by itself, evenly spread among equal ``rows``.

    Records that draw from one distribution then have its values in about the right numbers, where
    independent draws would add noise of their own; and so have, among them, those that are close
    in ``order``. Words are steps of the golden ratio, which leave no gap, from a random start.
    """
    words = np.empty(len(rows), dtype=np.uint32)
    steps = np.arange(len(rows), dtype=np.uint32) * _GOLDEN
    words[sort_by(rows, order)] = steps + rng.half_words(1)
    return words


def sort_by(keys: Indices, order: Indices) -> Indices:
    """Return ``order``, sorted by whole numbers below 2^32; of equal ones, the first stays first.

    By digits, which NumPy counts and does not compare.
    """
    digits = [keys.astype(np.uint16)]
    if len(keys) and int(keys.max()) >= 2**16:
        digits.append((keys >> 16).astype(np.uint16))
    for digit in digits:
        order = order.take(np.argsort(digit.take(order), kind="stable"))
    return order


def shuffled(number: int, rng: Rng) -> Indices:
    """Return 0 … number - 1 in random order: sorted by 32 random bits each."""
    return sort_by(rng.half_words(number).astype(np.intp), np.arange(number))


def alias_tables(probabilities: Reals) -> AliasTables:
    """Prepare each row of ``probabilities`` for drawing.

    The sweep of Vose's method, on all rows at once: in every row, one value that still lacks
    mass is filled up from one that has too much. A value that gave too much away lacks mass
    itself and is filled up next, so every step settles one value of every row.
    """
    rows, values = probabilities.shape
    mass = (probabilities * values).ravel()
    stay = np.ones(rows * values)
    alias = np.tile(np.arange(values, dtype=CODE), rows)
    # Those that lack mass first, so the donors are the tail of each row and `donor` walks down from
    # its end. Flat places, and both in the order of the values: the same on every computer. NumPy
    # sorts short numbers by their digits, which floats have none of.
    first = np.arange(rows) * values
    gives = (mass >= 1.0).reshape(rows, values)
    order = (np.argsort(gives, axis=1, kind="stable") + first[:, None]).ravel()
    lacking, donor = first.copy(), first + values - 1
    poor = order.take(lacking)
    for _ in range(values - 1):
        rich = order.take(donor)
        filled = np.minimum(mass.take(poor), 1.0)
        stay[poor] = filled
        alias[poor] = rich - first
        left = mass.take(rich) - (1.0 - filled)
        mass[rich] = left
        # Rounding may leave a last donor a hair under 1 with nobody to fill it: it stays itself.
        becomes_poor = (left < 1.0) & (donor - 1 > lacking)
        donor -= becomes_poor
        lacking += ~becomes_poor
        poor = np.where(becomes_poor, rich, order.take(np.minimum(lacking, donor)))
    stay[poor] = 1.0
    return AliasTables(values=values, stay=stay, alias=alias)
