"""Fit a Bayesian network to noisy two-way tables: drawing order, parents, distributions."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import Codes, Indices, Reals
from deniable.model.bayesian_network import Conditional, ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.denoise import DenoisedTables, candidate_parents, denoise_tables
from deniable.model.pairwise.loglinear import LogLinear, ParentEvidence, fit_loglinear
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import group_bins, sum_row_groups
from deniable.model.pairwise.record_pool import Parent, RecordPool, given_distributions
from deniable.model.pairwise.shrinkage import rake
from deniable.model.pairwise.three_way_residuals import (
    divide_groups,
    find_residuals,
    triple_evidence,
)
from deniable.schema.attribute import Attribute
from deniable.workers import count_cores

# Records drawn from the model while it is fitted, fewer if there are many attributes.
_POOL_RECORDS = 2**14
_POOL_RECORDS_OF_WIDE_TABLE = 2**12
_MAX_ATTRIBUTES_FOR_LARGE_POOL = 60
# Steps of a fit; fewer if there are many attributes, more if it has few effects and is cheap.
_MAX_ITERATIONS = 60
_MAX_ITERATIONS_OF_SMALL_FIT = 180
_MAX_EFFECTS_OF_SMALL_FIT = 600
_MAX_ITERATIONS_OF_WIDE_TABLE = 30
# Tolerance of the first fit, to pairs alone, if it only serves to find three-way interactions that
# pairs do not explain.
_TOLERANCE_OF_FIRST_FIT = 1e-5
# An attribute has at most this many parents, the strongest.
_MAX_PARENTS = 40
# The bins of a parent are merged into about this many groups.
_MAX_PARENT_GROUPS = 30
# Bounds a conditional table: configurations times values.
_MAX_TABLE_CELLS = 2**21
# Ridge penalty of an effect: this factor times noise variance / signal variance, plus a minimum.
# The signal variance is the mean over the pair's cells, or the cell's own if that is larger. The
# factor grows with the noise if that is larger than at ε = 1: weak relations are lost then anyway,
# and a stronger penalty brings all tables closer.
_PENALTY_FACTOR = 0.015
_MIN_PENALTY = 0.5
# Lower bound on the variance of an effect, for parents that have three-way interactions only.
_MIN_EFFECT_VARIANCE = 1e-5
# Added to the number of records in each group of a parent, so that margins are positive even if the
# pool has no record in a group.
_MIN_GROUP_RECORDS = 1e-6
# Lower bound on the target count of a cell, relative to its count under independence.
_MIN_TARGET_RATIO = 1e-3


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

    Post-processing: no cost. The drawing order is by number of bins, fewest first. The parents of
    an attribute are all earlier attributes that it measurably depends on. Its distribution is a
    table if the parents have at most ``max_cost`` configurations, else log-linear.

    Args:
        measured: The noisy counts.
        attributes: The domain of each column.
        max_cost: The largest number of parent configurations of a conditional table.
        prefixes: Records of the first attributes, in drawing order, to which later attributes are
            fitted: ``pool_records`` rows. By default, they are drawn from the model.
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

    For verification on another kind of computer. There, rounding changes a distribution slightly,
    then some of the records drawn from it, and then every later distribution more. Here records are
    drawn from ``network``: differences do not add up, and each distribution is compared alone.

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
    """Fit the attributes in drawing order, and draw each for a pool of synthetic records.

    Records are drawn from the model fitted so far, or from ``given``.
    """
    tables = denoise_tables(measured, attributes)
    order = sorted(range(len(attributes)), key=lambda i: (len(tables.bins[i]), i))
    pool = RecordPool.empty(pool_records(len(attributes)), len(attributes))
    parents: list[tuple[Parent, ...]] = [()] * len(attributes)
    conditionals: dict[int, Future[Conditional]] = {}
    length = 0 if prefixes is None else prefixes.shape[1]
    with ThreadPoolExecutor(count_cores()) as workers:
        chosen = {
            i: _choose_parents(tables, measured, attributes, i, order[:position])
            for position, i in enumerate(order)
        }
        fits = _FitsAhead(tables, measured, order, chosen, pool, workers)
        for position, i in enumerate(order):
            if prefixes is not None and position == length:
                pool.take_prefixes(prefixes, order, measured)
            # Prefixes replace the first columns of the pool: fits after them start only then.
            fits.start(position, length if position < length else len(order))
            parents[i], fitted = fits.result(i)
            size_limit = min(max_cost, max(_MAX_TABLE_CELLS // attributes[i].size, 1))
            within_bin = tables.values[i] / tables.bins[i][measured.bins[i]]
            conditionals[i] = workers.submit(
                _make_conditional, fitted, measured.bins[i], within_bin, size_limit
            )
            if i != order[-1]:
                distributions, index = pool.distributions(fitted, parents[i])
                if given is not None:
                    distributions = given_distributions(given, measured, pool, index, i)
                pool.draw(i, distributions, index)
    fitted_tables = tuple(conditionals[i].result() for i in range(len(attributes)))
    value_groups = tuple(_value_groups(own, measured) for own in parents)
    graph = Graph(tuple(tuple(parent.attribute for parent in own) for own in parents))
    return Network(attributes, graph, tuple(order), fitted_tables, value_groups)


@dataclass(frozen=True)
class _FitsAhead:
    """Fits of attributes in threads, each started as soon as the records it needs are drawn.

    A fit needs the pool's records of its parents; with three-way interactions, those of all earlier
    attributes. So attributes that do not depend on each other are fitted at the same time. What a
    fit reads does not change while it runs, so the result does not depend on when it starts.

    Attributes:
        tables: The denoised tables.
        measured: The noisy counts.
        order: The attributes in the order they are drawn.
        parents: The parents of each attribute that are chosen by pairs.
        pool: The records.
        workers: The threads.
        started: The fits that were started.
    """

    tables: DenoisedTables
    measured: PairwiseMeasurements
    order: Sequence[int]
    parents: Mapping[int, tuple[Parent, ...]]
    pool: RecordPool
    workers: ThreadPoolExecutor
    started: dict[int, Future[tuple[tuple[Parent, ...], LogLinear]]] = field(default_factory=dict)

    def start(self, drawn: int, end: int) -> None:
        """Start each fit before position ``end`` that needs only the first ``drawn`` attributes."""
        known = set(self.order[:drawn])
        for position, i in enumerate(self.order[:end]):
            earlier = self.order[:position]
            needed = {parent.attribute for parent in self.parents[i]}
            if self.measured.three_way is not None:
                needed = set(earlier)
            if i not in self.started and needed <= known:
                self.started[i] = self.workers.submit(
                    _fit_attribute,
                    self.tables, self.measured, i, earlier, self.parents[i], pool=self.pool,
                )  # fmt: skip

    def result(self, i: int) -> tuple[tuple[Parent, ...], LogLinear]:
        """Wait for the fit of an attribute; return its parents and its model."""
        return self.started[i].result()


def _value_groups(parents: Sequence[Parent], measured: PairwiseMeasurements) -> tuple[Indices, ...]:
    """Look up the group of each value of each parent."""
    return tuple(parent.groups[measured.bins[parent.attribute]] for parent in parents)


def _make_conditional(
    fitted: LogLinear, bins: Indices, within_bin: Reals, max_configurations: int
) -> Conditional:
    """Make a conditional table, prepared for drawing, or a log-linear distribution if too large.

    Args:
        fitted: The model of the attribute's bins.
        bins: The bin of each value.
        within_bin: The probability of each value given its bin.
        max_configurations: The largest number of rows of a table.
    """
    configurations = math.prod(len(effect) for effect in fitted.effects)
    if configurations > max_configurations:
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
) -> tuple[Parent, ...]:
    """Choose the attributes on which ``child`` depends, in ascending order.

    If the two-way table of a parent and the child was measured, the parent's groups are its bins,
    merged if there are many; else they are those between which interactions were measured.
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
            chosen.append(Parent(attribute=j, groups=groups, group_count=number))
    return tuple(chosen)


