"""The audit of the mechanism: planted faults are found, faults in the source too; it resumes."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from deniable.audit import case_runs, mechanism
from deniable.audit.attack_bounds import Rates, epsilon_lower_bound
from deniable.audit.case_results import FALSE_ALARM_PROBABILITY, summarize_case
from deniable.audit.case_runs import measure_block
from deniable.audit.likelihood_ratio import ALL_TABLES
from deniable.audit.mechanism import MechanismRuns, audit_mechanism, collect_blocks
from deniable.audit.neighbours import all_cases, find_case
from deniable.audit.planted_faults import FAULT_WORDS
from deniable.counting import local
from deniable.drafting import noisy_histograms
from deniable.errors import ConfigError, OutputError
from deniable.evaluation.checkpoints import CheckpointFolder
from deniable.model.pairwise import measure, table_layout
from deniable.pipeline import api, learn_model
from deniable.privacy.noise_tables import WeightTable
from deniable.privacy.pairwise_budget import THREE_WAY_SPEND, PairNoise
from deniable.workers import no_progress

pytestmark = pytest.mark.slow

OPTIONS = {"epsilon": 1.0, "delta": 1e-2}
# Of each bound: a correct program exceeds one with a probability of 0.01, and with a fixed key
# always or never. The audit itself is far stricter, and has more runs.
CONFIDENCE = 0.99


def result_of(name, *, blocks=2, **settings):
    """The result of a few blocks of runs, all complete, with reproducible noise."""
    case = replace(find_case(name, OPTIONS), complete=settings.pop("complete", 1.0))
    measured = [asdict(measure_block(case, at, key=12, **settings)) for at in range(blocks)]
    return summarize_case(case, measured, confidence=CONFIDENCE)


# Three-way interactions are measured in the first; further tables in the second, which has no rows.
@pytest.mark.parametrize("name", ["alone in its cells", "empty and one row", "kept prefix"])
def test_the_shipped_mechanism_is_within_its_promise(name):
    result = result_of(name, blocks=1)
    assert result.exceeded == ()
    if name != "kept prefix":
        wanted = THREE_WAY_SPEND if name == "alone in its cells" else ALL_TABLES
        (own,) = [stage for stage in result.stages if stage.name == wanted]
        assert math.sqrt(own.information) == pytest.approx(own.charged, rel=0.01)
    assert result.correlation < 4


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULT_WORDS)
def test_every_planted_fault_is_found_in_few_runs(fault):
    if fault == "row-count":
        result = result_of("empty and one row", blocks=3, fault=fault)
        assert "the fact" in " ".join(result.exceeded)
    else:
        result = result_of("many targets", blocks=1, complete=0.0, fault=fault)
        assert "the noise of" in " ".join(result.exceeded)


def test_less_noise_than_drawn_is_found(monkeypatch):
    """A fault in the source: every draw has four fifths of its size."""
    draw = WeightTable.draw
    smaller = lambda table, *given: np.rint(0.8 * draw(table, *given)).astype(np.int64)  # noqa: E731
    monkeypatch.setattr(WeightTable, "draw", smaller)
    result = result_of("many targets", blocks=1, complete=0.0)
    assert "claimed standard deviation" in " ".join(result.exceeded)


def test_scales_of_interactions_that_are_too_small_are_found(monkeypatch):
    """A fault in the source: σ of every pair is halved, and the ledger does not know."""
    chosen = table_layout._pair_sigmas
    halved = lambda *given: {pair: s / 2 for pair, s in chosen(*given).items()}  # noqa: E731
    monkeypatch.setattr(table_layout, "_pair_sigmas", halved)
    result = result_of("many targets", blocks=1, complete=0.0)
    assert "interactions of pairs has μ" in " ".join(result.exceeded)


def test_scales_of_three_way_interactions_that_are_too_small_are_found(monkeypatch):
    """A fault in the source: σ of every triple is halved, and the ledger does not know."""
    chosen = table_layout._triple_sigmas
    halved = lambda *given: {triple: s / 2 for triple, s in chosen(*given).items()}  # noqa: E731
    monkeypatch.setattr(table_layout, "_triple_sigmas", halved)
    result = result_of("alone in its cells", blocks=3, complete=0.0)
    assert "three-way interactions has μ" in " ".join(result.exceeded)


def test_tables_that_are_measured_beside_three_way_interactions_are_found(monkeypatch):
    """A fault in the source: triples are measured, and the tables that they replace too."""
    paid = lambda measured, noise: noise.table_count  # noqa: ARG005, E731
    monkeypatch.setattr(measure, "count_paid_tables", paid)
    result = result_of("alone in its cells", blocks=5, complete=0.0)
    assert "pairs of attributes has μ" in " ".join(result.exceeded)


def test_a_stage_that_is_not_charged_is_found(monkeypatch):
    """A fault in the source: plan and ledger both leave the interactions out."""
    charged, measured = PairNoise.spends, learn_model.measure_pairwise
    is_other = lambda spend: spend.what != "interactions of pairs"  # noqa: E731

    def measure_pairwise(*given, **settings):
        found, spends = measured(*given, **settings)
        return found, list(filter(is_other, spends))

    monkeypatch.setattr(
        PairNoise, "spends", lambda self, names: list(filter(is_other, charged(self, names)))
    )
    monkeypatch.setattr(learn_model, "measure_pairwise", measure_pairwise)
    # Plans are cached by their public facts: another δ makes a new one.
    monkeypatch.setitem(OPTIONS, "delta", 0.0123)
    result = result_of("many targets", blocks=1, complete=0.1)
    assert "is not charged" in " ".join(result.exceeded)


def test_seeds_without_noise_are_found(monkeypatch):
    """A fault in the source: the histogram of prefixes has exact counts."""
    learn_histogram = api.learn_histogram

    def without_noise(rng, counted, **settings):
        kept, spent = learn_histogram(rng, counted, **settings)
        alike = (counted.prefixes[:, None] == kept.prefixes[None]).all(axis=2)
        return replace(kept, counts=counted.counts @ alike), spent

    monkeypatch.setattr(api, "learn_histogram", without_noise)
    result = result_of("kept prefix", blocks=1)
    assert "seed prefixes" in " ".join(result.exceeded)


def test_more_rows_of_a_person_than_promised_are_found(monkeypatch):
    """A fault in the source: all rows of a person are used, not three of them."""
    monkeypatch.setattr(
        local,
        "limit_rows_per_unit",
        lambda codes, units, randomness, max_rows: codes,  # noqa: ARG005
    )
    result = result_of("people with many rows", blocks=5, complete=0.0)
    assert result.exceeded


def all_parts(codes, fractions, randomness):  # noqa: ARG001
    """Every row serves every part."""
    return dict.fromkeys(fractions, codes)


def each_part_alone(codes, fractions, randomness):
    """Every part has its own draws, so that a row may serve several."""
    rng = randomness.at("split")
    return {part: codes[rng.random(len(codes)) < share] for part, share in fractions.items()}


def by_row_number(codes, fractions, randomness):  # noqa: ARG001
    """The part of a row follows from its number: nothing about it is secret."""
    bounds = np.cumsum(list(fractions.values()))
    parts = np.searchsorted(bounds, 0.618034 * np.arange(len(codes)) % 1, side="right")
    return {part: codes[parts == i] for i, part in enumerate(fractions)}


@pytest.mark.parametrize(
    ("fault", "blocks", "words"),
    [
        (all_parts, 1, "not that of the stated probabilities"),
        (by_row_number, 2, "varies less than by independent draws"),
        (each_part_alone, 6, "varies less than by independent draws"),
    ],
)
def test_rows_of_a_split_that_are_not_drawn_as_stated_are_found(monkeypatch, fault, blocks, words):
    """A fault in the source: rows serve all parts, or several, or one that is no secret."""
    monkeypatch.setattr(local, "split_records", fault)
    result = result_of("random split", blocks=blocks)
    assert words in " ".join(result.exceeded)


def test_an_honest_split_is_within_its_promise():
    assert result_of("random split", blocks=20).exceeded == ()


def test_a_draft_without_noise_is_found(monkeypatch):
    """A fault in the source: the draft's counts are exact, and one more row moves rows_max."""
    assert result_of("private draft").exceeded == ()
    add_noise = noisy_histograms.add_noise
    exact = lambda rng, counts, *given, **named: (  # noqa: E731
        counts,
        add_noise(rng, counts, *given, **named)[1],
    )
    monkeypatch.setattr(noisy_histograms, "add_noise", exact)
    result = result_of("private draft", blocks=4)
    assert 'the fact "draft.rows_max"' in " ".join(result.exceeded)


