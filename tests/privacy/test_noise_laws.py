"""Noise laws: weights, draws, δ and truncation radii."""

import math
import pickle
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import assert_distribution
from definitions import noise_delta
from deniable.errors import BudgetError, InvariantError
from deniable.privacy import noise_laws
from deniable.privacy.noise_laws import Law
from deniable.privacy.noise_tables import TOTAL_WEIGHT
from deniable.privacy.theorems import geometric_histogram_cost
from deniable.randomness import Keyed, SystemRng

pytestmark = pytest.mark.slow

DELTA = 2.0**-30
SMALL_LAWS = [
    noise_laws.exact(),
    noise_laws.discrete_laplace(1.0),
    noise_laws.discrete_laplace(5.0),
    noise_laws.discrete_laplace(1 / 11),
    noise_laws.truncated_geometric(1.0, 21),
    noise_laws.truncated_geometric(0.1, 178),
    noise_laws.truncated_geometric(2.0, 1),
    noise_laws.rounded_gaussian(0.4),
    noise_laws.rounded_gaussian(8.5),
]
LONG_LAWS = [  # weighed in doubles
    noise_laws.discrete_laplace(1 / 3000),
    noise_laws.truncated_geometric(1 / 5000, 70_000),
    noise_laws.rounded_gaussian(18.26),
    noise_laws.rounded_gaussian(5000.0),
]
BOUNDED_LONG_LAWS = [law for law in LONG_LAWS if law.name.startswith("truncated")]

# ε and r at δ = 2^-30: the review, section 3.1.
GEOMETRIC_TABLE = [(1, 21), (0.5, 39), (0.391, 49), (0.1, 178)]


def both_sides(law):
    return {z: law.weight(z) for z in range(-law.radius, law.radius + 1)}


@pytest.mark.parametrize("law", SMALL_LAWS, ids=str)
def test_weights_are_symmetric_and_sum_to_exactly_2_to_the_128(law):
    weights = both_sides(law)
    assert sum(weights.values()) == TOTAL_WEIGHT
    assert all(weights[z] == weights[-z] >= 0 for z in weights)
    assert law.weight(law.radius + 1) == law.weight(-law.radius - 1) == 0
    assert sum(map(law.probability, weights)) == 1


@pytest.mark.parametrize("law", LONG_LAWS, ids=str)
def test_long_tables_sum_to_exactly_2_to_the_128_too(law):
    zero, *others = law.table.weights()
    assert zero + 2 * sum(others) == TOTAL_WEIGHT
    assert min(zero, *others) >= 0
    assert len(others) == law.radius


def test_draws_keep_the_shape_asked_for():
    rng = Keyed(1).at("noise")
    drawn = noise_laws.truncated_geometric(1.0, 5).table.draw(rng, (3, 4, 5))
    assert drawn.shape == (3, 4, 5)
    assert drawn.dtype == np.int64
    assert noise_laws.exact().table.draw(rng, (0, 7)).shape == (0, 7)
    assert noise_laws.exact().table.draw(SystemRng(), 5).tolist() == [0] * 5


def literal_law(name, **of):
    """The law by its definition, in 60 digits."""
    mpmath.mp.dps = 60
    if name == "rounded_gaussian":
        sigma = mpmath.mpf(of["sigma"])
        return lambda z: (
            mpmath.ncdf((z + mpmath.mpf("0.5")) / sigma)
            - mpmath.ncdf((z - mpmath.mpf("0.5")) / sigma)
        )
    alpha, r = mpmath.exp(-mpmath.mpf(of["epsilon"])), of.get("r", mpmath.inf)
    cut = 2 * alpha ** (r + 1) if r < mpmath.inf else 0
    return lambda z: alpha ** abs(z) * (1 - alpha) / (1 + alpha - cut)


@pytest.mark.parametrize("law", SMALL_LAWS[1:], ids=str)
def test_every_weight_is_the_definition_rounded_to_the_nearest_unit(law):
    ideal = literal_law(law.name, **dict(law.parameters))
    for z in range(1, law.radius + 1):
        assert law.weight(z) == int(mpmath.nint(TOTAL_WEIGHT * ideal(z)))
    moved = mpmath.fsum(
        abs(TOTAL_WEIGHT * ideal(z) - law.weight(z)) for z in range(-law.radius, law.radius + 1)
    )
    beyond = TOTAL_WEIGHT - mpmath.fsum(
        TOTAL_WEIGHT * ideal(z) for z in range(-law.radius, law.radius + 1)
    )
    assert (moved + abs(beyond)) / 2 <= law.tv * TOTAL_WEIGHT


