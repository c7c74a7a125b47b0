"""Discrete losses, checked by enumerating all outcomes and with dp-accounting."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.stats import norm

from definitions import noise_delta
from deniable.errors import BudgetError
from deniable.privacy.accountant import (
    GaussianLoss,
    LaplaceLoss,
    ShiftedTableLoss,
    StatedLoss,
    compose_on_grid,
)
from deniable.privacy.composition import Guarantee, gaussian_delta
from deniable.privacy.discrete_losses import (
    DiscreteLoss,
    erfcx,
    gaussian_deltas,
    log_factorial,
    mixture_delta,
)
from deniable.privacy.ledger import table_weights
from deniable.privacy.noise_laws import rounded_gaussian, truncated_geometric
from theorems import optimal_delta
from worlds import property_test

# A loss may be rounded up by 1e-6 at each composition: δ moves by no more than that share of 1.
GRID = 1e-6


def delta_of(atoms, epsilon, mu=0.0):
    return mixture_delta(epsilon=epsilon, mu=mu, discrete=atoms)


def hockey_stick(p, q, epsilon):
    """Σ max(0, P - e^ε Q) over all outcomes: the definition of δ."""
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


def discrete_laplace(epsilon, reach=60):
    """The ideal law on a window; what is outside has a probability below e^-50."""
    z = np.arange(-math.ceil(reach / epsilon), math.ceil(reach / epsilon) + 1)
    return math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))


def moved_by_one(pmf):
    """The law, and the same moved by one, on a common window."""
    return np.append(pmf, 0.0), np.insert(pmf, 0, 0.0)


def product_of(pairs):
    """The joint law of independent outcomes under either table."""
    p, q = np.ones(1), np.ones(1)
    for one, two in pairs:
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, two).ravel()
    return p, q


def table_of(law):
    weights = np.array(table_weights(law), dtype=np.float64)
    return moved_by_one(weights / weights.sum())


# One kind of noise


@pytest.mark.parametrize("noise", [0.1, 0.7, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99, 1.0, 1.5])
def test_laplace_noise_is_the_hockey_stick_of_its_outcomes(noise, share):
    p, q = moved_by_one(discrete_laplace(noise))
    exact = hockey_stick(p, q, share * noise)
    assert delta_of(DiscreteLoss.from_laplace(noise), share * noise) == pytest.approx(
        exact, abs=1e-12
    )


@pytest.mark.parametrize("law", [truncated_geometric(0.5, 6), rounded_gaussian(0.8)])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 1.0, 3.0])
def test_a_table_is_the_hockey_stick_of_its_outcomes(law, epsilon):
    p, q = table_of(law)
    found = delta_of(DiscreteLoss.from_table(table_weights(law)), epsilon)
    assert found == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-9)
    assert found == pytest.approx(noise_delta(law.table.weights(), epsilon), rel=1e-9)


def test_a_table_of_many_weights_has_few_atoms_and_the_same_cost():
    """Geometric noise has two losses, up to rounding, however many weights its table has."""
    law = truncated_geometric(0.001, 20_000)
    found = DiscreteLoss.from_table(table_weights(law))
    assert len(found.losses) < 100
    p, q = table_of(law)
    for epsilon in (0.0, 0.0005, 0.002):
        exact = hockey_stick(p, q, epsilon)
        assert delta_of(found, epsilon) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 0.1)])
def test_a_stated_cost_is_what_it_states(epsilon, delta):
    atoms = DiscreteLoss.from_guarantee(epsilon, delta, times=1)
    assert delta_of(atoms, epsilon) == pytest.approx(delta, rel=1e-12, abs=1e-13)
    assert atoms.probabilities.sum() + atoms.infinity_mass == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("mu", [0.02, 0.5, 2.0, 7.0])
@pytest.mark.parametrize("epsilon", [-9.0, -1.0, -1e-6, 0.0, 0.3, 4.0])
def test_gaussian_noise_alone_is_its_formula_for_any_sign(mu, epsilon):
    """In fifty digits; rounded up, by less than one part in 10^8."""
    mpmath.mp.dps = 50
    e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
    exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    found = float(gaussian_deltas(np.array([epsilon]), mu=mu)[0])
    assert exact - mpmath.mpf("1e-300") <= found <= exact * (1 + mpmath.mpf("1e-8"))
    if epsilon >= 0:
        assert gaussian_delta(epsilon=epsilon, mu=mu) == found


def test_nothing_shown_costs_nothing():
    assert delta_of(DiscreteLoss.zero(), 0.0) == 0.0
    assert delta_of(DiscreteLoss.zero().self_compose(5), 0.0) == 0.0


# Several, by brute force


@property_test
@given(
    noises=st.lists(st.sampled_from([0.6, 1.0, 1.7]), min_size=1, max_size=2),
    bounded=st.booleans(),
    epsilon=st.floats(0, 3),
)
def test_noises_together_are_the_hockey_stick_of_their_joint_outcomes(noises, bounded, epsilon):
    """Every pair or triple of outcomes is listed, under either table: no composition theorem."""
    law = truncated_geometric(0.8, 3)
    pairs = [moved_by_one(discrete_laplace(noise, reach=40)) for noise in noises]
    atoms = DiscreteLoss.zero()
    for noise in noises:
        atoms = atoms.compose(DiscreteLoss.from_laplace(noise))
    if bounded:
        pairs.append(table_of(law))
        atoms = atoms.compose(DiscreteLoss.from_table(table_weights(law)))
    here, there = product_of(pairs)
    exact = hockey_stick(here, there, epsilon)
    found = delta_of(atoms, epsilon)
    assert exact - 1e-11 <= found <= exact + 4 * GRID


@pytest.mark.parametrize("mu", [0.3, 1.5])
@pytest.mark.parametrize("copies", [1, 3])
def test_gaussian_and_laplace_together_are_an_integral_over_all_outcomes(mu, copies):
    """Laplace outcomes as signs, one by one; the normal one by quadrature on a fine grid."""
    noise, epsilon = 0.4, 0.9
    x, step = np.linspace(-12, 12, 200_001, retstep=True)
    p, q = norm.pdf(x, mu), norm.pdf(x)
    likely = 1 / (1 + math.exp(-noise))
    exact = 0.0
    for signs in itertools.product((1, -1), repeat=copies):
        ours = math.prod(likely if s > 0 else 1 - likely for s in signs)
        theirs = math.prod(1 - likely if s > 0 else likely for s in signs)
        exact += hockey_stick(ours * p, theirs * q, epsilon) * step
    found = delta_of(DiscreteLoss.from_laplace(noise).self_compose(copies), epsilon, mu)
    assert found == pytest.approx(exact, abs=5 * GRID)


@pytest.mark.parametrize("times", [1, 2, 7, 64])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (0.3, 1e-4)])
def test_copies_of_a_stated_cost_are_optimal_composition(times, epsilon, delta):
    """Kairouz, Oh and Viswanath have a formula for that; atoms are composed by doubling."""
    atoms = DiscreteLoss.from_guarantee(epsilon, delta, times=times)
    cost = Guarantee(epsilon=epsilon, delta=delta)
    for whole in (0.0, 0.5 * epsilon, 2 * epsilon, 5 * epsilon):
        exact = optimal_delta(cost, times=times, epsilon=whole)
        assert exact - 1e-12 <= delta_of(atoms, whole) <= exact + 20 * GRID


@pytest.mark.parametrize("number", [0, 1, 2, 5, 8])
def test_n_copies_cost_what_a_list_of_n_costs(number):
    one = DiscreteLoss.from_table(table_weights(truncated_geometric(0.8, 3)))
    listed = DiscreteLoss.zero()
    for _ in range(number):
        listed = listed.compose(one)
    for epsilon in (0.0, 1.0, 2.5):
        expected = delta_of(listed, epsilon)
        assert delta_of(one.self_compose(number), epsilon) == pytest.approx(expected, abs=10 * GRID)


def test_fewer_than_no_copies_are_refused():
    with pytest.raises(BudgetError, match="at least 0 times"):
        DiscreteLoss.zero().self_compose(-1)


def test_composing_keeps_the_number_of_atoms_small():
    """2^500 sequences of outcomes, 501 values of the loss."""
    assert len(DiscreteLoss.from_laplace(0.125).self_compose(500).losses) <= 501


# Against dp-accounting

MIXES = [
    ([GaussianLoss(mu=0.3)], DiscreteLoss.zero(), 0.3, 1),
    ([LaplaceLoss(epsilon=0.1, times=5)], DiscreteLoss.from_laplace(0.1).self_compose(5), 0.0, 5),
    (
        [GaussianLoss(mu=0.2), LaplaceLoss(epsilon=0.05, times=11)],
        DiscreteLoss.from_laplace(0.05).self_compose(11),
        0.2,
        12,
    ),
    (
        [GaussianLoss(mu=0.2), StatedLoss(cost=Guarantee(epsilon=0.1, delta=1e-9), times=3)],
        DiscreteLoss.from_guarantee(0.1, 1e-9, times=3),
        0.2,
        4,
    ),
    (
        [
            GaussianLoss(mu=0.25),
            ShiftedTableLoss(weights=table_weights(truncated_geometric(0.25, 70)), times=2),
        ],
        DiscreteLoss.from_table(table_weights(truncated_geometric(0.25, 70))).self_compose(2),
        0.25,
        3,
    ),
]


@pytest.mark.parametrize(("losses", "atoms", "mu", "number"), MIXES)
@pytest.mark.parametrize("delta", [1e-7, 1e-4])
def test_it_agrees_with_the_accountant(losses, atoms, mu, number, delta):
    """dp-accounting rounds each loss up, by at most its interval: so far, and no further, apart.

    At its ε the closed form is at most δ; at ε less an interval for each loss, at least δ.
    """
    interval = 1e-4
    epsilon = compose_on_grid(losses, delta=delta, interval=interval).epsilon
    assert delta_of(atoms, epsilon, mu) <= delta * (1 + 1e-4)
    assert delta_of(atoms, epsilon - interval * (number + 1), mu) >= delta * (1 - 1e-4)


# Shape


@property_test
@given(
    noise=st.floats(0.05, 2),
    number=st.integers(0, 12),
    mu=st.floats(0, 3),
    epsilon=st.floats(0, 6),
    more=st.floats(0, 2),
)
def test_delta_is_a_probability_that_falls_with_epsilon_and_rises_with_noise_gone(
    noise, number, mu, epsilon, more
):
    atoms = DiscreteLoss.from_laplace(noise).self_compose(number)
    found = delta_of(atoms, epsilon, mu)
    assert 0 <= found <= 1
    assert delta_of(atoms, epsilon + more, mu) <= found * (1 + 1e-9) + 1e-15
    assert delta_of(atoms, epsilon, mu + more) >= found * (1 - 1e-9) - 1e-15
    assert (
        delta_of(atoms.compose(DiscreteLoss.from_laplace(noise)), epsilon, mu)
        >= found * (1 - 1e-9) - 1e-12
    )


# Special functions, against SciPy's


def test_scaled_erfc_is_accurate_to_16_ulp():
    """Near 0, across the limit 2π from which the residue is left out, and far out."""
    x = np.concatenate([np.linspace(0, 7, 20_001), np.geomspace(1e-300, 1e6, 4_001), [2 * np.pi]])
    np.testing.assert_allclose(erfcx(x), special.erfcx(x), rtol=2.0**-49, atol=0)


def test_scaled_erfc_needs_the_residue_and_all_nodes():
    """Each part that could be lost matters: what is left of it is checked above."""
    assert erfcx(np.array([0.0]))[0] == 1.0  # the sum is 0 here: all of it is the residue
    far = np.array([50.0])  # and here all of it is the sum
    np.testing.assert_allclose(erfcx(far), special.erfcx(far), rtol=2.0**-49)


def test_log_factorial_is_accurate_to_16_ulp_of_its_terms():
    n = np.concatenate([np.arange(3_000.0), np.round(np.geomspace(3_000, 1e12, 2_000))])
    expected = special.gammaln(n + 1)
    error = np.abs(log_factorial(n) - expected)
    assert (error <= 2.0**-49 * np.maximum(expected, 1.0)).all()


def test_a_loss_of_many_values_is_composed_by_an_upper_bound():
    """More values than can be multiplied out are rounded up first: δ grows, and by little."""
    losses = np.linspace(-1.0, 1.0, 5_001)
    many = DiscreteLoss(losses, np.full(5_001, 1 / 5_001), 0.0)
    few = DiscreteLoss(losses[::500], np.full(11, 1 / 11), 0.0)
    composed = many.compose(few)
    exact = np.add.outer(losses, losses[::500])
    for epsilon in (0.2, 0.9):
        true = float(np.maximum(0.0, -np.expm1(epsilon - exact)).mean())
        own = np.maximum(0.0, -np.expm1(epsilon - composed.losses))
        found = float(composed.probabilities @ own) + composed.infinity_mass
        assert true <= found <= 1.01 * true
