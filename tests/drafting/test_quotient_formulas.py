"""Columns that are a quotient of two others, and those that only nearly are."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.column_formulas import find_formulas
from deniable.drafting.column_profile import open_table
from deniable.drafting.type_inference import guess_column
from deniable.schema.formula import Formula

RNG = np.random.default_rng(23)
HEIGHT = RNG.integers(150, 200, 3_000)
WEIGHT = np.round(RNG.uniform(45, 120, 3_000), 1)
BMI = 10_000 * WEIGHT / HEIGHT**2


def formulas_of(**columns) -> dict[str, str]:
    read = open_table(pl.DataFrame(columns)).read()
    found = find_formulas(read, [guess_column(column) for column in read])
    return {each.column: each.text for each in found}


@pytest.mark.parametrize(
    ("other", "decimals", "text"),
    [
        (BMI, 1, "10000 * weight / (height * height)"),
        (BMI, 4, "10000 * weight / (height * height)"),
        (WEIGHT / HEIGHT, 2, "weight / height"),
        (100 * WEIGHT / HEIGHT, 1, "100 * weight / height"),
        (-0.25 * HEIGHT / WEIGHT, 3, "-0.25 * height / weight"),
    ],
)
def test_a_quotient_is_found_and_computes_the_column(other, decimals, text):
    rounded = np.round(other, decimals)
    assert formulas_of(height=HEIGHT, weight=WEIGHT, other=rounded) == {"other": text}
    frame = pl.DataFrame({"height": HEIGHT, "weight": WEIGHT})
    computed = frame.select(Formula(text).expression(pl.col)).to_series().to_numpy()
    np.testing.assert_allclose(computed, rounded, atol=0.51 * 10**-decimals)


def test_one_exception_refutes_a_quotient():
    other = np.round(BMI, 2)
    other[1_234] += 0.1
    assert formulas_of(height=HEIGHT, weight=WEIGHT, other=other) == {}


def test_a_quotient_is_missing_where_a_part_is_missing_or_the_divisor_is_zero():
    hours = RNG.integers(0, 60, 3_000)
    wage = RNG.integers(100, 9_000, 3_000)
    rate = np.round(wage / np.where(hours == 0, np.nan, hours), 2)
    assert formulas_of(hours=hours, wage=wage, rate=rate) == {"rate": "wage / hours"}
    rate[np.flatnonzero(hours)[7]] = np.nan
    assert formulas_of(hours=hours, wage=wage, rate=rate) == {}


def test_a_column_that_hardly_varies_is_no_quotient():
    """A tenth of 0.0, 0.1 and 0.2 fits any small quotient, rounded."""
    assert formulas_of(height=HEIGHT, weight=WEIGHT, other=np.round(WEIGHT / HEIGHT, 1)) == {}


@pytest.mark.parametrize("factor", [1e-12, 1e12, 1e40, 0.123456])
def test_extreme_factors_and_those_of_many_digits_are_no_formulas(factor):
    wage = np.round(RNG.uniform(1e5, 9e5, 2_000) * max(1.0, 1 / factor), 2)
    hours = np.round(RNG.uniform(1, 60, 2_000), 1)
    found = formulas_of(wage=wage, hours=hours, rate=np.round(factor * wage / hours, 4))
    assert "rate" not in found


def test_unrelated_columns_are_no_quotients():
    columns = {f"x{i}": np.round(RNG.lognormal(3, 1, 2_000), 1) for i in range(12)}
    assert formulas_of(**columns) == {}
