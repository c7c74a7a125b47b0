"""Three-way interactions: measured when their noise is small, between groups of public number."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from deniable.model.pairwise.three_way import ThreeWay, choose_three_way
from deniable.privacy import noise_laws
from deniable.privacy.pairwise_budget import MAX_THREE_WAY_GROUPS, pair_noise
from deniable.schema.attribute import Attribute
from worlds import plain_attribute

SIZES = (2, 3, 12, 40)
ATTRIBUTES = (
    *(plain_attribute(f"x{i}", size) for i, size in enumerate(SIZES)),
    Attribute(name="y", kind="categorical", values=tuple("abcdefghij"), missing=("?",)),
    plain_attribute("constant", 1),
)
BINS = tuple(np.arange(attribute.size) for attribute in ATTRIBUTES)
SHARES = tuple(np.full(attribute.size, 1 / attribute.size) for attribute in ATTRIBUTES)


def layout_of(records, *, mu=0.3, targets=(), attributes=ATTRIBUTES):
    noise = pair_noise([a.size for a in attributes], mu_values=mu, mu_pairs=mu)
    number = len(attributes)
    return choose_three_way(
        attributes, BINS[:number], SHARES[:number], noise, records=records, targets=targets
    ), noise


def groups_in(layout):
    return [int(own.max()) + 1 for own in layout.groups]


def test_more_records_have_more_groups_and_too_few_have_no_three_way_interactions():
    found = [layout_of(records)[0] for records in (100, 3_000, 30_000, 100_000, 10**7)]
    assert found[0] is None
    numbers = [max(groups_in(layout)) for layout in found if layout is not None]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 1
    assert numbers[-1] == MAX_THREE_WAY_GROUPS
    # Two values stay two groups, missing cells are one of their own, a constant has one.
    assert groups_in(found[-1]) == [2, 3, 6, 6, 7, 1]


@pytest.mark.parametrize("records", [60_000, 10**6])
def test_the_noise_of_phi_is_within_its_bound(records):
    """By hand: all cells' noise in units of Cramér's φ for groups of equal weight; mean of all."""
    layout, _ = layout_of(records)
    sizes = groups_in(layout)
    noises = [
        sigma * math.sqrt(math.prod(sizes[i] * (sizes[i] - 1) for i in triple)) / records
        for triple, sigma in layout.sigmas.items()
    ]
    assert 0.001 < sum(noises) / len(noises) <= 0.015


def test_all_triples_of_divided_attributes_are_measured_at_the_cost_of_the_entry():
    layout, noise = layout_of(10**6, targets=(1,))
    assert list(layout.sigmas) == list(combinations(range(5), 3))
    sizes = groups_in(layout)
    spent = sum(
        math.prod(1 - 1 / sizes[i] for i in triple) / sigma**2
        for triple, sigma in layout.sigmas.items()
    )
    assert spent == pytest.approx(noise.mu_three_way**2)
    ratios = {triple: sigma / layout.sigmas[0, 2, 3] for triple, sigma in layout.sigmas.items()}
    assert ratios == {triple: pytest.approx(0.5 if 1 in triple else 1.0) for triple in ratios}


def test_noise_that_no_table_holds_is_not_chosen():
    """The σ of the numbers is that of the centred table times their cells."""
    layout, _ = layout_of(1e12, mu=5e-3)
    sizes = groups_in(layout)
    for triple, sigma in layout.sigmas.items():
        scaled = sigma * math.prod(sizes[i] for i in triple)
        assert noise_laws.gaussian_radius(scaled) <= noise_laws.MAX_RADIUS


@pytest.mark.parametrize("number", [1, 2])
def test_fewer_than_three_attributes_have_none(number):
    assert layout_of(10**9, attributes=ATTRIBUTES[:number])[0] is None


def test_without_noise_none_are_measured():
    assert layout_of(10**9, mu=math.inf)[0] is None


def test_fewer_than_three_divided_attributes_have_none():
    attributes = (*ATTRIBUTES[:2], plain_attribute("a", 1), plain_attribute("b", 1))
    noise = pair_noise([a.size for a in attributes], mu_values=1.0, mu_pairs=1.0)
    bins, shares = [np.arange(a.size) for a in attributes], [np.ones(a.size) for a in attributes]
    assert noise.reserved_count > 0
    assert choose_three_way(attributes, bins, shares, noise, records=1e9, targets=()) is None


def test_shapes_must_match():
    table = np.zeros((2, 3, 2), dtype=np.int64)
    groups = (np.arange(2), np.arange(3), np.array([0, 0, 1]))
    good = ThreeWay(groups=groups, interactions={(0, 1, 2): table}, sigmas={(0, 1, 2): 2.0})
    assert good.fits([2, 3, 3])
    assert not good.fits([2, 3, 2])
    assert not replace(good, sigmas={}).fits([2, 3, 3])
    assert not replace(good, interactions={(0, 1, 2): table[:, :2]}).fits([2, 3, 3])
    table += 24
    assert np.array_equal(good.interaction((0, 1, 2)), np.full((2, 3, 2), 2.0))
    assert good.mean_square == 1.0
    table[1, 2, 1] += 12
    assert good.mean_square == pytest.approx((11 + 1.5**2) / 12)
