"""Which attributes each attribute is drawn from: merit, cost, greedy search, drawing order σ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.data.attributes import Attribute
from deniable.errors import ConfigError
from deniable.model.correlation import Correlations


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph over attributes: ``parents[i]`` is P_G(i), ascending."""

    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        every = set(range(len(self.parents)))
        for i, chosen in enumerate(self.parents):
            if list(chosen) != sorted(set(chosen)) or not set(chosen) <= every - {i}:
                raise ConfigError(f"attribute {i} has parents {chosen}: each once, others only")
        if _order(self.parents, key=range(len(self.parents))) is None:
            raise ConfigError("the graph has a cycle: nothing could be drawn first")

    @classmethod
    def without_edges(cls, attributes: int) -> Self:
        """Return the graph of the paper's baseline, independent marginals."""
        return cls(((),) * attributes)

    @classmethod
    def from_names(cls, names: Sequence[str], parents: Mapping[str, Iterable[str]]) -> Self:
        """Return the graph a user wrote: parents by name; who is not named has none."""
        number = {name: i for i, name in enumerate(names)}
        written = {name: list(chosen) for name, chosen in parents.items()}
        for name in [*written, *(parent for chosen in written.values() for parent in chosen)]:
            if name not in number:
                raise ConfigError(f'the graph names "{name}", which the schema does not describe')
        for name, chosen in written.items():
            if name in chosen or len(set(chosen)) < len(chosen):
                raise ConfigError(f'the graph gives "{name}" itself as a parent, or one twice')
        return cls(tuple(tuple(sorted(number[p] for p in written.get(n, []))) for n in names))


def merit(i: int, parents: Sequence[int], correlations: Correlations) -> float:
    """Return score(P_G(i)): good predictors of i that say different things (Eq. 4).

        score(P) = Σ_{j∈P} corr(x_i, x_j) / sqrt(|P| + Σ_{j≠k∈P} corr(x_j, x_k))

    ``eq:gm:merit``. As in the work it cites, the second sum runs over ordered pairs of two
    different parents. A parent enters bucketed where it predicts, whole among parents.
    """
    if not parents:
        return 0.0
    chosen = list(parents)
    gain = correlations.with_parent[i, chosen].sum()
    shared = correlations.between[np.ix_(chosen, chosen)].sum()
    return float(gain / np.sqrt(len(chosen) + shared))


def cost(parents: Iterable[int], attributes: Sequence[Attribute]) -> int:
    """Return how many configurations the parents have, bucketed (Eq. 6, ``eq:gm:constraint``)."""
    product = 1
    for j in parents:
        product *= attributes[j].buckets
    return product


def learn_graph(
    correlations: Correlations, attributes: Sequence[Attribute], *, max_cost: int
) -> Graph:
    """Return the graph that greedy search finds (Sec. 3.3, ``sec:gm:structure``).

    Maximising the total merit over all graphs is out of reach, so, step by step, that edge is
    added, of all that close no cycle and keep the cost of every parent set within
    ``max_cost``, which raises the total merit most; it ends where no edge raises it. Ties go
    to the attribute, then the parent, that the schema names first.
    """
    m = len(attributes)
    parents: list[list[int]] = [[] for _ in range(m)]
    reaches = np.eye(m, dtype=bool)  # reaches[j, i]: a path leads from j to i
    gain = np.array([[_gain(i, [], j, correlations) for j in range(m)] for i in range(m)])
    while True:
        gain[reaches] = -np.inf  # an edge j → i closes a cycle where i already reaches j
        for i in range(m):
            full = [cost([*parents[i], j], attributes) > max_cost for j in range(m)]
            gain[i, full] = -np.inf
        i, j = divmod(int(gain.argmax()), m)
        if not gain[i, j] > 0:
            return Graph(tuple(tuple(sorted(chosen)) for chosen in parents))
        parents[i].append(j)
        reaches |= np.outer(reaches[:, j], reaches[i])
        for other in range(m):
            taken = other in parents[i]
            gain[i, other] = -np.inf if taken else _gain(i, parents[i], other, correlations)


def _gain(i: int, parents: list[int], j: int, correlations: Correlations) -> float:
    """Return what parent ``j`` would add to the merit of ``i``."""
    if j == i:
        return -np.inf
    return merit(i, [*parents, j], correlations) - merit(i, parents, correlations)


def drawing_order(graph: Graph, single: Sequence[float]) -> tuple[int, ...]:
    """Return σ: every attribute after its parents, and among those free the one that says least.

    Any linear extension of the graph is an order of the paper (Sec. 3.2). Seeds are deniable
    when many records share the attributes that come first, so attributes of small (noisy)
    entropy go first: a rule that reads nothing but what was already paid for.
    """
    return tuple(_order(graph.parents, key=single) or ())


def check_order(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """Return ``order`` if it is a linear extension of the graph; else say why not."""
    if sorted(order) != list(range(len(graph.parents))):
        raise ConfigError("the order must name every attribute once")
    place = {i: at for at, i in enumerate(order)}
    for i, chosen in enumerate(graph.parents):
        if any(place[j] > place[i] for j in chosen):
            raise ConfigError(f"the order draws attribute {i} before one of its parents")
    return tuple(order)


def _order(parents: Sequence[Sequence[int]], key: Sequence[float]) -> list[int] | None:
    """Return the linear extension that always takes the free attribute of least key, if any."""
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