def _fit_attribute(
    tables: DenoisedTables,
    measured: PairwiseMeasurements,
    child: int,
    earlier: Sequence[int],
    parents: tuple[Parent, ...],
    *,
    pool: RecordPool,
) -> tuple[tuple[Parent, ...], LogLinear]:
    """Fit an attribute to pairs; then also to three-way interactions that pairs do not explain.

    The pool has the ``earlier`` attributes; ``parents`` are those of them that are chosen by pairs.
    Return all parents, including those in three-way interactions only, and the model of the bins.
    """
    share, three_way = tables.bins[child], measured.three_way
    evidence, weights = _parent_evidence(tables, child, parents, pool)
    iterations = _max_iterations(len(tables.bins), evidence)
    if three_way is None or len(earlier) < 2:
        return parents, fit_loglinear(share, evidence, weights, iterations=iterations)
    fitted = fit_loglinear(
        share, evidence, weights, iterations=iterations, tolerance=_TOLERANCE_OF_FIRST_FIT
    )
    distributions, index = pool.distributions(fitted, parents)
    residuals = find_residuals(
        tables, three_way, pool.bins, child=child, earlier=earlier, bins=distributions[index]
    )
    if not residuals:
        return parents, fit_loglinear(share, evidence, weights, iterations=iterations, start=fitted)
    own = {parent.attribute: parent.groups for parent in parents}
    own = divide_groups(own, residuals, three_way.groups)
    start = _divide_effects(fitted, parents, own)
    parents = tuple(
        Parent(attribute=j, groups=groups, group_count=int(groups.max()) + 1)
        for j, groups in own.items()
    )
    evidence, weights = _parent_evidence(tables, child, parents, pool)
    configurations = [each.groups for each in evidence]
    triples = triple_evidence(residuals, three_way, child, own, configurations)
    return parents, fit_loglinear(
        share, evidence, weights, iterations=iterations, triples=triples, start=start
    )


