"""Fit a penalised log-linear model of one attribute given its parents, by L-BFGS.

    Pr{x = l | z_1, …, z_p} ∝ exp(b_l + Σ_j θ_j[z_j, l])

There is one effect table θ_j per parent, estimated from the denoised two-way table of parent and
attribute. How often configurations of the parents occur is estimated from records that the model
has drawn so far. Visible three-way interactions add effects of two parents together
(``three_way_effects``). A ridge penalty from the known variance of the noise shrinks θ toward zero:
effects that noise could explain stay near zero.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.pairwise.one_hot_design import Floats, OneHotDesign
from deniable.model.pairwise.three_way_effects import TripleDesign, TripleEffect, TripleEvidence

# Maps a point to the value and the gradient of a function.
Loss = Callable[[Reals], tuple[float, Reals]]
_LOSS_TOLERANCE = 1e-6
_GRADIENT_TOLERANCE = 7e-7
_LBFGS_MEMORY = 8
# Wolfe conditions of the line search: the least share of the predicted decrease that a step must
# achieve, and the largest share of the slope that may remain.
_MIN_DECREASE = 1e-4
_MAX_SLOPE_RATIO = 0.9
_MAX_LINE_SEARCH_STEPS = 20
# Parents are looked up together while they have at most this many joint groups.
_MAX_JOINT_GROUPS = 512
# Columns up to which maxima of rows are found faster in a transposed copy.
_MAX_SHORT_ROW = 64


@dataclass(frozen=True, kw_only=True)
class ParentEvidence:
    """Denoised counts of one parent and the attribute.

    Attributes:
        groups: The parent's group in each configuration.
        target: The counts that the fitted model should have, groups by values.
        expected: The counts expected under independence.
        penalty: The ridge penalty of each entry of θ.
    """

    groups: Indices
    target: Reals
    expected: Reals
    penalty: Reals


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
            total += effect[group]
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
    triples: Sequence[TripleEvidence] = (),
    start: LogLinear | None = None,
) -> LogLinear:
    """Fit the log-linear model by maximum penalised likelihood.

    Args:
        share: The attribute's own distribution; all positive.
        evidence: One entry per parent.
        weights: The number of records with each configuration of the parents.
        iterations: The largest number of steps.
        triples: One entry per effect of two parents.
        start: A model of the same parents that may be near; its effects of two parents are not
            used. The default is that of independence.
    """
    if not evidence:
        return LogLinear(base=np.log(share), effects=())
    design = TripleDesign.of(triples, weights) if triples else None
    problem = _Objective.of(share, evidence, weights, design)
    first = np.zeros(problem.size) if start is None else problem.scaled(start)
    # Parameters are scaled to unit curvature of the total loss; the loss is per record.
    curvature = 1 / float(weights.sum())
    found = minimise(
        problem.loss,
        first,
        curvature=curvature,
        iterations=iterations,
        tolerance=_LOSS_TOLERANCE,
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

    Attributes:
        base: b before fitting: logarithms of the attribute's distribution.
        joint: One-hot joint groups of several parents each, by configuration.
        members: One-hot groups of the single parents, by joint group.
        target: Target counts of all θ.
        base_target: Target counts of b.
        penalty: Ridge penalties of all θ.
        scale: Scale of each θ.
        base_scale: Scale of each b.
        weights: Records with each configuration.
        first_groups: The number of groups of the first parent.
        pair_size: The number of parameters of b and θ.
        triples: Effects of two parents; None if there are none.
    """

    base: Reals
    joint: OneHotDesign
    members: OneHotDesign
    target: Reals
    base_target: Reals
    penalty: Reals
    scale: Reals
    base_scale: Reals
    weights: Reals
    first_groups: int
    pair_size: int
    triples: TripleDesign | None

    @classmethod
    def of(
        cls,
        share: Reals,
        evidence: Sequence[ParentEvidence],
        weights: Reals,
        triples: TripleDesign | None = None,
    ) -> "_Objective":
        joint, members = _joint_design(evidence)
        expected = np.concatenate([each.expected for each in evidence])
        penalty = np.concatenate([each.penalty for each in evidence])
        base_target = weights.sum() * share
        return cls(
            base=np.log(share),
            joint=joint,
            members=members,
            target=np.concatenate([each.target for each in evidence]),
            base_target=base_target,
            penalty=penalty,
            scale=1 / np.sqrt(expected + penalty),
            base_scale=1 / np.sqrt(base_target),
            weights=weights,
            first_groups=len(evidence[0].target),
            pair_size=(len(expected) + 1) * len(share),
            triples=triples,
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
        return self.base + rows[0] * self.base_scale, rows[1:] * self.scale, joint

    def scaled(self, model: LogLinear) -> Reals:
        """Scale the b and θ of a model; without effects of two parents."""
        base, effects = (model.base - self.base) / self.base_scale, np.concatenate(model.effects)
        pairs = np.concatenate([base, (effects / self.scale).ravel()])
        return np.concatenate([pairs, np.zeros(self.size - self.pair_size)])

    def loss(self, scaled: Reals) -> tuple[float, Reals]:
        """Compute the loss per record and its gradient."""
        base, effects, joint_effects = self.parameters(scaled)
        shares = self.joint.times(self.members.times(effects.astype(np.float32)))
        shares += base.astype(np.float32)
        if self.triples:
            shares += self.triples.logits(joint_effects)
        # Not clipped: where no θ reaches the targets, the loss of clipped logits falls without end.
        largest = _row_maxima(shares)
        shares -= largest[:, None]
        np.exp(shares, out=shares)
        sums = _row_sums(shares)
        shares /= sums[:, None]
        fitted = self.members.transposed_times(self.joint.transposed_times(shares, self.weights))
        # Each configuration has one group of the first parent: summed, its rows count all records.
        base_fitted = fitted[: self.first_groups].sum(axis=0, dtype=np.float64)
        value = float(self.weights @ (np.log(sums.astype(np.float64)) + largest))
        value -= float((self.target * effects).sum() + (self.base_target * base).sum())
        value += 0.5 * float((self.penalty * effects * effects).sum())
        gradient = np.empty(self.size)
        rows = gradient[: self.pair_size].reshape(-1, len(base))
        rows[0] = (base_fitted - self.base_target) * self.base_scale
        rows[1:] = (fitted - self.target + self.penalty * effects) * self.scale
        if self.triples:
            more, joint_gradient = self.triples.loss(joint_effects, shares)
            value += more
            gradient[self.pair_size :] = joint_gradient.ravel()
        total = float(self.weights.sum())
        return value / total, gradient / total


def _joint_design(evidence: Sequence[ParentEvidence]) -> tuple[OneHotDesign, OneHotDesign]:
    """Number the joint groups of several parents, so that a configuration has few of them.

    Returns:
        The joint groups of each configuration, and the parents' groups in each joint group, as
        one-hot sparse matrices. Their product is the one-hot design of all parents.
    """
    columns: list[Indices] = []
    joint_members: list[list[tuple[int, Indices]]] = []
    sizes: list[int] = []
    start = 0
    for each in evidence:
        number, own = len(each.target), np.arange(len(each.target))
        if sizes and sizes[-1] * number <= _MAX_JOINT_GROUPS:
            columns[-1] = columns[-1] * number + each.groups
            before = [(offset, np.repeat(groups, number)) for offset, groups in joint_members[-1]]
            joint_members[-1] = [*before, (start, np.tile(own, sizes[-1]))]
            sizes[-1] *= number
        else:
            columns.append(each.groups)
            joint_members.append([(start, own)])
            sizes.append(number)
        start += number
    offsets = np.cumsum([0, *sizes])
    shifted = [column + offset for column, offset in zip(columns, offsets, strict=False)]
    rows = [np.stack([g + o for o, g in members], axis=1) for members in joint_members]
    joint = OneHotDesign.of([np.stack(shifted, axis=1)], columns=int(offsets[-1]))
    return joint, OneHotDesign.of(rows, columns=start)


def _row_maxima(shares: Floats) -> Floats:
    """Find the largest number of each row; of short rows ten times as fast as NumPy's maximum."""
    is_short = shares.shape[1] <= _MAX_SHORT_ROW
    maxima: Floats = np.ascontiguousarray(shares.T).max(axis=0) if is_short else shares.max(axis=1)
    return maxima


def _row_sums(shares: Floats) -> Floats:
    """Sum each row of 32-bit floats by a matrix product: ten times as fast as NumPy's sum.

    OpenBLAS's kernel for five columns computes with an uninitialised register and leaves it out of
    the result: the sums are right, but it sometimes raises a spurious "invalid value" warning.
    """
    with np.errstate(invalid="ignore"):
        sums: Floats = shares @ np.ones(shares.shape[1], dtype=np.float32)
    return sums


def minimise(
    loss: Loss, start: Reals, *, curvature: float, iterations: int, tolerance: float
) -> Reals:
    """Minimise a convex function by L-BFGS.

    Args:
        loss: The function and its gradient.
        start: The first point.
        curvature: Approximate curvature in every direction, used for the first step.
        iterations: The largest number of steps.
        tolerance: Stop when a step decreases the value by less than this, relative to the value
            or to 1, whichever is larger.
    """
    x, (value, gradient) = start, loss(start)
    history: deque[tuple[Reals, Reals]] = deque(maxlen=_LBFGS_MEMORY)
    for _ in range(iterations):
        if np.abs(gradient).max() <= _GRADIENT_TOLERANCE:
            break
        direction = -_inverse_hessian_product(history, gradient, curvature)
        step = _line_search(loss, x, direction, value=value, slope=float(gradient @ direction))
        if step is None:
            break
        change, new_value, new_gradient = step
        if float(change @ (new_gradient - gradient)) > 0:
            history.append((change, new_gradient - gradient))
        decrease, scale = value - new_value, max(abs(value), abs(new_value), 1.0)
        x, value, gradient = x + change, new_value, new_gradient
        if decrease <= tolerance * scale:
            break
    return x


def _line_search(
    loss: Loss, x: Reals, direction: Reals, *, value: float, slope: float
) -> tuple[Reals, float, Reals] | None:
    """Find a step that meets the Wolfe conditions, by bisection; None if rounding prevents it.

    Returns:
        The step, and the value and gradient after it.
    """
    lower, length, upper = 0.0, 1.0, np.inf
    for _ in range(_MAX_LINE_SEARCH_STEPS):
        change = length * direction
        new_value, gradient = loss(x + change)
        # Negated so that NaN counts as overshooting.
        if not new_value <= value + _MIN_DECREASE * length * slope:
            upper = length
        elif gradient @ direction < _MAX_SLOPE_RATIO * slope:
            lower = length
        else:
            return change, new_value, gradient
        length = (lower + upper) / 2 if upper < np.inf else 2 * lower
    return None


def _inverse_hessian_product(
    history: Iterable[tuple[Reals, Reals]], gradient: Reals, curvature: float
) -> Reals:
    """Multiply the gradient by the approximate inverse Hessian (L-BFGS two-loop recursion)."""
    changes = list(history)
    product = gradient.copy()
    weights = []
    for change, gradient_change in reversed(changes):
        weight = float(change @ product) / float(change @ gradient_change)
        product -= weight * gradient_change
        weights.append(weight)
    change, gradient_change = changes[-1] if changes else (gradient, curvature * gradient)
    product *= float(change @ gradient_change) / float(gradient_change @ gradient_change)
    for (change, gradient_change), weight in zip(changes, reversed(weights), strict=True):
        correction = float(gradient_change @ product) / float(change @ gradient_change)
        product += (weight - correction) * change
    return product
