"""Counts of a split table: does every row serve one part, by a draw of its own?

The rows are known here, so a released count of many equal rows shows how many of them served the
part. That is a binomial number, and a row that serves one part serves no other. As with noise, this
finds a fault with far fewer runs than an attack, and assumes more than an attack does.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from deniable.arrays import Reals
from deniable.audit.likelihood_ratio import NoisyTable
from deniable.audit.membership import KnownRows
from deniable.privacy.ledger import Part

# Names of the numbers begin with this, among those of the stages.
SPLIT_STAGE = "split: "


@dataclass(frozen=True)
class PartCount:
    """The released count of the fullest cell of a part, less its expectation.

    Attributes:
        excess: Released count less its expectation.
        variance: Its variance: of the noise, and of the draws of the rows in the cell.
        weights: The probability that each known row is counted there; 0 in other cells.
    """

    excess: float
    variance: float
    weights: Reals = field(repr=False)

    @classmethod
    def of(cls, table: NoisyTable, known: KnownRows, noise: Reals) -> "PartCount":
        """Take the fullest cell of a table, whose noise was measured by the expected counts."""
        cells, weights = table.cells(known.codes), known.weights
        fullest = int(np.bincount(cells, weights=weights).argmax())
        own = np.where(cells == fullest, weights, 0.0)
        variance = table.variance + float((own * (1 - own)).sum())
        return cls(float(noise[fullest]), variance, own)


def split_numbers(counts: Mapping[Part, PartCount]) -> Iterator[tuple[str, float]]:
    """List numbers of mean 0 and variance 1: the count of each part, and the difference of two.

    Rows of one part are missing in another, so counts of two parts have the covariance
    -Σ p_i p_j over the rows that both could have. If rows could serve both, their difference
    would vary less.
    """
    for part, own in counts.items():
        yield f"{SPLIT_STAGE}rows that serve {part}", own.excess / math.sqrt(own.variance)
    for (first, one), (second, other) in combinations(counts.items(), 2):
        both = float((one.weights * other.weights).sum())
        variance = one.variance + other.variance + 2 * both
        yield (
            f"{SPLIT_STAGE}rows that serve {first} and not {second}",
            (one.excess - other.excess) / math.sqrt(variance),
        )
