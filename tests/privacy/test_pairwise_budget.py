"""Noise of one-way tables, interactions and two-way tables: its cost equals the budget."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.privacy import noise_laws
from deniable.privacy.calibration import PublicFacts
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import compose_spends
from deniable.privacy.noise_tables import epsilon_of_relative_error
from deniable.privacy.pairwise_budget import (
    INTERACTIONS_SHARE,
    INTERACTIONS_SPEND,
    MAX_GROUPS,
    MAX_THREE_WAY_GROUPS,
    PAIRS_SPEND,
    TARGET_WEIGHT,
    THREE_WAY_SPEND,
    count_reserved,
    count_tables,
    gaussian_sigma,
    interaction_sigmas,
    interactions_spend,
    pair_noise,
    pairwise_shares,
    three_way_spend,
)
from deniable.privacy.plan import make_plan
from worlds import property_test

# A law has a table of its own, which takes its time.
few = settings(property_test, max_examples=15)
sizes_of_schemas = st.lists(st.integers(1, 500), min_size=1, max_size=12)
mus = st.floats(0.05, 3.0)
# 60 attributes have more pairs than two-way tables are for.
NUMBERS = (1, 2, 11, 40, 60)


def names(m):
    return [f"x{i}" for i in range(m)]


def squares(spends, part):
    """μ² of a part: Σ (L2 sensitivity / σ)² of its uses."""
    return sum(
        s.l0_sensitivity * s.sensitivity**2 / gaussian_sigma(s.law) ** 2
        for s in spends
        if s.part == part
    )


def assert_whole(sizes, mu_values, mu_pairs):
    noise = pair_noise(sizes, mu_values=mu_values, mu_pairs=mu_pairs)
    spends = noise.spends(names(len(sizes)))
    assert squares(spends, "structure") == pytest.approx(mu_values**2, rel=1e-9)
    wanted = mu_pairs**2 if len(sizes) > 1 else 0.0
    assert squares(spends, "parameters") == pytest.approx(wanted, rel=1e-9)
    assert all(spend.law.name == "rounded_gaussian" for spend in spends)


@few
@given(sizes_of_schemas, mus, mus)
def test_the_squares_of_all_uses_add_up_to_those_of_their_stage(sizes, mu_values, mu_pairs):
    """Σ 1/σ² = μ²: no more, and nothing left over."""
    assert_whole(sizes, mu_values, mu_pairs)


@pytest.mark.parametrize("m", [*NUMBERS, 100, 150])
def test_they_add_up_for_any_number_of_attributes(m):
    assert_whole([2 + i % 7 for i in range(m)], 0.4, 0.7)


def test_two_way_tables_are_four_for_each_of_at_most_700_pairs():
    """Or of 7 per attribute: by hand."""
    assert [count_tables(m) for m in (1, 2, 11, 38, 60, 100, 120)] == [
        *(0, 4, 4 * 55, 4 * 700, 4 * 700, 4 * 700, 4 * 840)
    ]


@pytest.mark.parametrize("m", NUMBERS)
def test_every_use_is_listed_once(m):
    noise = pair_noise([3] * m, mu_values=0.5, mu_pairs=0.5)
    whats = [spend.what for spend in noise.spends(names(m))]
    assert len(set(whats)) == len(whats)
    # 40 attributes have 9,880 triples, too many; two have none.
    three_way = [THREE_WAY_SPEND] if m == 11 else []
    pairs = [INTERACTIONS_SPEND, *three_way, PAIRS_SPEND] if m > 1 else []
    assert whats == [*(f"values of {name}" for name in names(m)), *pairs]


@pytest.mark.parametrize("m", [2, 11, 60])
def test_interactions_have_their_share_of_the_pairs_and_tables_the_rest(m):
    noise = pair_noise([3] * m, mu_values=0.5, mu_pairs=0.5)
    spends = {spend.what: spend for spend in noise.spends(names(m))}
    interactions, tables = spends[INTERACTIONS_SPEND], spends[PAIRS_SPEND]
    assert interactions.l0_sensitivity == 16 * MAX_GROUPS**2 * m * (m - 1) // 2
    assert interactions.mu**2 == pytest.approx(INTERACTIONS_SHARE * 0.25, rel=1e-9)
    assert noise.mu_interactions == interactions.mu
    reserved = count_reserved(m)
    assert (noise.table_count, noise.reserved_count) == (count_tables(m), reserved)
    assert tables.l0_sensitivity == count_tables(m) - reserved
    given_up = reserved / count_tables(m)
    assert tables.mu**2 == pytest.approx((1 - given_up) * (1 - INTERACTIONS_SHARE) * 0.25)
    assert (THREE_WAY_SPEND in spends) == (reserved > 0) == (m == 11)
    if reserved:
        three_way = spends[THREE_WAY_SPEND]
        assert three_way.mu**2 == pytest.approx(given_up * (1 - INTERACTIONS_SHARE) * 0.25)
        assert three_way.mu == noise.mu_three_way
        # It pays for the tables that are measured in its place.
        assert three_way.mu**2 >= reserved / gaussian_sigma(noise.tables) ** 2


def test_more_values_get_a_larger_share_but_not_in_proportion():
    """Powers of two thirds, up to 100 values: noise hides finer detail."""
    noise = pair_noise([60, 1_000, 100, 8], mu_values=0.2, mu_pairs=0.2)
    one, two, three, four = (gaussian_sigma(law) ** -2 for law in noise.values)
    assert one / three == pytest.approx((60 / 100) ** (2 / 3), rel=1e-6)
    assert two == pytest.approx(three, rel=1e-6)
    assert four / one == pytest.approx((8 / 60) ** (2 / 3), rel=1e-6)
    assert one + two + three + four == pytest.approx(0.2**2, rel=1e-6)


def test_without_noise_everything_is_exact_and_all_pairs_are_counted():
    for m in NUMBERS:
        noise = pair_noise([3] * m, mu_values=math.inf, mu_pairs=math.inf)
        spends = noise.spends(names(m))
        assert {spend.law.name for spend in spends} == {"exact"}
        assert noise.table_count == m * (m - 1) // 2
        assert INTERACTIONS_SPEND not in [spend.what for spend in spends]
        assert math.isinf(noise.mu_interactions)


@pytest.mark.parametrize("m", NUMBERS)
def test_the_shares_of_values_and_pairs_are_all_there_is(m):
    values, pairs = pairwise_shares(m)
    assert values + pairs == pytest.approx(1)
    assert values > 0
    assert (pairs > 0) == (m > 1)


# Interactions of pairs: the noise of each follows from their shapes, in one stated entry

numbers_of_groups = st.lists(st.integers(2, MAX_GROUPS), min_size=2, max_size=9)


@st.composite
def stages(draw):
    """Groups of each attribute, some of them targets, and the stage's noise as planned."""
    groups = draw(numbers_of_groups)
    targets = draw(st.sets(st.integers(0, len(groups) - 1)))
    pairs = list(combinations(range(len(groups)), 2))
    shapes = [(groups[i], groups[j]) for i, j in pairs]
    weights = [TARGET_WEIGHT if {i, j} & targets else 1 for i, j in pairs]
    mu_pairs = draw(st.floats(1e-3, 40.0))
    noise = pair_noise([9] * len(groups), mu_values=1.0, mu_pairs=mu_pairs)
    return shapes, weights, noise


