"""Shares of a column's values, sets of allowed values, and values within bins."""

from collections import Counter

import numpy as np
import pytest

from chance import assert_distribution
from deniable.answers.allowed_values import AllowedValues
from deniable.answers.balance import Balance
from deniable.answers.bin_values import BinValues
from deniable.arrays import CODE
from deniable.errors import ConfigError
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from deniable.schema.heaping import Heaping
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


# Values within bins under a condition, against a list of all values of each bin

PLAIN = Attribute(name="x", kind="integer", values=range(60), starts=(0, 7, 30), missing=("",))
HEAPED = Attribute(
    name="x",
    kind="integer",
    values=range(60),
    starts=(0, 7, 30),
    heaps=(5, 10),
    missing=("",),
)
INTERVALS = ((2, 4), (8, 8), (10, 20), (35, 41))


def values_of(attribute):
    allowed = AllowedValues.of_positions(attribute, INTERVALS, missing=True)
    return BinValues(allowed, Heaping(attribute) if attribute.heaps else None)


def listed(attribute, bin_, level):
    """The values of a bin that have a roundness level, by the definition; the nearest level."""
    positions = list(attribute.positions(bin_))
    steps = [step for step in attribute.heaps if step <= len(positions)]
    of = {p: sum(p % step == 0 for step in steps) for p in positions}
    occurring = sorted(set(of.values()))
    below = [each for each in occurring if each <= level]
    nearest = max(below) if below else min(occurring)
    return [p for p in positions if of[p] == nearest]


def is_allowed(position):
    return any(low <= position <= high for low, high in INTERVALS)


@pytest.mark.parametrize("attribute", [PLAIN, HEAPED], ids=["plain", "heaped"])
def test_shares_are_those_of_the_listed_values(attribute):
    shares = values_of(attribute).shares
    for level in range(len(shares)):
        for bin_ in range(attribute.bins):
            values = listed(attribute, bin_, level)
            expected = sum(map(is_allowed, values)) / len(values)
            assert shares[level, bin_] == pytest.approx(expected)
        assert shares[level, -1] == 1


@pytest.mark.parametrize("attribute", [PLAIN, HEAPED], ids=["plain", "heaped"])
def test_drawn_values_are_uniform_among_the_allowed(attribute):
    values = values_of(attribute)
    for level, row in enumerate(values.shares):
        for bin_ in np.flatnonzero(row[:-1]):
            codes = np.full(4_000, bin_, dtype=CODE)
            levels = np.full(4_000, level, dtype=CODE)
            drawn = values.draw(codes, levels, Keyed(level).at("values", int(bin_)))
            allowed = [p for p in listed(attribute, int(bin_), level) if is_allowed(p)]
            assert_distribution(Counter(drawn.tolist()), dict.fromkeys(allowed, 1 / len(allowed)))


def test_a_missing_cell_keeps_its_code():
    values = values_of(HEAPED)
    codes, levels = np.full(3, 3, dtype=CODE), np.zeros(3, dtype=CODE)
    assert values.draw(codes, levels, Keyed(1).at("values")).tolist() == [3, 3, 3]


BINNED = Attribute(name="x", kind="integer", values=range(10), starts=(0, 4), missing=("",))
TOWNS = Attribute(name="x", kind="categorical", values=("Ulm", "Bonn", "Jena"), missing=("",))


def some(*intervals, missing=False):
    return AllowedValues.of_positions(BINNED, intervals, missing=missing)


def test_a_bin_counts_with_the_share_of_its_values():
    assert some((0, 9), missing=True).shares.tolist() == [1, 1, 1]
    assert some((2, 4)).shares.tolist() == [0.5, 1 / 6, 0]
    assert some((1, 1), (3, 3), (5, 5)).shares.tolist() == [0.5, 1 / 6, 0]
    assert some((2, 4)).codes.tolist() == [True, True, False]
    assert some((2, 4)).cuts_bins
    assert not some((4, 9)).cuts_bins


def test_positions_outside_the_range_are_cut_off():
    assert some((-5, 2), (8, 99)).intervals.tolist() == [[0, 2], [8, 9]]
    assert some((10, 99)).is_empty


def test_sets_agree_with_sets_of_numbers():
    rng = np.random.default_rng(1)
    for _ in range(50):
        chosen = [set(np.flatnonzero(rng.random(10) < 0.5).tolist()) for _ in range(2)]
        one, two = (some(*((n, n) for n in sorted(each))) for each in chosen)
        both, other = one.intersect(two), one.complement()
        assert members(both) == chosen[0] & chosen[1]
        assert members(other) == set(range(10)) - chosen[0]
        assert not other.allows_missing


def members(values):
    return {n for low, high in values.intervals.tolist() for n in range(low, high + 1)}


def test_whole_codes_are_intervals_of_positions():
    mask = np.array([False, True, True])
    values = AllowedValues.of_codes(BINNED, mask)
    assert values.intervals.tolist() == [[4, 9]]
    assert values.allows_missing


def test_listed_values_are_codes():
    values = AllowedValues.of_codes(TOWNS, np.array([True, False, True, False]))
    assert values.complement().codes.tolist() == [False, True, False, False]
    assert values.intersect(values.complement()).is_empty
    assert values.shares.tolist() == [1, 0, 1, 0]
