"""Attributes as one number: which number, and back."""

from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deniable.arrays import CODE
from deniable.model.draws import alias_tables
from deniable.model.filling import Bundle, make_filling
from deniable.randomness import Keyed
from worlds import property_test

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def bundle_of(sizes, first=0) -> Bundle:
    return Bundle(attributes=tuple(range(first, first + len(sizes))), sizes=tuple(sizes))


def every_combination(sizes) -> np.ndarray:
    return np.array(list(product(*map(range, sizes))), dtype=CODE, order="F")


@property_test
@given(SIZES)
def test_combinations_are_numbered_in_their_order_and_come_back(sizes):
    bundle, every = bundle_of(sizes), every_combination(sizes)
    numbers = bundle.read(every)
    assert numbers.tolist() == list(range(len(every)))
    again = np.zeros_like(every)
    bundle.write(numbers, again)
    assert again.tolist() == every.tolist()


@property_test
@given(SIZES)
def test_steps_add_up_to_the_number(sizes):
    bundle, every = bundle_of(sizes), every_combination(sizes)
    total = sum(step[every[:, i]] for i, step in bundle.steps())
    assert total.tolist() == bundle.read(every).tolist()
    assert bundle.added(bundle.steps()).tolist() == bundle.read(every).tolist()


def test_a_bundle_adds_nothing_to_what_does_not_depend_on_it():
    other = bundle_of((2, 3), first=2)
    assert bundle_of((2, 3)).added(other.steps()) is None


def test_each_is_drawn_from_what_the_one_before_it_became():
    """A chain of 30, of which each is sure: after 0 comes 1, after 1 comes 2, after 2 comes 0."""
    sure = alias_tables(np.eye(3)[[1, 2, 0]])
    links = [bundle_of((3,), first=i) for i in range(30)]
    pairs = pairwise(links)
    filling = make_filling(links[:1], [(link, before.steps(), sure) for before, link in pairs])
    codes = np.zeros((5, 30), dtype=CODE, order="F")
    codes[:, 0] = [0, 1, 2, 0, 1]
    filling.fill(codes, Keyed(1).at("records"))
    for i in range(30):
        assert codes[:, i].tolist() == [(x + i) % 3 for x in codes[:, 0].tolist()]
    assert filling._last == {at: at + 1 for at in range(29)}, (
        "a number is let go after its last use"
    )


def test_what_is_needed_later_is_not_let_go():
    """The last is the sum of the first two, modulo 2."""
    first, second, between, last = (bundle_of((2,), first=i) for i in range(4))
    fair, sum_of = alias_tables(np.full((1, 2), 0.5)), alias_tables(np.eye(2)[[0, 1, 1, 0]])
    steps = [(0, np.array([0, 2])), (1, np.array([0, 1]))]
    filling = make_filling(
        [first], [(second, [], fair), (between, [], fair), (last, steps, sum_of)]
    )
    codes = np.zeros((1000, 4), dtype=CODE, order="F")
    codes[::3, 0] = 1
    filling.fill(codes, Keyed(1).at("records"))
    assert (codes[:, 3] == codes[:, 0] ^ codes[:, 1]).all()
    assert 0 < codes[:, 1].mean() < 1
