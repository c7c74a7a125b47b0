"""Heaps: how round a number is, beside its bin; and numbers drawn as round as that says."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from deniable.data.attributes import Attribute
from deniable.data.bin_heaps import Heaps
from deniable.data.bins import digit_starts
from deniable.data.codec import Codec
from deniable.data.schema import Schema
from deniable.errors import SchemaError
from deniable.randomness import Keyed

STEPS = (5, 10, 100, 500)


def column(values, starts, heaps=STEPS, **options):
    return Attribute(name="x", kind="integer", values=values, starts=starts, heaps=heaps, **options)


def by_digits(low, high, **options):
    return column(range(low, high + 1), digit_starts(range(low, high + 1), 2), **options)


COLUMNS = [
    by_digits(-1_500, 20_000),
    column(range(-37, 3_000), range(-37, 3_000, 130)),
    column(range(1_003, 2_009), [1_003, 1_004, 1_005, 1_011, 1_600]),
]


def level_of(attribute, position, width):
    """The definition: how many steps, none longer than the bin, divide the number."""
    return sum(position % step == 0 for step in attribute.heaps if step <= width)


@pytest.mark.parametrize("attribute", COLUMNS)
def test_a_number_has_its_bin_and_the_number_of_steps_that_divide_it(attribute):
    codes = Codec((attribute,)).encode(pl.DataFrame({"x": attribute.values}))
    widths = attribute.widths[codes[:, 1]]
    pairs = zip(attribute.values, widths, strict=True)
    assert codes[:, 0].tolist() == [level_of(attribute, p, w) for p, w in pairs]


@pytest.mark.parametrize("attribute", COLUMNS)
def test_all_numbers_of_a_bin_and_a_level_are_drawn_and_no_others(attribute):
    codec = Codec((attribute,))
    codes = np.repeat(codec.encode(pl.DataFrame({"x": attribute.values})), 40, axis=0)
    drawn = codec.decode(codes, Keyed(1).at("values"))
    assert (codec.encode(drawn) == codes).all()
    # Each of n numbers is drawn 40 n times among n: the chance that one is missed is below e^-40.
    assert sorted(set(drawn["x"])) == list(attribute.values)


def test_numbers_of_one_bin_and_level_are_equally_likely():
    attribute = column(range(5_000), range(0, 5_000, 1_000))
    codes = np.tile(np.array([[3, 2]], dtype=np.uint16), (90_000, 1))
    drawn = Codec((attribute,)).decode(codes, Keyed(2).at("values"))["x"]
    found = drawn.value_counts().sort("x")
    assert found["x"].to_list() == [p for p in range(2_000, 3_000, 100) if p % 500]
    assert stats.chisquare(found["count"].to_numpy()).pvalue > 1e-6


def test_a_level_that_a_bin_has_not_is_served_by_one_that_it_has():
    """12 is alone; 1,200 to 1,299 hold one full hundred, and no 500 that is not a hundred."""
    attribute = by_digits(0, 9_999)
    codec = Codec((attribute,))
    bins = codec.encode(pl.DataFrame({"x": [12, 1_234]}))[:, 1]
    asked = np.array([(level, code) for code in bins for level in range(5)], dtype=np.uint16)
    drawn = codec.decode(asked, Keyed(3).at("values"))["x"].to_list()
    assert drawn[:5] == [12] * 5
    assert [drawn[5] % 5 > 0, drawn[6] % 10, drawn[7] % 10, drawn[7] % 100 > 0] == [
        True,
        5,
        0,
        True,
    ]
    assert drawn[8:] == [1_200, 1_200]


def test_what_is_missing_has_no_level_and_stays_missing():
    codec = Codec((by_digits(0, 9_999, missing=("", "-8")),))
    codes = codec.encode(pl.DataFrame({"x": ["", "-8", "1500", "7"]}))
    assert codes[:3, 0].tolist() == [0, 0, 3]
    decoded = codec.decode(codes, Keyed(4).at("values"))["x"].to_list()
    assert decoded == [None, None, 1_500, 7]


def test_numbers_are_clipped_before_they_are_asked_how_round_they_are():
    codec = Codec((by_digits(100, 9_000, outside="clip"),))
    assert codec.encode(pl.DataFrame({"x": [53]})).tolist() == [[2, 0]]


TEXT = """
format = 1
rows_max = 1_000

[[attribute]]
name = "wage"
type = "real"
min = 0.00
max = 9000.00
decimals = 2
bins = { width = 500.00 }
heaps = [1.00, 100.00]
"""


def test_a_schema_says_heaps_in_numbers_and_they_are_learnt_before_the_column():
    schema = Schema.parse(TEXT)
    assert schema.attributes[1].heaps == (100, 10_000)
    assert schema.names == ("wage is a multiple of", "wage")
    assert schema.attributes[0].values == ("none of these", "1.00", "100.00")
    assert list(schema.dtypes) == ["wage"]
    assert "heaps = [1.00, 100.00]" in schema.text()
    assert Schema.parse(schema.text()) == schema


@pytest.mark.parametrize(
    ("heaps", "message"),
    [
        ("[0.005]", "multiples of 0.01"),
        ("[0.01, 1]", "ascend from above one step"),
        ("[10, 1]", "ascend"),
        ("[10, 25]", "each a multiple of the one before"),
        ("10", "is not a list"),
    ],
)
def test_heaps_that_are_no_ladder_are_refused(heaps, message):
    with pytest.raises(SchemaError, match=message):
        Schema.parse(TEXT.replace("[1.00, 100.00]", heaps))


def test_heaps_are_for_bins_of_several_numbers():
    with pytest.raises(SchemaError, match="numbers in bins"):
        Heaps(column(range(100), range(100)))


def test_two_columns_are_not_taken_for_one():
    twin = Attribute(name="x is a multiple of", kind="categorical", values=("a", "b"))
    with pytest.raises(SchemaError, match="more than once"):
        Codec((by_digits(0, 9_999), twin))
