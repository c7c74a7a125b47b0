"""Drafts of columns that are logarithms or roots of others."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.draft import draft_schema
from deniable.schema.formula import Formula
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Computed

ROWS = 1_500


def formulas_of(**columns):
    schema = Schema.parse(draft_schema(pl.DataFrame(columns)).text)
    computed = [each for each in schema.columns if isinstance(each, Computed)]
    return {each.name: each.rule.text for each in computed if isinstance(each.rule, Formula)}


def wages():
    return np.random.default_rng(2).lognormal(8, 1, ROWS).round(2) + 1


@pytest.mark.parametrize(
    ("compute", "formula"),
    [
        (np.log, "log(wage)"),
        (np.log1p, "log(wage + 1)"),
        (np.sqrt, "sqrt(wage)"),
    ],
)
def test_a_function_of_a_column_is_found(compute, formula):
    wage = wages()
    assert formulas_of(wage=wage, other=compute(wage).round(4)) == {"other": formula}
    assert formulas_of(other=compute(wage).round(4), wage=wage) == {"other": formula}


def test_one_row_that_differs_refutes_a_function():
    wage = wages()
    logs = np.log(wage).round(4)
    logs[ROWS // 2] += 0.01
    assert formulas_of(wage=wage, other=logs) == {}


def test_a_logarithm_must_be_missing_exactly_where_there_is_none():
    wage = wages().astype(object)
    wage[:300] = 0.0
    logs = [None if number == 0 else round(float(np.log(number)), 4) for number in wage]
    columns = {"wage": wage.astype(float), "other": logs}
    assert formulas_of(**columns) == {"other": "log(wage)"}
    logs[5] = 0.0
    assert formulas_of(**columns) == {}


def test_a_function_of_few_numbers_is_no_evidence():
    grade = np.random.default_rng(3).integers(1, 6, ROWS)
    assert formulas_of(grade=grade, other=np.log(grade).round(3)) == {}, "a map, if anything"


def test_a_nearly_constant_column_is_no_function():
    """Rounded to whole steps, many columns equal it."""
    large = np.random.default_rng(4).uniform(1_000, 1_010, ROWS).round(3)
    assert formulas_of(large=large, other=np.log(large).round(3)) == {}
