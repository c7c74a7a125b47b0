"""Log likelihood ratios against definitions: single laws, mixtures, and whole artefacts."""

import math
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from scipy import stats

from deniable.audit.likelihood_ratio import (
    ALL_TABLES,
    MAX_LOG_RATIO,
    CountStage,
    TailProbabilities,
    charged_stages,
    combine_parts,
    histogram_ratios,
    law_ratios,
    pairwise_stages,
    table_ratios,
)
from deniable.audit.neighbours import diagonal_rows, make_schema
from deniable.config import Config
from deniable.pipeline.api import learn
from deniable.pipeline.run_plan import plan_run
from deniable.privacy.noise_laws import discrete_laplace, exact, truncated_geometric
from deniable.privacy.pairwise_budget import PAIRS_SPEND, THREE_WAY_SPEND
from deniable.randomness import Keyed


def test_the_ratio_of_a_law_is_that_of_its_exact_probabilities():
    law = truncated_geometric(0.7, 3)
    noise = np.arange(-4, 6)
    for z, ratio in zip(noise, law_ratios(law, noise), strict=True):
        with_row, without = law.probability(int(z) - 1), law.probability(int(z))
        if with_row and without:
            assert ratio == pytest.approx(math.log(with_row / without))
        else:
            expected = 0.0 if with_row == without else MAX_LOG_RATIO if with_row else -MAX_LOG_RATIO
            assert ratio == expected


def test_exact_counts_prove_the_row():
    assert law_ratios(exact(), np.array([0, 1])).tolist() == [-MAX_LOG_RATIO, MAX_LOG_RATIO]


@pytest.mark.parametrize("is_present", [False, True])
def test_a_gaussian_stage_has_the_ratio_of_two_normal_densities(is_present):
    shifts = np.array([[1.0, 0.0, 2.0]])
    noise = np.array([0.3, -1.0, 2.5])
    stage = CountStage("x", "structure", noise, shifts, variance=2.0)
    # Noise is measured with the row in the table, if it is there.
    seen = noise + (shifts[0] if is_present else 0)
    densities = stats.norm(0, math.sqrt(2)).logpdf
    expected = (densities(seen - shifts[0]) - densities(seen)).sum()
    assert stage.log_ratios(np.array([is_present]))[0] == pytest.approx(expected)
    assert stage.information[0] == pytest.approx(5 / 2)


def test_a_split_has_the_ratio_of_a_mixture():
    ratios = {"structure": np.array([0.5]), "parameters": np.array([-0.2])}
    fractions = {"structure": 0.3, "parameters": 0.6}
    expected = math.log(0.1 + 0.3 * math.exp(0.5) + 0.6 * math.exp(-0.2))
    assert combine_parts(ratios, fractions)[0] == pytest.approx(expected)
    assert combine_parts(ratios, None)[0] == pytest.approx(0.3)


def test_a_prefix_is_hidden_with_the_probability_of_low_noise():
    law, k = truncated_geometric(0.5, 4), 10
    tail = TailProbabilities.of(law)
    for count in (9, 10, 12, 14, 18, 19):
        hidden = sum(law.probability(z) for z in range(-4, 5) if count + z < k + 4)
        assert tail.hidden(count, k=k) == pytest.approx(1.0 if count < k else float(hidden))


OPTIONS = {"mode": "seedless", "epsilon": 1.0, "delta": 1e-3, "workers": 1}
SCHEMA = make_schema(3, 4)


def frame(rows):
    values = SCHEMA.attributes[0].values
    return pl.DataFrame(
        {name: [values[code] for code in rows[:, i]] for i, name in enumerate(SCHEMA.names)}
    )


# 6,400 rows are enough for three-way interactions; with 80, further tables take their place.
@pytest.mark.parametrize("copies", [1600, 20], ids=["triples", "further tables"])
def test_under_the_same_noise_the_stages_of_neighbours_show_the_same_noise(copies):
    """So what a target is said to add to each stage is what the code adds."""
    base = np.repeat(diagonal_rows(4, 3), copies, axis=0)
    targets = np.array([[0, 2, 3]], dtype=np.uint16)
    plan = plan_run(SCHEMA, Config.assemble(OPTIONS)).privacy
    found = []
    for rows in (base, np.concatenate([base, targets])):
        evidence = learn(frame(rows), SCHEMA, noise=Keyed(4), **OPTIONS).evidence
        found.append(list(pairwise_stages(evidence, SCHEMA.names, rows, targets, plan.pairs)))
    without, with_row = found
    has_triples = copies == 1600
    assert len(without) == len(with_row) == (10 if has_triples else 9)
    for one, two in zip(without, with_row, strict=True):
        assert one.noise == pytest.approx(two.noise)
        assert np.abs(one.noise).max() > 0
    charged = {spend.what: spend.mu for spend in plan.spends}
    information: defaultdict[str, float] = defaultdict(float)
    for stage in with_row:
        information[stage.name] += float(stage.information[0])
    assert math.sqrt(sum(information.values())) == pytest.approx(
        math.hypot(*charged.values()), rel=0.01
    )
    # Each stage reveals what its entries charge, whichever way "three-way interactions" pays.
    assert (THREE_WAY_SPEND in information) == has_triples
    assert (ALL_TABLES in information) == (not has_triples)
    for name, own in information.items():
        assert math.sqrt(own) == pytest.approx(charged_stages(charged)[name], rel=0.01)


