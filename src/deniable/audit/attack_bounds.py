"""Lower bounds on ε and on μ, from the scores of an attack.

An attack gives every release a score: the larger, the more likely the row was in the table. Counts
above a threshold bound the rates of false and of true positives (Clopper and Pearson), and each
pair of rates bounds ε at a given δ, and μ of Gaussian differential privacy. The area below the
curve of all thresholds bounds μ more tightly, since it uses all scores.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from deniable.arrays import Counts, Mask, Reals
from deniable.audit.binomial_bounds import CONFIDENCE, lower_rates, upper_rates

# Thresholds tried by ``best_threshold``.
_THRESHOLDS = 200


@dataclass(frozen=True)
class Rates:
    """Counts of false and true positives: how often an attack called a row present.

    Attributes:
        false_hits: Times the row was called present though absent.
        absent: Times it was absent.
        true_hits: Times it was called present, and was.
        present: Times it was present.
    """

    false_hits: int
    absent: int
    true_hits: int
    present: int

    @classmethod
    def of(cls, called: Mask, present: Mask) -> "Rates":
        """Count the calls of an attack."""
        return cls(
            int(np.count_nonzero(called & ~present)),
            int(np.count_nonzero(~present)),
            int(np.count_nonzero(called & present)),
            int(np.count_nonzero(present)),
        )

    @property
    def false_positives(self) -> float:
        """Observed rate of false positives."""
        return self.false_hits / max(self.absent, 1)

    @property
    def true_positives(self) -> float:
        """Observed rate of true positives."""
        return self.true_hits / max(self.present, 1)

    def bounds(self, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Bound both rates together: false positives from above, true positives from below."""
        each = (1 + confidence) / 2
        above = upper_rates(self.false_hits, self.absent, confidence=each)
        below = lower_rates(self.true_hits, self.present, confidence=each)
        return float(above), float(below)

    def reversed(self) -> "Rates":
        """The same attack as a test for absence."""
        return Rates(
            self.present - self.true_hits,
            self.present,
            self.absent - self.false_hits,
            self.absent,
        )


def epsilon_lower_bound(rates: Rates, *, delta: float, confidence: float = CONFIDENCE) -> float:
    """Bound ε from below at a given δ: the larger of both directions, at least 0.

    ε ≥ ln((TPR - δ) / FPR),  and the same of the test for absence

    Each direction has half of the error, so that the larger one is a bound too.
    """
    each = (1 + confidence) / 2
    found = 0.0
    for one in (rates, rates.reversed()):
        false_positives, true_positives = one.bounds(confidence=each)
        if true_positives > delta and false_positives > 0:
            found = max(found, math.log((true_positives - delta) / false_positives))
    return found


def mu_lower_bound(rates: Rates, *, confidence: float = CONFIDENCE) -> float:
    """Bound μ of Gaussian differential privacy from below: Φ⁻¹(TPR) - Φ⁻¹(FPR), at least 0."""
    false_positives, true_positives = rates.bounds(confidence=confidence)
    if not (true_positives > 0 and false_positives < 1):
        return 0.0
    return max(0.0, float(ndtri(true_positives) - ndtri(false_positives)))


@dataclass(frozen=True)
class RunScores:
    """Scores of an attack on many runs, each with one or more targets.

    Attributes:
        scores: One row per run, one column per target.
        present: Whether the target was in the table of the run.
    """

    scores: Reals = field(repr=False)
    present: Mask = field(repr=False)

    def halves(self) -> tuple["RunScores", "RunScores"]:
        """Split the runs into those that choose a threshold and those that measure it."""
        # By pairs of runs: in most audits, runs with and without the target alternate.
        second = np.arange(len(self.scores)) // 2 % 2 == 1
        first = ~second
        return (
            RunScores(self.scores[first], self.present[first]),
            RunScores(self.scores[second], self.present[second]),
        )

    def one_per_run(self) -> tuple[Reals, Mask]:
        """Take one target of each run, in rotation: these scores are independent."""
        runs, targets = self.scores.shape
        chosen = np.arange(runs) % targets
        return self.scores[np.arange(runs), chosen], self.present[np.arange(runs), chosen]

    def rates_at(self, threshold: float) -> Rates:
        """Count the independent scores above a threshold."""
        scores, present = self.one_per_run()
        return Rates.of(scores > threshold, present)


