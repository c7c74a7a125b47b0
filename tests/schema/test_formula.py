"""Formulas: allowed expressions, column names, and expressions that are rejected."""

import re

import polars as pl
import pytest

from deniable.errors import SchemaError
from deniable.schema.formula import Formula


def evaluate(text, **columns):
    frame = pl.DataFrame(columns)
    return frame.select(Formula(text).expression(pl.col).alias("c"))["c"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 2 * b", [7, 12]),
        ("(a + 2) * b", [9, 20]),
        ("-a - -b", [2, 3]),
        ("`a` + +b", [4, 7]),
        ("b / (a - 1)", [None, 5]),
    ],
)
def test_a_formula_is_translated_to_polars(text, expected):
    """The last one divides by zero in the first row."""
    assert evaluate(text, a=[1, 2], b=[3, 5]) == expected


def test_column_names_are_found_with_and_without_backquotes():
    """The placeholder of a name in backquotes must not collide with a real column."""
    assert set(Formula("a + `b c` * a - `column_0`").names) == {"a", "b c", "column_0"}
    assert set(Formula("column_0 - `b c`").names) == {"column_0", "b c"}
    assert evaluate("column_0 - `b c`", **{"column_0": [5], "b c": [3]}) == [2]


@pytest.mark.parametrize(
    ("text", "fractional"), [("a + 2 * b", False), ("a / 2", True), ("a * 0.5", True)]
)
def test_division_and_decimals_may_give_fractions(text, fractional):
    assert Formula(text).may_be_fractional == fractional


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a formula must be a text of at most 1,000"),
        ("1 + 2", 'for a fixed value, use type = "constant"'),
        ("n +", "it cannot be parsed"),
        ("n ** 9", "not allowed"),
        ("n // 9", "not allowed"),
        ("abs(n)", "not allowed"),
        ("n if n else n", "not allowed"),
        ("n.real", "not allowed"),
        ("[n]", "not allowed"),
        ("__import__('os').system('true')", "not allowed"),
        ("n + 'a'", "not allowed"),
        ("n + True", "not allowed"),
        ("n + 1e999", "too large"),
        ("n + " + "9" * 400, "too large"),
        ("n" + " + n" * 600, "at most 1,000"),
        ("(" * 400 + "n" + ")" * 400, "it cannot be parsed"),
    ],
)
def test_other_expressions_are_rejected(text, why):
    with pytest.raises(SchemaError, match=re.escape(why)):
        Formula(text)
