"""Log likelihood ratios against definitions: single laws, mixtures, and whole artefacts."""

import math
from collections import defaultdict

import numpy as np
import polars as pl
import pytest

from deniable.audit.likelihood_ratio import (
    ALL_TABLES,
    MAX_LOG_RATIO,
    NoisyTable,
    TailProbabilities,
    charged_stages,
    law_ratios,
    noisy_tables,
)
from deniable.audit.neighbours import diagonal_rows, make_schema
from deniable.config import Config
from deniable.pipeline.api import learn
from deniable.pipeline.run_plan import plan_run
from deniable.privacy.noise_laws import exact, truncated_geometric
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
    two = float(law.probability(0) / law.probability(2))
    assert law_ratios(law, np.array([2]), rows=2)[0] == pytest.approx(math.log(two))


def test_exact_counts_prove_the_row():
    assert law_ratios(exact(), np.array([0, 1])).tolist() == [-MAX_LOG_RATIO, MAX_LOG_RATIO]


def centred(table):
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


@pytest.mark.parametrize("is_centred", [False, True], ids=["counts", "interactions"])
def test_a_table_shows_its_noise_and_the_part_of_it_along_a_row(is_centred):
    rng = np.random.default_rng(1)
    counts, noise = rng.integers(0, 9, (3, 4)).astype(float), rng.normal(size=(3, 4))
    table = NoisyTable(
        name="x",
        numbers=(centred(counts) if is_centred else counts) + noise,
        attributes=(2, 0),
        bins=(np.array([0, 1, 2, 2]), np.arange(4)),
        variance=1.0,
        is_centred=is_centred,
    )
    rows = np.array([[1, 9, 3], [3, 9, 0]], dtype=np.uint16)
    assert table.cells(rows).tolist() == [2 * 4 + 1, 0 * 4 + 3]
    found = table.noise(counts.ravel())
    assert found == pytest.approx(noise.ravel())
    for cell in range(12):
        row = np.zeros((3, 4))
        row.ravel()[cell] = 1
        shift = centred(row) if is_centred else row
        assert table.projections(found, np.array([cell]))[0] == pytest.approx((shift * noise).sum())
        assert table.squared_shift == pytest.approx((shift**2).sum())


def test_a_prefix_is_hidden_with_the_probability_of_low_noise():
    law, k = truncated_geometric(0.5, 4), 10
    tail = TailProbabilities.of(law)
    for count in (9, 10, 12, 14, 18, 19):
        hidden = sum(law.probability(z) for z in range(-4, 5) if count + z < k + 4)
        assert tail.hidden(count, k=k) == pytest.approx(1.0 if count < k else float(hidden))
    both = tail.hidden(12, k=k), tail.hidden(10, k=k)
    assert tail.hidden_ratio(10, k=k, rows=2) == pytest.approx(math.log(both[0] / both[1]))
    assert tail.hidden_ratio(17, k=k) == -MAX_LOG_RATIO  # 18 rows are never hidden


OPTIONS = {"mode": "seedless", "epsilon": 1.0, "delta": 1e-3, "workers": 1}
OPTIONS["accept_large_delta"] = True
SCHEMA = make_schema(3, 4)


def frame(rows):
    values = SCHEMA.attributes[0].values
    return pl.DataFrame(
        {name: [values[code] for code in rows[:, i]] for i, name in enumerate(SCHEMA.names)}
    )


# 6,400 rows are enough for three-way interactions; with 80, further tables take their place.
@pytest.mark.parametrize("copies", [1600, 20], ids=["triples", "further tables"])
def test_under_the_same_noise_the_tables_of_neighbours_show_the_same_noise(copies):
    """So what a target is said to add to each table is what the code adds."""
    base = np.repeat(diagonal_rows(4, 3), copies, axis=0)
    target = np.array([[0, 2, 3]], dtype=np.uint16)
    plan = plan_run(SCHEMA, Config.assemble(OPTIONS)).privacy
    found: list[list[np.ndarray]] = []
    information: defaultdict[str, float] = defaultdict(float)
    for rows in (base, np.concatenate([base, target])):
        evidence = learn(frame(rows), SCHEMA, noise=Keyed(4), **OPTIONS).evidence
        tables = list(noisy_tables(evidence, SCHEMA.names, plan.pairs))
        counts = [np.bincount(t.cells(rows), minlength=t.numbers.size) for t in tables]
        found.append([t.noise(own.astype(float)) for t, own in zip(tables, counts, strict=True)])
    has_triples = copies == 1600
    assert len(found[0]) == len(found[1]) == (10 if has_triples else 9)
    for one, two in zip(*found, strict=True):
        assert one == pytest.approx(two)
        assert np.abs(one).max() > 0
    for table in tables:
        information[table.name] += table.squared_shift / table.variance
    charged = {spend.what: spend.mu for spend in plan.spends}
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
