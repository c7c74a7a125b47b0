"""Attacks on records: counts against a literal count, and power on a leak."""

import numpy as np

from audited_tables import HOLDOUT, TABLE, codes_of
from deniable.audit.query_attacks import (
    QueryAttack,
    excess_answers,
    learned_scores,
)
from deniable.randomness import Keyed

TARGETS = codes_of(TABLE)[:25]
QUERIES = QueryAttack.of(TARGETS, Keyed(1).at("records"))


def test_answers_are_counts_of_matching_records():
    records = codes_of(HOLDOUT)
    answers = QUERIES.answers(records)
    assert answers.shape == (25, len(QUERIES.columns))
    assert QUERIES.columns[:3] == ((0, 1), (0, 2), (1, 2))
    for at, columns in enumerate(QUERIES.columns):
        for target in (0, 7, 24):
            same = records[:, columns] == TARGETS[target, list(columns)]
            assert answers[target, at] == same.all(axis=1).sum()


def test_matches_are_answers_of_the_targets_themselves():
    assert (QUERIES.matches().sum(axis=1) == QUERIES.answers(TARGETS)).all()


def test_the_attack_sees_records_that_repeat_the_present_targets():
    rng = np.random.default_rng(1)
    present = rng.random((20, 25)) < 0.5
    base = QUERIES.answers(codes_of(HOLDOUT))
    matches = QUERIES.matches()
    others = np.stack([base + matches[:, row].sum(axis=1) - row[:, None] for row in present])
    leaked = others + present[:, :, None]  # the exact counts
    excess = excess_answers(leaked, others, records=400, rows=400)
    scores = learned_scores(excess, others, present, np.arange(20) % 2)
    assert scores[present].mean() > scores[~present].mean() + 2 * scores[~present].std()


def test_a_learned_attack_learns_nothing_of_records_without_the_targets():
    rng = np.random.default_rng(2)
    present = rng.random((40, 25)) < 0.5
    others = np.full((40, 25, len(QUERIES.columns)), 10.0)
    excess = rng.normal(size=others.shape)
    scores = learned_scores(excess, others, present, np.arange(40) % 2)
    difference = scores[present].mean() - scores[~present].mean()
    assert abs(difference) < 4 * scores.std() / np.sqrt(250)
