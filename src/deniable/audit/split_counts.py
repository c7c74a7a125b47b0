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

from deniable.arrays import Indices, Reals
from deniable.audit.holdout_rows import packed_rows
from deniable.audit.membership import KnownRows
from deniable.counting.contingency import cell_indices
from deniable.model.paper.moments import Moments
from deniable.model.paper.parameters import TableCounts, table_query
from deniable.privacy.ledger import Part
from deniable.privacy.noise_laws import Law
from deniable.privacy.plan import Plan
from deniable.release.artefact import Artefact

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
    def of(cls, released: Reals, cells: Indices, weights: Reals, law: Law) -> "PartCount":
        """Take the fullest cell of the released counts, given the cell of each known row."""
        fullest = int(np.bincount(cells, weights=weights).argmax())
        own = np.where(cells == fullest, weights, 0.0)
        variance = law.variance + float((own * (1 - own)).sum())
        return cls(float(released[fullest] - own.sum()), variance, own)


def part_counts(artefact: Artefact, known: KnownRows, noise: Plan) -> dict[Part, PartCount]:
    """Collect the counts of both parts that publish some: a table of the model, and prefixes."""
    evidence, network, counts = artefact.evidence, artefact.network, dict[Part, PartCount]()
    if isinstance(evidence, TableCounts) and not isinstance(evidence.tables[0], Moments):
        cells = cell_indices(artefact.schema.attributes, known.codes, table_query(network.graph, 0))
        weights = known.shares["parameters"] * known.weights
        counts["parameters"] = PartCount.of(
            evidence.tables[0].ravel().astype(np.float64), cells, weights, noise.counts
        )
    kept = artefact.histogram
    if kept is not None and noise.seeds is not None:
        columns = list(network.order[: kept.length])
        both = np.concatenate([known.codes[:, columns], kept.prefixes])
        _, numbers = np.unique(packed_rows(both), return_inverse=True)
        cells, of_prefixes = np.split(numbers, [len(known.codes)])
        released = np.zeros(int(numbers.max()) + 1)
        released[of_prefixes] = kept.counts
        weights = known.shares["seeds"] * known.weights
        counts["seeds"] = PartCount.of(released, cells, weights, noise.seeds)
    return counts


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
