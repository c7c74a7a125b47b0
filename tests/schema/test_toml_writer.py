"""TOML writer: values and lists, checked with the TOML parser of Python."""

import tomllib
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.schema.attribute import Attribute
from deniable.schema.constraints import parse_constraint
from deniable.schema.formula import Formula
from deniable.schema.toml_reader import parse_column
from deniable.schema.toml_writer import write_column, write_constraint, write_list, write_value
from deniable.schema.unmodelled_columns import Computed, Constant, Identifier

pytestmark = pytest.mark.slow

PLAIN = (
    # TOML cannot hold lone surrogates.
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.dates()
    | st.datetimes()
)


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab c"), inner)))
def test_every_value_is_read_back(value):
    assert tomllib.loads(f"x = {write_value(value)}")["x"] == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.50"), "1.5"),
        (Decimal(20), "20.0"),
        (Decimal("1E+3"), "1000.0"),
        (Decimal("0.10"), "0.1"),
        (Decimal("3.00"), "3.0"),
        (0.1, "0.1"),
        (True, "true"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 7), "2024-02-29T07:00:00"),
        ('a "b"\x7f', '"a \\"b\\"\\u007F"'),
        ({"a b": [1], "c": "d"}, '{ "a b" = [1], c = "d" }'),
    ],
)
def test_a_value_is_written_in_one_way(value, text):
    """A decimal always has a point, so that TOML reads it as a float."""
    assert write_value(value) == text


def test_a_long_list_is_wrapped_at_100_columns():
    items = [f'"value {i}"' for i in range(60)]
    text = write_list(items, indent=1)
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("[", "    ]")
    assert max(map(len, lines)) <= 100
    assert all(line.startswith(" " * 8) for line in lines[1:-1])
    assert len(lines) < 20
    assert tomllib.loads(f"x = {text}")["x"] == [f"value {i}" for i in range(60)]


@pytest.mark.parametrize(
    ("column", "line"),
    [
        (Attribute(name="x", kind="integer", values=range(9), missing=("-8",)), 'missing = ["-8"]'),
        (Attribute(name="x", kind="boolean", values=("no", "yes")), 'values = ["no", "yes"]'),
        (Attribute(name="x", kind="date", values=range(9)), "max = 1970-01-09"),
        (Attribute(name="x", kind="integer", values=range(9), model="normal"), 'model = "normal"'),
        (Identifier(name="x", format="P{:03d}", outside="drop"), 'outside = "drop"'),
        (Constant(name="x", value="", confirmed=False), "confirmed = false"),
        (Computed(name="x", rule=Formula("`a b` / 2"), decimals=0), "decimals = 0"),
    ],
)
def test_a_column_is_read_back(column, line):
    text = write_column(column)
    assert line in text.splitlines()
    [table] = tomllib.loads(text)["attribute"]
    assert parse_column(table, 1) == column


def test_a_constraint_is_read_back():
    table = {"forbid": {"a b": {"below": 3}, "t": ['y"z']}}
    [found] = tomllib.loads(write_constraint(table))["constraint"]
    assert found == table
    assert parse_constraint(found, ["a b", "t"]).to_toml() == table
