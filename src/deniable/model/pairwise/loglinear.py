"""Fit a penalised log-linear model of one attribute given its parents, by L-BFGS.

    Pr{x = l | z_1, …, z_p} ∝ exp(b_l + Σ_j θ_j[z_j, l])

There is one effect table θ_j per parent, estimated from the denoised two-way table of parent and
attribute. How often configurations of the parents occur is estimated from records that the model
has drawn so far. Visible three-way interactions add effects of two parents together
(``three_way_effects``). A ridge penalty from the known variance of the noise shrinks θ toward zero:
effects that noise could explain stay near zero. Trends that stand out from the noise are hardly
penalised (``trends``).
"""

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.effect_penalty import EffectPenalty
from deniable.model.pairwise.lbfgs import minimise
from deniable.model.pairwise.one_hot_design import Floats, OneHotDesign, joint_design
from deniable.model.pairwise.three_way_effects import TripleDesign, TripleEffect, TripleEvidence
from deniable.model.pairwise.trends import TrendDirections

# A fit ends when a step decreases the loss by less than this.
LOSS_TOLERANCE = 1e-6
# Configurations whose logits are computed at once.
_CONFIGURATIONS_PER_BLOCK = 4096
# From this number of configurations times bins on, each half is computed by a thread.
_MIN_CELLS_FOR_HALVES = 2**17
# Logits between ± this have exponentials that 32 bits can hold, and sums of them.
_MAX_LOGIT = 60.0


@dataclass(frozen=True, kw_only=True)
class ParentEvidence:
    """Denoised counts of one parent and the attribute.

    Attributes:
        groups: The parent's group in each configuration.
        target: The counts that the fitted model should have, groups by values.
        expected: The counts expected under independence.
        penalty: The ridge penalty of each entry of θ.
        trends: The direction of a visible trend, which is hardly penalised.
    """

    groups: Indices
    target: Reals
    expected: Reals
    penalty: Reals
    trends: TrendDirections = field(default_factory=TrendDirections)


@dataclass(frozen=True, kw_only=True)
class LogLinear:
    """A fitted log-linear model: ``base`` is b; ``effects`` has θ per parent, groups by values.

    ``triples`` are the effects of two parents together.
    """

    base: Reals
    effects: tuple[Reals, ...]
    triples: tuple[TripleEffect, ...] = ()

    def logits(self, groups: Sequence[Indices]) -> Reals:
        """Compute b + Σ θ of each record, given the groups of its parents."""
        records = len(groups[0]) if groups else 1
        total: Reals = np.tile(self.base, (records, 1))
        for effect, group in zip(self.effects, groups, strict=True):
            # Faster than by brackets.
            total += effect.take(group, axis=0)
        for triple in self.triples:
            total += triple.logits(groups)
        return total

    def table(self) -> Reals:
        """Compute the distribution given each configuration; the last parent varies fastest."""
        total = self.base[None, :]
        for effect in self.effects:
            total = (total[:, None, :] + effect[None, :, :]).reshape(-1, len(self.base))
        if self.triples:
            sizes = [len(effect) for effect in self.effects]
            groups = np.unravel_index(np.arange(len(total)), sizes)
            for triple in self.triples:
                total += triple.logits(groups)
        return softmax(total)


