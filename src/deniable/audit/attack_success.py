"""Success of an attack that scores targets, with intervals, next to what (ε, δ) allows."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.special import stdtrit
from scipy.stats import binom, rankdata

from deniable.arrays import Indices, Mask, Reals
from deniable.audit.binomial_bounds import lower_rate, upper_rate
from deniable.audit.trade_off import allowed_by_guarantee, area_below
from deniable.errors import InvariantError
from deniable.evaluation.intervals import Interval

# Probability that chance alone takes a figure above its limit and counts as exceeding it.
EXCEEDED_CHANCE = 1e-5
# Groups of runs that are left out once each: as many, or as there are runs.
_MAX_GROUPS = 40
# False positive rates at which true positives are reported.
FALSE_POSITIVE_RATES = (0.01, 0.001)


@dataclass(frozen=True, kw_only=True)
class AttackTrials:
    """Scores of one attack, one per trial: a target that was, or was not, in the table.

    Attributes:
        scores: Larger if the attacker thinks that the target is in the table.
        present: Whether it was.
        targets: Number of the target.
        runs: Number of the run. Trials of one run share its noise.
    """

    scores: Reals = field(repr=False)
    present: Mask = field(repr=False)
    targets: Indices = field(repr=False)
    runs: Indices = field(repr=False)

    def __post_init__(self) -> None:
        if not np.isfinite(self.scores).all():
            raise InvariantError("an attack has a score that is not a number")

    def of(self, chosen: Mask) -> "AttackTrials":
        """Select the trials of some targets."""
        among = chosen[self.targets]
        return AttackTrials(
            scores=self.scores[among],
            present=self.present[among],
            targets=self.targets[among],
            runs=self.runs[among],
        )

    def without_group(self, group: int, groups: int) -> "AttackTrials":
        """Leave out one group of runs, for a jackknife."""
        kept = self.runs % groups != group
        return AttackTrials(
            scores=self.scores[kept],
            present=self.present[kept],
            targets=self.targets[kept],
            runs=self.runs[kept],
        )

    @property
    def has_both(self) -> bool:
        """Whether there are trials with and without the target."""
        return bool(self.present.any() and not self.present.all())


@dataclass(frozen=True, kw_only=True)
class AttackRate:
    """One figure of an attack's success.

    Attributes:
        estimate: The figure; None if there were too few trials for it.
        interval: 95 % interval.
        allowed: The largest value that (ε, δ) allows; None if nothing is promised.
        proven: Lower bound that chance explains with probability ``EXCEEDED_CHANCE``.
    """

    estimate: float | None
    interval: Interval
    allowed: float | None
    proven: float = 0.0

    @property
    def exceeds(self) -> bool:
        """Whether the measured figure exceeds its limit at a very high confidence.

        Many figures are compared with their limits, so each needs far more than 95 %.
        """
        return self.allowed is not None and self.proven > self.allowed

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "estimate": self.estimate,
            "interval": list(self.interval),
            "allowed": self.allowed,
        }


@dataclass(frozen=True, kw_only=True)
class AttackSuccess:
    """Success of one attack on some targets.

    Attributes:
        auc: Area under the curve of true against false positives: ½ is guessing.
        true_positives: The true positive rate at each false positive rate.
        trials: The numbers of trials with and without the target.
    """

    auc: AttackRate
    true_positives: dict[float, AttackRate]
    trials: tuple[int, int]

    @property
    def exceeds(self) -> bool:
        """Whether a figure is above what is allowed."""
        return self.auc.exceeds or any(rate.exceeds for rate in self.true_positives.values())

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "trials": {"with": self.trials[0], "without": self.trials[1]},
            "auc": self.auc.document(),
            "true_positives": {
                f"{rate:g}": found.document() for rate, found in self.true_positives.items()
            },
        }


def measure_success(trials: AttackTrials, *, epsilon: float, delta: float) -> AttackSuccess:
    """Measure AUC, by a jackknife over runs, and true positives, by order statistics.

    Args:
        trials: The trials; runs are independent of each other.
        epsilon: ε of the promise; infinite if nothing is promised.
        delta: δ of the promise.
    """
    members = int(trials.present.sum())
    others = len(trials.present) - members
    curve = partial(allowed_by_guarantee, epsilon=epsilon, delta=delta)
    rates = {
        rate: _measure_rate(trials, rate, allowed=_limit(float(curve(np.array([rate]))[0])))
        for rate in FALSE_POSITIVE_RATES
    }
    limit = None if math.isinf(epsilon) else _limit(area_below(curve))
    return AttackSuccess(
        auc=_measure_area(trials, allowed=limit), true_positives=rates, trials=(members, others)
    )


def _limit(allowed: float) -> float | None:
    return allowed if allowed < 1 else None


def _measure_area(trials: AttackTrials, *, allowed: float | None) -> AttackRate:
    """Measure AUC: runs are left out in groups, since trials of one run share its noise."""
    if not trials.has_both:
        return AttackRate(estimate=None, interval=(0.0, 1.0), allowed=allowed)
    estimate = roc_auc(trials)
    groups = min(_MAX_GROUPS, len(np.unique(trials.runs)))
    parts = [trials.without_group(group, groups) for group in range(groups)]
    left_out = np.array([roc_auc(part) for part in parts if part.has_both])
    spread = float(((left_out - left_out.mean()) ** 2).sum()) if len(left_out) else 0.0
    # At least that of a few trials, which may agree by chance.
    error = max(math.sqrt(spread * (groups - 1) / groups), 1 / len(trials.scores))
    # Student's distribution, since the error is estimated from few groups.
    half, doubt = (float(stdtrit(max(groups - 1, 1), p)) for p in (0.975, 1 - EXCEEDED_CHANCE))
    return AttackRate(
        estimate=estimate,
        interval=(max(estimate - half * error, 0.0), min(estimate + half * error, 1.0)),
        allowed=allowed,
        proven=estimate - doubt * error,
    )


def _measure_rate(trials: AttackTrials, rate: float, *, allowed: float | None) -> AttackRate:
    """Measure the true positive rate at a false positive rate, if there are enough trials."""
    if not trials.has_both or (~trials.present).sum() * rate < 1:
        return AttackRate(estimate=None, interval=(0.0, 1.0), allowed=allowed)
    low, high = true_positive_bounds(trials, rate, confidence=0.95)
    proven, _ = true_positive_bounds(trials, rate, confidence=1 - 2 * EXCEEDED_CHANCE)
    return AttackRate(
        estimate=true_positives(trials, rate), interval=(low, high), allowed=allowed, proven=proven
    )


def roc_auc(trials: AttackTrials) -> float:
    """Probability that a member's score is above a non-member's; ties count half."""
    members = int(trials.present.sum())
    others = len(trials.present) - members
    ranks = rankdata(trials.scores)[trials.present].sum()
    return float((ranks - members * (members + 1) / 2) / (members * others))


def true_positives(trials: AttackTrials, rate: float) -> float:
    """True positive rate of the threshold test whose false positive rate is ``rate``.

    At scores that are tied with the threshold the test decides by a coin, so that it has exactly
    this false positive rate.
    """
    others = trials.scores[~trials.present]
    members = trials.scores[trials.present]
    threshold = np.quantile(others, 1 - rate, method="higher")
    above, tied = (others > threshold).mean(), (others == threshold).mean()
    share = min(max((rate - above) / tied, 0.0), 1.0)
    return float((members > threshold).mean() + share * (members == threshold).mean())


def true_positive_bounds(trials: AttackTrials, rate: float, *, confidence: float) -> Interval:
    """Bound the true positive rate at a false positive rate, conservatively.

    The number of absent targets above the threshold that has this rate is binomial, so the
    threshold lies between two of their scores. The members above these are counted, with the
    bounds of Clopper and Pearson. Each of the four tails has a quarter of the error. The width
    leaves room for the small dependence of trials that share a run.
    """
    tail = (1 - confidence) / 4
    others = np.sort(trials.scores[~trials.present])[::-1]
    members = trials.scores[trials.present]
    fewest = int(binom.ppf(tail, len(others), rate))
    most = int(binom.ppf(1 - tail, len(others), rate))
    low, high = 0.0, 1.0
    if fewest > 0:
        above = int((members > others[fewest - 1]).sum())
        low = lower_rate(above, len(members), confidence=1 - tail)
    if most < len(others):
        above = int((members >= others[most]).sum())
        high = upper_rate(above, len(members), confidence=1 - tail)
    return low, high


def allowed_advantage(*, epsilon: float, delta: float) -> float:
    """Largest difference of success, with less without a row, that (ε, δ) allows.

    (e^ε - 1 + 2 δ) / (e^ε + 1)
    """
    if math.isinf(epsilon):
        return 1.0
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (math.exp(epsilon) + 1))
