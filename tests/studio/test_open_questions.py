"""The notes of a draft become questions with answers."""

import re
from decimal import Decimal

import polars as pl
import pytest

from deniable.drafting.draft import draft_schema
from deniable.files import parse_toml
from deniable.schema.schema import Schema
from deniable.studio.open_questions import (
    TEXTS,
    OpenQuestion,
    answers_to,
    apply_answer,
    gather_rare,
    is_settled,
    own_column,
    question_text,
    questions_about,
    read_questions,
    taken_codes,
)
from deniable.studio.schema_text import SchemaText

ROWS = 400


@pytest.fixture(scope="module")
def draft():
    codes = [str(100_000 + 7 * i) for i in range(ROWS)]
    return draft_schema(
        pl.DataFrame(
            {
                'patient "id"': codes,
                "visit": [i % 7 for i in range(ROWS)],
                "amount": [99_999 if i % 4 == 0 else i for i in range(ROWS)],
                "country": ["X"] * ROWS,
            }
        )
    )


def test_every_note_of_a_draft_is_read_with_its_columns(draft):
    found = read_questions(draft.text)
    assert len(found) == len(draft.notes) > 2
    names = {name for each in found for name in each.columns}
    assert {'patient "id"', "amount", "country"} <= names


def test_notes_are_wrapped_numbered_and_may_name_many_columns():
    text = (
        '# Intro: "x": no note\n#\n# To decide:\n'
        '#   1. "a", "b, \\"c\\"" and 3 more: some\n#      note.\n'
        '#  12. 6 constraints are there.\n\nformat = 1\n# 3. "z": not a note\n'
    )
    assert read_questions(text) == [
        OpenQuestion("Some note.", ("a", 'b, "c"'), 3),
        OpenQuestion("6 constraints are there.", ()),
    ]
    assert read_questions("# Nothing to decide.\nformat = 1\n") == []


def schema_after(draft, name, answer):
    document = parse_toml(draft.text)
    at = [each["name"] for each in document["attribute"]].index(name)
    questions = [each for each in read_questions(draft.text) if name in each.columns]
    assert answer in [each.name for question in questions for each in answers_to(question)]
    values = apply_answer(answer, document["attribute"][at], questions)
    return Schema.parse(SchemaText.parse(draft.text).with_attribute(at, **values).text).columns[at]


@pytest.mark.parametrize(
    ("name", "answer", "kind"),
    [
        ('patient "id"', "omit", "identifier"),
        ('patient "id"', "keep", "identifier"),
        ("country", "omit", "identifier"),
        ("country", "keep", "constant"),
        ("amount", "missing", "integer"),
        ("amount", "keep", "integer"),
    ],
)
def test_an_answer_gives_a_valid_confirmed_column(draft, name, answer, kind):
    column = schema_after(draft, name, answer)
    assert column.kind == kind
    assert column.confirmed == (answer != "missing")
    if answer == "missing":
        assert "99999" in column.missing
        assert column.values[-1] == 99_998
    if answer == "omit":
        assert column.release == "omit"


def test_other_answers():
    column = {"name": "x", "type": "ordered", "values": ["a", "b"], "confirmed": False}
    assert apply_answer("categorical", column, []) == {"type": "categorical", "confirmed": True}
    unit = apply_answer("unit", {**column, "min": 3}, [])
    assert unit == {"values": None, "min": None, "confirmed": True, "type": "identifier"}


def test_a_code_taken_for_missing_can_be_a_value_after_all():
    numbers = [-99 if i % 5 == 0 else i % 90 for i in range(ROWS)]
    draft = draft_schema(pl.DataFrame({"age": numbers}))
    [question] = [each for each in read_questions(draft.text) if taken_codes(each)]
    assert taken_codes(question) == ("-99",)
    assert [each.label for each in answers_to(question)][1] == "No, it is a value"
    assert not is_settled(question, {"missing": ["-99"]})
    assert is_settled(question, {})
    after = schema_after(draft, "age", "value")
    assert "-99" not in after.missing
    assert -99 in after.values
    assert not after.confirmed


def test_a_list_gets_the_code_as_a_value():
    question = OpenQuestion("-9 and -8 are taken to mean missing: please check.", ("a",))
    column = {"name": "a", "type": "ordered", "values": [1, 2], "missing": ["", "-9", "-8"]}
    assert apply_answer("value", column, [question]) == {"missing": [""], "values": [-9, -8, 1, 2]}
    texts = {"name": "a", "type": "categorical", "values": ["x"], "missing": ["-9", "-8"]}
    assert apply_answer("value", texts, [question]) == {
        "missing": None,
        "values": ["x", "-9", "-8"],
    }
    assert apply_answer("edit", column, [question]) == {}


def test_a_page_names_the_text_that_was_taken_for_missing():
    question = OpenQuestion("One text among its numbers is taken to mean missing: check.", ("x",))
    assert question_text(question, {"missing": ["", "N"]}).startswith("“N” among its numbers is")
    assert question_text(question, {"missing": ["N", "?"]}).startswith("One text among")