def fit_loglinear(
    share: Reals,
    evidence: Sequence[ParentEvidence],
    weights: Reals,
    *,
    iterations: int = 60,
    tolerance: float = LOSS_TOLERANCE,
    triples: Sequence[TripleEvidence] = (),
    start: LogLinear | None = None,
    allowed: Reals | None = None,
) -> LogLinear:
    """Fit the log-linear model by maximum penalised likelihood.

    Args:
        share: The attribute's own distribution; all positive.
        evidence: One entry per parent.
        weights: The number of records with each configuration of the parents.
        iterations: The largest number of steps.
        tolerance: The least decrease of a step, as for ``minimise``.
        triples: One entry per effect of two parents.
        start: A model of the same parents that may be near; its effects of two parents are not
            used. The default is that of independence.
        allowed: What the constraints add to the logits, configurations by values; it is no part of
            the model. None: nothing.
    """
    if not evidence:
        return LogLinear(base=np.log(share), effects=())
    design = TripleDesign.of(triples) if triples else None
    problem = _Objective.of(share, evidence, weights, design, allowed)
    first = np.zeros(problem.size) if start is None else problem.scaled(start)
    # Parameters are scaled to unit curvature of the total loss; the loss is per record.
    curvature = 1 / float(weights.sum())
    with ThreadPoolExecutor(1) as second_thread:
        loss = partial(problem.loss, second_thread=second_thread)
        found = minimise(
            loss, first, curvature=curvature, iterations=iterations, tolerance=tolerance
        )
    base, effects, joint_effects = problem.parameters(found)
    ends = np.cumsum([len(each.target) for each in evidence])[:-1]
    fitted = problem.triples.split(joint_effects) if problem.triples else ()
    return LogLinear(base=base, effects=tuple(np.split(effects, ends)), triples=fitted)


