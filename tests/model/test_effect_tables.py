"""Effects looked up together: the sums of their definition, whatever is summed beforehand."""

from itertools import product

import numpy as np
import pytest

from deniable.model import effect_tables as module
from deniable.model.effect_tables import (
    JointEffect,
    JointEffectTables,
    add_look_ups,
    divide_parents,
    sum_effects,
)

SIZES = (4, 3, 2, 5)
BINS = 6
# Of four distinct columns; the effects of pairs are those of groups of bins.
BIN_GROUPS = np.array([2, 0, 1, 1, 3, 0])
# The first parent in two divisions: pairs need not use the same.
HALVES, ENDS = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
CONFIGURATIONS = list(product(*map(range, SIZES)))
GROUPS = [np.array(column) for column in zip(*CONFIGURATIONS, strict=True)]


def sums_of(effects):
    return sum_effects(effects, divide_parents([len(effect) for effect in effects], BINS))


def joint_effect(key, first, second, first_groups, second_groups):
    pairs = (first_groups.max() + 1) * (second_groups.max() + 1)
    own = np.random.default_rng(key).integers(-9_000, 9_000, (pairs, 4))
    effects = own[:, BIN_GROUPS].astype(np.int32)
    return JointEffect(first, second, first_groups, second_groups, effects)


def joint_effects():
    whole = [np.arange(size) for size in SIZES]
    return (
        joint_effect(1, 0, 1, HALVES, whole[1]),
        joint_effect(2, 0, 3, ENDS, whole[3] // 2),
        joint_effect(3, 1, 2, whole[1], whole[2]),
        joint_effect(4, 0, 2, HALVES, whole[2]),
    )


@pytest.mark.parametrize(("limit", "tables"), [(1, 4), (10, 3), (24, 2), (120, 1)])
def test_sums_of_single_parents_are_their_effects_one_after_the_other(monkeypatch, limit, tables):
    monkeypatch.setattr(module, "_MAX_CONFIGURATIONS", limit)
    rng = np.random.default_rng(5)
    effects = [rng.integers(-9_000, 9_000, (size, BINS)).astype(np.int32) for size in SIZES]
    summed = sums_of(effects)
    assert len(summed) == tables
    found = add_look_ups(summed, [table.index(GROUPS) for table in summed])
    wanted = [
        sum(effect[group] for effect, group in zip(effects, own, strict=True))
        for own in CONFIGURATIONS
    ]
    assert found.T.tolist() == np.array(wanted).tolist()


@pytest.mark.parametrize(
    ("sizes", "limit", "parts"),
    [
        ([], 9, []),
        ([7], 3, [(0,)]),
        ([2, 3, 4, 5], 1, [(0,), (1,), (2,), (3,)]),
        ([2, 3, 4, 5], 12, [(0, 3), (1, 2)]),
        # Nine parents of the 2024 ACS: in their order, they would need three tables.
        ([7, 15, 5, 24, 4, 5, 2, 5, 2], 2_520, [(0, 1, 4, 5), (2, 3, 6, 7, 8)]),
    ],
)
def test_parents_are_divided_into_few_parts(monkeypatch, sizes, limit, parts):
    monkeypatch.setattr(module, "_MAX_CONFIGURATIONS", limit)
    found = divide_parents(sizes, 1)
    assert sorted(parent for part in found for parent in part) == list(range(len(sizes)))
    assert found == parts


def test_a_table_has_a_limited_number_of_cells(monkeypatch):
    effects = [np.zeros((size, BINS), dtype=np.int32) for size in SIZES]
    assert [len(table.effects) for table in sums_of(effects)] == [120]
    monkeypatch.setattr(module, "_MAX_CELLS", 12 * BINS)
    assert [len(table.effects) for table in sums_of(effects)] == [12, 10]


def test_groups_and_strides_of_a_table_give_its_index():
    rng = np.random.default_rng(6)
    effects = [rng.integers(-9, 9, (size, BINS)).astype(np.int32) for size in SIZES]
    [table] = sums_of(effects)
    groups = table.groups()
    assert table.index(groups).tolist() == list(range(len(table.effects)))
    index = sum(stride * own for stride, own in zip(table.strides, groups, strict=True))
    assert index.tolist() == list(range(len(table.effects)))


@pytest.mark.parametrize(("limit", "tables"), [(1, 4), (12, 2), (1_024, 1)])
def test_sums_of_pairs_are_their_effects_one_after_the_other(monkeypatch, limit, tables):
    monkeypatch.setattr(module, "_MAX_CONFIGURATIONS", limit)
    effects = joint_effects()
    summed = JointEffectTables.of(effects)
    assert len(summed.tables) == tables
    assert len(summed.coarsenings) == 5
    assert len(set(summed.bin_groups.tolist())) == 4
    start = np.arange(BINS * len(CONFIGURATIONS), dtype=np.int32).reshape(BINS, -1)
    found = start.copy()
    summed.add_to(found, summed.index(GROUPS))
    for place, own in enumerate(CONFIGURATIONS):
        wanted = start[:, place].copy()
        for each in effects:
            one, two = each.first_groups[own[each.first]], each.second_groups[own[each.second]]
            wanted += each.effects[one * (each.second_groups.max() + 1) + two]
        assert found[:, place].tolist() == wanted.tolist()
