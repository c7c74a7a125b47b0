"""Edits of schema.toml change what they must, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.drafting.draft import draft_schema
from deniable.files import parse_toml
from deniable.schema.schema import Schema
from deniable.studio.note_words import without_keys
from deniable.studio.rule_words import rule_sentence
from deniable.studio.schema_text import SchemaText

TEXT = '''# A draft # with a [sign] in it
format = 1
rows_max = 500                    # read from the data, rounded up: is it public?

# about years
[[attribute]]
name = "years [a]"                # the name = "x"
type = "integer"
min = 0                           # read from the data
max = 99                          # the law says so
confirmed = false                 # read from the data

[[attribute]]
name = "trade"
type = "categorical"
# values: read from the data
values = [
    "a]", "b # no comment", 'c"',  # inner
    """d
[[attribute]]""",
]
missing = [""]
confirmed = false                 # read from the data
# a remark

[[constraint]]
# No row.
forbid = { "years [a]" = { below = 3 }, trade = ["a]"] }
confirmed = false
'''


@given(st.text(alphabet=st.sampled_from("[]{}\"'#=\n ab.\\,"), max_size=80))
def test_any_text_is_given_back_unchanged(text):
    assert SchemaText.parse(text).text == text


def test_blocks_and_keys_are_found_in_spite_of_brackets_in_texts():
    found = SchemaText.parse(TEXT)
    assert found.text == TEXT
    assert [block.kind for block in found.blocks] == ["", "attribute", "attribute", "constraint"]
    assert found.blocks[2].keys == ("name", "type", "values", "missing", "confirmed")
    assert found.blocks[2].remarks == ("a remark",)


def test_an_edit_changes_one_statement_and_keeps_all_comments():
    new = SchemaText.parse(TEXT).with_attribute(0, max=120).text
    assert [(a, b) for a, b in zip(TEXT.split("\n"), new.split("\n"), strict=True) if a != b] == [
        (
            "max = 99                          # the law says so",
            "max = 120                         # the law says so",
        )
    ]


def test_where_a_value_came_from_is_not_said_of_another_one():
    new = SchemaText.parse(TEXT).with_attribute(0, min=1).text
    assert "min = 1\n" in new
    new = SchemaText.parse(TEXT).with_attribute(1, values=["e"]).text
    assert "# values: read from the data" not in new
    assert 'values = ["e"]\n' in new
    assert "# a remark" in new


def test_an_equal_value_leaves_the_text_alone():
    same = SchemaText.parse(TEXT).with_attribute(0, min=0, type="integer")
    assert same.text == TEXT


def test_keys_are_added_before_confirmed_and_removed():
    edited = (
        SchemaText.parse(TEXT).with_attribute(0, outside="drop").with_attribute(1, missing=None)
    )
    lines = edited.text.split("\n")
    assert (
        lines.index('outside = "drop"')
        == lines.index("confirmed = false                 # read from the data") - 1
    )
    assert "missing" not in parse_toml(edited.text)["attribute"][1]


def test_keys_at_the_top_stay_at_the_top():
    new = SchemaText.parse(TEXT).with_head(unit="trade", rows_max=600)
    document = parse_toml(new.text)
    assert document["unit"] == "trade"
    assert document["rows_max"] == 600
    assert "unit" not in document["attribute"][0]


def test_a_block_is_removed():
    text = SchemaText.parse(TEXT)
    assert "constraint" not in parse_toml(text.with_block(3, None).text)


@pytest.mark.parametrize("key", ["confirmed"])
def test_a_whole_draft_is_confirmed_column_by_column(small_table, key):
    draft = draft_schema(small_table)
    text = SchemaText.parse(draft.text)
    for at in range(len(draft.attributes)):
        text = text.with_attribute(at, **{key: True})
    schema = Schema.parse(text.with_head(rows_max_confirmed=None).text)
    assert not any(not column.confirmed for column in schema.columns)
    comments = [line for line in draft.text.split("\n") if line.startswith("#")]
    assert [line for line in text.text.split("\n") if line.startswith("#")] == comments


def test_a_remark_that_is_wrapped_is_one_sentence():
    text = (
        "[[attribute]]\n# A few rows are far above. If you know more, set it\n"
        '# with outside = "clip".\n# Another one\n#\n# and a third\nname = "a"\n'
    )
    assert SchemaText.parse(text).blocks[1].remarks == (
        'A few rows are far above. If you know more, set it with outside = "clip".',
        "Another one",
        "and a third",
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"forbid": {"a": ["x", "y", "z"], "b": {"missing": True}}},
            "No record has a x, y or z together with b missing.",
        ),
        (
            {"forbid": {"a": {"at_least": 1, "below": 3.5}, "b": {"missing": False}}},
            "No record has a at least 1 and below 3.5 together with b not missing.",
        ),
        (
            {"forbid": {"a": list(range(11)), "b": {"above": 2}}, "confirmed": False},
            "No record has a 0, 1, 2, 3, 4, 5, 6, 7 or 3 more together with b above 2.",
        ),
        (
            {"allow": {"columns": ["a", "b"], "rows": [[1, 2], [3, 4]]}},
            "Of a and b, only the 2 listed combinations occur.",
        ),
        ({"less": ["a", "b"]}, "a is below b."),
        ({"at_most": ["a", "b"]}, "a is at most b."),
        ({"later": 3, "confirmed": True}, "later 3"),
    ],
)
def test_every_form_has_a_sentence(table, words):
    assert rule_sentence(table) == words


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (
            'If it is not needed, set release = "omit".',
            "If it is not needed, leave the column out.",
        ),
        ("3 constraints are at the end of the file: x.", "3 rules between columns are at the end"),
        ("Nothing of the file is in this note.", "Nothing of the file is in this note."),
    ],
)
def test_keys_are_replaced_by_words(note, words):
    assert without_keys(note).startswith(words)
