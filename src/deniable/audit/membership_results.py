"""Results of the membership attacks on a table: by attack, and by exposure of the targets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.arrays import Mask, Reals
from deniable.audit.attack_bounds import Rates, epsilon_lower_bound
from deniable.audit.attack_success import AttackSuccess, AttackTrials, measure_success
from deniable.audit.binomial_bounds import CONFIDENCE
from deniable.audit.exposure import DECILES, AuditTargets
from deniable.audit.one_run import one_run_epsilon
from deniable.audit.query_attacks import (
    QueryAttack,
    density_scores,
    excess_answers,
    learned_scores,
)
from deniable.audit.retraining import AuditedTable, CoinRun

# Names of the attacks.
FIXED, RATIO, PREFIXES = "noisy counts, rest fixed", "noisy counts", "released prefixes"
DENSITY, LEARNED = "pairs in the records", "learned from answers"
# Confidence of a bound that decides whether the promise is exceeded.
PROOF_CONFIDENCE = 1 - 1e-5
# Share of the canaries whose coin is guessed: half of them as present, half as absent.
_GUESSED_SHARE = 0.2
# Folds of the learned attack.
_FOLDS = 2


@dataclass(frozen=True, kw_only=True)
class OneRunResult:
    """Guesses about many canaries in a single run.

    Attributes:
        canaries: Rows included by a coin.
        guesses: Coins that were guessed.
        correct: Correct guesses.
        epsilon: Lower bound on ε at 95 %.
        proven: Lower bound on ε at ``PROOF_CONFIDENCE``.
    """

    canaries: int
    guesses: int
    correct: int
    epsilon: float
    proven: float

    @classmethod
    def of(cls, scores: Sequence[float], coins: Sequence[bool], *, delta: float) -> "OneRunResult":
        """Guess the coins of the largest and smallest scores, and bound ε by the correct ones."""
        order = np.argsort(np.asarray(scores), kind="stable")
        each = max(1, int(_GUESSED_SHARE * len(order) / 2))
        thrown = np.asarray(coins, dtype=bool)
        correct = int(thrown[order[-each:]].sum() + (~thrown[order[:each]]).sum())
        bound, proven = (
            one_run_epsilon(
                rows=len(order),
                guesses=2 * each,
                correct=correct,
                delta=delta,
                confidence=confidence,
            )
            for confidence in (CONFIDENCE, PROOF_CONFIDENCE)
        )
        return cls(
            canaries=len(order), guesses=2 * each, correct=correct, epsilon=bound, proven=proven
        )

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "canaries": self.canaries,
            "guesses": self.guesses,
            "correct": self.correct,
            "epsilon_lower_bound": self.epsilon,
        }


@dataclass(frozen=True, kw_only=True)
class MembershipResults:
    """Success of all membership attacks. Confidential.

    Attributes:
        trials: The trials of each attack.
        targets: The targets with their exposure.
        one_run: The single run with coins; None without an artefact.
        fixed_epsilon: Lower bounds on ε at 95 % and at ``PROOF_CONFIDENCE``, from retrainings with
            the rest fixed; None without these.
        epsilon: ε of the promise; infinite if nothing is promised.
        delta: δ of the promise.
    """

    trials: dict[str, AttackTrials] = field(repr=False)
    targets: AuditTargets
    one_run: OneRunResult | None
    fixed_epsilon: tuple[float, float] | None
    epsilon: float
    delta: float

    @classmethod
    def of(
        cls,
        runs: Sequence[CoinRun],
        queries: QueryAttack,
        audited: AuditedTable,
        *,
        targets: AuditTargets,
        fixed: Sequence[tuple[Sequence[float], Sequence[float]]] | None,
        one_run: OneRunResult | None,
        epsilon: float,
        delta: float,
    ) -> "MembershipResults":
        """Score all trials.

        Args:
            runs: The retrainings with coins.
            queries: The queries that were answered.
            audited: The table.
            targets: The targets with their exposure.
            fixed: Scores of each target with and without it, the rest fixed.
            one_run: The single run with coins.
            epsilon: ε of the promise.
            delta: δ of the promise.
        """
        present = np.stack([run.present for run in runs])
        excess, others = _compare_answers(runs, queries, audited, present)
        scores = {
            RATIO if audited.has_artefact else PREFIXES: np.stack([run.ratios for run in runs]),
            DENSITY: density_scores(excess, others, queries.pairs),
            LEARNED: learned_scores(excess, others, present, np.arange(len(runs)) % _FOLDS),
        }
        trials = {name: _trials(found, present) for name, found in scores.items()}
        bound = None
        if fixed is not None:
            trials = {FIXED: _fixed_trials(fixed), **trials}
            bound = _epsilon_bounds(trials[FIXED], delta=delta)
        return cls(
            trials=trials,
            targets=targets,
            one_run=one_run,
            fixed_epsilon=bound,
            epsilon=epsilon,
            delta=delta,
        )

    @property
    def main(self) -> str:
        """The strongest attack that was run on every target many times."""
        return next(name for name in (RATIO, PREFIXES) if name in self.trials)

    def success(self, attack: str, chosen: Mask | None = None) -> AttackSuccess:
        """Measure the success of an attack on some targets; None: on all."""
        trials = self.trials[attack] if chosen is None else self.trials[attack].of(chosen)
        return measure_success(trials, epsilon=self.epsilon, delta=self.delta)

    def by_decile(self, attack: str) -> dict[int, AttackSuccess]:
        """Measure the success of an attack by the targets' tenth of exposure."""
        return {
            decile: self.success(attack, self.targets.deciles == decile)
            for decile in range(1, DECILES + 1)
        }

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        attacks = {
            name: {
                "all": self.success(name).document(),
                "most_exposed": self.success(name, self.targets.most_exposed).document(),
                "deciles": {
                    str(decile): found.document() for decile, found in self.by_decile(name).items()
                },
            }
            for name in self.trials
        }
        return {
            "attacks": attacks,
            "rest_fixed_epsilon_lower_bound": self.fixed_epsilon and self.fixed_epsilon[0],
            "one_run": None if self.one_run is None else self.one_run.document(),
        }


