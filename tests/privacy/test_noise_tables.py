"""Weight tables: exact draws, distance to the ideal law, and the cost of that distance."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definitions import noise_delta
from deniable.errors import BudgetError, InvariantError
from deniable.privacy import noise_laws, noise_tables
from deniable.privacy.composition import Guarantee, gaussian_delta, gaussian_mu
from deniable.privacy.ledger import Spend, compose_spends
from deniable.privacy.noise_tables import (
    TOTAL_WEIGHT,
    WeightTable,
    delta_before_table_error,
    epsilon_of_relative_error,
    with_table_error,
)
from deniable.randomness import Keyed

pytestmark = pytest.mark.slow

HALF, WORD = 2**127, 2**64
# The last has ends that agree in their first word, in the middle and at the end.
TABLES = {
    "point": WeightTable.of_integers([]),
    "laplace": noise_laws.discrete_laplace(1.0).table,
    "narrow": noise_laws.discrete_laplace(40.0).table,
    "gaussian": noise_laws.rounded_gaussian(0.4).table,
    "in doubles": noise_laws.rounded_gaussian(10.5).table,
    "gaps": WeightTable.of_integers([0, 2**100, 0, 0, 2**64, 0]),
    "ties": WeightTable.of_integers([2**126, 3, 0, 5, 2**63, 2**64 - 9, 1, 2**100, 7, 0, 1, 1]),
}
UNBOUNDED = [
    noise_laws.discrete_laplace(1 / 3000),
    noise_laws.discrete_laplace(1e-5),
    noise_laws.rounded_gaussian(10.5),
    noise_laws.rounded_gaussian(25.4),
    noise_laws.rounded_gaussian(163.0),
    noise_laws.rounded_gaussian(5000.0),
    noise_laws.rounded_gaussian(123_456.7),
]


class Scripted:
    """A source of given 128-bit numbers, by words: the second only for those that are asked for."""

    def __init__(self, numbers, second=None):
        self._first = np.fromiter((n >> 64 for n in numbers), np.uint64)
        self._second = np.fromiter((n % WORD for n in numbers), np.uint64)
        self.asked = 0
        self._table = second

    def words(self, size):
        self.asked += 1
        if self.asked == 1:
            assert size == len(self._first)
            return self._first
        tied = np.isin(self._first >> np.uint64(1), self._table.high)
        assert size == tied.sum()
        return self._second[tied]


def ends_of(table):
    return [0, *(table.cumulative(z) for z in range(table.radius + 1))]


def draw_at(table, magnitudes, *, negative):
    """What the table makes of the 127 bits ``magnitudes`` and a sign."""
    numbers = [((m >> 64) * 2 + negative) * WORD + m % WORD for m in magnitudes]
    rng = Scripted(numbers, table)
    return table.draw(rng, len(numbers)).tolist(), rng.asked


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("negative", [False, True])
def test_the_words_drawn_as_z_are_exactly_its_weight_in_number(name, negative):
    """Known answers at both ends of every value's interval of the 2^127 magnitudes.

    The magnitude is monotone in the 127 bits, so the ends decide how many lie in between: the
    sampler's law is the table, not only near it.
    """
    table = TABLES[name]
    ends = ends_of(table)
    assert ends[-1] == HALF
    intervals = [(a, b, z) for z, (a, b) in enumerate(pairwise(ends)) if b > a]
    assert sum(b - a for a, b, _ in intervals) == HALF
    known = [(a, z) for a, _, z in intervals] + [(b - 1, z) for _, b, z in intervals]
    drawn, asked = draw_at(table, [m for m, _ in known], negative=negative)
    assert drawn == [-z if negative else z for _, z in known]
    assert asked == (1 if name == "point" else 2)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(TABLES)), st.integers(0, HALF - 1))
def test_between_the_ends_too(name, magnitude):
    table = TABLES[name]
    literal = sum(end <= magnitude for end in ends_of(table)[1:])
    assert draw_at(table, [magnitude], negative=False)[0] == [literal]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**70), st.integers(0, 2**120))),
    st.data(),
)
def test_any_weights_are_kept_to_the_unit_and_drawn_by_them(tail, data):
    table = WeightTable.of_integers(tail)
    assert [table.weight(z) for z in range(1, table.radius + 1)] == tail
    assert [table.weight(-z) for z in range(1, table.radius + 1)] == tail
    assert list(table.weights()) == [TOTAL_WEIGHT - 2 * sum(tail), *tail]
    near = data.draw(st.sampled_from(ends_of(table)))
    magnitude = min(HALF - 1, max(0, near + data.draw(st.integers(-3, 3))))
    literal = sum(end <= magnitude for end in ends_of(table)[1:])
    assert draw_at(table, [magnitude], negative=False)[0] == [literal]
    assert table.probabilities() == pytest.approx(
        [w / TOTAL_WEIGHT for w in table.weights()], rel=1e-15
    )


def test_a_draw_takes_one_word_but_for_ties():
    class Counting:
        asked = 0

        def words(self, size):
            self.asked += size
            return Keyed(5).at("noise").words(size)

    rng = Counting()
    noise_laws.rounded_gaussian(25.4).table.draw(rng, 100_000)
    assert rng.asked == 100_000


def test_a_table_that_is_none_is_a_bug():
    whole = np.array([2**63], np.uint64)
    with pytest.raises(InvariantError, match="64-bit"):
        WeightTable(whole.astype(np.int64), whole)
    with pytest.raises(InvariantError, match="64-bit"):
        WeightTable(whole, np.zeros(2, np.uint64))
    with pytest.raises(InvariantError, match="sum to 2\\^128"):
        WeightTable(whole, np.ones(1, np.uint64))
    with pytest.raises(InvariantError, match="sum to 2\\^128"):
        WeightTable(np.array([5, 4, 2**63], np.uint64), np.zeros(3, np.uint64))
    with pytest.raises(InvariantError, match="sum to 2\\^128"):
        WeightTable(np.array([4, 4, 2**63], np.uint64), np.array([1, 0, 0], np.uint64))
    for tail in ([HALF, 1], [3, -1]):
        with pytest.raises(InvariantError, match="non-negative"):
            WeightTable.of_integers(tail)
    for mass in (lambda z: z * math.nan, lambda z: 1 - z, lambda z: 0 * z):
        with pytest.raises(InvariantError, match="masses"):
            WeightTable.of_masses(mass, 3)


def test_masses_scaled_to_more_than_there_is_are_a_bug(monkeypatch):
    monkeypatch.setattr(noise_tables, "_SCALING_SHORTFALL", -(2.0**-42))
    with pytest.raises(InvariantError, match="do not add up"):
        WeightTable.of_masses(np.ones_like, 3)


# Near the law


def ideal(law):
    """The law by its definition, in 80 digits; by tails, so that nothing cancels."""
    mpmath.mp.dps = 80
    if law.name == "rounded_gaussian":
        root = mpmath.mpf(dict(law.parameters)["sigma"]) * mpmath.sqrt(2)
        half = mpmath.mpf("0.5")
        return lambda z: (mpmath.erfc((z - half) / root) - mpmath.erfc((z + half) / root)) / 2
    alpha = mpmath.exp(-mpmath.mpf(dict(law.parameters)["epsilon"]))
    return lambda z: alpha**z * (1 - alpha) / (1 + alpha)


@pytest.mark.untraced
@pytest.mark.parametrize("law", UNBOUNDED, ids=str)
def test_every_weight_is_within_its_share_and_a_unit_of_the_definition(law):
    """t = g (1 + η_z) + u: zero, the first ones, the last ones, and a thousand in between."""
    g = ideal(law)
    few = min(200, law.radius // 2)
    places = {*range(few), *np.linspace(0, law.radius, 1000).astype(int).tolist()}
    places |= {law.radius - z for z in range(few)}
    for z in places:
        exactly = g(z) * TOTAL_WEIGHT
        unit = 0 if z == 0 else 1
        assert abs(law.weight(z) - exactly) <= law.relative_error * exactly + unit


@pytest.mark.parametrize("law", UNBOUNDED, ids=str)
def test_the_bound_of_the_share_has_room_but_not_much(law):
    """Doubles err by 2^-49 to 2^-45 where exponents are large: a bound of 2^-49 would be false."""
    g = ideal(law)
    body = [
        z
        for z in np.linspace(1, law.radius, 500).astype(int).tolist()
        if g(z) * TOTAL_WEIGHT > 2**60
    ]
    worst = max(abs(law.weight(z) / (g(z) * TOTAL_WEIGHT) - 1) for z in body)
    assert 2.0**-50 < worst < law.relative_error / 4


@pytest.mark.parametrize("law", UNBOUNDED, ids=str)
def test_units_and_what_was_cut_off_are_within_tv(law):
    mpmath.mp.dps = 80
    if law.name == "rounded_gaussian":
        sigma = mpmath.mpf(dict(law.parameters)["sigma"])
        cut = mpmath.erfc((law.radius + mpmath.mpf("0.5")) / sigma / mpmath.sqrt(2))
    else:
        alpha = mpmath.exp(-mpmath.mpf(dict(law.parameters)["epsilon"]))
        cut = 2 * alpha ** (law.radius + 1) / (1 + alpha)
    assert cut < 2.0**-110
    assert cut + mpmath.mpf(2 * law.radius) / TOTAL_WEIGHT < law.tv < 2.0**-98


def test_zero_has_its_share_although_it_takes_what_is_left():
    """One of 309,000 values takes the errors of all: without a second pass, 2^-42 of the whole."""
    law = noise_laws.rounded_gaussian(123_456.7)
    assert abs(law.weight(0) / (ideal(law)(0) * TOTAL_WEIGHT) - 1) < 2.0**-50


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-30, 1.0), min_size=2, max_size=60), st.floats(1e-9, 1e9))
def test_weights_are_in_proportion_to_masses(masses, scale):
    masses[0] = max(masses)
    scaled = np.array(masses) * scale
    table = WeightTable.of_masses(lambda z: scaled[z.astype(int)], len(masses) - 1)
    assert sum(table.weight(z) for z in range(-table.radius, table.radius + 1)) == TOTAL_WEIGHT
    whole = Fraction(scaled[0]) + 2 * sum(map(Fraction, scaled[1:].tolist()))
    for z, mass in enumerate(scaled.tolist()):
        exactly = Fraction(mass) / whole * TOTAL_WEIGHT
        room = exactly / 2**52 + (1 if z else 2 * len(masses))
        assert abs(table.weight(z) - exactly) <= room


# What that costs


def hockey_stick(weight, epsilon, shift, r):
    """HS_ε(t ‖ t moved by ``shift``), by its definition."""
    factor = mpmath.exp(mpmath.mpf(epsilon))
    span = range(-r, r + shift + 1)
    return mpmath.fsum(max(0, weight(z) - factor * weight(z - shift)) for z in span)


@pytest.mark.parametrize("sigma", [0.7, 3.0, 10.5, 18.26])
@pytest.mark.parametrize("shift", [1, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 30.0])
def test_a_gaussian_table_costs_no_more_than_is_charged(sigma, shift, epsilon):
    """The table's own δ, in 80 digits, against that of N(0, σ²) and what ``with_table_error`` adds.

    Where shift / σ is large the ends of the table show: also that is in what is charged.
    """
    law = noise_laws.rounded_gaussian(sigma)
    mpmath.mp.dps = 80
    of_normal = Guarantee(epsilon=epsilon, delta=gaussian_delta(epsilon=epsilon, mu=shift / sigma))
    charged = with_table_error(
        of_normal, growth=epsilon_of_relative_error(law.relative_error), mass=law.tv
    )
    weight = {
        z: mpmath.mpf(law.weight(z)) / TOTAL_WEIGHT for z in range(-law.radius, law.radius + 1)
    }
    true = hockey_stick(lambda z: weight.get(z, 0), charged.epsilon, shift, law.radius)
    assert true <= charged.delta
    assert charged.epsilon <= epsilon * (1 + 1e-11)
    assert charged.delta <= of_normal.delta * (1 + 1e-9) + (1 + math.exp(epsilon)) * 2.0**-110


@pytest.mark.parametrize("epsilon", [1 / 500, 0.3, 2.0])
def test_a_laplace_table_costs_no_more_than_is_charged(epsilon):
    """The ideal law has δ = 0 at ε: all of the table's δ is what is charged."""
    law = noise_laws.discrete_laplace(epsilon)
    growth = epsilon_of_relative_error(law.relative_error)
    charged = with_table_error(Guarantee(epsilon=epsilon), growth=growth, mass=law.tv)
    assert 0 < noise_delta(law.table.weights(), math.inf) < charged.delta < 2.0**-98
    assert noise_delta(law.table.weights(), charged.epsilon) <= charged.delta


