"""Effects of pairs of parents in a log-linear model: what three-way interactions add.

    Pr{x = l | z} ∝ exp(b_l + Σ_j θ_j[z_j, l] + Σ_jk φ_jk[z_j, z_k, l])

φ is an array of groups by groups by the attribute's groups. Its sums along each axis are zero, so
that it adds nothing that two attributes alone could have.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.effect_tables import gather_pairs
from deniable.model.pairwise.one_hot_design import Floats, OneHotDesign


@dataclass(frozen=True, kw_only=True)
class TripleParents:
    """Two parents of an attribute, and groups of all three.

    Attributes:
        first: Position of a parent among the attribute's parents.
        second: Position of another, larger.
        first_groups: The group of each of the first parent's own groups.
        second_groups: The group of each of the second parent's own groups.
        child_groups: The group of each of the attribute's bins.
    """

    first: int
    second: int
    first_groups: Indices
    second_groups: Indices
    child_groups: Indices

    def joint(self, groups: Sequence[Indices]) -> Indices:
        """Number the joint group of both parents, given the own groups of all parents."""
        size = int(self.second_groups.max()) + 1
        first = self.first_groups[groups[self.first]]
        joint: Indices = first * size + self.second_groups[groups[self.second]]
        return joint


@dataclass(frozen=True, kw_only=True)
class TripleEvidence:
    """Target counts and penalties of one three-way interaction.

    Attributes:
        parents: The parents and groups.
        joint: The joint group of both parents in each configuration.
        target: The centred counts that the fitted model should have: groups of the first parent,
            of the second, and of the attribute.
        expected: The counts expected without the interaction.
        penalty: The ridge penalty of each entry of φ.
    """

    parents: TripleParents
    joint: Indices
    target: Reals
    expected: Reals
    penalty: Reals


@dataclass(frozen=True, kw_only=True)
class TripleEffect:
    """A fitted φ: joint groups of two parents by groups of the attribute."""

    parents: TripleParents
    effect: Reals

    def logits(self, groups: Sequence[Indices]) -> Reals:
        """Compute φ of each record and bin, given the own groups of all parents."""
        # The columns of a small table first, then whole rows of it.
        by_bin: Reals = self.effect[:, self.parents.child_groups]
        return by_bin.take(self.parents.joint(groups), axis=0)


@dataclass(frozen=True, kw_only=True)
class TripleDesign:
    """All φ of one attribute in the loss of a fit, in parameters scaled to unit curvature.

    Attributes:
        evidence: One entry per φ.
        starts: The first row of each φ, and the end of the last.
        joint: One-hot joint groups of several parents each, by configuration.
        members: One-hot joint groups of the pairs of parents, by joint group of several.
        to_groups: One-hot groups of the attribute, by bin.
        target: Target counts of all φ, stacked.
        penalty: Ridge penalties of all φ.
        scale: Scale of each φ.
    """

    evidence: Sequence[TripleEvidence]
    starts: Indices
    joint: OneHotDesign
    members: OneHotDesign
    to_groups: Floats
    target: Reals
    penalty: Reals
    scale: Reals

    @classmethod
    def of(cls, evidence: Sequence[TripleEvidence]) -> "TripleDesign":
        """Make the design of at least one triple."""
        groups = evidence[0].target.shape[2]
        starts = np.cumsum([0, *(each.target.size // groups for each in evidence)])
        joint, members = _joint_design(evidence, starts)
        child_groups = evidence[0].parents.child_groups
        target, expected, penalty = (
            np.concatenate([getattr(each, name).reshape(-1, groups) for each in evidence])
            for name in ("target", "expected", "penalty")
        )
        return cls(
            evidence=evidence,
            starts=starts,
            joint=joint,
            members=members,
            to_groups=np.eye(groups, dtype=np.float32)[child_groups],
            target=target,
            penalty=penalty,
            scale=1 / np.sqrt(expected + penalty),
        )

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.target.size

    def parameters(self, scaled: Reals) -> Reals:
        """Undo the scaling, and centre; return all φ, stacked."""
        return self._centre(scaled.reshape(self.target.shape) * self.scale)

    def sum_by_joint(self, effects: Reals) -> Floats:
        """Sum φ by joint group of several parents: joint groups by groups of the attribute."""
        return self.members.times(effects.astype(np.float32))

    def logits(self, by_joint: Floats, rows: slice, out: Floats | None = None) -> Floats:
        """Compute Σ φ of some configurations and each bin.

        Args:
            by_joint: The sums of φ by joint group.
            rows: A range of configurations.
            out: Where to put it. By default, it is new.
        """
        # A product, which is faster than a look-up of each bin's group.
        logits: Floats = np.matmul(self.joint.times(by_joint, rows), self.to_groups.T, out=out)
        return logits

    def add_counts(self, total: Floats, weights: Floats, factors: Floats, rows: slice) -> None:
        """Add fitted counts of some configurations to the total by joint group.

        Args:
            total: Joint groups by groups of the attribute.
            weights: A multiple of each configuration's distribution.
            factors: The records of each configuration, divided by that multiple.
            rows: A range of configurations.
        """
        self.joint.add_transposed_times(total, weights @ self.to_groups, factors, rows)

    def loss(self, effects: Reals, by_joint: Floats) -> tuple[float, Reals]:
        """Compute the terms of φ in the loss, apart from the logits, and the gradient in φ.

        Args:
            effects: All φ, stacked.
            by_joint: Fitted counts by joint group of several parents.
        """
        fitted = self.members.transposed_times(by_joint)
        value = 0.5 * float((self.penalty * effects * effects).sum())
        value -= float((self.target * effects).sum())
        return value, self._centre(fitted - self.target + self.penalty * effects) * self.scale

    def split(self, effects: Reals) -> tuple[TripleEffect, ...]:
        """Split the stacked φ into the effects of single pairs of parents."""
        parts = np.split(effects, self.starts[1:-1])
        pairs = zip(self.evidence, parts, strict=True)
        return tuple(TripleEffect(parents=each.parents, effect=part) for each, part in pairs)

    def _centre(self, rows: Reals) -> Reals:
        centred = np.empty(rows.shape)
        for each, start, end in zip(self.evidence, self.starts, self.starts[1:], strict=False):
            # One small matrix product is faster than the means along three axes.
            flat = _centring_matrix(each.target.shape) @ rows[start:end].ravel()
            centred[start:end] = flat.reshape(-1, rows.shape[1])
        return centred


def _joint_design(
    evidence: Sequence[TripleEvidence], starts: Indices
) -> tuple[OneHotDesign, OneHotDesign]:
    """Number the joint groups of several parents, so that a configuration has few of them.

    A parent has the same groups in all φ.

    Args:
        evidence: One entry per φ.
        starts: The first row of each φ.

    Returns:
        The joint groups of each configuration, and the rows of φ in each joint group. Their product
        is the one-hot design of all φ.
    """
    pairs = [(each.parents.first, each.parents.second) for each in evidence]
    sizes, groups = [1] * (max(second for _, second in pairs) + 1), {}
    for (first, second), each in zip(pairs, evidence, strict=True):
        sizes[first], sizes[second] = each.target.shape[:2]
        groups[first], groups[second] = np.divmod(each.joint, sizes[second])
    columns, blocks, start = [], [], 0
    for part in gather_pairs(pairs, sizes):
        members = sorted({j for at in part for j in pairs[at]})
        shape = [sizes[j] for j in members]
        columns.append(start + np.ravel_multi_index([groups[j] for j in members], shape))
        of_member = dict(zip(members, np.indices(shape).reshape(len(shape), -1), strict=True))
        rows = [starts[at] + of_member[pairs[at][0]] * sizes[pairs[at][1]]
                + of_member[pairs[at][1]] for at in part]  # fmt: skip
        blocks.append(np.stack(rows, axis=1))
        start += math.prod(shape)
    joint = OneHotDesign.of([np.stack(columns, axis=1)], columns=start)
    return joint, OneHotDesign.of(blocks, columns=int(starts[-1]))


@cache
def _centring_matrix(shape: tuple[int, ...]) -> Reals:
    """The matrix that ``centre_axes`` multiplies a table of a shape by, flattened."""
    size = math.prod(shape)
    units = np.eye(size).reshape(size, *shape)
    return np.stack([centre_axes(unit).ravel() for unit in units], axis=1)


def centre_axes(table: Reals) -> Reals:
    """Subtract means along each axis, so that all sums along an axis are zero."""
    centred: Reals = np.asarray(table, dtype=np.float64)
    for axis in range(table.ndim):
        centred = centred - centred.mean(axis=axis, keepdims=True)
    return centred
