"""Rows: what an engine answers is what the definition says, by brute force over single rows."""

from collections import Counter

import numpy as np
import pytest

from deniable.arrays import CODE
from deniable.counting.contingency import QueryAxis
from deniable.counting.local import LocalRows, local_codes
from deniable.counting.prefix_counts import FrequentPrefixes
from deniable.data.partition import ROWS_PER_STREAM, draw_row_words
from deniable.errors import ConfigError, InvariantError
from deniable.randomness import Keyed
from worlds import plain_attribute

SIZES = (3, 4, 2)
ATTRIBUTES = [plain_attribute(f"c{i}", size) for i, size in enumerate(SIZES)]


def some_rows(number=400, **more):
    drawn = np.random.default_rng(8).integers(0, SIZES, (number, 3)).astype(CODE)
    return LocalRows(np.asfortranarray(drawn), 1, **more)


def test_counts_are_those_of_single_rows():
    rows = some_rows()
    [table] = rows.count(ATTRIBUTES, [(QueryAxis(2), QueryAxis(0))])
    expected = Counter((int(row[2]), int(row[0])) for row in rows.codes)
    found = {tuple(map(int, at)): int(n) for at, n in np.ndenumerate(table.dense()) if n}
    assert found == expected
    assert table.records == rows.number == 400


@pytest.mark.parametrize("floor", [1, 20, 40, 1000])
def test_frequent_prefixes_are_those_that_a_floor_of_rows_share(floor):
    rows, order = some_rows(), (1, 2, 0)
    for length, level in zip(
        (1, 3), rows.frequent_prefixes(order, [1, 3], SIZES, floor=floor), strict=True
    ):
        shared = Counter(tuple(map(int, row[list(order[:length])])) for row in rows.codes)
        expected = sorted((prefix, n) for prefix, n in shared.items() if n >= floor)
        found = zip(map(tuple, level.prefixes.tolist()), level.counts.tolist(), strict=True)
        assert list(found) == expected


def test_a_floor_is_inclusive():
    level = FrequentPrefixes(np.zeros((2, 1), CODE), np.array([4, 5]))
    assert level.at_least(5).counts.tolist() == [5]


def test_no_rows_are_rows():
    empty = some_rows().empty()
    assert empty.number == 0
    [level] = empty.frequent_prefixes((0, 1, 2), [2], SIZES, floor=1)
    assert level.prefixes.shape == (0, 2)


def test_a_bound_needs_units():
    bounded = some_rows(units=np.arange(400) // 4).limit_per_unit(Keyed(1), max_rows=1)
    assert bounded.number == 100
    with pytest.raises(InvariantError, match="no units"):
        some_rows().limit_per_unit(Keyed(1), max_rows=1)


def test_a_row_draws_the_same_word_whoever_asks_for_it():
    """A task that has some rows of a table draws what one machine draws for all."""
    stop = ROWS_PER_STREAM + 1000
    whole = draw_row_words(Keyed(3), "split", 0, stop)
    assert len(whole) == stop
    for start, end in ((0, 0), (5, 5), (7, 20), (ROWS_PER_STREAM - 3, stop), (stop - 1, stop)):
        drawn = draw_row_words(Keyed(3), "split", start, end)
        assert drawn.tolist() == whole[start:end].tolist()


def test_rows_elsewhere_have_no_codes_here():
    rows = some_rows()
    assert local_codes(rows, purpose="a test") is rows.codes
    with pytest.raises(
        ConfigError, match=r"a model of your own is not available on Spark: .* --engine local"
    ):
        local_codes(object(), purpose="a model of your own")