def best_threshold(scores: RunScores, *, delta: float) -> float:
    """Choose the threshold with the largest bound on ε, on the half that is not measured.

    Bounds, unlike observed rates, keep the threshold away from tails with few scores.
    """
    values, present = scores.one_per_run()
    candidates = np.unique(np.quantile(values, np.linspace(0, 1, _THRESHOLDS)))
    false_hits, true_hits = (
        _count_above(values[~present], candidates),
        _count_above(values[present], candidates),
    )
    absent, here = int((~present).sum()), int(present.sum())
    bounds = np.maximum(
        _log_ratios(true_hits, here, false_hits, absent, delta),
        _log_ratios(absent - false_hits, absent, here - true_hits, here, delta),
    )
    best = int(np.argmax(bounds))
    if bounds[best] > 0:
        return float(candidates[best])
    # Nothing to see: the threshold of the most accurate decision.
    return float(candidates[int(np.argmax(true_hits - false_hits))])


def _count_above(scores: Reals, thresholds: Reals) -> Counts:
    below = np.searchsorted(np.sort(scores), thresholds, side="right")
    counts: Counts = (len(scores) - below).astype(np.int64)
    return counts


def _log_ratios(hits: Counts, of: int, false_hits: Counts, others: int, delta: float) -> Reals:
    """Lower bounds of ln((TPR - δ) / FPR), one per threshold; -∞ if there is none."""
    each = (3 + CONFIDENCE) / 4  # two rates in two directions
    below = lower_rates(hits, of, confidence=each) - delta
    above = upper_rates(false_hits, others, confidence=each)
    with np.errstate(divide="ignore"):
        ratios: Reals = np.where(
            below > 0, np.log(np.maximum(below, 1e-300)) - np.log(above), -np.inf
        )
    return ratios


@dataclass(frozen=True)
class AreaEstimate:
    """Area below the curve of an attack, with its standard error."""

    area: float
    error: float

    def bound(self, *, confidence: float) -> float:
        """One-sided lower confidence bound."""
        return self.area - float(ndtri(confidence)) * self.error

    def mu_interval(self, *, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
        """Estimate μ = √2 Φ⁻¹(area), with a two-sided interval; the estimate is in the middle.

        A mechanism of μ has no attack with a larger area, so the lower end is a bound on its μ.
        """
        half = float(ndtri((1 + confidence) / 2)) * self.error
        low, middle, high = (mu_of_area(self.area + side * half) for side in (-1, 0, 1))
        return low, middle, high

    def mu_bound(self, *, confidence: float = CONFIDENCE) -> float:
        """One-sided lower confidence bound on μ; negative if the scores show nothing."""
        return mu_of_area(self.bound(confidence=confidence))


def mu_of_area(area: float) -> float:
    """μ of the Gaussian mechanism whose curve has this area: √2 Φ⁻¹(area)."""
    return math.sqrt(2) * float(ndtri(min(max(area, 1e-12), 1 - 1e-12)))


def estimate_area(attack: RunScores) -> AreaEstimate:
    """Estimate the area below the curve by comparing all scores (Mann and Whitney).

    The standard error is DeLong's, summed by run: scores of one run may depend on each other.
    """
    scores, present = attack.scores, attack.present
    ones, zeros = np.sort(scores[present]), np.sort(scores[~present])
    if not (len(ones) and len(zeros)):
        return AreaEstimate(0.5, 0.5)
    # The share of absent scores below each present one, ties by half; and the reverse.
    above = _share_below(zeros, scores)
    below = 1 - _share_below(ones, scores)
    area = float(above[present].mean())
    parts = np.where(present, (above - area) / len(ones), (below - area) / len(zeros))
    error = math.sqrt(float((parts.sum(axis=1) ** 2).sum()))
    # A perfect separation has no spread; at least one more run of either kind might contradict it.
    return AreaEstimate(area, max(error, 1 / (1 + min(len(ones), len(zeros)))))


def _share_below(sorted_scores: Reals, scores: Reals) -> Reals:
    left = np.searchsorted(sorted_scores, scores, side="left")
    right = np.searchsorted(sorted_scores, scores, side="right")
    shares: Reals = (left + right) / (2 * len(sorted_scores))
    return shares
