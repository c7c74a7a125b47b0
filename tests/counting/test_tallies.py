"""Tallies: the sum over parts, in any number, is what one machine counts."""

import numpy as np
import pytest

from deniable.arrays import CODE, Counts
from deniable.counting import tallies
from deniable.counting.contingency import QueryAxis
from deniable.counting.local import LocalRows
from deniable.counting.tallies import TallyPlan, sum_cells
from worlds import plain_attribute

# Two columns of 200 values: a table of more cells than those that are merged.
SIZES = (3, 200, 200, 2)
ATTRIBUTES = tuple(plain_attribute(f"c{i}", size) for i, size in enumerate(SIZES))
PAIRS = [(0, 1), (1, 2), (3, 0), (2, 3)]
QUERIES = [*((QueryAxis(i),) for i in range(4)), *((QueryAxis(i), QueryAxis(j)) for i, j in PAIRS)]


def some_codes(rows):
    drawn = np.random.default_rng(2).integers(0, SIZES, (rows, 4)).astype(CODE)
    return np.asfortranarray(drawn)


@pytest.mark.parametrize("bytes_per_pass", [1, 2_000, 2**24])
@pytest.mark.parametrize("cuts", [[], [700], [0, 1, 500, 999]])
def test_sums_of_tallies_are_the_counts_of_all_rows(cuts, bytes_per_pass, monkeypatch):
    monkeypatch.setattr(tallies, "_BYTES_PER_PASS", bytes_per_pass)
    codes = some_codes(1000)
    plan = TallyPlan.of(ATTRIBUTES, QUERIES)
    totals: dict[int, tuple[Counts, Counts]] = {}
    assert plan.large == ((QueryAxis(1), QueryAxis(2)),)
    for part in np.split(codes, cuts):
        for number, table in enumerate(plan.count([part[:10], part[10:200], part[200:]])):
            cells, counts = totals.get(number, (np.empty(0, int), np.empty(0, int)))
            joined = np.append(cells, table.cells), np.append(counts, table.counts)
            totals[number] = sum_cells(*joined)
    expected = LocalRows(codes, 1).count(ATTRIBUTES, QUERIES)
    for found, table in zip(plan.resolve(totals), expected, strict=True):
        assert found.shape == table.shape
        assert found.cells.tolist() == table.cells.tolist()
        assert found.counts.tolist() == table.counts.tolist()


def test_no_rows_have_empty_tables():
    plan = TallyPlan.of(ATTRIBUTES, QUERIES)
    assert plan.count([]) == []
    assert [table.records for table in plan.resolve({})] == [0] * len(QUERIES)


def test_equal_cells_are_added_up():
    cells, counts = sum_cells(np.array([5, 2, 5]), np.array([1, 10, 100]))
    assert (cells.tolist(), counts.tolist()) == ([2, 5], [10, 101])
