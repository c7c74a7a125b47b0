"""Mechanism 1 on a tiny table: what is released, with what probability, however it is run."""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import count, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import definitions
from chance import assert_distribution
from deniable.counting.local import LocalRows
from deniable.counting.prefix_counts import FrequentPrefixes, SeedGroups
from deniable.errors import BudgetError, InvariantError
from deniable.model.seed_based import NetworkModel
from deniable.privacy.noise_laws import discrete_laplace
from deniable.randomness import Keyed, Randomness, Secret
from deniable.release.deniability_test import (
    ScanLimits,
    pass_deterministic_test,
    pass_randomized_test,
)
from deniable.release.generation import BLOCK, Feasible, Kernel, always_feasible
from deniable.release.seed_mechanism import (
    SCAN_BLOCK,
    SeedMechanism,
    collect,
    hidden_omega_kernel,
    own_omega_kernel,
    randomized_kernel,
    scan_kernel,
)
from deniable.workers import map_in_order
from perturbation_model import PerturbationModel
from worlds import (
    codes_of,
    constrained,
    count_records,
    impossible,
    is_possible,
    property_test,
    records_of,
    small_world,
)

pytestmark = pytest.mark.slow

# In the order 2, 0, 1: prefixes of length 1 are shared by 5, 3 and 1 seeds, of length 2 by less.
SEEDS = [
    (0, 0, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0), (2, 1, 0),
    (3, 1, 1), (3, 0, 1), (2, 0, 1),
    (0, 1, 2),
]  # fmt: skip
OMEGAS = (1, 2, 3)
GAMMA = Fraction(29, 10)  # no product of the model's probabilities is a power of it
KEY = 77


def mechanism(k: int) -> SeedMechanism:
    return SeedMechanism(
        seeds=LocalRows(codes_of(SEEDS, 3)),
        randomness=Keyed(KEY),
        passes=lambda plausible, _block: pass_deterministic_test(plausible, k=k),
    )


@cache
def hidden(y, d) -> Fraction:
    return definitions.hidden_probability(small_world()[1], y, d, OMEGAS)


@cache
def released_own(k: int) -> dict:
    """Pr{F(D) = y}: uniform ω, then Mechanism 1 with that ω and its own test."""
    _, model = small_world()
    total: dict[definitions.Record, Fraction] = defaultdict(Fraction)
    for omega in OMEGAS:

        def probability(y, d, omega=omega):
            return definitions.synthesis_probability(model, y, d, omega)

        def passes(y, a, probability=probability):
            ps = [probability(y, d) for d in SEEDS]
            return definitions.plausible_seeds(ps, a, GAMMA) >= k

        for y, p in definitions.released(SEEDS, model.universe(), probability, passes).items():
            total[y] += p / len(OMEGAS)
    return dict(total)


def passed_own(k: int) -> dict:
    """Pr{F(D) = y} given that a record is released: no candidate is drawn that fails the test."""
    law = released_own(k)
    assert 0 < sum(law.values()) < 1, "some candidates must fail, or k is not tested"
    return {y: p / sum(law.values()) for y, p in law.items()}


@cache
def released_hidden(k: int) -> dict:
    """Pr{F(D) = y} where ω is a part of M."""

    def passes(y, a):
        ps = [hidden(y, d) for d in SEEDS]
        assert not any(definitions.near_boundary(p, GAMMA) for p in ps)
        return definitions.plausible_seeds(ps, a, GAMMA) >= k

    return definitions.released(SEEDS, small_world()[1].universe(), hidden, passes)


def perturbation() -> PerturbationModel:
    return PerturbationModel.of(small_world()[0].attributes, stay=0.4, step=1.1)


@cache
def released_perturbed(k: int) -> dict:
    """Pr{F(D) = y} of a model unlike the paper's; its law is held by its own tests."""
    universe = small_world()[1].universe()
    logs = perturbation().log_probability(codes_of(universe, 3), codes_of(SEEDS, 3))
    table: dict[tuple[definitions.Record, definitions.Record], Fraction] = {
        (y, d): Fraction(float(np.exp(logs[row, column])))
        for row, y in enumerate(universe)
        for column, d in enumerate(SEEDS)
    }

    def passes(y, a):
        ps = [table[y, d] for d in SEEDS]
        assert not any(definitions.near_boundary(p, GAMMA) for p in ps)
        return definitions.plausible_seeds(ps, a, GAMMA) >= k

    return definitions.released(SEEDS, universe, lambda y, d: table[y, d], passes)


