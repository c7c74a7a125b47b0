"""Text columns: lists of values, free text, and the value for all other texts."""

import numpy as np
import pytest

from drafted_columns import draft_column, fields_of, notes_of

RNG = np.random.default_rng(4)


def many(values, n=200):
    return [str(value) for value in RNG.choice(values, n)]


def test_free_text_keeps_the_frequent_or_is_made_up():
    """Records have all columns of the table, so that programs for the table run on them."""
    opinions = [f"it was {x} days until a reply came" for x in range(300)]
    found = draft_column(opinions)
    assert fields_of(found) == {"release": "fresh", "format": "text {}"}
    assert '"text 1", "text 2", …' in notes_of(found)
    mixed = draft_column([*opinions, *["no comment"] * 100])
    assert mixed.kind == "text"
    assert fields_of(mixed)["values"] == ["no comment"]
    assert fields_of(mixed)["other"] == "other"


def test_the_value_for_other_texts_is_not_taken_already():
    opinions = [f"opinion number {x}" for x in range(300)]
    assert fields_of(draft_column([*opinions, *["other"] * 100]))["other"] == "(other)"


def test_many_values_have_no_buckets_and_rare_ones_are_counted_not_named():
    found = draft_column([*many([f"town {c}" for c in range(60)], 6000), "hamlet"])
    assert "buckets" not in fields_of(found)
    assert "60" in notes_of(found) or "61" in notes_of(found)
    assert "1 of its" in notes_of(found)
    assert "hamlet" not in notes_of(found)


def test_a_list_of_more_than_200_texts_is_its_frequent_ones():
    towns = [f"town {c}" for c in range(300)]
    cells = [*towns[:250] * 12, *towns[:40] * 20, *towns[250:] * 3]
    found = draft_column(cells)
    listed = fields_of(found)["values"]
    assert (found.kind, len(listed)) == ("text", 200)
    assert set(towns[:40]) < set(listed) <= set(towns[:250])
    assert "300 different texts" in notes_of(found)
    assert fields_of(draft_column([*towns[:201] * 30, *towns[:150]]))["other"] == "other"
    assert draft_column(towns[:200] * 30).kind == "categorical"


@pytest.mark.parametrize(
    "name", ["name", "surname", "First Name", "lastName", "Vorname", "street", "email", "phone_no"]
)
def test_names_and_addresses_are_never_listed(name):
    """However frequent they are."""
    cells = many([f"Anna {c}" for c in "abcdefghijklmno"], 2_000)
    found = draft_column(cells, name)
    assert found.kind == "identifier"
    assert fields_of(found) == {"release": "fresh", "format": "text {}"}
    assert "names or addresses" in notes_of(found)
    assert not any(cell in notes_of(found) for cell in cells)


@pytest.mark.parametrize("name", ["drug name", "country_name", "town"])
def test_names_of_things_are_listed(name):
    assert draft_column(many([f"Anna {c}" for c in range(15)], 2_000), name).kind == "categorical"


def test_a_question_about_a_phone_is_no_phone_number():
    assert draft_column(many(["mobile", "landline", "none"]), "phone").kind == "categorical"
