"""Plans of runs: privacy units of several rows, and the cost of a private draft."""

import math

import pytest

import deniable
from deniable.errors import BudgetError
from deniable.privacy.composition import Guarantee, sequential_composition
from deniable.schema.schema import DraftCost, Schema
from worlds import plain_attribute


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
    assert three.privacy.cost.epsilon <= 2.0 / 3
    assert three.cost.epsilon == pytest.approx(3 * three.privacy.cost.epsilon)
    for one, two in zip(alone.privacy.spends, three.privacy.spends, strict=True):
        assert one.what == two.what
        assert two.law.variance > 2 * one.law.variance


def test_what_a_draft_has_cost_is_part_of_the_total():
    draft = DraftCost(epsilon=0.4, delta=1e-7)
    run = deniable.plan(schema(draft=draft), epsilon=1.0, delta=1e-6)
    assert run.cost.within(Guarantee(epsilon=1.0, delta=1e-6))
    assert run.privacy.cost.within(Guarantee(epsilon=0.6, delta=9e-7))
    bought = Guarantee(epsilon=0.4, delta=1e-7)
    assert run.cost == sequential_composition([run.privacy.cost, bought])
    assert run.cost.epsilon > 0.95


def test_a_draft_and_units_together_stay_within_the_limit():
    """What a draft cost is of a unit already: it is not multiplied by its rows."""
    draft = DraftCost(epsilon=0.5, delta=1e-7, unit="who")
    run = deniable.plan(schema(rows=4, draft=draft), epsilon=2.0, delta=1e-6)
    assert run.cost.within(Guarantee(epsilon=2.0, delta=1e-6))
    assert run.privacy.cost.epsilon <= 1.5 / 4


@pytest.mark.parametrize(
    "draft",
    [
        DraftCost(epsilon=1.0, delta=1e-9),
        DraftCost(epsilon=7.0, delta=1e-9),
        DraftCost(epsilon=0.1, delta=1e-6),
        DraftCost(epsilon=0.1, delta=1e-3),
    ],
)
def test_a_draft_that_leaves_nothing_is_refused(draft):
    with pytest.raises(BudgetError, match=r"draft of the schema costs.*Use a larger ε"):
        deniable.plan(schema(draft=draft), epsilon=1.0, delta=1e-6)


def test_without_noise_a_draft_is_no_matter():
    run = deniable.plan(schema(draft=DraftCost(epsilon=3.0, delta=0.1)), epsilon=math.inf)
    assert run.cost.epsilon == math.inf