def network_model() -> NetworkModel:
    return NetworkModel(small_world()[0], OMEGAS)


def own_kernel(
    k: int, randomness: Randomness | None = None, feasible: Feasible = always_feasible
) -> Kernel:
    seeds, drawn = LocalRows(codes_of(SEEDS, 3)), randomness or Keyed(KEY)
    return own_omega_kernel(seeds, network_model(), drawn, k=k, feasible=feasible)


def hidden_kernel(k: int) -> Kernel:
    return hidden_omega_kernel(mechanism(k), network_model(), gamma=float(GAMMA))


def scan_of(model) -> Callable[[int], Kernel]:
    return lambda k: scan_kernel(mechanism(k), model, gamma=float(GAMMA), limits=ScanLimits())


KERNELS: dict[str, tuple[Callable[[int], Kernel], Callable[[int], dict], int]] = {
    "own": (own_kernel, passed_own, BLOCK),
    "hidden": (hidden_kernel, released_hidden, BLOCK),
    "scan": (scan_of(network_model()), released_hidden, SCAN_BLOCK),
    "perturbed": (scan_of(perturbation()), released_perturbed, SCAN_BLOCK),
}
CANDIDATES = BLOCK
# A scan compares every candidate with every seed, so that it has fewer candidates.
SCANNED = CANDIDATES // 4


