"""Empty regions of two columns: no row lies in them, and enough rows could have."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from deniable.drafting.column_axes import MIN_BOUND_ROWS, column_axis
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
    for view in views:
        for bound in bounds_on(view.axis.name, found):
            rows = sum(
                int(n)
                for n, own in zip(view.axis.counts, view.axis.labels, strict=False)
                if own == bound
            )
            assert not 0 < rows < MIN_BOUND_ROWS, "a bound is the cell of a few rows"
    return [rule.to_toml() for rule in found]


def bounds_on(column, rules):
    """The numbers and dates that bound a column."""
    conditions = [each for rule in rules for each in rule.conditions if each.column == column]
    return [value for each in conditions for key, value in each.bounds if key != "missing"]


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


def test_bounds_of_amounts_have_two_digits_and_are_no_cells():
    """Nearly every amount has one row. The rich begin at 41,234, the poor end at 38,765."""
    pay = np.exp(RNG.normal(10, 1, 6000)).astype(int)
    rank = np.where(pay > 41_234, "rich", np.where(pay > 38_765, "some", "poor"))
    found = regions(pay, rank)
    assert {"other": ["rich"], "one": {"below": 41_000}} in found
    assert {"other": ["poor"], "one": {"above": 39_000}} in found


def test_bounds_of_times_are_hours_and_of_dates_days():
    """Each second has one row; each day has about three, so the bound is a day without a row."""
    first = dt.datetime(2020, 3, 7, 4, 5, 6)
    seen = [first + dt.timedelta(seconds=int(x)) for x in RNG.integers(0, 10**8, 6000)]
    change = dt.datetime(2021, 9, 8, 7, 6, 5)
    late = [("b" if moment > change else "a") for moment in seen]
    for rule in regions(seen, late):
        [bound] = rule["one"].values()
        assert (bound.minute, bound.second) == (0, 0)
        assert abs(bound - change) < dt.timedelta(days=1)
    days = [moment.date() for moment in seen if moment.day % 4]
    late = ["b" if day > change.date() else "a" for day in days]
    bounds = {key: value for r in regions(days, late) for key, value in r["one"].items()}
    assert bounds == {"below": dt.date(2021, 9, 8), "above": dt.date(2021, 9, 8)}


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
