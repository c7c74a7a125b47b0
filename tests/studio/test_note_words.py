"""Notes of a draft without the keys of the file."""

import pytest

from deniable.studio.note_words import without_keys


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
