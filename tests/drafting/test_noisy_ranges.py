"""Numbers of a private draft: codes, bounds, decimals and numbers for "no answer"."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from deniable.drafting.noisy_dates import draft_dates
from deniable.drafting.noisy_fractions import draft_fractions
from deniable.drafting.noisy_lists import _WORDS, draft_texts, measure_texts, undescribed_rows
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


def drafted_fraction(cells):
    draft = draft_fractions(measured_column(cells))
    parse_column(draft)
    return draft.kind, values_of(draft)


@pytest.mark.parametrize(
    ("cells", "decimals"),
    [
        (np.random.default_rng(1).normal(50, 9, 3_000).round(1), 1),
        (np.random.default_rng(1).normal(50, 9, 3_000).round(3), 3),
        (np.random.default_rng(1).random(3_000) * 50, 2),
    ],
)
def test_fractions_have_the_decimals_of_most(cells, decimals):
    kind, found = drafted_fraction(cells)
    assert (kind, found["decimals"]) == ("real", decimals)
    assert found["min"] <= min(cells) + 20
    assert found["max"] >= np.quantile(cells, 0.98)
    assert found["min"] <= found["fallback"] <= found["max"]


def test_frequent_fractions_have_bins_of_their_own():
    draws = np.random.default_rng(1)
    rates = draws.choice([92.893, 93.444, 93.994], 2_000).tolist()
    _, found = drafted_fraction([*rates, *draws.uniform(90, 95, 300).round(3).tolist()])
    edges = set(found["bins"]["edges"])
    assert {Decimal("93.444"), Decimal("93.445"), Decimal("93.994")} <= edges


def test_missing_cells_and_texts_among_fractions_are_declared():
    cells = np.random.default_rng(1).normal(50, 9, 3_000).round(1).astype(str).tolist()
    _, found = drafted_fraction([*cells, *[None] * 200, *["N"] * 300])
    assert (found["missing"], found["fallback"]) == (["N", ""], "N")


def test_a_grid_that_doubles_cannot_tell_apart_is_coarsened():
    _, found = drafted_fraction(["0.25"] * 300 + ["90000000000000.25"] * 300)
    assert found["decimals"] < 2


def drafted_date(cells, text_format="%Y-%m-%d", kind="date"):
    draft = draft_dates(measured_column(cells), text_format, kind)
    parse_column(draft)
    return values_of(draft)


def test_bounds_are_the_frequent_years_and_one_far_date_is_clipped():
    days = [dt.date(year, 5, 5) for year in range(2003, 2018)] * 90 + [dt.date(1900, 1, 1)]
    found = drafted_date(days)
    assert (found["min"], found["max"]) == (dt.date(2003, 1, 1), dt.date(2017, 12, 31))
    assert found["outside"] == "clip"
    assert found["min"] <= found["fallback"] <= found["max"]


def test_years_with_few_rows_each_are_seen_together():
    """Twelve rows a year are three times the noise; the years together are far more."""
    days = [dt.date(year, 5, 5) for year in range(1930, 2010)] * 12
    found = drafted_date(days)
    assert found["min"] <= dt.date(1935, 1, 1)
    assert found["max"] >= dt.date(2004, 12, 31)


@pytest.mark.parametrize(("year", "low", "high"), [(1650, 1600, 1699), (9500, 9150, 9649)])
def test_years_far_from_now_are_counted_in_centuries(year, low, high):
    found = drafted_date([dt.date(year, 1, 1)] * 900)
    assert (found["min"].year, found["max"].year) == (low, high)


def test_times_have_a_grid_that_their_format_can_write():
    cells = [f"0{x % 9 + 1}/05/2020 12:30" for x in range(900)]
    found = drafted_date(cells, "%d/%m/%Y %H:%M", "datetime")
    assert found["step_seconds"] == 60
    assert found["fallback"] == dt.date(2020, 1, 1)


def test_missing_dates_are_declared_and_are_the_fallback():
    found = drafted_date([dt.date(2020, 1, 1)] * 900 + [None] * 300)
    assert (found["missing"], found["fallback"]) == ([""], "")


# Text columns of a private draft: frequent texts, booleans, and one value for the rest


def drafted_list(cells, **options):
    measured = measured_column(cells, **options)
    draft = draft_texts(measured, measure_texts(measured))
    parse_column(draft)
    return draft.kind, values_of(draft)


def test_all_texts_that_are_frequent_are_a_category():
    kind, found = drafted_list(["oak"] * 500 + ["elm"] * 700)
    assert (kind, found) == ("categorical", {"values": ["elm", "oak"], "fallback": "elm"})


def test_rare_texts_become_one_value():
    kind, found = drafted_list(["oak"] * 500 + ["elm"] * 700 + [f"tree {i}" for i in range(300)])
    assert (kind, found["values"], found["other"]) == ("text", ["elm", "oak"], "other")
    assert found["fallback"] == "other"


@pytest.mark.parametrize("pair", [("no", "yes"), ("F", "T"), ("False", "True")])
def test_two_words_for_false_and_true_are_a_boolean(pair):
    kind, found = drafted_list([pair[0]] * 500 + [pair[1]] * 400)
    assert (kind, found["values"], found["fallback"]) == ("boolean", [*pair], pair[0])


def test_missing_cells_are_declared_only_if_they_were_seen():
    _, found = drafted_list(["oak"] * 500 + ["elm"] * 700 + [None] * 200 + ["NA"] * 100)
    assert (found["missing"], found["fallback"]) == (["", "NA"], "")
    _, found = drafted_list(["oak"] * 500 + ["elm"] * 700 + [None] * 2)
    assert "missing" not in found


def test_a_column_without_a_frequent_text_becomes_one_value():
    kind, found = drafted_list([f"tree {i}" for i in range(900)])
    assert (kind, found["values"], found["fallback"]) == ("text", [], "other")


def test_a_value_called_other_is_kept_apart_from_the_rest():
    _, found = drafted_list(["other"] * 500 + ["oak"] * 500 + [f"tree {i}" for i in range(300)])
    assert found["values"] == ["oak", "other"]
    assert found["other"] == found["fallback"] == "(other)"


TREES = ["oak"] * 500 + ["elm"] * 700 + ["ash"] * 24 + [f"tree {i}" for i in range(300)]


def test_a_second_measurement_names_more_texts():
    """A text needs about 59 rows at σ = 12, and 21 at σ = 4."""
    found = []
    for reserve in (0.0, 1 / 3):
        measured = measured_column([*TREES, *["fir"] * 32], key=5, reserve=reserve)
        measured = replace(measured, share=measured.share / 9)
        found.append(values_of(draft_texts(measured, measure_texts(measured)))["values"])
    assert found == [["elm", "oak"], ["elm", "fir", "oak"]]


def test_a_second_measurement_spends_the_reserve_and_no_more():
    measured = measured_column(TREES, reserve=1 / 3)
    draft_texts(measured, measure_texts(measured))
    spent = sum(spend.mu**2 for spend in measured.measurer.spends)
    assert spent == pytest.approx(measured.measurer.noise.mu**2)


def test_rows_of_no_named_text_are_undescribed():
    measured = measured_column(TREES)
    assert abs(undescribed_rows(measured, measure_texts(measured)) - 310) < 40
    measured = measured_column(["oak"] * 500 + ["elm"] * 700)
    assert undescribed_rows(measured, measure_texts(measured)) < 10


def test_months_are_all_listed_once_half_of_them_were_named():
    """March has too few rows to be seen."""
    often = ["may", "jul", "aug", "jun", "nov", "apr"] * 200
    _, found = drafted_list([*often, *["mar"] * 5, *[f"tree {i}" for i in range(100)]])
    assert {"may", "mar", "dec"} <= set(found["values"])
    _, found = drafted_list([*["may"] * 500, *["jul"] * 500, *[f"tree {i}" for i in range(100)]])
    assert found["values"] == ["jul", "may"]


@pytest.mark.parametrize(("word", "is_named"), [("unknown", True), ("September", False)])
def test_a_likely_word_needs_less_evidence(word, is_named):
    """15 rows are fewer than a word needs at σ = 4, but little else is left."""
    measured = measured_column(["no"] * 600 + ["yes"] * 500 + [word] * 20)
    details = measure_texts(measured)
    cells = np.zeros_like(details.cells)
    for text, count in {"no": 600, "yes": 500, word: 15}.items():
        cells += count * (np.arange(len(cells)) == _WORDS.index(text))
    values = values_of(draft_texts(measured, replace(details, cells=cells)))["values"]
    assert (word in values) == is_named
