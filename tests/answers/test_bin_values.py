"""Values within bins under a condition, against a list of all values of each bin."""

from collections import Counter

import numpy as np
import pytest

from chance import assert_distribution
from deniable.answers.allowed_values import AllowedValues
from deniable.answers.bin_values import BinValues
from deniable.arrays import CODE
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from deniable.schema.heaping import Heaping

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
