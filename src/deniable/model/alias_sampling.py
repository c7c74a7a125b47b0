"""Sample from many categorical distributions at once by Walker's alias method.

A draw takes one uniform number and one or two look-ups, however many values there are. Rows are
distributions (one per parent configuration), columns are values.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import CODE, Codes, HalfWords, Indices, Reals, Words
from deniable.randomness import Rng

# The golden ratio, as a fraction of 2^32.
_GOLDEN_RATIO = np.uint32(2654435769)
# Records with equal rows have their own sequence if there are at least this many on average.
_MIN_RECORDS_PER_STRATUM = 8
_HALF_BITS = np.uint64(32)
_LOW_HALF = np.uint64(2**32 - 1)


@dataclass(frozen=True)
class AliasTables:
    """Alias tables of several distributions over the same values.

    To draw from a row: draw a value v uniformly, keep it with probability ``acceptance[row, v]``,
    else replace it by ``alias[row, v]``.

    Attributes:
        values: The number of values.
        acceptance: Probabilities, flattened row by row.
        alias: Replacement values, flattened row by row.
    """

    values: int
    acceptance: Reals
    alias: Codes

    def draw_precise(self, rows: Indices, uniform: Reals) -> Indices:
        """Draw one value from each of the distributions ``rows``, given uniforms in [0, 1).

        Probabilities are exact to 2^-53: for records whose probability is computed afterwards.
        """
        scaled = uniform * self.values
        value = scaled.astype(np.intp)
        scaled -= value
        cells = rows * self.values
        cells += value
        keep = scaled < self.acceptance[cells]
        return np.where(keep, value, self.alias[cells])

    def draw(self, starts: Indices, words: HalfWords) -> Indices:
        """Draw one value from each distribution, given uniform 32-bit words.

        Probabilities are exact to a few units of 2^-32; values of probability 0 never occur.

        Args:
            starts: Index of each distribution's first cell: its row times ``values``. Overwritten.
            words: One per draw. The high bits of word times ``values`` select a value, the low
                bits decide whether it is replaced.
        """
        scaled = np.multiply(words, np.uint64(self.values), dtype=np.uint64)
        value = scaled >> _HALF_BITS
        starts += value.view(np.int64)
        packed = self._packed.take(starts, mode="clip")
        scaled <<= _HALF_BITS
        replaced = scaled <= packed
        # Without a branch: the processor would mispredict it half of the time.
        packed &= _LOW_HALF
        packed *= replaced
        packed ^= value
        return packed.view(np.intp)

    def prepare(self) -> None:
        """Build the cached look-up table now rather than at the first draw."""
        self._packed  # noqa: B018 - a cached property

    @cached_property
    def _packed(self) -> Words:
        """Threshold and alias of each cell in one 64-bit word, so that a draw needs one look-up.

        High half: the value is replaced if the low bits of its draw are at most this. Low half: the
        bits in which alias and value differ; none for a value that is always kept.
        """
        own = np.arange(len(self.acceptance), dtype=np.uint64) % np.uint64(self.values)
        replaced = np.ceil((1.0 - self.acceptance) * 2.0**32).astype(np.uint64)
        alias = np.where(replaced == 0, own, self.alias)
        threshold = np.maximum(replaced, np.uint64(1)) - np.uint64(1)
        packed: Words = (threshold << _HALF_BITS) | (alias ^ own)
        return packed


def alias_tables(probabilities: Reals) -> AliasTables:
    """Build the alias tables of each row of ``probabilities`` by Vose's method.

    All rows at once: each step fills one value below the mean mass of 1 (the receiver) from one
    above it (the donor). A donor that drops below 1 is the next receiver. So each step settles one
    value of every row.
    """
    rows, values = probabilities.shape
    mass = (probabilities * values).ravel()
    acceptance = np.ones(rows * values)
    alias = np.tile(np.arange(values, dtype=CODE), rows)
    # Receivers first, then donors, each in the order of the values, so that the result is the same
    # on every computer. Donors are taken from the end of each row. Sorting booleans is fast: NumPy
    # uses a radix sort.
    row_starts = np.arange(rows) * values
    has_surplus = (mass >= 1.0).reshape(rows, values)
    order = (np.argsort(has_surplus, axis=1, kind="stable") + row_starts[:, None]).ravel()
    receiver_position, donor_position = row_starts.copy(), row_starts + values - 1
    receiver = order.take(receiver_position)
    for _ in range(values - 1):
        donor = order.take(donor_position)
        kept = np.minimum(mass.take(receiver), 1.0)
        acceptance[receiver] = kept
        alias[receiver] = donor - row_starts
        remaining = mass.take(donor) - (1.0 - kept)
        mass[donor] = remaining
        # Rounding may leave the last donor slightly below 1 without another donor: it is kept.
        becomes_receiver = (remaining < 1.0) & (donor_position - 1 > receiver_position)
        donor_position -= becomes_receiver
        receiver_position += ~becomes_receiver
        receiver = np.where(
            becomes_receiver, donor, order.take(np.minimum(receiver_position, donor_position))
        )
    acceptance[receiver] = 1.0
    return AliasTables(values=values, acceptance=acceptance, alias=alias)


def stratified_words(rows: Indices, order: Indices, rng: Rng) -> HalfWords:
    """Generate uniform 32-bit words that form a low-discrepancy sequence among equal ``rows``.

    Each word alone is uniform. Records that draw from the same distribution get frequencies closer
    to its probabilities than independent draws would give; so do those among them that are close
    in ``order``. The sequence is multiples of the golden ratio from a random start.

    If rows have few records each, all records share one sequence, in ``order``. Sorted by row, they
    would be in nearly the same order for each attribute, and would get the same words except for a
    shift: attributes would seem to depend on each other.
    """
    if np.count_nonzero(np.bincount(rows)) * _MIN_RECORDS_PER_STRATUM > len(rows):
        rows = np.zeros_like(rows)
    words = np.empty(len(rows), dtype=np.uint32)
    sequence = np.arange(len(rows), dtype=np.uint32) * _GOLDEN_RATIO
    words[stable_sort_by(rows, order)] = sequence + rng.half_words(1)
    return words


def stable_sort_by(keys: Indices, order: Indices) -> Indices:
    """Sort ``order`` by integer keys below 2^32, stably.

    By 16-bit digits, for which NumPy uses a radix sort.
    """
    digits = [keys.astype(np.uint16)]
    if len(keys) and int(keys.max()) >= 2**16:
        digits.append((keys >> 16).astype(np.uint16))
    for digit in digits:
        order = order.take(np.argsort(digit.take(order), kind="stable"))
    return order


def random_permutation(size: int, rng: Rng) -> Indices:
    """Draw a random order of 0 … size - 1, by sorting 32 random bits each."""
    return stable_sort_by(rng.half_words(size).astype(np.intp), np.arange(size))
