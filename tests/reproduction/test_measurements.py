"""Model accuracy, pass rates, run times and table facts."""

import math

import numpy as np
import pytest

from deniable.evaluation.effort import Effort
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.api import learn
from deniable.reproduction.measurements import (
    count_unique,
    measure_baselines,
    measure_model_accuracy,
    measure_run_times,
    model_accuracy,
    pass_rates,
    table_facts,
)


@pytest.fixture(scope="module")
def network(small_table, small_schema):
    return learn(small_table, small_schema, mode="seedless", epsilon=math.inf).network


def test_the_model_predicts_its_most_likely_value(network, small_schema, small_codes):
    """By definition: try every value, ask the model for the whole record's probability."""
    records = small_codes[:60]
    expected = []
    for i, attribute in enumerate(small_schema.attributes):
        tried = []
        for code in range(attribute.size):
            changed = records.copy(order="F")
            changed[:, i] = code
            tried.append(network.log_probability(changed))
        expected.append(np.mean(np.argmax(tried, axis=0) == records[:, i]))
    assert model_accuracy(network, records) == pytest.approx(expected)


def test_noisy_models_are_averaged(network, small_codes):
    found = measure_model_accuracy(lambda _at: network, small_codes[:50], models=3)
    assert found.models == 3
    assert found.mean == pytest.approx(model_accuracy(network, small_codes[:50]))
    assert all(low == high for low, high in found.spread)


def test_the_model_beats_the_most_common_value_if_attributes_depend(
    network, small_schema, small_codes
):
    guesses = measure_baselines(
        small_schema.attributes, small_codes[:1_000], small_codes[1_000:], Effort(trees=5)
    )
    home = guesses[2]
    assert home.guessing == 0.5
    assert home.marginals == pytest.approx(
        np.mean(small_codes[1_000:, 2] == np.bincount(small_codes[:1_000, 2]).argmax())
    )
    found = measure_model_accuracy(lambda _at: network, small_codes[1_000:], models=1)
    assert found.mean[2] > home.marginals + 0.1
    better = found.improvement(guesses)[2]
    assert better == pytest.approx(1 - (1 - found.mean[2]) / (1 - home.marginals))


def test_pass_rates_count_the_seeds_with_the_same_kept_values(network, small_codes):
    """Golden: of a fixed ω, k' is how often the seed's kept values occur; any γ gives the same."""
    model = NetworkModel(network, (2,))
    kept = list(network.order[:3])
    groups = np.unique(small_codes[:, kept], axis=0, return_inverse=True, return_counts=True)
    of_seed = groups[2][groups[1].ravel()]
    arguments = {"ks": (1, 10, 50), "candidates": 4_000}
    own = pass_rates(model, small_codes, gamma=None, **arguments)
    hidden = pass_rates(model, small_codes, gamma=2.0, **arguments)
    assert own == hidden
    for share in own:
        assert share.passed == pytest.approx(np.mean(of_seed >= share.k), abs=0.05)
    assert own[0].passed == 1
    assert own[0].passed >= own[1].passed >= own[2].passed


def test_seeds_that_are_not_checked_do_not_count(network, small_codes):
    model = NetworkModel(network, (1, 2, 3))
    arguments = {"ks": (20,), "candidates": 2_000, "gamma": None}
    (every,) = pass_rates(model, small_codes, **arguments)
    (some,) = pass_rates(model, small_codes, checked=500, **arguments)
    assert some.passed < every.passed
    (none,) = pass_rates(model, small_codes, checked=19, **arguments)
    assert none.passed == 0


def test_learning_and_generation_are_timed(small_table, small_schema):
    found = measure_run_times(small_table, small_schema, records=[10, 20], mode="seedless")
    assert [one.records for one in found] == [10, 20]
    assert all(one.learning > 0 and one.generation > 0 for one in found)


def test_a_scan_is_timed(small_table, small_schema, network):
    found = measure_run_times(
        small_table,
        small_schema,
        records=[10],
        learn=lambda: NetworkModel(network, (2,)),
        mode="tested",
        k=5,
        max_plausible=100,
        max_check_plausible=500,
    )
    assert [one.records for one in found] == [10]
    assert found[0].generation > 0


def test_table_facts_count_unique_records(small_schema, small_codes):
    facts = table_facts(small_schema, small_codes)
    assert facts.unique == len({tuple(row) for row in small_codes.tolist()})
    assert facts.possible == 60 * 5 * 2 * 6 * 3
    assert (facts.numerical, facts.categorical) == (2, 3)
    assert facts.document()["unique_share"] == facts.unique / 2_000
    assert count_unique(small_codes[:0]) == 0
