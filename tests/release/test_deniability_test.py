"""Deniability tests: look-ups and scans against a literal transcription of the paper."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import definitions
from chance import assert_distribution, assert_rate
from deniable.counting.prefix_counts import PrefixCounts
from deniable.errors import ConfigError, InvariantError
from deniable.model.seed_based import NetworkModel
from deniable.paper.definitions import is_deniable
from deniable.privacy.noise_laws import discrete_laplace, exact
from deniable.randomness import Keyed
from deniable.release import deniability_test as module
from deniable.release.deniability_test import (
    ScanLimits,
    count_hidden_omega,
    count_own_omega,
    pass_deterministic_test,
    pass_randomized_test,
    range_index,
    scan_plausible_seeds,
)
from perturbation_model import PerturbationModel
from worlds import (
    World,
    codes_of,
    gammas,
    omega_ranges,
    plain_attribute,
    property_test,
    records_of,
    small_world,
    worlds,
)

pytestmark = pytest.mark.slow

NO_LIMITS = ScanLimits()
# What the docstring of ``range_index`` leaves to rounding.
SLACK = 1 + Fraction(1, 2**40)


@st.composite
def runs(draw, **options):
    """A world, a range of ω, and candidates that its model made: one of every seed."""
    world = draw(worlds(**options))
    model = NetworkModel(world.network, draw(omega_ranges(world.m)))
    rng = Keyed(draw(st.integers(0, 2**20))).at("candidates")
    chosen = model.choose_omegas(len(world.table), rng)
    candidates = model.propose_from(world.codes, np.arange(len(chosen)), chosen, rng)
    return SimpleNamespace(
        world=world,
        model=model,
        omegas=chosen,
        candidates=candidates,
        counts=PrefixCounts.of(world.codes, world.model.order, model.kept, world.model.sizes),
    )


def hidden(world: World, model: NetworkModel, y) -> list[Fraction]:
    """Pr{y = M(d)} of every seed d, ω hidden."""
    return [definitions.hidden_probability(world.model, y, d, model.omegas) for d in world.table]


def own(world: World, y, omega: int) -> list[Fraction]:
    """Pr{y = M(d)} of every seed d, ω known."""
    return [definitions.synthesis_probability(world.model, y, d, omega) for d in world.table]


def look_up_own(run) -> np.ndarray:
    levels = np.array([run.model.kept.index(run.world.m - w) for w in run.omegas.tolist()])
    return count_own_omega(run.counts, run.world.codes, levels)


def look_up_hidden(run, gamma: Fraction) -> np.ndarray:
    return count_hidden_omega(
        run.model, run.counts, run.candidates, run.world.codes, gamma=float(gamma)
    )


def scan(run, gamma: Fraction, limits=NO_LIMITS) -> np.ndarray:
    return scan_plausible_seeds(
        run.model,
        run.world.codes,
        run.candidates,
        run.world.codes,
        Keyed(5).at("scan"),
        gamma=float(gamma),
        limits=limits,
    )


# Ranges


@property_test
@given(st.fractions(Fraction(1, 10**6), 1, max_denominator=10**6), gammas)
def test_range_index_is_the_partition_number(p, gamma):
    index = range_index(np.array([math.log(p)]), gamma=float(gamma))[0]
    if definitions.near_boundary(p, gamma):
        assert abs(index - definitions.partition_number(p, gamma)) <= 1
    else:
        assert index == definitions.partition_number(p, gamma)


def test_certainty_is_in_range_zero_and_impossibility_in_none():
    certain, impossible, density = range_index(np.array([0.0, -np.inf, 0.5]), gamma=2.0)
    assert certain == 0
    assert density == -1
    assert impossible not in (certain, density)


@pytest.mark.parametrize("gamma", [1.0, 0.5, -2.0, math.inf, math.nan])
def test_ranges_need_a_gamma_above_one(gamma):
    with pytest.raises(ConfigError, match="gamma"):
        range_index(np.zeros(1), gamma=gamma)


@pytest.mark.parametrize("levels", range(1, 12))
def test_a_certain_record_is_in_range_zero_however_its_probability_is_summed(levels):
    """p = 1 as a sum of equal weights of every ω: γ^-1 < 1 ≤ γ^0, so i = 0."""
    attributes = tuple(plain_attribute(f"x{i}", 1) for i in range(levels))
    certain = definitions.Model(
        sizes=(1,) * levels,
        bucket_of=((0,),) * levels,
        parents=((),) * levels,
        order=tuple(range(levels)),
        tables=({(): [Fraction(1)]},) * levels,
    )
    world = World(attributes, [(0,) * levels], certain)
    model = NetworkModel(world.network, tuple(range(1, levels + 1)))
    logs = model.log_probability(world.codes, world.codes)
    assert range_index(logs, gamma=2.0).tolist() == [[0]]


# A known ω


@property_test
@given(runs(), gammas)
def test_count_own_omega_is_privacy_test_1_for_every_gamma(run, gamma):
    """guarantee.md, Theorem 6.1: with a known ω, no boundary can matter."""
    counted = look_up_own(run)
    for a, y in enumerate(records_of(run.candidates)):
        probabilities = own(run.world, y, int(run.omegas[a]))
        assert counted[a] == definitions.plausible_seeds(probabilities, a, gamma)


@property_test
@given(runs(), gammas)
def test_a_scan_under_its_own_omega_is_the_look_up(run, gamma):
    counted = look_up_own(run)
    for omega in set(run.omegas.tolist()):
        which = run.omegas == omega
        scanned = scan_plausible_seeds(
            run.model.at(omega),
            run.world.codes,
            run.candidates[which],
            run.world.codes[which],
            Keyed(5).at("scan"),
            gamma=float(gamma),
            limits=NO_LIMITS,
        )
        np.testing.assert_array_equal(scanned, counted[which])


@property_test
@given(runs(), st.integers(1, 4))
def test_passing_with_a_known_omega_implies_k_1_deniability(run, k):
    """With ω known, Definition 1 holds with γ = 1."""
    passed = pass_deterministic_test(look_up_own(run), k=k)
    for a in np.flatnonzero(passed):
        y = records_of(run.candidates)[a]
        probabilities = own(run.world, y, int(run.omegas[a]))
        assert definitions.is_deniable(probabilities, int(a), k=k, gamma=Fraction(1))
        logs = run.model.at(int(run.omegas[a])).log_probability(
            run.candidates[[a]], run.world.codes
        )
        assert is_deniable(logs[0], int(a), k=k, gamma=1.0)


@property_test
@given(runs(), st.integers(1, 4))
def test_at_least_k_records_share_the_highest_posterior_if_omega_is_hidden_later(run, k):
    """the review, section 2, Proposition: the own-ω test, deterministic, ω not told."""
    world, omegas = run.world, run.model.omegas
    passed = pass_deterministic_test(look_up_own(run), k=k)
    for a in np.flatnonzero(passed):
        y = records_of(run.candidates)[a]
        weights = [Fraction(0)] * len(world.table)
        for omega in omegas:
            probabilities = own(world, y, omega)
            if sum(p > 0 for p in probabilities) >= k:
                weights = [w + p for w, p in zip(weights, probabilities, strict=True)]
        assert weights.count(max(weights)) >= k


# A hidden ω


@property_test
@given(runs(), gammas)
def test_count_hidden_omega_is_privacy_test_1(run, gamma):
    """guarantee.md, Theorem 6.2; where some p is exactly some γ^-i, the next test."""
    counted = look_up_hidden(run, gamma)
    for a, y in enumerate(records_of(run.candidates)):
        probabilities = hidden(run.world, run.model, y)
        if not any(definitions.near_boundary(p, gamma) for p in probabilities):
            assert counted[a] == definitions.plausible_seeds(probabilities, a, gamma)


@pytest.mark.parametrize("gamma", ["11/10", "13/10", "9/5", "29/10", "17/3", "53"])
@pytest.mark.parametrize("omegas", [(1,), (2, 3), (1, 2), (1, 2, 3)])
def test_every_candidate_of_a_small_world_has_the_count_of_privacy_test_1(omegas, gamma):
    """All pairs of a seed and a record it can make; no probability is a power of these γ."""
    gamma = Fraction(gamma)
    network, small = small_world()
    seeds = [*small.universe()[::3], (0, 1, 0), (0, 1, 0), (0, 0, 0), (3, 1, 1), (2, 0, 1)]
    world = World(network.attributes, seeds, small)
    model = NetworkModel(network, omegas)
    counts = PrefixCounts.of(world.codes, small.order, model.kept, small.sizes)
    made, several = 0, 0
    for y in small.universe():
        probabilities = hidden(world, model, y)
        assert not any(definitions.near_boundary(p, gamma) for p in probabilities)
        for a, p in enumerate(probabilities):
            if p == 0:
                continue
            candidate, seed = codes_of([y], 3), codes_of([seeds[a]], 3)
            counted = count_hidden_omega(model, counts, candidate, seed, gamma=float(gamma))
            expected = definitions.plausible_seeds(probabilities, a, gamma)
            assert counted.tolist() == [expected]
            made += 1
            several += len({q for q in probabilities if q > 0}) > 1
    assert made > 20
    assert several > 0 or len(omegas) == 1


@pytest.mark.untraced
@property_test
@given(runs(), gammas)
def test_counted_seeds_are_within_gamma_also_at_boundaries(run, gamma):
    """Doubles may shift a boundary by 2^-40; ranges remain ranges of a width of γ."""
    counted = look_up_hidden(run, gamma)
    for a, y in enumerate(records_of(run.candidates)):
        probabilities = hidden(run.world, run.model, y)
        equal = sum(p == probabilities[a] for p in probabilities)
        assert equal <= counted[a]
        assert definitions.is_deniable(probabilities, a, k=int(counted[a]), gamma=gamma * SLACK)


@property_test
@given(runs(), gammas)
def test_a_scan_with_omega_hidden_is_the_look_up(run, gamma):
    """At boundaries too: both use the same floats."""
    np.testing.assert_array_equal(scan(run, gamma), look_up_hidden(run, gamma))


@property_test
@given(runs(), gammas, st.integers(1, 4))
def test_passing_test_1_implies_k_gamma_deniability(run, gamma, k):
    logs = run.model.log_probability(run.candidates, run.world.codes)
    passed = pass_deterministic_test(look_up_hidden(run, gamma), k=k)
    for a in np.flatnonzero(passed):
        assert is_deniable(logs[a], int(a), k=k, gamma=float(gamma * SLACK))


def counter_example() -> tuple[World, NetworkModel]:
    """the review's m = 1, θ = (½, ½), ω ∈ {0, 1}, D = {0, 0, 1}, with ω ≥ 1.

    One more attribute, of one value, is drawn last: ω = 1 draws it alone, as good as nothing.
    """
    half = Fraction(1, 2)
    model = definitions.Model(
        sizes=(2, 1),
        bucket_of=((0, 1), (0,)),
        parents=((), ()),
        order=(0, 1),
        tables=({(): [half, half]}, {(): [Fraction(1)]}),
    )
    attributes = (plain_attribute("x", 2), plain_attribute("nothing", 1))
    world = World(attributes, [(0, 0), (0, 0), (1, 0)], model)
    return world, NetworkModel(world.network, (1, 2))


def test_its_own_omega_does_not_make_a_record_deniable_if_omega_is_hidden():
    """Seed 1 makes y = 0 with ω = 2 and passes k = 2, but with ¼ where the others have ¾."""
    world, model = counter_example()
    counts = PrefixCounts.of(world.codes, (0, 1), model.kept, (2, 1))
    y, seed = codes_of([(0, 0)], 2), 2
    own_seed = world.codes[[seed]]
    drew_all = np.array([model.kept.index(0)])
    assert count_own_omega(counts, own_seed, drew_all).tolist() == [3]

    probabilities = hidden(world, model, (0, 0))
    assert probabilities == [Fraction(3, 4), Fraction(3, 4), Fraction(1, 4)]
    logs = model.log_probability(y, world.codes)[0]
    for gamma in (1.0, 2.0, 2.999):
        assert not is_deniable(logs, seed, k=2, gamma=gamma)
        assert not definitions.is_deniable(probabilities, seed, k=2, gamma=Fraction(gamma))

    hidden_count = count_hidden_omega(model, counts, y, world.codes[[seed]], gamma=2.0)
    assert hidden_count.tolist() == [1], "the test for a hidden ω refuses it"


# Scans


@st.composite
def perturbed(draw):
    """Seeds and candidates of the model in which every seed can make every record."""
    world = draw(worlds(most=3, records=2))
    model = PerturbationModel.of(world.attributes, stay=0.3, step=1.3)
    rng = Keyed(draw(st.integers(0, 2**20))).at("candidates")
    return SimpleNamespace(world=world, model=model, candidates=model.propose(world.codes, rng))


@property_test
@given(perturbed(), st.sampled_from([1.1, 1.7, 2.3, 5.0]))
def test_a_scan_of_another_model_is_privacy_test_1(run, gamma):
    """In floats, as its probabilities are; skipped where one is within 1e-9 of a boundary."""
    logs = run.model.log_probability(run.candidates, run.world.codes)
    scanned = scan(run, gamma)
    for a in range(len(logs)):
        places = [-p / math.log(gamma) for p in logs[a].tolist() if p > -math.inf]
        if any(abs(place - round(place)) < 1e-9 for place in places):
            continue
        numbers = [
            definitions.partition_number(Fraction(math.exp(p)), Fraction(gamma))
            for p in logs[a].tolist()
        ]
        assert scanned[a] == numbers.count(numbers[a])


@property_test
@given(runs(), gammas, st.integers(1, 40))
def test_a_scan_in_pieces_is_a_scan(run, gamma, cells):
    """Blocks of seeds and groups of candidates, cut anywhere."""
    whole = scan(run, gamma)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PROBABILITIES_PER_CALL", cells)
        patch.setattr(module, "_CANDIDATES_PER_CALL", 3)
        np.testing.assert_array_equal(scan(run, gamma), whole)


@property_test
@given(runs(), gammas, st.integers(1, 8), st.integers(1, 40))
def test_max_plausible_caps_the_count(run, gamma, most, cells):
    whole = scan(run, gamma)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PROBABILITIES_PER_CALL", cells)
        capped = scan(run, gamma, ScanLimits(max_plausible=most))
    np.testing.assert_array_equal(capped, np.minimum(whole, most))


@property_test
@given(runs(), gammas, st.integers(1, 8))
def test_max_check_plausible_never_counts_more(run, gamma, most):
    whole = scan(run, gamma)
    part = scan(run, gamma, ScanLimits(max_check_plausible=most))
    assert (part <= np.minimum(whole, most)).all()
    if most >= len(run.world.table):
        np.testing.assert_array_equal(part, whole)


class Recorder:
    """A model with equal probabilities for all seeds, which remembers the last seeds it got."""

    def __init__(self) -> None:
        self.asked: tuple = ()

    def propose(self, seeds, _rng):
        return seeds

    def log_probability(self, candidates, seeds):
        self.asked = tuple(sorted(seeds[:, 0].tolist()))
        return np.zeros((len(candidates), len(seeds)))


def subsets_looked_at(number: int, blocks: int) -> dict:
    """Count the seeds, of four, that are read by scans limited to ``number`` of them."""
    seeds, model = codes_of([(0,), (1,), (2,), (3,)], 1), Recorder()
    seen: dict[tuple[int, ...], int] = {}
    for block in range(blocks):
        plausible = scan_plausible_seeds(
            model,
            seeds,
            seeds[:2],
            seeds[:2],
            Keyed(40).at("scan", block),
            gamma=2.0,
            limits=ScanLimits(max_check_plausible=number),
        )
        assert plausible.tolist() == [number, number]
        seen[model.asked] = seen.get(model.asked, 0) + 1
    return seen


def test_a_limited_scan_samples_seeds_uniformly():
    """Two of four: six pairs, uniform; false-alarm rate 1e-6, fixed key."""
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    assert_distribution(subsets_looked_at(2, 6000), {pair: Fraction(1, 6) for pair in pairs})


def test_that_assertion_detects_biased_sampling_of_seeds():
    """As it would be with the first seeds of the table, or with replacement."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2)]
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(subsets_looked_at(2, 6000), {pair: Fraction(1, 4) for pair in pairs})


