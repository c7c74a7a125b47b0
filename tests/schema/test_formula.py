"""Formulas: allowed expressions, column names, and expressions that are rejected."""

import math
import re

import numpy as np
import polars as pl
import pytest

from deniable.errors import SchemaError
from deniable.schema.formula import Formula, natural_log

# The digits on the computer on which they were first computed.
LOGARITHMS = [
    "-0x1.26bb1bbb55515p+1",
    "0x1.193ea7aad030bp+0",
    "0x1.26bb1bbb55516p+1",
    "0x1.803da9b19f5ecp+2",
    "-0x1.4b927f32bffb8p+4",
    "0x1.2a1a38bd0540ap+4",
]


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log(a)", [0.0, math.log(3), None, None, None]),
        ("log(a) + log(2)", [math.log(2), math.log(6), None, None, None]),
        ("log(a + 5)", [math.log(6), math.log(8), math.log(5), math.log(1), None]),
        ("sqrt(a)", [1.0, math.sqrt(3), 0.0, None, None]),
        ("sqrt(a * a)", [1.0, 3.0, 0.0, 4.0, None]),
    ],
)
def test_logarithms_and_roots_are_missing_where_there_are_none(text, expected):
    found = evaluate(text, a=[1, 3, 0, -4, None])
    assert [x is None for x in found] == [x is None for x in expected]
    for one, two in zip(found, expected, strict=True):
        assert one is None or one == pytest.approx(two, rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("start", ["sqrt(", "log(", "1 / ("])
def test_functions_inside_each_other_take_no_time(start):
    """Each level once: as an expression of polars, every level would double the work."""
    deep = start * 150 + "a" + ")" * 150
    expected = 7.0 if start == "1 / (" else {"sqrt(": 1.0, "log(": None}[start]
    [found] = evaluate(deep, a=[7.0])
    assert found == (None if expected is None else pytest.approx(expected))


def test_logarithms_are_exact_up_to_the_last_digits():
    """Against the library of the C compiler, over the whole range of doubles."""
    draws = np.random.default_rng(0)
    wide, near_one = 10.0 ** draws.uniform(-307, 307, 20_000), draws.uniform(0.4, 2.5, 20_000)
    numbers = np.concatenate([wide, near_one, [1.0, 5e-324, 0.5, 2.0]])
    expected = np.array([math.log(number) for number in numbers])
    assert (np.abs(natural_log(numbers) - expected) <= 2 * np.spacing(np.abs(expected))).all()
    assert np.isnan(natural_log(np.array([0.0, -1.0, np.nan, np.inf]))).all()


def test_logarithms_have_the_same_digits_everywhere():
    """Written with additions, products and quotients alone, which IEEE 754 rounds in one way."""
    numbers = np.array([0.1, 3.0, 10.0, 404.95, 1e-9, 123456789.0])
    assert [number.hex() for number in natural_log(numbers).tolist()] == LOGARITHMS


def test_a_column_may_be_called_like_a_function():
    formula = Formula("log(log) + sqrt")
    assert set(formula.names) == {"log", "sqrt"}
    assert evaluate("log(log) + sqrt", log=[1.0], sqrt=[7.0]) == [7.0]


def test_column_names_are_found_with_and_without_backquotes():
    """The placeholder of a name in backquotes must not collide with a real column."""
    assert set(Formula("a + `b c` * a - `column_0`").names) == {"a", "b c", "column_0"}
    assert set(Formula("column_0 - `b c`").names) == {"column_0", "b c"}
    assert evaluate("column_0 - `b c`", **{"column_0": [5], "b c": [3]}) == [2]


@pytest.mark.parametrize(
    ("text", "fractional"),
    [("a + 2 * b", False), ("a / 2", True), ("a * 0.5", True), ("log(a)", True), ("sqrt(a)", True)],
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
        ("log(n, n)", "not allowed"),
        ("log()", "not allowed"),
        ("log(n, base=2)", "not allowed"),
        ("log(*n)", "not allowed"),
        ("n.log(n)", "not allowed"),
        ("`log`(n)", "not allowed"),
        ("-" * 900 + "n", "nested too deeply"),
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
