"""Runs of the shipped path: scores, facts and noise, with reproducible noise."""

from dataclasses import asdict

import numpy as np
import pytest

from deniable.audit import case_runs
from deniable.audit.case_runs import SEEDS_STAGE, measure_block
from deniable.audit.likelihood_ratio import ALL_TABLES
from deniable.audit.neighbours import find_case
from deniable.audit.split_counts import SPLIT_STAGE
from deniable.pipeline import seed_modes
from deniable.privacy.pairwise_budget import PAIRS_SPEND, THREE_WAY_SPEND

pytestmark = pytest.mark.slow

OPTIONS = {"epsilon": 1.0, "delta": 1e-2}


@pytest.fixture
def four_runs(monkeypatch):
    monkeypatch.setattr(case_runs, "BLOCK_RUNS", 4)


def block_of(name, *, options=OPTIONS, **settings):
    return measure_block(find_case(name, options), 0, key=7, **settings)


@pytest.mark.usefixtures("four_runs")
def test_a_block_has_scores_facts_and_noise():
    found = block_of("empty and one row")
    assert found.present == [[0], [1], [0], [1]]
    assert len({score for (score,) in found.scores}) == 4
    assert list(found.facts) == ["2", "3"]  # half of the runs are complete, by pairs
    # Too few rows for three-way interactions: their entry pays for tables.
    assert {"values of column_1", ALL_TABLES} <= set(found.stages)
    assert not {PAIRS_SPEND, THREE_WAY_SPEND} & set(found.stages)
    assert found.stages["values of column_1"][0] == 16
    assert asdict(found)["undeniable"] == 0


@pytest.mark.usefixtures("four_runs")
@pytest.mark.parametrize("options", [OPTIONS, {}], ids=["large δ", "default"])
def test_three_way_interactions_are_a_stage_where_they_are_measured(options):
    found = block_of("alone in its cells", options=options)
    assert {PAIRS_SPEND, THREE_WAY_SPEND} <= set(found.stages)
    assert ALL_TABLES not in found.stages


@pytest.mark.usefixtures("four_runs")
def test_the_same_key_gives_the_same_block():
    assert block_of("alone in its cells") == block_of("alone in its cells")


@pytest.mark.usefixtures("four_runs")
def test_many_targets_have_coins():
    found = block_of("many targets")
    coins = np.array(found.present)
    assert coins.shape == np.array(found.scores).shape == (4, 24)
    assert 20 < coins.sum() < 76
    assert found.facts == {}


@pytest.mark.usefixtures("four_runs")
def test_people_count_with_the_rows_that_are_used():
    """If another number of their rows were used, noise would seem to have another mean."""
    case = find_case("people with many rows", OPTIONS)
    found = measure_block(case, 0, key=7)
    charged = 3 * np.hypot.reduce([spend.mu for spend in case.plan.privacy.spends])
    information = sum(sums[4] for sums in found.stages.values()) / 4
    assert np.sqrt(information) == pytest.approx(charged, rel=0.01)
    assert all(abs(sums[1]) < 5 * np.sqrt(sums[0]) for sums in found.stages.values())


@pytest.mark.usefixtures("four_runs")
def test_prefixes_add_the_noise_of_their_counts():
    found = block_of("kept prefix")
    number, _, squares, _, information = found.stages[SEEDS_STAGE]
    assert number == 4 * 8
    assert squares / number == pytest.approx(1, abs=0.9)
    assert information == 0
    assert len(found.facts) == 4


@pytest.mark.usefixtures("four_runs")
def test_a_split_shows_its_draws():
    found = block_of("random split")
    assert {name for name in found.stages if name.startswith(SPLIT_STAGE)} == {
        "split: rows that serve parameters",
        "split: rows that serve seeds",
        "split: rows that serve parameters and not seeds",
    }
    assert all(found.stages[name][0] == 4 for name in found.stages)
    assert np.ptp(found.scores) > 0


@pytest.mark.usefixtures("four_runs")
def test_a_graph_is_scored_by_its_tables():
    options = {**OPTIONS, "mode": "seedless", "graph": {}, "estimator": "norm-sub"}
    found = block_of("empty and one row", options=options)
    assert len({score for (score,) in found.scores}) == 4
    assert found.stages == {}


@pytest.mark.usefixtures("four_runs")
def test_tested_records_have_k_plausible_seeds_and_show_the_row(monkeypatch):
    found = block_of("tested seeds")
    assert found.undeniable == 0
    scores = [score for (score,) in found.scores]
    assert scores[0] == scores[2] == 0  # k - 1 rows are too few
    assert min(scores[1], scores[3]) > 0
    # The check can fail: a test that lets everything pass, of all prefixes.
    kernel = seed_modes.own_omega_kernel
    everything = lambda *given, **more: kernel(*given, **{**more, "k": 1})  # noqa: E731
    monkeypatch.setattr(seed_modes, "own_omega_kernel", everything)
    assert block_of("tested seeds").undeniable > 0


@pytest.mark.usefixtures("four_runs")
@pytest.mark.parametrize("name", ["randomized test", "private draft"])
def test_records_and_drafts_have_facts(name):
    found = block_of(name)
    assert len(found.facts) == 4
    assert all(found.facts.values())


@pytest.mark.usefixtures("four_runs")
def test_a_planted_number_of_rows_is_among_the_facts():
    facts = block_of("empty and one row", fault="row-count").facts.values()
    assert [each["manifest.parameters.rows"] for each in facts] == [0.0, 1.0]
