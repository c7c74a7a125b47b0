"""Graph of a Bayesian network: merit and cost of parents, greedy search, drawing order σ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.errors import ConfigError
from deniable.model.paper.correlation import Correlations
from deniable.schema.attribute import Attribute


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph over attributes: ``parents[i]`` is P_G(i), ascending."""

    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        indices = set(range(len(self.parents)))
        for i, chosen in enumerate(self.parents):
            if list(chosen) != sorted(set(chosen)) or not set(chosen) <= indices - {i}:
                raise ConfigError(
                    f"attribute {i} has parents {chosen}: name other attributes, each once, sorted"
                )
        if _topological_order(self.parents, key=range(len(self.parents))) is None:
            raise ConfigError("the graph has a cycle; parents must not depend on their children")

    @classmethod
    def without_edges(cls, attributes: int) -> Self:
        """Create the graph of the paper's baseline: independent marginals."""
        return cls(((),) * attributes)

    @classmethod
    def from_names(cls, names: Sequence[str], parents: Mapping[str, Iterable[str]]) -> Self:
        """Create a graph from parents by name; attributes not listed have no parents."""
        index = {name: i for i, name in enumerate(names)}
        given = {name: list(chosen) for name, chosen in parents.items()}
        for name in [*given, *(parent for chosen in given.values() for parent in chosen)]:
            if name not in index:
                raise ConfigError(f'the graph names "{name}", which the schema does not describe')
        for name, chosen in given.items():
            if name in chosen or len(set(chosen)) < len(chosen):
                raise ConfigError(f'the graph gives "{name}" itself as a parent, or one twice')
        return cls(tuple(tuple(sorted(index[p] for p in given.get(n, []))) for n in names))


def merit(i: int, parents: Sequence[int], correlations: Correlations) -> float:
    """Compute score(P_G(i)): high for parents that predict i and are not redundant (Eq. 4).

        score(P) = Σ_{j∈P} corr(x_i, x_j) / sqrt(|P| + Σ_{j≠k∈P} corr(x_j, x_k))

    ``eq:gm:merit``. As in the work it cites, the second sum is over ordered pairs of different
    parents. A parent is bucketed in corr(x_i, x_j), but not in corr(x_j, x_k).
    """
    if not parents:
        return 0.0
    chosen = list(parents)
    relevance = correlations.with_parent[i, chosen].sum()
    redundancy = correlations.between[np.ix_(chosen, chosen)].sum()
    return float(relevance / np.sqrt(len(chosen) + redundancy))


def cost(parents: Iterable[int], attributes: Sequence[Attribute]) -> int:
    """Count the configurations of the bucketed parents (Eq. 6, ``eq:gm:constraint``)."""
    product = 1
    for j in parents:
        product *= attributes[j].buckets
    return product


def learn_graph(
    correlations: Correlations, attributes: Sequence[Attribute], *, max_cost: int
) -> Graph:
    """Learn the graph by greedy search (Sec. 3.3, ``sec:gm:structure``).

    Maximising the total merit over all graphs is infeasible. Each step adds the edge that raises
    the total merit most, among those that close no cycle and keep the cost of the parent set within
    ``max_cost``. The search ends when no edge raises it. Ties go to the attribute, then the parent,
    that comes first in the schema.
    """
    m = len(attributes)
    parents: list[list[int]] = [[] for _ in range(m)]
    reaches = np.eye(m, dtype=bool)  # reaches[j, i]: a path leads from j to i
    gain = np.array([[_gain(i, [], j, correlations) for j in range(m)] for i in range(m)])
    while True:
        gain[reaches] = -np.inf  # an edge j → i closes a cycle where i already reaches j
        for i in range(m):
            over_budget = [cost([*parents[i], j], attributes) > max_cost for j in range(m)]
            gain[i, over_budget] = -np.inf
        i, j = divmod(int(gain.argmax()), m)
        if not gain[i, j] > 0:
            return Graph(tuple(tuple(sorted(chosen)) for chosen in parents))
        parents[i].append(j)
        reaches |= np.outer(reaches[:, j], reaches[i])
        for other in range(m):
            taken = other in parents[i]
            gain[i, other] = -np.inf if taken else _gain(i, parents[i], other, correlations)


def _gain(i: int, parents: list[int], j: int, correlations: Correlations) -> float:
    """Compute the gain in the merit of ``i`` from adding parent ``j``."""
    if j == i:
        return -np.inf
    return merit(i, [*parents, j], correlations) - merit(i, parents, correlations)


def drawing_order(graph: Graph, single: Sequence[float]) -> tuple[int, ...]:
    """Compute σ: a topological order, least entropy first.

    The paper allows any linear extension of the graph (Sec. 3.2). Seeds are deniable if many
    records share the attributes that come first, so attributes of small entropy go first. The
    entropies are noisy and already paid for: the order costs nothing more.

    Args:
        graph: The graph.
        single: The (noisy) entropy of each attribute.
    """
    return tuple(_topological_order(graph.parents, key=single) or ())


def check_order(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """Return ``order`` if it is a linear extension of the graph; else raise ConfigError."""
    if sorted(order) != list(range(len(graph.parents))):
        raise ConfigError("the order must name every attribute once")
    position = {i: index for index, i in enumerate(order)}
    for i, chosen in enumerate(graph.parents):
        if any(position[j] > position[i] for j in chosen):
            raise ConfigError(f"the order draws attribute {i} before one of its parents")
    return tuple(order)


def _topological_order(parents: Sequence[Sequence[int]], key: Sequence[float]) -> list[int] | None:
    """Sort topologically, smallest key first among free attributes; None if there is a cycle."""
    left = set(range(len(parents)))
    order: list[int] = []
    while left:
        free = [i for i in left if not left.intersection(parents[i])]
        if not free:
            return None
        first = min(free, key=lambda i: (key[i], i))
        order.append(first)
        left.remove(first)
    return order
