"""Worst-case tables and planted faults are what their words say."""

import math
from dataclasses import replace

import numpy as np
import pytest

from deniable.audit.neighbours import (
    UNIT_COLUMN,
    all_cases,
    diagonal_rows,
    find_case,
    possible_cases,
)
from deniable.audit.planted_faults import FAULT_WORDS, parse_fault, planted_plan, planted_randomness
from deniable.errors import BudgetError, ConfigError
from deniable.privacy.noise_laws import discrete_laplace, truncated_geometric
from deniable.randomness import Keyed, Secret

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


def test_unknown_faults_are_refused():
    assert parse_fault(None) is None
    assert [parse_fault(name) for name in FAULT_WORDS] == list(FAULT_WORDS)
    with pytest.raises(ConfigError, match="half-noise"):
        parse_fault("no-noise")


@pytest.mark.parametrize(
    "name", ["many targets", "kept prefix", "alone in its cells", "random split"]
)
def test_half_of_the_noise_is_half_in_every_stage(name):
    plan = find_case(name, OPTIONS).plan
    halved = planted_plan("half-noise", plan)
    assert planted_plan("row-count", plan) is plan
    for before, after in zip(plan.privacy.spends, halved.privacy.spends, strict=True):
        share = after.law.variance / before.law.variance
        if before.law.name.startswith("truncated"):
            assert share < 0.5  # it keeps its bound, which cuts the wider law off more
        else:
            rounding = 0.005 if before.law.name == "rounded_gaussian" else 0.02
            assert share == pytest.approx(1 / 4, abs=rounding)
    if plan.privacy.pairs is None:
        return
    mu = plan.privacy.pairs.mu_interactions
    assert halved.privacy.pairs.mu_interactions == pytest.approx(2 * mu)
    # Infinite in tables of two columns, which have no triples.
    mu = plan.privacy.pairs.mu_three_way
    assert halved.privacy.pairs.mu_three_way == pytest.approx(2 * mu)
    assert math.isfinite(mu) == (name == "alone in its cells")


@pytest.mark.parametrize("law", [discrete_laplace(0.2), truncated_geometric(0.1, 200)])
def test_other_laws_are_halved_too(law):
    plan = find_case("kept prefix", OPTIONS).plan
    plan = replace(plan, privacy=replace(plan.privacy, counts=law, seeds=law))
    halved = planted_plan("half-noise", plan).privacy
    assert halved.counts.variance == pytest.approx(law.variance / 4, rel=0.05)
    assert halved.seeds.radius <= law.radius


def test_shared_noise_begins_anew_with_every_draw():
    rng = planted_randomness("shared-noise", Keyed(1)).at("noise")
    assert (rng.words(3) == rng.words(5)[:3]).all()
    assert (rng.half_words(4) == rng.half_words(4)).all()
    assert (rng.random(4) == rng.random(4)).all()
    assert (rng.integers(9, 4) == rng.integers(9, 4)).all()
    other = planted_randomness("shared-noise", Keyed(2)).at("noise")
    assert (rng.words(3) != other.words(3)).any()


def test_a_fixed_seed_is_the_same_in_every_run():
    one, two = (planted_randomness("fixed-seed", Secret()).at("noise") for _ in range(2))
    assert (one.words(3) == two.words(3)).all()
    assert planted_randomness(None, Keyed(3)) == Keyed(3)
