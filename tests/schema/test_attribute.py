from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from deniable.arrays import MAX_DOMAIN_SIZE
from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid


def categorical(*values, **options):
    return Attribute(name="edu", kind="categorical", values=values, **options)


def integer(low, high, **options):
    return Attribute(name="age", kind="integer", values=range(low, high + 1), **options)


def test_by_default_every_code_is_a_bucket():
    attribute = categorical("a", "b", "c")
    assert attribute.groups == (0, 1, 2)
    assert (attribute.size, attribute.buckets, attribute.is_bucketed) == (3, 3, False)
    assert attribute.missing_code is None


def test_missing_is_the_last_code_and_a_bucket_of_its_own():
    attribute = integer(1, 4, missing=("", "?")).with_bucket_width(3)
    assert (attribute.size, attribute.missing_code) == (5, 4)
    assert attribute.groups == (0, 0, 0, 1, 2)
    assert attribute.is_bucketed


def test_buckets_are_numbered_by_their_first_code():
    attribute = categorical("a", "b", "c", "d").with_bucket_groups([["d"], ["c", "a"], ["b"]])
    assert attribute.groups == (0, 1, 0, 2)


def test_a_missing_cell_is_never_in_a_bucket_with_values():
    attribute = categorical("a", "b", missing=("?",)).with_bucket_groups([["a", "b"]])
    assert attribute.groups == (0, 0, 1)


def test_bucket_of_is_a_read_only_array_indexed_by_codes():
    attribute = integer(0, 99).with_bucket_width(15)
    codes = np.array([0, 14, 15, 99], dtype=np.uint16)
    assert attribute.bucket_of[codes].tolist() == [0, 0, 1, 6]
    with pytest.raises(ValueError, match="read-only"):
        attribute.bucket_of[0] = 1


def test_lists_become_tuples_so_that_attributes_are_hashable():
    attribute = Attribute(name="x", kind="categorical", values=["a", "b"], missing=["?"])
    assert attribute == categorical("a", "b", missing=("?",)).__class__(
        name="x", kind="categorical", values=("a", "b"), missing=("?",)
    )
    assert len({attribute, attribute}) == 1


def test_the_number_of_codes_is_limited():
    assert integer(1, MAX_DOMAIN_SIZE).size == MAX_DOMAIN_SIZE
    with pytest.raises(SchemaError, match="more than 65,535 values"):
        integer(0, MAX_DOMAIN_SIZE)
    with pytest.raises(SchemaError, match="more than 65,535 values"):
        integer(1, MAX_DOMAIN_SIZE, missing=("",))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute(name="", kind="integer", values=range(3)), "has no name"),
        (lambda: Attribute(name="e", kind="categorical", values="abc"), "use a list"),
        (lambda: categorical("a", 1), "all text or all whole numbers"),
        (lambda: categorical(1, True), "all text or all whole numbers"),
        (lambda: categorical(1, 2.0), "all text or all whole numbers"),
        (lambda: categorical(2**62), "write such numbers as text"),
        (lambda: Attribute(name="a", kind="integer", values=(1, 2)), "set min and max"),
        (lambda: Attribute(name="a", kind="integer", values=range(0, 9, 2)), "set min and max"),
        (lambda: categorical("a", missing=("a",)), 'both as a value and as missing: "a"'),
        (lambda: integer(-9, 9, missing=("-8",)), "both as a value and as missing: -8"),
        (lambda: integer(1, 9, missing=("05",)), "both as a value and as missing: 5"),
        (lambda: categorical("a", missing=("?", "?")), "missing lists a text twice"),
        (lambda: categorical("a", "b", groups=(0,)), "2 codes need 2 bucket numbers"),
        (lambda: categorical("a", "b", groups=(1, 0)), "numbered from 0"),
        (lambda: categorical("a", missing=("?",), groups=(0, 0)), "a bucket of its own"),
        (lambda: integer(1, 9).with_bucket_width(0), "at least 1"),
        (lambda: integer(1, 9).with_bucket_width(2.5), "a whole number"),
        (
            lambda: categorical("a").with_bucket_groups([["a", "z"]]),
            'contains "z", which is not among the values',
        ),
        (lambda: categorical("a", starts=(0,)), "bins and model are only for integers"),
        (lambda: categorical("a", model="normal"), "bins and model are only for integers"),
        (lambda: integer(0, 2**62), "write such numbers as text"),
        (lambda: Attribute(name="r", kind="real", values=range(9)), "a real needs decimals"),
        (lambda: integer(0, 9, grid=Grid(kind="date")), "its grid has a different type"),
        (lambda: integer(0, 9, starts=(0, 5, 5)), "the edges of bins must ascend"),
        (lambda: integer(0, 9, starts=(1, 5)), "the edges of bins must ascend"),
        (lambda: integer(0, 9, starts=(0, 10)), "the edges of bins must ascend"),
        (lambda: integer(0, 9, starts=(0, 3, 6), groups=(0, 1, 0)), "must be contiguous"),
        (lambda: integer(0, 9, starts=(0, 3)).with_bucket_groups([[0]]), "without bins"),
        (lambda: Grid(kind="real", step=Decimal(0)), "a number above 0"),
        (lambda: Grid(kind="date", step=Decimal(7)), "must have step 1"),
        (lambda: Grid(kind="datetime", step=Decimal("0.5")), "step_seconds must be a whole number"),
        (lambda: Grid(kind="integer", format="%d"), "padded with zeros"),
        (lambda: Grid(kind="real", format="%Y"), "format is only for integers, dates"),
    ],
)
def test_an_invalid_attribute_is_rejected(make, message):
    with pytest.raises(SchemaError, match=message):
        make()