class Counter:
    """A model that gives each seed the logarithm at its number, and tallies the pairs asked for."""

    def __init__(self, logs) -> None:
        self.logs = np.array(logs)
        self.pairs = 0

    def propose(self, seeds, _rng):
        return seeds

    def log_probability(self, candidates, seeds):
        self.pairs += len(candidates) * len(seeds)
        return np.broadcast_to(self.logs[seeds[:, 0]], (len(candidates), len(seeds)))


def counted(model, seeds, own, **options) -> list[int]:
    limits = ScanLimits(**options)
    rng = Keyed(1).at("scan")
    return scan_plausible_seeds(model, seeds, own, own, rng, gamma=2.0, limits=limits).tolist()


def test_a_scan_stops_at_max_plausible(monkeypatch):
    """Of 64 seeds the first eight suffice the one, half of them; the other has none but its own."""
    monkeypatch.setattr(module, "_PROBABILITIES_PER_CALL", 16)
    model = Counter([0.0, -9.0])
    seeds = codes_of([(0,)] * 63 + [(1,)], 1)
    own = codes_of([(0,), (1,)], 1)
    assert counted(model, seeds, own, max_plausible=4) == [4, 1]
    of_own, first, others = 2 * 2, 2 * 8, 64 - 8
    assert model.pairs == of_own + first + others


