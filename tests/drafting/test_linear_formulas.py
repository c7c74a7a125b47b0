"""Columns that are a line of another column, and those that only nearly are."""

from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from deniable.drafting.column_profile import open_table
from deniable.drafting.linear_formulas import Line
from deniable.drafting.relationships import find_relationships
from deniable.drafting.type_inference import guess_column
from deniable.schema.formula import Formula

RNG = np.random.default_rng(17)
AGE = RNG.integers(17, 90, 3_000)


def formulas_of(**columns) -> dict[str, str]:
    read = open_table(pl.DataFrame(columns)).read()
    found = find_relationships(read, [guess_column(column) for column in read])
    return {each.column: each.text for each in found.formulas}


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (AGE + 16, "age + 16"),
        (AGE - 17, "age - 17"),
        (2013 - AGE, "2013 - age"),
        (12 * AGE, "12 * age"),
        (5 - 2 * AGE, "5 - 2 * age"),
        (np.round(0.45 * AGE + 1.5, 2), "0.45 * age + 1.5"),
    ],
)
def test_a_line_is_found_and_computes_the_column(numbers, text):
    assert formulas_of(age=AGE, other=numbers) == {"other": text}
    frame = pl.DataFrame({"age": AGE})
    computed = frame.select(Formula(text).expression(pl.col)).to_series().to_numpy()
    np.testing.assert_allclose(computed, numbers, atol=0.005)


def test_a_coarser_column_is_computed_from_the_finer_one():
    """Of two columns with the same relation, the one that is rounded follows from the other."""
    price = np.round(RNG.uniform(1, 500, 3_000), 2)
    found = formulas_of(tenths=np.round(price / 10, 1), price=price)
    assert found == {"tenths": "0.1 * price"}


def test_one_exception_refutes_a_line():
    other = AGE + 16
    other[1_234] += 1
    assert formulas_of(age=AGE, other=other) == {}


def test_a_line_that_is_missing_in_other_rows_is_no_formula():
    other = (AGE + 16).astype(float)
    other[5] = np.nan
    assert formulas_of(age=AGE, other=other) == {}


def test_few_numbers_are_no_evidence():
    steps = RNG.integers(0, 4, 3_000)
    assert formulas_of(steps=steps, other=10 * steps) == {}


def test_integers_that_are_rounded_are_not_computed_by_a_fraction():
    """The formula would have to be rounded to integers."""
    assert formulas_of(age=AGE, other=np.rint(1.5 * AGE).astype(int)) == {}


def test_a_part_of_another_formula_stays_as_it_is():
    rent, food = RNG.integers(1, 900, 3_000), RNG.integers(1, 500, 3_000)
    found = formulas_of(rent=rent, food=food, total=rent + food, double=2 * rent)
    assert found == {"total": "rent + food", "double": "2 * rent"}


def test_a_name_that_is_no_identifier_is_quoted():
    assert formulas_of(**{"age in years": AGE, "born": 2013 - AGE}) == {
        "born": "2013 - `age in years`"
    }


def test_numbers_are_written_without_an_exponent():
    line = Line(target=0, source=1, factor=Decimal("0.000001"), constant=Decimal("-1E+3"))
    assert line.text("x") == "0.000001 * x - 1000"
    assert line.of(np.array([0.0, 1e6])).tolist() == [-1000, -999]
