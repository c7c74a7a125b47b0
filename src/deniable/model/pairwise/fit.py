"""Fit a Bayesian network to noisy two-way tables: drawing order, parents, conditional tables."""

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import HalfWords, Indices, Reals
from deniable.errors import InvariantError
from deniable.model.alias_sampling import random_permutation, stable_sort_by, stratified_words
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.pairwise.denoise import DenoisedTables, candidate_parents, denoise_tables
from deniable.model.pairwise.loglinear import LogLinear, ParentEvidence, fit_loglinear, softmax
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import group_bins, sum_row_groups
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute

# Records drawn from the model while it is fitted. The key is public, so the fitted tables are a
# function of the noisy counts.
_POOL_RECORDS = 30_000
_POOL_KEY = 2
# The approximate numbers of groups into which the bins of a parent may be merged.
_GROUP_COUNTS = (2, 3, 4, 6, 8, 12, 20, 30)
# Bounds a conditional table: configurations times values.
_MAX_TABLE_CELLS = 2**21
# Ridge penalty of an effect: this factor times noise variance / signal variance, plus a minimum.
_PENALTY_FACTOR = 0.03
_MIN_PENALTY = 5.0
# The largest relative difference of two scores that rounding explains.
_MAX_SCORE_ERROR = 1e-9