def moved(a, b):
    """Squared length by which one record moves an a × b table after double centring, exactly.

    Literally: 1 in the record's cell, less row and column means, plus the mean.
    """
    return sum(
        (Fraction(i == j == 0) - Fraction(i == 0, b) - Fraction(j == 0, a) + Fraction(1, a * b))
        ** 2
        for i in range(a)
        for j in range(b)
    )


@property_test
@given(stages())
def test_the_squared_costs_of_all_pairs_are_those_of_the_stated_entry(stage):
    """Σ ‖Δ‖² / σ² ≤ μ², in exact fractions; and no more than 2^-45 of it is unused."""
    shapes, weights, noise = stage
    stated = interactions_spend(len(noise.values), noise.interactions)
    sigma = Fraction(gaussian_sigma(noise.interactions))
    allowed = Fraction(stated.l0_sensitivity * stated.sensitivity**2) / sigma**2
    sigmas = interaction_sigmas(shapes, weights, mu=noise.mu_interactions)
    # As drawn: the table scaled by its number of cells, with σ scaled alike and rounded.
    spent = sum(
        (a * b) ** 2 * moved(a, b) / Fraction(a * b * own) ** 2
        for (a, b), own in zip(shapes, sigmas, strict=True)
    )
    assert spent <= allowed
    assert spent >= allowed * (1 - Fraction(1, 2**45))


@property_test
@given(stages())
def test_pairs_with_a_target_have_half_the_sigma_of_others(stage):
    shapes, weights, noise = stage
    sigmas = interaction_sigmas(shapes, weights, mu=noise.mu_interactions)
    plain = interaction_sigmas([(2, 2)], [1], mu=noise.mu_interactions)[0] / math.sqrt(moved(2, 2))
    scaled = [s * math.sqrt(w) for s, w in zip(sigmas, weights, strict=True)]
    assert scaled == pytest.approx([scaled[0]] * len(scaled))
    total = sum(w * moved(*shape) for shape, w in zip(shapes, weights, strict=True))
    assert scaled[0] == pytest.approx(plain * math.sqrt(total))


