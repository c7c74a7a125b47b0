"""Total variation distance of attributes, of pairs and of triples (Sec. 6.2, Figures 3 and 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Counts, Reals
from deniable.data.attributes import Attribute
from deniable.evaluation.confidence import Interval, jackknife
from deniable.model.cells import Axis, number_cells, shape_of
from deniable.randomness import Keyed

# Rows are dealt to so many groups; leaving each out once shows how far chance moves a distance.
_GROUPS = 10
# Above so many cells, only those that occur are counted.
_DENSE = 2**18


@dataclass(frozen=True, kw_only=True)
class Distances:
    """How far two tables' cells are apart, for every choice of some attributes.

    Attributes:
        names: The attributes of each table of cells.
        values: The distance of each, in [0, 1].
        mean: Over all of them.
        interval: Of the mean.
    """

    names: tuple[tuple[str, ...], ...]
    values: tuple[float, ...]
    mean: float
    interval: Interval

    @property
    def max(self) -> float:
        """The greatest distance."""
        return max(self.values)

    @property
    def box(self) -> tuple[float, float, float, float, float]:
        """Least, lower quartile, median, upper quartile, greatest: one box of Figure 3 or 4."""
        low, q1, median, q3, high = np.quantile(self.values, [0, 0.25, 0.5, 0.75, 1]).tolist()
        return low, q1, median, q3, high

    def worst(self, most: int) -> list[tuple[tuple[str, ...], float]]:
        """Return the attributes that are furthest apart, with their distances."""
        order = np.argsort(self.values, kind="stable")[::-1][:most]
        return [(self.names[i], self.values[i]) for i in order]

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        low, q1, median, q3, high = self.box
        return {
            "mean": self.mean,
            "interval": list(self.interval),
            "max": self.max,
            "worst": list(self.worst(1)[0][0]),
            "box": {"min": low, "q1": q1, "median": median, "q3": q3, "max": high},
            "each": [
                {"attributes": list(names), "distance": value}
                for names, value in zip(self.names, self.values, strict=True)
            ],
        }


def measure_distances(
    attributes: Sequence[Attribute], first: Codes, second: Codes, *, width: int, most: int, key: int
) -> Distances:
    """Return the distances of two tables over every choice of ``width`` attributes.

    Args:
        attributes: What the columns of codes hold.
        first: One table.
        second: The other; the distance is symmetric.
        width: 1 for attributes, 2 for pairs.
        most: If there are more choices, so many of them, drawn by the key.
        key: Also deals rows to the groups that the interval is made of.
    """
    rng = Keyed(key).at("records", 3)
    groups = tuple(rng.integers(_GROUPS, len(codes)) for codes in (first, second))
    choices = list(combinations(range(len(attributes)), width))
    if len(choices) > most:
        drawn = np.sort(np.argsort(rng.words(len(choices)), kind="stable")[:most])
        choices = [choices[i] for i in drawn]
    found = np.array(
        [_distance_and_left_out(attributes, (first, second), groups, choice) for choice in choices]
    )
    mean, *left_out = found.mean(axis=0).tolist()
    return Distances(
        names=tuple(tuple(attributes[i].name for i in choice) for choice in choices),
        values=tuple(found[:, 0].tolist()),
        mean=mean,
        interval=jackknife(mean, left_out),
    )


def total_variation(first: Reals | Counts, second: Reals | Counts) -> float:
    """Return half the sum of |p - q| over all cells, of two tables of counts or of shares."""
    p, q = (table / max(table.sum(), 1e-300) for table in (first, second))
    return 0.5 * float(np.abs(p - q).sum())


def _distance_and_left_out(
    attributes: Sequence[Attribute],
    tables: tuple[Codes, Codes],
    groups: tuple[Counts, ...],
    choice: Sequence[int],
) -> list[float]:
    """Return the distance of two tables, and that without each group of rows."""
    query = tuple(Axis(i) for i in choice)
    numbers = [number_cells(attributes, codes, query) for codes in tables]
    cells = int(np.prod(shape_of(attributes, query), dtype=object))
    if cells > _DENSE:
        occurring, places = np.unique(np.concatenate(numbers), return_inverse=True)
        numbers = np.split(places.astype(np.int64), [len(numbers[0])])
        cells = len(occurring)
    one, two = (
        np.bincount(group * cells + number, minlength=_GROUPS * cells).reshape(_GROUPS, cells)
        for group, number in zip(groups, numbers, strict=True)
    )
    all_one, all_two = one.sum(axis=0), two.sum(axis=0)
    left_out = [total_variation(all_one - one[g], all_two - two[g]) for g in range(_GROUPS)]
    return [total_variation(all_one, all_two), *left_out]
