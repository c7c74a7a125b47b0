"""Total variation distance of one-way and two-way marginals (Sec. 6.2, Figures 3 and 4)."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Counts, Reals
from deniable.counting.contingency import QueryAxis, cell_indices, table_shape
from deniable.schema.attribute import Attribute

# Larger tables are counted sparsely: only cells that occur.
_MAX_DENSE_CELLS = 2**18
# Marginals between two reports of progress.
_CHOICES_PER_REPORT = 10


@dataclass(frozen=True, kw_only=True)
class Distances:
    """Total variation distances between the marginals of two tables.

    Attributes:
        names: The attributes of each marginal.
        values: The distance of each marginal, in [0, 1].
    """

    names: tuple[tuple[str, ...], ...]
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean distance."""
        return float(np.mean(self.values))

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
        return {
            "mean": self.mean,
            "max": self.max,
            "worst": list(self.worst(1)[0][0]),
            "each": [
                {"attributes": list(names), "distance": value}
                for names, value in zip(self.names, self.values, strict=True)
            ],
        }


def compare_tables(
    attributes: Sequence[Attribute],
    compared: Mapping[str, tuple[Codes, Codes]],
    *,
    width: int,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, Distances]:
    """Measure the total variation distance of every ``width``-way marginal of pairs of tables.

    A table that occurs in several pairs is counted once.

    Args:
        attributes: The attributes of the tables' columns.
        compared: Pairs of tables, by name; the distance is symmetric.
        width: Attributes per marginal: 1 for single attributes, 2 for pairs.
        progress: Called with the number of finished marginals and of all.
    """
    tables = {id(codes): codes for pair in compared.values() for codes in pair}
    choices = list(combinations(range(len(attributes)), width))
    values = np.empty((len(compared), len(choices)))
    for at, choice in enumerate(choices):
        if at % _CHOICES_PER_REPORT == 0:
            progress(at, len(choices))
        counted = _count_cells(attributes, tables.values(), choice)
        counts = dict(zip(tables, counted, strict=True))
        for place, (first, second) in enumerate(compared.values()):
            values[place, at] = total_variation(counts[id(first)], counts[id(second)])
    names = tuple(tuple(attributes[i].name for i in choice) for choice in choices)
    return {
        name: Distances(names=names, values=tuple(found))
        for name, found in zip(compared, values.tolist(), strict=True)
    }


def total_variation(first: Reals | Counts, second: Reals | Counts) -> float:
    """Compute ½ Σ |p - q| over all cells of two tables of counts or shares."""
    p, q = (table / max(table.sum(), 1e-300) for table in (first, second))
    return 0.5 * float(np.abs(p - q).sum())


def _count_cells(
    attributes: Sequence[Attribute], tables: Iterable[Codes], choice: Sequence[int]
) -> list[Counts]:
    """Count the cells of one marginal in each table: all cells, or all that occur in some table."""
    query = tuple(QueryAxis(i) for i in choice)
    indices = [cell_indices(attributes, codes, query) for codes in tables]
    cells = math.prod(table_shape(attributes, query))
    if cells > _MAX_DENSE_CELLS:
        occurring, places = np.unique(np.concatenate(indices), return_inverse=True)
        indices = np.split(places, np.cumsum([len(each) for each in indices])[:-1])
        cells = len(occurring)
    return [np.bincount(each, minlength=cells) for each in indices]
