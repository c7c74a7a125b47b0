"""Bins and buckets: parsed from schema.toml, and written back."""

from itertools import pairwise

import numpy as np
import pytest

from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.bins import (
    bins_as_toml,
    buckets_as_toml,
    default_bin_starts,
    equal_bin_starts,
    leading_digit_starts,
    parse_bins,
    parse_buckets,
    parse_position,
    with_default_buckets,
)
from deniable.schema.grid import Grid
from deniable.schema.schema import Schema

INTEGERS = Grid(kind="integer")


def integer(high, **options):
    return Attribute(name="n", kind="integer", values=range(high + 1), **options)


@pytest.mark.parametrize(
    ("table", "starts"),
    [
        (None, [*range(13)]),
        ({"width": 5}, [0, 5, 10]),
        ({"edges": [2, 7]}, [0, 2, 7]),
        ({"digits": 2}, [*range(13)]),
        ({"width": 5, "alone": [7]}, [0, 5, 7, 8, 10]),
        ({"width": 6, "alone": [0, 12]}, [0, 1, 6, 12]),
    ],
)
def test_bins_are_given_by_width_edges_or_digits(table, starts):
    assert list(parse_bins(table, range(13), INTEGERS, "n")) == starts


def test_a_long_range_has_a_thousand_bins_by_default():
    assert default_bin_starts(range(1_000)) == range(1_000)
    starts = default_bin_starts(range(12_345))
    assert len(starts) == 1_000
    assert set(np.diff([*starts, 12_345])) == {12, 13}


@pytest.mark.parametrize(
    ("attribute", "table"),
    [
        (integer(12), {}),
        (integer(12, starts=range(0, 13, 5)), {"width": "5"}),
        (integer(12, starts=equal_bin_starts(range(13), 5)), {"edges": ["2", "5", "7", "10"]}),
        (integer(999, starts=leading_digit_starts(range(1_000), 2)), {"digits": "2"}),
        (integer(12, starts=(0, 2, 7)), {"edges": ["2", "7"]}),
        (integer(22, starts=(0, 5, 7, 8, 10, 15, 20)), {"width": "5", "alone": ["7"]}),
        (integer(21, starts=(0, 1, 5, 10, 15, 20, 21)), {"width": "5", "alone": ["0", "20", "21"]}),
        (
            integer(999, starts=sorted({*leading_digit_starts(range(1_000), 2), 555, 556})),
            {"digits": "2", "alone": ["555"]},
        ),
        (Attribute(name="t", kind="categorical", values=("a",)), {}),
    ],
)
def test_bins_are_written_in_the_shortest_form(attribute, table):
    assert bins_as_toml(attribute) == table


