"""What could not be kept: rare combinations, and groups that the records describe less well.

A deniability test lets through what many rows share, and noise drowns what few rows share. Both
weigh on small groups first, and a mean over all records does not show it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Counts, Reals
from deniable.data.attributes import Attribute
from deniable.evaluation.baselines import Tables
from deniable.evaluation.captions import caption
from deniable.evaluation.distances import total_variation
from deniable.model.cells import Axis, number_cells

# How often a combination of two values occurs in the reference, from … to below.
_BANDS = ((0, 1), (1, 10), (10, 50), (50, 200), (200, 1_000), (1_000, None))
# A group is worth a line if so many reference rows are in it, and its attribute has few values.
_FEWEST_ROWS = 50
_MOST_VALUES = 40
# Standard errors: among the groups of a wide table, none comes so far by chance.
_BEYOND_CHANCE = 4.5


@dataclass(frozen=True, kw_only=True)
class Band:
    """Combinations of two values that occur about equally often in the reference.

    Attributes:
        least: They occur at least so often;
        below: and less often than this, or any number of times.
        reference: The share of reference rows that have one of them, a mean over pairs.
        reals: The same of other real rows: what chance alone makes of it.
        released: The same of released records.
    """

    least: int
    below: int | None
    reference: float
    reals: float
    released: float


@dataclass(frozen=True, kw_only=True)
class Subgroup:
    """The rows with one value of one attribute.

    Attributes:
        attribute: Its name.
        value: As the schema calls it.
        rows: How many reference rows are in it.
        share: Their share.
        released: The share of released records in it.
        distance: The mean distance of the other attributes inside the group, released against
            reference; 1 where no record was released.
        chance: The same of other real rows.
        is_lost: Whether more than half of its share is gone, beyond what chance could do.
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
        """How much further than chance the group is from the real one."""
        return self.distance - self.chance


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Bands of rarity, and subgroups from the least well kept to the best."""

    bands: tuple[Band, ...]
    subgroups: tuple[Subgroup, ...]

    @property
    def lost(self) -> tuple[Subgroup, ...]:
        """The groups that more than half of was lost, the largest first."""
        found = [group for group in self.subgroups if group.is_lost]
        return tuple(sorted(found, key=lambda group: -group.rows))

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        return {
            "bands": [asdict(band) for band in self.bands],
            "subgroups": [asdict(group) for group in self.subgroups],
        }


def measure_groups(attributes: Sequence[Attribute], tables: Tables) -> Groups:
    """Return how much of what is rare was kept."""
    found = [
        group
        for column, attribute in enumerate(attributes)
        if attribute.size <= _MOST_VALUES
        for group in _subgroups(attributes, tables, column)
    ]
    found.sort(key=lambda group: group.loss, reverse=True)
    return Groups(bands=_bands(attributes, tables), subgroups=tuple(found))


def _bands(attributes: Sequence[Attribute], tables: Tables) -> tuple[Band, ...]:
    first, second = tables.ceiling
    shares = np.zeros((3, len(_BANDS)))
    pairs = list(combinations(range(len(attributes)), 2))
    for pair in pairs:
        query = tuple(Axis(i) for i in pair)
        released, reference, one, two = (
            number_cells(attributes, codes, query)
            for codes in (tables.released, tables.reference, first, second)
        )
        shares[0] += _shares(reference, reference)
        shares[1] += _shares(two, one)
        shares[2] += _shares(reference, released)
    shares /= max(1, len(pairs))
    return tuple(
        Band(
            least=least,
            below=below,
            reference=float(shares[0, at]),
            reals=float(shares[1, at]),
            released=float(shares[2, at]),
        )
        for at, (least, below) in enumerate(_BANDS)
    )


def _shares(counted: Counts, asked: Counts) -> Reals:
    """Return, by band of the cell's count among ``counted``, the share of ``asked``."""
    cells, counts = np.unique(counted, return_counts=True)
    place = np.minimum(np.searchsorted(cells, asked), len(cells) - 1)
    often = np.where(cells[place] == asked, counts[place], 0)
    band = np.searchsorted([least for least, _ in _BANDS], often, side="right") - 1
    shares: Reals = np.bincount(band, minlength=len(_BANDS)) / max(1, len(asked))
    return shares


def _subgroups(attributes: Sequence[Attribute], tables: Tables, column: int) -> list[Subgroup]:
    found = []
    for code in range(attributes[column].size):
        inside = [
            codes[codes[:, column] == code]
            for codes in (tables.reference, tables.released, *tables.ceiling)
        ]
        reference, released, first, second = inside
        if len(reference) < _FEWEST_ROWS:
            continue
        share = len(reference) / len(tables.reference)
        kept = len(released) / max(1, len(tables.released))
        found.append(
            Subgroup(
                attribute=attributes[column].name,
                value=caption(attributes[column], code),
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
    """Return whether less than half of a share is left, and chance would hardly do it."""
    error = np.sqrt(sum(share * (1 - share) / max(1, size) for size in sizes))
    return kept < share / 2 and share - kept > _BEYOND_CHANCE * float(error)


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
