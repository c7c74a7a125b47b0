"""Heaping: the roundness of numbers is encoded next to their bin, and restored on decoding."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from deniable.data.codec import Codec
from deniable.data.complete_records import record_dtypes
from deniable.errors import SchemaError
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from deniable.schema.bins import leading_digit_starts
from deniable.schema.heaping import Heaping
from deniable.schema.schema import Schema

STEPS = (5, 10, 100, 500)


def column(values, starts, heaps=STEPS, **options):
    return Attribute(name="x", kind="integer", values=values, starts=starts, heaps=heaps, **options)


def by_digits(low, high, **options):
    return column(range(low, high + 1), leading_digit_starts(range(low, high + 1), 2), **options)


COLUMNS = [
    by_digits(-1_500, 20_000),
    column(range(-37, 3_000), range(-37, 3_000, 130)),
    column(range(1_003, 2_009), [1_003, 1_004, 1_005, 1_011, 1_600]),
]


def level_of(attribute, position, width):
    """The definition: the number of steps, none longer than the bin, that divide the number."""
    return sum(position % step == 0 for step in attribute.heaps if step <= width)


@pytest.mark.parametrize("attribute", COLUMNS)
def test_roundness_is_the_number_of_steps_that_divide_a_number(attribute):
    codes = Codec(Schema((attribute,))).encode(pl.DataFrame({"x": attribute.values}))
    widths = attribute.widths[codes[:, 1]]
    pairs = zip(attribute.values, widths, strict=True)
    assert codes[:, 0].tolist() == [level_of(attribute, p, w) for p, w in pairs]


@pytest.mark.parametrize("attribute", COLUMNS)
def test_exactly_the_numbers_of_a_bin_and_a_level_are_drawn(attribute):
    codec = Codec(Schema((attribute,)))
    codes = np.repeat(codec.encode(pl.DataFrame({"x": attribute.values})), 40, axis=0)
    drawn = codec.decode(codes, Keyed(1).at("values"))
    assert (codec.encode(drawn) == codes).all()
    # n numbers, 40 n draws: the probability that a given number is missed is below e^-40.
    assert sorted(set(drawn["x"])) == list(attribute.values)


def test_numbers_of_one_bin_and_level_are_equally_likely():
    attribute = column(range(5_000), range(0, 5_000, 1_000))
    codes = np.tile(np.array([[3, 2]], dtype=np.uint16), (90_000, 1))
    drawn = Codec(Schema((attribute,))).decode(codes, Keyed(2).at("values"))["x"]
    found = drawn.value_counts().sort("x")
    assert found["x"].to_list() == [p for p in range(2_000, 3_000, 100) if p % 500]
    assert stats.chisquare(found["count"].to_numpy()).pvalue > 1e-6


def test_a_level_without_numbers_is_replaced_by_the_nearest_one():
    """The bin of 12 has one number. 1,200 to 1,299 has one multiple of 100, and none of 500."""
    attribute = by_digits(0, 9_999)
    codec = Codec(Schema((attribute,)))
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


def test_a_missing_cell_has_level_0_and_stays_missing():
    codec = Codec(Schema((by_digits(0, 9_999, missing=("", "-8")),)))
    codes = codec.encode(pl.DataFrame({"x": ["", "-8", "1500", "7"]}))
    assert codes[:3, 0].tolist() == [0, 0, 3]
    decoded = codec.decode(codes, Keyed(4).at("values"))["x"].to_list()
    assert decoded == [None, None, 1_500, 7]


def test_numbers_are_clipped_before_their_roundness_is_computed():
    codec = Codec(Schema((by_digits(100, 9_000, outside="clip"),)))
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


def test_the_roundness_attribute_precedes_its_column():
    schema = Schema.parse(TEXT)
    assert schema.attributes[1].heaps == (100, 10_000)
    assert schema.names == ("wage is a multiple of", "wage")
    assert schema.attributes[0].values == ("none of these", "1.00", "100.00")
    assert list(record_dtypes(schema.columns)) == ["wage"]
    assert "heaps = [1.00, 100.00]" in schema.text()
    assert Schema.parse(schema.text()) == schema


@pytest.mark.parametrize(
    ("heaps", "message"),
    [
        ("[0.005]", "multiples of 0.01"),
        ("[0.01, 1]", "larger than one step of the grid"),
        ("[10, 1]", "ascend"),
        ("[10, 25]", "each be a multiple of the one before"),
        ("10", "must be a list"),
    ],
)
def test_invalid_heaps_are_rejected(heaps, message):
    with pytest.raises(SchemaError, match=message):
        Schema.parse(TEXT.replace("[1.00, 100.00]", heaps))


def test_heaps_need_bins_of_several_numbers():
    with pytest.raises(SchemaError, match="numbers in bins"):
        Heaping(column(range(100), range(100)))


def test_a_column_cannot_have_the_name_of_a_roundness_attribute():
    twin = Attribute(name="x is a multiple of", kind="categorical", values=("a", "b"))
    with pytest.raises(SchemaError, match="more than once"):
        Schema((by_digits(0, 9_999), twin))
