"""One attribute given others: a log-linear model, fitted to noisy tables of pairs.

    Pr{x = l | z_1, …, z_p} ∝ exp(b_l + Σ_j θ_j[z_j, l])

Each noisy pair table speaks of one θ_j; the other pairs are held against it by a pool of records
that the model has drawn so far. How far a table is believed follows from its noise, which is
known: an effect of variance τ is expected, and what the noise cannot tell from zero stays near it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Indices, Reals
from deniable.model.descent import minimise

_ITERATIONS = 60
_TOLERANCE = 1e-7
# Logarithms beyond it would leave the range of 32-bit numbers when raised.
_FAR = 80.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known of one parent and the attribute.

    Attributes:
        groups: The parent's group in each configuration.
        wanted: The counts, groups by values, that the fitted model should have.
        expected: The counts if the two were independent.
        penalty: How firmly each θ is held at zero.
    """

    groups: Indices
    wanted: Reals
    expected: Reals
    penalty: Reals


@dataclass(frozen=True, kw_only=True)
class LogLinear:
    """The fitted model: b, and θ of each parent, groups by values."""

    base: Reals
    effects: tuple[Reals, ...]

    def logits(self, groups: Sequence[Indices]) -> Reals:
        """Return b + Σ θ of each record, given the groups of its parents."""
        records = len(groups[0]) if groups else 1
        total: Reals = np.tile(self.base, (records, 1))
        for effect, group in zip(self.effects, groups, strict=True):
            total += effect[group]
        return total

    def table(self) -> Reals:
        """Return the distribution under each configuration of the parents, the last one fastest."""
        total = self.base[None, :]
        for effect in self.effects:
            total = (total[:, None, :] + effect[None, :, :]).reshape(-1, len(self.base))
        return softmax(total)


def softmax(logits: Reals) -> Reals:
    """Return each row as a distribution."""
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    rows: Reals = grown / grown.sum(axis=1, keepdims=True)
    return rows


def _totals(shares: Any) -> Any:
    """Return the sum of each row of 32-bit numbers, ten times as fast as by NumPy's own sum.

    OpenBLAS's kernel for five columns computes with a register it never set and leaves it out of
    the result: the sums are right, but now and then it says "invalid value" of what lay there.
    """
    with np.errstate(invalid="ignore"):
        return shares @ np.ones(shares.shape[1], dtype=np.float32)


def fit_loglinear(share: Reals, evidence: Sequence[Evidence], weights: Reals) -> LogLinear:
    """Return the model that agrees with the evidence as far as it can be believed.

    The maximum of the penalised likelihood, by L-BFGS.

    Args:
        share: The attribute's own distribution; none zero.
        evidence: One entry for each parent.
        weights: How many records have each configuration of the parents.
    """
    if not evidence:
        return LogLinear(base=np.log(share), effects=())
    problem = _Problem.of(share, evidence, weights)
    start = np.zeros((problem.rows + 1) * len(share))
    # Parameters are scaled to a curvature of one, and the loss is by the record.
    curvature = 1 / float(weights.sum())
    found = minimise(
        problem.loss, start, curvature=curvature, iterations=_ITERATIONS, tolerance=_TOLERANCE
    )
    base, effects = problem.parameters(found)
    ends = np.cumsum([len(each.wanted) for each in evidence])[:-1]
    return LogLinear(base=base, effects=tuple(np.split(effects, ends)))


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """The loss to minimise, in parameters scaled by their expected curvature."""

    base: Reals
    design: Any
    weighted: Any
    wanted: Reals
    own: Reals
    penalty: Reals
    scale: Reals
    own_scale: Reals
    weights: Reals
    first: int

    @classmethod
    def of(cls, share: Reals, evidence: Sequence[Evidence], weights: Reals) -> "_Problem":
        from scipy.sparse import csr_matrix, diags  # noqa: PLC0415

        starts = np.cumsum([0, *(len(each.wanted) for each in evidence)])
        columns = np.stack([e.groups + at for e, at in zip(evidence, starts, strict=False)], axis=1)
        size, parents = columns.shape
        ones = np.ones(columns.size, dtype=np.float32)
        ends = np.arange(size + 1) * parents
        design = csr_matrix((ones, columns.ravel(), ends), shape=(size, int(starts[-1])))
        expected = np.concatenate([each.expected for each in evidence])
        penalty = np.concatenate([each.penalty for each in evidence])
        own = weights.sum() * share
        return cls(
            base=np.log(share),
            design=design,
            weighted=(design.T @ diags(weights.astype(np.float32))).tocsr(),
            wanted=np.concatenate([each.wanted for each in evidence]),
            own=own,
            penalty=penalty,
            scale=1 / np.sqrt(expected + penalty),
            own_scale=1 / np.sqrt(own),
            weights=weights,
            first=len(evidence[0].wanted),
        )

    @property
    def rows(self) -> int:
        """How many groups all parents have together."""
        return len(self.wanted)

    def parameters(self, scaled: Reals) -> tuple[Reals, Reals]:
        """Return b and all θ, one below the other."""
        rows = scaled.reshape(-1, len(self.base))
        return self.base + rows[0] * self.own_scale, rows[1:] * self.scale

    def loss(self, scaled: Reals) -> tuple[float, Reals]:
        """Return the loss and its gradient, by the record."""
        base, effects = self.parameters(scaled)
        shares = self.design @ effects.astype(np.float32)
        shares += base.astype(np.float32)
        np.clip(shares, -_FAR, _FAR, out=shares)
        np.exp(shares, out=shares)
        sums = _totals(shares)
        shares /= sums[:, None]
        fitted = self.weighted @ shares
        # Each configuration has one group of the first parent: its rows sum to all records.
        own = fitted[: self.first].sum(axis=0, dtype=np.float64)
        value = float(self.weights @ np.log(sums.astype(np.float64)))
        value -= float((self.wanted * effects).sum() + (self.own * base).sum())
        value += 0.5 * float((self.penalty * effects * effects).sum())
        gradient = np.empty((self.rows + 1, len(base)))
        gradient[0] = (own - self.own) * self.own_scale
        gradient[1:] = (fitted - self.wanted + self.penalty * effects) * self.scale
        records = float(self.weights.sum())
        return value / records, gradient.ravel() / records
