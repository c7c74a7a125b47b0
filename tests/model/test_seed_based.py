"""M of the paper: Pr{y = M(d)} by the text, for a known and a hidden ω; what is kept; the law."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import definitions
from chance import assert_distribution
from deniable.errors import ConfigError
from deniable.model.seed_based import NetworkModel, matched_levels
from deniable.randomness import Keyed
from worlds import (
    codes_of,
    count_records,
    omega_ranges,
    property_test,
    records_of,
    small_world,
    worlds,
)

pytestmark = pytest.mark.slow


def logarithm(p: Fraction) -> float:
    return math.log(p) if p > 0 else -math.inf


@st.composite
def situations(draw, **options):
    """A world, a range of ω, and a few records that may be candidates."""
    world = draw(worlds(**options))
    record = st.tuples(*[st.integers(0, size - 1) for size in world.model.sizes])
    near = st.sampled_from(world.table)
    candidates = draw(st.lists(record | near, min_size=1, max_size=6))
    return world, draw(omega_ranges(world.m)), candidates


@property_test
@given(situations())
def test_log_probability_is_that_of_the_paper(situation):
    """``eq:gm:seedbased_synthesis`` summed over ω: 11 rounded operations at most, so 1e-12."""
    world, omegas, candidates = situation
    model = NetworkModel(world.network, omegas)
    logs = model.log_probability(codes_of(candidates, world.m), world.codes)
    expected = [
        [logarithm(definitions.hidden_probability(world.model, y, d, omegas)) for d in world.table]
        for y in candidates
    ]
    np.testing.assert_allclose(logs, expected, atol=1e-12)


@property_test
@given(situations())
def test_a_known_omega_has_one_probability_for_all_seeds_with_the_prefix(situation):
    """guarantee.md, Theorem 6.1, to the last bit: equal floats, so equal ranges."""
    world, omegas, candidates = situation
    for omega in omegas:
        logs = (
            NetworkModel(world.network, omegas)
            .at(omega)
            .log_probability(codes_of(candidates, world.m), world.codes)
        )
        for y, row in zip(candidates, logs, strict=True):
            share = [
                definitions.shared_prefix(d, y, world.model.order) >= world.m - omega
                for d in world.table
            ]
            assert len(set(row[share].tolist())) <= 1
            assert (row[np.logical_not(share)] == -np.inf).all()


@property_test
@given(situations())
def test_levels_never_decrease_and_are_what_their_seeds_get(situation):
    """guarantee.md, Theorem 6.2: P_ℓ(y) for a seed that shares exactly its first ℓ attributes."""
    world, omegas, candidates = situation
    model = NetworkModel(world.network, omegas)
    assert model.kept == tuple(sorted(world.m - omega for omega in omegas))
    levels = model.log_levels(codes_of(candidates, world.m))
    assert (levels[:, 1:] >= levels[:, :-1]).all()
    for y, row in zip(candidates, levels, strict=True):
        for d in world.table:
            shared = definitions.shared_prefix(d, y, world.model.order)
            reached = [at for at, length in enumerate(model.kept) if length <= shared]
            if reached:
                p = definitions.hidden_probability(world.model, y, d, omegas)
                np.testing.assert_allclose(row[reached[-1]], logarithm(p), atol=1e-12)


@property_test
@given(situations())
def test_matched_levels_are_the_prefixes_shared(situation):
    world, omegas, candidates = situation
    kept = NetworkModel(world.network, omegas).kept
    order = world.model.order
    matched = matched_levels(codes_of(candidates, world.m), world.codes, order, kept)
    for y, row in zip(candidates, matched, strict=True):
        shared = [definitions.shared_prefix(d, y, order) for d in world.table]
        assert row.tolist() == [sum(length <= s for length in kept) for s in shared]


@property_test
@given(situations(records=4), st.data())
def test_exactly_the_first_attributes_are_kept(situation, data):
    """With a different ω for each record; drawn values are possible."""
    world, omegas, _ = situation
    model = NetworkModel(world.network, omegas)
    n = len(world.table)
    chosen = data.draw(st.lists(st.sampled_from(omegas), min_size=n, max_size=n))
    seeds = world.codes.copy(order="C")
    everyone, rng = np.arange(len(seeds)), Keyed(6).at("candidates")
    candidates = model.propose_from(seeds, everyone, np.array(chosen), rng)
    for d, y, omega in zip(world.table, records_of(candidates), chosen, strict=True):
        assert definitions.shared_prefix(d, y, world.model.order) >= world.m - omega
        assert definitions.synthesis_probability(world.model, y, d, omega) > 0


@pytest.mark.parametrize("memory", ["C", "F"])
@pytest.mark.parametrize("omegas", [(2,), (3,), (1, 2, 3)])
def test_seeds_are_left_as_they_are(omegas, memory):
    """They are the confidential table itself, not a copy."""
    network, model = small_world()
    seeds = np.array(model.universe(), dtype=np.uint16, order=memory)
    before = seeds.copy()
    NetworkModel(network, omegas).propose(seeds, Keyed(6).at("candidates"))
    np.testing.assert_array_equal(seeds, before)


def test_more_attributes_are_not_kept_than_should_be():
    """Each drawn attribute does change in some record."""
    network, model = small_world()
    seeds = np.array(model.universe() * 20, dtype=np.uint16)
    for omega in (1, 2, 3):
        y = NetworkModel(network, (omega,)).propose(seeds.copy(), Keyed(6).at("candidates"))
        changed = {i for i in range(3) if (y[:, i] != seeds[:, i]).any()}
        assert changed == set(model.order[3 - omega :])


def test_omega_is_uniform_over_its_range():
    """False-alarm rate 1e-6, fixed key."""
    network, _ = small_world()
    chosen = NetworkModel(network, (1, 2, 3)).choose_omegas(90_000, Keyed(9).at("seeds"))
    assert_distribution(Counter(chosen.tolist()), {omega: Fraction(1, 3) for omega in (1, 2, 3)})


SEED = (3, 1, 2)


def propose_many(omegas: tuple[int, ...]) -> Counter:
    network, _ = small_world()
    seeds = codes_of([SEED] * 120_000, 3)
    return count_records(NetworkModel(network, omegas).propose(seeds, Keyed(31).at("candidates")))


def expected_of(omegas: tuple[int, ...]) -> dict:
    _, model = small_world()
    return {y: definitions.hidden_probability(model, y, SEED, omegas) for y in model.universe()}


@pytest.mark.parametrize("omegas", [(1,), (2,), (3,), (1, 2), (1, 2, 3)])
def test_candidates_have_the_law_of_log_probability(omegas):
    """What ``GenerativeModel`` demands; false-alarm rate 1e-6 each, fixed key."""
    assert_distribution(propose_many(omegas), expected_of(omegas))


def test_that_assertion_notices_an_omega_that_is_never_drawn():
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(propose_many((2, 3)), expected_of((1, 2, 3)))


@pytest.mark.parametrize("omegas", [(), (0,), (0, 1), (4,), (3, 4), (2, 1), (1, 1), (-1,)])
def test_an_omega_out_of_range_is_refused(omegas):
    network, _ = small_world()
    with pytest.raises(ConfigError, match=r"omega must be in 1\.\.3"):
        NetworkModel(network, omegas)
