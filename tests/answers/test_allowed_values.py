"""Sets of values of one attribute: intersections, complements, and shares of bins."""

import numpy as np

from deniable.answers.allowed_values import AllowedValues
from deniable.schema.attribute import Attribute

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