@property_test
@given(stages())
def test_the_stated_entry_bounds_the_table_errors_of_all_pairs(stage):
    """Σ over the numbers that a record moves, as ``with_table_error`` needs it."""
    shapes, weights, noise = stage
    stated = interactions_spend(len(noise.values), noise.interactions)
    sigmas = interaction_sigmas(shapes, weights, mu=noise.mu_interactions)
    assert 16 * sum(a * b for a, b in shapes) <= stated.l0_sensitivity
    assert gaussian_sigma(noise.interactions) >= 12
    mass = growth = 0.0
    for (a, b), sigma in zip(shapes, sigmas, strict=True):
        # 2 · 16² √pairs / μ, and √(16 · 16² pairs) / μ for the entry.
        assert a * b * sigma <= 8 * gaussian_sigma(noise.interactions) * (1 + 1e-12)
        law = noise_laws.rounded_gaussian(a * b * sigma)
        mass += a * b * law.tv
        growth += a * b * epsilon_of_relative_error(law.relative_error)
    assert mass <= stated.table_error
    assert growth <= stated.table_growth


# Three-way interactions


@st.composite
def three_way_stages(draw):
    """Groups of each attribute, some of them targets, and the stage's noise as planned."""
    groups = draw(st.lists(st.integers(2, MAX_THREE_WAY_GROUPS), min_size=3, max_size=7))
    targets = draw(st.sets(st.integers(0, len(groups) - 1)))
    triples = list(combinations(range(len(groups)), 3))
    shapes = [tuple(groups[i] for i in triple) for triple in triples]
    weights = [TARGET_WEIGHT if set(triple) & targets else 1 for triple in triples]
    mu_pairs = draw(st.floats(1e-3, 40.0))
    return shapes, weights, pair_noise([9] * len(groups), mu_values=1.0, mu_pairs=mu_pairs)


@few
@given(three_way_stages())
def test_three_way_interactions_cost_no_more_than_their_entry(stage):
    """In exact fractions: Σ ‖Δ‖² / σ² ≤ μ² of the entry; and no more than 2^-45 of it is unused.

    By Lemma 11, ‖Δ‖² = (1 - 1/a)(1 - 1/b)(1 - 1/c) for the centred table.
    """
    shapes, weights, noise = stage
    stated = three_way_spend(len(noise.values), noise.three_way)
    allowed = Fraction(stated.l0_sensitivity) / Fraction(gaussian_sigma(noise.three_way)) ** 2
    sigmas = interaction_sigmas(shapes, weights, mu=noise.mu_three_way)
    spent = sum(
        math.prod(1 - Fraction(1, groups) for groups in shape) / Fraction(own) ** 2
        for shape, own in zip(shapes, sigmas, strict=True)
    )
    assert allowed * (1 - Fraction(1, 2**45)) <= spent <= allowed
    # The tables in their place cost what the entry states, not more.
    of_tables = noise.reserved_count / Fraction(gaussian_sigma(noise.tables)) ** 2
    assert of_tables <= allowed <= of_tables * (1 + Fraction(1, 2**45))


@few
@given(three_way_stages())
def test_the_entry_of_three_way_interactions_bounds_the_table_errors(stage):
    """Of the triples; and of the two-way tables that are measured in their place."""
    shapes, weights, noise = stage
    stated = three_way_spend(len(noise.values), noise.three_way)
    sigmas = interaction_sigmas(shapes, weights, mu=noise.mu_three_way)
    assert 16 * sum(map(math.prod, shapes)) <= stated.l0_sensitivity
    assert gaussian_sigma(noise.three_way) >= 12
    assert gaussian_sigma(noise.three_way) >= gaussian_sigma(noise.tables)
    mass = growth = 0.0
    for shape, sigma in zip(shapes, sigmas, strict=True):
        cells = math.prod(shape)
        assert cells * sigma <= 10 * gaussian_sigma(noise.three_way)
        law = noise_laws.rounded_gaussian(cells * sigma)
        mass += cells * law.tv
        growth += cells * epsilon_of_relative_error(law.relative_error)
    tables = noise.reserved_count
    assert max(mass, tables * noise.tables.tv) <= stated.table_error
    each = epsilon_of_relative_error(noise.tables.relative_error)
    assert max(growth, tables * each) <= stated.table_growth


def test_three_way_interactions_that_would_need_too_much_noise_have_no_entry():
    """Then all tables are planned as such, while interactions of pairs still have theirs."""
    for mu_pairs in (1e-3, 2e-3, 1e-2, 1.0):
        noise = pair_noise([4] * 30, mu_values=0.3, mu_pairs=mu_pairs)
        assert noise.interactions.name != "exact"
        assert (noise.reserved_count > 0) == (mu_pairs > 5e-3), mu_pairs
        spent = squares(noise.spends(names(30)), "parameters")
        assert spent == pytest.approx(mu_pairs**2, rel=1e-9)
    assert math.isinf(pair_noise([4] * 2, mu_values=1.0, mu_pairs=1.0).mu_three_way)


