"""Rows in groups: counts, rank correlations and group means, next to other libraries."""

import numpy as np
import pytest
from scipy import stats

from deniable.evaluation.column_groups import group_columns
from deniable.evaluation.grouped_rows import GroupedRows
from deniable.schema.attribute import Attribute

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
