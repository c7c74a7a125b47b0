"""Penalty of the effects of a log-linear fit: a ridge, less along trends, more beyond a limit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Reals
from deniable.model.pairwise.trends import TrendDirections

# The share of the ridge that effects have along a visible trend. Without any, the effects of rare
# groups may grow without end.
_TREND_RIDGE_SHARE = 0.03
# Effects beyond this limit have a further ridge: a factor of e^6 is as good as never. Noisy tables
# of several parents may contradict each other; the likelihood then grows with the effects for ever.
_MAX_FREE_EFFECT = 6.0
_RIDGE_BEYOND_LIMIT = 10.0


@dataclass(frozen=True)
class EffectPenalty:
    """Penalty of the effects of all parents, stacked: groups by values.

    Attributes:
        ridge: The ridge penalty of each effect.
        trends: The rows of the effects whose parent has a visible trend, and its direction.
    """

    ridge: Reals
    trends: tuple[tuple[slice, TrendDirections], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, ridges: Sequence[Reals], trends: Sequence[TrendDirections]) -> "EffectPenalty":
        """Stack the ridge penalties of all parents; each may have a visible trend."""
        ends = np.cumsum([len(ridge) for ridge in ridges]).tolist()
        rows = [slice(end - len(ridge), end) for end, ridge in zip(ends, ridges, strict=True)]
        pairs = zip(rows, trends, strict=True)
        return cls(np.concatenate(ridges), tuple((r, t) for r, t in pairs if not t.is_empty))

    def loss(self, effects: Reals) -> tuple[float, Reals]:
        """Compute the penalty and its gradient."""
        reduced = self._reduce_trends(effects)
        beyond = effects - np.clip(effects, -_MAX_FREE_EFFECT, _MAX_FREE_EFFECT)
        value = float((self.ridge * reduced * reduced).sum())
        value += _RIDGE_BEYOND_LIMIT * float((beyond * beyond).sum())
        gradient = self._reduce_trends(self.ridge * reduced)
        return value / 2, gradient + _RIDGE_BEYOND_LIMIT * beyond

    def _reduce_trends(self, effects: Reals) -> Reals:
        """Scale effects along visible trends by √share, a symmetric map, so that they cost less."""
        if not self.trends:
            return effects
        reduced = effects.copy()
        for rows, trend in self.trends:
            reduced[rows] -= (1 - math.sqrt(_TREND_RIDGE_SHARE)) * trend.project(effects[rows])
        return reduced
