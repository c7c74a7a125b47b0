"""Relationships between columns, and coincidences that must not be reported."""

import datetime as dt

import numpy as np
import polars as pl

from deniable.drafting.column_profile import open_table
from deniable.drafting.relationships import Relationships, find_relationships
from deniable.drafting.type_inference import guess_column


def relationships_of(**columns) -> Relationships:
    read = open_table(pl.DataFrame(columns)).read()
    return find_relationships(read, [guess_column(column) for column in read])


def rng():
    return np.random.default_rng(11)


def test_a_functional_dependency_is_found():
    years = rng().integers(0, 80, 4000)
    found = relationships_of(years=years, group=[f"g{y // 10}" for y in years])
    assert '"years"' in found.notes["group"][0]
    assert "years" not in found.notes


def test_equivalent_columns_get_one_note():
    level = rng().integers(0, 12, 3000)
    found = relationships_of(level=level, word=[f"level {chr(97 + x)}" for x in level])
    notes = [note for notes in found.notes.values() for note in notes]
    assert len(notes) == 1
    assert "each follows from the other" in notes[0]


def test_one_exception_refutes_a_dependency():
    years = rng().integers(0, 80, 4000)
    group = years // 10
    group[3777] = (group[3777] + 1) % 8
    assert not relationships_of(years=years, group=[f"g{g}" for g in group]).notes


def test_independent_columns_have_no_relationship():
    draws = rng()
    found = relationships_of(
        a=draws.integers(0, 40, 3000),
        b=draws.integers(0, 4, 3000),
        c=draws.normal(size=3000).round(2),
        rare=(draws.random(3000) < 0.001).astype(int) * 3,
    )
    assert not found.notes
    assert not found.orders


def test_sums_and_products_are_proposed_as_computed():
    draws = rng()
    rent, food, count = (draws.integers(3, 900, 2000) for _ in range(3))
    found = relationships_of(
        rent=rent, food=food, count=count, total=rent + food, **{"the product": rent * count}
    )
    assert any('formula = "rent + food"' in line for line in found.remarks["total"])
    assert any('formula = "rent * count"' in line for line in found.remarks["the product"])
    assert "rent" not in found.remarks


def test_a_difference_is_found_as_a_sum_and_names_are_quoted():
    draws = rng()
    gross, tax = draws.integers(1000, 9000, 2000), draws.integers(3, 900, 2000)
    found = relationships_of(**{"net pay": gross - tax, "tax": tax, "gross": gross})
    assert any('formula = "`net pay` + tax"' in line for line in found.remarks["gross"])


def test_one_exception_refutes_a_sum():
    draws = rng()
    rent, food = draws.integers(3, 900, 2000), draws.integers(3, 900, 2000)
    total = rent + food
    total[1234] += 1
    assert not relationships_of(rent=rent, food=food, total=total).remarks


def test_a_copy_is_proposed_as_computed():
    values = rng().normal(size=500).round(2)
    found = relationships_of(a=values, b=values.copy())
    assert any('formula = "a"' in line for line in found.remarks["b"])


def test_an_order_of_dates_is_found_with_its_strictness():
    draws = rng()
    start = draws.integers(0, 4000, 1000)
    day = dt.date(2001, 1, 1)

    def days(numbers):
        return [day + dt.timedelta(days=int(n)) for n in numbers]

    later, strictly = start + draws.integers(0, 900, 1000), start + draws.integers(1, 900, 1000)
    assert relationships_of(start=days(start), end=days(strictly)).orders == [
        ("start", "end", True)
    ]
    assert relationships_of(end=days(later), start=days(start)).orders == [("start", "end", False)]


def test_an_order_that_follows_from_the_ranges_is_not_reported():
    draws = rng()
    small, large = draws.integers(0, 50, 1000), draws.integers(60, 99, 1000)
    assert not relationships_of(small=small, large=large).orders


def test_missing_cells_do_not_break_an_order():
    draws = rng()
    start = draws.integers(0, 4000, 1000)
    end = [None if i % 7 == 0 else int(s) + 5 for i, s in enumerate(start)]
    assert relationships_of(start=start, end=end).orders == [("start", "end", True)]
