"""Constraints in words: each form of the file has a sentence."""

import pytest

from deniable.studio.rule_words import rule_sentence


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