@pytest.mark.parametrize("sigma", [10.3, 50.0, 400.5])
def test_the_variance_of_long_gaussian_tables_needs_no_table(sigma):
    law = noise_laws.rounded_gaussian(sigma)
    found = law.variance
    assert "table" not in vars(law)
    z = np.arange(law.radius + 1.0)
    assert found == pytest.approx(2 * float(z**2 @ law.table.probabilities()), rel=1e-13)


@pytest.mark.parametrize("law", BOUNDED_LONG_LAWS, ids=str)
def test_doubles_move_a_long_table_by_less_than_its_tv_allows(law, monkeypatch):
    """Against the same law weighed in decimals, which the test above holds to the definition."""
    here = law.table.weights()
    monkeypatch.setattr(noise_laws, "MAX_DECIMAL_RADIUS", noise_laws.MAX_RADIUS)
    fine = getattr(noise_laws, law.name)(**dict(law.parameters))
    assert law.relative_error == 0
    pairs = zip(here, fine.table.weights(), strict=True)
    off = sum(abs(here - there) for here, there in pairs)
    assert 0 < off < law.tv * TOTAL_WEIGHT


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 8), st.integers(1, 60))
def test_a_truncated_geometric_table_stays_within_its_tv_of_the_theorem(epsilon, r):
    """Theorem 7: δ = g(r), plus at most (1 + e^ε) tv for the rounding."""
    law = noise_laws.truncated_geometric(epsilon, r)
    ideal = geometric_histogram_cost(epsilon=epsilon, r=r).delta
    slack = (1 + math.exp(epsilon)) * law.tv
    assert ideal * (1 - 1e-10) - slack <= noise_delta(law.table.weights(), epsilon) <= ideal + slack


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SMALL_LAWS), st.floats(0, 6), st.integers(-4, 4).filter(lambda s: s != 0))
def test_delta_is_the_definition_in_both_directions(law, epsilon, shift):
    """HS_ε(g ‖ g shifted) as a sum of exact fractions, with e^ε to 60 digits."""
    mpmath.mp.dps = 60
    factor = Fraction(int(mpmath.exp(epsilon) * 2**150), 2**150)
    span = range(-law.radius - 4, law.radius + 5)
    literal = sum(max(0, law.probability(z) - factor * law.probability(z - shift)) for z in span)
    promised = noise_delta(law.table.weights(), epsilon, shift=abs(shift))
    assert literal <= promised + Fraction(1, 2**140)
    assert promised <= literal * (1 + Fraction(1, 2**50)) + Fraction(1, 2**140)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9, 2.0])
def test_delta_agrees_with_dp_accounting(epsilon):
    """Oracle: dp_accounting's discrete Laplace mechanism."""
    laplace = pld.from_discrete_laplace_mechanism(1.0, use_connect_dots=True)
    ours = noise_delta(noise_laws.discrete_laplace(1.0).table.weights(), epsilon)
    assert ours == pytest.approx(laplace.get_delta_for_epsilon(epsilon), abs=1e-15)


def test_the_scale_of_laplace_noise_is_that_of_opendp():
    """Oracle: OpenDP's map from the scale of integer noise to ε; there δ is zero, here tiny."""
    dp.enable_features("contrib")
    theirs = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=11.0)
    law = noise_laws.discrete_laplace(1 / 11)
    assert noise_delta(law.table.weights(), theirs.map(1)) <= (1 + math.exp(1 / 11)) * law.tv
    assert noise_delta(law.table.weights(), theirs.map(1) * 0.999) > 1e-6


def test_the_table_adds_to_the_ideal_delta_what_the_reference_measured():
    """the review, section 8: 1.8e-18 (r=21), 2.7e-17 (r=178); ours rounds no worse."""
    for epsilon, r, measured in [(1.0, 21, 1.8e-18), (0.1, 178, 2.7e-17)]:
        mpmath.mp.dps = 40
        alpha = mpmath.exp(-mpmath.mpf(epsilon))
        ideal = (1 - alpha) * alpha**r / (1 + alpha - 2 * alpha ** (r + 1))
        table = mpmath.mpf(
            noise_delta(noise_laws.truncated_geometric(epsilon, r).table.weights(), epsilon)
        )
        assert abs(table - ideal) <= measured