def test_rare_values_are_gathered_by_one_click():
    question = OpenQuestion(
        "1 of its 3 values is rare (fewer than 10 rows); listing them discloses that they occur. "
        'Take the list from the data dictionary, or make the column "text" with the frequent '
        "values.",
        ("pet",),
    )
    assert question.plain_text.endswith("If not, gather the rare ones.")
    assert [each.name for each in answers_to(question)] == ["keep", "frequent"]
    column = {"type": "categorical", "values": ["cat", "dog", "other"], "outside": "drop"}
    found = gather_rare(column, {"cat", "other", "not listed"})
    assert found == {
        "type": "text",
        "values": ["cat", "other"],
        "other": "(other)",
        "outside": None,
        "confirmed": False,  # which are frequent was read off the data
    }
    assert is_settled(question, {"type": "text"})
    assert not is_settled(question, column)


@pytest.mark.parametrize(
    ("results", "found"),
    [
        (["may", "jun", "may"], {"type": "categorical", "values": ["jun", "may"]}),
        ([3, 1, 2], {"type": "integer", "min": 1, "max": 3}),
        ([-3.4, 1.25], {"type": "real", "min": Decimal("-3.4"), "max": 1.25, "decimals": 2}),
        (["?", "may"], {"type": "categorical", "values": ["may"]}),
    ],
)
def test_a_column_that_merely_seems_to_follow_becomes_one_of_its_own(results, found):
    question = OpenQuestion(
        'It is computed from "price", as it follows from it in every row: please check its map '
        "against the data dictionary.",
        ("month",),
    )
    assert question.plain_text.startswith('In every row of this table, it follows from "price".')
    assert [each.name for each in answers_to(question)] == ["keep", "own"]
    pairs = [[f"p{at}", result] for at, result in enumerate(results)]
    column = {"name": "month", "type": "computed", "from": "price", "map": pairs, "missing": ["?"]}
    assert own_column(column) == {"from": None, "map": None, **found, "confirmed": False}
    assert is_settled(question, found)
    assert not is_settled(question, column)


def test_a_top_code_on_a_coarse_grid_leaves_a_bound_on_the_grid():
    column = {"name": "x", "type": "real", "min": 0.0, "max": 99.0, "step": Decimal("0.3")}
    question = OpenQuestion("Many rows have 99: if it means missing, add it to missing.", ("x",))
    assert apply_answer("missing", column, [question])["max"] == Decimal("98.7")


def test_questions_have_no_words_of_the_file(draft):
    notes = [
        'X: if it is not needed, set release = "omit".',
        'Leave this one out with release = "omit".',
        "-99 is taken to mean missing: please check. All missing cells are written as the first "
        "text under missing.",
        'Many rows have 99: if it means missing, add it to missing and lower max; if it means "99 '
        'or more", leave it.',
        "One text among its numbers is taken to mean missing (see missing): please check.",
        *(each.text for each in read_questions(draft.text) if each.columns),
    ]
    for note in notes:
        words = OpenQuestion(note, ("a",)).plain_text
        jargon = r'release =|"omit"|under missing|lower max|missing =|see missing|max_rows|\?\.'
        assert not re.search(jargon, words), words


def test_codes_become_categories_by_one_click():
    note = OpenQuestion("If its numbers are codes without an order, make it categorical.", ("x",))
    column = {"name": "x", "type": "integer", "min": 1, "max": 4, "outside": "clip"}
    assert [each.name for each in answers_to(note, column)] == ["keep", "codes"]
    assert not apply_answer("codes", column, [note])["confirmed"]
    assert note.plain_text.endswith("or codes without an order?")
    text = "format = 1\nrows_max = 10\n[[attribute]]\n" + "".join(
        f'{key} = "{value}"\n' if isinstance(value, str) else f"{key} = {value}\n"
        for key, value in column.items()
    )
    edited = SchemaText.parse(text).with_attribute(0, **apply_answer("codes", column, [note]))
    [attribute] = Schema.parse(edited.text).columns
    assert (attribute.kind, attribute.values) == ("categorical", (1, 2, 3, 4))
    listed = {"type": "ordered", "values": [1, 20, 99], "missing": ["99"]}
    assert apply_answer("codes", listed, [])["values"] == [1, 20]
    for other in ({"min": 0, "max": 500}, {"min": 0.5, "max": 2}, {}):
        assert [each.name for each in answers_to(note, {"type": "real", **other})] == ["keep"]


def test_free_text_is_left_out_by_the_first_answer():
    texts = [f"remark {i}" if i % 2 else "none" for i in range(ROWS)]
    drafts = [
        draft_schema(pl.DataFrame({"note": found, "visit": [i % 7 for i in range(ROWS)]}))
        for found in (texts, [f"remark {i}" for i in range(ROWS)])
    ]
    for draft, kind in zip(drafts, ("text", "identifier"), strict=True):
        column = parse_toml(draft.text)["attribute"][0]
        assert column["type"] == kind
        [question] = questions_about(column, read_questions(draft.text))
        assert [each.name for each in answers_to(question, column)] == ["omit", "keep"]
        assert schema_after(draft, "note", "omit").release == "omit"


def test_texts_that_no_note_is_about_are_asked_about_until_they_are_confirmed():
    column = {"name": "a", "type": "text", "values": ["x"], "confirmed": False}
    assert questions_about(column, []) == [TEXTS]
    assert answers_to(TEXTS, column)[0].name == "omit"
    assert questions_about({**column, "confirmed": True}, []) == []