def test_further_tables_are_charged_to_both_entries():
    charged = {PAIRS_SPEND: 0.3, THREE_WAY_SPEND: 0.4, "values of x": 0.1}
    assert charged_stages(charged) == {**charged, ALL_TABLES: 0.5}
    without = {PAIRS_SPEND: 0.3}
    assert charged_stages(without) == without


def test_three_way_interactions_have_the_ratio_of_their_densities():
    """Against the definition: exact tables with and without the target, centred one by one."""
    rows = np.repeat(diagonal_rows(4, 3), 1600, axis=0)
    target = np.array([[0, 2, 3]], dtype=np.uint16)
    plan = plan_run(SCHEMA, Config.assemble(OPTIONS)).privacy
    evidence = learn(frame(rows), SCHEMA, noise=Keyed(4), **OPTIONS).evidence
    stages = pairwise_stages(evidence, SCHEMA.names, rows, target, plan.pairs)
    (stage,) = [stage for stage in stages if stage.name == THREE_WAY_SPEND]
    three_way = evidence.three_way
    released, sigma = three_way.interaction((0, 1, 2)), three_way.sigmas[0, 1, 2]
    logarithms = []
    for table in (np.concatenate([rows, target]), rows):
        counts = np.zeros(released.shape)
        for row in table:
            cell = (three_way.groups[i][evidence.bins[i][row[i]]] for i in range(3))
            counts[tuple(cell)] += 1
        for axis in range(3):
            counts -= counts.mean(axis=axis, keepdims=True)
        logarithms.append(stats.norm(counts, sigma).logpdf(released).sum())
    found = stage.log_ratios(np.array([False]))[0]
    assert found == pytest.approx(logarithms[0] - logarithms[1], rel=1e-3)


def test_kept_prefixes_have_the_ratio_of_the_noise_of_their_counts():
    options = {**OPTIONS, "mode": "one-shot", "omega": "2", "k": 5}
    law = plan_run(SCHEMA, Config.assemble(options)).privacy.seeds
    rows = np.repeat(diagonal_rows(4, 3), 5 + 2 * law.radius + 1, axis=0)
    targets = diagonal_rows(4, 3)[:2]
    artefact = learn(frame(rows), SCHEMA, noise=Keyed(4), **options)
    present = np.array([True, False])
    ratios, noise = histogram_ratios(artefact, rows, targets, present, k=5, law=law)
    (level,) = artefact.histogram.levels
    column = artefact.network.order[0]
    for at, target in enumerate(targets):
        (count,) = level.counts[level.prefixes[:, 0] == target[column]]
        others = int((rows[:, column] == target[column]).sum()) - int(present[at])
        assert ratios[at] == law_ratios(law, np.array([count - others]))[0]
        assert noise[at] == count - others - present[at]


def test_a_prefix_that_is_not_kept_counts_too():
    options = {**OPTIONS, "mode": "one-shot", "omega": "2", "k": 5}
    law = plan_run(SCHEMA, Config.assemble(options)).privacy.seeds
    rows = diagonal_rows(4, 3)[[0, 0, 0, 0]]
    artefact = learn(frame(rows), SCHEMA, noise=Keyed(4), **options)
    target, absent = rows[:1], np.array([False])
    ratios, noise = histogram_ratios(artefact, rows, target, absent, k=5, law=law)
    hidden = 1 - float(law.probability(law.radius))  # a fifth row is kept by the largest noise only
    assert ratios[0] == pytest.approx(math.log(hidden))
    assert noise == []


def test_tables_of_a_graph_have_the_ratio_of_their_law():
    options = {**OPTIONS, "graph": {"column_2": ["column_1"]}, "estimator": "norm-sub"}
    plan = plan_run(SCHEMA, Config.assemble(options)).privacy
    rows = diagonal_rows(4, 3)
    artefact = learn(frame(rows), SCHEMA, noise=Keyed(4), **options)
    target = np.array([[1, 1, 0]], dtype=np.uint16)
    absent = np.array([False])
    found = table_ratios(artefact.network, artefact.evidence, rows, target, absent, law=plan.counts)
    one, two, three = map(np.asarray, artefact.evidence.tables)
    noise = [one[0, 1] - 1, two[1, 1] - 0, three[0, 0] - 1]
    assert plan.counts.name == discrete_laplace(1.0).name
    assert found[0] == pytest.approx(law_ratios(plan.counts, np.array(noise)).sum())
