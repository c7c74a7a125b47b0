import numpy as np
import pytest

from deniable.arrays import MOST_VALUES
from deniable.data.attributes import Attribute
from deniable.errors import SchemaError


def categorical(*values, **options):
    return Attribute(name="edu", kind="categorical", values=values, **options)


def integer(low, high, **options):
    return Attribute(name="age", kind="integer", values=range(low, high + 1), **options)


def test_without_buckets_every_code_is_its_own():
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


def test_a_bucket_of_everything_still_leaves_missing_apart():
    attribute = categorical("a", "b", missing=("?",)).with_bucket_groups([["a", "b"]])
    assert attribute.groups == (0, 0, 1)


def test_bucket_of_is_indexed_by_codes_and_cannot_be_changed():
    attribute = integer(0, 99).with_bucket_width(15)
    codes = np.array([0, 14, 15, 99], dtype=np.uint16)
    assert attribute.bucket_of[codes].tolist() == [0, 0, 1, 6]
    with pytest.raises(ValueError, match="read-only"):
        attribute.bucket_of[0] = 1


def test_a_list_of_values_is_kept_as_a_tuple_so_that_attributes_can_be_hashed():
    attribute = Attribute(name="x", kind="categorical", values=["a", "b"], missing=["?"])
    assert attribute == categorical("a", "b", missing=("?",)).__class__(
        name="x", kind="categorical", values=("a", "b"), missing=("?",)
    )
    assert len({attribute, attribute}) == 1


def test_an_attribute_may_have_as_many_codes_as_fit_and_no_more():
    assert integer(1, MOST_VALUES).size == MOST_VALUES
    with pytest.raises(SchemaError, match="more than 65,535 values"):
        integer(0, MOST_VALUES)
    with pytest.raises(SchemaError, match="more than 65,535 values"):
        integer(1, MOST_VALUES, missing=("",))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute(name="", kind="integer", values=range(3)), "has no name"),
        (categorical, '"edu": it has no values'),
        (lambda: Attribute(name="e", kind="categorical", values="abc"), "write a list"),
        (lambda: categorical("a", "b", "a"), 'listed more than once: "a"; list each value once'),
        (lambda: categorical("a", 1), "all text or all whole numbers"),
        (lambda: categorical(1, True), "all text or all whole numbers"),
        (lambda: categorical(1, 2.0), "all text or all whole numbers"),
        (lambda: categorical(2**62), "write such numbers as text"),
        (lambda: integer(5, 4), '"age": min is above max'),
        (lambda: Attribute(name="a", kind="integer", values=(1, 2)), "give its min and its max"),
        (lambda: Attribute(name="a", kind="integer", values=range(0, 9, 2)), "min and its max"),
        (lambda: categorical("a", missing=("a",)), 'both a value and missing: "a"'),
        (lambda: integer(-9, 9, missing=("-8",)), "both a value and missing: -8"),
        (lambda: integer(1, 9, missing=("05",)), "both a value and missing: 5"),
        (lambda: categorical("a", missing=("?", "?")), "missing lists a text twice"),
        (lambda: integer(1, 9, missing=(-8,)), "quote its numbers"),
        (lambda: categorical("a", outside="clip"), '"clip" is for integers'),
        (lambda: categorical("a", "b", groups=(0,)), "2 codes need as many bucket numbers"),
        (lambda: categorical("a", "b", groups=(1, 0)), "numbered from 0"),
        (lambda: categorical("a", missing=("?",), groups=(0, 0)), "a bucket of its own"),
        (lambda: categorical("a", "b").with_bucket_width(2), "for integers; list groups"),
        (lambda: integer(1, 9).with_bucket_width(0), "at least 1"),
        (lambda: integer(1, 9).with_bucket_width(2.5), "a whole number"),
        (lambda: categorical("a", "b").with_bucket_groups([["a"], ["a", "b"]]), "in two buckets"),
        (lambda: categorical("a", "b").with_bucket_groups([["a"]]), 'no bucket holds "b"'),
        (lambda: categorical("a").with_bucket_groups([["a", "z"]]), 'hold "z", not a value'),
    ],
)
def test_an_attribute_that_contradicts_itself_is_refused(make, message):
    with pytest.raises(SchemaError, match=message):
        make()


def test_a_long_list_in_a_message_is_cut():
    with pytest.raises(SchemaError, match=r"0, 1, 2, 3, 4 and 95 more"):
        integer(0, 99).with_bucket_groups([])
