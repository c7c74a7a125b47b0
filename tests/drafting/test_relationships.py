"""Relationships between columns, and coincidences that must not be reported."""

import datetime as dt

import numpy as np
import polars as pl

from deniable.drafting.column_profile import open_table
from deniable.drafting.relationships import ColumnOrder, Relationships, find_relationships
from deniable.drafting.type_inference import guess_column


def relationships_of(**columns) -> Relationships:
    read = open_table(pl.DataFrame(columns)).read()
    return find_relationships(read, [guess_column(column) for column in read])


def rng():
    return np.random.default_rng(11)


def test_a_functional_dependency_is_found():
    years = rng().integers(0, 80, 4000)
    [found] = relationships_of(years=years, group=[f"g{y // 10}" for y in years]).dependencies
    assert (found.source, found.target, found.by_steps) == ("years", "group", True)


def test_one_exception_refutes_a_dependency():
    years = rng().integers(0, 80, 4000)
    group = years // 10
    group[3777] = (group[3777] + 1) % 8
    found = relationships_of(years=years, group=[f"g{g}" for g in group])
    assert not found.dependencies


def test_a_computed_column_takes_no_part_in_constraints():
    """Constraints apply to learnt columns only."""
    years = rng().integers(0, 80, 4000)
    found = relationships_of(
        years=years, group=[f"g{y // 10}" for y in years], pay=[int(y > 20) * 9 for y in years]
    )
    computed = {each.target for each in found.dependencies}
    named = {c.column for rule in found.exclusions for c in rule.conditions}
    assert "group" in computed
    assert not computed & named


def test_independent_columns_have_no_relationship():
    draws = rng()
    found = relationships_of(
        a=draws.integers(0, 40, 3000),
        b=draws.integers(0, 4, 3000),
        c=draws.normal(size=3000).round(2),
        rare=(draws.random(3000) < 0.001).astype(int) * 3,
    )
    assert found == Relationships()


def test_an_order_that_follows_from_two_others_is_left_out():
    draws = rng()
    first = draws.integers(0, 900, 1000)
    second = first + draws.integers(1, 90, 1000)
    third = second + draws.integers(1, 90, 1000)
    found = relationships_of(first=first, second=second, third=third).orders
    assert found == [
        ColumnOrder("first", "second", is_strict=True),
        ColumnOrder("second", "third", is_strict=True),
    ]


def test_an_order_of_dates_is_found_with_its_strictness():
    draws = rng()
    start = draws.integers(0, 4000, 1000)
    day = dt.date(2001, 1, 1)

    def days(numbers):
        return [day + dt.timedelta(days=int(n)) for n in numbers]

    later, strictly = start + draws.integers(0, 900, 1000), start + draws.integers(1, 900, 1000)
    assert relationships_of(start=days(start), end=days(strictly)).orders == [
        ColumnOrder("start", "end", is_strict=True)
    ]
    assert relationships_of(end=days(later), start=days(start)).orders == [
        ColumnOrder("start", "end", is_strict=False)
    ]


def test_an_order_that_follows_from_the_ranges_is_not_reported():
    draws = rng()
    small, large = draws.integers(0, 50, 1000), draws.integers(60, 99, 1000)
    assert not relationships_of(small=small, large=large).orders


def test_missing_cells_do_not_break_an_order():
    draws = rng()
    start = draws.integers(0, 4000, 1000)
    end = [None if i % 7 == 0 else int(s) + 5 for i, s in enumerate(start)]
    assert relationships_of(start=start, end=end).orders == [
        ColumnOrder("start", "end", is_strict=True)
    ]


def test_a_column_that_may_be_a_key_has_no_constraint():
    """The north has the small numbers of rows and patients: no rule says up to which."""
    draws = rng()
    rows = np.arange(4000)
    keys = {"row": draws.permutation(90_000)[:4000], "patient": draws.integers(0, 900, 4000)}
    site = np.where(rows % 90 > 44, "north", "south")
    assert relationships_of(age=rows % 90, site=site).dependencies
    for name, numbers in keys.items():
        site = np.where(numbers < np.median(numbers), "north", "south")
        found = relationships_of(**{name: numbers, "site": site, "x": rows % 7})
        assert found == Relationships(), name
