"""Composed losses: the closed form, checked with 50-digit arithmetic and with dp-accounting."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import BudgetError
from deniable.privacy import accountant, noise_laws
from deniable.privacy.accountant import (
    GaussianLoss,
    LaplaceLoss,
    ShiftedTableLoss,
    StatedLoss,
    compose_losses,
    compose_on_grid,
)
from deniable.privacy.composition import Guarantee, gaussian_mu, optimal_composition
from deniable.privacy.ledger import table_weights
from worlds import property_test

pytestmark = pytest.mark.slow

DELTA = 2.0**-30


def literal_delta(law, mu, epsilon):
    """δ of the table and Gaussian noise together, outcome by outcome, in fifty digits.

    Given a value of the table, the Gaussian's outcomes that count are those beyond one point.
    """
    mpmath.mp.dps = 50
    weights = table_weights(law)
    whole, factor = mpmath.mpf(sum(weights)), mpmath.exp(mpmath.mpf(epsilon))
    delta = mpmath.mpf(0)
    for z, weight in enumerate(weights):
        before = weights[z - 1] if z else 0
        if not before:
            delta += weight / whole
            continue
        # N(μ, 1) against N(0, 1): where weight · e^(μx - μ²/2) exceeds e^ε · before.
        x = (mpmath.log(factor * before / weight) + mpmath.mpf(mu) ** 2 / 2) / mu
        delta += (weight * mpmath.ncdf(mu - x) - factor * before * mpmath.ncdf(-x)) / whole
    return delta


@property_test
@given(
    epsilon=st.floats(0.02, 1.5),
    r=st.integers(1, 40),
    mu=st.floats(0.01, 3),
    share=st.floats(1e-6, 0.9),
)
def test_a_closed_form_total_is_the_least_epsilon_in_fifty_digits(epsilon, r, mu, share):
    law = noise_laws.truncated_geometric(epsilon, r)
    edge = float(law.probability(r))
    delta = edge + share * (1 - edge)
    found = compose_losses(
        [GaussianLoss(mu=mu), ShiftedTableLoss(weights=table_weights(law))], delta=delta
    ).epsilon
    assert literal_delta(law, mu, found) <= delta
    assert found == 0 or literal_delta(law, mu, found * (1 - 1e-9)) > delta * (1 - 1e-6)


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("losses", "rounded"),
    [
        ([GaussianLoss(mu=0.3)], 1),
        ([GaussianLoss(mu=2.5)], 1),
        ([ShiftedTableLoss(weights=table_weights(noise_laws.truncated_geometric(0.3, 68)))], 1),
        (
            [
                GaussianLoss(mu=0.15),
                ShiftedTableLoss(weights=table_weights(noise_laws.truncated_geometric(0.1, 210))),
            ],
            2,
        ),
        (
            [
                GaussianLoss(mu=1.1),
                GaussianLoss(mu=0.2),
                ShiftedTableLoss(weights=table_weights(noise_laws.truncated_geometric(0.3, 70))),
            ],
            3,
        ),
    ],
)
@pytest.mark.parametrize("delta", [1e-9, 1e-6])
def test_a_closed_form_total_is_the_accountants_less_its_grid(losses, rounded, delta):
    """Oracle: dp-accounting, which rounds each loss up, by at most its interval."""
    interval = 1e-4
    ours = compose_losses(losses, delta=delta).epsilon
    theirs = compose_on_grid(losses, delta=delta, interval=interval).epsilon
    assert ours <= theirs <= ours + (rounded + 1) * interval


def test_a_closed_form_refuses_what_the_edge_alone_exceeds():
    weights = table_weights(noise_laws.truncated_geometric(0.5, 5))
    with pytest.raises(BudgetError, match="no ε meets"):
        compose_losses([ShiftedTableLoss(weights=weights), GaussianLoss(mu=0.1)], delta=1e-6)


def test_a_total_by_pld_is_one_gaussian_when_all_is_gaussian():
    """Two of μ/√2 are one of μ, and that has a formula."""
    mu = gaussian_mu(epsilon=1.0, delta=DELTA)
    both = compose_losses([GaussianLoss(mu=mu / math.sqrt(2))] * 2, delta=DELTA)
    assert 1.0 - 1e-6 <= both.epsilon <= 1.0 + 1e-6


def test_a_total_by_pld_knows_the_table_of_mechanism_b():
    """Three histograms of TG(1/3, 61) are (1, 2^-30): the reference's table, section 3.2."""
    law = noise_laws.truncated_geometric(1 / 3, 61)
    weights = tuple(law.weight(z) for z in range(-law.radius, law.radius + 1))
    assert (
        compose_losses([ShiftedTableLoss(weights=weights, times=3)], delta=DELTA).epsilon <= 1.001
    )
    with pytest.raises(BudgetError, match="no ε meets"):
        compose_losses([ShiftedTableLoss(weights=weights, times=3)], delta=1e-12)
    with pytest.raises(BudgetError, match="below 5e-14"):
        compose_losses([LaplaceLoss(epsilon=0.1), GaussianLoss(mu=0.1)], delta=1e-14)


