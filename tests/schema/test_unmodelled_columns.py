"""Identifiers, constants and computed columns: valid and invalid descriptions."""

import pytest

from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.formula import Formula
from deniable.schema.unmodelled_columns import (
    Computed,
    Constant,
    Identifier,
    has_whole_numbers,
    require_formulas,
)
from deniable.schema.value_map import ValueMap

COUNT = Attribute(name="n", kind="integer", values=range(10))
TEXT = Attribute(name="t", kind="categorical", values=("a",))


def computed(formula, name="c", **options):
    return Computed(name=name, rule=Formula(formula), **options)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("P{:08d}", ("P", 8, "")),
        ("{}", ("", 0, "")),
        ("a {{{:02}}} b", ("a {", 2, "} b")),
        ("{:d}/{{x}}", ("", 0, "/{x}")),
    ],
)
def test_the_format_of_an_identifier_is_split_at_its_number(text, parts):
    assert Identifier(name="id", format=text).format_parts == parts


@pytest.mark.parametrize("text", ["", "x", "{}{}", "{name}", "{!r}", "{:x}", "{:00d}", "{"])
def test_an_identifier_has_one_decimal_number(text):
    with pytest.raises(SchemaError, match=r"a text with one \{\}"):
        Identifier(name="id", format=text)


@pytest.mark.parametrize(
    ("value", "kind", "code", "empty"),
    [
        ("PL", "categorical", 0, False),
        ("", "categorical", 1, True),
        (7, "categorical", 0, False),
        (False, "boolean", 0, False),
        (True, "boolean", 1, False),
        (2.50, "real", 0, False),
    ],
)
def test_a_constant_has_an_attribute_and_a_code_of_its_type(value, kind, code, empty):
    constant = Constant(name="c", value=value)
    assert (constant.attribute.kind, constant.code, constant.is_empty) == (kind, code, empty)


@pytest.mark.parametrize("value", [1e-300, 1e300, 123456789.123456789e-9])
def test_a_constant_with_too_many_digits_is_rejected(value):
    with pytest.raises(SchemaError, match=r'"c": (value has too many digits|.*as text)'):
        Constant(name="c", value=value)


@pytest.mark.parametrize("decimals", [-1, 10, 2.0, True])
def test_decimals_of_a_computed_column_are_limited(decimals):
    with pytest.raises(SchemaError, match='"c": decimals must be from 0 to 9'):
        computed("n + 1", decimals=decimals)


def test_long_chains_of_formulas_take_no_time():
    """Each column is looked at once; two formulas in each would double the work at every step."""
    chain = [computed("n + n", name="c0"), computed("c0 + n", name="c1")]
    for k in range(2, 80):
        chain.append(computed(f"c{k - 1} + c{k - 2}", name=f"c{k}"))
    assert has_whole_numbers(chain[-1], [COUNT, *chain])
    assert not has_whole_numbers(chain[-1], [COUNT, computed("n / 2", name="c0"), *chain[1:]])


def test_a_missing_result_needs_a_text_for_it():
    rule = ValueMap(source="t", pairs=(("a", None), ("b", 1)))
    with pytest.raises(SchemaError, match=r'a result of its map is missing; set missing = \[""\]'):
        Computed(name="c", rule=rule)
    assert Computed(name="c", rule=rule, missing=("",)).rule == rule


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ([computed("x + 1")], 'needs "x", which is not declared'),
        ([computed("`a b` + 1")], 'needs "a b", which is not declared'),
        ([computed("t + 1")], 'needs "t", which is not a numeric column'),
        ([Identifier(name="id"), computed("id + 1")], 'needs "id", which is not a numeric'),
        ([computed("c + 1")], 'needs "c", which is also computed'),
        ([computed("d + 1"), computed("n + 1", name="d")], "does not come before it"),
    ],
)
def test_a_formula_needs_numeric_columns_and_earlier_computed_ones(columns, why):
    with pytest.raises(SchemaError, match=why):
        require_formulas([COUNT, TEXT, *columns])
    require_formulas(
        [computed("n + k"), computed("c * 2", name="d"), Constant(name="k", value=3), COUNT]
    )


@pytest.mark.parametrize(
    ("column", "whole"),
    [
        (computed("n + k"), True),
        (computed("n / 2"), False),
        (computed("n / 2", decimals=0), True),
        (computed("n + 1", decimals=2), False),
        (computed("n + half"), False),
        (computed("c + 1", name="d"), True),
        (Identifier(name="id"), True),
        (Identifier(name="id", format="P{}"), False),
        (Constant(name="yes", value=True), False),
    ],
)
def test_a_computed_column_is_whole_if_its_operands_are(column, whole):
    """A column is written as integers exactly if this holds."""
    others = [
        COUNT,
        Constant(name="k", value=3),
        Constant(name="half", value=0.5),
        computed("n + k"),
        column,
    ]
    assert has_whole_numbers(column, others) == whole
