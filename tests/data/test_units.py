"""Several rows of one unit: at most so many are kept, by chance, whatever the others have."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import assert_distribution
from deniable.arrays import CODE
from deniable.data.units import bound_rows
from deniable.randomness import Keyed
from worlds import property_test

units_of_rows = st.lists(st.integers(0, 6), max_size=40).map(
    lambda listed: np.array(listed, dtype=np.int64)
)


def numbered(rows):
    """Records that can be told from each other: their numbers."""
    return np.asfortranarray(np.arange(rows, dtype=CODE)[:, None])


def kept_rows(units, most, key=1):
    bounded = bound_rows(numbered(len(units)), units, Keyed(key).at("units"), most=most)
    assert bounded.flags.f_contiguous
    return bounded[:, 0].tolist()


@property_test
@given(units_of_rows, st.integers(1, 8), st.integers(0, 2**32))
def test_of_every_unit_so_many_rows_are_kept_and_no_fewer_than_it_has(units, most, key):
    kept = kept_rows(units, most, key)
    assert kept == sorted(set(kept)), "rows stay in order, each once"
    left = Counter(units[kept].tolist())
    assert left == {unit: min(most, n) for unit, n in Counter(units.tolist()).items()}


def test_every_choice_of_rows_is_equally_likely():
    """Two of five rows: ten choices. 20,000 tables in one, false-alarm rate 1e-6, fixed key."""
    tables, rows = 20_000, 5
    units = np.repeat(np.arange(tables), rows)
    kept = np.array(kept_two_of_five(units)).reshape(tables, 2) % rows
    counts = Counter(map(tuple, kept.tolist()))
    assert_distribution(counts, dict.fromkeys(combinations(range(rows), 2), 0.1))


def kept_two_of_five(units):
    numbers = np.asfortranarray(np.arange(len(units))[:, None])
    return bound_rows(numbers, units, Keyed(9).at("units"), most=2)[:, 0].tolist()


def test_every_choice_of_rows_is_equally_likely_wherever_they_stand():
    """The rows of one unit, scattered among others: under many keys, each as often as another."""
    units = np.array([0, 1, 0, 2, 1, 0, 0, 2, 1])
    mine = np.flatnonzero(units == 0)
    runs = 6_000
    counts = Counter(
        tuple(row for row in kept_rows(units, 2, key) if row in mine) for key in range(runs)
    )
    assert_distribution(counts, dict.fromkeys(combinations(mine.tolist(), 2), 1 / 6))


@property_test
@given(units_of_rows, st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32))
def test_what_is_kept_of_others_does_not_depend_on_one_unit(units, most, rows, key):
    """The rows of one unit more, at the end: the same numbers decide about all others, so that the
    two tables that come out differ by at most ``most`` rows."""
    without = kept_rows(units, most, key)
    more = np.append(units, np.full(rows, 7))
    with_them = kept_rows(more, most, key)
    assert [row for row in with_them if row < len(units)] == without
    assert len(with_them) - len(without) == min(rows, most)


@pytest.mark.parametrize("most", [1, 5])
def test_a_table_without_rows_stays_without(most):
    assert kept_rows(np.empty(0, dtype=np.int64), most) == []


def test_the_table_itself_is_left_as_it_was():
    codes, units = numbered(6), np.array([0, 0, 0, 1, 1, 2])
    bound_rows(codes, units, Keyed(1).at("units"), most=1)
    assert codes[:, 0].tolist() == list(range(6))
    assert units.tolist() == [0, 0, 0, 1, 1, 2]
