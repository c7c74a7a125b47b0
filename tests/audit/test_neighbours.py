"""Worst-case tables: each case has what its words say."""

import numpy as np
import pytest

from deniable.audit.neighbours import (
    UNIT_COLUMN,
    all_cases,
    diagonal_rows,
    find_case,
    possible_cases,
)
from deniable.errors import BudgetError, ConfigError

OPTIONS = {"epsilon": 1.0, "delta": 1e-3}
CASES = {case.name: case for case in all_cases(OPTIONS)}


def test_all_modes_have_cases():
    modes = {case.mode for case in CASES.values()}
    assert modes == {"seedless", "one-shot", "tested", "randomized", "draft"}


def test_a_mode_or_a_data_use_restricts_the_cases():
    assert {case.mode for case in all_cases({**OPTIONS, "mode": "one-shot"})} == {"one-shot"}
    of_split = all_cases({**OPTIONS, "data_use": "split"})
    assert [case.name for case in of_split] == ["random split"]
    with pytest.raises(ConfigError, match="leave one of them out"):
        all_cases({**OPTIONS, "mode": "tested", "data_use": "split"})
    with pytest.raises(BudgetError, match="no case"):
        find_case("unknown", OPTIONS)


@pytest.mark.parametrize("name", CASES)
def test_neighbours_differ_by_the_targets_that_are_present(name):
    case = CASES[name]
    nobody = np.zeros(len(case.targets), dtype=bool)
    first = nobody.copy()
    first[0] = True
    without, with_row = case.frame(nobody), case.frame(first)
    assert with_row.height - without.height == case.copies
    assert len(case.rows(first)) - len(case.rows(nobody)) == case.used
    added = with_row.tail(case.copies).drop(UNIT_COLUMN, strict=False).rows()
    values = [
        a.values[code] for a, code in zip(case.schema.attributes, case.targets[0], strict=True)
    ]
    assert set(added) == {tuple(values)}


@pytest.mark.parametrize("name", ["alone in its cells", "private draft"])
def test_a_lone_target_shares_no_value(name):
    case = CASES[name]
    assert not (case.base == case.targets[0]).any()


def test_diagonal_rows_share_no_value():
    rows = diagonal_rows(5, 3)
    assert all(len(set(rows[:, i])) == 5 for i in range(3))


def test_kept_prefixes_are_kept_whatever_the_noise():
    """Without a target k + 2 r + 1 rows share its prefix: more than noise can hide."""
    case = CASES["kept prefix"]
    rows = (case.base == case.targets[0]).all(axis=1).sum()
    assert rows == 50 + 2 * case.plan.privacy.seeds.radius + 1


def test_a_split_has_no_default_estimator_and_keeps_another():
    assert CASES["random split"].plan.fractions is not None
    assert CASES["random split"].options["estimator"] == "norm-sub"
    (case,) = all_cases({**OPTIONS, "data_use": "split", "estimator": "clip"})
    assert case.options["estimator"] == "clip"


def test_at_the_threshold_one_row_is_missing():
    for name, k in (
        ("prefix at the threshold", 50),
        ("tested seeds", 50),
        ("randomized test", 200),
    ):
        case = CASES[name]
        assert (case.base == case.targets[0]).all(axis=1).sum() == k - 1


def test_rows_of_a_person_have_one_identifier():
    case = CASES["people with many rows"]
    present = np.zeros(len(case.targets), dtype=bool)
    present[[2, 5]] = True
    people = case.frame(present)[UNIT_COLUMN].to_list()
    assert len(set(people)) == len(case.base) + 2
    assert people[-1] == people[-5] != people[-6]


def test_what_options_do_not_allow_is_left_out_and_named():
    """With k = 50 and δ = 10⁻⁹, no number of records meets ε = 1 in mode randomized."""
    options = {"epsilon": 1.0, "delta": 1e-9, "k": 50}
    cases, left_out = possible_cases(options)
    assert "randomized" not in {case.mode for case in cases}
    assert left_out[0].startswith("randomized: ")
    with pytest.raises(BudgetError, match="k = 50"):
        possible_cases({**options, "mode": "randomized"})


def test_columns_of_another_table_are_refused():
    with pytest.raises(ConfigError, match="made up"):
        all_cases({**OPTIONS, "target": ("income",)})


def test_all_plans_are_within_what_was_asked_for():
    for case in CASES.values():
        if case.mode != "draft":
            assert case.plan.cost.epsilon <= 1.0