@pytest.mark.parametrize("name", ["private draft", "randomized test"])
def test_default_runs_prove_a_fact_that_always_gives_the_row_away(name):
    """At the confidence of the verdict; half of the runs choose the fact, half measure it."""
    case, bounds = find_case(name, OPTIONS), mechanism._BOUNDS_PER_CASE * len(all_cases(OPTIONS))
    seen = Rates(0, case.runs // 2, case.runs // 2, case.runs // 2)
    confidence = 1 - FALSE_ALARM_PROBABILITY / bounds
    assert epsilon_lower_bound(seen, delta=OPTIONS["delta"], confidence=confidence) > 1


TASKS = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def fake_block(task):
    return {"task": list(task)}


def test_an_interrupted_audit_keeps_its_blocks_and_resumes(tmp_path):
    made: list[tuple[str, int]] = []

    def interrupted(task):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(task)
        return fake_block(task)

    measured = MechanismRuns([])
    folder = CheckpointFolder.open(tmp_path / "out", {"options": {}})
    with pytest.raises(KeyboardInterrupt):
        collect_blocks(interrupted, TASKS, measured, folder, workers=1, progress=no_progress)
    again = []

    def resumed(task):
        again.append(task)
        return fake_block(task)

    told = []
    report = lambda *news: told.append(news)  # noqa: E731
    collect_blocks(resumed, TASKS, measured, folder, workers=1, progress=report)
    assert made == TASKS[:2]
    assert again == TASKS[2:]
    assert measured.blocks == {name: [fake_block((name, i)) for i in (0, 1)] for name in "ab"}
    assert told[0] == ("runs", 40, 80)
    assert told[-1] == ("runs", 80, 80)


@pytest.mark.slow
def test_blocks_are_made_in_processes():
    measured = MechanismRuns([])
    collect_blocks(fake_block, TASKS, measured, None, workers=2, progress=no_progress)
    assert measured.blocks == {name: [fake_block((name, i)) for i in (0, 1)] for name in "ab"}


@pytest.fixture
def few_runs(monkeypatch):
    monkeypatch.setattr(case_runs, "BLOCK_RUNS", 2)
    monkeypatch.setattr(mechanism, "BLOCK_RUNS", 2)


@pytest.mark.usefixtures("few_runs")
def test_an_audit_writes_its_page_and_goes_on_with_more_runs(tmp_path):
    settings = {"workers": 1, "key": 1, "mode": "seedless", "delta": 1e-2}
    report = audit_mechanism(out=tmp_path / "out", runs=4, **settings)
    assert report.within
    document = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert document["subject"] == "mechanism"
    assert document["sections"]["many targets"]["runs"] == 8
    assert "Noise of each stage" in (tmp_path / "out" / "audit.html").read_text()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    audit_mechanism(out=tmp_path / "out", runs=8, **settings)
    document = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert document["sections"]["many targets"]["runs"] == 16
    assert all(path.stat().st_mtime_ns == at for path, at in kept.items())
    with pytest.raises(OutputError, match="other settings"):
        audit_mechanism(out=tmp_path / "out", runs=8, **{**settings, "delta": 1e-3})


@pytest.mark.usefixtures("few_runs")
def test_a_planted_fault_is_reported_with_the_runs_it_took():
    settings = {"workers": 1, "key": 1, "mode": "one-shot", "delta": 1e-2}
    report = audit_mechanism(runs=40, plant="half-noise", **settings)
    assert not report.within
    assert "It was found in" in report.headline
    assert report.settings["runs_to_find"] >= 1


def test_faults_are_planted_where_there_is_an_artefact():
    with pytest.raises(ConfigError, match="seedless"):
        audit_mechanism(plant="half-noise", mode="tested", delta=1e-2)


@pytest.mark.usefixtures("few_runs")
def test_runs_of_other_code_are_not_continued(tmp_path, monkeypatch):
    settings = {"workers": 1, "key": 1, "data_use": "split", "delta": 1e-2, "runs": 8}
    audit_mechanism(out=tmp_path / "out", **settings)
    monkeypatch.setattr(mechanism, "code_fingerprint", lambda: "of other code")
    with pytest.raises(OutputError, match="other settings"):
        audit_mechanism(out=tmp_path / "out", **settings)


def test_infinite_epsilon_promises_nothing():
    with pytest.raises(ConfigError, match="promises nothing"):
        audit_mechanism(epsilon=float("inf"))
    with pytest.raises(ConfigError, match="the faults are"):
        audit_mechanism(plant="unknown")
