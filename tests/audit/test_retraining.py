"""Attacks on a table: targets, retrainings, counts, singling out and inferring."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from audited_tables import HOLDOUT, TABLE, audited_table, codes_of
from deniable.arrays import CODE
from deniable.audit.exposure import choose_targets, measure_exposure
from deniable.audit.inference_attacks import (
    AttackComparison,
    attack_attributes,
    attack_singling_out,
)
from deniable.audit.query_attacks import QueryAttack, excess_answers, learned_scores
from deniable.audit.retraining import CoinRun, pass_probability, retrain, retrain_with_coins
from deniable.privacy.noise_laws import discrete_laplace
from deniable.randomness import Keyed, Secret
from deniable.schema.attribute import Attribute
from worlds import plain_attribute

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


def test_a_row_that_is_alone_in_its_values_is_the_most_exposed():
    codes = np.zeros((400, 4), dtype=CODE)
    codes[200:, :] = 1
    codes[7] = (2, 3, 2, 3)
    codes[11] = (0, 1, 0, 0)
    exposure = measure_exposure(codes, Keyed(1).at("scan"))
    assert np.argsort(exposure)[-2:].tolist() == [11, 7]
    assert exposure.min() >= 0
    assert exposure.max() <= 1


def test_targets_are_the_most_exposed_rows_and_random_others():
    exposure = measure_exposure(codes_of(TABLE), Keyed(1).at("scan"))
    targets = choose_targets(exposure, 41, Keyed(1).at("seeds"))
    assert len(targets) == len(set(targets.rows.tolist())) == 41
    assert targets.most_exposed.sum() == 21
    least = exposure[targets.rows[targets.most_exposed]].min()
    assert (exposure > least).sum() <= 21
    others = exposure[targets.rows[~targets.most_exposed]]
    assert others.max() <= least
    assert 0.25 < others.mean() < 0.65  # random rows, not the next in order


ATTRIBUTES = [plain_attribute(f"column {i}", 12) for i in range(6)]


def wide(rows, key):
    return np.random.default_rng(key).integers(0, 12, (rows, 6)).astype(np.uint16)


def attacks(released, table, control):
    rng = Keyed(3).at("scan")
    return [
        attack_singling_out(released, table, control, rng),
        *attack_attributes(ATTRIBUTES, released, table, control, rng),
    ]


def test_a_copy_of_the_table_is_found_out():
    table, control = wide(500, 1), wide(500, 2)
    singling, inferring, *columns = attacks(table, table, control)
    assert all(found.shows_evidence for found in (singling, inferring, *columns))
    assert inferring.interval[0] > 0.1
    assert len(columns) == 6


def test_fresh_rows_of_the_population_give_no_evidence():
    """False alarms: 2.5 % each for a fixed key, so that the keys here were tried once."""
    for found in attacks(wide(500, 3), wide(500, 1), wide(500, 2))[:2]:
        assert not found.shows_evidence


@pytest.mark.parametrize(("off", "share"), [(5, 1.0), (6, 0.0)])
def test_numbers_count_as_inferred_if_they_are_close(off, share):
    """Of a range of 101 values, 5 are within 5 %."""
    number = Attribute(name="number", kind="integer", values=range(101))
    name = plain_attribute("name", 60)
    rows = np.stack([np.arange(60), np.arange(60)], axis=1).astype(np.uint16)
    released = rows.copy()
    released[:, 1] += off
    found = attack_attributes([name, number], released, rows, rows, Keyed(3).at("scan"))
    assert [each.name for each in found] == ["attribute inference", "name", "number"]
    assert found[2].table == share


def test_the_interval_is_that_of_agresti_and_caffo():
    table, control = np.repeat([1.0, 0.0], [30, 70]), np.repeat([1.0, 0.0], [20, 80])
    found = AttackComparison.of("x", table, control)
    p, q = 31 / 102, 21 / 102
    half = 1.959963984540054 * np.sqrt(p * (1 - p) / 102 + q * (1 - q) / 102)
    assert found.interval == pytest.approx((p - q - half, p - q + half))
    assert found.difference == pytest.approx(0.1)
    assert AttackComparison.read(found.document()) == found
