"""Fit a Bayesian network to noisy two-way tables: drawing order, parents, distributions."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from deniable.arrays import CODE, Codes, Indices, Reals
from deniable.model.bayesian_network import Conditional, ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.attribute_fit import AttributeFit, fit_attribute
from deniable.model.pairwise.bin_masks import BinMasks
from deniable.model.pairwise.denoise import DenoisedTables, candidate_parents, denoise_tables
from deniable.model.pairwise.loglinear import LogLinear
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import group_bins, sum_row_groups
from deniable.model.pairwise.record_pool import (
    Parent,
    RecordPool,
    pool_records,
)
from deniable.schema.attribute import Attribute
from deniable.schema.pair_masks import NO_MASKS, PairMasks
from deniable.workers import count_cores

# An attribute has at most this many parents, the strongest.
_MAX_PARENTS = 40
# The bins of a parent are merged into about this many groups.
_MAX_PARENT_GROUPS = 30
# Bounds a conditional table: configurations times values.
_MAX_TABLE_CELLS = 2**21


def fit_network(
    measured: PairwiseMeasurements,
    attributes: Sequence[Attribute],
    *,
    max_cost: int,
    prefixes: Codes | None = None,
    pair_masks: PairMasks = NO_MASKS,
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
        pair_masks: The combinations of two values that records are drawn with.
    """
    # The matrices are small: BLAS threads would cost more than they save, and might change the last
    # digits.
    with threadpool_limits(limits=1):
        return _fit_in_order(
            measured, tuple(attributes), max_cost, prefixes=prefixes, pair_masks=pair_masks
        )


def refit_network(
    measured: PairwiseMeasurements,
    network: Network,
    *,
    max_cost: int,
    prefixes: Codes | None = None,
    pair_masks: PairMasks = NO_MASKS,
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
        pair_masks: The combinations of two values that records are drawn with.
    """
    with threadpool_limits(limits=1):
        return _fit_in_order(
            measured,
            network.attributes,
            max_cost,
            network,
            prefixes=prefixes,
            pair_masks=pair_masks,
        )


def _fit_in_order(
    measured: PairwiseMeasurements,
    attributes: tuple[Attribute, ...],
    max_cost: int,
    given: Network | None = None,
    *,
    prefixes: Codes | None,
    pair_masks: PairMasks,
) -> Network:
    """Fit the attributes in drawing order, and draw each for a pool of synthetic records.

    Records are drawn from the model fitted so far, or from ``given``.
    """
    tables = denoise_tables(measured, attributes, pair_masks)
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
                pool.take_prefixes(prefixes, order, tables.masks)
            # Prefixes replace the first columns of the pool: fits after them start only then.
            fits.start(position, length if position < length else len(order))
            own = fits.result(i)
            parents[i] = own.parents
            size_limit = min(max_cost, max(_MAX_TABLE_CELLS // attributes[i].size, 1))
            within_bin = own.allowed.pieces.within_bins(tables.values[i])
            conditionals[i] = workers.submit(
                _make_conditional, own.model, measured.bins[i], within_bin, size_limit
            )
            if i != order[-1]:
                _draw_for_pool(pool, i, own, tables.masks, given)
    fitted_tables = tuple(conditionals[i].result() for i in range(len(attributes)))
    value_groups = tuple(_value_groups(own, measured) for own in parents)
    graph = Graph(tuple(tuple(parent.attribute for parent in own) for own in parents))
    return Network(attributes, graph, tuple(order), fitted_tables, value_groups)


def _draw_for_pool(
    pool: RecordPool, i: int, fitted: AttributeFit, masks: BinMasks, given: Network | None
) -> None:
    """Draw an attribute for the records of the pool, from its fit or from the ``given`` network."""
    distributions, bins = fitted.distributions, masks.pieces[i].bins
    if given is not None:
        records = pool.pieces[np.unique(fitted.index, return_index=True)[1]]
        # A code of each piece: the groups of a network's parents are unions of bins.
        codes = np.empty(records.shape, dtype=CODE, order="F")
        for j, own in enumerate(masks.pieces):
            codes[:, j] = own.first_code[records[:, j]]
        of_code = masks.pieces[i].of_code
        allowed = fitted.allowed.allowed[fitted.classes][:, of_code]
        distributions = sum_row_groups(of_code, given.distribution(codes, i, allowed).T).T
    pool.draw(i, distributions, fitted.index, bins)


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
    started: dict[int, Future[AttributeFit]] = field(default_factory=dict)

    def start(self, drawn: int, end: int) -> None:
        """Start each fit before position ``end`` that needs only the first ``drawn`` attributes."""
        known = set(self.order[:drawn])
        for position, i in enumerate(self.order[:end]):
            earlier = self.order[:position]
            needed = {parent.attribute for parent in self.parents[i]}
            needed.update(self.tables.masks.masked_with(i, earlier))
            if self.measured.three_way is not None:
                needed = set(earlier)
            if i not in self.started and needed <= known:
                self.started[i] = self.workers.submit(
                    fit_attribute,
                    self.tables, self.measured, i, earlier, self.parents[i], pool=self.pool,
                )  # fmt: skip

    def result(self, i: int) -> AttributeFit:
        """Wait for the fit of an attribute."""
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
