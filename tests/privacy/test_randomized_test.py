"""Parameters of the randomized test: they meet the limit, or the suggested ones do."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, optimal_composition
from deniable.privacy.randomized_test import cheapest_test, plan_randomized_test
from deniable.privacy.theorems import candidate_cost
from worlds import property_test

LIMIT = Guarantee(epsilon=0.5, delta=1e-6)

gammas = st.sampled_from([1.0, 2.0, 4.0])


# What is found


@settings(property_test, max_examples=30)
@given(
    k=st.integers(2, 3_000),
    records=st.integers(1, 2_000),
    gamma=gammas,
    delta=st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3]),
)
def test_the_numbers_of_a_test_are_those_of_the_theorem(k, records, gamma, delta):
    found = cheapest_test(delta, records=records, k=k, gamma=gamma)
    if found is None:
        return
    assert 1 <= found.t < k
    each = candidate_cost(k=k, epsilon0=found.epsilon0, t=found.t, gamma=gamma)
    assert found.each == each
    assert each.epsilon >= found.epsilon0 + math.log1p(gamma / found.t)
    assert found.cost == optimal_composition(each, times=records, delta=delta)
    assert found.cost.delta <= delta
    assert found.dummies == math.ceil(found.t / gamma)
    assert (found.spend.each, found.spend.times) == (each, records)
    assert dict(found.law.parameters) == {"epsilon": found.epsilon0}


@pytest.mark.parametrize("k", [20, 50, 500])
def test_no_other_choice_on_a_fine_grid_is_better_by_more_than_the_grid(k):
    """60 values of ε0 are tried, at half of δ; here 2,000 of them, with several t, at all of δ.

    A step of the grid is a factor (16k)^(1/59); half of δ is ln 2 / ln 10^6 more distance.
    """
    found = cheapest_test(1e-6, records=1, k=k, gamma=1.0)
    best = math.inf
    for i in range(2_000):
        epsilon0 = 4 * (1 / (16 * k)) ** (i / 2_000)
        for t in {max(1, k - round(x / epsilon0)) for x in (10, 12, 13, 14, 14.5, 15, 16, 18)}:
            each = candidate_cost(k=k, epsilon0=epsilon0, t=t)
            if each.delta <= 1e-6:
                best = min(best, each.epsilon)
    step = (16 * k) ** (1 / 59)
    assert found.cost.epsilon <= best * step * (1 + math.log(2) / math.log(1e6))


@settings(property_test, max_examples=15)
@given(k=st.integers(30, 1_000), records=st.integers(1, 200), gamma=gammas)
def test_fewer_records_a_larger_k_and_a_larger_delta_never_cost_more(k, records, gamma):
    """Up to the grid of ε0: 60 values from 1/(4k) to 4, a factor of at most 1.25 apart."""
    slack = 1.25

    def epsilon(delta=1e-6, records=records, k=k):
        found = cheapest_test(delta, records=records, k=k, gamma=gamma)
        return math.inf if found is None else found.cost.epsilon

    here = epsilon()
    assert epsilon(records=max(1, records // 2)) <= here * slack
    assert epsilon(k=2 * k) <= here * slack
    assert epsilon(delta=1e-4) <= here * slack


@pytest.mark.parametrize("k", [-1, 0, 1])
def test_without_room_between_t_and_k_there_is_no_test(k):
    assert cheapest_test(1e-6, records=1, k=k, gamma=1.0) is None


def test_no_delta_no_test():
    """δ = 0 is out of reach of any noise with tails; that is an answer, not a crash."""
    assert cheapest_test(0.0, records=1, k=1_000, gamma=1.0) is None
    with pytest.raises(BudgetError):
        plan_randomized_test(Guarantee(epsilon=1.0, delta=0.0), records=1, k=50, gamma=1.0)


def test_what_is_given_is_taken():
    found = plan_randomized_test(LIMIT, records=1, k=1_000, gamma=1.0, epsilon0=0.1, t=500)
    assert (found.epsilon0, found.t) == (0.1, 500)
    found = plan_randomized_test(LIMIT, records=1, k=1_000, gamma=1.0, epsilon0=0.1)
    assert found.epsilon0 == 0.1
    found = plan_randomized_test(LIMIT, records=1, k=1_000, gamma=1.0, t=500)
    assert found.t == 500


@settings(property_test, max_examples=30)
@given(
    epsilon=st.floats(0.05, 5),
    delta=st.sampled_from([1e-9, 1e-6, 1e-4]),
    k=st.integers(2, 5_000),
    records=st.integers(1, 500),
    gamma=gammas,
)
def test_a_test_that_is_planned_is_within_the_limit(epsilon, delta, k, records, gamma):
    limit = Guarantee(epsilon=epsilon, delta=delta)
    try:
        found = plan_randomized_test(limit, records=records, k=k, gamma=gamma)
    except BudgetError:
        return
    assert found.cost.within(limit)


# Errors


@pytest.mark.parametrize(
    ("records", "k", "cost"),
    [(5, 50, r"cost ε = [\d.]+ at k = 50"), (1, 2, "cost more than any ε at k = 2")],
)
def test_what_is_missed_and_what_helps_is_said(records, k, cost):
    with pytest.raises(
        BudgetError, match=f"^{records} records with .*{cost}; the limit"
    ) as refused:
        plan_randomized_test(LIMIT, records=records, k=k, gamma=1.0)
    assert "fewer records, a larger k or a larger ε (up to 10), or use --mode one-shot" in str(
        refused.value
    )


@pytest.mark.parametrize("given", [{"epsilon0": 3.0}, {"t": 1_000}])
def test_what_the_user_chose_is_named(given):
    with pytest.raises(BudgetError, match=r"\(up to 10\), leave out epsilon0 and t, or"):
        plan_randomized_test(LIMIT, records=1, k=1_000, gamma=1.0, **given)
    assert plan_randomized_test(LIMIT, records=1, k=1_000, gamma=1.0).cost.within(LIMIT)
