"""Numbers of a private draft: codes, bounds, decimals and numbers for "no answer"."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.noisy_ranges import draft_numbers, has_fractions
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
