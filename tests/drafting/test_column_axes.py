"""Column axes: codes of drafted columns, and what each code means."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest

from deniable.drafting.column_axes import column_axis
from deniable.drafting.column_profile import open_table
from deniable.drafting.type_inference import guess_column


def axis_of(cells, name="column", dtype=None):
    [column] = open_table(pl.DataFrame({name: pl.Series(cells, dtype=dtype)})).read()
    return column_axis(column, guess_column(column))


@pytest.mark.parametrize(
    ("cells", "labels", "is_range", "missing"),
    [
        (["oak", "elm", "", "oak"] * 30, ["elm", "oak"], False, ""),
        (["no", "yes"] * 30, ["no", "yes"], False, None),
        ([True, False, None] * 30, [False, True], False, ""),
        (["3", "1", "N", "2", "5", "4"] * 30, [1, 2, 3, 4, 5], True, "N"),
        ([1.5, 0.25] * 30, [Decimal("0.25"), Decimal("1.5")], True, None),
        ([dt.date(2020, 1, 2), dt.date(2020, 1, 1)] * 30, None, True, None),
    ],
)
def test_codes_mean_the_cells(cells, labels, is_range, missing):
    axis = axis_of(cells)
    assert axis is not None
    assert labels is None or list(axis.labels) == labels
    assert (axis.is_range, axis.missing) == (is_range, missing)
    assert axis.counts.sum() == len(cells)
    for cell, code in zip(cells, axis.codes, strict=True):
        if code == axis.values:
            assert cell in ("", "N", None)
        else:
            assert str(axis.labels[code]) == str(cell)


def test_an_axis_is_closed_if_the_schema_has_no_other_value():
    assert axis_of(list(range(1, 9)) * 30).is_closed
    assert not axis_of([1, 2, 3, 7, 8] * 15).is_closed, "4 to 6 lie in the range"
    assert axis_of([1, 2, 3, 7, 8] * 30).is_closed, "a list"
    assert not axis_of(list(range(97)) * 30).is_closed, "the bounds are rounded outward"


def test_a_column_that_is_not_learnt_or_has_an_open_list_has_no_axis():
    assert axis_of([f"K{n:05d}" for n in range(500)], "id") is None
    frequent_and_rare = ["oak", "elm"] * 200 + [f"tree {n}" for n in range(600)]
    assert axis_of(frequent_and_rare) is None
    assert axis_of([1.5, float("inf"), 2.5] * 30) is None, "its rows may be dropped"


def test_numbers_that_are_equal_once_rounded_have_one_code():
    """The draft keeps six decimals of them; two codes of one number would be one bound twice."""
    cells = [x / 3_000_000_000 for x in range(0, 90_000, 30)]
    axis = axis_of(cells)
    assert len(set(axis.labels)) == axis.values < len(cells)
    errors = [abs(float(axis.labels[code]) - x) for code, x in zip(axis.codes, cells, strict=True)]
    assert max(errors) < 1e-6
