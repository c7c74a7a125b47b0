"""Splits: each record in at most one part, with the stated probability. Bounds per unit."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import assert_distribution, assert_rate
from deniable.arrays import CODE
from deniable.data.partition import limit_rows_per_unit, split_records
from deniable.errors import ConfigError
from deniable.privacy.plan import PAPER_SPLIT, SPLIT, SPLIT_SEEDLESS
from deniable.randomness import Keyed
from worlds import property_test

KEY = 31


def rng(key=KEY):
    return Keyed(key)


def numbered(n):
    """Return n records that are all different."""
    numbers = np.arange(n)
    return np.asfortranarray(np.stack([numbers // 1_000, numbers % 1_000], axis=1).astype(CODE))


def names_of(codes):
    return (codes[:, 0].astype(int) * 1_000 + codes[:, 1]).tolist()


@pytest.mark.parametrize("fractions", [SPLIT, SPLIT_SEEDLESS, PAPER_SPLIT])
def test_a_record_is_in_at_most_one_part_and_is_not_changed(fractions):
    parts = split_records(numbered(10_000), fractions, rng())
    assert list(parts) == list(fractions)
    dealt = [name for part in parts.values() for name in names_of(part)]
    assert len(dealt) == len(set(dealt))
    assert set(dealt) <= set(range(10_000))
    assert all(part.dtype == CODE and part.flags.f_contiguous for part in parts.values())


def test_parts_that_sum_to_one_take_every_record():
    parts = split_records(numbered(5_000), SPLIT, rng())
    assert sum(map(len, parts.values())) == 5_000


@pytest.mark.parametrize("fractions", [SPLIT, SPLIT_SEEDLESS, PAPER_SPLIT])
def test_a_record_goes_to_each_part_with_the_stated_probability(fractions):
    """Fixed key; false-alarm rate 1e-6."""
    n = 200_000
    parts = split_records(np.zeros((n, 1), dtype=CODE, order="F"), fractions, rng())
    counts = Counter({part: len(codes) for part, codes in parts.items()})
    counts["none"] = n - counts.total()
    assert_distribution(counts, {**fractions, "none": max(0.0, 1 - sum(fractions.values()))})


def test_that_assertion_notices_shares_one_percent_off():
    n = 200_000
    wrong = {"structure": 0.21, "parameters": 0.39, "seeds": 0.4}
    parts = split_records(np.zeros((n, 1), dtype=CODE, order="F"), wrong, rng())
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_rate(len(parts["structure"]), n, SPLIT["structure"])


def test_where_a_record_goes_does_not_depend_on_the_others():
    """Adjacent records share a part as often as under independence."""
    n = 100_000
    parts = split_records(numbered(2 * n), SPLIT, rng())
    part_of = {name: part for part, codes in parts.items() for name in names_of(codes)}
    together = sum(part_of[2 * i] == part_of[2 * i + 1] for i in range(n))
    assert_rate(together, n, sum(share**2 for share in SPLIT.values()))


def test_where_a_record_goes_depends_on_its_draw_not_on_what_it_holds():
    """Reordered rows get the same draws: the position decides, not the values."""
    codes = numbered(1_000)
    turned = np.asfortranarray(codes[::-1])
    places = {part: set(names_of(of)) for part, of in split_records(codes, SPLIT, rng()).items()}
    for part, of in split_records(turned, SPLIT, rng()).items():
        assert {999 - name for name in names_of(of)} == places[part]


def test_the_distribution_of_a_part_does_not_depend_on_the_order_of_rows():
    """A marked record is a seed equally often in any position: 2,000 keys, 1e-6 each."""
    trials = 2_000
    for place in (0, 9):
        marked = np.zeros((10, 1), dtype=CODE, order="F")
        marked[place] = 1
        hits = sum(
            split_records(marked, SPLIT, rng(key))["seeds"].sum().item() for key in range(trials)
        )
        assert_rate(hits, trials, SPLIT["seeds"])


def test_no_records_make_empty_parts():
    parts = split_records(numbered(0), SPLIT, rng())
    assert {part: codes.shape for part, codes in parts.items()} == dict.fromkeys(SPLIT, (0, 2))


@pytest.mark.parametrize(
    "fractions", [{"a": 0.0, "b": 0.5}, {"a": -0.1, "b": 0.5}, {"a": 0.6, "b": 0.5}]
)
def test_invalid_probabilities_are_refused(fractions):
    with pytest.raises(ConfigError, match="above 0 and sum to at most 1"):
        split_records(numbered(10), fractions, rng())


units_of_rows = st.lists(st.integers(0, 6), max_size=40).map(
    lambda listed: np.array(listed, dtype=np.int64)
)


def one_column(rows):
    """Distinct records: each holds its row number."""
    return np.asfortranarray(np.arange(rows, dtype=CODE)[:, None])


def kept_rows(units, most, key=1):
    bounded = limit_rows_per_unit(one_column(len(units)), units, Keyed(key), max_rows=most)
    assert bounded.flags.f_contiguous
    return bounded[:, 0].tolist()


@property_test
@given(units_of_rows, st.integers(1, 8), st.integers(0, 2**32))
def test_at_most_max_rows_of_each_unit_are_kept(units, most, key):
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
    return limit_rows_per_unit(numbers, units, Keyed(9), max_rows=2)[:, 0].tolist()


def test_every_choice_of_scattered_rows_is_equally_likely():
    """The rows of one unit, scattered among others, under many keys."""
    units = np.array([0, 1, 0, 2, 1, 0, 0, 2, 1])
    mine = np.flatnonzero(units == 0)
    runs = 6_000
    counts = Counter(
        tuple(row for row in kept_rows(units, 2, key) if row in mine) for key in range(runs)
    )
    assert_distribution(counts, dict.fromkeys(combinations(mine.tolist(), 2), 1 / 6))


@property_test
@given(units_of_rows, st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32))
def test_the_rows_kept_of_other_units_do_not_depend_on_one_unit(units, most, rows, key):
    """Append the rows of one more unit: the results differ by at most ``most`` rows."""
    without = kept_rows(units, most, key)
    more = np.append(units, np.full(rows, 7))
    with_them = kept_rows(more, most, key)
    assert [row for row in with_them if row < len(units)] == without
    assert len(with_them) - len(without) == min(rows, most)


@pytest.mark.parametrize("most", [1, 5])
def test_an_empty_table_stays_empty(most):
    assert kept_rows(np.empty(0, dtype=np.int64), most) == []


def test_the_inputs_are_not_changed():
    codes, units = one_column(6), np.array([0, 0, 0, 1, 1, 2])
    limit_rows_per_unit(codes, units, Keyed(1), max_rows=1)
    assert codes[:, 0].tolist() == list(range(6))
    assert units.tolist() == [0, 0, 0, 1, 1, 2]
