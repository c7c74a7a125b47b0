"""Utility for rare combinations and small subgroups.

A deniability test suppresses rare values, and noise hides small counts. Both affect small groups
first, which a mean over all records does not show.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Counts, Reals
from deniable.counting.contingency import QueryAxis, cell_indices
from deniable.evaluation.distances import total_variation
from deniable.evaluation.marginals import value_label
from deniable.evaluation.reference_tables import EvaluationTables
from deniable.schema.attribute import Attribute

# Ranges [least, below) of how often a pair of values occurs in the reference.
_RARITY_BANDS = ((0, 1), (1, 10), (10, 50), (50, 200), (200, 1_000), (1_000, None))
# Groups are reported if they have enough reference rows and their attribute has few values.
MIN_GROUP_ROWS = 50
_MAX_GROUP_VALUES = 40
# Larger tables are counted sparsely: only cells that occur.
_MAX_DENSE_CELLS = 2**20
# Standard errors; large enough that no group of a wide table is called lost by chance.
_LOST_Z_SCORE = 4.5


@dataclass(frozen=True, kw_only=True)
class RarityBand:
    """Pairs of values grouped by how often they occur in the reference.

    Attributes:
        least: Minimum number of occurrences.
        below: Exclusive maximum; None: no maximum.
        reference: Share of reference rows that have such a pair, averaged over pairs of attributes.
        reals: The same share of other real rows; differs from ``reference`` by chance only.
        released: The same share of released records.
    """

    least: int
    below: int | None
    reference: float
    reals: float
    released: float


@dataclass(frozen=True, kw_only=True)
class Subgroup:
    """Rows with one value of one attribute.

    Attributes:
        attribute: Name of the attribute.
        value: The value, as written in the schema.
        rows: Number of reference rows in the group.
        share: Share of reference rows in the group.
        released: Share of released records in the group.
        distance: Mean total variation distance of the other attributes within the group, between
            released records and the reference; 1 if no record was released.
        chance: The same distance between two tables of real rows.
        is_lost: Whether the released share is below half of the real share, and the difference is
            too large to be due to chance.
    """

    attribute: str
    value: str
    rows: int
    share: float
    released: float
    distance: float
    chance: float
    is_lost: bool

    @property
    def loss(self) -> float:
        """Distance in excess of the distance between real rows."""
        return self.distance - self.chance


@dataclass(frozen=True, kw_only=True)
class SubgroupFindings:
    """Rarity bands, and subgroups sorted by loss, largest first."""

    bands: tuple[RarityBand, ...]
    subgroups: tuple[Subgroup, ...]

    @property
    def lost(self) -> tuple[Subgroup, ...]:
        """The groups marked ``is_lost``, the largest first."""
        found = [group for group in self.subgroups if group.is_lost]
        return tuple(sorted(found, key=lambda group: -group.rows))

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "bands": [asdict(band) for band in self.bands],
            "subgroups": [asdict(group) for group in self.subgroups],
        }


def measure_subgroups(
    attributes: Sequence[Attribute], tables: EvaluationTables
) -> SubgroupFindings:
    """Measure how well rare pairs of values and small groups are represented."""
    found = [
        group
        for column, attribute in enumerate(attributes)
        if attribute.size <= _MAX_GROUP_VALUES
        for group in _measure_subgroups(attributes, tables, column)
    ]
    found.sort(key=lambda group: group.loss, reverse=True)
    return SubgroupFindings(bands=_measure_bands(attributes, tables), subgroups=tuple(found))


def _measure_bands(
    attributes: Sequence[Attribute], tables: EvaluationTables
) -> tuple[RarityBand, ...]:
    first, second = tables.ceiling
    shares = np.zeros((3, len(_RARITY_BANDS)))
    pairs = list(combinations(range(len(attributes)), 2))
    for pair in pairs:
        query = tuple(QueryAxis(i) for i in pair)
        released, reference, one, two = (
            cell_indices(attributes, codes, query)
            for codes in (tables.released, tables.reference, first, second)
        )
        shares[0] += _band_shares(reference, reference)
        shares[1] += _band_shares(two, one)
        shares[2] += _band_shares(reference, released)
    shares /= max(1, len(pairs))
    return tuple(
        RarityBand(
            least=least,
            below=below,
            reference=float(shares[0, at]),
            reals=float(shares[1, at]),
            released=float(shares[2, at]),
        )
        for at, (least, below) in enumerate(_RARITY_BANDS)
    )


def _band_shares(reference: Counts, rows: Counts) -> Reals:
    """Compute the share of ``rows`` in each band, by the count of their cell in ``reference``.

    Both arguments hold the cell index of each row.
    """
    occurrences = _occurrences(reference, rows)
    band = np.searchsorted([least for least, _ in _RARITY_BANDS], occurrences, side="right") - 1
    shares: Reals = np.bincount(band, minlength=len(_RARITY_BANDS)) / max(1, len(rows))
    return shares


def _occurrences(reference: Counts, rows: Counts) -> Counts:
    """Count how often the cell of each row occurs in ``reference``."""
    if (cells := int(max(reference.max(), rows.max())) + 1) <= _MAX_DENSE_CELLS:
        return np.bincount(reference, minlength=cells)[rows]
    found, counts = np.unique(reference, return_counts=True)
    place = np.minimum(np.searchsorted(found, rows), len(found) - 1)
    return np.where(found[place] == rows, counts[place], 0)


def _measure_subgroups(
    attributes: Sequence[Attribute], tables: EvaluationTables, column: int
) -> list[Subgroup]:
    found = []
    for code in range(attributes[column].size):
        inside = [
            codes[codes[:, column] == code]
            for codes in (tables.reference, tables.released, *tables.ceiling)
        ]
        reference, released, first, second = inside
        if len(reference) < MIN_GROUP_ROWS:
            continue
        share = len(reference) / len(tables.reference)
        kept = len(released) / max(1, len(tables.released))
        found.append(
            Subgroup(
                attribute=attributes[column].name,
                value=value_label(attributes[column], code),
                rows=len(reference),
                share=share,
                released=kept,
                distance=_mean_distance(attributes, reference, released, column),
                chance=_mean_distance(attributes, first, second, column),
                is_lost=_is_lost(share, kept, (len(tables.reference), len(tables.released))),
            )
        )
    return found


def _is_lost(share: float, kept: float, sizes: tuple[int, int]) -> bool:
    """Check whether less than half of a share is left and chance cannot explain it."""
    error = np.sqrt(sum(share * (1 - share) / max(1, size) for size in sizes))
    return kept < share / 2 and share - kept > _LOST_Z_SCORE * float(error)


def _mean_distance(
    attributes: Sequence[Attribute], first: Codes, second: Codes, column: int
) -> float:
    if not (len(first) and len(second)):
        return 1.0
    others = [j for j in range(len(attributes)) if j != column]
    distances = [
        total_variation(
            *(np.bincount(c[:, j], minlength=attributes[j].size) for c in (first, second))
        )
        for j in others
    ]
    return float(np.mean(distances)) if distances else 0.0
