"""Total variation distance of one-way, two-way and three-way marginals (Sec. 6.2, Figures 3, 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Counts, Reals
from deniable.counting.contingency import QueryAxis, cell_indices, table_shape
from deniable.evaluation.intervals import JACKKNIFE_GROUPS, Interval, jackknife_interval
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute

# Larger tables are counted sparsely: only cells that occur.
_MAX_DENSE_CELLS = 2**18


@dataclass(frozen=True, kw_only=True)
class Distances:
    """Total variation distances between the marginals of two tables.

    Attributes:
        names: The attributes of each marginal.
        values: The distance of each marginal, in [0, 1].
        mean: Mean distance.
        interval: Confidence interval of the mean.
    """

    names: tuple[tuple[str, ...], ...]
    values: tuple[float, ...]
    mean: float
    interval: Interval

    @property
    def max(self) -> float:
        """The largest distance."""
        return max(self.values)

    @property
    def box(self) -> tuple[float, float, float, float, float]:
        """Minimum, lower quartile, median, upper quartile, maximum: one box of Figure 3 or 4."""
        low, q1, median, q3, high = np.quantile(self.values, [0, 0.25, 0.5, 0.75, 1]).tolist()
        return low, q1, median, q3, high

    def worst(self, limit: int) -> list[tuple[tuple[str, ...], float]]:
        """Return the ``limit`` marginals with the largest distances, largest first."""
        order = np.argsort(self.values, kind="stable")[::-1][:limit]
        return [(self.names[i], self.values[i]) for i in order]

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
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
    attributes: Sequence[Attribute],
    first: Codes,
    second: Codes,
    *,
    width: int,
    max_marginals: int,
    key: int,
) -> Distances:
    """Measure the total variation distance of every ``width``-way marginal of two tables.

    Args:
        attributes: The attributes of both tables' columns.
        first: One table.
        second: The other table; the distance is symmetric.
        width: Attributes per marginal: 1 for single attributes, 2 for pairs.
        max_marginals: Maximum number of marginals; if there are more, a random subset is measured.
        key: Key of that subset and of the jackknife groups.
    """
    rng = Keyed(key).at("records", 3)
    groups = tuple(rng.integers(JACKKNIFE_GROUPS, len(codes)) for codes in (first, second))
    choices = list(combinations(range(len(attributes)), width))
    if len(choices) > max_marginals:
        drawn = np.sort(np.argsort(rng.words(len(choices)), kind="stable")[:max_marginals])
        choices = [choices[i] for i in drawn]
    found = np.array(
        [_distance_and_jackknife(attributes, (first, second), groups, choice) for choice in choices]
    )
    mean, *left_out = found.mean(axis=0).tolist()
    return Distances(
        names=tuple(tuple(attributes[i].name for i in choice) for choice in choices),
        values=tuple(found[:, 0].tolist()),
        mean=mean,
        interval=jackknife_interval(mean, left_out),
    )


def total_variation(first: Reals | Counts, second: Reals | Counts) -> float:
    """Compute ½ Σ |p - q| over all cells of two tables of counts or shares."""
    p, q = (table / max(table.sum(), 1e-300) for table in (first, second))
    return 0.5 * float(np.abs(p - q).sum())


def _distance_and_jackknife(
    attributes: Sequence[Attribute],
    tables: tuple[Codes, Codes],
    groups: tuple[Counts, ...],
    choice: Sequence[int],
) -> list[float]:
    """Compute the distance of one marginal, then the distance without each group of rows."""
    query = tuple(QueryAxis(i) for i in choice)
    numbers = [cell_indices(attributes, codes, query) for codes in tables]
    cells = int(np.prod(table_shape(attributes, query), dtype=object))
    if cells > _MAX_DENSE_CELLS:
        occurring, places = np.unique(np.concatenate(numbers), return_inverse=True)
        numbers = np.split(places.astype(np.int64), [len(numbers[0])])
        cells = len(occurring)
    groups_by_cells = JACKKNIFE_GROUPS * cells
    one, two = (
        np.bincount(group * cells + number, minlength=groups_by_cells).reshape(-1, cells)
        for group, number in zip(groups, numbers, strict=True)
    )
    all_one, all_two = one.sum(axis=0), two.sum(axis=0)
    left_out = [
        total_variation(all_one - group_one, all_two - group_two)
        for group_one, group_two in zip(one, two, strict=True)
    ]
    return [total_variation(all_one, all_two), *left_out]