def _divide_effects(
    fitted: LogLinear, parents: Sequence[Parent], groups: Mapping[int, Indices]
) -> LogLinear:
    """Extend a model to more parents and to finer groups, without changing its distribution."""
    effects = {j: np.zeros((int(own.max()) + 1, len(fitted.base))) for j, own in groups.items()}
    for parent, effect in zip(parents, fitted.effects, strict=True):
        effects[parent.attribute][groups[parent.attribute]] = effect[parent.groups]
    return LogLinear(base=fitted.base, effects=tuple(effects.values()))


def _parent_evidence(
    tables: DenoisedTables,
    child: int,
    parents: Sequence[Parent],
    pool: RecordPool,
) -> tuple[list[ParentEvidence], Reals]:
    """Compute target counts and penalties by parent, and the weight of each configuration.

    Args:
        tables: The denoised tables.
        child: The attribute.
        parents: Its parents.
        pool: The records.
    """
    if not parents:
        return [], np.empty(0)
    configurations, repeats, _ = pool.configurations(parents)
    weights: Reals = repeats.astype(np.float64) * (tables.records / len(pool.bins))
    margin = weights.sum() * tables.bins[child]
    factor = _PENALTY_FACTOR * tables.relative_noise
    evidence = []
    for parent, in_configurations in zip(parents, configurations, strict=True):
        j = parent.attribute
        in_pool = np.full(parent.group_count, _MIN_GROUP_RECORDS)
        np.add.at(in_pool, in_configurations, weights)
        counts = sum_row_groups(parent.groups, tables.records * tables.bins[j][:, None])
        independent = counts * tables.bins[child]
        excess = sum_row_groups(parent.groups, tables.excess_of(j, child))
        table = np.maximum(independent + excess, _MIN_TARGET_RATIO * independent)
        expected = np.outer(in_pool, tables.bins[child])
        effect_variance = max(tables.effect_variance_of(j, child), _MIN_EFFECT_VARIANCE)
        noise_variance = tables.sigma_of(j, child) ** 2 * np.bincount(parent.groups)[:, None]
        # The mean effect is that of frequent values; a rare value may have a far larger one.
        visible = np.maximum(np.abs(excess) - np.sqrt(noise_variance), 0.0)
        own_variance = np.square(visible / np.maximum(independent, 1.0))
        signal_variance = np.maximum(effect_variance, own_variance) * np.maximum(expected, 1.0)
        evidence.append(
            ParentEvidence(
                groups=in_configurations,
                # All parents' targets have the same margin of the child, or no model could meet all
                # of them. The parent's margin is that of the pool, which is about the measured one.
                target=rake(table * (in_pool / table.sum(axis=1))[:, None], in_pool, margin),
                expected=expected,
                penalty=factor * noise_variance / signal_variance + _MIN_PENALTY,
                trends=tables.trends.of_effects(j, child, parent.groups),
            )
        )
    return evidence, weights
