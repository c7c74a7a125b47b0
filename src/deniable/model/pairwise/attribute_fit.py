"""Fit one attribute of a network, given the records drawn so far: parents, evidence, model.

An attribute is fitted to its two-way tables with each parent, then to three-way interactions that
pairs do not explain. Last, its distribution in the pool is fitted to the one-way counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.bin_masks import AllowedPieces
from deniable.model.pairwise.denoise import DenoisedTables
from deniable.model.pairwise.loglinear import LogLinear, ParentEvidence, fit_loglinear
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.one_way import sum_row_groups
from deniable.model.pairwise.record_pool import (
    Configurations,
    Parent,
    RecordPool,
    fitted_distributions,
    is_wide,
)
from deniable.model.pairwise.shrinkage import rake
from deniable.model.pairwise.three_way_residuals import (
    divide_groups,
    find_residuals,
    triple_evidence,
)

# Steps of a fit; fewer if there are many attributes, more if it has few effects and is cheap.
_MAX_ITERATIONS = 60
_MAX_ITERATIONS_OF_SMALL_FIT = 180
_MAX_EFFECTS_OF_SMALL_FIT = 600
_MAX_ITERATIONS_OF_WIDE_TABLE = 30
# Tolerance of the first fit, to pairs alone, if it only serves to find three-way interactions that
# pairs do not explain.
_TOLERANCE_OF_FIRST_FIT = 1e-5
# Steps of proportional fitting after a fit, at most; they end when each share is met up to the
# tolerance. Odds change by this factor at most: noise can ask for shares that the constraints
# exclude, and then no factor is enough.
_MAX_MARGIN_STEPS = 10
_MARGIN_TOLERANCE = 1e-3
_MAX_MARGIN_FACTOR = 4.0
_POSITIVE_FLOOR = 1e-15
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


@dataclass(frozen=True)
class AttributeFit:
    """A fitted attribute, and its distributions in the records of the pool.

    Attributes:
        parents: The parents, including those in three-way interactions only.
        model: The model of its bins.
        allowed: The pieces of its bins that the constraints allow, with fitted shares.
        distributions: Distinct distributions of the pieces.
        index: The index of each record's distribution.
        classes: The class of what is allowed, by distribution.
    """

    parents: tuple[Parent, ...]
    model: LogLinear
    allowed: AllowedPieces
    distributions: Reals
    index: Indices
    classes: Indices


def fit_attribute(
    tables: DenoisedTables,
    measured: PairwiseMeasurements,
    child: int,
    earlier: Sequence[int],
    parents: tuple[Parent, ...],
    *,
    pool: RecordPool,
) -> AttributeFit:
    """Fit an attribute to pairs; then also to three-way interactions that pairs do not explain.

    The pool has the ``earlier`` attributes; ``parents`` are those of them that are chosen by pairs.
    """
    share, three_way = tables.bins[child], measured.three_way
    allowed = tables.masks.allowed(child, earlier, pool.pieces)
    found = pool.configurations(parents, allowed)
    evidence, weights = _parent_evidence(tables, child, parents, found)
    iterations = _max_iterations(len(tables.bins), evidence)
    fit = partial(fit_loglinear, share, iterations=iterations)
    fit_pairs = partial(fit, evidence, weights, allowed=allowed.in_fit(found.classes))
    if three_way is None or len(earlier) < 2:
        return _fit_margin(fit_pairs(), parents, found, allowed, share)
    fitted = fit_pairs(tolerance=_TOLERANCE_OF_FIRST_FIT)
    by_bin = allowed.sum_bins(fitted_distributions(fitted, found, allowed))
    residuals = find_residuals(
        tables, three_way, pool.bins, child=child, earlier=earlier, bins=by_bin[found.index]
    )
    if not residuals:
        return _fit_margin(fit_pairs(start=fitted), parents, found, allowed, share)
    own = {parent.attribute: parent.groups for parent in parents}
    own = divide_groups(own, residuals, three_way.groups)
    start = _divide_effects(fitted, parents, own)
    parents = tuple(
        Parent(attribute=j, groups=groups, group_count=int(groups.max()) + 1)
        for j, groups in own.items()
    )
    found = pool.configurations(parents, allowed)
    evidence, weights = _parent_evidence(tables, child, parents, found)
    triples = triple_evidence(residuals, three_way, child, own, found.groups)
    among = allowed.in_fit(found.classes)
    fitted = fit(evidence, weights, allowed=among, triples=triples, start=start)
    return _fit_margin(fitted, parents, found, allowed, share)


def _max_iterations(attributes: int, evidence: Sequence[ParentEvidence]) -> int:
    if is_wide(attributes):
        return _MAX_ITERATIONS_OF_WIDE_TABLE
    is_small = sum(each.target.size for each in evidence) <= _MAX_EFFECTS_OF_SMALL_FIT
    return _MAX_ITERATIONS_OF_SMALL_FIT if is_small else _MAX_ITERATIONS


def _fit_margin(
    fitted: LogLinear,
    parents: tuple[Parent, ...],
    found: Configurations,
    allowed: AllowedPieces,
    share: Reals,
) -> AttributeFit:
    """Scale the odds of the pieces until they have their own distribution among the records.

    A fit that ends early does not have that of the bins yet, and no fit has that of pieces which
    the constraints exclude in some records. By steps of iterative proportional fitting.
    """
    pieces = allowed.pieces
    distributions = fitted_distributions(fitted, found, allowed)
    target, factors = share[pieces.bins] * pieces.shares, np.ones(len(pieces.bins))
    weights = found.repeats / found.repeats.sum()
    for _ in range(_MAX_MARGIN_STEPS):
        ratio = target / np.maximum(weights @ distributions, _POSITIVE_FLOOR)
        if np.abs(ratio - 1).max() < _MARGIN_TOLERANCE:
            break
        before = factors
        factors = np.clip(factors * ratio, 1 / _MAX_MARGIN_FACTOR, _MAX_MARGIN_FACTOR)
        distributions *= factors / before
        distributions /= distributions.sum(axis=1, keepdims=True)
    scaled = pieces.shares * factors
    of_bins = np.bincount(pieces.bins, scaled)
    pieces = replace(pieces, shares=scaled / of_bins[pieces.bins])
    model = replace(fitted, base=fitted.base + np.log(of_bins))
    allowed = replace(allowed, pieces=pieces)
    return AttributeFit(parents, model, allowed, distributions, found.index, found.classes)


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
    found: Configurations,
) -> tuple[list[ParentEvidence], Reals]:
    """Compute target counts and penalties by parent, and the weight of each configuration."""
    weights: Reals = found.repeats.astype(np.float64) * (tables.records / len(found.index))
    margin = weights.sum() * tables.bins[child]
    factor = _PENALTY_FACTOR * tables.relative_noise
    evidence = []
    for parent, in_configurations in zip(parents, found.groups, strict=True):
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
