"""Columns of a table and of a schema: messages name what differs, and the nearest name."""

import pytest

from deniable.data.declared_columns import require_columns
from deniable.errors import DataError
from deniable.schema.attribute import Attribute
from deniable.schema.formula import Formula
from deniable.schema.unmodelled_columns import Computed, Identifier

COLUMNS = (
    Attribute(name="age", kind="categorical", values=("a",)),
    Attribute(name="income", kind="categorical", values=("a",)),
    Identifier(name="id", release="omit"),
    Computed(name="total", rule=Formula("income")),
)


@pytest.mark.parametrize("names", [("age", "income"), ("total", "income", "id", "age")])
def test_columns_may_be_in_any_order_and_some_may_be_absent(names):
    require_columns(COLUMNS, names, table_name="t.csv")


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("age", "Incomes"), ['no column "income"', '"Incomes" is like "income"']),
        (("age", "zzz"), ['no column "income"', 'It has "zzz"']),
        (("age",), ['no column "income". Correct']),
        (("age", "income", "agee"), ['does not describe column "agee"', '"agee" is like "age"']),
        (("age", "income", "zzz"), ['does not describe column "zzz" of t.csv. Add']),
        (("x", "y"), ["none of the schema's 4 columns"]),
    ],
)
def test_a_difference_is_named_with_the_nearest_column(names, parts):
    with pytest.raises(DataError) as error:
        require_columns(COLUMNS, names, table_name="t.csv")
    for part in parts:
        assert part in str(error.value)


def test_a_stored_index_of_pandas_needs_no_description():
    require_columns(COLUMNS, ("age", "income", "__index_level_0__"), table_name="t.parquet")