@pytest.mark.parametrize("odd", [-math.inf, math.inf, math.nan])
def test_nan_and_infinite_logarithms_are_not_plausible(odd):
    model, seeds = Counter([-1.0, odd]), codes_of([(0,), (1,), (0,)], 1)
    assert counted(model, seeds, seeds[:1]) == [2]
    with pytest.raises(InvariantError, match="probability 0"):
        counted(model, seeds, seeds[1:2])


@pytest.mark.parametrize("limit", [0, -1])
def test_limits_below_one_are_refused(limit):
    with pytest.raises(ConfigError, match="max_plausible"):
        ScanLimits(max_plausible=limit)
    with pytest.raises(ConfigError, match="max_check_plausible"):
        ScanLimits(max_check_plausible=limit)


def test_a_model_that_denies_its_own_candidate_is_a_bug():
    world, model = counter_example()
    with pytest.raises(InvariantError, match="probability 0"):
        scan_plausible_seeds(
            model.at(1),
            world.codes,
            codes_of([(0, 0)], 2),
            codes_of([(1, 0)], 2),
            Keyed(1).at("scan"),
            gamma=2.0,
            limits=NO_LIMITS,
        )


def test_a_hidden_omega_count_of_a_foreign_candidate_is_a_bug():
    """A candidate that shares no kept prefix with its seed cannot have been made from it."""
    world, model = counter_example()
    alone = model.at(1)
    counts = PrefixCounts.of(world.codes, (0, 1), alone.kept, (2, 1))
    with pytest.raises(InvariantError, match="shares no kept"):
        count_hidden_omega(alone, counts, codes_of([(0, 0)], 2), codes_of([(1, 0)], 2), gamma=2.0)


