"""Types of a column's cells from noisy counts: numbers in intervals, dates by format, texts."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from deniable.drafting.cell_texts import count_texts
from deniable.drafting.type_histogram import (
    FRACTION_INTERVALS,
    MICRO,
    SENTINELS,
    WHOLE_INTERVALS,
    ColumnTypes,
    best_window,
    count_types,
    is_number,
    numbers_of,
    occupied_range,
)


def types_of(cells, sigma=1.0) -> ColumnTypes:
    column = count_texts(pl.Series("x", cells, dtype=pl.String), is_csv=True)
    return ColumnTypes(count_types(column), sigma)


def test_intervals_of_whole_numbers_have_no_gap_and_no_overlap():
    assert all(b + 1 == c for (_, b), (c, _) in pairwise(WHOLE_INTERVALS))
    assert WHOLE_INTERVALS[0][0] == -WHOLE_INTERVALS[-1][1] == -(10**18)


@pytest.mark.parametrize("number", [0, 1, -1, 4, 5, -9_998, 123_456, 10**15, -(10**15)])
def test_a_whole_number_is_in_its_interval(number):
    counts = types_of([str(number)]).style("whole")
    [at] = np.flatnonzero(counts)
    assert WHOLE_INTERVALS[at][0] <= number <= WHOLE_INTERVALS[at][1]
    points = types_of([f"{number}.0"]).style("point")
    assert points.tolist() == counts.tolist()


@pytest.mark.parametrize("number", [0.5, -0.5, 1.5, 99.25, -0.000002, 1e-9, 123456.789])
def test_a_fraction_is_in_its_interval(number):
    [at] = np.flatnonzero(types_of([f"{number:.12f}"]).style("fraction"))
    low, high = FRACTION_INTERVALS[at]
    assert low <= number * MICRO <= high


def test_numbers_for_no_answer_have_their_own_cells():
    types = types_of(["-9"] * 50 + ["999"] * 30 + ["3"] * 20)
    assert types.seen_sentinels() == {-9: 50, 999: 30}
    assert types.style("whole").sum() == 20
    assert len(set(SENTINELS)) == len(SENTINELS)


def test_other_cells_are_counted_by_type():
    types = types_of(["", "NA", None, "oak", "yes", "007", "2020-01-31", "1"])
    assert (types.count("missing"), types.count("text"), types.count("unsupported")) == (3, 3, 0)
    assert types.counts.sum() == 8


def test_an_ambiguous_date_counts_for_both_formats_and_the_clear_one_decides():
    types = types_of(["01/02/2020"] * 50 + ["31/01/2020"] * 30)
    score, text_format, kind = types.best_date_format()
    assert (text_format, kind) == ("%d/%m/%Y", "date")
    assert score == pytest.approx(80 / 2**0.5)


def test_evidence_for_numbers_is_that_of_neighbouring_intervals():
    types = types_of([str(x) for x in range(10, 50)] * 3, sigma=2.0)
    score, rows = types.best_numbers()
    assert rows == 120
    assert score == pytest.approx(90 / 2.0)  # of 20 to 49 alone
    assert types.score("fraction") == 0


def test_texts_that_are_numbers_are_parsed_and_clipped():
    column = count_texts(pl.Series("x", ["7", "1e300", "oak", "-2.5"]), is_csv=True)
    assert dict(zip(column.texts, is_number(column), strict=True)) == {
        "7": True,
        "1e300": False,
        "oak": False,
        "-2.5": True,
    }
    numbers = dict(zip(column.texts, numbers_of(column), strict=True))
    assert numbers == {"7": 7.0, "1e300": 1e18, "oak": 0.0, "-2.5": -2.5}


def test_the_best_window_weighs_length_against_rows():
    assert best_window(np.array([0, 9, 8, 0, 5]))[1:] == (1, 2)
    assert best_window(np.array([-4])) == (-4.0, 0, 0)


def occupied(noise, rows):
    counts = np.rint(noise).astype(np.int64)
    for at, count in rows.items():
        counts[at] += count
    return occupied_range(counts, 100.0)


def test_noise_rarely_widens_a_range():
    """Two occupied cells of 63: in fixed draws, a wider range is found in less than one of 20."""
    draws = np.random.default_rng(1)
    found = [occupied(draws.normal(0, 100, 63), {31: 5_000, 32: 900}) for _ in range(400)]
    assert sum(each == (31, 32) for each in found) > 380
    assert all(first <= 31 and last >= 32 for first, last in found)


def test_a_near_cell_needs_less_evidence_than_a_far_one():
    silent = np.zeros(63)
    assert occupied(silent, {31: 5_000, 32: 250}) == (31, 32)
    assert occupied(silent, {31: 5_000, 33: 450}) == (31, 33)
    assert occupied(silent, {31: 5_000, 50: 450}) == (31, 31)
    assert occupied(silent, {31: 5_000, 50: 550}) == (31, 50)
    assert occupied(silent, {31: 5_000, 20: 550}) == (20, 31)
