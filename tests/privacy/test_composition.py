"""Composition, group privacy and Gaussian noise, compared with other accountants and formulas."""

import math
from fractions import Fraction
from itertools import product

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deniable.errors import BudgetError
from deniable.privacy import noise_laws
from deniable.privacy.composition import (
    Guarantee,
    advanced_composition,
    gaussian_delta,
    gaussian_mu,
    group_privacy,
    optimal_composition,
    random_partition,
    row_limit,
    sequential_composition,
    smaller_table_noise,
    subsampling_amplification,
    unit_cost,
    with_total_variation,
)
from deniable.privacy.noise_laws import truncated_geometric
from theorems import gaussian_epsilon, optimal_delta
from worlds import property_test

DELTA = 2.0**-30
costs = st.builds(
    Guarantee, epsilon=st.floats(0, 5), delta=st.floats(0, 0.1, allow_subnormal=False)
)


def is_just_above(bound, exact, rel=1e-12):
    return exact <= bound <= exact * (1 + rel) + 1e-300


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1, 0), (math.nan, 0), (1, -0.1), (1, 1.1), (1, math.nan)]
)
def test_a_guarantee_that_is_none_cannot_be_made(epsilon, delta):
    with pytest.raises(BudgetError, match="need ε ≥ 0"):
        Guarantee(epsilon=epsilon, delta=delta)


def test_guarantees_are_compared_part_by_part():
    limit = Guarantee(epsilon=1.0, delta=1e-9)
    assert limit.within(limit)
    assert not Guarantee(epsilon=1.1, delta=0.0).within(limit)
    assert not Guarantee(epsilon=0.5, delta=1e-8).within(limit)


@given(st.lists(costs, min_size=1, max_size=6))
def test_sequential_costs_add_and_are_rounded_up(listed):
    """Theorem 2 (thm:dp:seqc)."""
    added = sequential_composition(listed)
    assert is_just_above(added.epsilon, math.fsum(cost.epsilon for cost in listed))
    assert added.delta >= min(1.0, math.fsum(cost.delta for cost in listed))


@given(costs, st.integers(1, 50))
def test_n_copies_cost_what_a_list_of_n_costs(cost, n):
    assert sequential_composition([cost] * n) == sequential_composition(cost for _ in range(n))
    assume(cost.epsilon > 0.01)
    assert optimal_delta(cost, times=1, epsilon=cost.epsilon) >= cost.delta


def test_advanced_composition_is_the_paper_word_for_word():
    """Theorem 3 (thm:dp:advc), by hand for ε = 0.1, k = 11, δ'' = 2^-30."""
    promised = advanced_composition(Guarantee(epsilon=0.1, delta=1e-12), times=11, slack=DELTA)
    by_hand = 0.1 * math.sqrt(2 * 11 * math.log(1 / DELTA)) + 11 * 0.1 * (math.e**0.1 - 1)
    assert is_just_above(promised.epsilon, by_hand, 1e-9)
    assert is_just_above(promised.delta, 11e-12 + DELTA)