@pytest.mark.parametrize(
    ("epsilon", "queries", "scale"),
    [(0.1, 132, 570), (0.1, 187, 681), (1, 187, 74.4), (1, 132, 61.9)],
)
def test_laplace_tables_cost_what_the_reference_says(epsilon, queries, scale):
    """the review, section 5, column "PLD Laplace"; at ε = 1, q = 132 it prints 63.2.

    There dp_accounting, with discrete and with continuous noise, agrees with ours: 0.98 at
    63.2. Discrete Laplace noise has two losses, ±ε: its optimal composition is exact.
    """
    ours = optimal_composition(Guarantee(epsilon=1 / scale), times=queries, delta=DELTA).epsilon
    assert ours == pytest.approx(epsilon, rel=0.002)
    theirs = compose_losses(
        [LaplaceLoss(epsilon=1 / scale, times=queries)], delta=DELTA, interval=1e-5
    )
    assert ours <= theirs.epsilon <= ours * (1 + 1e-4)


def test_a_total_by_pld_is_never_much_above_basic_composition():
    assert (
        compose_losses([LaplaceLoss(epsilon=1 / 11, times=11)], delta=DELTA).epsilon <= 1.0 + 2e-3
    )


def test_a_total_of_mixed_releases_is_below_their_sum_and_above_each():
    """The recommended plan of section 5: seeds TG ε = 0.3 (r = 68), tables σ = 30.4, rest 192."""
    law = noise_laws.truncated_geometric(0.3, 68)
    weights = tuple(law.weight(z) for z in range(-law.radius, law.radius + 1))
    mu = math.hypot(math.sqrt(11) / 30.4, math.sqrt(187) / 192)
    mixed = compose_losses([ShiftedTableLoss(weights=weights), GaussianLoss(mu=mu)], delta=DELTA)
    assert mixed.epsilon == pytest.approx(1.0, rel=0.02)


def test_a_total_takes_stated_costs_as_optimal_composition_does():
    cost = Guarantee(epsilon=0.1, delta=1e-13)
    ours = optimal_composition(cost, times=50, delta=1e-9)
    assert compose_losses([StatedLoss(cost=cost, times=50)], delta=1e-9).epsilon == pytest.approx(
        ours.epsilon, rel=0.002
    )
    assert compose_losses([], delta=1e-9) == Guarantee(epsilon=0.0, delta=0.0)


@pytest.mark.parametrize("mu", [1e-4, 0.03, 1.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, DELTA, 0.01])
def test_secants_take_the_bisection_to_the_same_epsilon(monkeypatch, mu, delta):
    table = ShiftedTableLoss(weights=table_weights(noise_laws.truncated_geometric(0.7, 60)))
    for losses in ([GaussianLoss(mu=mu)], [GaussianLoss(mu=mu), table]):
        found = compose_losses(losses, delta=delta).epsilon
        with monkeypatch.context() as patch:
            patch.setattr(
                accountant, "_narrow_bracket", lambda _delta_at, _delta, high: (0.0, high)
            )
            assert found == pytest.approx(compose_losses(losses, delta=delta).epsilon, rel=1e-11)


@pytest.mark.parametrize(
    "delta_at",
    [
        lambda epsilon: 0.5 + 0 * epsilon,  # no slope
        lambda epsilon: 0.0 if epsilon > 0.3 else 0.5,  # a step to zero
        lambda epsilon: 0.5 if epsilon < 0.95 else 0.4,  # a line that leads outside
        lambda epsilon: 0.2 + 0.1 * math.sin(1e6 * epsilon),  # no end of secants
        lambda epsilon: 0.1 if abs(epsilon - 0.5) < 1e-9 else 0.6 - epsilon,  # a hole at the target
    ],
)
def test_without_a_bracket_the_whole_interval_stays(delta_at):
    assert accountant._narrow_bracket(delta_at, 0.1, 1.0) == (0.0, 1.0)
