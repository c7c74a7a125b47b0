"""Groups of columns: ranges of equally many rows, frequent values, and what is skipped."""

import numpy as np
import pytest

from deniable.evaluation.column_groups import group_columns
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid


def group(attribute, codes):
    """The only column's groups."""
    return group_columns((attribute,), np.array(codes, dtype=np.uint16)[:, np.newaxis])


def test_a_number_is_cut_into_ten_ranges_of_equally_many_rows():
    attribute = Attribute(name="n", kind="integer", values=range(1_000))
    (found,) = group(attribute, range(1_000))
    assert found.groups == 10
    assert np.bincount(found.group_of).tolist() == [100] * 10
    assert (np.diff(found.group_of.astype(int)) >= 0).all()


def test_a_frequent_number_is_a_group_of_its_own():
    attribute = Attribute(name="n", kind="integer", values=range(100))
    (found,) = group(attribute, [40] * 300 + list(range(100)) * 2)
    assert (found.group_of == found.group_of[40]).sum() == 1


def test_missing_cells_are_a_group_and_have_no_number():
    attribute = Attribute(name="n", kind="integer", values=range(50), missing=("?",))
    (found,) = group(attribute, [*range(50), *range(50), 50, 50])
    assert (found.group_of == found.group_of[50]).sum() == 1
    assert np.isnan(found.numbers[found.level_of[50]])
    assert not np.isnan(found.numbers[found.level_of[:50]]).any()


def test_numbers_are_clipped_to_their_quantiles():
    attribute = Attribute(name="n", kind="integer", values=range(1_000))
    (found,) = group(attribute, [*range(100, 301), 999])
    numbers = found.numbers[found.level_of]
    assert numbers[0] == numbers[100] == pytest.approx(102.01)
    assert numbers[999] == numbers[300] == pytest.approx(298.99)
    assert numbers[200] == 200


def test_a_bin_is_represented_by_its_centre():
    attribute = Attribute(
        name="n", kind="real", values=range(100), starts=range(0, 100, 10), grid=Grid(kind="real")
    )
    (found,) = group(attribute, list(range(10)) * 10)
    assert found.numbers[found.level_of[3]] == 34.5


def test_twelve_frequent_values_have_groups_and_the_others_share_one():
    attribute = Attribute(name="c", kind="categorical", values=tuple(map(str, range(20))))
    codes = np.repeat(np.arange(20), np.arange(20) + 1)
    (found,) = group(attribute, codes)
    assert found.groups == 13
    assert found.level_of is None
    assert found.group_of[19] == 0
    assert (found.group_of == 12).sum() == 8
    assert set(np.flatnonzero(found.group_of == 12)) == set(range(8))


@pytest.mark.parametrize(
    ("attribute", "codes", "is_used", "is_number"),
    [
        (Attribute(name="n", kind="integer", values=range(9)), [*range(9)] * 9, True, True),
        (Attribute(name="n", kind="integer", values=range(8)), [*range(8)] * 9, True, False),
        (Attribute(name="n", kind="integer", values=range(9)), [3] * 9, False, False),
        (
            Attribute(name="n", kind="integer", values=range(9), missing=("?",)),
            [*range(9), *[9] * 10],
            True,
            False,
        ),
        (
            Attribute(name="n", kind="integer", values=range(9), missing=("?",)),
            [9] * 10,
            False,
            False,
        ),
        (
            Attribute(name="c", kind="categorical", values=tuple(map(str, range(50)))),
            [*range(50), *range(40)],
            False,
            False,
        ),
    ],
    ids=["number", "few values", "constant", "mostly missing", "all missing", "identifier"],
)
def test_what_is_a_number_and_what_is_skipped(attribute, codes, is_used, is_number):
    found = group(attribute, codes)
    assert bool(found) == is_used
    assert [each.level_of is not None for each in found] == [is_number] * is_used


def test_values_that_the_real_rows_lack_have_a_group_too():
    attribute = Attribute(name="c", kind="categorical", values=("a", "b", "c"))
    (found,) = group(attribute, [0, 1, 1, 0, 1])
    assert found.group_of.tolist() == [1, 0, 2]