def test_a_candidate_that_the_network_cannot_draw_is_a_bug():
    """It shares all it should with its seed, but one of its drawn values has probability 0."""
    network, small = small_world()
    model = NetworkModel(network, (2,))
    y = d = (1, 0, 1)  # θ(a = 1 | c = 1) = 0
    counts = PrefixCounts.of(codes_of([d], 3), small.order, model.kept, small.sizes)
    with pytest.raises(InvariantError, match="probability 0"):
        count_hidden_omega(model, counts, codes_of([y], 3), codes_of([d], 3), gamma=2.0)


def test_no_candidates_no_counts():
    world, model = counter_example()
    none = world.codes[:0]
    counts = PrefixCounts.of(world.codes, (0, 1), model.kept, (2, 1))
    assert count_hidden_omega(model, counts, none, none, gamma=2.0).tolist() == []
    scanned = scan_plausible_seeds(
        model, world.codes, none, none, Keyed(1).at("scan"), gamma=2.0, limits=NO_LIMITS
    )
    assert scanned.tolist() == []


# Definition 1

chances = st.fractions(0, 1, max_denominator=12) | st.sampled_from(
    [Fraction(1, d) for d in (2, 4, 8, 16, 3, 9)]
)


@property_test
@given(
    st.lists(chances, min_size=1, max_size=6),
    st.data(),
    st.integers(1, 6),
    gammas | st.just(Fraction(1)),
)
def test_is_deniable_is_definition_1_by_brute_force(probabilities, data, k, gamma):
    """Between the answers for γ a little smaller and a little larger; equal, where those are."""
    at = data.draw(st.integers(0, len(probabilities) - 1))
    if probabilities[at] == 0:
        probabilities[at] = Fraction(1, 3)
    logs = np.array([math.log(p) if p > 0 else -math.inf for p in probabilities])
    answer = is_deniable(logs, at, k=k, gamma=float(gamma))
    if gamma == 1:
        assert answer == definitions.is_deniable(probabilities, at, k=k, gamma=gamma)
    below, above = (
        definitions.is_deniable(probabilities, at, k=k, gamma=gamma * factor)
        for factor in (1 / SLACK, SLACK)
    )
    assert below <= answer <= above