def test_without_the_charge_the_promise_would_be_false():
    """What the two tests above hold: doubles show at the ideal ε, and the cut end at every ε."""
    law = noise_laws.discrete_laplace(1 / 500)
    assert law.relative_error > 0
    assert (
        noise_delta(law.table.weights(), 1 / 500)
        > with_table_error(Guarantee(epsilon=1 / 500), growth=0.0, mass=law.tv).delta
    )


CELLS = st.lists(st.integers(1, 1000), min_size=3, max_size=5)


@settings(max_examples=300, deadline=None)
@given(CELLS, st.data(), st.floats(0.0, 3.0), st.integers(1, 2))
def test_the_lemma_on_small_laws_far_from_each_other(masses, data, epsilon, moved):
    """Any law g, any t = g (1 + η_z) + u with large η and d: enumerated, with exact fractions."""
    g = [Fraction(m, sum(masses)) for m in masses]
    eta = Fraction(data.draw(st.integers(0, 300)), 1000)
    tilt = [1 + eta * data.draw(st.integers(-1000, 1000)) / 1000 for _ in g]
    near = [p * factor for p, factor in zip(g, tilt, strict=True)]
    lost = data.draw(st.integers(0, len(g) - 1))
    table = list(near)
    table[lost] += 1 - sum(near)
    if not table[lost] >= 0:
        return
    d = abs(1 - sum(near))

    def worst(law, at):
        """δ at ``at`` of ``moved`` numbers, each moved by one place; both directions."""
        law = [Fraction(0), *law, Fraction(0)]
        pairs = [(a, b) for a, b in pairwise(law)]
        if moved == 2:
            pairs = [(a * c, b * e) for a, b in pairs for c, e in pairs]
        factor = Fraction(math.exp(at))
        there = sum(max(0, a - factor * b) for a, b in pairs)
        back = sum(max(0, b - factor * a) for a, b in pairs)
        return max(there, back)

    cost = Guarantee(epsilon=epsilon, delta=min(1.0, float(worst(g, epsilon)) * (1 + 1e-12)))
    charged = with_table_error(
        cost, growth=moved * epsilon_of_relative_error(float(eta)), mass=moved * float(d)
    )
    assert worst(table, charged.epsilon) <= charged.delta * (1 + 1e-12)


