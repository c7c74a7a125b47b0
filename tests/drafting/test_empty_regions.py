"""Empty regions of two columns: no row lies in them, and enough rows could have."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.column_axes import column_axis
from deniable.drafting.column_profile import open_table
from deniable.drafting.empty_regions import MIN_EXPECTED_ROWS, AxisView, pair_exclusions
from deniable.drafting.type_inference import guess_column

RNG = np.random.default_rng(8)
AGES = RNG.integers(0, 90, 6000)


def regions(one, other):
    read = open_table(pl.DataFrame({"one": one, "other": other})).read()
    views = [AxisView(axis=column_axis(column, guess_column(column))) for column in read]
    found = list(pair_exclusions(*views))
    codes = {view.axis.name: view.axis.codes for view in views}
    for rule in found:
        named = zip(rule.conditions, rule.masks, strict=True)
        inside = [mask[codes[condition.column]] for condition, mask in named]
        assert not (inside[0] & inside[1]).any(), "a row lies in the region"
        expected = inside[0].mean() * inside[1].mean() * len(inside[0])
        assert rule.expected >= MIN_EXPECTED_ROWS
        assert rule.expected == pytest.approx(expected, rel=0.5)
    return [rule.to_toml() for rule in found]


def test_not_applicable_below_15():
    pay = ["N" if age < 15 else str(RNG.integers(1, 80)) for age in AGES]
    found = regions(AGES, pay)
    assert {"other": {"missing": False}, "one": {"below": 15}} in found
    assert {"other": {"missing": True}, "one": {"above": 14}} in found


def test_values_that_exclude_each_other_are_listed_together():
    status = RNG.choice(["single", "married", "widowed"], 6000)
    relation = np.where(status == "married", "spouse", RNG.choice(["child", "lodger"], 6000))
    found = regions(status, relation)
    assert {"one": ["single", "widowed"], "other": ["spouse"]} in found


def test_a_sharp_bound_is_exact_and_a_soft_one_is_moved_outward():
    """Half of the people above 60 are retired. Widowhood becomes likely slowly."""
    retired = np.where((AGES >= 60) & (RNG.random(6000) < 0.5), "retired", "other")
    assert {"other": ["retired"], "one": {"below": 60}} in regions(AGES, retired)
    widowed = np.where(RNG.random(6000) < np.clip((AGES - 30) / 60, 0, 1) ** 4, "widowed", "other")
    youngest = int(AGES[widowed == "widowed"].min())
    [bound] = [r["one"]["below"] for r in regions(AGES, widowed) if r["other"] == ["widowed"]]
    assert bound < youngest


def test_two_ranges_exclude_each_other_by_missing_cells_alone():
    """Where their numbers lie together may be chance at the ends: other rows break such rules."""
    since = np.clip(AGES - RNG.integers(18, 40, 6000), 0, None)
    assert not regions(AGES, 2011 - since)
    answered = [str(n) if age >= 15 else "N" for n, age in zip(since, AGES, strict=True)]
    assert {tuple(rule["other"]) for rule in regions(AGES, answered)} == {("missing",)}


@pytest.mark.parametrize("seed", range(5))
def test_independent_columns_have_no_empty_region(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 90, 4000), rng.choice(["a", "b", "c", "d", ""], 4000)
    assert not regions(one, other)
    assert not regions(one, rng.normal(size=4000).round(2))