def test_the_bound_on_sigma_is_nearly_attained():
    """A pair without a target, all others with one: 256 · 15/16 · √(4 pairs) / μ."""
    m = 9
    pairs = list(combinations(range(m), 2))
    noise = pair_noise([9] * m, mu_values=1.0, mu_pairs=1.0)
    weights = [1, *[TARGET_WEIGHT] * (len(pairs) - 1)]
    shape = (MAX_GROUPS, MAX_GROUPS)
    sigmas = interaction_sigmas([shape] * len(pairs), weights, mu=noise.mu_interactions)
    assert MAX_GROUPS**2 * sigmas[0] / gaussian_sigma(noise.interactions) > 7.2


def test_without_noise_interactions_have_none():
    assert interaction_sigmas([(2, 3)], [1], mu=math.inf) == [0.0]


@pytest.mark.parametrize("m", [2, 10, 35, 50, 300])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-3])
def test_a_tiny_epsilon_has_a_plan(m, epsilon):
    """Without interactions if their noise would need too large a table; then tables have all."""
    noise = make_plan(facts(m, epsilon=epsilon, seeds=False)).pairs
    whats = [spend.what for spend in noise.spends(names(m))]
    assert (INTERACTIONS_SPEND in whats) == (noise.interactions.name != "exact")
    assert PAIRS_SPEND in whats
    if (m, epsilon) in ((2, 1e-4), (35, 1e-3)):
        assert (INTERACTIONS_SPEND in whats) == (m == 2)


@pytest.mark.parametrize("mu_pairs", [1e-5, 5e-5, 1e-4, 1.0, 100.0])
def test_the_pairs_never_cost_more_than_their_share(mu_pairs):
    """Less if the entry of interactions would have a σ below 12."""
    noise = pair_noise([4] * 30, mu_values=0.3, mu_pairs=mu_pairs)
    spent = squares(noise.spends(names(30)), "parameters")
    assert spent <= mu_pairs**2 * (1 + 1e-9)
    if mu_pairs < 50:
        assert spent == pytest.approx(mu_pairs**2, rel=1e-9)
    assert (noise.interactions.name == "exact") == (mu_pairs < 5e-4)


# In a plan


def facts(m, *, epsilon=1.0, delta=1e-9, seeds=True):
    return PublicFacts(
        limit=Guarantee(epsilon=epsilon, delta=delta),
        names=tuple(names(m)),
        queries=0,
        sizes=tuple(2 + i % 9 for i in range(m)),
        rows_max=10_000,
        seeds=seeds,
    )


@pytest.mark.parametrize("seeds", [False, True])
@pytest.mark.parametrize("m", NUMBERS)
def test_a_plan_is_within_what_is_asked_for_and_uses_it(m, seeds):
    asked = facts(m, seeds=seeds)
    plan = make_plan(asked)
    assert plan.cost.within(asked.limit)
    assert plan.cost.epsilon >= 0.9
    assert [spend.what for spend in plan.pairs.spends(asked.names)] == [
        spend.what for spend in plan.spends if spend.part != "seeds"
    ]


def test_a_plan_with_pairs_costs_what_one_gaussian_of_the_same_mu_costs():
    """Without seeds all uses are Gaussian: δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""
    asked = facts(11, seeds=False, delta=1e-6)
    plan = make_plan(asked)
    mu = math.sqrt(sum(squares(plan.spends, part) for part in ("structure", "parameters")))

    def phi(x):
        return 0.5 * math.erfc(-x / math.sqrt(2))

    def delta(epsilon):
        here, there = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return phi(here) - math.exp(epsilon) * phi(there)

    assert delta(plan.cost.epsilon) <= 1e-6
    assert delta(plan.cost.epsilon * 0.99) > 1e-6


@pytest.mark.parametrize("m", [2, 11, 60])
def test_half_the_noise_on_pairs_would_cost_more_than_is_asked_for(m):
    """So that a plan which forgot half of it would be refused."""
    asked = facts(m, seeds=False)
    plan = make_plan(asked)
    cheated = []
    for spend in plan.spends:
        times = 4 if spend.part == "parameters" else 1
        cheated.append(
            type(spend)(**{**vars(spend), "l0_sensitivity": times * spend.l0_sensitivity})
        )
    assert compose_spends(tuple(cheated), delta=1e-9).epsilon > 1.2 * asked.limit.epsilon


def test_noise_grows_with_the_number_of_attributes():
    plans = [make_plan(facts(m)).pairs for m in (2, 5, 11, 40)]
    for law in ("interactions", "tables"):
        assert np.all(np.diff([gaussian_sigma(getattr(plan, law)) for plan in plans]) > 0)
