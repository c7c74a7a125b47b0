"""Noise of one-way and two-way tables: its cost equals the budget."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.privacy.calibration import PublicFacts
from deniable.privacy.composition import Guarantee
from deniable.privacy.ledger import compose_spends
from deniable.privacy.pairwise_budget import (
    gaussian_sigma,
    pair_counts,
    pair_noise,
    pairwise_shares,
)
from deniable.privacy.plan import SPLIT, SPLIT_SEEDLESS, make_plan
from worlds import property_test

# A law has a table of its own, which takes its time.
few = settings(property_test, max_examples=15)
sizes_of_schemas = st.lists(st.integers(1, 500), min_size=1, max_size=12)
mus = st.floats(0.05, 3.0)
# Below, all pairs are counted at 1, 2 and 11 attributes, and only some at 60.
NUMBERS = (1, 2, 11, 40, 60)


def names(m):
    return [f"x{i}" for i in range(m)]


def squares(spends, part):
    """μ² of a part: Σ (L2 sensitivity / σ)² of its uses."""
    return sum(
        s.moved * s.sensitivity**2 / gaussian_sigma(s.law) ** 2 for s in spends if s.part == part
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
def test_they_add_up_where_only_some_pairs_are_counted_too(m):
    assert_whole([2 + i % 7 for i in range(m)], 0.4, 0.7)


def test_some_of_those_schemas_have_too_many_pairs_to_count_all():
    """Or the tests here would not be about the choice of pairs."""
    every, counted = pair_counts(max(NUMBERS))
    assert counted < every
    assert pair_counts(11) == (55, 55)


@property_test
@given(st.integers(1, 2_000))
def test_pairs_are_counted_for_every_attribute_and_never_more_than_there_are(m):
    every, counted = pair_counts(m)
    assert every == m * (m - 1) // 2
    assert counted == every or counted >= m
    assert counted <= every


def test_fewer_pairs_are_counted_where_all_would_drown():
    """(μ rows / 300)², a quarter at least, or 1.5 to 2.5 an attribute, at most all: by hand."""
    rows = (10_000, 30_000, 63_000, 80_000, 111_000, 112_000, 10**7)
    counted = [pair_counts(11, mu=0.02, rows_max=n)[1] for n in rows]
    assert counted == [16, 16, 17, 28, 54, 55, 55]
    assert pair_counts(35, mu=0.02, rows_max=10_000) == (595, 87)
    assert pair_counts(7, mu=0.02, rows_max=100) == (21, 10)
    assert pair_counts(15, mu=0.02, rows_max=100) == (105, 26)
    # More than 700 only where that is 7 for each attribute.
    assert pair_counts(60, mu=1.0, rows_max=10**7) == (1_770, 700)
    assert pair_counts(120, mu=1.0, rows_max=10**7) == (7_140, 840)


@property_test
@given(st.integers(2, 300), mus, st.integers(1, 10**7))
def test_less_noise_or_more_rows_never_mean_fewer_pairs(m, mu, rows):
    _, counted = pair_counts(m, mu=mu, rows_max=rows)
    for more in ({"mu": 1.1 * mu, "rows_max": rows}, {"mu": mu, "rows_max": 2 * rows}):
        assert pair_counts(m, **more)[1] >= counted


@pytest.mark.parametrize("rows_max", [10, 3_000, 10**6])
def test_they_add_up_however_many_pairs_are_counted(rows_max):
    noise = pair_noise([4] * 30, mu_values=0.3, mu_pairs=0.4, rows_max=rows_max)
    spends = noise.spends(names(30))
    assert squares(spends, "parameters") == pytest.approx(0.4**2, rel=1e-9)
    assert (noise.strength is None) == (noise.measured == 435)
    listed = {spend.what: spend.moved for spend in spends}
    assert listed["pairs of attributes"] == noise.measured
    assert listed["remeasured pairs of attributes"] == 4 * noise.measured
    assert listed.get("strength of pairs", 435) == 435


@pytest.mark.parametrize("m", NUMBERS)
def test_every_use_is_listed_once(m):
    noise = pair_noise([3] * m, mu_values=0.5, mu_pairs=0.5)
    whats = [spend.what for spend in noise.spends(names(m))]
    assert len(set(whats)) == len(whats)
    assert whats[:m] == [f"values of {name}" for name in names(m)]
    every, counted = pair_counts(m)
    assert ("strength of pairs" in whats) == (counted < every)
    assert ("pairs of attributes" in whats) == (m > 1)


def test_more_values_get_a_larger_share_but_not_in_proportion():
    small, large = pair_noise([10, 1_000], mu_values=1.0, mu_pairs=1.0).values
    ratio = (gaussian_sigma(small) / gaussian_sigma(large)) ** 2
    assert 1 < ratio < 100


def test_without_noise_everything_is_exact_and_all_pairs_are_counted():
    for m in NUMBERS:
        noise = pair_noise([3] * m, mu_values=math.inf, mu_pairs=math.inf)
        spends = noise.spends(names(m))
        assert {spend.law.name for spend in spends} == {"exact"}
        assert noise.measured == m * (m - 1) // 2
        assert noise.strength is None
        assert noise.mean_sigma == 0


@pytest.mark.parametrize("m", NUMBERS)
def test_the_shares_of_values_and_pairs_are_all_there_is(m):
    values, pairs = pairwise_shares(m, mu=0.2, rows_max=100_000)
    assert values + pairs == pytest.approx(1)
    assert values > 0
    assert (pairs > 0) == (m > 1)


def test_the_fewer_the_rows_the_more_goes_to_values():
    """0.3 + 2.5 √(√pairs / μ / rows), at most 0.8: by hand for 11 attributes."""
    shares = [pairwise_shares(11, mu=0.2, rows_max=n)[0] for n in (10**7, 10**5, 10**4, 10**3, 10)]
    expected = [min(0.8, 0.3 + 2.5 * math.sqrt(55**0.5 / 0.2 / n)) for n in (10**7, 10**5, 10**4)]
    assert shares[:3] == pytest.approx(expected)
    assert shares == sorted(shares)
    assert shares[-2:] == [pytest.approx(0.3 + 2.5 * math.sqrt(55**0.5 / 200)), 0.8]


def test_values_that_noise_hides_anyway_earn_no_more():
    """½ · 1,000 rows · 0.2 / √4 = 50 values: 60 get what 1,000 get, and 8 get ⅔ powers of that."""
    noise = pair_noise([60, 1_000, 50, 8], mu_values=0.2, mu_pairs=0.2, rows_max=1_000)
    one, two, three, four = (gaussian_sigma(law) ** -2 for law in noise.values)
    assert one == pytest.approx(two, rel=1e-6) == pytest.approx(three, rel=1e-6)
    assert four / one == pytest.approx((8 / 50) ** (2 / 3), rel=1e-6)
    assert one + two + three + four == pytest.approx(0.2**2, rel=1e-6)


@few
@given(sizes_of_schemas, mus)
def test_the_usual_noise_of_a_pair_lies_between_none_and_that_of_one_look(sizes, mu):
    noise = pair_noise(sizes, mu_values=mu, mu_pairs=mu)
    if len(sizes) > 1:
        assert 0 < noise.mean_sigma <= gaussian_sigma(noise.pairs)
        # All pairs looked at equally often, with what all of them may cost together.
        least = math.sqrt(noise.measured) / mu
        assert noise.mean_sigma >= least * (1 - 1e-9)


# In a plan


def facts(m, *, epsilon=1.0, delta=1e-9, lengths=1, split=False):
    fractions = (SPLIT if lengths else SPLIT_SEEDLESS) if split else None
    return PublicFacts(
        limit=Guarantee(epsilon=epsilon, delta=delta),
        names=tuple(names(m)),
        queries=0,
        sizes=tuple(2 + i % 9 for i in range(m)),
        rows_max=10_000,
        lengths=lengths,
        fractions=fractions,
    )


@pytest.mark.parametrize("lengths", [0, 1])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("m", NUMBERS)
def test_a_plan_is_within_what_is_asked_for_and_uses_it(m, split, lengths):
    asked = facts(m, lengths=lengths, split=split)
    plan = make_plan(asked)
    assert plan.cost.within(asked.limit)
    # Of a single attribute nothing is to be learnt from the part for pairs.
    assert plan.cost.epsilon >= (0.3 if split and m == 1 else 0.9)
    assert [spend.what for spend in plan.pairs.spends(asked.names)] == [
        spend.what for spend in plan.spends if spend.part != "seeds"
    ]


def test_a_plan_with_pairs_costs_what_one_gaussian_of_the_same_mu_costs():
    """Without seeds all uses are Gaussian: δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""
    asked = facts(11, lengths=0, delta=1e-6)
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
    asked = facts(m, lengths=0)
    plan = make_plan(asked)
    cheated = []
    for spend in plan.spends:
        times = 4 if spend.part == "parameters" else 1
        cheated.append(type(spend)(**{**vars(spend), "moved": times * spend.moved}))
    assert compose_spends(tuple(cheated), delta=1e-9).epsilon > 1.2 * asked.limit.epsilon


def test_noise_grows_with_the_number_of_attributes():
    deviations = [make_plan(facts(m)).pairs.mean_sigma for m in (2, 5, 11, 40)]
    assert np.all(np.diff(deviations) > 0)