@pytest.mark.parametrize("gamma", [2, 3, 4, 5, 7, 10])
@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_ratio_of_exactly_gamma_is_within_gamma(gamma, power):
    """``eq:pdcond`` is closed: γ^-1 ≤ p/q ≤ γ."""
    probabilities = [Fraction(1, gamma**power), Fraction(1, gamma ** (power + 1))]
    assert definitions.is_deniable(probabilities, 0, k=2, gamma=Fraction(gamma))
    logs = np.array([math.log(p) for p in probabilities])
    assert is_deniable(logs, 0, k=2, gamma=float(gamma))


def test_the_window_of_definition_1_need_not_start_at_the_own_seed():
    """½ | ¼ | ⅛, γ = 2, k = 2 for the middle one: either neighbour will do, both will not."""
    logs = np.log([0.5, 0.25, 0.125])
    assert is_deniable(logs, 1, k=2, gamma=2.01)
    assert not is_deniable(logs, 1, k=3, gamma=2.01)
    assert is_deniable(logs, 1, k=3, gamma=4.01)


@pytest.mark.parametrize(("k", "gamma"), [(0, 2.0), (-1, 2.0), (1, 0.5), (1, math.nan)])
def test_definition_1_refuses_invalid_parameters(k, gamma):
    with pytest.raises(ConfigError, match="Definition 1"):
        is_deniable(np.zeros(3), 0, k=k, gamma=gamma)


