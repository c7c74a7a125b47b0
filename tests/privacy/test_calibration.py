"""Calibration: budget shares, and the choice of noise for each stage."""

import math
from dataclasses import replace

import pytest

from deniable.errors import BudgetError
from deniable.privacy.calibration import (
    STRUCTURE_SHARE,
    PublicFacts,
    calibrate,
    seeds_share,
    structure_laws,
)
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import compose_spends
from deniable.privacy.noise_laws import MAX_RADIUS
from deniable.privacy.plan import SPLIT, make_plan
from deniable.privacy.randomized_test import plan_randomized_test


def facts(*, epsilon=1.0, delta=1e-9, m=5, seeds=True, rows_max=10**6, queries=40, sizes=()):
    return PublicFacts(
        limit=Guarantee(epsilon=epsilon, delta=delta),
        names=tuple(f"x{i}" for i in range(m)),
        queries=queries,
        rows_max=rows_max,
        seeds=seeds,
        sizes=sizes,
    )


@pytest.mark.parametrize(
    ("epsilon", "rows", "share"),
    [
        (1.0, 1_000, 0.005),
        (1.0, 25_000, 0.01),
        (1.0, 10**6, 0.02),  # more than 0.02 costs pairs more than it adds to high orders
        (0.1, 10**5, 0.005),  # as good as 10,000 rows at ε = 1
        (0.01, 10**5, 0.01),
        (1e-5, 10**6, 0.1),  # a smaller share would need a huge table of noise
        (math.inf, 10, 0.02),
    ],
)
def test_next_to_a_pairwise_model_seeds_get_more_of_epsilon_where_rows_are_many(
    epsilon, rows, share
):
    asked_for = facts(epsilon=epsilon, rows_max=rows, sizes=(2,) * 5)
    assert seeds_share(asked_for, asked_for.limit) == pytest.approx(share)


def test_in_a_small_table_seeds_cost_the_pairwise_model_half_a_percent_of_noise():
    """By the sum of 1/σ², which is μ² of all one-way tables and pairs together."""
    with_seeds, without = (
        calibrate(facts(rows_max=1_000, seeds=seeds, sizes=(2,) * 5), facts().limit)
        for seeds in (True, False)
    )
    assert 1 < without.mu_structure / with_seeds.mu_structure < 1.005


@pytest.mark.parametrize(
    ("epsilon", "rows", "share"),
    [
        (1.0, 2_000, 0.1),  # 10 · ln(10^9) / 2,000 = 0.1036
        (1.0, 5_000, 0.04145),
        (1.0, 100_000, 0.03),
        (0.1, 50_000, 0.04145),
        (math.inf, 10, 0.03),
    ],
)
def test_next_to_the_papers_model_seeds_get_more_where_their_noise_would_hide_them(
    epsilon, rows, share
):
    asked_for = facts(epsilon=epsilon, rows_max=rows)
    assert seeds_share(asked_for, asked_for.limit) == pytest.approx(share, abs=1e-5)


def test_the_noise_of_seeds_stays_below_a_tenth_of_the_rows_where_they_may_have_so_much():
    for rows in (5_000, 10_000, 10**6):
        assert make_plan(facts(rows_max=rows)).seeds.radius < rows / 10


def test_few_tables_get_laplace_noise_and_many_get_gaussian_noise():
    limit = Guarantee(epsilon=1.0, delta=1e-9)
    laws = {m: calibrate(facts(m=m, queries=0), limit).counts.name for m in (1, 2, 40)}
    assert laws == {1: "discrete_laplace", 2: "discrete_laplace", 40: "rounded_gaussian"}


def test_moments_turn_laplace_noise_into_gaussian_noise():
    """A regression shares the cost of a table among 30 numbers, which suits Gaussian noise."""
    plain = facts(m=5, queries=0)
    sums = replace(plain, models=("regression",) * 5)
    assert calibrate(plain, plain.limit).counts.name == "discrete_laplace"
    assert calibrate(sums, sums.limit).counts.name == "rounded_gaussian"


def test_structure_gets_a_tenth_of_the_squared_mu_or_nothing():
    """Gaussian noise on 40 tables: σ = √(40 / 0.9) / μ with structure, √40 / μ without."""
    learnt, given = (
        calibrate(facts(m=40, seeds=False, queries=queries), facts().limit) for queries in (860, 0)
    )
    sigma = dict(learnt.counts.parameters)["sigma"]
    mu = math.sqrt(40 / (1 - STRUCTURE_SHARE)) / sigma
    assert learnt.mu_structure == pytest.approx(mu * math.sqrt(STRUCTURE_SHARE))
    assert given.mu_structure == 0.0
    assert dict(given.counts.parameters)["sigma"] == pytest.approx(math.sqrt(40) / mu)


def test_every_part_of_a_split_gets_the_same_larger_epsilon():
    """Amplification: each part may cost ln(1 + (e - 1) / 1) = 1 if all are used, more if not."""
    both = calibrate(replace(facts(), fractions=SPLIT), facts().limit)
    without = calibrate(replace(facts(seeds=False), fractions=SPLIT), facts().limit)
    assert without.seeds is None
    assert both.seeds is not None
    assert without.mu_structure > both.mu_structure


def test_many_tested_records_are_taken_off_the_limit_before_the_model():
    """Beyond ε = 40 in all, the tests are composed apart: the model gets the rest of ε."""
    test = plan_randomized_test(
        Guarantee(epsilon=20.0, delta=1e-6), records=2_000, k=1_000, gamma=1.0
    ).spend
    assert test.times * test.each.epsilon > 40
    alone = facts(epsilon=25.0, delta=1e-5, seeds=False)
    tested = replace(alone, test=test)
    noise, free = calibrate(tested, tested.limit), calibrate(alone, alone.limit)
    assert 0 < noise.mu_structure < free.mu_structure
    small = replace(facts(epsilon=1.0, delta=1e-5, seeds=False), test=test)
    with pytest.raises(BudgetError, match="no budget is left for the model"):
        calibrate(small, small.limit)


def test_the_resolution_of_entropies_is_lowered_until_their_noise_fits_a_table():
    fine, coarse = (structure_laws(facts(queries=10_000), mu) for mu in (0.3, 0.003))
    assert fine[0].bits > coarse[0].bits
    assert max(fine[1].radius, coarse[1].radius) <= MAX_RADIUS
    with pytest.raises(BudgetError, match="entropies are too many"):
        structure_laws(facts(queries=10_000), 1e-6)


def test_calibrated_noise_costs_the_limit_up_to_the_reserve_for_rounding():
    plan = make_plan(facts(epsilon=0.7, seeds=False))
    assert 0.69 < compose_spends(plan.spends, delta=1e-9).epsilon <= 0.7
