"""From noisy pairs to a network: order, parents, and a conditional table for each attribute."""

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import HalfWords, Indices, Reals
from deniable.data.attributes import Attribute
from deniable.model.coarse import merge_to, sum_rows
from deniable.model.draws import shuffled, sort_by, spread_evenly
from deniable.model.graph import Graph
from deniable.model.loglinear import Evidence, LogLinear, fit_loglinear, softmax
from deniable.model.network import ConditionalTable, Network
from deniable.model.pairs import Measured
from deniable.model.shrinkage import Dependence, find_dependence, strongest
from deniable.randomness import Keyed

# Records drawn from the model as it grows, under a key that is public: the tables are a function
# of the noisy counts.
_POOL = 30_000
_KEY = 2
# How finely a parent may enter: in about so many groups.
_LADDER = (2, 3, 4, 6, 8, 12, 20, 30)
# A table may have so many cells, however many values the attribute has.
_MOST_CELLS = 2**21
# How firmly an effect is held at zero, against what its noise would ask for; and at least so.
_FIRMNESS = 0.03
_LEAST_PENALTY = 5.0


@dataclass(frozen=True, kw_only=True)
class _Parent:
    """A parent of one attribute.

    Attributes:
        attribute: Which.
        groups: The group of each of its bins.
        said: How much it says about the attribute, so grouped.
    """

    attribute: int
    groups: Indices
    said: float

    @cached_property
    def number(self) -> int:
        """How many groups there are."""
        return int(self.groups.max()) + 1


def fit_network(measured: Measured, attributes: Sequence[Attribute], *, max_cost: int) -> Network:
    """Return the network that agrees with noisy values and pairs: post-processing of them.

    Attributes are drawn in the order of their numbers of bins, each from as many of those before
    it, and as finely, as a table of ``max_cost`` configurations can hold.

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
    alike = shuffled(_POOL, rng)
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
                rows = _configurations(parents[i], groups)
                words = spread_evenly(rows, alike, rng)
                pool[:, i] = _draw(fitted, groups, rows, words)
                alike = sort_by(pool[:, i], alike)
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
    """Return the parents of an attribute, and how finely each enters, ascending.

    Step by step from none at all: a parent enters, or enters more finely, where that says most
    about the attribute for what the table grows by.
    """
    ladders = {
        j: _ladder(dependence, attributes[j], j, child)
        for j in strongest(dependence, child, before)
    }
    chosen: dict[int, _Parent] = {}
    while step := max(_steps(ladders, chosen, limit), default=None, key=lambda step: step[0]):
        chosen[step[1].attribute] = step[1]
    return tuple(chosen[j] for j in sorted(chosen))


def _ladder(dependence: Dependence, attribute: Attribute, parent: int, child: int) -> list[_Parent]:
    """Return the ways in which a parent may enter, each finer than the one before it."""
    share, excess = dependence.bins[parent], dependence.excess_of(parent, child)
    expected = dependence.records * np.outer(share, dependence.bins[child])
    found: dict[int, _Parent] = {}
    for most in _LADDER:
        groups = merge_to(share, most=most, apart=attribute.missing_code is not None)
        noise = dependence.sigma_of(parent, child) * np.sqrt(np.bincount(groups))[:, None]
        beyond = sum_rows(groups, excess) ** 2 / (sum_rows(groups, expected) + noise)
        entered = _Parent(attribute=parent, groups=groups, said=float(beyond.sum()))
        if entered.number > 1:
            found.setdefault(entered.number, entered)
    return list(found.values())


def _steps(
    ladders: Mapping[int, Sequence[_Parent]], chosen: Mapping[int, _Parent], limit: int
) -> Iterator[tuple[float, _Parent]]:
    """Yield every step that still fits: what is said more, by how many times the table grows."""
    size = math.prod(parent.number for parent in chosen.values())
    for j, ladder in ladders.items():
        number, said = (chosen[j].number, chosen[j].said) if j in chosen else (1, 0.0)
        for finer in ladder:
            fits = number < finer.number and size // number * finer.number <= limit
            if fits and finer.said > said:
                yield (finer.said - said) / math.log(finer.number / number), finer


def _fit(
    dependence: Dependence, child: int, parents: Sequence[_Parent], pool: Indices
) -> LogLinear:
    """Return the attribute's model, given its parents in groups."""
    if not parents:
        return fit_loglinear(dependence.bins[child], (), np.empty(0))
    sizes = [parent.number for parent in parents]
    places = [parent.groups[pool[:, parent.attribute]] for parent in parents]
    cells, times = np.unique(_configurations(parents, places), return_counts=True)
    weights: Reals = times.astype(np.float64) * (dependence.records / len(pool))
    evidence = []
    for parent, groups in zip(parents, np.unravel_index(cells, sizes), strict=True):
        j, width = parent.attribute, np.bincount(parent.groups)[:, None]
        in_pool = np.bincount(groups, weights, minlength=len(width))
        expected = np.outer(in_pool, dependence.bins[child])
        excess = sum_rows(parent.groups, dependence.excess_of(j, child))
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


def _configurations(parents: Sequence[_Parent], groups: Sequence[Indices]) -> Indices:
    """Return the configuration of each record of the pool, given the group of each parent."""
    if not parents:
        return np.zeros(_POOL, dtype=np.intp)
    return np.ravel_multi_index(tuple(groups), [parent.number for parent in parents])


def _draw(fitted: LogLinear, groups: Sequence[Indices], rows: Indices, words: HalfWords) -> Indices:
    """Return a bin for each record of the pool, by uniform 32-bit words.

    Args:
        fitted: The model.
        groups: The group of each parent.
        rows: The configuration of them: who has the same draws from the same distribution.
        words: The words.
    """
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    logits = fitted.logits([group[first] for group in groups]) if groups else fitted.base[None, :]
    steps = np.cumsum(softmax(logits), axis=1)
    steps /= steps[:, -1:]
    number = steps.shape[1]
    # One after the other they ascend, each distribution from its own whole number to the next.
    ends = (steps + np.arange(len(steps))[:, None]).ravel()
    found = np.searchsorted(ends, which + words * 2.0**-32, side="right") - which * number
    chosen: Indices = np.clip(found, 0, number - 1)
    return chosen