@pytest.mark.parametrize(
    ("epsilon", "queries", "scale"),
    [
        *((0.1, 11, 214), (0.1, 132, 743), (0.1, 187, 884)),
        *((1, 11, 21.9), (1, 132, 75.8), (1, 187, 90.3), (3, 11, 7.64)),
    ],
)
def test_advanced_composition_needs_the_noise_of_the_reference_table(epsilon, queries, scale):
    """the review, section 5, column "paper adv.": b, to three digits."""
    low = advanced_composition(Guarantee(epsilon=1 / (scale * 1.005)), times=queries, slack=DELTA)
    high = advanced_composition(Guarantee(epsilon=1 / (scale * 0.995)), times=queries, slack=DELTA)
    assert low.epsilon < epsilon < high.epsilon


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 3), st.floats(0, 0.05, allow_subnormal=False), st.integers(1, 8), st.data())
def test_optimal_composition_is_the_hockey_stick_of_all_outcomes(epsilon, delta, times, data):
    """Definition: the worst (ε, δ) mechanism has four outcomes; all sequences of them, summed."""
    at = data.draw(st.floats(0, times * epsilon))
    e = math.exp(epsilon)
    p = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
    literal = 0.0
    for outcome in product(range(4), repeat=times) if times <= 5 else []:
        here = math.prod(p[o] for o in outcome)
        there = math.prod(p[3 - o] for o in outcome)
        literal += max(0.0, here - math.exp(at) * there)
    promised = optimal_delta(Guarantee(epsilon=epsilon, delta=delta), times=times, epsilon=at)
    if times <= 5:
        assert literal - 1e-12 <= promised <= literal * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize(
    ("epsilon", "delta", "times", "limit"),
    [(0.1, 0.0, 100, 1e-9), (0.05, 1e-13, 1000, 1e-9), (1.0, 1e-12, 40, 1e-6)],
)
def test_optimal_composition_agrees_with_dp_accounting(epsilon, delta, times, limit):
    """Oracle: the PLD of from_privacy_parameters, on a grid that is 1e-5 too high at most."""
    ours = optimal_composition(Guarantee(epsilon=epsilon, delta=delta), times=times, delta=limit)
    known = common.DifferentialPrivacyParameters(epsilon, delta)
    theirs = pld.from_privacy_parameters(known, epsilon / 64).self_compose(times)
    assert ours.epsilon == pytest.approx(theirs.get_epsilon_for_delta(limit), rel=1e-4)
    assert (
        optimal_delta(Guarantee(epsilon=epsilon, delta=delta), times=times, epsilon=ours.epsilon)
        <= limit
    )


def test_optimal_composition_is_stable_for_a_million_releases():
    """Against the sum in 50 digits, each binomial term from the one before."""
    mpmath.mp.dps = 50
    n, epsilon, at = 10**6, 0.001, 4.0
    promised = optimal_delta(Guarantee(epsilon=epsilon), times=n, epsilon=at)
    e = mpmath.mpf(epsilon)
    hits = math.floor((at / epsilon + n) / 2) + 1
    term = mpmath.binomial(n, hits) * mpmath.exp(e * hits) / (1 + mpmath.exp(e)) ** n
    literal = mpmath.mpf(0)
    while term > mpmath.mpf(10) ** -40:
        literal += term * (1 - mpmath.exp(at - (2 * hits - n) * e))
        term *= mpmath.exp(e) * (n - hits) / (hits + 1)
        hits += 1
    assert literal <= promised <= literal * (1 + 1e-6)


def test_optimal_composition_never_promises_less_than_it_can_and_refuses_the_rest():
    cost = Guarantee(epsilon=0.5, delta=1e-10)
    assert optimal_composition(Guarantee(epsilon=0.5), times=3, delta=0.0).epsilon == pytest.approx(
        1.5
    )
    assert optimal_composition(Guarantee(epsilon=0.0), times=9, delta=1e-9).epsilon == 0.0
    assert optimal_composition(cost, times=1, delta=1.01e-10).epsilon <= 0.5 * (1 + 1e-9)
    assert optimal_delta(cost, times=2, epsilon=5.0) == pytest.approx(2e-10)
    with pytest.raises(BudgetError, match="add up to more"):
        optimal_composition(cost, times=20, delta=1e-9)
    with pytest.raises(BudgetError, match="need N ≥ 1"):
        optimal_composition(cost, times=0, delta=1e-9)
    assert optimal_delta(Guarantee(epsilon=30.0, delta=0.9), times=10**3, epsilon=0.0) == 1.0


@settings(max_examples=50, deadline=None)
@given(st.floats(0.001, 2), st.integers(1, 300))
def test_optimal_composition_is_never_above_basic_or_advanced(epsilon, times):
    best = optimal_composition(Guarantee(epsilon=epsilon), times=times, delta=DELTA).epsilon
    assert best <= sequential_composition([Guarantee(epsilon=epsilon)] * times).epsilon * (
        1 + 1e-12
    )
    assert (
        best <= advanced_composition(Guarantee(epsilon=epsilon), times=times, slack=DELTA).epsilon
    )