@pytest.mark.parametrize(
    ("buckets", "groups", "table"),
    [
        (None, tuple(i // 10 for i in range(100)), {}),
        ({"width": 400}, tuple(i // 40 for i in range(100)), {"width": "400"}),
        ({"width": 395}, tuple(i // 40 for i in range(100)), {"width": "400"}),
        ({"width": 1_000}, (0,) * 100, {"width": "1000"}),
    ],
)
def test_buckets_of_bins_are_parsed_and_written(buckets, groups, table):
    """A hundred bins of ten; by default in ten buckets."""
    attribute = parse_buckets(integer(999, starts=range(0, 1_000, 10)), buckets)
    assert attribute.groups == groups
    assert buckets_as_toml(attribute) == table


@pytest.mark.parametrize(
    "bins", [None, {"edges": [7, 200, 5_000, 90_000]}, {"digits": 2}, {"width": 70, "alone": [0]}]
)
@pytest.mark.parametrize("width", [1, 33, 1_250, 80_000, 10**7])
def test_buckets_of_a_width_survive_a_round_trip_whatever_the_bins(bins, width):
    """The width is rounded up to the next edge, so that the buckets show it."""
    values = range(123_457)
    starts = parse_bins(bins, values, INTEGERS, "n")
    attribute = Attribute(name="n", kind="integer", values=values, starts=starts)
    bucketed = attribute.with_bucket_width(width)
    assert list(bucketed.groups) == sorted(bucketed.groups)
    assert Schema.parse(Schema((bucketed,)).text()).attributes[0].groups == bucketed.groups


def test_buckets_that_a_schema_cannot_express_are_refused():
    with pytest.raises(SchemaError, match="not of one width"):
        buckets_as_toml(integer(39, starts=range(0, 40, 10), groups=(0, 1, 1, 1)))


def test_only_numeric_attributes_with_many_codes_are_bucketed_by_default():
    assert not with_default_buckets(integer(999)).is_bucketed
    assert not with_default_buckets(integer(199, starts=range(0, 200, 10))).is_bucketed
    assert with_default_buckets(integer(209, starts=range(0, 210, 10))).buckets == 10


def test_buckets_of_an_ordered_attribute_may_have_a_width():
    attribute = Attribute(name="o", kind="ordered", values=tuple("abcde"))
    pairs = parse_buckets(attribute, {"width": 2})
    assert pairs.groups == (0, 0, 1, 1, 2)
    assert buckets_as_toml(pairs) == {"width": "2"}
    listed = parse_buckets(attribute, [["a", "e"], ["b", "c", "d"]])
    assert buckets_as_toml(listed) == {}


@pytest.mark.parametrize(
    ("value", "position"),
    [("1970-01-02", 1), ("1970-01-02T12:00:00", None), ("yesterday", None), (3, None)],
)
def test_a_date_lies_on_the_grid_or_has_no_position(value, position):
    assert parse_position(value, Grid(kind="date")) == position


@pytest.mark.parametrize(("low", "high"), [(0, 999), (-350, 12_345), (7, 7), (-99, -3), (0, 10**6)])
@pytest.mark.parametrize("digits", [1, 2])
def test_numbers_with_equal_leading_digits_share_a_bin(low, high, digits):
    """Compare with the definition: all but the leading digits replaced by zeros."""

    def leading_digits(number):
        text = str(abs(number))
        cut = text[:digits] + "0" * (len(text) - digits)
        return (number < 0, int(cut))

    starts = leading_digit_starts(range(low, high + 1), digits)
    assert starts[0] == low
    sample = sorted(
        {*range(low, min(high, low + 3_000) + 1), *range(max(low, high - 3_000), high + 1)}
    )
    bins = np.searchsorted(starts, sample, side="right")
    for (one, two), (a, b) in zip(pairwise(sample), pairwise(bins), strict=True):
        if two == one + 1:
            assert (a == b) == (leading_digits(one) == leading_digits(two))


@pytest.mark.parametrize("alone", [7, [], [7, 13], [-1], [0.5], ["x"], [None]])
def test_values_alone_must_be_possible_values(alone):
    with pytest.raises(SchemaError, match="alone must be a list of possible values"):
        parse_bins({"width": 5, "alone": alone}, range(13), INTEGERS, "n")


def test_too_many_bins_are_refused_before_they_are_listed():
    with pytest.raises(SchemaError, match="bins; at most 65,535 are supported"):
        parse_bins({"width": 1, "alone": [5]}, range(10**12), INTEGERS, "n")


def test_edges_have_no_values_alone():
    with pytest.raises(SchemaError, match="edges have no alone"):
        parse_bins({"edges": [2], "alone": [7]}, range(13), INTEGERS, "n")
    for unknown in ({"alone": [7]}, {"count": 3}):
        with pytest.raises(SchemaError, match=r"bins must be \{ width = … \}, \{ edges = "):
            parse_bins(unknown, range(13), INTEGERS, "n")


def test_values_alone_survive_a_round_trip():
    text = 'name = "n"\ntype = "real"\nmin = -5\nmax = 90000\ndecimals = 2\n'
    text += "bins = { digits = 2, alone = [0, 1250.5] }"
    schema = Schema.parse(f"format = 1\n[[attribute]]\n{text}")
    starts = schema.attributes[0].starts
    assert {0, 1, 125_050, 125_051} <= set(starts), "in hundredths"
    written = schema.text()
    assert "bins = { digits = 2, alone = [1250.50] }" in written, "0 is alone by its digits"
    assert Schema.parse(written) == schema


def test_few_bins_of_a_huge_range_are_written_without_listing_its_values():
    """A rule with more bins than there are is another rule: its bins would not fit into memory."""
    text = 'name = "n"\ntype = "integer"\nmin = 0\nmax = 1_000_000_000_000_000\n'
    schema = Schema.parse(f"format = 1\n[[attribute]]\n{text}bins = {{ edges = [1, 2, 9] }}")
    assert "bins = { edges = [1, 2, 9] }" in schema.text()
    assert Schema.parse(schema.text()) == schema


def test_bins_by_leading_digits_survive_a_round_trip():
    text = 'name = "n"\ntype = "real"\nmin = -5\nmax = 90000\ndecimals = 2\nbins = { digits = 2 }'
    schema = Schema.parse(f"format = 1\n[[attribute]]\n{text}")
    assert "bins = { digits = 2 }" in schema.text()
    assert Schema.parse(schema.text()) == schema
    for other in ("1", "3", "2.0", "true"):
        with pytest.raises(SchemaError, match="digits must be 2"):
            Schema.parse(
                f"format = 1\n[[attribute]]\n{text.replace('digits = 2', f'digits = {other}')}"
            )
