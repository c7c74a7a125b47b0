"""Distinguishability: accuracy of a random forest that separates released from real records.

This is the distinguishing game of the paper (Sec. 6.4, Table 5). Random guessing has accuracy 0.5,
which is the best result for a release. The control compares real rows with other real rows; its
accuracy must be 0.5 as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes
from deniable.evaluation.classifiers import fit_predict
from deniable.evaluation.effort import Effort
from deniable.evaluation.intervals import Interval, wilson_interval
from deniable.evaluation.reference_tables import EvaluationTables, shuffled_indices
from deniable.randomness import Keyed

COMPARED_WITH_REAL = ("released", "marginals", "reals")


@dataclass(frozen=True, kw_only=True)
class ClassifierRound:
    """Accuracy of one classifier on test records, real rows against one other table."""

    accuracy: float
    interval: Interval
    trained_on: int
    tested_on: int


@dataclass(frozen=True, kw_only=True)
class Distinguishability:
    """Accuracies of a random forest, by compared table.

    Attributes:
        rounds: By table: ``rounds["released"]``.
        held_out: Whether the real rows are held out, that is, not used to learn the release.
    """

    rounds: Mapping[str, ClassifierRound]
    held_out: bool

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "against": "holdout" if self.held_out else "real",
            "forest": {
                table: {
                    "accuracy": result.accuracy,
                    "interval": list(result.interval),
                    "trained_on": result.trained_on,
                    "tested_on": result.tested_on,
                }
                for table, result in self.rounds.items()
            },
        }


def measure_distinguishability(
    tables: EvaluationTables,
    effort: Effort,
    *,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Distinguishability:
    """Train a random forest to separate real rows from each compared table."""
    ceiling_first, ceiling_second = tables.ceiling
    compared: dict[str, tuple[Codes, Codes]] = {
        "released": (tables.reference, tables.released),
        "marginals": (tables.reference, tables.marginals),
        "reals": (ceiling_second, ceiling_first),
    }
    rounds = {}
    for done, (table, (real, other)) in enumerate(compared.items()):
        progress(done, len(compared))
        rounds[table] = distinguish("forest", real, other, effort)
    progress(1, 1)
    return Distinguishability(rounds=rounds, held_out=tables.held_out)


def distinguish(classifier: str, real: Codes, other: Codes, effort: Effort) -> ClassifierRound:
    """Train a classifier on equal numbers of records of both tables, and test it on others."""
    number = max(1, min(effort.game, len(real) // 2, len(other) // 2))
    sides = [
        codes[shuffled_indices(len(codes), Keyed(effort.key).at("records", 4 + at))[: 2 * number]]
        for at, codes in enumerate((real, other))
    ]
    predictions = [
        fit_predict(
            classifier,
            "classification",
            train=np.concatenate([side[:number] for side in sides]),
            labels=_labels(number, number),
            test=np.concatenate([side[number:] for side in sides]),
            trees=effort.trees,
            key=effort.key + run,
        )
        for run in range(effort.runs)
    ]
    truth = _labels(*(len(side) - number for side in sides))
    accuracies = [np.mean(predicted == truth) for predicted in predictions]
    accuracy = float(np.mean(accuracies)) if len(truth) else 0.5
    return ClassifierRound(
        accuracy=accuracy,
        interval=wilson_interval(accuracy, len(truth)),
        trained_on=2 * number,
        tested_on=len(truth),
    )


def _labels(real: int, other: int) -> Codes:
    return np.repeat(np.array([0, 1], dtype=np.uint16), [real, other])
