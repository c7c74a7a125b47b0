"""Contingency tables equal the counts taken record by record, on every code path."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.counting import contingency
from deniable.counting.contingency import (
    ContingencyTable,
    Query,
    QueryAxis,
    cell_indices,
    count_cells,
    table_shape,
)
from deniable.errors import ConfigError
from worlds import attributes, codes_of, plain_attribute, property_test, schemas, tables

pytestmark = pytest.mark.slow


def value_at(schema, record, axis: QueryAxis) -> int:
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
def query_cases(draw):
    """A schema, a table that may be empty, and a query of no, one or more different columns."""
    schema = draw(schemas())
    columns = draw(st.lists(st.integers(0, len(schema) - 1), unique=True, max_size=3))
    query = tuple(QueryAxis(column, bucketed=draw(st.booleans())) for column in columns)
    return schema, draw(tables(schema)), query


def assert_sound(answer: ContingencyTable) -> None:
    """Cells ascending, none empty: what the class promises."""
    assert (np.diff(answer.cells) > 0).all()
    assert (answer.counts > 0).all()
    assert answer.cells.dtype == answer.counts.dtype == np.int64


@property_test
@given(query_cases())
def test_every_cell_is_counted(question):
    schema, table, query = question
    answer = count_cells(schema, codes_of(table, len(schema)), query)
    assert_sound(answer)
    assert answer.records == len(table)
    assert answer.shape == table_shape(schema, query)
    np.testing.assert_array_equal(answer.dense(), dense_by_definition(schema, table, query))


@property_test
@given(query_cases())
def test_a_table_too_large_for_an_array_is_counted_the_same(question):
    """Force the sparse path: no table counts as small, and there is at most one row."""
    schema, table, query = question
    few = codes_of(table[:1], len(schema))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contingency, "_CACHED_TABLE_CELLS", 0)
        sparse = count_cells(schema, few, query)
    assert_sound(sparse)
    np.testing.assert_array_equal(sparse.dense(), dense_by_definition(schema, table[:1], query))


def test_the_sparse_path_is_taken_and_sorts():
    """Three attributes of 300 values make 2.7·10^7 cells: too many for a dense array."""
    schema = [plain_attribute(f"x{i}", 300) for i in range(3)]
    table = [(299, 0, 5), (0, 1, 2), (299, 0, 5), (0, 1, 1)]
    answer = count_cells(schema, codes_of(table, 3), (QueryAxis(0), QueryAxis(1), QueryAxis(2)))
    by_hand = Counter((x * 300 + y) * 300 + z for x, y, z in table)
    assert answer.cells.tolist() == sorted(by_hand)
    assert answer.counts.tolist() == [by_hand[cell] for cell in sorted(by_hand)]


@property_test
@given(query_cases(), st.data())
def test_coarsening_equals_counting_coarser_codes(question, data):
    schema, table, query = question
    answer = count_cells(schema, codes_of(table, len(schema)), query)
    if not query:
        return
    axis = data.draw(st.integers(0, len(query) - 1))
    length = answer.shape[axis]
    labels = data.draw(st.lists(st.integers(0, length - 1), min_size=length, max_size=length))
    numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    groups = np.array([numbers[label] for label in labels])

    merged = answer.coarsen(axis, groups)

    assert_sound(merged)
    fine = np.moveaxis(answer.dense(), axis, 0)
    coarse = np.zeros((len(numbers), *fine.shape[1:]), dtype=np.int64)
    for value in range(length):
        coarse[groups[value]] += fine[value]
    np.testing.assert_array_equal(merged.dense(), np.moveaxis(coarse, 0, axis))


@property_test
@given(query_cases())
def test_coarsening_to_buckets_equals_the_bucketed_query(question):
    """``measure_entropies`` relies on this: coarser tables follow from finer ones."""
    schema, table, query = question
    codes = codes_of(table, len(schema))
    merged = count_cells(schema, codes, tuple(QueryAxis(axis.attribute) for axis in query))
    for place, axis in enumerate(query):
        if axis.bucketed:
            merged = merged.coarsen(place, schema[axis.attribute].bucket_of)
    asked = count_cells(schema, codes, query)
    assert merged.shape == asked.shape
    np.testing.assert_array_equal(merged.cells, asked.cells)
    np.testing.assert_array_equal(merged.counts, asked.counts)


@property_test
@given(query_cases())
def test_a_margin_sums_out_every_other_column(question):
    schema, table, query = question
    answer = count_cells(schema, codes_of(table, len(schema)), query)
    for axis in range(len(query)):
        margin = answer.margin(axis)
        assert_sound(margin)
        expected = dense_by_definition(schema, table, (query[axis],))
        np.testing.assert_array_equal(margin.dense(), expected)


@property_test
@given(query_cases(), st.data())
def test_counts_of_two_tables_add_up(question, data):
    schema, table, query = question
    other = data.draw(tables(schema))
    one, two, both = (
        count_cells(schema, codes_of(t, len(schema)), query) for t in (table, other, table + other)
    )
    summed = one + two
    assert_sound(summed)
    np.testing.assert_array_equal(summed.cells, both.cells)
    np.testing.assert_array_equal(summed.counts, both.counts)


@property_test
@given(attributes())
def test_every_code_has_a_cell_of_its_own(attribute):
    codes = codes_of([(code,) for code in range(attribute.size)], 1)
    assert cell_indices([attribute], codes, (QueryAxis(0),)).tolist() == list(range(attribute.size))


def test_a_table_with_too_many_cells_to_index_is_refused():
    """Four attributes of 65,535 values make 2^64 cells; indices have 63 bits."""
    schema = [plain_attribute(f"x{i}", 2**16 - 1) for i in range(4)]
    with pytest.raises(ConfigError, match="too large to count"):
        count_cells(schema, codes_of([(0, 0, 0, 0)], 4), tuple(QueryAxis(i) for i in range(4)))
