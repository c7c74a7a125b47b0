"""Statistics of one case: what the attacks found, next to what was promised.

Printed bounds have 95 % confidence each. The verdict has a stricter level: if a promise is kept,
the probability that any bound of an audit exceeds it is at most ``FALSE_ALARM_PROBABILITY``. At
95 %, one in twenty bounds of a tight promise would.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from deniable.arrays import Mask
from deniable.audit.attack_bounds import (
    AreaEstimate,
    Rates,
    RunScores,
    best_threshold,
    epsilon_lower_bound,
    estimate_area,
)
from deniable.audit.likelihood_ratio import charged_stages
from deniable.audit.neighbours import NeighbourCase
from deniable.audit.noise_checks import StageNoise, correlation_score, stage_noises
from deniable.audit.released_facts import FactTest, most_revealing_fact
from deniable.audit.trade_off import (
    AllowedRates,
    allowed_by_guarantee,
    allowed_by_loss,
    allowed_by_mu,
    area_below,
)
from deniable.config import Config
from deniable.privacy.accountant import GaussianLoss, LaplaceLoss, ShiftedTableLoss
from deniable.privacy.discrete_losses import DiscreteLoss
from deniable.privacy.ledger import Spend, privacy_losses

# Probability that an audit of a promise that is kept exceeds it somewhere.
FALSE_ALARM_PROBABILITY = 1e-3


@dataclass(frozen=True, kw_only=True)
class CasePromise:
    """What is promised for a case.

    Attributes:
        epsilon: ε of the guarantee; infinite if no differential privacy is promised.
        delta: Its δ.
        mu: μ that is charged, if all noise is Gaussian and each row serves every stage.
        gaussian: μ of each Gaussian entry that is charged, by its name.
        allowed: True positives that the accountant's exact losses allow; else those of (ε, δ).
        is_exact: Whether ``allowed`` is the curve of the exact losses.
        k: Plausible seeds of every record, in mode ``tested``.
    """

    epsilon: float
    delta: float
    mu: float | None = None
    gaussian: Mapping[str, float] = field(default_factory=dict)
    allowed: AllowedRates = field(repr=False)
    is_exact: bool = False
    k: int | None = None


def promise_of(case: NeighbourCase) -> CasePromise:
    """State the promise of a case, from its options and its plan alone."""
    config = Config.assemble(dict(case.options))
    if case.mode == "tested":
        return CasePromise(epsilon=math.inf, delta=0.0, allowed=np.ones_like, k=config.k)
    if case.mode == "draft":
        return _guaranteed(config.epsilon, config.delta)
    cost = case.plan.cost
    stated = _guaranteed(cost.epsilon, cost.delta)
    return stated if case.mode == "randomized" else _with_losses(stated, case)


def _guaranteed(epsilon: float, delta: float) -> CasePromise:
    """A promise of (ε, δ) alone."""
    allowed = partial(allowed_by_guarantee, epsilon=epsilon, delta=delta)
    return CasePromise(epsilon=epsilon, delta=delta, allowed=allowed)


def _with_losses(stated: CasePromise, case: NeighbourCase) -> CasePromise:
    """Add the exact losses of a plan, where they are those of the tables that are compared."""
    spends = case.plan.privacy.spends
    gaussian = {
        spend.what: spend.mu * case.used for spend in spends if spend.law.name == "rounded_gaussian"
    }
    stated = replace(stated, gaussian=gaussian)
    if case.plan.fractions is not None:  # no row serves every stage
        return stated
    mu, discrete = losses_of(spends)
    if discrete is None:
        total = mu * case.used
        allowed = partial(allowed_by_mu, mu=total)
        return replace(stated, mu=total, allowed=allowed, is_exact=True)
    if case.used > 1:  # exact losses are those of one row
        return stated
    return replace(stated, allowed=allowed_by_loss(mu=mu, discrete=discrete), is_exact=True)


def losses_of(spends: Sequence[Spend]) -> tuple[float, DiscreteLoss | None]:
    """Split all losses into μ of the Gaussian noise and the composed discrete ones, if any."""
    mu, discrete = 0.0, None
    for loss in privacy_losses(spends):
        if isinstance(loss, GaussianLoss):
            mu = math.hypot(mu, loss.mu)
            continue
        if isinstance(loss, LaplaceLoss):
            own = DiscreteLoss.from_laplace(loss.epsilon).self_compose(loss.times)
        elif isinstance(loss, ShiftedTableLoss):
            own = DiscreteLoss.from_table(loss.weights).self_compose(loss.times)
        else:
            continue
        discrete = own if discrete is None else discrete.compose(own)
    return mu, discrete


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """What the attacks on a case found.

    Attributes:
        case: The tables.
        promise: What was promised.
        runs: Runs with and without the target, together.
        rates: The likelihood ratio at the chosen threshold, on the measuring half.
        area: The area below its curve, over all runs and targets.
        fact: The most revealing fact, with its rates on the measuring half.
        stages: The measured noise of each stage.
        correlation: The largest correlation between stages, in standard errors.
        undeniable: Records with fewer than k plausible seeds, in mode ``tested``.
        exceeded: Where the promise is exceeded, in words.
    """

    case: NeighbourCase
    promise: CasePromise
    runs: int
    rates: Rates | None
    area: AreaEstimate | None
    fact: tuple[FactTest, Rates] | None
    stages: Sequence[StageNoise]
    correlation: float
    undeniable: int
    exceeded: Sequence[str] = ()

    @property
    def within(self) -> bool | None:
        """Whether the promise is kept; None if the case promises nothing that was measured."""
        return not self.exceeded

    @property
    def mu_ratio(self) -> tuple[float, float, float] | None:
        """μ measured by the attack over μ charged: lower end of the interval, estimate, upper."""
        if self.area is None or self.promise.mu is None:
            return None
        low, middle, high = self.area.mu_interval()
        mu = self.promise.mu
        return low / mu, middle / mu, high / mu

    @property
    def mu_ratio_bound(self) -> float | None:
        """One-sided 95 % lower bound on μ measured over μ charged."""
        if self.area is None or self.promise.mu is None:
            return None
        return self.area.mu_bound() / self.promise.mu

    @property
    def advantage_ratio(self) -> tuple[float, float, float] | None:
        """Measured over allowed area above ½, with its interval: 1 if the attack finds it all."""
        if self.area is None or not self.promise.is_exact:
            return None
        most = area_below(self.promise.allowed) - 0.5
        found, half = self.area.area - 0.5, 1.959964 * self.area.error
        return (found - half) / most, found / most, (found + half) / most


def summarize_case(
    case: NeighbourCase, blocks: Sequence[Mapping[str, Any]], *, confidence: float
) -> CaseResult:
    """Compute the statistics of a case, and compare them with the promise.

    Args:
        case: The tables.
        blocks: The measured blocks of runs.
        confidence: Confidence of each bound of the verdict.
    """
    promise = promise_of(case)
    scores = RunScores(
        np.array([row for block in blocks for row in block["scores"]], dtype=np.float64),
        np.array([row for block in blocks for row in block["present"]], dtype=bool),
    )
    first, second = scores.halves()
    has_scores = bool(np.ptp(scores.scores) > 0)
    rates = second.rates_at(best_threshold(first, delta=promise.delta)) if has_scores else None
    result = CaseResult(
        case=case,
        promise=promise,
        runs=len(scores.scores),
        rates=rates,
        area=estimate_area(scores) if has_scores else None,
        fact=_measure_fact(case, blocks),
        stages=stage_noises(blocks, charged_stages(promise.gaussian)),
        correlation=correlation_score(blocks, columns=len(case.schema.names)),
        undeniable=sum(block["undeniable"] for block in blocks),
    )
    return _with_verdict(result, confidence)


def _measure_fact(
    case: NeighbourCase, blocks: Sequence[Mapping[str, Any]]
) -> tuple[FactTest, Rates] | None:
    """Choose the most revealing fact on half of the complete runs, and measure it on the other."""
    if len(case.targets) > 1:
        return None  # the other targets' coins would hide it
    facts, present = [], []
    for block in blocks:
        for at, found in block["facts"].items():
            facts.append(found)
            present.append(bool(block["present"][int(at)][0]))
    here: Mask = np.array(present, dtype=bool)
    second = np.arange(len(facts)) // 2 % 2 == 1
    if not all(side.any() and not side.all() for side in (here[second], here[~second])):
        return None
    chosen = [each for each, later in zip(facts, second, strict=True) if not later]
    test = most_revealing_fact(chosen, here[~second])
    measured = [each for each, later in zip(facts, second, strict=True) if later]
    return test, Rates.of(test.calls(measured), here[second])


def _with_verdict(result: CaseResult, confidence: float) -> CaseResult:
    """Compare every bound with the promise, at the confidence of the verdict."""
    promise, found = result.promise, []
    tests = [("the likelihood ratio", result.rates)]
    if result.fact is not None:
        tests.append((f"the fact {result.fact[0]}", result.fact[1]))
    for name, rates in tests:
        if rates is None or math.isinf(promise.epsilon):
            continue
        epsilon = epsilon_lower_bound(rates, delta=promise.delta, confidence=confidence)
        if epsilon > promise.epsilon:
            found.append(f"{name} shows ε ≥ {epsilon:.3g}, and {promise.epsilon:.3g} is promised")
        for one in (rates, rates.reversed()):
            false_positives, true_positives = one.bounds(confidence=confidence)
            if true_positives > float(promise.allowed(np.array([false_positives]))[0]):
                found.append(
                    f"{name} finds {100 * true_positives:.3g} % or more at "
                    f"{100 * false_positives:.3g} % false alarms or fewer: more than is allowed"
                )
                break
    if result.area is not None and promise.is_exact:
        most, area = area_below(promise.allowed), result.area.bound(confidence=confidence)
        if area > most + 1e-6:
            found.append(
                f"the likelihood ratio has an area of {area:.4f} or more; {most:.4f} is allowed"
            )
    found += [words for stage in result.stages for words in stage.excess(confidence=confidence)]
    found += _noise_excess(result, confidence)
    if result.undeniable:
        found.append(
            f"{result.undeniable:,} records have fewer than k = {promise.k} plausible seeds"
        )
    return replace(result, exceeded=tuple(found))


def _noise_excess(result: CaseResult, confidence: float) -> list[str]:
    """Excess of all stages together, and of noise that is not independent between stages."""
    found = []
    if result.correlation > _two_sided(confidence):
        found.append("the noise of different tables is correlated: one draw serves several")
    mu = result.promise.mu
    gaussian = [stage for stage in result.stages if stage.information > 0]
    if mu is not None and gaussian:
        total = math.sqrt(sum(stage.information / stage.ratio for stage in gaussian))
        # The relative error of the sum is at most that of the least certain stage.
        error = max(stage.error / stage.ratio for stage in gaussian) / 2
        if total * (1 - _two_sided(confidence) * error) > mu * (1 + 1e-6):
            found.append(f"all stages together have μ = {total:.4f}, and {mu:.4f} is charged")
    return found


def _two_sided(confidence: float) -> float:
    return float(ndtri((1 + confidence) / 2))