def test_a_long_list_in_a_message_is_truncated():
    with pytest.raises(SchemaError, match=r"0, 1, 2, 3, 4 and 95 more"):
        integer(0, 99).with_bucket_groups([])


# Grids


def test_bins_of_equal_width_compare_equal_however_they_are_given():
    even = integer(0, 9, starts=range(0, 10, 3))
    assert integer(0, 9, starts=(0, 3, 6, 9)) == even
    assert len({integer(0, 9, starts=[0, 3, 6, 9]), even}) == 1
    assert integer(0, 9, starts=(0,)) == integer(0, 9, starts=range(0, 10, 10))
    assert integer(0, 9, starts=range(10)) == integer(0, 9)
    assert integer(0, 9, starts=(0, 3, 6)).starts == (0, 3, 6)  # the last is wider


def test_positions_centres_and_widths_of_bins():
    attribute = integer(10, 19, starts=(10, 12, 17), missing=("",))
    assert [attribute.positions(code) for code in range(3)] == [
        range(10, 12),
        range(12, 17),
        range(17, 20),
    ]
    assert [attribute.centre(code) for code in range(3)] == [10.5, 14, 18]
    assert (attribute.bins, attribute.size, attribute.missing_code) == (3, 4, 3)
    assert attribute.widths.tolist() == [2, 5, 3]
    with pytest.raises(ValueError, match="read-only"):
        attribute.widths[0] = 1


def test_properties_numeric_whole_and_binned():
    listed = Attribute(name="x", kind="categorical", values=(1, 2))
    real = Attribute(name="x", kind="real", values=range(9), grid=Grid(kind="real"))
    assert (listed.is_numeric, listed.is_whole, listed.is_binned) == (False, True, False)
    assert (integer(1, 9).is_numeric, integer(1, 9).is_whole) == (True, True)
    assert (real.is_numeric, real.is_whole) == (True, False)
    assert integer(1, 9, starts=(1, 4)).is_binned


def test_the_number_of_codes_follows_a_change_of_the_attribute():
    """They are fields, computed once: a copy with other bins or texts has its own."""
    plain = Attribute(name="a", kind="integer", values=range(12))
    binned = replace(plain, starts=(0, 5), groups=(), missing=("",))
    assert (plain.bins, plain.size, plain.is_binned) == (12, 12, False)
    assert (binned.bins, binned.size, binned.is_binned) == (2, 3, True)
    assert binned != plain
