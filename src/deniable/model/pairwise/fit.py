"""Fit a Bayesian network to noisy two-way tables: drawing order, parents, distributions."""

import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import Codes, HalfWords, Indices, Reals
from deniable.model.alias_sampling import random_permutation, stable_sort_by, stratified_words
from deniable.model.bayesian_network import Conditional, ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.denoise import DenoisedTables, candidate_parents, denoise_tables
from deniable.model.pairwise.loglinear import LogLinear, ParentEvidence, fit_loglinear, softmax
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import group_bins, sum_row_groups
from deniable.model.pairwise.shrinkage import rake
from deniable.model.pairwise.three_way_residuals import (
    divide_groups,
    find_residuals,
    triple_evidence,
)
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute

# Records drawn from the model while it is fitted, fewer if there are many attributes. The key is
# public, so the fitted distributions are a function of the noisy counts.
_POOL_RECORDS = 2**14
_POOL_RECORDS_OF_WIDE_TABLE = 2**12
_MAX_ATTRIBUTES_FOR_LARGE_POOL = 60
_POOL_KEY = 2
# Steps of a fit; fewer if there are many attributes, more if it has few effects and is cheap.
_MAX_ITERATIONS = 60
_MAX_ITERATIONS_OF_SMALL_FIT = 180
_MAX_EFFECTS_OF_SMALL_FIT = 600
_MAX_ITERATIONS_OF_WIDE_TABLE = 30
# An attribute has at most this many parents, the strongest; their bins are merged into about this
# many groups.
_MAX_PARENTS = 40
_MAX_PARENT_GROUPS = 30
# Bounds a conditional table: configurations times values.
_MAX_TABLE_CELLS = 2**21
# Ridge penalty of an effect: this factor times noise variance / signal variance, plus a minimum.
# The signal is that of the pair's mean effect, or of the cell itself where it is larger.
_PENALTY_FACTOR = 0.015
_MIN_PENALTY = 0.5
# The least variance of an effect: that of a parent in three-way interactions only.
_MIN_EFFECT_VARIANCE = 1e-5
# Configurations are numbered by 64-bit integers up to this many; beyond, hardly any two records of
# the pool share one.
_MAX_NUMBERED_CONFIGURATIONS = 2**40
# Records that a group of a parent counts as, in addition to those that the pool has.
_MIN_GROUP_RECORDS = 1e-6
# The least probability of a cell of the fitted counts, relative to independence.
_MIN_TARGET_RATIO = 1e-3


@dataclass(frozen=True, kw_only=True)
class _Parent:
    """A parent of one attribute: its index, the group of each of its bins, and their number."""

    attribute: int
    groups: Indices
    group_count: int


def pool_records(attributes: int) -> int:
    """The number of records that are drawn from the model while it is fitted."""
    is_wide = attributes > _MAX_ATTRIBUTES_FOR_LARGE_POOL
    return _POOL_RECORDS_OF_WIDE_TABLE if is_wide else _POOL_RECORDS


def _max_iterations(attributes: int, evidence: Sequence[ParentEvidence]) -> int:
    if attributes > _MAX_ATTRIBUTES_FOR_LARGE_POOL:
        return _MAX_ITERATIONS_OF_WIDE_TABLE
    is_small = sum(each.target.size for each in evidence) <= _MAX_EFFECTS_OF_SMALL_FIT
    return _MAX_ITERATIONS_OF_SMALL_FIT if is_small else _MAX_ITERATIONS


def fit_network(
    measured: PairwiseMeasurements,
    attributes: Sequence[Attribute],
    *,
    max_cost: int,
    prefixes: Codes | None = None,
) -> Network:
    """Fit a Bayesian network to noisy one-way tables, interactions and two-way tables.

    Post-processing: no cost. The drawing order is by number of bins, fewest first. An attribute
    depends on all earlier ones with which it shows a dependence: by a table if the configurations
    of its parents are at most ``max_cost`` and it has no three-way interactions, else by a
    log-linear distribution.

    Args:
        measured: The noisy counts.
        attributes: The domain of each column.
        max_cost: The largest number of parent configurations of a conditional table.
        prefixes: Values of the first attributes, in the order they are drawn, that later ones are
            to be fitted to: ``pool_records`` rows. The default draws them from the model.
    """
    # The matrices are small: BLAS threads would cost more than they save, and might change the last
    # digits.
    with threadpool_limits(limits=1):
        return _fit_in_order(measured, tuple(attributes), max_cost, prefixes=prefixes)


