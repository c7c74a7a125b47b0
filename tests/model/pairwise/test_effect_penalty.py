"""Penalty of effects: the ridge of the definition, less along trends, more beyond the limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model.pairwise.effect_penalty import EffectPenalty
from deniable.model.pairwise.trends import TrendDirections
from worlds import property_test

SIZES, VALUES = (3, 4), 5


def unit(size):
    scores = np.linspace(-1.0, 1.0, size)
    return scores / np.linalg.norm(scores)


def penalty_of(key, trend):
    """Two parents, of which the second may have a trend."""
    rng = np.random.default_rng(key)
    ridges = [rng.uniform(0.5, 20, (size, VALUES)) for size in SIZES]
    directions = {"rows": unit(SIZES[1]), "columns": unit(VALUES)}
    found = TrendDirections(**{name: directions[name] for name in [trend] if name})
    return ridges, EffectPenalty.of(ridges, [TrendDirections(), found]), found


def literal_penalty(ridges, trend, effects):
    """Each effect squared, times half its ridge; √0.03 of it along the trend; 10 beyond ±6."""
    value = 0.0
    first, second = effects[: SIZES[0]], effects[SIZES[0] :].copy()
    along = np.zeros_like(second)
    if trend.columns is not None:
        for group in range(SIZES[1]):
            along[group] = (second[group] @ trend.columns) * trend.columns
    if trend.rows is not None:
        for value_ in range(VALUES):
            along[:, value_] = (trend.rows @ second[:, value_]) * trend.rows
    second += (np.sqrt(0.03) - 1) * along
    for ridge, own in zip(ridges, (first, second), strict=True):
        value += sum(r * e**2 / 2 for r, e in zip(ridge.ravel(), own.ravel(), strict=True))
    return value + sum(10 * max(abs(e) - 6, 0) ** 2 / 2 for e in effects.ravel())


@property_test
@given(st.integers(0, 2**32), st.sampled_from(["", "rows", "columns"]), st.floats(0.1, 8))
def test_penalty_and_gradient_are_those_of_the_definition(key, trend, size):
    ridges, penalty, found = penalty_of(key, trend)
    rng = np.random.default_rng(key)
    effects = size * rng.normal(size=(sum(SIZES), VALUES))
    value, gradient = penalty.loss(effects)
    assert value == pytest.approx(literal_penalty(ridges, found, effects), rel=1e-9)
    step = rng.normal(size=effects.shape)
    ahead, behind = (literal_penalty(ridges, found, effects + s * step) for s in (1e-5, -1e-5))
    # The second derivative of the part beyond the limit jumps there: not exact to more digits.
    assert float((gradient * step).sum()) == pytest.approx((ahead - behind) / 2e-5, rel=1e-4)


def test_a_trend_costs_three_in_a_hundred_of_the_ridge():
    effects = np.zeros((sum(SIZES), VALUES))
    effects[SIZES[0] :] = np.outer(np.ones(SIZES[1]), unit(VALUES))
    ridges = [np.full((size, VALUES), 2.0) for size in SIZES]
    plain = EffectPenalty.of(ridges, [TrendDirections()] * 2).loss(effects)[0]
    trends = [TrendDirections(), TrendDirections(columns=unit(VALUES))]
    assert plain == pytest.approx(4.0)
    assert EffectPenalty.of(ridges, trends).loss(effects)[0] == pytest.approx(0.03 * plain)
