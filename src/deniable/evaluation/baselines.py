"""What released records are compared with: other real rows, and columns drawn independently.

The real rows are the ceiling: no release can be expected to be nearer to them than they are to
each other. Independent columns (the paper's *marginals*) are the floor: right column by column,
and nothing else.
"""

from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Codes, Indices
from deniable.randomness import Keyed, Rng

# Of the real rows, what is set aside for testing classifiers where no held-out table was given.
_TEST_SHARE = 0.3
# Which stream of the key draws what.
_HALVES, _TEST, _MARGINALS = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of an evaluation, as codes. All but the released records are confidential.

    Attributes:
        released: The records under evaluation.
        reference: Real rows that distances and the game are measured against.
        ceiling: Two tables of real rows with no row in common, to be compared with each other.
        marginals: As many records as were released, every column drawn by itself.
        train: Real rows that a classifier may learn from.
        test: Real rows that it is tested on; none of them is in ``train``.
        held_out: Whether ``reference`` and ``test`` are rows the release was not learnt from.
    """

    released: Codes = field(repr=False)
    reference: Codes = field(repr=False)
    ceiling: tuple[Codes, Codes] = field(repr=False)
    marginals: Codes = field(repr=False)
    train: Codes = field(repr=False)
    test: Codes = field(repr=False)
    held_out: bool

    @classmethod
    def of(cls, real: Codes, released: Codes, holdout: Codes | None, *, key: int) -> "Tables":
        """Return the tables, with what must be set aside set aside."""
        randomness = Keyed(key)
        marginals = independent(real, len(released), randomness.at("records", _MARGINALS))
        if holdout is not None:
            return cls(
                released=released,
                reference=holdout,
                ceiling=(real, holdout),
                marginals=marginals,
                train=real,
                test=holdout,
                held_out=True,
            )
        train, test = cut(real, 1 - _TEST_SHARE, randomness.at("records", _TEST))
        return cls(
            released=released,
            reference=real,
            ceiling=cut(real, 0.5, randomness.at("records", _HALVES)),
            marginals=marginals,
            train=train,
            test=test,
            held_out=False,
        )


def shuffled(rows: int, rng: Rng) -> Indices:
    """Return the numbers of so many rows, in a random order."""
    return np.argsort(rng.words(rows), kind="stable")


def cut(codes: Codes, share: float, rng: Rng) -> tuple[Codes, Codes]:
    """Return a random share of the rows, and all others; each has one row at least if it can."""
    order = shuffled(len(codes), rng)
    first = min(max(1, round(share * len(codes))), max(1, len(codes) - 1))
    return take(codes, order[:first]), take(codes, order[first:])


def sample(codes: Codes, most: int, rng: Rng) -> Codes:
    """Return at most so many rows, each set of them equally likely; all of them as they are."""
    if len(codes) <= most:
        return codes
    return take(codes, np.sort(shuffled(len(codes), rng)[:most]))


def two_samples(codes: Codes, most: int, rng: Rng) -> tuple[Codes, Codes]:
    """Return two tables of at most so many rows with none in common; two halves if there are few.

    With rows enough, the first is what ``sample`` returns for the same stream.
    """
    size = min(most, len(codes) // 2)
    order = shuffled(len(codes), rng)
    first, second = (take(codes, np.sort(order[at : at + size])) for at in (0, size))
    return first, second


def independent(codes: Codes, records: int, rng: Rng) -> Codes:
    """Return records whose every column is drawn from that column of ``codes``, by itself."""
    drawn = np.empty((records, codes.shape[1]), dtype=codes.dtype, order="F")
    for column in range(codes.shape[1]):
        drawn[:, column] = codes[rng.integers(len(codes), records), column]
    return drawn


def take(codes: Codes, rows: Indices) -> Codes:
    """Return some rows, columns contiguous."""
    return np.asfortranarray(codes[rows])