def literal_gaussian_delta(epsilon, mu):
    mpmath.mp.dps = 50
    e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(1.0, 0.1816), (0.1, 0.02), (3, 1.0), (0.0, 0.5), (2.0, 6.0), (0.5, 30)]
)
def test_gaussian_delta_is_the_formula_in_fifty_digits_rounded_up(epsilon, mu):
    """δ_G = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""
    literal = literal_gaussian_delta(epsilon, mu)
    assert literal <= gaussian_delta(epsilon=epsilon, mu=mu) <= literal * (1 + 1e-9)


def test_gaussian_noise_has_the_scale_of_the_reference():
    """the review, section 5: σ₁(ε=1) = 5.507, and √q σ₁ for q queries, to three digits."""
    assert 1 / gaussian_mu(epsilon=1, delta=DELTA) == pytest.approx(5.507, abs=5e-4)
    for epsilon, q, sd in [(0.1, 11, 167), (0.1, 132, 578), (0.1, 187, 688), (1, 11, 18.3)]:
        assert math.sqrt(q) / gaussian_mu(epsilon=epsilon, delta=DELTA) == pytest.approx(
            sd, rel=0.003
        )
    for epsilon, q, sd in [(1, 132, 63.3), (1, 187, 75.3), (3, 11, 6.46)]:
        assert math.sqrt(q) / gaussian_mu(epsilon=epsilon, delta=DELTA) == pytest.approx(
            sd, rel=0.001
        )


def test_gaussian_scale_agrees_with_dp_accounting():
    """Oracle: dp_accounting's analytic Gaussian mechanism."""
    for epsilon, delta in [(1.0, 1e-9), (0.1, 1e-6), (4.0, 1e-12)]:
        theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
        assert 1 / gaussian_mu(epsilon=epsilon, delta=delta) == pytest.approx(theirs, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 8), st.floats(1e-12, 0.3))
def test_gaussian_mu_and_epsilon_invert_delta_on_the_safe_side(epsilon, delta):
    mu = gaussian_mu(epsilon=epsilon, delta=delta)
    assert literal_gaussian_delta(epsilon, mu) <= delta
    assert literal_gaussian_delta(epsilon, mu * (1 + 1e-5)) > delta
    back = gaussian_epsilon(mu=mu, delta=delta)
    assert literal_gaussian_delta(back, mu) <= delta
    assert back <= epsilon * (1 + 1e-5)


def test_laplace_beats_gaussian_noise_up_to_fifteen_tables():
    """the review, section 5: crossing at m ≈ 15 (ε = 1), 12.7 (0.1), 17.1 (3)."""
    for epsilon, most in [(1.0, 15), (0.1, 12), (3.0, 17)]:
        few = smaller_table_noise(tables=most, epsilon=epsilon, delta=DELTA)
        many = smaller_table_noise(tables=most + 1, epsilon=epsilon, delta=DELTA)
        assert (few.law, many.law) == ("discrete_laplace", "rounded_gaussian")
        assert few.scale == pytest.approx(most / epsilon)
        assert few.deviation == pytest.approx(math.sqrt(2) * most / epsilon)
    assert smaller_table_noise(tables=99, epsilon=1.0, delta=0.0).law == "discrete_laplace"


def test_amplification_is_the_paper_and_one_part_of_a_partition():
    """Theorem 4 (thm:dp:amplif): ε' = ln(1 + p (e^ε - 1)), δ' = p δ."""
    cost = Guarantee(epsilon=3.0, delta=1e-9)
    less = subsampling_amplification(cost, rate=0.09)
    assert is_just_above(less.epsilon, math.log(1 + 0.09 * (math.exp(3) - 1)))
    assert is_just_above(less.delta, 0.09 * 1e-9)
    for rate in (1e-10, 1.0, 1.5, math.nan):
        with pytest.raises(BudgetError, match="δ < p < 1"):
            subsampling_amplification(cost, rate=rate)


def test_two_amplified_parts_cost_more_than_the_larger():
    """the review, section 5: ε = 3 in T and in P, p = 0.09 each, costs at least 1.4899, not 1."""
    part, rate = Guarantee(epsilon=3.0), (math.e - 1) / (math.e**3 - 1)
    assert random_partition([(rate, part)] * 2).epsilon == pytest.approx(1.4899, abs=5e-5)
    assert subsampling_amplification(part, rate=rate).epsilon == pytest.approx(1.0)


@given(st.lists(st.tuples(st.floats(0, 1), costs), min_size=1, max_size=4))
def test_a_partition_never_costs_more_than_its_costliest_part(parts):
    assume(math.fsum(p for p, _ in parts) <= 1)
    shared = random_partition(parts)
    assert shared.epsilon <= max(cost.epsilon for _, cost in parts) * (1 + 1e-12)
    assert shared.delta <= max(cost.delta for _, cost in parts) * (1 + 1e-12)