def refit_network(
    measured: PairwiseMeasurements,
    network: Network,
    *,
    max_cost: int,
    prefixes: Codes | None = None,
) -> Network:
    """Fit each attribute of a network again, given the network's own distributions before it.

    Rounding on another kind of computer changes a distribution a little, the records drawn from
    it, and so every later distribution much more. Here each is compared on its own.

    Args:
        measured: The noisy counts.
        network: A network that was fitted to them.
        max_cost: The largest number of parent configurations of a conditional table.
        prefixes: Values of the first attributes, as for ``fit_network``.
    """
    with threadpool_limits(limits=1):
        return _fit_in_order(
            measured, network.attributes, max_cost, given=network, prefixes=prefixes
        )


def _fit_in_order(
    measured: PairwiseMeasurements,
    attributes: tuple[Attribute, ...],
    max_cost: int,
    given: Network | None = None,
    prefixes: Codes | None = None,
) -> Network:
    """Fit one attribute after the other, extending a pool of synthetic records by each.

    The records are drawn from the fitted model, or from ``given``.
    """
    tables = denoise_tables(measured, attributes)
    order = sorted(range(len(attributes)), key=lambda i: (len(tables.bins[i]), i))
    pool = np.zeros((pool_records(len(attributes)), len(attributes)), dtype=np.intp, order="F")
    rng = Keyed(_POOL_KEY).at("parameters")
    similarity = random_permutation(len(pool), rng)
    parents: list[tuple[_Parent, ...]] = [()] * len(attributes)
    conditionals: dict[int, Future[Conditional]] = {}
    # Each fit needs the one before it; tables are expanded in the background meanwhile.
    with ThreadPoolExecutor(2) as background:
        for position, i in enumerate(order):
            if prefixes is not None and position == prefixes.shape[1]:
                similarity = _take_prefixes(prefixes, order, measured, pool, similarity)
            pairs = _choose_parents(tables, measured, attributes, i, order[:position])
            parents[i], fitted = _fit_attribute(
                tables, measured, i, order[:position], pairs, pool=pool
            )
            groups = [parent.groups[pool[:, parent.attribute]] for parent in parents[i]]
            within_bin = tables.values[i] / tables.bins[i][measured.bins[i]]
            limit = min(max_cost, max(_MAX_TABLE_CELLS // attributes[i].size, 1))
            conditionals[i] = background.submit(
                _make_conditional, fitted, measured.bins[i], within_bin, limit
            )
            if i != order[-1]:
                distributions, index = _pool_distributions(fitted, parents[i], groups, len(pool))
                if given is not None:
                    distributions = _given_distributions(given, measured, pool, index, i)
                words = stratified_words(index, similarity, rng)
                pool[:, i] = _invert(distributions, index, words)
                similarity = stable_sort_by(pool[:, i], similarity)
    fitted_tables = tuple(conditionals[i].result() for i in range(len(attributes)))
    value_groups = tuple(_value_groups(chosen, measured) for chosen in parents)
    graph = Graph(tuple(tuple(parent.attribute for parent in chosen) for chosen in parents))
    return Network(attributes, graph, tuple(order), fitted_tables, value_groups)


def _take_prefixes(
    prefixes: Codes,
    order: Sequence[int],
    measured: PairwiseMeasurements,
    pool: Indices,
    similarity: Indices,
) -> Indices:
    """Replace the first attributes of the pool, in place; return the records by similarity."""
    for at, j in enumerate(order[: prefixes.shape[1]]):
        pool[:, j] = measured.bins[j][prefixes[:, at]]
        similarity = stable_sort_by(pool[:, j], similarity)
    return similarity


def _value_groups(
    parents: Sequence[_Parent], measured: PairwiseMeasurements
) -> tuple[Indices, ...]:
    """Look up the group of each value of each parent."""
    return tuple(parent.groups[measured.bins[parent.attribute]] for parent in parents)


def _make_conditional(
    fitted: LogLinear, bins: Indices, within_bin: Reals, max_configurations: int
) -> Conditional:
    """Make a conditional table of values, prepared for drawing; or a log-linear distribution.

    Args:
        fitted: The model of the attribute's bins.
        bins: The bin of each value.
        within_bin: The probability of each value given its bin.
        max_configurations: The largest number of rows of a table.
    """
    configurations = math.prod(len(effect) for effect in fitted.effects)
    if fitted.triples or configurations > max_configurations:
        return LogLinearConditional.of(
            fitted.base, fitted.effects, bins, within_bin, triples=fitted.triples
        )
    table = fitted.table()[:, bins] * within_bin
    expanded = ConditionalTable(table / table.sum(axis=1, keepdims=True))
    expanded.prepare()
    return expanded


def _choose_parents(
    tables: DenoisedTables,
    measured: PairwiseMeasurements,
    attributes: Sequence[Attribute],
    child: int,
    earlier: Sequence[int],
) -> tuple[_Parent, ...]:
    """Choose the attributes on which ``child`` depends, in ascending order.

    A parent whose two-way table with the child was measured has its bins, others have the groups
    between which interactions were measured.
    """
    chosen = []
    for j in sorted(candidate_parents(tables, child, earlier)[:_MAX_PARENTS]):
        groups = measured.groups[j]
        if (min(j, child), max(j, child)) in tables.excess:
            groups = group_bins(
                tables.bins[j],
                max_groups=_MAX_PARENT_GROUPS,
                separate_last=attributes[j].missing_code is not None,
            )
        number = int(groups.max()) + 1
        if number > 1:
            chosen.append(_Parent(attribute=j, groups=groups, group_count=number))
    return tuple(chosen)


def _fit_attribute(
    tables: DenoisedTables,
    measured: PairwiseMeasurements,
    child: int,
    earlier: Sequence[int],
    parents: tuple[_Parent, ...],
    *,
    pool: Indices,
) -> tuple[tuple[_Parent, ...], LogLinear]:
    """Fit an attribute's bins to pairs; then also to three-way interactions that pairs lack.

    ``parents`` are those by pairs, of the ``earlier`` attributes, which the records of the pool
    have. Returned are all parents, those in three-way interactions included, and the model.
    """
    share, three_way = tables.bins[child], measured.three_way
    groups = [parent.groups[pool[:, parent.attribute]] for parent in parents]
    evidence, weights = _parent_evidence(tables, child, parents, groups)
    iterations = _max_iterations(len(tables.bins), evidence)
    fitted = fit_loglinear(share, evidence, weights, iterations=iterations)
    if three_way is None or len(earlier) < 2:
        return parents, fitted
    distributions, index = _pool_distributions(fitted, parents, groups, len(pool))
    residuals = find_residuals(
        tables, three_way, pool, child=child, earlier=earlier, bins=distributions[index]
    )
    if not residuals:
        return parents, fitted
    own = {parent.attribute: parent.groups for parent in parents}
    own = divide_groups(own, residuals, three_way.groups)
    parents = tuple(
        _Parent(attribute=j, groups=groups, group_count=int(groups.max()) + 1)
        for j, groups in own.items()
    )
    groups = [parent.groups[pool[:, parent.attribute]] for parent in parents]
    evidence, weights = _parent_evidence(tables, child, parents, groups)
    first, _, _ = _distinct_configurations(parents, groups)
    triples = triple_evidence(residuals, three_way, child, own, [group[first] for group in groups])
    return parents, fit_loglinear(share, evidence, weights, iterations=iterations, triples=triples)


def _parent_evidence(
    tables: DenoisedTables,
    child: int,
    parents: Sequence[_Parent],
    groups: Sequence[Indices],
) -> tuple[list[ParentEvidence], Reals]:
    """Collect what an attribute's bins are fitted to, and the records with each configuration.

    Args:
        tables: The denoised tables.
        child: The attribute.
        parents: Its parents.
        groups: For each parent, the group of each record of the pool.
    """
    if not parents:
        return [], np.empty(0)
    first, repeats, _ = _distinct_configurations(parents, groups)
    configurations = [group[first] for group in groups]
    weights: Reals = repeats.astype(np.float64) * (tables.records / len(groups[0]))
    margin = weights.sum() * tables.bins[child]
    evidence = []
    for parent, in_configurations in zip(parents, configurations, strict=True):
        j = parent.attribute
        # A group without records in the pool has hardly any weight, but some: margins are positive.
        in_pool = np.full(parent.group_count, _MIN_GROUP_RECORDS)
        np.add.at(in_pool, in_configurations, weights)
        counts = sum_row_groups(parent.groups, tables.records * tables.bins[j][:, None])
        independent = counts * tables.bins[child]
        excess = sum_row_groups(parent.groups, tables.excess_of(j, child))
        table = np.maximum(independent + excess, _MIN_TARGET_RATIO * independent)
        expected = np.outer(in_pool, tables.bins[child])
        effect_variance = max(tables.effect_variance_of(j, child), _MIN_EFFECT_VARIANCE)
        noise_variance = tables.sigma_of(j, child) ** 2 * np.bincount(parent.groups)[:, None]
        # A rare value may have a far larger effect than the frequent ones that decide the mean.
        visible = np.maximum(np.abs(excess) - np.sqrt(noise_variance), 0.0)
        own_variance = np.square(visible / np.maximum(independent, 1.0))
        signal_variance = np.maximum(effect_variance, own_variance) * np.maximum(expected, 1.0)
        evidence.append(
            ParentEvidence(
                groups=in_configurations,
                # The pool has about the parent's margin. All parents agree on the child's, or no
                # θ would reach their targets.
                target=rake(table * (in_pool / table.sum(axis=1))[:, None], in_pool, margin),
                expected=expected,
                penalty=_PENALTY_FACTOR * noise_variance / signal_variance + _MIN_PENALTY,
            )
        )
    return evidence, weights


def _pool_distributions(
    fitted: LogLinear, parents: Sequence[_Parent], groups: Sequence[Indices], records: int
) -> tuple[Reals, Indices]:
    """Compute the distributions of the records of the pool: distinct ones, and that of each."""
    if not groups:
        return softmax(fitted.base[None, :]), np.zeros(records, dtype=np.intp)
    first, _, index = _distinct_configurations(parents, groups)
    return softmax(fitted.logits([group[first] for group in groups])), index


def _distinct_configurations(
    parents: Sequence[_Parent], groups: Sequence[Indices]
) -> tuple[Indices, Indices, Indices]:
    """Find the distinct configurations of the parents in the pool.

    Returns:
        The first record of each, the number of its records, and the configuration of each record.
        With very many possible configurations, each record is its own.
    """
    sizes = [parent.group_count for parent in parents]
    if math.prod(sizes) > _MAX_NUMBERED_CONFIGURATIONS:
        every = np.arange(len(groups[0]))
        return every, np.ones(len(every), dtype=np.intp), every
    numbers = np.ravel_multi_index(tuple(groups), sizes)
    _, first, index, repeats = np.unique(
        numbers, return_index=True, return_inverse=True, return_counts=True
    )
    return first, repeats, index


def _given_distributions(
    given: Network, measured: PairwiseMeasurements, pool: Indices, index: Indices, child: int
) -> Reals:
    """Compute the distributions of a child's bins that a network has for the records of a pool.

    Args:
        given: The network.
        measured: The noisy counts.
        pool: The bins of the records.
        index: The number of each record's distribution: one is computed for each number.
        child: The attribute.
    """
    records = pool[np.unique(index, return_index=True)[1]]
    # A code of each bin: the groups of a network's parents are unions of bins.
    codes = np.empty(records.shape, dtype=np.uint16, order="F")
    for j, bins in enumerate(measured.bins):
        codes[:, j] = np.flatnonzero(np.diff(bins, prepend=-1))[records[:, j]]
    by_value = np.exp(given.log_distribution(codes, child))
    return sum_row_groups(measured.bins[child], by_value.T).T


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
