"""TOML text of a draft: comments, wrapped lines and grouped notes."""

import tomllib
from decimal import Decimal

from deniable.drafting.description import ColumnDraft, DraftField
from deniable.drafting.toml_text import (
    comment_lines,
    group_notes,
    numbered_lines,
    write_attribute,
)


def test_an_attribute_is_toml_with_a_comment_on_each_field():
    fields = (
        DraftField("min", Decimal("0.10"), "a bound"),
        DraftField("values", [f"value {i}" for i in range(40)], "a long list"),
        DraftField("bins", {"width": 5}),
    )
    draft = ColumnDraft(name='a "name"', kind="real", fields=fields, remarks=("a remark",))
    text = write_attribute(draft)
    [table] = tomllib.loads(text)["attribute"]
    assert table == {
        "name": 'a "name"',
        "type": "real",
        "min": 0.1,
        "values": [f"value {i}" for i in range(40)],
        "bins": {"width": 5},
        "confirmed": False,
    }
    lines = text.splitlines()
    assert next(line for line in lines if line.startswith("min")).endswith("# a bound")
    assert lines[lines.index("values = [") - 1] == "# values: a long list"
    assert lines[-1] == "# a remark"
    assert max(map(len, lines)) <= 100


def test_control_characters_do_not_end_a_comment():
    assert comment_lines("a\nb\x01c") == ["# a b c"]


def test_equal_notes_are_grouped_and_long_lists_of_names_are_cut():
    drafts = [ColumnDraft(name=f"c{i}", kind="real", notes=("check it",)) for i in range(14)]
    [note] = group_notes(drafts)
    assert note.startswith('"c0", "c1"')
    assert note.endswith('"c11" and 2 more: check it.')
    assert "c12" not in note
    different = [ColumnDraft(name=n, kind="real", notes=(f"note {n}",)) for n in "ab"]
    assert group_notes(different) == ['"a": note a.', '"b": note b.']


def test_numbered_notes_are_indented_below_their_number():
    lines = numbered_lines(["short", "word " * 40])
    assert lines[0] == "#   1. short"
    assert lines[1].startswith("#   2. word")
    assert lines[2].startswith("#      word")
    assert max(map(len, lines)) <= 100
