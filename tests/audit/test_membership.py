"""Likelihood ratios of released numbers: against the definition, and their mean in both worlds."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from audited_tables import COLOURS, NOISE, PLACES, TABLE, audited_table, codes_of, run_of
from deniable.audit.likelihood_ratio import MAX_LOG_RATIO, NoisyTable, law_ratios
from deniable.audit.membership import (
    KnownRows,
    evidence_ratios,
    gaussian_ratios,
    known_rows,
    prefix_ratios,
    released_prefix_ratios,
)
from deniable.audit.retraining import pass_probability, retrain
from deniable.counting.local import LocalRows
from deniable.model.graph import Graph
from deniable.pipeline.api import partition_rows
from deniable.pipeline.learn_model import learn_model, measure_counts
from deniable.privacy.noise_laws import exact, truncated_geometric
from deniable.randomness import Keyed
from deniable.release.seed_histogram import KeptPrefixes

pytestmark = pytest.mark.slow

TARGET = np.array([3])


def measured(codes, run):
    """The noisy counts of the model, without the fit that follows from them, and the graph."""
    if run.plan.privacy.pairs is None:
        learnt = learn_model(partition_rows(LocalRows(codes), run), run)
        return learnt.evidence, learnt.network.graph
    found, _ = measure_counts(LocalRows(codes), run, run.plan.privacy.pairs)
    return found, Graph(tuple(() for _ in run.schema.attributes))


def ratio(run, present):
    codes = codes_of(TABLE)
    rows = codes if present else np.asfortranarray(np.delete(codes, 3, axis=0))
    weights = np.ones(len(codes))
    weights[3] = present
    evidence, graph = measured(rows, run)
    return evidence_ratios(evidence, graph, known_rows(codes, weights, TARGET, run.plan), run)[0]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "seedless"},
        {"mode": "seedless", "estimator": "norm-sub"},
        {"mode": "seedless", "estimator": "clip", "data_use": "split"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_counts_without_noise_show_the_row(options):
    run = run_of(epsilon=math.inf, **options)
    if options.get("data_use") == "split":  # which part a row went to is secret
        scores = [[ratio(run_number(run, i), p) for i in range(16)] for p in (True, False)]
        assert np.mean(scores[0]) > np.mean(scores[1])
        return
    assert ratio(run, True) > 100
    assert ratio(run, False) < -100


def run_number(run, number):
    return replace(run, randomness=Keyed.derived(NOISE.at("scan", number)))


# With three-way interactions, and with too much noise for them: further tables in their place.
@pytest.mark.parametrize("epsilon", [20.0, 0.5])
def test_the_ratio_of_gaussian_counts_has_the_mean_of_its_information(epsilon):
    """The log ratio of Gaussian noise is N(± μ²/2, μ²): here of all counts, in both worlds."""
    run = run_of(epsilon=epsilon, delta=1e-3, mode="seedless")
    evidence, _ = measured(codes_of(TABLE), run)
    assert (evidence.three_way is not None) == (epsilon > 1)
    mu2 = sum(spend.mu**2 for spend in run.plan.privacy.spends)
    for present, sign in ((True, 1), (False, -1)):
        scores = np.array([ratio(run_number(run, i), present) for i in range(25)])
        error = math.sqrt(mu2 / len(scores))
        # The interactions' scales are rounded up, so that μ² is a little smaller than charged.
        assert abs(scores.mean() - sign * mu2 / 2) < 4 * error + 0.05 * mu2
        assert 0.3 < scores.var() / mu2 < 2.2  # of 25: each side less than once in a thousand


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("is_present", [False, True])
def test_a_gaussian_table_has_the_ratio_of_two_normal_densities(is_present, copies):
    """Also of a person with several rows; the other rows are known."""
    rows = np.array([[0], [2], [2], [1]], dtype=np.uint16)
    released = np.array([0.3, -1.0, 4.5])
    table = NoisyTable(
        name="x",
        numbers=released,
        attributes=(0,),
        bins=(np.arange(3),),
        variance=2.0,
    )
    weights = np.array([1, 1, copies * is_present, 1], dtype=float)
    known = KnownRows(
        codes=rows,
        weights=weights,
        targets=np.array([2]),
        shares={},
        copies=copies,
    )
    densities = [
        stats.norm([1, 1, 1 + own], math.sqrt(2)).logpdf(released).sum() for own in (copies, 0)
    ]
    ratios, noise = gaussian_ratios(table, known)
    assert ratios[0] == pytest.approx(densities[0] - densities[1])
    assert noise == pytest.approx(released - [1, 1, 1 + copies * is_present])


def test_tables_of_a_graph_have_the_ratio_of_their_law():
    run = run_of(
        mode="seedless",
        estimator="norm-sub",
        graph={"size": ["colour"]},
        delta=1e-3,
        accept_large_delta=True,
    )
    evidence, graph = measured(codes_of(TABLE), run)
    known = known_rows(codes_of(TABLE), np.ones(600), TARGET, run.plan)
    found = evidence_ratios(evidence, graph, known, run)
    colour, size, place = codes_of(TABLE)[3]
    alike = [TABLE.filter(pl.col("colour") == COLOURS[colour])]
    alike += [alike[0].filter(pl.col("size") == size), TABLE.filter(place=PLACES[place])]
    one, two, three = map(np.asarray, evidence.tables)
    noisy = [one[0, colour], two[colour, size], three[0, place]]
    noise = np.array([own - (len(rows) - 1) for own, rows in zip(noisy, alike, strict=True)])
    law = run.plan.privacy.counts
    assert law.name == "discrete_laplace"
    assert found[0] == pytest.approx(law_ratios(law, noise).sum())


def test_three_way_interactions_add_the_ratio_of_their_densities():
    """Against the definition: normal densities of tables centred with and without the target."""
    run, codes = (
        run_of(epsilon=20.0, delta=1e-3, mode="seedless"),
        codes_of(TABLE),
    )
    evidence, graph = measured(codes, run)
    known = known_rows(codes, np.ones(len(codes)), TARGET, run.plan)
    more = [
        evidence_ratios(each, graph, known, run)[0]
        for each in (evidence, replace(evidence, three_way=None))
    ]
    three_way = evidence.three_way
    logarithms = []
    for rows in (codes, np.delete(codes, 3, axis=0)):
        counts = np.zeros(three_way.interactions[0, 1, 2].shape)
        for row in rows:
            counts[
                tuple(three_way.groups[i][evidence.bins[i][code]] for i, code in enumerate(row))
            ] += 1
        for axis in range(3):
            counts -= counts.mean(axis=axis, keepdims=True)
        excess = (three_way.interaction((0, 1, 2)) - counts) / three_way.sigmas[0, 1, 2]
        logarithms.append(-0.5 * np.square(excess).sum())
    # The attacker also knows of the rounding to integers.
    assert more[0] - more[1] == pytest.approx(logarithms[0] - logarithms[1], rel=2e-3)


def test_the_histogram_ratio_is_that_of_the_law():
    codes = codes_of(TABLE)
    run = run_of(epsilon=1.0, k=20)
    law, order = truncated_geometric(1.0, 4), (0, 1, 2)
    known = known_rows(codes, np.ones(len(codes)), TARGET, run.plan)
    count = int((codes[:, 0] == codes[3, 0]).sum())
    weights = law.table.probabilities()

    def of(noisy):
        prefixes = codes[TARGET][:, :1] if noisy is not None else codes[:0, :1]
        counts = np.array([] if noisy is None else [noisy], dtype=np.int64)
        level = KeptPrefixes(prefixes=prefixes, counts=counts, records=600)
        ratios, noise = prefix_ratios(level, order, known, k=20, law=law)
        assert noise.tolist() == ([] if noisy is None else [noisy - count])
        return ratios[0]

    assert of(count) == pytest.approx(math.log(weights[0] / weights[1]))
    assert of(count - 1) == pytest.approx(math.log(weights[1] / weights[0]))
    assert of(count + 4) == MAX_LOG_RATIO  # out of reach without the row
    assert of(None) <= 0  # many rows: hardly ever hidden


def test_a_prefix_at_the_limit_gives_the_row_away():
    codes = codes_of(TABLE)
    count = int((codes[:, 0] == codes[3, 0]).sum())
    run = run_of(epsilon=math.inf, k=count)
    known = known_rows(codes, np.ones(len(codes)), TARGET, run.plan)
    level = KeptPrefixes(
        prefixes=codes[TARGET][:, :1], counts=np.array([count]), records=len(codes)
    )
    assert prefix_ratios(level, (0, 1, 2), known, k=count, law=exact())[0][0] >= 100


def test_released_prefixes_give_away_the_row_that_makes_them_pass():
    """With exactly k rows of a prefix, a record that has it proves the k-th."""
    audited = audited_table([0], mode="tested", omega="2", k=100, epsilon=math.inf)
    codes = audited.codes
    made = retrain(audited, codes, audited.run_number(1), key=1)
    column = made.model.network.order[0]
    rarest = np.argmin(np.where(np.bincount(codes[:, column]) >= 100, 1, np.inf))
    of_prefix = np.flatnonzero(codes[:, column] == rarest)
    run = run_of(mode="tested", omega="2", k=len(of_prefix), epsilon=math.inf)
    known = known_rows(codes, np.ones(len(codes)), of_prefix[:1], run.plan)
    passes = pass_probability(run)
    released = codes[of_prefix[:30]]
    assert released_prefix_ratios(released, made.model, known, passes)[0] > 50
    none = codes[codes[:, column] != rarest][:30]
    assert released_prefix_ratios(none, made.model, known, passes)[0] < 0