@pytest.mark.parametrize(("epsilon", "r"), GEOMETRIC_TABLE)
def test_the_smallest_geometric_threshold_is_the_reference_table(epsilon, r):
    """the review, section 3.1, δ = 2^-30: worked out there by exact enumeration."""
    assert noise_laws.smallest_radius(epsilon=epsilon, delta=DELTA) == r
    assert geometric_histogram_cost(epsilon=epsilon, r=r - 1).delta > DELTA


def test_mechanism_b_has_geometric_noise_with_the_smallest_threshold():
    law = noise_laws.bounded_noise(epsilon=1.0, delta=DELTA)
    assert law == noise_laws.truncated_geometric(1.0, 21)


def test_unreachable_bounded_noise_is_refused():
    with pytest.raises(BudgetError, match="too small for any noise"):
        noise_laws.smallest_radius(epsilon=1.0, delta=1e-36)


@pytest.mark.parametrize("law", [SMALL_LAWS[i] for i in (1, 4, 7)], ids=str)
def test_draws_come_up_as_often_as_the_table_says(law):
    """False-alarm rate 1e-6, over the choice of key."""
    drawn = law.table.draw(Keyed(7).at("noise"), 300_000)
    assert_distribution(Counter(drawn.tolist()), {z: law.probability(z) for z in both_sides(law)})


def test_that_assertion_notices_a_scale_five_percent_too_wide():
    """The test above is worth something only if a wrong scale fails it."""
    law, wrong = noise_laws.discrete_laplace(1.0), noise_laws.discrete_laplace(0.95)
    drawn = wrong.table.draw(Keyed(7).at("noise"), 300_000)
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(
            Counter(drawn.tolist()), {z: law.probability(z) for z in both_sides(law)}
        )


def test_variances_are_the_closed_forms():
    """2α/(1-α)² of the discrete Laplace law; σ² + 1/12 of a rounded normal, for wide σ."""
    alpha = math.exp(-1 / 11)
    assert noise_laws.discrete_laplace(1 / 11).variance == pytest.approx(
        2 * alpha / (1 - alpha) ** 2
    )
    assert noise_laws.rounded_gaussian(18.26).variance == pytest.approx(18.26**2 + 1 / 12)
    assert noise_laws.exact().variance == 0.0


@pytest.mark.parametrize(
    "build",
    [
        lambda: noise_laws.discrete_laplace(0.0),
        lambda: noise_laws.discrete_laplace(math.nan),
        lambda: noise_laws.discrete_laplace(math.inf),
        lambda: noise_laws.discrete_laplace(90.0),
        lambda: noise_laws.discrete_laplace(1e-8),
        lambda: noise_laws.truncated_geometric(-1.0, 3),
        lambda: noise_laws.truncated_geometric(1.0, 0),
        lambda: noise_laws.rounded_gaussian(0.0),
        lambda: noise_laws.rounded_gaussian(0.01),
        lambda: noise_laws.rounded_gaussian(1e9),
    ],
)
def test_a_law_outside_what_a_table_can_hold_is_refused(build):
    with pytest.raises(BudgetError):
        build()


def test_a_law_that_is_none_is_a_bug():
    table = noise_laws.truncated_geometric(1.0, 3).table
    with pytest.raises(InvariantError, match="invalid table errors"):
        Law(name="far", radius=3, make=lambda: table, tv=2.0)
    with pytest.raises(InvariantError, match="invalid table errors"):
        Law(name="far", radius=3, make=lambda: table, relative_error=1.0)
    with pytest.raises(InvariantError, match="radius 3, not 4"):
        Law(name="longer", radius=4, make=lambda: table).weight(0)


def test_a_law_is_known_before_its_table_is_made():
    """A plan with noise of millions of weights takes no time, and a law can be sent to others."""
    law = noise_laws.rounded_gaussian(5e6)
    assert law.radius == 62_500_000
    assert "table" not in vars(law)
    sent = pickle.loads(pickle.dumps(noise_laws.rounded_gaussian(3.0)))  # noqa: S301 - our own bytes
    assert sent == noise_laws.rounded_gaussian(3.0)
    assert sent.weight(1) == noise_laws.rounded_gaussian(3.0).weight(1)


def test_laws_are_values_equal_by_name_and_parameters():
    assert (
        noise_laws.discrete_laplace(0.5)
        == noise_laws.discrete_laplace(0.5)
        != noise_laws.discrete_laplace(0.6)
    )
    assert str(noise_laws.truncated_geometric(1.0, 21)) == "truncated_geometric(epsilon=1.0, r=21)"
    with pytest.raises(ValueError, match="read-only"):
        noise_laws.discrete_laplace(0.5).table.low[0] = 1
