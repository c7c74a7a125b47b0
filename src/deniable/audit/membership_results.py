"""Results of the membership attacks on a table, by attack."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.arrays import Mask, Reals
from deniable.audit.attack_success import AttackSuccess, AttackTrials, measure_success
from deniable.audit.exposure import AuditTargets
from deniable.audit.query_attacks import (
    QueryAttack,
    excess_answers,
    learned_scores,
)
from deniable.audit.retraining import AuditedTable, CoinRun

# Names of the attacks.
RATIO, PREFIXES, LEARNED = "noisy counts", "released prefixes", "learned from answers"
# Folds of the learned attack.
_FOLDS = 2


@dataclass(frozen=True, kw_only=True)
class MembershipResults:
    """Success of all membership attacks. Confidential.

    Attributes:
        trials: The trials of each attack.
        targets: The targets with their exposure.
        epsilon: ε of the promise; infinite if nothing is promised.
        delta: δ of the promise.
    """

    trials: dict[str, AttackTrials] = field(repr=False)
    targets: AuditTargets
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
        epsilon: float,
        delta: float,
    ) -> "MembershipResults":
        """Score all trials.

        Args:
            runs: The retrainings with coins.
            queries: The queries that were answered.
            audited: The table.
            targets: The targets with their exposure.
            epsilon: ε of the promise.
            delta: δ of the promise.
        """
        present = np.stack([run.present for run in runs])
        excess, others = _compare_answers(runs, queries, audited, present)
        scores = {
            RATIO if audited.has_artefact else PREFIXES: np.stack([run.ratios for run in runs]),
            LEARNED: learned_scores(excess, others, present, np.arange(len(runs)) % _FOLDS),
        }
        trials = {name: _trials(found, present) for name, found in scores.items()}
        return cls(trials=trials, targets=targets, epsilon=epsilon, delta=delta)

    @property
    def main(self) -> str:
        """The attack by likelihood ratio: the strongest one."""
        return next(name for name in (RATIO, PREFIXES) if name in self.trials)

    def success(self, attack: str, chosen: Mask | None = None) -> AttackSuccess:
        """Measure the success of an attack on some targets; None: on all."""
        trials = self.trials[attack] if chosen is None else self.trials[attack].of(chosen)
        return measure_success(trials, epsilon=self.epsilon, delta=self.delta)

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "attacks": {
                name: {
                    "all": self.success(name).document(),
                    "most_exposed": self.success(name, self.targets.most_exposed).document(),
                }
                for name in self.trials
            }
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