def softmax(logits: Reals) -> Reals:
    """Apply softmax to each row."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Reals = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


@dataclass(frozen=True, kw_only=True)
class _Objective:
    """Penalised negative log-likelihood per record, in parameters scaled to unit curvature.

    The first parameters are b plus the mean of each parent's θ over its groups. So θ does not move
    the mean distribution, and a fit needs fewer steps.

    Attributes:
        base: b before fitting: logarithms of the attribute's distribution.
        joint: One-hot joint groups of several parents each, by configuration.
        members: One-hot groups of the single parents, by joint group.
        target: Target counts of all θ.
        base_target: Target counts of b.
        penalty: Penalty of all θ.
        scale: Scale of each θ.
        base_scale: Scale of each b.
        group_shares: The share of each group of each parent, stacked.
        weights: Records with each configuration.
        first_groups: The number of groups of the first parent.
        first_joint_groups: The number of joint groups of the first few parents.
        pair_size: The number of parameters of b and θ.
        triples: Effects of two parents; None if there are none.
        allowed: What the constraints add to the logits; None: nothing.
        buffers: Those of the first half of the configurations, and of the second.
    """

    base: Reals
    joint: OneHotDesign
    members: OneHotDesign
    target: Reals
    base_target: Reals
    penalty: EffectPenalty
    scale: Reals
    base_scale: Reals
    group_shares: Reals
    weights: Reals
    first_groups: int
    first_joint_groups: int
    pair_size: int
    triples: TripleDesign | None
    allowed: Floats | None
    buffers: tuple["_Buffers", "_Buffers"]

    @classmethod
    def of(
        cls,
        share: Reals,
        evidence: Sequence[ParentEvidence],
        weights: Reals,
        triples: TripleDesign | None = None,
        allowed: Reals | None = None,
    ) -> "_Objective":
        sizes = [len(each.target) for each in evidence]
        joint, members, first_joint_groups = joint_design([each.groups for each in evidence], sizes)
        expected = np.concatenate([each.expected for each in evidence])
        penalty = EffectPenalty.of([e.penalty for e in evidence], [e.trends for e in evidence])
        base_target = weights.sum() * share
        return cls(
            base=np.log(share),
            joint=joint,
            members=members,
            target=np.concatenate([each.target for each in evidence]),
            base_target=base_target,
            penalty=penalty,
            scale=1 / np.sqrt(expected + penalty.ridge),
            base_scale=1 / np.sqrt(base_target),
            group_shares=expected.sum(axis=1) / base_target.sum(),
            weights=weights,
            first_groups=len(evidence[0].target),
            first_joint_groups=first_joint_groups,
            pair_size=(len(expected) + 1) * len(share),
            triples=triples,
            allowed=None if allowed is None else allowed.astype(np.float32),
            buffers=(_Buffers(), _Buffers()),
        )

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.pair_size + (self.triples.size if self.triples else 0)

    def parameters(self, scaled: Reals) -> tuple[Reals, Reals, Reals]:
        """Undo the scaling; return b, all θ and all effects of two parents, stacked."""
        rows = scaled[: self.pair_size].reshape(-1, len(self.base))
        joint = scaled[self.pair_size :]
        joint = self.triples.parameters(joint) if self.triples else joint
        effects = rows[1:] * self.scale
        base = self.base + rows[0] * self.base_scale - self.group_shares @ effects
        return base, effects, joint

    def scaled(self, model: LogLinear) -> Reals:
        """Scale the b and θ of a model; without effects of two parents."""
        effects = np.concatenate(model.effects)
        base = (model.base + self.group_shares @ effects - self.base) / self.base_scale
        pairs = np.concatenate([base, (effects / self.scale).ravel()])
        return np.concatenate([pairs, np.zeros(self.size - self.pair_size)])

    def loss(self, scaled: Reals, second_thread: Executor | None = None) -> tuple[float, Reals]:
        """Compute the loss per record and its gradient; the same with one thread or two."""
        base, effects, joint_effects = self.parameters(scaled)
        fit = self._fit_counts(base, effects, joint_effects, second_thread)
        fitted = self.members.transposed_times(fit.counts)
        # Each configuration has one group of the first parent: summed, its rows count all records.
        base_fitted = fitted[: self.first_groups].sum(axis=0, dtype=np.float64)
        value = fit.normalisers
        value -= float((self.target * effects).sum() + (self.base_target * base).sum())
        penalty, penalty_gradient = self.penalty.loss(effects)
        value += penalty
        gradient = np.empty(self.size)
        rows = gradient[: self.pair_size].reshape(-1, len(base))
        base_gradient = base_fitted - self.base_target
        rows[0] = base_gradient * self.base_scale
        rows[1:] = fitted - self.target + penalty_gradient
        rows[1:] -= np.outer(self.group_shares, base_gradient)
        rows[1:] *= self.scale
        if self.triples:
            more, joint_gradient = self.triples.loss(joint_effects, fit.triple_counts)
            value += more
            gradient[self.pair_size :] = joint_gradient.ravel()
        total = float(self.weights.sum())
        return value / total, gradient / total

    def _fit_counts(
        self, base: Reals, effects: Reals, joint_effects: Reals, second_thread: Executor | None
    ) -> "_FittedCounts":
        """Compute the counts that the model has: of many configurations, in two halves."""
        by_group = self.members.times(effects.astype(np.float32))
        # Each configuration has one of the first joint groups, so b is added once.
        by_group[: self.first_joint_groups] += base.astype(np.float32)
        of_triples = self.triples.sum_by_joint(joint_effects) if self.triples else by_group[:0]
        rows = len(self.weights)
        sums, (one, two) = (by_group, of_triples), self.buffers
        if rows * len(base) < _MIN_CELLS_FOR_HALVES:
            return self._fit_rows(*sums, range(rows), one)
        half = range(rows // 2)
        other_half = (*sums, range(rows // 2, rows), two)
        if second_thread is None:
            return self._fit_rows(*sums, half, one).plus(self._fit_rows(*other_half))
        running = second_thread.submit(self._fit_rows, *other_half)
        return self._fit_rows(*sums, half, one).plus(running.result())

    def _fit_rows(
        self, by_group: Floats, of_triples: Floats, chosen: range, buffers: "_Buffers"
    ) -> "_FittedCounts":
        """Compute the counts of some configurations.

        Blocks of them stay in the processor's cache: three times as fast as all at once.

        Args:
            by_group: Logits by joint group.
            of_triples: The sums of the effects of two parents, by their joint group.
            chosen: The configurations.
            buffers: Arrays that nothing else uses at the same time; the result is in them.
        """
        counts, triple_counts = buffers.counts(by_group, of_triples)
        normalisers = 0.0
        for start in chosen[::_CONFIGURATIONS_PER_BLOCK]:
            rows = slice(start, min(start + _CONFIGURATIONS_PER_BLOCK, chosen.stop))
            logits, of_block = buffers.logits(rows.stop - start, by_group.shape[1])
            self.joint.times(by_group, rows, out=logits)
            if self.triples:
                logits += self.triples.logits(of_triples, rows, out=of_block)
            if self.allowed is not None:
                logits += self.allowed[rows]
            shift, sums = _exponentiate(logits)
            logarithms = np.log(sums.astype(np.float64)) + shift
            normalisers += float(self.weights[rows] @ logarithms)
            factors = self.weights[rows].astype(np.float32) / sums
            self.joint.add_transposed_times(counts, logits, factors, rows)
            if self.triples:
                self.triples.add_counts(triple_counts, logits, factors, rows)
        return _FittedCounts(normalisers, counts, triple_counts)


@dataclass(frozen=True)
class _FittedCounts:
    """What a model has in some configurations.

    Attributes:
        normalisers: The logarithm of each record's normaliser, summed.
        counts: Records by joint group and bin.
        triple_counts: Records by joint group of pairs of parents and group of bins.
    """

    normalisers: float
    counts: Floats
    triple_counts: Floats

    def plus(self, other: "_FittedCounts") -> "_FittedCounts":
        """Add those of other configurations, in place."""
        np.add(self.counts, other.counts, out=self.counts)
        np.add(self.triple_counts, other.triple_counts, out=self.triple_counts)
        normalisers = self.normalisers + other.normalisers
        return _FittedCounts(normalisers, self.counts, self.triple_counts)


class _Buffers:
    """Arrays for evaluations of a loss, which are used again.

    New arrays of a megabyte for each block took longer than the arithmetic whenever the C library
    returned their memory to the system in between.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}

    def logits(self, rows: int, bins: int) -> tuple[Floats, Floats]:
        """Two arrays of configurations by bins, with any content."""
        return self._array("logits", rows, bins), self._array("triples", rows, bins)

    def counts(self, by_group: Floats, of_triples: Floats) -> tuple[Floats, Floats]:
        """Arrays of zeros with the shapes of others."""
        counts = self._array("counts", *by_group.shape)
        triple_counts = self._array("triple counts", *of_triples.shape)
        counts.fill(0.0)
        triple_counts.fill(0.0)
        return counts, triple_counts

    def _array(self, name: str, rows: int, columns: int) -> Floats:
        found = self._arrays.get(name)
        if found is None or len(found) < rows:
            found = self._arrays[name] = np.empty((rows, columns), dtype=np.float32)
        return found[:rows]


def _exponentiate(logits: Floats) -> tuple[Floats, Floats]:
    """Replace each row of logits by a multiple of its distribution, in place.

    Returns:
        The logarithm that was taken off each row, and the sums of the rows.
    """
    shift = np.zeros(len(logits), dtype=np.float32)
    # Negated so that NaN counts as too large.
    if not (logits.max() < _MAX_LOGIT and logits.min() > -_MAX_LOGIT):
        # Not clipped: where no θ reaches the targets, the loss of clipped logits falls without end.
        shift = logits.max(axis=1)
        logits -= shift[:, None]
    np.exp(logits, out=logits)
    return shift, _row_sums(logits)


def _row_sums(shares: Floats) -> Floats:
    """Sum each row of 32-bit floats by a matrix product: ten times as fast as NumPy's sum.

    OpenBLAS's kernel for five columns computes with an uninitialised register and leaves it out of
    the result: the sums are right, but it sometimes raises a spurious "invalid value" warning.
    """
    with np.errstate(invalid="ignore"):
        sums: Floats = shares @ np.ones(shares.shape[1], dtype=np.float32)
    return sums