def _compare_answers(
    runs: Sequence[CoinRun], queries: QueryAttack, audited: AuditedTable, present: Mask
) -> tuple[Reals, Reals]:
    """Answers beyond, and of, the other rows of each retraining: run by target by query."""
    rest = np.delete(audited.codes, audited.targets, axis=0)
    known = queries.answers(rest)[None]
    matched = np.einsum("rt,stq->rsq", present.astype(np.float64), queries.matches())
    others = known + matched - present[:, :, None]
    rows = len(rest) + present.sum(axis=1)
    excess = np.stack(
        [
            excess_answers(run.answers, own, records=audited.records, rows=int(count))
            for run, own, count in zip(runs, others, rows, strict=True)
        ]
    )
    return excess, others


def _trials(scores: Reals, present: Mask) -> AttackTrials:
    runs, targets = np.indices(scores.shape)
    return AttackTrials(
        scores=scores.ravel(),
        present=present.ravel(),
        targets=targets.ravel(),
        runs=runs.ravel(),
    )


def _fixed_trials(fixed: Sequence[tuple[Sequence[float], Sequence[float]]]) -> AttackTrials:
    """Trials with the rest fixed: each has noise of its own, so it is a run of its own."""
    scores = np.asarray(fixed, dtype=np.float64)  # target, with or without, repetition
    targets, sides, repetitions = np.indices(scores.shape)
    return AttackTrials(
        scores=scores.ravel(),
        present=sides.ravel() == 0,
        targets=targets.ravel(),
        runs=(targets * scores.shape[2] + repetitions).ravel(),
    )


def _epsilon_bounds(trials: AttackTrials, *, delta: float) -> tuple[float, float]:
    """Lower bounds on ε: a threshold chosen on one half of the trials, measured on the other."""
    choosing = trials.runs % 2 == 0
    candidates = np.unique(trials.scores[choosing])

    def bound_at(threshold: float, half: Mask, confidence: float) -> float:
        rates = Rates.of(trials.scores[half] > threshold, trials.present[half])
        return epsilon_lower_bound(rates, delta=delta, confidence=confidence)

    bounds = [bound_at(float(threshold), choosing, CONFIDENCE) for threshold in candidates]
    # Where nothing is seen, the median: the most accurate decision.
    best = int(np.argmax(bounds)) if max(bounds) > 0 else len(candidates) // 2
    threshold = float(candidates[best])
    return bound_at(threshold, ~choosing, CONFIDENCE), bound_at(
        threshold, ~choosing, PROOF_CONFIDENCE
    )
