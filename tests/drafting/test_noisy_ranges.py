"""Numbers of a private draft: codes, bounds, decimals and numbers for "no answer"."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from deniable.drafting.noisy_ranges import draft_numbers, has_fractions
from deniable.drafting.type_histogram import (
    FRACTION_INTERVALS,
    WHOLE_INTERVALS,
    ColumnTypes,
    occupied_range,
)
from drafted_columns import parse_column
from noisy_columns import measured_column, values_of


def drafted(cells, **options):
    draft = draft_numbers(measured_column(cells, **options))
    parse_column(draft)
    return draft.kind, values_of(draft)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([1, 2] * 500, [1, 2]),
        ([0, 1] * 500, [0, 1]),
        ([*range(1, 10)] * 300, [*range(1, 10)]),
        ([*range(6)] * 300 + [-9] * 300, [-9, *range(6)]),
        ([*range(1, 6)] * 300 + [99] * 300, [*range(1, 6), 99]),
        ([*range(1, 5)] * 1_000 + [5] * 60, [*range(1, 6)]),
        ([-2, -1, 0, 1, 2] * 300, [-2, -1, 0, 1, 2]),
        ([-8] * 900 + [3] * 5, [-8]),
    ],
)
def test_few_whole_numbers_are_a_category(cells, values):
    kind, found = drafted(cells)
    assert (kind, found["values"]) == ("categorical", values)
    assert found["fallback"] in values
    assert "missing" not in found


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [
        ([*range(15, 91)] * 40, 15, 90),
        ([*range(1, 25)] * 100, 1, 24),
        ([*range(1990, 2021)] * 100, 1900, 2099),
        ([*range(1, 21)] * 100, 1, 20),
        ([*range(-30, 1)] * 100, -30, 0),
        ([*range(0, 90_000, 100)] * 10, 0, 90_000),
    ],
)
def test_bounds_of_frequent_numbers_are_close(cells, low, high):
    kind, found = drafted(cells)
    assert kind == "integer"
    margin = max(1, (high - low) // 20)
    assert low - margin <= found["min"] <= low + 1
    assert high - 1 <= found["max"] <= high + margin
    assert found["min"] <= found["fallback"] <= found["max"]
    assert found["outside"] == "clip"


def test_a_single_far_number_does_not_widen_the_bounds():
    _, found = drafted([*range(15, 91)] * 40 + [10**9, -(10**9)])
    assert (found["min"], found["max"]) == (15, 90)


def test_numbers_for_no_answer_outside_a_range_mean_missing():
    _, found = drafted([*range(15, 91)] * 40 + [-9] * 100 + [999] * 200)
    assert found["missing"] == ["999", "-9"]
    assert found["fallback"] == "999"
    assert (found["min"], found["max"]) == (15, 90)


def test_words_for_missing_and_frequent_texts_among_numbers_mean_missing():
    _, found = drafted(["N"] * 100 + ["refusal"] * 300 + [str(x) for x in range(15, 91)] * 40)
    assert found["missing"] == ["refusal", "N"]


def test_ranges_among_numbers_are_values():
    kind, found = drafted(["2-10"] * 300 + ["1"] * 900 + ["0"] * 100)
    assert (kind, found["values"]) == ("text", ["0", "1", "2-10"])


def test_texts_that_are_too_rare_to_be_named_become_missing_cells():
    texts = [f"text {i}" for i in range(300)]
    _, found = drafted(texts + [str(x) for x in range(15, 91)] * 40)
    assert (found["missing"], found["fallback"]) == ([""], "")


def test_integers_written_with_a_point_are_reals_with_a_step():
    cells = pl.Series("x", [f"{x}.0" for x in range(100, 900)] * 5)
    measured = measured_column(cells)
    assert not has_fractions(measured.types)  # of a frame: 100.0 is 100
    kind, found = drafted([f"{x}" for x in range(100, 900)] * 5)
    assert (kind, found["min"]) == ("integer", 100)
    assert 899 <= found["max"] <= 999


def test_frequent_numbers_of_a_wide_range_have_bins_of_their_own():
    draws = np.random.default_rng(1)
    cells = [*draws.lognormal(8, 2, 2_000).round().astype(int).tolist(), *[1_234] * 500]
    _, found = drafted(cells)
    assert {1_234, 1_235} <= set(found["bins"]["edges"])


@pytest.mark.parametrize("cell", ["1e19", "-1e19", "1e18", "-1e18", "0.5e19", "1e-9"])
@pytest.mark.parametrize("others", [[], ["1"], ["0.25"], ["0.123456789012"]])
def test_numbers_of_any_size_are_drafted(cell, others):
    kind, found = drafted([cell] * 300 + others * 300)
    assert kind in ("integer", "real", "categorical")
    assert found["fallback"] is not None


# What noise hides

FEW = 80  # of each code: then the noise of types is 1 % of the rows


def test_few_codes_that_leave_rows_are_a_range_to_which_others_are_clipped():
    """Ten rows of each of three further codes are not seen, thirty rows are."""
    cells = [0, 1] * 4 * FEW
    assert drafted(cells)[1]["values"] == [0, 1]
    kind, found = drafted(cells + [30, 300, 3_000] * 10)
    assert (kind, found["min"], found["max"], found["outside"]) == ("integer", 0, 1, "clip")


def test_a_long_range_is_widened():
    cells = [*range(20, 60)] * 10
    _, found = drafted(cells)
    _, sharp = drafted(cells * 20)
    assert (sharp["min"], sharp["max"]) == (20, 59)
    assert found["min"] < 20
    assert 60 < found["max"] < 120


def test_a_range_that_begins_near_zero_begins_there():
    cells = [*range(20, 900, 2)]
    _, found = drafted(cells)
    assert (found["min"], found["max"] >= 890) == (0, True)


def test_a_range_of_negative_numbers_is_not_widened_beyond_zero():
    _, found = drafted([*range(-5, 0)] * FEW)
    assert max(found.get("values", [found.get("max")])) == 0


def test_rows_that_no_code_explains_are_small_numbers():
    """Noise hides each of them, but not that 18 rows have another number than 999."""
    cells = [999] * 382 + [*range(1, 10)] * 2
    kind, found = drafted(cells)
    assert (kind, found["values"]) == ("categorical", [*range(10), 999])
    assert found["fallback"] == 999
    assert drafted([999] * 1_000)[1]["values"] == [999]


def test_amounts_far_from_a_frequent_zero_are_seen_in_neighbouring_intervals():
    """Three intervals of 4 standard deviations each; one of them alone might be noise."""
    sigma = 4.0
    counts = np.zeros(len(WHOLE_INTERVALS), dtype=np.int64)
    zero = WHOLE_INTERVALS.index((0, 0))
    counts[zero] = 900
    counts[zero + 11 : zero + 14] = 16
    assert occupied_range(counts, sigma) == (zero, zero + 13)
    counts[zero + 12 : zero + 14] = 0
    assert occupied_range(counts, sigma) == (zero, zero)


def test_noise_of_three_styles_does_not_add_up_to_a_far_fraction():
    """Fractions and whole numbers of ten million, each at 2.9 standard deviations: noise."""
    measured = measured_column([x / 10 for x in range(1, 400)])
    at = [[*range(len(FRACTION_INTERVALS))][-12], [*range(len(WHOLE_INTERVALS))][-12]]
    counts = measured.types.counts.copy()
    for style, cell in zip(("fraction", "whole"), at, strict=True):
        view = ColumnTypes(counts, measured.types.sigma).style(style)
        view[cell] = round(2.9 * measured.types.sigma)
    noisy = replace(measured, types=ColumnTypes(counts, measured.types.sigma))
    assert values_of(draft_numbers(noisy))["max"] < 1_000