def test_shares_that_are_none_are_refused_and_infinite_costs_stay_infinite():
    half = (0.6, Guarantee(epsilon=1.0))
    with pytest.raises(BudgetError, match="Theorem 10"):
        random_partition([half, half])
    with pytest.raises(BudgetError, match="Theorem 10"):
        random_partition([(-0.1, half[1])])
    assert random_partition([(0.5, Guarantee(epsilon=math.inf))]).epsilon == math.inf
    assert random_partition([(1.0, Guarantee(epsilon=math.inf, delta=0.5))]).delta == 1.0


def test_a_group_of_two_rows_bounds_replacing_one():
    """the review, section 4: (2ε, δ (1 + e^ε))."""
    two = group_privacy(Guarantee(epsilon=0.7, delta=1e-8), rows=2)
    assert is_just_above(two.epsilon, 1.4)
    assert is_just_above(two.delta, 1e-8 * (1 + math.exp(0.7)))
    assert group_privacy(Guarantee(epsilon=0.7), rows=3).delta == 0.0
    with pytest.raises(BudgetError, match="at least one row"):
        group_privacy(two, rows=0)


def test_a_table_near_the_law_adds_its_distance_to_delta():
    """the review, section 8: (1 + e^ε) · TV for each number that one record moves."""
    law = noise_laws.discrete_laplace(1 / 11)
    near = with_total_variation(Guarantee(epsilon=1.0), tv=law.tv, l0_sensitivity=11)
    assert is_just_above(near.delta, (1 + math.e) * law.tv * 11)
    assert with_total_variation(Guarantee(epsilon=1.0), tv=0.0, l0_sensitivity=5).delta == 0.0
    assert with_total_variation(Guarantee(epsilon=math.inf), tv=1e-9, l0_sensitivity=1).delta == 1.0
    with pytest.raises(BudgetError, match="tv"):
        with_total_variation(near, tv=2.0, l0_sensitivity=1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: advanced_composition(Guarantee(epsilon=1.0), times=0, slack=0.1),
        lambda: advanced_composition(Guarantee(epsilon=1.0), times=1, slack=0.0),
        lambda: gaussian_delta(epsilon=-1.0, mu=1.0),
        lambda: gaussian_mu(epsilon=1.0, delta=0.0),
        lambda: gaussian_epsilon(mu=1.0, delta=0.0),
        lambda: smaller_table_noise(tables=0, epsilon=1.0, delta=0.1),
        lambda: gaussian_mu(epsilon=0.0, delta=1e-20),
    ],
)
def test_outside_a_theorems_hypotheses_there_is_an_error_not_a_number(ask):
    with pytest.raises(BudgetError):
        ask()


def test_no_noise_at_all_costs_nothing_in_the_limit():
    assert gaussian_delta(epsilon=1.0, mu=0.0) == gaussian_delta(epsilon=math.inf, mu=1.0) == 0.0
    assert advanced_composition(Guarantee(epsilon=0.0), times=3, slack=0.1).epsilon == 0.0


row_costs = st.builds(
    lambda epsilon, digits: Guarantee(epsilon=epsilon, delta=10.0**-digits),
    st.floats(0.01, 0.5),
    st.integers(9, 12),
)


def hockey_stick(one, two, epsilon):
    """HS_ε: the δ at which ε holds between two distributions, in one direction."""
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(one, two, strict=True))


def worst(one, two, epsilon):
    return max(hockey_stick(one, two, epsilon), hockey_stick(two, one, epsilon))


# Tiny mechanisms, by brute force


