"""Spends, their total cost, and a ledger that differs from its plan."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from definitions import noise_delta
from deniable.errors import BudgetError, InvariantError
from deniable.privacy.accountant import GaussianLoss, compose_losses
from deniable.privacy.composition import Guarantee, optimal_composition
from deniable.privacy.ledger import Ledger, Spend, compose_spends, privacy_losses, table_weights
from deniable.privacy.noise_laws import (
    discrete_laplace,
    exact,
    rounded_gaussian,
    truncated_geometric,
)
from theorems import gaussian_epsilon

DELTA = 1e-7
GAUSSIAN = Spend(
    what="entropies",
    part="structure",
    law=rounded_gaussian(300.0),
    sensitivity=9,
    l0_sensitivity=20,
)
LAPLACE = Spend(what="counts of pet", part="parameters", law=discrete_laplace(0.05))
BOUNDED = Spend(what="seed prefixes", part="seeds", law=truncated_geometric(0.25, 80))
TESTED = Spend(
    what="deniability tests",
    part="seeds",
    law=discrete_laplace(0.2),
    each=Guarantee(epsilon=0.05, delta=1e-10),
    times=7,
)
ALL = (GAUSSIAN, LAPLACE, BOUNDED, TESTED)


def epsilon_of(*spends):
    return compose_spends(spends, delta=DELTA).epsilon


# n copies


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("law", [discrete_laplace(0.1), truncated_geometric(0.25, 80)], ids=str)
def test_n_numbers_cost_what_a_list_of_n_costs(law, n):
    """To the last grid point of the accountant: 1e-4, for each composition."""
    one = Spend(what="x", part="seeds", law=law)
    together, listed = epsilon_of(replace(one, l0_sensitivity=n)), epsilon_of(*[one] * n)
    assert together == pytest.approx(listed, abs=1e-4 * n)


@pytest.mark.parametrize("n", [2, 5, 187])
def test_n_gaussian_numbers_cost_what_a_list_of_n_costs(n):
    one = Spend(what="x", part="structure", law=rounded_gaussian(1_000.0), sensitivity=3)
    assert epsilon_of(replace(one, l0_sensitivity=n)) == pytest.approx(
        epsilon_of(*[one] * n), rel=1e-9
    )


@pytest.mark.parametrize("n", [2, 5])
def test_n_tests_cost_what_a_list_of_n_costs(n):
    one = replace(TESTED, times=1)
    together, listed = epsilon_of(replace(one, times=n)), epsilon_of(*[one] * n)
    assert together == pytest.approx(listed, abs=1e-4 * n)


def test_a_lost_factor_would_show():
    """The tests above are worth something only if one copy costs less."""
    for spend in (LAPLACE, BOUNDED, GAUSSIAN):
        assert epsilon_of(
            replace(spend, l0_sensitivity=2 * spend.l0_sensitivity)
        ) > 1.2 * epsilon_of(spend)
    assert epsilon_of(replace(TESTED, times=14)) > 1.2 * epsilon_of(TESTED)


def test_a_number_that_moves_twice_as_far_costs_as_much_as_half_the_noise():
    far = epsilon_of(replace(LAPLACE, sensitivity=2))
    assert far == pytest.approx(epsilon_of(replace(LAPLACE, law=discrete_laplace(0.1))), abs=1e-4)
    far = epsilon_of(replace(GAUSSIAN, sensitivity=18))
    near = epsilon_of(replace(GAUSSIAN, law=rounded_gaussian(150.0)))
    assert far == pytest.approx(near, rel=1e-6)


def test_bounded_noise_on_a_number_that_moves_further_has_no_known_cost():
    """The table is shifted by one; accounted for so, a shift by two would be too cheap."""
    with pytest.raises(InvariantError, match="noise is unknown"):
        epsilon_of(replace(BOUNDED, sensitivity=2))


# What it is


def test_gaussian_noise_costs_its_closed_form_and_the_rounding_of_its_table():
    mu = math.sqrt(20) * 9 / 300.0
    assert GAUSSIAN.mu == pytest.approx(mu, rel=1e-15)
    assert epsilon_of(GAUSSIAN) == pytest.approx(gaussian_epsilon(mu=mu, delta=DELTA), abs=2e-4)
    assert epsilon_of(GAUSSIAN) >= gaussian_epsilon(mu=mu, delta=DELTA)


def test_laplace_noise_costs_its_epsilon():
    assert epsilon_of(LAPLACE) == pytest.approx(0.05, abs=2e-4)


def test_mechanism_b_costs_the_delta_of_its_very_table():
    law = BOUNDED.law
    assert epsilon_of(BOUNDED) == pytest.approx(0.25, abs=2e-4)
    assert BOUNDED.table_error == 0.0
    too_little = noise_delta(law.table.weights(), 0.25) / 2
    with pytest.raises(BudgetError):
        compose_spends((BOUNDED,), delta=too_little)


@pytest.mark.parametrize("spend", [LAPLACE, GAUSSIAN], ids=lambda spend: spend.what)
def test_the_rounding_of_tables_is_paid_for(spend):
    """A table is near its law, not the law: every number that one record moves pays for that."""
    several = replace(spend, l0_sensitivity=40)
    claimed, seen = (
        compose_spends((several,), delta=DELTA),
        compose_losses(privacy_losses((several,)), delta=DELTA),
    )
    assert claimed.epsilon >= seen.epsilon
    assert claimed.delta == DELTA
    assert several.table_error == pytest.approx(40 * spend.law.tv)
    assert several.table_error > 0


def test_all_gaussian_noise_is_one_and_the_rest_is_kept_apart():
    number = Spend(what="number of records", part="structure", law=rounded_gaussian(20.0))
    losses = privacy_losses((GAUSSIAN, number, LAPLACE, BOUNDED, TESTED))
    (gaussian,) = [loss for loss in losses if isinstance(loss, GaussianLoss)]
    assert gaussian.mu == pytest.approx(math.hypot(GAUSSIAN.mu, number.mu))
    assert gaussian.mu >= math.hypot(GAUSSIAN.mu, number.mu)
    assert len(losses) == 4


def test_together_costs_more_than_each_and_less_than_the_sum():
    each = [epsilon_of(spend) for spend in ALL]
    assert max(each) < epsilon_of(*ALL) < sum(each)


def test_the_order_of_spends_does_not_matter():
    assert epsilon_of(*ALL) == pytest.approx(epsilon_of(*reversed(ALL)), abs=1e-9)


def test_many_tests_cost_what_optimal_composition_says():
    """Too many for a distribution on a grid: composed by themselves, never for less."""
    many = replace(TESTED, times=100_000, each=Guarantee(epsilon=0.05, delta=1e-14))
    cost = epsilon_of(many)
    assert cost >= optimal_composition(many.each, times=100_000, delta=DELTA).epsilon
    assert cost <= 1.1 * optimal_composition(many.each, times=100_000, delta=DELTA / 2).epsilon
    assert epsilon_of(many, LAPLACE) > cost


def test_no_noise_costs_infinity():
    assert epsilon_of(replace(LAPLACE, law=exact())) == math.inf
    assert epsilon_of(*ALL, replace(LAPLACE, law=exact())) == math.inf


def test_nothing_costs_nothing():
    assert compose_spends((), delta=DELTA).epsilon == 0.0


def test_noise_of_an_unknown_law_has_no_cost():
    """Fail closed: what the accountant does not know is not free."""
    unknown = replace(discrete_laplace(0.1), name="mystery")
    with pytest.raises(InvariantError, match=r"mystery.* noise is unknown"):
        epsilon_of(Spend(what="x", part="seeds", law=unknown))


def test_the_weights_of_a_law_are_those_of_its_whole_range():
    law = truncated_geometric(0.5, 3)
    weights = table_weights(law)
    assert weights == tuple(law.weight(z) for z in (-3, -2, -1, 0, 1, 2, 3))
    assert [Fraction(w, sum(weights)) for w in weights] == [
        law.probability(z) for z in range(-3, 4)
    ]


@pytest.mark.parametrize("field", ["sensitivity", "l0_sensitivity", "times"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_spend_of_nothing_cannot_be_made(field, value):
    with pytest.raises(BudgetError, match="counts of pet"):
        replace(LAPLACE, **{field: value})


# Ledger and plan


def test_a_ledger_that_is_its_plan_passes_in_any_order():
    Ledger(ALL).require_equal(ALL)
    Ledger(ALL).require_equal(ALL[::-1])
    Ledger(()).require_equal(())


CHANGED = [
    (GAUSSIAN, {"law": rounded_gaussian(299.0)}),
    (GAUSSIAN, {"sensitivity": 8}),
    (GAUSSIAN, {"l0_sensitivity": 21}),
    (GAUSSIAN, {"part": "parameters"}),
    (LAPLACE, {"law": discrete_laplace(0.050000001)}),
    (LAPLACE, {"law": exact()}),
    (LAPLACE, {"what": "counts of home"}),
    (BOUNDED, {"law": truncated_geometric(0.25, 81)}),
    (TESTED, {"times": 8}),
    (TESTED, {"each": Guarantee(epsilon=0.05, delta=1.0001e-10)}),
    (TESTED, {"each": None}),
]


@pytest.mark.parametrize(("spend", "change"), CHANGED, ids=[str(c) for _, c in CHANGED])
def test_a_changed_entry_is_found(spend, change):
    spent = tuple(replace(s, **change) if s is spend else s for s in ALL)
    with pytest.raises(InvariantError, match="does not equal the plan, so nothing is released"):
        Ledger(spent).require_equal(ALL)


@pytest.mark.parametrize("left_out", ALL, ids=lambda spend: spend.what)
def test_a_missing_entry_is_found(left_out):
    with pytest.raises(InvariantError, match="3 uses of the data, 4 planned"):
        Ledger(tuple(s for s in ALL if s is not left_out)).require_equal(ALL)


@pytest.mark.parametrize("twice", ALL, ids=lambda spend: spend.what)
def test_an_additional_entry_is_found_also_if_it_is_one_of_them_again(twice):
    with pytest.raises(InvariantError, match="5 uses of the data, 4 planned"):
        Ledger((*ALL, twice)).require_equal(ALL)


def test_one_entry_in_place_of_another_is_found():
    with pytest.raises(InvariantError, match="does not equal the plan"):
        Ledger((LAPLACE, LAPLACE)).require_equal((LAPLACE, BOUNDED))
