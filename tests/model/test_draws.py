"""Alias tables: the probabilities they imply are those they were made from."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chance import assert_distribution
from deniable.model.draws import AliasTables, alias_tables
from deniable.randomness import Keyed
from worlds import property_test


class Fixed:
    """A stream that gives the numbers it was given."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = np.array(numbers)

    def random(self, size: int) -> np.ndarray:
        return np.resize(self._numbers, size)


def implied(tables: AliasTables) -> np.ndarray:
    """What a draw gives: v uniform, then v with probability stay[v], else alias[v]."""
    stay = tables.stay.reshape(-1, tables.values).clip(0, 1)
    alias = tables.alias.reshape(-1, tables.values)
    result = stay / tables.values
    for row in range(len(stay)):
        for v in range(tables.values):
            result[row, alias[row, v]] += (1 - stay[row, v]) / tables.values
    return result


@st.composite
def distributions(draw, most=12):
    """Rows of probabilities, some zero, some tiny, some equal."""
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, most)))
    weight = st.sampled_from([0.0, 0.0, 1.0, 1.0, 3.0, 1e-9, 1e9]) | st.floats(1e-6, 1)
    weights = draw(hnp.arrays(np.float64, shape, elements=weight))
    weights[weights.sum(axis=1) == 0] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


@property_test
@given(distributions())
def test_implied_probabilities_are_the_given_ones(probabilities):
    np.testing.assert_allclose(implied(alias_tables(probabilities)), probabilities, atol=1e-12)


def test_implied_probabilities_of_a_long_row():
    weights = np.random.default_rng(5).pareto(0.5, (2, 3000))
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(implied(alias_tables(probabilities)), probabilities, atol=1e-12)


@property_test
@given(distributions(), st.floats(0, 1, exclude_max=True))
def test_a_value_of_probability_zero_is_never_drawn(probabilities, spot):
    """For every uniform number: drawn values are possible, the ends of [0, 1) included."""
    tables = alias_tables(probabilities)
    cells = np.arange(tables.values) / tables.values
    spots = np.concatenate([[spot, 0.0, 1 - 2.0**-53], cells, np.nextafter(cells[1:], 0)])
    for row in range(len(probabilities)):
        values = tables.draw(np.full(len(spots), row), Fixed(*spots))
        assert (values < tables.values).all()
        assert (probabilities[row, values] > 0).all()


@pytest.mark.parametrize("lack", [0.0, 1e-16, -1e-16, 1e-10, -1e-10])
@pytest.mark.parametrize("zeros", [0, 1, 5])
def test_rounding_in_the_sums_makes_nothing_possible(lack, zeros):
    """A row may miss 1 by what a conditional table allows, 1e-9."""
    row = np.array([0.0] * zeros + [(1 - lack) / 7] * 7)
    tables = alias_tables(row[None, :])
    drawn = implied(tables)[0]
    np.testing.assert_allclose(drawn, row, atol=2e-9)
    assert (drawn[:zeros] == 0).all()


def draw_many(row: list[Fraction], trials: int) -> Counter:
    tables = alias_tables(np.array([[float(p) for p in reversed(row)], [float(p) for p in row]]))
    values = tables.draw(np.ones(trials, dtype=np.intp), Keyed(11).at("candidates"))
    return Counter(values.tolist())


ROW = [Fraction(1, 2), Fraction(0), Fraction(1, 3), Fraction(1, 12), Fraction(1, 12)]


def test_draws_have_the_given_distribution():
    """False-alarm rate 1e-6, fixed key."""
    assert_distribution(draw_many(ROW, 200_000), dict(enumerate(ROW)))


def test_that_assertion_notices_the_other_row():
    """A draw that took the first row for the second, here its mirror image, is noticed."""
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(draw_many(ROW, 200_000), dict(enumerate(reversed(ROW))))