def noisy_count(rows, law, room):
    """Distribution of a noisy count of ``rows`` rows over all outcomes."""
    return [float(law.probability(z - rows)) for z in range(-law.radius, law.radius + room + 1)]


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize(("epsilon", "r"), [(1.0, 6), (0.5, 10), (0.3, 4)])
def test_a_noisy_count_of_a_unit_s_rows_costs_no_more_than_is_said(epsilon, r, rows):
    """Truncated geometric noise. δ of one row is exact, at every ε on a grid around its own."""
    law = truncated_geometric(epsilon, r)
    without, with_one, with_all = (noisy_count(n, law, 5) for n in (0, 1, rows))
    for each in np.linspace(0.5 * epsilon, 1.5 * epsilon, 7):
        cost = Guarantee(epsilon=each, delta=worst(without, with_one, each))
        unit = unit_cost(cost, rows=rows)
        assert worst(without, with_all, unit.epsilon) <= unit.delta * (1 + 1e-12)


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_randomized_response_of_a_unit_s_rows_costs_exactly_what_is_said(rows):
    """Each row answers truthfully with probability 3/4: ε = ln 3 a row, δ = 0, and no less."""
    truth = {True: Fraction(3, 4), False: Fraction(1, 4)}
    answers = list(product((0, 1), repeat=rows))

    def law(values):
        return [
            math.prod(float(truth[a == v]) for a, v in zip(answer, values, strict=True))
            for answer in answers
        ]

    zeros, ones = law([0] * rows), law([1] * rows)
    unit = unit_cost(Guarantee(epsilon=math.log(3)), rows=rows)
    assert unit.delta == 0
    assert worst(zeros, ones, unit.epsilon) <= 1e-15
    assert worst(zeros, ones, 0.999 * unit.epsilon) > 1e-6


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-4), (0.5, 1e-3), (0.2, 1e-2)])
def test_some_mechanism_costs_as_much_as_is_said(epsilon, delta, rows):
    """So the formula is sharp. Outcome i comes up when i rows or more are there, with a
    probability that each row more multiplies by e^ε; all else is "nothing"."""

    def law(present):
        shown = [
            delta * math.exp((present - i) * epsilon) if present >= i else 0.0
            for i in range(1, rows + 1)
        ]
        return [*shown, 1 - sum(shown)]

    for present in range(rows):
        assert worst(law(present + 1), law(present), epsilon) == pytest.approx(delta, rel=1e-9)
    unit = unit_cost(Guarantee(epsilon=epsilon, delta=delta), rows=rows)
    assert unit.epsilon == pytest.approx(rows * epsilon)
    assert worst(law(rows), law(0), rows * epsilon) == pytest.approx(unit.delta, rel=1e-9)
    growth = math.expm1(rows * epsilon) / math.expm1(epsilon)
    assert unit.delta == pytest.approx(delta * growth, rel=1e-9)


# There and back


@property_test
@given(row_costs, st.integers(1, 30))
def test_what_a_row_may_cost_keeps_a_unit_within_the_limit_and_uses_it(cost, rows):
    limit = Guarantee(epsilon=8 * cost.epsilon, delta=1e3 * cost.delta)
    back = unit_cost(row_limit(limit, rows=rows), rows=rows)
    assert back.within(limit)
    assert back.epsilon >= limit.epsilon * (1 - 1e-9)
    assert back.delta >= limit.delta * (1 - 1e-9)


@property_test
@given(row_costs, st.integers(1, 5), st.integers(1, 5))
def test_units_of_units_are_units(cost, one, two):
    """Rows in groups, groups in a unit: as if at once."""
    at_once = unit_cost(cost, rows=one * two)
    in_steps = unit_cost(unit_cost(cost, rows=one), rows=two)
    assert in_steps.epsilon == pytest.approx(at_once.epsilon, rel=1e-9)
    assert in_steps.delta == pytest.approx(at_once.delta, rel=1e-9)


def test_a_delta_above_one_is_one():
    """A vacuous guarantee, but a valid one: the paper's noise can cost a unit that much."""
    assert unit_cost(Guarantee(epsilon=30.0, delta=1e-6), rows=2).delta == 1.0
    assert unit_cost(Guarantee(epsilon=30.0, delta=1e-6), rows=100).delta == 1.0


@pytest.mark.parametrize(("epsilon", "rows"), [(100.0, 2), (1_000.0, 10), (20.0, 1_000)])
def test_a_limit_that_leaves_a_row_no_delta_is_refused_with_advice(epsilon, rows):
    with pytest.raises(BudgetError, match="Ask for a smaller ε or a larger δ"):
        row_limit(Guarantee(epsilon=epsilon, delta=1e-9), rows=rows)


def test_no_noise_costs_infinity_for_units_too():
    nothing = Guarantee(epsilon=math.inf, delta=0.0)
    assert unit_cost(nothing, rows=7) == nothing
    assert row_limit(nothing, rows=7) == nothing
