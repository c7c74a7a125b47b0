"""What columns have to do with each other, and what is only chance."""

import datetime as dt

import numpy as np
import polars as pl

from deniable.drafting.columns import open_table
from deniable.drafting.hints import Hints, find_hints
from deniable.drafting.kinds import guess


def hints_of(**columns) -> Hints:
    read = open_table(pl.DataFrame(columns)).read()
    return find_hints(read, [guess(column) for column in read])


def rng():
    return np.random.default_rng(11)


def test_a_column_that_follows_from_another_is_noticed():
    years = rng().integers(0, 80, 4000)
    found = hints_of(years=years, group=[f"g{y // 10}" for y in years])
    assert '"years"' in found.notes["group"][0]
    assert "years" not in found.notes


def test_two_words_for_the_same_are_told_once():
    level = rng().integers(0, 12, 3000)
    found = hints_of(level=level, word=[f"level {chr(97 + x)}" for x in level])
    notes = [note for notes in found.notes.values() for note in notes]
    assert len(notes) == 1
    assert "each follows from the other" in notes[0]


def test_one_exception_among_many_rows_is_enough_to_say_nothing():
    years = rng().integers(0, 80, 4000)
    group = years // 10
    group[3777] = (group[3777] + 1) % 8
    assert not hints_of(years=years, group=[f"g{g}" for g in group]).notes


def test_independent_columns_are_left_alone():
    draws = rng()
    found = hints_of(
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
    found = hints_of(
        rent=rent, food=food, count=count, total=rent + food, **{"the product": rent * count}
    )
    assert any('formula = "rent + food"' in line for line in found.remarks["total"])
    assert any('formula = "rent * count"' in line for line in found.remarks["the product"])
    assert "rent" not in found.remarks


def test_a_difference_is_found_as_a_sum_and_names_are_quoted():
    draws = rng()
    gross, tax = draws.integers(1000, 9000, 2000), draws.integers(3, 900, 2000)
    found = hints_of(**{"net pay": gross - tax, "tax": tax, "gross": gross})
    assert any('formula = "`net pay` + tax"' in line for line in found.remarks["gross"])


def test_a_sum_that_fails_in_one_row_is_none():
    draws = rng()
    rent, food = draws.integers(3, 900, 2000), draws.integers(3, 900, 2000)
    total = rent + food
    total[1234] += 1
    assert not hints_of(rent=rent, food=food, total=total).remarks


def test_a_copy_is_computed():
    values = rng().normal(size=500).round(2)
    found = hints_of(a=values, b=values.copy())
    assert any('formula = "a"' in line for line in found.remarks["b"])


def test_an_order_of_dates_is_found_and_its_strictness():
    draws = rng()
    start = draws.integers(0, 4000, 1000)
    day = dt.date(2001, 1, 1)

    def days(numbers):
        return [day + dt.timedelta(days=int(n)) for n in numbers]

    later, strictly = start + draws.integers(0, 900, 1000), start + draws.integers(1, 900, 1000)
    assert hints_of(start=days(start), end=days(strictly)).orders == [("start", "end", True)]
    assert hints_of(end=days(later), start=days(start)).orders == [("start", "end", False)]


def test_an_order_that_ranges_alone_explain_is_no_rule():
    draws = rng()
    small, large = draws.integers(0, 50, 1000), draws.integers(60, 99, 1000)
    assert not hints_of(small=small, large=large).orders


def test_missing_cells_break_no_order():
    draws = rng()
    start = draws.integers(0, 4000, 1000)
    end = [None if i % 7 == 0 else int(s) + 5 for i, s in enumerate(start)]
    assert hints_of(start=start, end=end).orders == [("start", "end", True)]
