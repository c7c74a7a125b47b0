"""Bins, groups and pairs to measure: as fine, and as many, as the noise allows."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model.pairwise.table_layout import (
    apportion,
    choose_layout,
    choose_three_way,
    count_measured_pairs,
)
from deniable.privacy import noise_laws
from deniable.privacy.pairwise_budget import (
    MAX_GROUPS,
    MAX_THREE_WAY_GROUPS,
    gaussian_sigma,
    pair_noise,
)
from deniable.schema.attribute import Attribute
from worlds import plain_attribute, property_test

SIZES = (2, 3, 12, 40)
ATTRIBUTES = (
    *(plain_attribute(f"x{i}", size) for i, size in enumerate(SIZES)),
    Attribute(name="y", kind="categorical", values=tuple("abcdefghij"), missing=("?",)),
    plain_attribute("constant", 1),
)
BINS = tuple(np.arange(attribute.size) for attribute in ATTRIBUTES)
SHARES = tuple(np.full(attribute.size, 1 / attribute.size) for attribute in ATTRIBUTES)


def noise_of(attributes, mu=math.inf):
    return pair_noise([attribute.size for attribute in attributes], mu_values=mu, mu_pairs=mu)


def layout_of(attributes, *, mu, records, targets=()):
    shares = [np.full(attribute.size, 1 / attribute.size) for attribute in attributes]
    noise = noise_of(attributes, mu)
    return choose_layout(attributes, shares, noise, records=records, targets=targets), noise


@pytest.mark.parametrize("mu", [1e-3, 0.02, 0.3, 3.0])
@pytest.mark.parametrize("records", [1.0, 900.0, 50_000.0, 1e9])
def test_there_are_as_many_groups_as_noise_allows(mu, records):
    """(g - 1) g σ / records ≤ 0.2 for the chosen number; twice as many without an order."""
    missing = Attribute(name="m", kind="integer", values=range(50), missing=("?",))
    attributes = [plain_attribute("x", 40), plain_attribute("y", 3), missing]
    layout, noise = layout_of(attributes, mu=mu, records=records)
    unordered, few_values, ordered = (int(groups.max()) + 1 for groups in layout.groups)
    number = ordered - 1
    assert unordered <= 2 * number
    assert few_values == min(3, int(layout.bins[1].max()) + 1)
    assert max(unordered, ordered) <= MAX_GROUPS
    largest = max(layout.interaction_sigmas.values(), default=0.0)
    if number > 2:
        assert (number - 1) * number * largest <= 0.2 * records
    if mu * records > 1e5:
        assert number == 7
    if mu * records < 10:
        assert number <= 2
    assert math.isfinite(noise.mu_interactions)


def test_noise_too_large_for_its_table_makes_groups_coarser():
    """As many records as one likes: the stated entry fits, so that the fewest groups do."""
    attributes = [
        Attribute(name=f"m{i}", kind="integer", values=range(50), missing=("?",)) for i in range(6)
    ]
    layout, noise = layout_of(attributes, mu=1e-4, records=1e15, targets=[0])
    assert noise.interactions.name != "exact"
    assert noise_laws.gaussian_radius(8 * gaussian_sigma(noise.interactions)) > 2**26
    numbers = [int(groups.max()) + 1 for groups in layout.groups]
    assert 3 <= max(numbers) < 8
    for (i, j), sigma in layout.interaction_sigmas.items():
        assert noise_laws.rounded_gaussian(numbers[i] * numbers[j] * sigma).radius <= 2**26


@pytest.mark.parametrize("m", [2, 9])
def test_the_fewest_groups_fit_whenever_the_stated_entry_does(m):
    """Four of an attribute without order and one of missing cells, all pairs with a target but
    those that have the largest noise; at the smallest μ that has interactions."""
    values = [f"v{i}" for i in range(50)]
    attributes = [
        Attribute(name=f"m{i}", kind="categorical", values=values, missing=("?",)) for i in range(m)
    ]
    mu = 2.0
    while noise_of(attributes, mu / 1.1).interactions.name != "exact":
        mu /= 1.1
    layout, _ = layout_of(attributes, mu=mu, records=1.0, targets=range(m - 2))
    numbers = [int(groups.max()) + 1 for groups in layout.groups]
    for (i, j), sigma in layout.interaction_sigmas.items():
        assert noise_laws.rounded_gaussian(numbers[i] * numbers[j] * sigma).radius <= 2**26


def test_the_number_of_measured_pairs_by_hand():
    """(μ · records / 300)², at least 1.5 per attribute, at most all."""
    noise = replace(noise_of([plain_attribute("x", 3)] * 11), table_count=220)
    noise = replace(noise, tables=noise_laws.rounded_gaussian(math.sqrt(220) / 0.02))
    rows = (10_000, 63_000, 80_000, 111_000, 112_000, 10**7)
    found = [count_measured_pairs(11, noise, records=n) for n in rows]
    assert found == [16, 17, 28, 54, 55, 55]
    assert count_measured_pairs(11, noise_of([plain_attribute("x", 3)] * 11), records=1) == 55


weights_of_pairs = st.dictionaries(
    st.tuples(st.integers(0, 9), st.integers(10, 19)), st.floats(1e-9, 1e9), min_size=1, max_size=30
)


@property_test
@given(st.integers(0, 500), weights_of_pairs)
def test_all_tables_are_apportioned(number, weights):
    """No more, no fewer; each pair within one of its share; pairs without any are omitted."""
    looks = apportion(number, weights)
    assert sum(looks.values()) == number
    total = sum(weights.values())
    for pair, weight in weights.items():
        assert abs(looks.get(pair, 0) - number * weight / total) < 1 + 1e-6
    assert 0 not in looks.values()


# Three-way interactions


def three_way_layout_of(records, *, mu=0.3, targets=(), attributes=ATTRIBUTES):
    noise = pair_noise([a.size for a in attributes], mu_values=mu, mu_pairs=mu)
    number = len(attributes)
    return choose_three_way(
        attributes, BINS[:number], SHARES[:number], noise, records=records, targets=targets
    ), noise


def groups_in(layout):
    return [int(own.max()) + 1 for own in layout.groups]


def test_more_records_have_more_groups_and_too_few_have_no_three_way_interactions():
    found = [three_way_layout_of(records)[0] for records in (100, 3_000, 30_000, 100_000, 10**7)]
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
    layout, _ = three_way_layout_of(records)
    sizes = groups_in(layout)
    noises = [
        sigma * math.sqrt(math.prod(sizes[i] * (sizes[i] - 1) for i in triple)) / records
        for triple, sigma in layout.sigmas.items()
    ]
    assert 0.001 < sum(noises) / len(noises) <= 0.015


def test_all_triples_of_divided_attributes_are_measured_at_the_cost_of_the_entry():
    layout, noise = three_way_layout_of(10**6, targets=(1,))
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
    layout, _ = three_way_layout_of(1e12, mu=5e-3)
    sizes = groups_in(layout)
    for triple, sigma in layout.sigmas.items():
        scaled = sigma * math.prod(sizes[i] for i in triple)
        assert noise_laws.gaussian_radius(scaled) <= noise_laws.MAX_RADIUS


@pytest.mark.parametrize("number", [1, 2])
def test_fewer_than_three_attributes_have_none(number):
    assert three_way_layout_of(10**9, attributes=ATTRIBUTES[:number])[0] is None


def test_without_noise_none_are_measured():
    assert three_way_layout_of(10**9, mu=math.inf)[0] is None


def test_fewer_than_three_divided_attributes_have_none():
    attributes = (*ATTRIBUTES[:2], plain_attribute("a", 1), plain_attribute("b", 1))
    noise = pair_noise([a.size for a in attributes], mu_values=1.0, mu_pairs=1.0)
    bins, shares = [np.arange(a.size) for a in attributes], [np.ones(a.size) for a in attributes]
    assert noise.reserved_count > 0
    assert choose_three_way(attributes, bins, shares, noise, records=1e9, targets=()) is None
