"""Second histograms of a column, and what is concluded from noisy counts."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.drafting.measured_column import (
    draft_unseen,
    fallback_fields,
    median_cell,
    trim_empty_ends,
)
from drafted_columns import parse_column
from noisy_columns import measured_column, values_of


def test_details_count_missing_texts_public_cells_and_texts_apart():
    measured = measured_column(["oak"] * 300 + ["N"] * 200 + [None] * 100 + ["elm"] * 2)
    details = measured.measure_details(measured.listed_cells(["N"]), 1, lists=True)
    assert [*details.texts] == ["oak"]
    assert abs(details.cells[0] - 200) < 5 * details.sigma
    assert [*measured.missing_texts(details)] == [""]
    unlisted = measured.measure_details(measured.listed_cells(["N"]), 1, lists=False, part=1e-9)
    assert unlisted.texts == {}


def test_missing_cells_are_found_in_the_types_if_no_text_is_frequent():
    measured = measured_column([None] * 40 + ["oak"] * 300)
    details = measured.measure_details(measured.listed_cells([]), 0, lists=False, part=1e-4)
    assert details.sigma > 100
    assert len(measured.missing_texts(details)) == 1
    complete = measured_column(["oak"] * 300)
    details = complete.measure_details(complete.listed_cells([]), 0, lists=False)
    assert complete.missing_texts(details) == {}


def test_weak_evidence_for_missing_cells_needs_a_second_histogram():
    """Four deviations in the types are noise in one column of thousands, unless a text confirms."""
    measured = measured_column(["oak"] * 300)
    counts = measured.types.counts.copy()
    counts[0] = 4 * measured.types.sigma + 1
    weak = replace(measured, types=replace(measured.types, counts=counts))
    assert weak.types.is_seen("missing")
    details = weak.measure_details(weak.listed_cells([]), 0, lists=False)
    nothing = replace(details, missing=np.zeros_like(details.missing))
    assert weak.missing_texts(nothing) == {}
    nothing.missing[1] = 3 * details.sigma + 1
    assert len(weak.missing_texts(nothing)) == 1


def test_the_fallback_is_missing_where_cells_are_missing():
    fields = fallback_fields({"NA": 3, "": 9}, "x")
    assert [(field.key, field.value) for field in fields] == [
        ("missing", ["", "NA"]),
        ("fallback", ""),
    ]
    [field] = fallback_fields({}, "x")
    assert (field.key, field.value) == ("fallback", "x")


@pytest.mark.parametrize("missing", [None, {"": 9}])
def test_an_unseen_column_is_one_value(missing):
    draft = draft_unseen("x", "too few rows", missing)
    attribute = parse_column(draft)
    assert attribute.values == ("other",)
    assert attribute.fallback == (0 if missing is None else attribute.missing_code)
    assert values_of(draft)["other"] == "other"


def test_the_median_ignores_negative_counts():
    assert median_cell(np.array([-50, 10, 10, 30])) == 3
    assert median_cell(np.array([-1, -1, -1])) == 1


@pytest.mark.parametrize(
    ("counts", "inside", "expected"),
    [
        ([0, 0, 900, 900, 0, 0], (2, 3), (2, 3)),
        ([0, 90, 900, 900, 0, 0], (2, 3), (1, 3)),
        ([0, 0, 900, 900, 0, 0], (0, 5), (2, 3)),
        ([3, -4, 900, 900, 5, -6], (0, 5), (2, 3)),
        ([0, 0, 0, 0, 0, 0], (0, 5), (2, 2)),
    ],
)
def test_empty_cells_at_the_ends_are_cut_off(counts, inside, expected):
    found = trim_empty_ends(np.array(counts), 10.0, rows=1_800, inside=inside)
    assert found == (expected if any(counts) else (3, 3))


def test_cells_inside_are_kept_if_the_noise_is_too_large_to_call_them_empty():
    counts = np.array([5, 10, 900, 900, -20, 30])
    assert trim_empty_ends(counts, 200.0, rows=1_800, inside=(0, 5)) == (0, 5)
    assert trim_empty_ends(counts, 200.0, rows=1_800, inside=(2, 3)) == (2, 3)
