"""Retrainings: fresh noise, the right rows, and checkpoints that read back."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from audited_tables import audited_table
from deniable.audit.query_attacks import QueryAttack
from deniable.audit.retraining import (
    CoinRun,
    pass_probability,
    retrain,
    retrain_with_coins,
)
from deniable.privacy.noise_laws import discrete_laplace
from deniable.randomness import Keyed, Secret

AUDITED = audited_table(range(10), mode="seedless", epsilon=math.inf)


def test_only_absent_targets_are_left_out():
    present = np.arange(10) % 2 == 0
    rows = AUDITED.rows(present)
    assert len(rows) == len(AUDITED.codes) - 5
    assert (rows[:5] == AUDITED.codes[:10:2]).all()
    known = AUDITED.known(present)
    assert known.weights.sum() == len(rows)


def test_every_run_has_its_own_noise():
    first, second = (AUDITED.run_number(number).randomness for number in (1, 2))
    assert first.at("noise").words(1) != second.at("noise").words(1)
    again = AUDITED.run_number(1).randomness
    assert first.at("noise").words(4).tolist() == again.at("noise").words(4).tolist()


def test_the_systems_noise_stays_the_systems_noise():
    audited = replace(AUDITED, run=replace(AUDITED.run, randomness=Secret()))
    assert audited.run_number(1).randomness.is_secret


def test_a_checkpoint_reads_back():
    queries = QueryAttack.of(AUDITED.codes[:10], Keyed(1).at("records"))
    run = retrain_with_coins(AUDITED, queries, 7)
    saved = CoinRun.read(run.document())
    assert (saved.present == run.present).all()
    assert (saved.ratios == run.ratios).all()
    assert (saved.answers == run.answers).all()


@pytest.mark.parametrize("mode", ["tested", "randomized"])
def test_modes_with_seeds_release_their_records(mode):
    audited = audited_table([0], mode=mode, omega="2", k=20, epsilon=math.inf, records=100)
    made = retrain(audited, audited.codes, audited.run_number(1), key=1)
    assert made.artefact is None
    assert len(made.records) == 100
    assert made.model is not None


def test_the_probability_to_pass_follows_from_the_test():
    deterministic = pass_probability(audited_table([0], mode="tested", k=20).run)
    assert [deterministic(count) for count in (19, 20)] == [0, 1]
    test = SimpleNamespace(law=discrete_laplace(1.0))
    noisy = pass_probability(
        SimpleNamespace(config=SimpleNamespace(k=60), plan=SimpleNamespace(test=test))
    )
    assert noisy(0) < 1e-3
    assert 0.5 < noisy(60) < 1
    assert noisy(59) == pytest.approx(1 - noisy(60))
    assert noisy(10_000) == pytest.approx(1)
