"""Membership by a classifier that reads records only.

It asks how many records have a target's values in a few columns, compared with the number that the
other rows explain, and is trained on releases whose targets are known. It is a control: it knows
nothing of how releases are made.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Mask, Reals
from deniable.randomness import Rng

# Queries: sets of columns, all pairs first, then random sets of three and four.
_MAX_QUERIES, _MAX_PAIRS = 100, 66
# Answers are compared on this scale of standard deviations at most.
_MAX_DEVIATION = 20.0


@dataclass(frozen=True, kw_only=True)
class QueryAttack:
    """Queries about targets: how many records have a target's values in a set of columns?

    Attributes:
        targets: The targets, as codes.
        columns: The set of columns of each query.
    """

    targets: Codes = field(repr=False)
    columns: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, targets: Codes, rng: Rng) -> "QueryAttack":
        """Choose the queries: all pairs of columns, or a sample, and random sets of 3 and 4."""
        m = targets.shape[1]
        pairs: list[tuple[int, ...]] = list(combinations(range(m), 2)) or [(0,)]
        chosen = [pairs[i] for i in np.sort(np.argsort(rng.random(len(pairs)))[:_MAX_PAIRS])]
        wider: set[tuple[int, ...]] = set()
        for attempt in range(4 * _MAX_QUERIES):
            if len(chosen) + len(wider) == _MAX_QUERIES or m < 3:
                break
            width = min(3 + attempt % 2, m)
            wider.add(tuple(sorted(np.argsort(rng.random(m))[:width].tolist())))
        return cls(targets=targets, columns=(*chosen, *sorted(wider)))

    def answers(self, records: Codes) -> Counts:
        """Count the matching records: one row per target, one column per query."""
        answers = [self._count(records[:, list(columns)], columns) for columns in self.columns]
        return np.stack(answers, axis=1)

    def _count(self, records: Codes, columns: tuple[int, ...]) -> Counts:
        targets = self.targets[:, list(columns)]
        sizes = np.maximum(records.max(axis=0, initial=0), targets.max(axis=0)).astype(np.int64)
        ours, theirs = np.zeros(len(targets), np.int64), np.zeros(len(records), np.int64)
        for at, size in enumerate(sizes + 1):
            ours, theirs = ours * size + targets[:, at], theirs * size + records[:, at]
        distinct, inverse = np.unique(ours, return_inverse=True)
        found = np.searchsorted(distinct, theirs)
        found[found == len(distinct)] = 0
        hits = found[distinct[found] == theirs]
        return np.bincount(hits, minlength=len(distinct))[inverse]

    def matches(self) -> Mask:
        """Which targets have the same values: target by target by query."""
        same = self.targets[:, None, :] == self.targets[None, :, :]
        return np.stack([same[:, :, list(c)].all(axis=2) for c in self.columns], axis=2)


def excess_answers(answers: Counts, others: Reals, *, records: int, rows: int) -> Reals:
    """Matching records beyond those that the other rows explain, in rows of the table."""
    excess: Reals = answers * (rows / max(records, 1)) - others
    return excess


def learned_scores(excess: Reals, others: Reals, present: Mask, folds: Indices) -> Reals:
    """Scores of a classifier trained on query answers of other runs.

    Args:
        excess: Run by target by query.
        others: The answers that the other rows explain, of the same shape.
        present: Whether a target was in the table, run by target.
        folds: The fold of each run; each is scored by a classifier trained on the others.
    """
    from sklearn.linear_model import (  # type: ignore[import-untyped] # noqa: PLC0415 - slow
        LogisticRegression,
    )

    scale = np.sqrt(others + 1)
    features = np.clip(excess / scale, -_MAX_DEVIATION, _MAX_DEVIATION)
    scores = np.zeros(present.shape)
    for train, test in _train_and_test(folds):
        flat, labels = features[train].reshape(-1, features.shape[-1]), present[train].ravel()
        if labels.all() or not labels.any():
            continue
        centre, width = flat.mean(axis=0), flat.std(axis=0) + 1e-9
        learner = LogisticRegression(C=0.01, max_iter=500)
        learner.fit((flat - centre) / width, labels)
        tested = (features[test].reshape(-1, features.shape[-1]) - centre) / width
        scores[test] = learner.decision_function(tested).reshape(present[test].shape)
    return scores


def _train_and_test(folds: Indices) -> Iterator[tuple[Indices, Indices]]:
    for fold in np.unique(folds):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
