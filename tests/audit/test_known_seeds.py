"""Seeds at the threshold: the attacker who knows the others sees them, and chooses them well."""

import json
import math

import numpy as np
import pytest

from audited_tables import audited_table
from deniable.audit import known_seeds
from deniable.audit.attack_success import measure_success
from deniable.audit.known_seeds import attack_known_seeds, most_visible_seeds, seed_trials
from deniable.audit.retraining import pass_probability, retrain


@pytest.fixture(autouse=True)
def _few_releases(monkeypatch):
    monkeypatch.setattr(known_seeds, "_RELEASES", 12)


def release_of(k, **options):
    """A release of prefixes of one column, and the number of rows of each of its values."""
    audited = audited_table([0], omega="2", k=k, epsilon=math.inf, records=400, **options)
    made = retrain(audited, audited.codes, audited.run_number(1), key=1)
    column = audited.codes[:, made.model.network.order[0]]
    return audited, made, column


def at_the_limit():
    """A release in which exactly k rows share a prefix."""
    _, _, column = release_of(20, mode="tested")
    counted = np.bincount(column)
    k = int(counted[counted >= 20].min())
    return (*release_of(k, mode="tested"), k)


def test_a_seed_of_which_there_are_k_is_the_most_visible():
    audited, made, column, k = at_the_limit()
    passes = pass_probability(audited.run)
    chosen = most_visible_seeds(made.seeds, made.model, passes, records=400)
    assert np.bincount(column)[column[chosen[0]]] == k


def test_a_seed_at_the_limit_is_seen_by_someone_who_knows_the_others():
    audited, made, _, _ = at_the_limit()
    saved = json.loads(json.dumps(attack_known_seeds(audited, made, 50)))
    trials = seed_trials(saved)
    assert trials is not None
    first = trials.of(np.arange(int(trials.targets.max()) + 1) == 0)
    assert len(first.scores) == 12
    assert measure_success(first, epsilon=math.inf, delta=0.0).auc.estimate == 1


def test_where_no_prefix_can_pass_no_seed_is_attacked():
    audited, made, _ = release_of(20, mode="tested")
    never = most_visible_seeds(made.seeds, made.model, lambda _: 0.0, records=400)
    assert not len(never)
    assert seed_trials({"present": [], "ratios": []}) is None
    assert audited.has_artefact is False
