"""Pair masks: allowed combinations of two attributes, given and implied."""

from itertools import product

import numpy as np
import pytest

from deniable.arrays import CODE
from deniable.schema import pair_masks
from deniable.schema.constraint_solver import ConstraintSolver
from deniable.schema.pair_masks import (
    MaskClosure,
    allowed_codes,
    contradictions,
    find_pair_masks,
    masked_with,
    restrict_to_allowed,
)
from deniable.schema.schema import Schema

TEXT = """format = 1
[[attribute]]
name = "age"
type = "integer"
min = 0
max = 29
bins = { width = 5 }

[[attribute]]
name = "pay"
type = "integer"
min = 0
max = 3
missing = ["N"]

[[attribute]]
name = "status"
type = "categorical"
values = ["single", "married"]
missing = ["N"]

[[constraint]]
forbid = { age = { below = 15 }, pay = { missing = false } }

[[constraint]]
forbid = { age = { at_least = 15 }, status = { missing = true } }
"""


@pytest.fixture
def schema() -> Schema:
    return Schema.parse(TEXT)


def test_a_mask_is_what_the_solver_says_of_two_columns(schema):
    masks = find_pair_masks(schema.attributes, schema.constraints)
    codes = np.array(list(product(*map(range, schema.sizes))), dtype=CODE)
    solver = ConstraintSolver(schema.attributes, schema.constraints[:1])
    assert masks[0, 1][codes[:, 0], codes[:, 1]].tolist() == solver.feasible(codes).tolist()


def test_implied_combinations_are_excluded_exactly(schema):
    """A payment needs an age of 15, and so a status: no record has pay without status."""
    masks = find_pair_masks(schema.attributes, schema.constraints)
    assert (1, 2) in masks, "no constraint names these two"
    codes = np.array(list(product(*map(range, schema.sizes))), dtype=CODE)
    feasible = codes[schema.constraint_solver.feasible(codes)]
    for (i, j), mask in masks.items():
        found = np.zeros_like(mask)
        found[feasible[:, i], feasible[:, j]] = True
        assert np.array_equal(found, mask)


def test_contradictions_with_earlier_attributes_are_marked(schema):
    masks = find_pair_masks(schema.attributes, schema.constraints)
    records = np.array([[0, 4, 2], [0, 1, 2], [5, 1, 0], [5, 1, 2]], dtype=CODE)
    assert contradictions(records, 1, [0], masks).tolist() == [False, True, False, False]
    assert contradictions(records, 2, [0, 1], masks).tolist() == [False, True, False, True]
    assert not contradictions(records, 2, [], masks).any()


def test_allowed_codes_are_those_without_contradiction(schema):
    masks = find_pair_masks(schema.attributes, schema.constraints)
    sizes = [attribute.size for attribute in schema.attributes]
    records = np.array(list(product(*map(range, sizes))), dtype=CODE)
    for new, earlier in ((2, [0, 1]), (1, [0]), (0, [1, 2])):
        allowed = allowed_codes(records, new, earlier, masks)
        for code in range(sizes[new]):
            records[:, new] = code
            wrong = contradictions(records, new, earlier, masks)
            np.testing.assert_array_equal(allowed[:, code], ~wrong)


def test_probabilities_are_restricted_to_allowed_values():
    probabilities = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]])
    allowed = np.array([[True, True, False], [True, True, False], [False, False, False]])
    found = restrict_to_allowed(probabilities, allowed)
    np.testing.assert_allclose(found, [[0.4, 0.6, 0], [0.5, 0.5, 0], [0, 0, 0]])


def test_earlier_attributes_that_share_a_mask_are_listed_in_their_order():
    assert masked_with(2, [3, 1, 0], {(0, 2): None, (2, 3): None, (0, 1): None}) == [3, 0]


def test_a_closure_never_excludes_a_combination_that_some_record_has():
    rng = np.random.default_rng(1)
    for _ in range(20):
        sizes = rng.integers(2, 4, 4).tolist()
        given = {(i, j): rng.random((sizes[i], sizes[j])) < 0.7 for i in range(4) for j in range(i)}
        closure = MaskClosure(sizes)
        for (i, j), mask in given.items():
            closure.restrict(i, j, mask)
        for record in product(*map(range, sizes)):
            if all(mask[record[i], record[j]] for (i, j), mask in given.items()):
                pairs = product(range(4), repeat=2)
                assert all(closure.allowed(i, j)[record[i], record[j]] for i, j in pairs if i != j)


def test_a_large_mask_is_left_to_the_solver(schema, monkeypatch):
    monkeypatch.setattr(pair_masks, "_MAX_MASK_CELLS", 20)
    assert set(find_pair_masks(schema.attributes, schema.constraints)) == {(0, 2)}
