"""Dependencies: real ones are found with their pairs; chance and exceptions are not."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.column_axes import column_axis
from deniable.drafting.column_profile import open_table
from deniable.drafting.dependencies import find_dependencies
from deniable.drafting.type_inference import guess_column

RNG = np.random.default_rng(5)
FINE = RNG.integers(0, 40, 5000)


def find(**columns):
    read = open_table(pl.DataFrame(columns)).read()
    axes = [column_axis(column, guess_column(column)) for column in read]
    return find_dependencies([axis for axis in axes if axis is not None])


def test_a_coarse_category_follows_from_a_fine_one():
    [found] = find(coarse=[f"c{x % 6}" for x in FINE], fine=[f"f{x:02d}" for x in FINE])
    assert (found.source, found.target, found.both) == ("fine", "coarse", False)
    assert not found.by_steps
    assert dict(found.pairs) == {f"f{x:02d}": f"c{x % 6}" for x in range(40)}


def test_of_a_code_and_its_text_one_is_computed():
    [found] = find(text=[f"level {x % 9}" for x in FINE], code=FINE % 9)
    assert (found.source, found.target, found.both) == ("code", "text", True)
    assert len(found.pairs) == 9


def test_a_result_may_be_missing():
    """A region without a code: the target's text for missing is written as its result."""
    codes = [None if x % 8 == 3 else f"c{x % 6}" for x in FINE]
    [found] = find(coarse=codes, fine=[f"f{x:02d}" for x in FINE])
    expected = {f"f{x:02d}": "" if x % 8 == 3 else f"c{x % 6}" for x in range(40)}
    assert dict(found.pairs) == expected
    codes[int(np.flatnonzero(FINE == 3)[0])] = "c3"
    assert find(coarse=codes, fine=[f"f{x:02d}" for x in FINE]) == []


def test_chains_end_at_a_learnt_column():
    found = find(
        a=[f"a{x:02d}" for x in FINE],
        b=[f"b{x % 10}" for x in FINE],
        c=[f"c{x % 5}" for x in FINE],
    )
    assert {(each.source, each.target) for each in found} == {("a", "b"), ("a", "c")}


def test_an_age_group_is_steps_even_if_ages_are_missing_from_the_table():
    ages = RNG.choice([*range(5, 60), 71, 90], 5000)
    groups = np.where(ages < 18, "child", np.where(ages < 65, "adult", "old"))
    [found] = find(age=ages, group=groups)
    assert found.by_steps
    assert list(found.pairs) == [(5, "child"), (18, "adult"), (71, "old")]


def test_a_step_begins_at_no_number_of_a_few_rows():
    """Nobody is 60 to 66, one is 67: the last step begins before. If one is 60, there is none."""
    ages = [67, *RNG.choice([*range(5, 60), 71, 90], 5000)]
    groups = ["old" if x > 60 else "adult" if x > 17 else "child" for x in ages]
    [found] = find(age=ages, group=groups)
    assert list(found.pairs) == [(5, "child"), (18, "adult"), (66, "old")]
    ages[0] = 60
    groups[0] = "old"
    assert not find(age=ages, group=groups)


def test_a_missing_source_may_have_a_result_of_its_own():
    cells = [None if x == 7 else f"f{x:02d}" for x in FINE]
    [found] = find(fine=cells, coarse=["none" if x == 7 else f"c{x % 6}" for x in FINE])
    assert ("", "none") in found.pairs


def test_nothing_follows_from_a_measured_decimal():
    """A month is no consequence of a price index that was another one in each month."""
    month = [f"m{x % 12:02d}" for x in FINE]
    index = (90 + (37 * FINE % 40) / 7).round(3)
    for cells in (index, [f"{x:.3f}" for x in index]):
        assert find(index=cells, month=month) == []
    half = FINE / 2
    assert find(half=half, level=np.where(half < 9, "low", "high")) == []
    # An area's index could be stated, not the area of an index.
    [found] = find(index=index, area=[f"a{x:02d}" for x in FINE])
    assert (found.source, found.target) == ("area", "index")


@pytest.mark.parametrize(("values", "is_step"), [(366, True), (367, False)])
def test_groups_follow_from_a_few_whole_numbers_and_not_from_an_amount(values, is_step):
    numbers = RNG.permutation(np.arange(7_320) % values)
    found = find(number=numbers, group=np.where(numbers < 100, "low", "high"))
    assert [each.by_steps for each in found] == [True] * is_step


def test_one_exception_refutes_it():
    coarse = FINE % 6
    coarse[4321] = (coarse[4321] + 1) % 6
    assert not find(fine=[f"f{x:02d}" for x in FINE], coarse=[f"c{x}" for x in coarse])


def test_values_of_one_row_each_are_no_evidence():
    """Nearly every value of the source is unique, so it determines anything."""
    source = [f"s{x}" for x in RNG.permutation(3000) % 2900]
    assert not find(source=source, target=[f"t{x}" for x in RNG.integers(0, 4, 3000)])


def test_a_rare_result_that_chance_explains_is_not_a_dependency():
    """Three rows of another value fall into three source values; 2,000 others never repeat it."""
    source = RNG.integers(0, 150, 2000)
    target = np.zeros(2000, dtype=int)
    target[[np.flatnonzero(source == v)[0] for v in (1, 2, 3)]] = 1
    source[target == 1] = 200
    assert not find(source=[f"s{x}" for x in source], target=[f"t{x}" for x in target])
