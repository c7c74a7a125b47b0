"""Group privacy: what one row costs against what several rows of one unit truly cost."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable
from deniable.data.schema import Draft, Schema
from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, sequential
from deniable.privacy.laws import truncated_geometric
from deniable.privacy.sentences import about_schema
from deniable.privacy.units import of_unit, per_row
from worlds import plain_attribute, property_test

costs = st.builds(
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
    """The law of a count of so many rows with this noise, over all outcomes."""
    return [float(law.probability(z - rows)) for z in range(-law.r, law.r + room + 1)]


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize(("epsilon", "r"), [(1.0, 6), (0.5, 10), (0.3, 4)])
def test_a_noisy_count_of_a_unit_s_rows_costs_no_more_than_is_said(epsilon, r, rows):
    """Truncated geometric noise. δ of one row is exact, at every ε on a grid around its own."""
    law = truncated_geometric(epsilon, r)
    without, with_one, with_all = (noisy_count(n, law, 5) for n in (0, 1, rows))
    for each in np.linspace(0.5 * epsilon, 1.5 * epsilon, 7):
        cost = Guarantee(epsilon=each, delta=worst(without, with_one, each))
        unit = of_unit(cost, rows=rows)
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
    unit = of_unit(Guarantee(epsilon=math.log(3)), rows=rows)
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
    unit = of_unit(Guarantee(epsilon=epsilon, delta=delta), rows=rows)
    assert unit.epsilon == pytest.approx(rows * epsilon)
    assert worst(law(rows), law(0), rows * epsilon) == pytest.approx(unit.delta, rel=1e-9)
    growth = math.expm1(rows * epsilon) / math.expm1(epsilon)
    assert unit.delta == pytest.approx(delta * growth, rel=1e-9)


# There and back


@property_test
@given(costs, st.integers(1, 30))
def test_what_a_row_may_cost_keeps_a_unit_within_the_limit_and_uses_it(cost, rows):
    limit = Guarantee(epsilon=8 * cost.epsilon, delta=1e3 * cost.delta)
    back = of_unit(per_row(limit, rows=rows), rows=rows)
    assert back.within(limit)
    assert back.epsilon >= limit.epsilon * (1 - 1e-9)
    assert back.delta >= limit.delta * (1 - 1e-9)


@property_test
@given(costs, st.integers(1, 5), st.integers(1, 5))
def test_units_of_units_are_units(cost, one, two):
    """Rows in groups, groups in a unit: as if at once."""
    at_once = of_unit(cost, rows=one * two)
    in_steps = of_unit(of_unit(cost, rows=one), rows=two)
    assert in_steps.epsilon == pytest.approx(at_once.epsilon, rel=1e-9)
    assert in_steps.delta == pytest.approx(at_once.delta, rel=1e-9)


def test_a_delta_above_one_is_one():
    """It says nothing, but it is true: what the paper's noise costs a unit can be so much."""
    assert of_unit(Guarantee(epsilon=30.0, delta=1e-6), rows=2).delta == 1.0
    assert of_unit(Guarantee(epsilon=30.0, delta=1e-6), rows=100).delta == 1.0


@pytest.mark.parametrize(("epsilon", "rows"), [(100.0, 2), (1_000.0, 10), (20.0, 1_000)])
def test_a_limit_that_leaves_a_row_no_delta_is_refused_with_advice(epsilon, rows):
    with pytest.raises(BudgetError, match="Ask for a smaller ε or a larger δ"):
        per_row(Guarantee(epsilon=epsilon, delta=1e-9), rows=rows)


def test_no_noise_costs_infinity_for_units_too():
    nothing = Guarantee(epsilon=math.inf, delta=0.0)
    assert of_unit(nothing, rows=7) == nothing
    assert per_row(nothing, rows=7) == nothing


# In a plan


def schema(*, rows=1, draft=None):
    attributes = tuple(plain_attribute(name, 3) for name in ("who", "a", "b"))
    unit = {"unit": "who", "max_rows_per_unit": rows} if rows > 1 else {}
    return Schema(attributes, rows_max=1_000, draft=draft, **unit)


@pytest.mark.parametrize("mode", ["one-shot", "seedless", "tested"])
@pytest.mark.parametrize("estimator", ["pairs", "norm-sub"])
def test_a_run_for_units_is_within_what_was_asked_for_a_unit(mode, estimator):
    options = {"mode": mode, "estimator": estimator, "epsilon": 2.0, "delta": 1e-6}
    alone = deniable.plan(schema(), **options)
    three = deniable.plan(schema(rows=3), **options)
    assert three.cost.within(Guarantee(epsilon=2.0, delta=1e-6))
    assert three.cost.epsilon > 0.9 * 2.0
    assert three.noise.cost.epsilon <= 2.0 / 3
    assert three.cost.epsilon == pytest.approx(3 * three.noise.cost.epsilon)
    for one, two in zip(alone.noise.spends, three.noise.spends, strict=True):
        assert one.what == two.what
        assert two.law.variance > 2 * one.law.variance


def test_what_a_draft_has_cost_is_part_of_the_total():
    draft = Draft(epsilon=0.4, delta=1e-7)
    run = deniable.plan(schema(draft=draft), epsilon=1.0, delta=1e-6)
    assert run.cost.within(Guarantee(epsilon=1.0, delta=1e-6))
    assert run.noise.cost.within(Guarantee(epsilon=0.6, delta=9e-7))
    bought = Guarantee(epsilon=0.4, delta=1e-7)
    assert run.cost == sequential([run.noise.cost, bought])
    assert run.cost.epsilon > 0.95


def test_a_draft_and_units_together_stay_within_the_limit():
    """What a draft cost is of a unit already: it is not multiplied by its rows."""
    draft = Draft(epsilon=0.5, delta=1e-7, unit="who")
    run = deniable.plan(schema(rows=4, draft=draft), epsilon=2.0, delta=1e-6)
    assert run.cost.within(Guarantee(epsilon=2.0, delta=1e-6))
    assert run.noise.cost.epsilon <= 1.5 / 4


@pytest.mark.parametrize(
    "draft",
    [
        Draft(epsilon=1.0, delta=1e-9),
        Draft(epsilon=7.0, delta=1e-9),
        Draft(epsilon=0.1, delta=1e-6),
        Draft(epsilon=0.1, delta=1e-3),
    ],
)
def test_a_draft_that_leaves_nothing_is_refused(draft):
    with pytest.raises(BudgetError, match=r"draft of the schema has cost.*Ask for a larger ε"):
        deniable.plan(schema(draft=draft), epsilon=1.0, delta=1e-6)


def test_without_noise_a_draft_is_no_matter():
    run = deniable.plan(schema(draft=Draft(epsilon=3.0, delta=0.1)), epsilon=math.inf)
    assert run.cost.epsilon == math.inf


# The sentence


@pytest.mark.parametrize(("rows", "k", "persons"), [(10, 50, 5), (3, 50, 17), (200, 50, 1)])
def test_the_sentence_says_of_how_few_persons_k_rows_may_be(rows, k, persons):
    said = about_schema(unit="who", rows=rows, k=k, draft=None, drafted=())
    assert f'The {k} rows may be of as few as {persons} different "who".' in said
    assert "as few as" not in about_schema(unit="who", rows=1, k=k, draft=None, drafted=())
    assert "as few as" not in about_schema(unit="who", rows=rows, k=None, draft=None, drafted=())
