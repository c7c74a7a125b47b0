"""Bundles: mixed-radix indices of combinations, their offsets, and draws that depend on them."""

from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deniable.arrays import CODE
from deniable.model.alias_sampling import alias_tables
from deniable.model.bundled_sampling import Bundle, TableDraw, make_sampling_plan
from deniable.randomness import Keyed
from worlds import property_test

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def bundle_of(sizes, first=0) -> Bundle:
    return Bundle(attributes=tuple(range(first, first + len(sizes))), sizes=tuple(sizes))


def every_combination(sizes) -> np.ndarray:
    return np.array(list(product(*map(range, sizes))), dtype=CODE, order="F")


@property_test
@given(SIZES)
def test_indices_of_combinations_ascend_and_round_trip(sizes):
    bundle, every = bundle_of(sizes), every_combination(sizes)
    found = bundle.indices(every)
    assert found.tolist() == list(range(len(every)))
    again = np.zeros_like(every)
    bundle.write(found, again)
    assert again.tolist() == every.tolist()


@property_test
@given(SIZES)
def test_offsets_sum_to_the_index(sizes):
    bundle, every = bundle_of(sizes), every_combination(sizes)
    total = sum(step[every[:, i]] for i, step in bundle.code_offsets())
    assert total.tolist() == bundle.indices(every).tolist()
    assert (
        bundle.combination_offsets(bundle.code_offsets()).tolist() == bundle.indices(every).tolist()
    )


def test_a_bundle_of_other_attributes_has_no_offsets():
    other = bundle_of((2, 3), first=2)
    assert bundle_of((2, 3)).combination_offsets(other.code_offsets()) is None


def test_each_bundle_is_drawn_given_the_one_before():
    """A deterministic chain of 30: after 0 comes 1, after 1 comes 2, after 2 comes 0."""
    sure = alias_tables(np.eye(3)[[1, 2, 0]])
    links = [bundle_of((3,), first=i) for i in range(30)]
    pairs = pairwise(links)
    plan = make_sampling_plan(
        links[:1], [TableDraw(link, sure, before.code_offsets()) for before, link in pairs]
    )
    codes = np.zeros((5, 30), dtype=CODE, order="F")
    codes[:, 0] = [0, 1, 2, 0, 1]
    plan.fill(codes, Keyed(1).at("records"))
    for i in range(30):
        assert codes[:, i].tolist() == [(x + i) % 3 for x in codes[:, 0].tolist()]
    assert plan._last_use == {at: at + 1 for at in range(29)}, (
        "indices are deleted after their last use"
    )


def test_indices_needed_later_are_kept():
    """The last is the sum of the first two, modulo 2."""
    first, second, between, last = (bundle_of((2,), first=i) for i in range(4))
    fair, sum_of = alias_tables(np.full((1, 2), 0.5)), alias_tables(np.eye(2)[[0, 1, 1, 0]])
    code_offsets = [(0, np.array([0, 2])), (1, np.array([0, 1]))]
    plan = make_sampling_plan(
        [first],
        [
            TableDraw(second, fair, []),
            TableDraw(between, fair, []),
            TableDraw(last, sum_of, code_offsets),
        ],
    )
    codes = np.zeros((1000, 4), dtype=CODE, order="F")
    codes[::3, 0] = 1
    plan.fill(codes, Keyed(1).at("records"))
    assert (codes[:, 3] == codes[:, 0] ^ codes[:, 1]).all()
    assert 0 < codes[:, 1].mean() < 1
