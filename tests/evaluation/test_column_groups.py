"""Groups of columns: ranges of equally many rows, frequent values, and what is skipped."""

import numpy as np
import pytest
from scipy import stats

from deniable.evaluation.column_groups import group_columns
from deniable.evaluation.grouped_rows import GroupedRows
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


# Rows in groups: counts, rank correlations and group means, next to other libraries

ATTRIBUTES = (
    Attribute(name="a", kind="integer", values=range(40), missing=("?",)),
    Attribute(name="b", kind="integer", values=range(40)),
    Attribute(name="c", kind="categorical", values=("x", "y", "z")),
)


@pytest.fixture
def rows(rng):
    a = rng.binomial(39, 0.4, 600)
    b = np.clip(a + rng.integers(-5, 6, 600), 0, 39)
    c = rng.integers(0, 3, 600)
    a[::7] = 40
    codes = np.asfortranarray(np.stack([a, b, c], axis=1).astype(np.uint16))
    return GroupedRows.of(group_columns(ATTRIBUTES, codes), codes)


def numbers(rows, at):
    return rows.columns[at].numbers[rows.levels[at]]


def test_counts_are_those_of_the_cells(rows):
    counts = rows.count((0, 2))
    assert counts.shape == (rows.columns[0].groups, 3)
    for i, j in ((0, 0), (4, 1), (counts.shape[0] - 1, 2)):
        assert counts[i, j] == np.sum((rows.groups[0] == i) & (rows.groups[2] == j))
    assert counts.sum() == rows.rows == 600


def test_a_rank_correlation_leaves_out_rows_with_a_missing_cell(rows):
    a, b = numbers(rows, 0), numbers(rows, 1)
    there = ~np.isnan(a)
    expected = stats.spearmanr(a[there], b[there]).statistic
    assert rows.rank_correlations == pytest.approx([expected])
    assert expected > 0.5


def test_too_few_rows_have_no_rank_correlation_and_equal_ones_have_none(rows):
    few = GroupedRows.of(rows.columns, rows.codes[:40])
    assert np.isnan(few.rank_correlations).all()
    equal = np.asfortranarray(np.repeat(rows.codes[1:2], 100, axis=0))
    assert GroupedRows.of(rows.columns, equal).rank_correlations.tolist() == [0.0]


def test_moments_and_group_means_are_those_of_the_numbers(rows):
    a, b = numbers(rows, 0), numbers(rows, 1)
    means, deviations = rows.number_moments
    assert means == pytest.approx([np.nanmean(a), b.mean()])
    assert deviations == pytest.approx([np.nanstd(a), b.std()])
    found, counts = rows.group_means([2])[2]
    for at in range(3):
        inside = rows.groups[2] == at
        assert found[at] == pytest.approx([np.nanmean(a[inside]), b[inside].mean()])
        assert counts[at].tolist() == [np.sum(inside & ~np.isnan(a)), inside.sum()]


def test_a_group_without_rows_has_no_mean(rows):
    inside = rows.codes[rows.groups[2] != 1]
    found, counts = GroupedRows.of(rows.columns, inside).group_means([2])[2]
    assert np.isnan(found[1]).all()
    assert counts[1].tolist() == [0, 0]


def test_at_most_forty_numbers_are_compared(rng):
    attributes = [Attribute(name=f"n{i}", kind="integer", values=range(20)) for i in range(50)]
    codes = np.asfortranarray(rng.integers(0, 20, (100, 50)).astype(np.uint16))
    rows = GroupedRows.of(group_columns(attributes, codes), codes)
    assert list(rows.levels) == list(range(40))
