"""Identifiers that ascend with other columns: each number once, in order, whatever the blocks."""

import numpy as np
import polars as pl
import pytest

from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records
from deniable.data.sorted_numbers import number_along_columns, place_in_release, spread_places
from deniable.errors import SchemaError
from deniable.schema.schema import Schema

SCHEMA = """
format = 1
[[attribute]]
name = "order"
type = "identifier"
sorted_by = ["year", "month"]
min = 100
max = 999
[[attribute]]
name = "month"
type = "integer"
min = 1
max = 12
[[attribute]]
name = "year"
type = "integer"
min = 2000
max = 2004
[[attribute]]
name = "code"
type = "identifier"
format = "C{:05d}"
sorted_by = ["month"]
"""


def places_of(total, block):
    """The places of all records, block by block, and the quantile of each in its block."""
    starts = range(0, total, block)
    sizes = [min(block, total - start) for start in starts]
    places = [
        place_in_release(np.arange(size), number, total, block) for number, size in enumerate(sizes)
    ]
    quantiles = [(np.arange(size) + 0.5) / size for size in sizes]
    return np.concatenate(places), np.concatenate(quantiles)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 16, 100, 300])
def test_every_place_is_taken_once_in_the_order_of_quantiles(block):
    for total in [*range(1, 50), 99, 100, 101, 257]:
        places, quantiles = places_of(total, block)
        assert np.array_equal(np.sort(places), np.arange(total))
        ordered = quantiles[np.argsort(places)]
        assert (np.diff(ordered) > -1e-12).all()


@pytest.mark.parametrize("count", [1, 40, 41, 43, 400, 10**14])
def test_numbers_are_distinct_ascending_and_within_bounds_if_there_are_enough(count):
    total = 41
    numbers = spread_places(np.arange(total), total, range(7, 7 + count))
    assert numbers[0] == 7
    assert (np.diff(numbers) > 0).all()
    assert (numbers[-1] < 7 + count) == (count >= total)
    if count >= total:
        gaps = np.diff(numbers)
        assert gaps.max() - gaps.min() <= 1, "evenly spread"
        assert 7 + count - numbers[-1] <= gaps.max() + 1


def test_products_of_large_numbers_do_not_overflow():
    total = 10**9
    last = spread_places(np.array([0, total - 1]), total, range(10**18))
    assert last.tolist() == [0, (total - 1) * 10**9]


def test_numbers_ascend_with_the_columns_across_blocks():
    """Each block has a half of all values; its records have about every second number."""
    schema = Schema.parse(SCHEMA)
    codes = np.random.default_rng(0).integers(0, [12, 5], size=(400, 2)).astype(np.uint16)
    frames = [
        decode_records(
            Codec(schema), codes[start : start + 250], first_record=start + 1, total=400, block=250
        )
        for start in (0, 250)
    ]
    frame = pl.concat(frames).sort("order")
    assert frame["order"].n_unique() == 400
    assert frame["order"].is_between(100, 999).all()
    for own in frames:
        assert own.sort("order").select("year", "month").rows() == sorted(
            own.select("year", "month").rows()
        )
    months = frame["year"] * 12 + frame["month"]
    assert np.corrcoef(np.arange(400), months.rank())[0, 1] > 0.99
    codes_of = frame.sort("code")["code"]
    assert codes_of[0] == "C00001"
    assert codes_of[-1] == "C00400"
    assert np.corrcoef(np.arange(400), frame.sort("code")["month"].rank())[0, 1] > 0.99


def test_numbers_are_the_same_for_all_records_as_block_by_block():
    schema = Schema.parse(SCHEMA)
    codes = np.random.default_rng(1).integers(0, [12, 5], size=(101, 2)).astype(np.uint16)
    options = {"total": 101, "block": 25}
    whole = number_along_columns(codes, schema, first_record=1, **options)
    assert set(whole) == {"order", "code"}
    for start in range(0, 101, 25):
        part = number_along_columns(
            codes[start : start + 25], schema, first_record=start + 1, **options
        )
        for name, numbers in part.items():
            assert np.array_equal(numbers, whole[name][start : start + 25])
    assert not number_along_columns(codes[:0], schema, first_record=1, total=0, block=25)


def test_a_schema_keeps_the_order_of_identifiers():
    schema = Schema.parse(SCHEMA)
    assert Schema.parse(schema.text()) == schema
    assert 'sorted_by = ["year", "month"]\nmin = 100\nmax = 999' in schema.text()


def test_the_largest_number_is_allowed():
    schema = Schema.parse(SCHEMA.replace("max = 999", f"max = {10**18}"))
    assert Schema.parse(schema.text()) == schema


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('["year", "month"]', '["code"]', 'must name learnt columns of the schema, not "code"'),
        ('["year", "month"]', '["day"]', 'must name learnt columns of the schema, not "day"'),
        ('["year", "month"]', '["year", "year"]', "sorted_by names a column twice"),
        ('["year", "month"]', '"year"', "sorted_by must be a list"),
        ('["year", "month"]', "[2000]", "sorted_by must list names"),
        ('sorted_by = ["year", "month"]', "", "min and max need sorted_by"),
        ("max = 999", "", "min and max must be whole numbers, both or neither"),
        ("max = 999", "max = 9.5", "min and max must be whole numbers, both or neither"),
        ("max = 999", "max = 99", "min not above max"),
        ("min = 100", "min = -1", "from 0 to 10"),
        ("max = 999", f"max = {10**18 + 1}", "from 0 to 10"),
        ("min = 100", 'format = "uuid"\nmin = 100', "sorted_by is for identifiers with numbers"),
        ("min = 100", 'release = "omit"\nmin = 100', "sorted_by is for identifiers with numbers"),
    ],
)
def test_an_order_that_cannot_be_is_refused(old, new, why):
    assert SCHEMA.count(old) == 1
    with pytest.raises(SchemaError, match=why):
        Schema.parse(SCHEMA.replace(old, new))
