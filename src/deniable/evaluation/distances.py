"""Total variation distance of one-way, two-way and three-way marginals (Sec. 6.2, Figures 3, 4)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Counts, Reals
from deniable.counting.contingency import QueryAxis, cell_indices
from deniable.evaluation.intervals import JACKKNIFE_GROUPS, Interval, jackknife_interval
from deniable.randomness import Keyed
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
    compared = {"": (first, second)}
    found = compare_tables(attributes, compared, width=width, max_marginals=max_marginals, key=key)
    return found[""]


def compare_tables(
    attributes: Sequence[Attribute],
    compared: Mapping[str, tuple[Codes, Codes]],
    *,
    width: int,
    max_marginals: int,
    key: int,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, Distances]:
    """Measure the distances of several pairs of tables, as ``measure_distances`` does.

    All are compared by the same marginals, and a table that occurs in several pairs is counted
    once.
    """
    rng = Keyed(key).at("records", 3)
    tables = {id(codes): codes for pair in compared.values() for codes in pair}
    groups = {at: rng.integers(JACKKNIFE_GROUPS, len(codes)) for at, codes in tables.items()}
    choices = list(combinations(range(len(attributes)), width))
    if len(choices) > max_marginals:
        drawn = np.sort(np.argsort(rng.words(len(choices)), kind="stable")[:max_marginals])
        choices = [choices[i] for i in drawn]
    values = np.empty((len(compared), len(choices), JACKKNIFE_GROUPS + 1))
    for at, choice in enumerate(choices):
        if at % _CHOICES_PER_REPORT == 0:
            progress(at, len(choices))
        counts = _count_by_group(attributes, tables, groups, choice)
        for place, (first, second) in enumerate(compared.values()):
            values[place, at] = _distance_and_jackknife(counts[id(first)], counts[id(second)])
    names = tuple(tuple(attributes[i].name for i in choice) for choice in choices)
    return {name: _summarize(names, found) for name, found in zip(compared, values, strict=True)}


def _summarize(names: tuple[tuple[str, ...], ...], values: Reals) -> Distances:
    """Average the distances, and those without each group of rows, over all marginals."""
    mean, *left_out = values.mean(axis=0).tolist()
    return Distances(
        names=names,
        values=tuple(values[:, 0].tolist()),
        mean=mean,
        interval=jackknife_interval(mean, left_out),
    )


def total_variation(first: Reals | Counts, second: Reals | Counts) -> float:
    """Compute ½ Σ |p - q| over all cells of two tables of counts or shares."""
    p, q = (table / max(table.sum(), 1e-300) for table in (first, second))
    return 0.5 * float(np.abs(p - q).sum())


def _count_by_group(
    attributes: Sequence[Attribute],
    tables: Mapping[int, Codes],
    groups: Mapping[int, Counts],
    choice: Sequence[int],
) -> dict[int, Counts]:
    """Count the cells of one marginal in each jackknife group of each table: groups by cells."""
    sizes = [attributes[i].size for i in choice]
    cells = math.prod(sizes)
    if cells > _MAX_DENSE_CELLS:
        return _count_occurring(attributes, tables, groups, choice)
    # Narrow integers: these passes over the rows are most of the time.
    number = np.min_scalar_type(JACKKNIFE_GROUPS * cells)
    found = {}
    for at, codes in tables.items():
        index = groups[at].astype(number)
        for i, size in zip(choice, sizes, strict=True):
            index *= number.type(size)
            index += codes[:, i].astype(number, copy=False)
        found[at] = np.bincount(index, minlength=JACKKNIFE_GROUPS * cells).reshape(-1, cells)
    return found


def _count_occurring(
    attributes: Sequence[Attribute],
    tables: Mapping[int, Codes],
    groups: Mapping[int, Counts],
    choice: Sequence[int],
) -> dict[int, Counts]:
    """Count as ``_count_by_group`` does, but only the cells that occur in some table."""
    query = tuple(QueryAxis(i) for i in choice)
    numbers = [cell_indices(attributes, codes, query) for codes in tables.values()]
    occurring, places = np.unique(np.concatenate(numbers), return_inverse=True)
    parts = np.split(places, np.cumsum([len(each) for each in numbers])[:-1])
    shape = (JACKKNIFE_GROUPS, len(occurring))
    return {
        at: np.bincount(groups[at] * shape[1] + part, minlength=math.prod(shape)).reshape(shape)
        for at, part in zip(tables, parts, strict=True)
    }


def _distance_and_jackknife(one: Counts, two: Counts) -> Reals:
    """Compute the distance of one marginal, then the distance without each group of rows."""
    shares = []
    for counts in (one, two):
        total = counts.sum(axis=0)
        remaining = np.concatenate([total[np.newaxis], total - counts])
        shares.append(remaining / np.maximum(remaining.sum(axis=1, keepdims=True), 1e-300))
    distances: Reals = 0.5 * np.abs(shares[0] - shares[1]).sum(axis=1)
    return distances
