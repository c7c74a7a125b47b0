"""Text columns of a private draft: frequent texts, booleans, and one value for the rest."""

import pytest

from deniable.drafting.noisy_lists import draft_texts
from drafted_columns import parse_column
from noisy_columns import measured_column, values_of


def drafted(cells):
    draft = draft_texts(measured_column(cells))
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
