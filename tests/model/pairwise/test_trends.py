"""Trends: mean ranks between groups are kept where they stand out, and noise alone does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deniable.model.pairwise.shrinkage import double_centre
from deniable.model.pairwise.trends import (
    TrendDirections,
    VisibleTrends,
    group_direction,
    rank_scores,
)
from deniable.schema.attribute import Attribute
from worlds import property_test

SHAPE = (5, 7)
LETTERS = Attribute(name="letter", kind="categorical", values=("a", "b", "c"))
NUMBERS = Attribute(name="number", kind="integer", values=range(3), missing=("",))


def direction(size):
    return group_direction(np.linspace(-0.5, 0.5, size), np.ones(size), np.arange(size))


BOTH = TrendDirections(rows=direction(5), columns=direction(7))


def random_table(key, sigma=1.0):
    return double_centre(np.random.default_rng(key).normal(0, sigma, SHAPE))


def test_scores_are_mean_ranks_and_missing_cells_are_the_median():
    np.testing.assert_allclose(
        rank_scores(NUMBERS, np.array([0.4, 0.2, 0.2, 0.2])), [-0.25, 0.125, 0.375, 0.0]
    )
    assert rank_scores(LETTERS, np.array([0.2, 0.3, 0.5])) is None


def test_a_direction_is_a_centred_unit_vector_of_group_means():
    found = group_direction(
        np.array([-0.5, 0.0, 0.5]), np.array([1.0, 3.0, 4.0]), np.array([0, 0, 1])
    )
    np.testing.assert_allclose(found, np.array([-1, 1]) / np.sqrt(2))
    assert group_direction(np.zeros(3), np.ones(3), np.arange(3)) is None
    assert group_direction(None, np.ones(3), np.arange(3)) is None


@property_test
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_a_projection_has_the_trends_of_the_table_and_the_rest_has_none(key, by_row, by_column):
    found = TrendDirections(
        rows=BOTH.rows if by_row else None, columns=BOTH.columns if by_column else None
    )
    assert (found.rows is not None, found.columns is not None) == (by_row, by_column)
    table = random_table(key)
    part = found.project(table)
    np.testing.assert_allclose(found.project(part), part, atol=1e-12)
    if found.rows is not None:
        np.testing.assert_allclose(found.rows @ part, found.rows @ table, atol=1e-12)
    if found.columns is not None:
        np.testing.assert_allclose(part @ found.columns, table @ found.columns, atol=1e-12)


@pytest.mark.parametrize(
    ("found", "dimensions"),
    [
        (TrendDirections(), 0),
        (TrendDirections(rows=BOTH.rows), 6),
        (TrendDirections(columns=BOTH.columns), 4),
        (BOTH, 9),
    ],
)
def test_dimensions_are_those_of_the_projection(found, dimensions):
    """The rank of the projection, over a basis of doubly centred tables."""
    basis = [double_centre(each.reshape(SHAPE)) for each in np.eye(35)]
    projected = np.stack([found.project(table).ravel() for table in basis])
    assert found.count_dimensions(SHAPE) == dimensions == np.linalg.matrix_rank(projected)


def test_noise_alone_rarely_stands_out_and_a_trend_does():
    """χ² of d dimensions exceeds d + 2 √(2d) with a probability below 0.06 for all d. 400 tables;
    one-sided false-alarm rate 1e-6, fixed keys."""
    found = [BOTH.visible(random_table(key, 10.0), 10.0) for key in range(400)]
    for number in (
        sum(each.rows is not None for each in found),
        sum(each.columns is not None for each in found),
    ):
        assert stats.binom.sf(number - 1, 400, 0.06) > 1e-6, f"{number} of 400 stood out"
    trend = np.outer(double_centre(random_table(3))[:, 0], BOTH.columns)
    trend *= 100.0 / np.linalg.norm(trend)
    seen = BOTH.visible(random_table(7, 10.0) + trend, 10.0)
    assert seen.columns is not None


def trends_of(found):
    """Of a category in 3 bins and a number in 4, and of that number and another."""
    numbers = [Attribute(name=f"{n}", kind="integer", values=range(n)) for n in (4, 2)]
    shares = [np.full(size, 1 / size) for size in (3, 4, 2)]
    return VisibleTrends.of([LETTERS, *numbers], shares, {(0, 1): found, (1, 2): found})


def test_effects_follow_the_order_of_the_attribute_that_has_one():
    trends = trends_of(TrendDirections(columns=direction(2)))
    as_child = trends.of_effects(0, 1, np.arange(3))
    assert as_child.rows is None
    np.testing.assert_allclose(as_child.columns, direction(4))
    as_parent = trends.of_effects(1, 0, np.array([0, 0, 1, 1]))
    assert as_parent.columns is None
    np.testing.assert_allclose(as_parent.rows, np.array([-1, 1]) / np.sqrt(2))


def test_effects_have_no_trend_if_none_stands_out_or_both_attributes_are_ordered():
    visible = trends_of(TrendDirections(rows=direction(2)))
    assert not visible.of_effects(0, 1, np.arange(3)).is_empty
    assert visible.of_effects(1, 2, np.arange(4)).is_empty
    assert visible.of_effects(0, 2, np.arange(3)).is_empty, "a pair that was not measured"
    assert trends_of(TrendDirections()).of_effects(0, 1, np.arange(3)).is_empty
