from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from deniable.arrays import MOST_VALUES
from deniable.data.amounts import Unit
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
        (lambda: categorical("a", starts=(0,)), "bins and model are for integers"),
        (lambda: categorical("a", model="normal"), "bins and model are for integers"),
        (lambda: integer(0, 2**62), "write such numbers as text"),
        (lambda: Attribute(name="r", kind="real", values=range(9)), "a real needs decimals"),
        (lambda: integer(0, 9, unit=Unit(kind="date")), "its unit is that of another type"),
        (lambda: integer(0, 9, starts=(0, 5, 5)), "the edges of bins ascend"),
        (lambda: integer(0, 9, starts=(1, 5)), "the edges of bins ascend"),
        (lambda: integer(0, 9, starts=(0, 10)), "the edges of bins ascend"),
        (lambda: integer(0, 9, starts=(0, 3, 6), groups=(0, 1, 0)), "holds neighbours only"),
        (lambda: integer(0, 9, starts=(0, 3)).with_bucket_groups([[0]]), "without bins"),
        (lambda: Unit(kind="real", step=Decimal(0)), "a number above 0"),
        (lambda: Unit(kind="date", step=Decimal(7)), "has step 1"),
        (lambda: Unit(kind="datetime", step=Decimal("0.5")), "step_seconds is a whole number"),
        (lambda: Unit(kind="real", format="%Y"), "format is for dates and times"),
    ],
)
def test_an_attribute_that_contradicts_itself_is_refused(make, message):
    with pytest.raises(SchemaError, match=message):
        make()


def test_a_long_list_in_a_message_is_cut():
    with pytest.raises(SchemaError, match=r"0, 1, 2, 3, 4 and 95 more"):
        integer(0, 99).with_bucket_groups([])


# Grids


def test_bins_of_one_width_are_the_same_however_they_are_given():
    even = integer(0, 9, starts=range(0, 10, 3))
    assert integer(0, 9, starts=(0, 3, 6, 9)) == even
    assert len({integer(0, 9, starts=[0, 3, 6, 9]), even}) == 1
    assert integer(0, 9, starts=(0,)) == integer(0, 9, starts=range(0, 10, 10))
    assert integer(0, 9, starts=range(10)) == integer(0, 9)
    assert integer(0, 9, starts=(0, 3, 6)).starts == (0, 3, 6)  # the last is wider


def test_a_bin_knows_its_positions():
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


def test_what_is_numeric_whole_and_binned():
    listed = Attribute(name="x", kind="categorical", values=(1, 2))
    real = Attribute(name="x", kind="real", values=range(9), unit=Unit(kind="real"))
    assert (listed.is_numeric, listed.is_whole, listed.is_binned) == (False, True, False)
    assert (integer(1, 9).is_numeric, integer(1, 9).is_whole) == (True, True)
    assert (real.is_numeric, real.is_whole) == (True, False)
    assert integer(1, 9, starts=(1, 4)).is_binned


@pytest.mark.parametrize(
    ("unit", "position", "value", "shown"),
    [
        (Unit(kind="integer"), -5, -5, "-5"),
        (Unit(kind="real", step=Decimal("0.01")), 2990, 29.9, "29.90"),
        (Unit(kind="real", step=Decimal("0.25")), -1, -0.25, "-0.25"),
        (Unit(kind="real", step=Decimal(20)), 3, 60.0, "60"),
        (Unit(kind="date"), 18_262, date(2020, 1, 1), "2020-01-01"),
        (
            Unit(kind="datetime", step=Decimal(3600)),
            -1,
            datetime(1969, 12, 31, 23),
            "1969-12-31T23:00:00",
        ),
    ],
)
def test_a_unit_says_the_value_at_a_position_and_back(unit, position, value, shown):
    assert unit.value_at(position) == value
    assert type(unit.value_at(position)) is type(value)
    assert unit.place_of(value) == position
    assert unit.show(position) == shown
    assert unit.values(np.array([position])).to_list() == [value]
    with pytest.raises(TypeError):
        unit.place_of("3")


def test_a_value_may_lie_between_two_positions():
    assert Unit(kind="real", step=Decimal("0.1")).place_of(0.25) == Fraction(5, 2)
    assert Unit(kind="date").place_of(datetime(1970, 1, 2, 12)) == Fraction(3, 2)
    noon = datetime(1970, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert Unit(kind="datetime").place_of(noon) == 12 * 3600
    assert noon.astimezone(UTC).hour == 12
