"""Shares of a column's values: how they are written, and the numbers of records."""

import numpy as np
import pytest

from deniable.answers.balance import Balance
from deniable.errors import ConfigError
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

SCHEMA = Schema(
    (
        Attribute(name="a: b", kind="categorical", values=("x", "y"), missing=("",)),
        Attribute(name="n", kind="integer", values=range(1_000), starts=range(1_000)),
        Attribute(name="c", kind="integer", values=range(9), starts=(0, 3, 6)),
    )
)


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("a: b", [0.5, 0.5]),
        ("a: b: 0.25, 0.75", [0.25, 0.75]),
        ('"a: b": 1, 0', [1, 0]),
        ("c", [1 / 3] * 3),
    ],
)
def test_shares_are_equal_or_written_after_a_colon(text, shares):
    assert Balance.parse(text, SCHEMA).shares.tolist() == pytest.approx(shares)


@pytest.mark.parametrize(
    "text", ["z", "z: 1", "n", "c: 1", "c: 1, 1, 1", "c: -1, 1, 1", "c: nan,1,0", 5]
)
def test_other_texts_are_refused(text):
    with pytest.raises(ConfigError, match="balance = "):
        Balance.parse(text, SCHEMA)


def test_numbers_follow_the_shares_in_every_block():
    balance = Balance.parse("c: 0.2, 0.3, 0.5", SCHEMA)
    blocks = [balance.draw(first, 7, Keyed(1).at("records", first)) for first in range(0, 70, 7)]
    for end in range(1, 11):
        counts = np.bincount(np.concatenate(blocks[:end]), minlength=3)
        assert (abs(counts - np.array([0.2, 0.3, 0.5]) * 7 * end) <= 1).all()
    assert len({tuple(block) for block in blocks}) > 5


@pytest.mark.parametrize("number", range(2, 40))
def test_shares_that_are_written_are_read_bit_by_bit(number):
    names = tuple(map(str, range(number)))
    schema = Schema((Attribute(name="c", kind="categorical", values=names),))
    shares = Balance.parse("c", schema).shares.tolist()
    written = f"c: {', '.join(map(repr, shares))}"
    assert Balance.parse(written, schema).shares.tolist() == shares


def test_a_value_is_described_in_the_words_of_the_schema():
    assert Balance.parse("c", SCHEMA).value_text(1) == "3 to 5"
    assert Balance.parse("a: b", SCHEMA).value_text(1) == '"y"'