def test_the_lemma_is_sharp_for_a_coin():
    """A fair coin tells nothing. One off by the share η has a loss of ln((1 + η) / (1 - η)) and
    no less; one off by the mass d has δ = (½ + d) - (½ - d) at ε = 0: (1 + e^0) d."""
    by_share = with_table_error(
        Guarantee(epsilon=0.0), growth=epsilon_of_relative_error(0.1), mass=0.0
    )
    assert by_share.delta == 0.0
    assert math.log(0.55 / 0.45) <= by_share.epsilon <= math.log(0.55 / 0.45) * (1 + 1e-12)
    by_mass = with_table_error(Guarantee(epsilon=0.0), growth=0.0, mass=0.1)
    assert by_mass.epsilon == 0.0
    assert 0.2 <= by_mass.delta <= 0.2 * (1 + 1e-12)


def test_what_the_ideal_laws_may_cost_is_what_the_charge_leaves():
    growth, mass, delta = 1e-6, 1e-15, 1e-9
    left = delta_before_table_error(delta, epsilon=3.0, growth=growth, mass=mass)
    back = with_table_error(
        Guarantee(epsilon=3.0 - 2 * growth, delta=left), growth=growth, mass=mass
    )
    assert back.epsilon <= 3.0
    assert delta * (1 - 1e-9) <= back.delta <= delta * (1 + 1e-12)
    assert delta_before_table_error(delta, epsilon=40.0, growth=0.0, mass=mass) < 0