def test_an_infinite_gamma_is_refused_or_counts_no_impossible_seed():
    """γ is a real number (Sec. 2); with γ → ∞ a seed of probability 0 is still no seed."""
    logs = np.array([0.0, -np.inf])
    try:
        answer = is_deniable(logs, 0, k=2, gamma=math.inf)
    except ConfigError:
        return
    assert not answer


def test_an_own_seed_of_probability_0_is_a_bug():
    with pytest.raises(InvariantError, match="own seed"):
        is_deniable(np.array([-np.inf, 0.0]), 0, k=1, gamma=2.0)


def test_the_deterministic_test_compares_with_k():
    assert pass_deterministic_test(np.array([1, 2, 3]), k=2).tolist() == [False, True, True]
    with pytest.raises(ConfigError, match="k ≥ 1"):
        pass_deterministic_test(np.array([1]), k=0)
    with pytest.raises(ConfigError, match="k ≥ 1"):
        pass_randomized_test(np.array([1]), Keyed(1).at("threshold"), k=0, law=exact())


def test_the_randomized_test_without_noise_is_the_deterministic_one():
    """ε0 = ∞, by the same path. The noise is tested with the mechanism."""
    plausible = np.arange(1, 9)
    for k in range(1, 10):
        noiseless = pass_randomized_test(plausible, Keyed(1).at("threshold"), k=k, law=exact())
        np.testing.assert_array_equal(noiseless, pass_deterministic_test(plausible, k=k))


def test_every_candidate_gets_independent_noise():
    """Independent noise: of 4,000 candidates at k, the share of Pr{noise ≤ 0} passes, not all."""
    law = discrete_laplace(1.0)
    passed = pass_randomized_test(
        np.full(4_000, 50, dtype=np.int64), Keyed(12).at("threshold"), k=50, law=law
    )
    chance = float(sum(law.probability(z) for z in range(-law.radius, 1)))
    assert_rate(int(passed.sum()), 4_000, chance)
