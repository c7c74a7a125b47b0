"""A tally is a group-by: every way to make one gives what counting record by record gives."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import ConfigError
from deniable.model import cells
from deniable.model.cells import Axis, Query, Tally, number_cells, shape_of, tally
from worlds import attributes, codes_of, plain_attribute, property_test, schemas, tables


def value_at(schema, record, axis: Axis) -> int:
    code = record[axis.attribute]
    return schema[axis.attribute].groups[code] if axis.bucketed else code


def dense_by_definition(schema, table, query: Query) -> np.ndarray:
    """The table of ``query``, counted record by record."""
    lengths = [
        len(set(schema[axis.attribute].groups)) if axis.bucketed else schema[axis.attribute].size
        for axis in query
    ]
    dense = np.zeros(lengths, dtype=np.int64)
    for cell in product(*[range(length) for length in lengths]):
        dense[cell] = sum(tuple(value_at(schema, r, axis) for axis in query) == cell for r in table)
    return dense


@st.composite
def questions(draw):
    """A schema, a table that may be empty, and a query of no, one or more different columns."""
    schema = draw(schemas())
    columns = draw(st.lists(st.integers(0, len(schema) - 1), unique=True, max_size=3))
    query = tuple(Axis(column, bucketed=draw(st.booleans())) for column in columns)
    return schema, draw(tables(schema)), query


def assert_sound(answer: Tally) -> None:
    """Cells ascending, none empty: what the class promises."""
    assert (np.diff(answer.cells) > 0).all()
    assert (answer.counts > 0).all()
    assert answer.cells.dtype == answer.counts.dtype == np.int64


@property_test
@given(questions())
def test_a_tally_counts_every_cell(question):
    schema, table, query = question
    answer = tally(schema, codes_of(table, len(schema)), query)
    assert_sound(answer)
    assert answer.records == len(table)
    assert answer.shape == shape_of(schema, query)
    np.testing.assert_array_equal(answer.dense(), dense_by_definition(schema, table, query))


@property_test
@given(questions())
def test_a_table_too_large_for_an_array_is_counted_the_same(question):
    """The sparse path, forced: no table is small, and the rows are fewer than half the cells."""
    schema, table, query = question
    few = codes_of(table[:1], len(schema))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_SMALL_TABLE", 0)
        sparse = tally(schema, few, query)
    assert_sound(sparse)
    np.testing.assert_array_equal(sparse.dense(), dense_by_definition(schema, table[:1], query))


def test_the_sparse_path_is_taken_and_sorts():
    """Three attributes of 300 values make 2.7·10^7 cells: far above the size of an array."""
    schema = [plain_attribute(f"x{i}", 300) for i in range(3)]
    table = [(299, 0, 5), (0, 1, 2), (299, 0, 5), (0, 1, 1)]
    answer = tally(schema, codes_of(table, 3), (Axis(0), Axis(1), Axis(2)))
    by_hand = Counter((x * 300 + y) * 300 + z for x, y, z in table)
    assert answer.cells.tolist() == sorted(by_hand)
    assert answer.counts.tolist() == [by_hand[cell] for cell in sorted(by_hand)]


@property_test
@given(questions(), st.data())
def test_merging_codes_is_counting_coarser_codes(question, data):
    schema, table, query = question
    answer = tally(schema, codes_of(table, len(schema)), query)
    if not query:
        return
    axis = data.draw(st.integers(0, len(query) - 1))
    length = answer.shape[axis]
    labels = data.draw(st.lists(st.integers(0, length - 1), min_size=length, max_size=length))
    numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    groups = np.array([numbers[label] for label in labels])

    merged = answer.merge(axis, groups)

    assert_sound(merged)
    fine = np.moveaxis(answer.dense(), axis, 0)
    coarse = np.zeros((len(numbers), *fine.shape[1:]), dtype=np.int64)
    for value in range(length):
        coarse[groups[value]] += fine[value]
    np.testing.assert_array_equal(merged.dense(), np.moveaxis(coarse, 0, axis))


@property_test
@given(questions())
def test_merging_into_buckets_is_the_bucketed_query(question):
    """What ``measure_entropies`` relies on: coarser tables follow from finer ones."""
    schema, table, query = question
    codes = codes_of(table, len(schema))
    merged = tally(schema, codes, tuple(Axis(axis.attribute) for axis in query))
    for place, axis in enumerate(query):
        if axis.bucketed:
            merged = merged.merge(place, schema[axis.attribute].bucket_of)
    asked = tally(schema, codes, query)
    assert merged.shape == asked.shape
    np.testing.assert_array_equal(merged.cells, asked.cells)
    np.testing.assert_array_equal(merged.counts, asked.counts)


@property_test
@given(questions())
def test_a_margin_sums_out_every_other_column(question):
    schema, table, query = question
    answer = tally(schema, codes_of(table, len(schema)), query)
    for axis in range(len(query)):
        margin = answer.margin(axis)
        assert_sound(margin)
        expected = dense_by_definition(schema, table, (query[axis],))
        np.testing.assert_array_equal(margin.dense(), expected)


@property_test
@given(questions(), st.data())
def test_tallies_of_two_tables_add_up(question, data):
    schema, table, query = question
    other = data.draw(tables(schema))
    one, two, both = (
        tally(schema, codes_of(t, len(schema)), query) for t in (table, other, table + other)
    )
    summed = one + two
    assert_sound(summed)
    np.testing.assert_array_equal(summed.cells, both.cells)
    np.testing.assert_array_equal(summed.counts, both.counts)


@property_test
@given(attributes())
def test_every_code_has_a_cell_of_its_own(attribute):
    codes = codes_of([(code,) for code in range(attribute.size)], 1)
    assert number_cells([attribute], codes, (Axis(0),)).tolist() == list(range(attribute.size))


def test_a_table_without_cell_numbers_is_refused():
    """Four attributes of 65,535 values make 2^64 cells; numbers are of 63 bits."""
    schema = [plain_attribute(f"x{i}", 2**16 - 1) for i in range(4)]
    with pytest.raises(ConfigError, match="too large to count"):
        tally(schema, codes_of([(0, 0, 0, 0)], 4), tuple(Axis(i) for i in range(4)))
