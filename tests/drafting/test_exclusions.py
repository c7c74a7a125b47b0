"""Exclusions of a whole table: chosen by importance, without those that follow from others."""

import numpy as np
import polars as pl

from deniable.drafting import exclusions
from deniable.drafting.column_axes import column_axis
from deniable.drafting.column_profile import open_table
from deniable.drafting.exclusions import find_exclusions
from deniable.drafting.type_inference import guess_column

RNG = np.random.default_rng(3)


def axes_of(columns):
    read = open_table(pl.DataFrame(columns)).read()
    return [column_axis(column, guess_column(column)) for column in read]


def census(columns=3, rows=6000):
    """Ages, and columns that are "N" below 15 and a number otherwise."""
    ages = RNG.integers(0, 90, rows)
    found = {"age": ages}
    for j in range(columns):
        found[f"c{j}"] = ["N" if a < 15 else str(RNG.integers(1, 60)) for a in ages]
    return found


def test_rules_that_follow_from_others_are_left_out():
    """Missing of one column excludes presence of another because both follow from the age."""
    found = [rule.to_toml() for rule in find_exclusions(axes_of(census()))[0]]
    assert len(found) == 6
    assert all("age" in rule for rule in found)


def test_no_row_breaks_a_rule():
    axes = axes_of(census())
    by_name = {axis.name: axis for axis in axes}
    for rule in find_exclusions(axes)[0]:
        inside = [
            mask[by_name[condition.column].codes]
            for condition, mask in zip(rule.conditions, rule.masks, strict=True)
        ]
        assert not (inside[0] & inside[1]).any()


def test_rules_on_missing_cells_come_first_then_the_most_expected_rows():
    """Cells that are missing together are few, and the rule is seldom chance."""
    gone = RNG.random(4000) < 0.15
    ages = RNG.integers(0, 90, 4000)
    readings = {
        name: [
            "" if off else str(x) for off, x in zip(gone, RNG.integers(0, 40, 4000), strict=True)
        ]
        for name in ("wind", "rain")
    }
    grades = np.where(ages < 45, "junior", "senior")
    found, _ = find_exclusions(axes_of({"age": ages, "grade": grades, **readings}))
    on_missing = ["missing" in str(rule.to_toml()) for rule in found]
    assert on_missing == sorted(on_missing, reverse=True)
    assert set(found[0].to_toml()) == {"wind", "rain"}
    expected = [rule.expected for rule in found]
    assert max(expected) > expected[0], "the largest rule is not on missing cells"


def test_the_most_important_rules_are_kept(monkeypatch):
    axes = axes_of(census())
    all_rules = [rule.to_toml() for rule in find_exclusions(axes)[0]]
    monkeypatch.setattr(exclusions, "_MAX_RULES", 2)
    kept, left_out = find_exclusions(axes)
    assert [rule.to_toml() for rule in kept] == all_rules[:2]
    assert left_out == len(all_rules) - 2
    monkeypatch.setattr(exclusions, "_MAX_RULES_PER_PAIR", 1)
    assert find_exclusions(axes)[1] >= len(all_rules) - 2, "those of a pair beyond its limit, too"


def test_wide_tables_have_fewer_rules(monkeypatch):
    axes = axes_of(census())
    all_rules = [rule.to_toml() for rule in find_exclusions(axes)[0]]
    monkeypatch.setattr(exclusions, "_MIN_MAX_RULES", 1)
    monkeypatch.setattr(exclusions, "_MAX_RULES_TIMES_COLUMNS", 3 * len(axes))
    assert [rule.to_toml() for rule in find_exclusions(axes)[0]] == all_rules[:3]


def test_a_few_rows_show_nothing():
    assert find_exclusions(axes_of(census(rows=100))) == ([], 0)


def test_relations_of_wide_tables_are_found_on_coarse_groups():
    """With 400 columns, the screening has seven groups for each."""
    ages = RNG.integers(0, 90, 3000)
    pay = ["N" if a < 15 else str(RNG.integers(1, 60)) for a in ages]
    others = {f"x{j}": RNG.integers(0, 30, 3000) for j in range(400)}
    columns = {"age": ages, "pay": pay, **others}
    found = [rule.to_toml() for rule in find_exclusions(axes_of(columns))[0]]
    assert {"pay": {"missing": False}, "age": {"below": 15}} in found
    assert all(set(rule) == {"age", "pay"} for rule in found)
