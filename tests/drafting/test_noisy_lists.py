"""Text columns of a private draft: frequent texts, booleans, and one value for the rest."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.drafting.noisy_lists import _WORDS, draft_texts, measure_texts, undescribed_rows
from drafted_columns import parse_column
from noisy_columns import measured_column, values_of


def drafted(cells, **options):
    measured = measured_column(cells, **options)
    draft = draft_texts(measured, measure_texts(measured))
    parse_column(draft)
    return draft.kind, values_of(draft)


def test_all_texts_that_are_frequent_are_a_category():
    kind, found = drafted(["oak"] * 500 + ["elm"] * 700)
    assert (kind, found) == ("categorical", {"values": ["elm", "oak"], "fallback": "elm"})


def test_rare_texts_become_one_value():
    kind, found = drafted(["oak"] * 500 + ["elm"] * 700 + [f"tree {i}" for i in range(300)])
    assert (kind, found["values"], found["other"]) == ("text", ["elm", "oak"], "other")
    assert found["fallback"] == "other"


@pytest.mark.parametrize("pair", [("no", "yes"), ("F", "T"), ("False", "True")])
def test_two_words_for_false_and_true_are_a_boolean(pair):
    kind, found = drafted([pair[0]] * 500 + [pair[1]] * 400)
    assert (kind, found["values"], found["fallback"]) == ("boolean", [*pair], pair[0])


def test_missing_cells_are_declared_only_if_they_were_seen():
    _, found = drafted(["oak"] * 500 + ["elm"] * 700 + [None] * 200 + ["NA"] * 100)
    assert (found["missing"], found["fallback"]) == (["", "NA"], "")
    _, found = drafted(["oak"] * 500 + ["elm"] * 700 + [None] * 2)
    assert "missing" not in found


def test_a_column_without_a_frequent_text_becomes_one_value():
    kind, found = drafted([f"tree {i}" for i in range(900)])
    assert (kind, found["values"], found["fallback"]) == ("text", [], "other")


def test_a_value_called_other_is_kept_apart_from_the_rest():
    _, found = drafted(["other"] * 500 + ["oak"] * 500 + [f"tree {i}" for i in range(300)])
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
    _, found = drafted([*often, *["mar"] * 5, *[f"tree {i}" for i in range(100)]])
    assert {"may", "mar", "dec"} <= set(found["values"])
    _, found = drafted([*["may"] * 500, *["jul"] * 500, *[f"tree {i}" for i in range(100)]])
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