def spend_of(law, **more):
    return Spend(what="entropies", part="structure", law=law, **more)


@pytest.mark.parametrize("epsilon", [10.0, 39.0])
def test_a_large_epsilon_is_certified_up_to_forty(epsilon):
    """5,350 entropies of a hundred columns, δ = 1e-9: the tables cost less than the grid."""
    mu = gaussian_mu(epsilon=epsilon, delta=1e-9)
    sigma = 171 * math.sqrt(5350) / mu
    spend = spend_of(noise_laws.rounded_gaussian(sigma), sensitivity=171, l0_sensitivity=5350)
    assert epsilon - 1e-6 <= compose_spends((spend,), delta=1e-9).epsilon <= epsilon + 1e-3
    with pytest.raises(BudgetError, match="above ε = 40 "):
        compose_spends(
            (spend_of(noise_laws.rounded_gaussian(sigma), sensitivity=700, l0_sensitivity=5350),),
            delta=1e-9,
        )


def test_where_tables_would_cost_a_share_of_delta_less_is_certified():
    """A million numbers: at ε = 40 their tables would cost 3e-9, at ε = 20 next to nothing."""
    law = noise_laws.rounded_gaussian(3e6)
    spend = spend_of(law, l0_sensitivity=10**6)
    assert (1 + math.exp(40)) * spend.table_error > 1e-9 > 1e6 * math.exp(20) * spend.table_error
    assert compose_spends((spend,), delta=1e-9).epsilon < 0.01
    with pytest.raises(BudgetError, match="above ε = 20 "):
        compose_spends((replace(spend, sensitivity=15_000),), delta=1e-9)


def test_tables_of_which_all_would_show_are_refused():
    far = replace(noise_laws.discrete_laplace(1.0), tv=1e-6)
    with pytest.raises(BudgetError, match="above ε = 2 "):
        compose_spends((spend_of(far),), delta=1e-9)


def test_a_charge_that_is_none_is_refused():
    for growth, mass in [(-1e-9, 0.0), (math.inf, 0.0), (0.0, -1.0), (0.0, math.nan)]:
        with pytest.raises(BudgetError, match="growth"):
            with_table_error(Guarantee(epsilon=1.0), growth=growth, mass=mass)
    assert with_table_error(Guarantee(epsilon=1.0), growth=0.0, mass=0.0).delta == 0.0
    assert with_table_error(Guarantee(epsilon=math.inf), growth=0.0, mass=1e-30).delta == 1.0
