"""Alias tables: the probabilities they imply are those they were made from."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chance import assert_distribution, implied
from deniable.model.alias_sampling import alias_tables, stable_sort_by, stratified_words
from deniable.randomness import Keyed
from worlds import property_test

pytestmark = pytest.mark.slow


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
        rows = np.full(len(spots), row)
        words = (spots * 2.0**32).astype(np.uint32)
        coarsely = tables.draw(rows * tables.values, words)
        for values in (tables.draw_precise(rows, spots), coarsely):
            assert (values < tables.values).all()
            assert (probabilities[row, values] > 0).all()


@pytest.mark.parametrize("lack", [0.0, 1e-16, -1e-16, 1e-10, -1e-10])
@pytest.mark.parametrize("zeros", [0, 1, 5])
def test_rounding_makes_no_impossible_value_possible(lack, zeros):
    """A row may miss 1 by what a conditional table allows, 1e-9."""
    row = np.array([0.0] * zeros + [(1 - lack) / 7] * 7)
    tables = alias_tables(row[None, :])
    drawn = implied(tables)[0]
    np.testing.assert_allclose(drawn, row, atol=2e-9)
    assert (drawn[:zeros] == 0).all()


def draw_many(row: list[Fraction], trials: int, *, precise: bool = False) -> Counter:
    tables = alias_tables(np.array([[float(p) for p in reversed(row)], [float(p) for p in row]]))
    rows, rng = np.ones(trials, dtype=np.intp), Keyed(11).at("candidates")
    if precise:
        return Counter(tables.draw_precise(rows, rng.random(trials)).tolist())
    return Counter(tables.draw(rows * tables.values, rng.half_words(trials)).tolist())


ROW = [Fraction(1, 2), Fraction(0), Fraction(1, 3), Fraction(1, 12), Fraction(1, 12)]


@pytest.mark.parametrize("precise", [True, False])
def test_draws_have_the_given_distribution(precise):
    """False-alarm rate 1e-6, fixed key."""
    assert_distribution(draw_many(ROW, 200_000, precise=precise), dict(enumerate(ROW)))


@property_test
@given(distributions(most=6))
def test_each_value_gets_its_share_of_words(probabilities):
    """Every 2^16th word of 2^32: a value's share is its probability to a few of those steps."""
    tables = alias_tables(probabilities)
    words = (np.arange(2**16, dtype=np.uint64) * 2**16).astype(np.uint32)
    for row in range(len(probabilities)):
        values = tables.draw(np.full(len(words), row * tables.values), words)
        shares = np.bincount(values.astype(np.intp), minlength=tables.values) / 2**16
        np.testing.assert_allclose(shares, probabilities[row], atol=3 * tables.values / 2**16)


def test_that_assertion_notices_the_other_row():
    """A draw that took the first row for the second, here its mirror image, is noticed."""
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(draw_many(ROW, 200_000), dict(enumerate(reversed(ROW))))


# Stratified words

rows_of_records = st.lists(st.integers(0, 4), min_size=1, max_size=200).map(np.array)


def spread(rows, key, order=None):
    order = np.arange(len(rows)) if order is None else order
    return stratified_words(rows, order, Keyed(key).at("records"))


@property_test
@given(rows_of_records, st.integers(0, 2**32))
def test_words_of_equal_rows_have_low_discrepancy(rows, key):
    """Of n numbers, n · p are below p, within 2 + 2 ln n; independent ones deviate by √n."""
    uniform = spread(rows, key) / 2.0**32
    for row in set(rows.tolist()):
        own = uniform[rows == row]
        for below in (0.1, 0.25, 0.5, 0.9):
            assert abs((own < below).sum() - len(own) * below) <= 2 + 2 * np.log(len(own))


@property_test
@given(rows_of_records, st.integers(0, 2**32), st.data())
def test_words_of_neighbours_in_the_order_have_low_discrepancy(rows, key, data):
    """Any run of equal rows that follow each other in the order, within the same bound."""
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    uniform = spread(rows, key, order) / 2.0**32
    for row in set(rows.tolist()):
        own = uniform[[at for at in order.tolist() if rows[at] == row]]
        run = own[len(own) // 3 : len(own) // 3 + max(1, len(own) // 2)]
        for below in (0.1, 0.5, 0.9):
            assert abs((run < below).sum() - len(run) * below) <= 2 + 2 * np.log(len(run))


def test_each_word_alone_is_uniform():
    """Ten equal parts of [0, 1), 20,000 keys, the first and the last record; 1e-6, fixed keys."""
    rows = np.array([1, 0, 1, 1, 2, 0, 1])
    tenths = [(10 / 2.0**32 * spread(rows, key)[[0, -1]]).astype(int) for key in range(20_000)]
    for numbers in zip(*tenths, strict=True):
        assert_distribution(Counter(map(int, numbers)), dict.fromkeys(range(10), 0.1))


@property_test
@given(
    st.lists(st.integers(0, 3) | st.integers(2**16 - 1, 2**16 + 1) | st.integers(0, 2**32 - 1)),
    st.data(),
)
def test_the_sort_is_stable(keys, data):
    order = data.draw(st.permutations(range(len(keys))))
    found = stable_sort_by(np.array(keys, dtype=np.intp), np.array(order, dtype=np.intp))
    assert found.tolist() == sorted(order, key=lambda at: keys[at])


@pytest.mark.parametrize(("records", "has_strata"), [(95, False), (96, True), (1_000, True)])
def test_rows_of_few_records_share_one_sequence(records, has_strata):
    """Twelve rows, eight records each on average; else all records are one stratum."""
    rows, order = np.arange(records) % 12, np.arange(records)
    words = stratified_words(rows, order, Keyed(1).at("records"))
    alone = stratified_words(np.zeros_like(rows), order, Keyed(1).at("records"))
    assert np.array_equal(words, alone) != has_strata
