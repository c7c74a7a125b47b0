"""From noisy pairs to a network: order, parents, and a conditional table for each attribute."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import Indices, Reals
from deniable.data.attributes import Attribute
from deniable.model.coarse import merge_to, sum_by
from deniable.model.graph import Graph
from deniable.model.loglinear import Evidence, LogLinear, fit_loglinear, softmax
from deniable.model.network import ConditionalTable, Network
from deniable.model.pairs import Measured
from deniable.model.shrinkage import Dependence, find_dependence, strongest
from deniable.randomness import Keyed, Rng

# Records drawn from the model as it grows, under a key that is public: the tables are a function
# of the noisy counts.
_POOL = 30_000
_KEY = 2
# How finely a parent may enter: the strongest first in so many groups, the next in fewer.
_LADDER = (30, 20, 12, 8, 6, 4, 3, 2)
# A table may have so many cells, however many values the attribute has.
_MOST_CELLS = 2**21
# How firmly an effect is held at zero, against what its noise would ask for; and at least so.
_FIRMNESS = 0.03
_LEAST_PENALTY = 5.0


@dataclass(frozen=True, kw_only=True)
class _Parent:
    """A parent of one attribute: which, and the group of each of its bins."""

    attribute: int
    groups: Indices


def fit_network(measured: Measured, attributes: Sequence[Attribute], *, max_cost: int) -> Network:
    """Return the network that agrees with noisy values and pairs: post-processing of them.

    Attributes are drawn in the order of their numbers of bins, each from as many of those before
    it as a table of ``max_cost`` configurations can hold, those that say most about it first.

    Args:
        measured: The noisy counts.
        attributes: What each column may hold.
        max_cost: The most parent configurations of an attribute.
    """
    # Tables are small: threads of the linear algebra would cost more than they bring, and might
    # change the last digits.
    with threadpool_limits(limits=1):
        return _fit_all(measured, tuple(attributes), max_cost)


def _fit_all(measured: Measured, attributes: tuple[Attribute, ...], max_cost: int) -> Network:
    dependence = find_dependence(measured, attributes)
    order = sorted(range(len(attributes)), key=lambda i: (len(dependence.bins[i]), i))
    pool = np.zeros((_POOL, len(attributes)), dtype=np.intp, order="F")
    rng = Keyed(_KEY).at("parameters")
    parents: list[tuple[_Parent, ...]] = [()] * len(attributes)
    tables: dict[int, Future[ConditionalTable]] = {}
    # A fit waits for the one before it; tables are written out beside the next fit.
    with ThreadPoolExecutor(2) as beside:
        for place, i in enumerate(order):
            limit = min(max_cost, max(_MOST_CELLS // attributes[i].size, 1))
            parents[i] = _choose_parents(dependence, attributes, i, order[:place], limit)
            fitted = _fit(dependence, i, parents[i], pool)
            inside = dependence.values[i] / dependence.bins[i][measured.bins[i]]
            tables[i] = beside.submit(_write_out, fitted, measured.bins[i], inside)
            if i != order[-1]:
                groups = [p.groups[pool[:, p.attribute]] for p in parents[i]]
                pool[:, i] = _draw(fitted, groups, rng)
    return Network(
        attributes,
        Graph(tuple(tuple(parent.attribute for parent in chosen) for chosen in parents)),
        tuple(order),
        tuple(tables[i].result() for i in range(len(attributes))),
        tuple(
            tuple(parent.groups[measured.bins[parent.attribute]] for parent in chosen)
            for chosen in parents
        ),
    )


def _write_out(fitted: LogLinear, bins: Indices, inside: Reals) -> ConditionalTable:
    """Return a fitted model as a table of values, prepared for drawing.

    Args:
        fitted: The model of the attribute's bins.
        bins: The bin of each value.
        inside: The share of each value in its bin.
    """
    table = fitted.table()[:, bins] * inside
    written = ConditionalTable(table / table.sum(axis=1, keepdims=True))
    written.alias.prepare()
    return written


def _choose_parents(
    dependence: Dependence,
    attributes: Sequence[Attribute],
    child: int,
    before: Sequence[int],
    limit: int,
) -> tuple[_Parent, ...]:
    """Return the parents of an attribute, and how finely each enters, ascending."""
    chosen, size = [], 1
    for rank, j in enumerate(strongest(dependence, child, before)):
        apart = attributes[j].missing_code is not None
        for most in _LADDER[min(rank, len(_LADDER) - 1) :]:
            groups = merge_to(dependence.bins[j], most=most, apart=apart)
            number = int(groups.max()) + 1
            if number > 1 and size * number <= limit:
                chosen.append(_Parent(attribute=j, groups=groups))
                size *= number
                break
    return tuple(sorted(chosen, key=lambda parent: parent.attribute))


def _fit(
    dependence: Dependence, child: int, parents: Sequence[_Parent], pool: Indices
) -> LogLinear:
    """Return the attribute's model, given its parents in groups."""
    if not parents:
        return fit_loglinear(dependence.bins[child], (), np.empty(0))
    sizes = [int(parent.groups.max()) + 1 for parent in parents]
    places = tuple(parent.groups[pool[:, parent.attribute]] for parent in parents)
    cells, times = np.unique(np.ravel_multi_index(places, sizes), return_counts=True)
    weights: Reals = times.astype(np.float64) * (dependence.records / len(pool))
    evidence = []
    for parent, groups in zip(parents, np.unravel_index(cells, sizes), strict=True):
        j, width = parent.attribute, np.bincount(parent.groups)[:, None]
        in_pool = np.bincount(groups, weights, minlength=len(width))
        expected = np.outer(in_pool, dependence.bins[child])
        beyond = dependence.excess_of(j, child)
        excess = np.stack([sum_by(parent.groups, column) for column in beyond.T], axis=1)
        known = dependence.effect_of(j, child) * np.maximum(expected, 1.0)
        doubt = dependence.sigma_of(j, child) ** 2 * width
        evidence.append(
            Evidence(
                groups=groups,
                wanted=excess + expected,
                expected=expected,
                penalty=_FIRMNESS * doubt / known + _LEAST_PENALTY,
            )
        )
    return fit_loglinear(dependence.bins[child], evidence, weights)


def _draw(fitted: LogLinear, groups: Sequence[Indices], rng: Rng) -> Indices:
    """Return a bin for each record of the pool."""
    shares = softmax(fitted.logits(groups)) if groups else softmax(fitted.base[None, :])
    steps = np.cumsum(np.broadcast_to(shares, (_POOL, shares.shape[1])), axis=1)
    passed: Indices = (steps < (rng.random(_POOL) * steps[:, -1])[:, None]).sum(axis=1)
    chosen: Indices = np.minimum(passed, shares.shape[1] - 1)
    return chosen