def run(kernel: Kernel, block_size: int) -> Counter:
    """Return how often each record was released, and, under None, how often nothing was."""
    counts: Counter = Counter()
    candidates = SCANNED if block_size == SCAN_BLOCK else CANDIDATES
    for block in range(candidates // block_size):
        counts.update(count_records(kernel(block)))
    counts[None] = candidates - counts.total()
    return counts


def with_nothing(law: dict) -> dict:
    """Return the law over U and "no output", the last step of ``def:mechanism``."""
    return {**law, None: 1 - sum(law.values())}


@pytest.mark.untraced
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", KERNELS)
def test_records_are_released_with_the_probabilities_of_mechanism_1(name, k):
    """262,144 candidates each, 65,536 of a scan; false-alarm rate 1e-6 each, fixed key."""
    kernel, law, block_size = KERNELS[name]
    expected = with_nothing(law(k))
    assert 0 < expected[None] < 1 or name == "own", "some must fail, or k is not tested"
    assert_distribution(run(kernel(k), block_size), expected)


@pytest.mark.untraced
@pytest.mark.parametrize("name", KERNELS)
def test_that_assertion_notices_k_too_large_by_one(name):
    """As it would be if the own seed were not counted among the plausible ones."""
    kernel, law, block_size = KERNELS[name]
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(run(kernel(4), block_size), with_nothing(law(3)))


def test_that_assertion_notices_prefixes_of_too_few_seeds():
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(run(own_kernel(2), BLOCK), with_nothing(passed_own(3)))


@pytest.mark.parametrize("fault", ["all alike", "omega first"])
def test_that_assertion_notices_prefixes_that_are_not_drawn_by_their_seeds(monkeypatch, fault):
    """Each prefix alike; or ω uniformly, and then a prefix of its length that passes."""
    make = SeedGroups.of

    def faulty(levels, *given, **more):
        weights = [
            np.full_like(level.counts, 60)
            if fault == "all alike"
            else 60 * level.counts // level.counts.sum()
            for level in levels
        ]
        prefixes = [level.prefixes for level in levels]
        same = list(map(FrequentPrefixes, prefixes, weights))
        return make(same, *given, **more)

    monkeypatch.setattr(SeedGroups, "of", faulty)
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(run(own_kernel(3), BLOCK), with_nothing(passed_own(3)))


def test_an_engine_that_returns_a_rare_prefix_is_not_trusted(monkeypatch):
    found = LocalRows.frequent_prefixes

    def rare(self, *given, floor):
        return found(self, *given, floor=floor - 1)

    monkeypatch.setattr(LocalRows, "frequent_prefixes", rare)
    with pytest.raises(InvariantError, match="fewer than k seeds share"):
        own_kernel(4)


def test_own_and_hidden_omega_are_two_mechanisms():
    """What one releases is not what the other releases: each needs its own test above."""
    law = released_hidden(4)
    passed = {y: p / sum(law.values()) for y, p in law.items()}
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(run(own_kernel(4), BLOCK), with_nothing(passed))


@pytest.mark.parametrize("k", [1, 3, 10])
def test_scan_and_look_up_release_the_same_from_the_same_candidates(monkeypatch, k):
    """Blocks of equal size have equal seeds and candidates: then the verdicts are equal."""
    monkeypatch.setattr("deniable.release.seed_mechanism.BLOCK", 2000)
    monkeypatch.setattr("deniable.release.seed_mechanism.SCAN_BLOCK", 2000)
    for block in range(3):
        one, two = hidden_kernel(k)(block), scan_of(network_model())(k)(block)
        np.testing.assert_array_equal(one, two)


def test_nothing_is_released_when_k_is_above_the_number_of_seeds():
    for kernel, _, _ in KERNELS.values():
        assert kernel(len(SEEDS) + 1)(0).shape == (0, 3)


@pytest.mark.parametrize("name", ["own", "hidden", "scan"])
def test_without_seeds_there_is_nothing_to_draw_from(name, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SEEDS", [])
    with pytest.raises(BudgetError, match="there are no seeds to draw from"):
        KERNELS[name][0](1)


@pytest.mark.parametrize("name", KERNELS)
def test_results_do_not_depend_on_the_number_of_workers(name, monkeypatch):
    monkeypatch.setattr("deniable.release.seed_mechanism.BLOCK", 20_000)
    kernel = KERNELS[name][0](3)
    alone = [kernel(block) for block in range(6)]
    for workers in (1, 2, 5):
        for here, there in zip(alone, map_in_order(kernel, range(6), workers=workers), strict=True):
            np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("name", KERNELS)
def test_secret_randomness_serves_as_well(name):
    """Also where nobody passes, and so nothing is drawn."""
    for k in (1, 100):
        secret = SeedMechanism(
            seeds=LocalRows(codes_of(SEEDS, 3)),
            randomness=Secret(),
            passes=mechanism(k).passes,
        )
        kernels: dict[str, Callable[[SeedMechanism], Kernel]] = {
            "hidden": lambda m: hidden_omega_kernel(m, network_model(), gamma=3.0),
            "scan": lambda m: scan_kernel(m, network_model(), gamma=3.0, limits=ScanLimits()),
            "perturbed": lambda m: scan_kernel(m, perturbation(), gamma=3.0, limits=ScanLimits()),
        }
        kernel = own_kernel(k, Secret()) if name == "own" else kernels[name](secret)
        assert len(kernel(0)) == (KERNELS[name][2] if k == 1 else 0)


def test_a_mechanism_does_not_show_its_seeds():
    assert "seeds" not in repr(mechanism(2))
    assert "array" not in repr(mechanism(2))


def test_the_test_is_told_the_block_and_the_counts():
    """Privacy Test 2 draws a fresh threshold for each candidate, addressed by block."""
    calls = []

    def passes(plausible, block):
        calls.append((block, plausible.shape, int(plausible.min())))
        return plausible > 100

    told = SeedMechanism(seeds=LocalRows(codes_of(SEEDS, 3)), randomness=Keyed(1), passes=passes)
    hidden_omega_kernel(told, network_model(), gamma=2.0)(8)
    scan_kernel(told, network_model(), gamma=2.0, limits=ScanLimits())(9)
    assert calls == [(8, (BLOCK,), 1), (9, (SCAN_BLOCK,), 1)]


# Privacy Test 2, with dummy seeds and seedless records

DUMMIES = 4
NOISE = discrete_laplace(0.8)


def pass_probability(plausible: int, k: int) -> Fraction:
    """pt(D, i, y) = Pr{k' ≥ k + L} of the appendix, L the integer law, exactly."""
    return sum(
        (
            NOISE.probability(z)
            for z in range(-NOISE.radius, NOISE.radius + 1)
            if plausible >= k + z
        ),
        Fraction(0),
    )


def randomized_law(seeds: list, *, k: int, known: bool, dummies: int = DUMMIES) -> dict:
    """Pr of every record (guarantee.md, Theorem 4'): who fails is replaced by a seedless record."""
    _, model = small_world()
    universe = model.universe()
    seeded = dict.fromkeys(universe, Fraction(0))
    # ω known: Mechanism 1 for each ω alone, in equal shares; else one model with all of them.
    shares = [(omega,) for omega in OMEGAS] if known else [OMEGAS]
    for omegas in shares:
        for y in universe:
            ps = [definitions.hidden_probability(model, y, d, omegas) for d in seeds]
            for a, p in enumerate(ps):
                if p > 0:
                    passes = pass_probability(definitions.plausible_seeds(ps, a, GAMMA), k)
                    seeded[y] += p * passes / (len(seeds) + dummies) / len(shares)
    nothing = 1 - sum(seeded.values())
    return {y: p + nothing * definitions.record_probability(model, y) for y, p in seeded.items()}


def run_randomized(seeds: list, *, k: int, known: bool, key: int = KEY) -> Counter:
    randomness = Keyed(key)
    mechanism = SeedMechanism(
        seeds=LocalRows(codes_of(seeds, 3)),
        randomness=randomness,
        passes=lambda plausible, block: pass_randomized_test(
            plausible, randomness.at("threshold", block), k=k, law=NOISE
        ),
    )
    kernel = randomized_kernel(
        mechanism, network_model(), dummies=DUMMIES, gamma=None if known else float(GAMMA)
    )
    counts: Counter = Counter()
    for block in range(CANDIDATES // BLOCK):
        records = kernel(block)
        assert len(records) == BLOCK, "every candidate gives a record"
        counts.update(count_records(records))
    return counts


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seeds", [SEEDS, SEEDS[:1], []], ids=["nine", "one", "none"])
def test_the_randomized_mechanism_has_its_law_for_tables_of_any_size(seeds, known):
    """False-alarm rate 1e-6 each, fixed key."""
    counts = run_randomized(seeds, k=3, known=known)
    assert_distribution(counts, randomized_law(seeds, k=3, known=known))


def test_that_assertion_notices_forgotten_dummies():
    counts = run_randomized(SEEDS, k=3, known=True)
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(counts, randomized_law(SEEDS, k=3, known=True, dummies=0))


# Constraints: what cannot be is left out, and what is left has the law it had among itself


CONSTRAINED = {
    "own": lambda m: own_kernel(2, feasible=m.feasible),
    "hidden": lambda m: hidden_omega_kernel(m, network_model(), gamma=float(GAMMA)),
    "scan": lambda m: scan_kernel(m, network_model(), gamma=float(GAMMA), limits=ScanLimits()),
}


@pytest.mark.untraced
@pytest.mark.parametrize("name", CONSTRAINED)
def test_tested_records_that_break_a_constraint_are_dropped_and_the_rest_stay_as_likely(name):
    """A candidate that breaks one counts as no output. False-alarm rate 1e-6 each, fixed key."""
    _, law, block_size = KERNELS[name]
    kernel = CONSTRAINED[name](replace(mechanism(2), feasible=constrained))
    expected = {y: p for y, p in law(2).items() if is_possible(y)}
    assert 0 < sum(expected.values()) < sum(law(2).values())
    assert_distribution(run(kernel, block_size), with_nothing(expected))


def randomized_law_with_constraints(seeds: list, *, k: int) -> dict:
    """As ``randomized_law`` for a known ω: who fails or cannot be is replaced by a seedless record
    among those that can be."""
    _, model = small_world()
    allowed = [y for y in model.universe() if is_possible(y)]
    seeded = dict.fromkeys(allowed, Fraction(0))
    for omega in OMEGAS:
        for y in allowed:
            ps = [definitions.hidden_probability(model, y, d, (omega,)) for d in seeds]
            for a, p in enumerate(ps):
                if p > 0:
                    passes = pass_probability(definitions.plausible_seeds(ps, a, GAMMA), k)
                    seeded[y] += p * passes / (len(seeds) + DUMMIES) / len(OMEGAS)
    nothing = 1 - sum(seeded.values())
    seedless = {y: definitions.record_probability(model, y) for y in allowed}
    can_be = sum(seedless.values())
    return {y: p + nothing * seedless[y] / can_be for y, p in seeded.items()}


@pytest.mark.parametrize("seeds", [SEEDS, []], ids=["nine", "none"])
def test_the_randomized_mechanism_replaces_what_cannot_be(seeds):
    """Every candidate gives a record, and every record can be: false-alarm rate 1e-6, fixed key."""
    randomness = Keyed(KEY)
    told = SeedMechanism(
        seeds=LocalRows(codes_of(seeds, 3)),
        randomness=randomness,
        passes=lambda plausible, block: pass_randomized_test(
            plausible, randomness.at("threshold", block), k=3, law=NOISE
        ),
        feasible=constrained,
    )
    kernel = randomized_kernel(told, network_model(), dummies=DUMMIES, gamma=None)
    counts: Counter = Counter()
    for block in range(CANDIDATES // BLOCK):
        records = kernel(block)
        assert len(records) == BLOCK
        counts.update(count_records(records))
    assert_distribution(counts, randomized_law_with_constraints(seeds, k=3))


def test_the_thresholds_of_the_randomized_test_do_not_depend_on_constraints():
    """They are drawn for every candidate before anybody asks what can be."""
    seen = []

    def passes(plausible, block):
        seen.append((block, len(plausible)))
        return np.ones(len(plausible), dtype=bool)

    for feasible in (always_feasible, constrained):
        told = SeedMechanism(
            seeds=LocalRows(codes_of(SEEDS, 3)),
            randomness=Keyed(KEY),
            passes=passes,
            feasible=feasible,
        )
        randomized_kernel(told, network_model(), dummies=DUMMIES, gamma=None)(5)
    assert seen == [(5, BLOCK), (5, BLOCK)]


def test_a_hopeless_tested_run_under_constraints_ends_with_advice():
    kernel = own_kernel(1, feasible=impossible)
    with pytest.raises(BudgetError, match="relax the constraints"):
        list(
            collect(
                (kernel(block) for block in count()),
                records=1,
                block_size=BLOCK,
                max_attempts=3 * BLOCK,
            )
        )


# Collecting


def numbered(lengths) -> list[np.ndarray]:
    """Return blocks of so many records, numbered through."""
    ends = np.cumsum(lengths)
    return [np.arange(end - n, end)[:, None] for n, end in zip(lengths, ends, strict=True)]


@property_test
@given(st.lists(st.integers(0, 7), min_size=1, max_size=10), st.data())
def test_collect_yields_the_first_records_and_not_one_more(lengths, data):
    records = data.draw(st.integers(1, max(1, sum(lengths))))
    if records > sum(lengths):
        return
    blocks = collect(numbered(lengths), records=records, block_size=10, max_attempts=10**6)
    assert np.concatenate(list(blocks)).ravel().tolist() == list(range(records))


def test_collect_reads_no_block_beyond_the_last_it_needs():
    read = []

    def blocks():
        for number in count():
            read.append(number)
            yield np.zeros((4, 1))

    assert sum(map(len, collect(blocks(), records=9, block_size=5, max_attempts=10**6))) == 9
    assert read == [0, 1, 2]


@pytest.mark.parametrize("passing", [0, 1])
def test_collect_gives_up_and_does_not_say_how_many_passed(passing):
    """Endless blocks end at ``max_attempts``; 37 · passing records is what nobody may learn."""
    read = []

    def blocks():
        for number in count():
            read.append(number)
            yield np.zeros((passing, 1))

    with pytest.raises(BudgetError) as raised:
        list(collect(blocks(), records=5000, block_size=100, max_attempts=3700))
    assert len(read) == 37
    message = str(raised.value)
    assert "5,000" in message
    assert "3,700" in message
    assert "37" not in message.replace("3,700", "").replace("5,000", "")
    assert "smaller k" in message


def test_the_message_is_the_same_whether_many_or_none_passed():
    def message(passing: int) -> str:
        blocks = islice(([np.zeros((passing, 1))] * 40), 40)
        with pytest.raises(BudgetError) as raised:
            list(collect(blocks, records=5000, block_size=100, max_attempts=3700))
        return str(raised.value)

    assert message(0) == message(90)


def test_collect_gives_up_when_there_are_no_more_blocks():
    blocks = numbered([2, 3])
    with pytest.raises(BudgetError, match="too few"):
        list(collect(blocks, records=6, block_size=10, max_attempts=10**6))


def test_a_hopeless_run_ends():
    """The real thing: k above the number of seeds, endless blocks, two workers."""
    with pytest.raises(BudgetError):
        list(
            collect(
                map_in_order(own_kernel(100), count(), workers=2),
                records=1,
                block_size=BLOCK,
                max_attempts=4 * BLOCK,
            )
        )


def test_collect_is_independent_of_the_number_of_workers():
    def records(workers: int) -> list:
        blocks = map_in_order(own_kernel(3), count(), workers=workers)
        parts = collect(blocks, records=50_000, block_size=BLOCK, max_attempts=10**7)
        return records_of(np.concatenate(list(parts)))

    alone = records(1)
    assert len(alone) == 50_000
    assert records(3) == alone