@dataclass(frozen=True, kw_only=True)
class _GroupedParent:
    """A parent of one attribute, with its bins merged into groups.

    Attributes:
        attribute: The parent's index.
        groups: The group of each of its bins.
        score: Strength of dependence in these groups: a noise-damped χ² statistic.
    """

    attribute: int
    groups: Indices
    score: float

    @cached_property
    def group_count(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1


def fit_network(
    measured: PairwiseMeasurements, attributes: Sequence[Attribute], *, max_cost: int
) -> Network:
    """Fit a Bayesian network to noisy one-way and two-way tables. Post-processing: no cost.

    The drawing order is by number of bins, fewest first. Parents are chosen among the earlier
    attributes, in as many and as fine groups as ``max_cost`` configurations allow.

    Args:
        measured: The noisy counts.
        attributes: The domain of each column.
        max_cost: The largest number of parent configurations of an attribute.
    """
    # The matrices are small: BLAS threads would cost more than they save, and might change the last
    # digits.
    with threadpool_limits(limits=1):
        return _fit_in_order(measured, tuple(attributes), max_cost)


def refit_network(measured: PairwiseMeasurements, network: Network, *, max_cost: int) -> Network:
    """Fit each attribute of a network again, given the network's own tables of earlier attributes.

    Rounding on another kind of computer changes a table a little, the records drawn from it, and
    so every later table much more. Here each table is compared on its own. Rounding also decides
    between parents that do not improve the fit: the network's are taken where they score the same.

    Args:
        measured: The noisy counts.
        network: A network that was fitted to them.
        max_cost: The largest number of parent configurations of an attribute.

    Raises:
        InvariantError: Its order or parents do not follow from the noisy counts.
    """
    with threadpool_limits(limits=1):
        return _fit_in_order(measured, network.attributes, max_cost, given=network)


def _fit_in_order(
    measured: PairwiseMeasurements,
    attributes: tuple[Attribute, ...],
    max_cost: int,
    given: Network | None = None,
) -> Network:
    """Fit one attribute after the other, extending a pool of synthetic records by each.

    The records are drawn from the fitted model, or from ``given``, whose parents are taken then.
    """
    tables = denoise_tables(measured, attributes)
    order = sorted(range(len(attributes)), key=lambda i: (len(tables.bins[i]), i))
    pool = np.zeros((_POOL_RECORDS, len(attributes)), dtype=np.intp, order="F")
    rng = Keyed(_POOL_KEY).at("parameters")
    similarity = random_permutation(_POOL_RECORDS, rng)
    parents: list[tuple[_GroupedParent, ...]] = [()] * len(attributes)
    conditionals: dict[int, Future[ConditionalTable]] = {}
    # Each fit needs the one before it; tables are expanded in the background meanwhile.
    with ThreadPoolExecutor(2) as background:
        for position, i in enumerate(order):
            limit = min(max_cost, max(_MAX_TABLE_CELLS // attributes[i].size, 1))
            parents[i] = _choose_parents(tables, attributes, i, order[:position], limit)
            if given is not None:
                parents[i] = _take_parents(
                    tables, measured, given, i, chosen=parents[i], limit=limit
                )
            fitted = _fit_attribute(tables, i, parents[i], pool)
            within_bin = tables.values[i] / tables.bins[i][measured.bins[i]]
            conditionals[i] = background.submit(_expand_bins, fitted, measured.bins[i], within_bin)
            if i != order[-1]:
                parent_groups = [p.groups[pool[:, p.attribute]] for p in parents[i]]
                configurations = _configurations(parents[i], parent_groups)
                words = stratified_words(configurations, similarity, rng)
                pool[:, i] = (
                    _draw_bins(fitted, parent_groups, configurations, words)
                    if given is None
                    else _draw_given(given, i, measured.bins[i], configurations, words)
                )
                similarity = stable_sort_by(pool[:, i], similarity)
    fitted_tables = tuple(conditionals[i].result() for i in range(len(attributes)))
    groups = tuple(_value_groups(chosen, measured) for chosen in parents)
    graph = Graph(tuple(tuple(parent.attribute for parent in chosen) for chosen in parents))
    return Network(attributes, graph, tuple(order), fitted_tables, groups)


def _value_groups(
    parents: Sequence[_GroupedParent], measured: PairwiseMeasurements
) -> tuple[Indices, ...]:
    """Look up the group of each value of each parent."""
    return tuple(parent.groups[measured.bins[parent.attribute]] for parent in parents)


def _expand_bins(fitted: LogLinear, bins: Indices, within_bin: Reals) -> ConditionalTable:
    """Expand a model of bins to a conditional table of values, prepared for drawing.

    Args:
        fitted: The model of the attribute's bins.
        bins: The bin of each value.
        within_bin: The probability of each value given its bin.
    """
    table = fitted.table()[:, bins] * within_bin
    expanded = ConditionalTable(table / table.sum(axis=1, keepdims=True))
    expanded.alias.prepare()
    return expanded


def _choose_parents(
    tables: DenoisedTables,
    attributes: Sequence[Attribute],
    child: int,
    earlier: Sequence[int],
    limit: int,
) -> tuple[_GroupedParent, ...]:
    """Choose the parents of an attribute and their groups by greedy search; in ascending order.

    Starts without parents. Each step adds a parent, or refines the groups of one: the step with the
    largest gain in score per growth of the table.
    """
    groupings = {
        j: _groupings(tables, attributes[j], j, child)
        for j in candidate_parents(tables, child, earlier)
    }
    chosen: dict[int, _GroupedParent] = {}
    while True:
        steps = _refinements(groupings, chosen, limit)
        best = max(steps, default=None, key=lambda step: step[0])
        if best is None:
            break
        chosen[best[1].attribute] = best[1]
    return tuple(chosen[j] for j in sorted(chosen))


def _take_parents(
    tables: DenoisedTables,
    measured: PairwiseMeasurements,
    given: Network,
    child: int,
    *,
    chosen: Sequence[_GroupedParent],
    limit: int,
) -> tuple[_GroupedParent, ...]:
    """Take a network's parents of an attribute, if they score the same as the chosen ones."""
    taken = []
    for parent, groups in zip(given.graph.parents[child], given.groups[child], strict=True):
        options = (
            _groupings(tables, given.attributes[parent], parent, child)
            if tables.effect_variance_of(parent, child) > 0
            else ()
        )
        bins = measured.bins[parent]
        same = [option for option in options if np.array_equal(option.groups[bins], groups)]
        taken += same[:1]
    scores = [math.fsum(parent.score for parent in parents) for parents in (taken, chosen)]
    is_valid = (
        len(taken) == len(given.graph.parents[child])
        and math.prod(parent.group_count for parent in taken) <= limit
        and abs(scores[0] - scores[1]) <= _MAX_SCORE_ERROR * max(1.0, *scores)
    )
    if not is_valid:
        raise InvariantError("the parents of an attribute do not follow from the noisy counts")
    return tuple(taken)


def _groupings(
    tables: DenoisedTables, attribute: Attribute, parent: int, child: int
) -> list[_GroupedParent]:
    """List the groupings of a parent's bins, from coarse to fine."""
    share, excess = tables.bins[parent], tables.excess_of(parent, child)
    expected = tables.records * np.outer(share, tables.bins[child])
    distinct: dict[int, _GroupedParent] = {}
    for max_groups in _GROUP_COUNTS:
        groups = group_bins(
            share, max_groups=max_groups, separate_last=attribute.missing_code is not None
        )
        noise = tables.sigma_of(parent, child) * np.sqrt(np.bincount(groups))[:, None]
        statistic = sum_row_groups(groups, excess) ** 2 / (sum_row_groups(groups, expected) + noise)
        grouped = _GroupedParent(attribute=parent, groups=groups, score=float(statistic.sum()))
        if grouped.group_count > 1:
            distinct.setdefault(grouped.group_count, grouped)
    return list(distinct.values())


def _refinements(
    groupings: Mapping[int, Sequence[_GroupedParent]],
    chosen: Mapping[int, _GroupedParent],
    limit: int,
) -> Iterator[tuple[float, _GroupedParent]]:
    """Yield each possible step: its gain in score per logarithm of the table's growth, and result.

    A step is possible if it raises the score and keeps the configurations within ``limit``.
    """
    configurations = math.prod(parent.group_count for parent in chosen.values())
    for j, options in groupings.items():
        group_count, score = (chosen[j].group_count, chosen[j].score) if j in chosen else (1, 0.0)
        for option in options:
            fits = (
                group_count < option.group_count
                and configurations // group_count * option.group_count <= limit
            )
            if fits and option.score > score:
                yield (option.score - score) / math.log(option.group_count / group_count), option


def _fit_attribute(
    tables: DenoisedTables, child: int, parents: Sequence[_GroupedParent], pool: Indices
) -> LogLinear:
    """Fit the log-linear model of an attribute's bins, given its grouped parents."""
    if not parents:
        return fit_loglinear(tables.bins[child], (), np.empty(0))
    sizes = [parent.group_count for parent in parents]
    groups_in_pool = [parent.groups[pool[:, parent.attribute]] for parent in parents]
    in_records = _configurations(parents, groups_in_pool)
    configurations, repeats = np.unique(in_records, return_counts=True)
    weights: Reals = repeats.astype(np.float64) * (tables.records / len(pool))
    evidence = []
    for parent, cell_groups in zip(parents, np.unravel_index(configurations, sizes), strict=True):
        j, bins_in_group = parent.attribute, np.bincount(parent.groups)[:, None]
        in_pool = np.bincount(cell_groups, weights, minlength=len(bins_in_group))
        expected = np.outer(in_pool, tables.bins[child])
        excess = sum_row_groups(parent.groups, tables.excess_of(j, child))
        signal_variance = tables.effect_variance_of(j, child) * np.maximum(expected, 1.0)
        noise_variance = tables.sigma_of(j, child) ** 2 * bins_in_group
        evidence.append(
            ParentEvidence(
                groups=cell_groups,
                target=excess + expected,
                expected=expected,
                penalty=_PENALTY_FACTOR * noise_variance / signal_variance + _MIN_PENALTY,
            )
        )
    return fit_loglinear(tables.bins[child], evidence, weights)


def _configurations(parents: Sequence[_GroupedParent], groups: Sequence[Indices]) -> Indices:
    """Number the configuration of each record of the pool, given the group of each parent."""
    if not parents:
        return np.zeros(_POOL_RECORDS, dtype=np.intp)
    return np.ravel_multi_index(tuple(groups), [parent.group_count for parent in parents])


def _draw_bins(
    fitted: LogLinear, groups: Sequence[Indices], configurations: Indices, words: HalfWords
) -> Indices:
    """Draw a bin for each record of the pool by inversion of uniform 32-bit words.

    Args:
        fitted: The model.
        groups: The group of each parent, by record.
        configurations: The configuration of the parents, by record.
        words: One word per record.
    """
    _, first, index = np.unique(configurations, return_index=True, return_inverse=True)
    logits = fitted.logits([group[first] for group in groups]) if groups else fitted.base[None, :]
    return _invert(softmax(logits), index, words)


def _draw_given(
    given: Network, child: int, bins: Indices, configurations: Indices, words: HalfWords
) -> Indices:
    """Draw a bin for each record of the pool from a network's conditional table."""
    distinct, index = np.unique(configurations, return_inverse=True)
    rows = given.tables[child].probabilities[distinct]
    return _invert(sum_row_groups(bins, rows.T).T, index, words)


def _invert(distributions: Reals, index: Indices, words: HalfWords) -> Indices:
    """Draw from the distribution of each record, by inversion of its word."""
    cumulative = np.cumsum(distributions, axis=1)
    cumulative /= cumulative[:, -1:]
    bins = cumulative.shape[1]
    # One search for all: distribution number n covers the interval from n to n + 1.
    ends = (cumulative + np.arange(len(cumulative))[:, None]).ravel()
    position = np.searchsorted(ends, index + words * 2.0**-32, side="right") - index * bins
    drawn: Indices = np.clip(position, 0, bins - 1)
    return drawn
