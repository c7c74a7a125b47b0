"""Exact (ε, δ) on tiny tables, for all neighbours and outcomes, compared with the theorems.

The mechanisms are written out word for word, with exact probabilities instead of draws. A
promise holds when no hockey stick is above it; where the review says that a bound is attained,
the worst of them must come within 1 % of it.
"""

import math
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations_with_replacement, product

import pytest
from scipy import stats

from definitions import noise_delta
from deniable.paper.definitions import released_record_cost_tight
from deniable.privacy import noise_laws
from deniable.privacy.composition import Guarantee, group_privacy, random_partition
from deniable.privacy.theorems import (
    candidate_cost,
    geometric_histogram_cost,
    released_record_cost,
    threshold_tail,
)
from theorems import laplace_histogram_cost

pytestmark = pytest.mark.slow

NOTHING = "⊥"


def hockey_stick(p, q, epsilon):
    """HS_ε(P ‖ Q) = Σ max(0, P - e^ε Q)."""
    return math.fsum(max(0.0, p[o] - math.exp(epsilon) * q.get(o, 0.0)) for o in p)


def worst(mechanism, pairs, epsilon):
    """The largest hockey stick, of all pairs and both directions."""
    outcomes = {table: mechanism(table) for pair in pairs for table in pair}
    return max(
        max(
            hockey_stick(outcomes[d], outcomes[more], epsilon),
            hockey_stick(outcomes[more], outcomes[d], epsilon),
        )
        for d, more in pairs
    )


def neighbours(universe, sizes):
    """All pairs D, D ∪ {d'} of multisets with |D| in ``sizes``."""
    return [
        (d, tuple(sorted((*d, extra))))
        for n in sizes
        for d in combinations_with_replacement(sorted(universe), n)
        for extra in universe
    ]


def independent(parts):
    """The joint law of independent parts, outcome by outcome."""
    joint = {}
    for chosen in product(*(part.items() for part in parts)):
        joint[tuple(o for o, _ in chosen)] = math.prod(p for _, p in chosen)
    return joint


def mechanism_b(law, *, k, threshold):
    """Mechanism B (the review, section 3.1), with the law of its output."""

    def of(table):
        cells = Counter(record[:1] for record in table)
        parts = []
        for cell in sorted(cell for cell, count in cells.items() if count >= k):
            kept: dict[tuple | None, float] = defaultdict(float)
            for z in range(-law.radius, law.radius + 1):
                noisy = cells[cell] + z
                label = (cell, noisy) if noisy >= threshold else None
                kept[label] += float(law.probability(z))
            parts.append(kept)
        joint: dict[frozenset, float] = defaultdict(float)
        for outcome, probability in independent(parts).items():
            joint[frozenset(label for label in outcome if label)] += probability
        return joint

    return of


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "r"), [(0.7, 2), (1.5, 3)])
def test_mechanism_b_costs_exactly_what_its_table_says(epsilon, r, k):
    law = noise_laws.truncated_geometric(epsilon, r)
    of = mechanism_b(law, k=k, threshold=k + r)
    true = worst(of, neighbours(["a", "b"], range(6)), epsilon)
    promised = geometric_histogram_cost(epsilon=epsilon, r=r, tv=law.tv).delta
    assert true <= noise_delta(law.table.weights(), epsilon) + 1e-15
    assert 0.99 * promised <= true <= promised


def test_replacing_one_record_costs_no_more_than_two_neighbours():
    """Theorem 7.5: (2ε, 2δ - δ²), within the group bound (2ε, δ (1 + e^ε))."""
    epsilon, r = 0.7, 2
    law = noise_laws.truncated_geometric(epsilon, r)
    of = mechanism_b(law, k=1, threshold=1 + r)
    tables = list(combinations_with_replacement("ab", 4))
    pairs = [(d, e) for d in tables for e in tables if sum((Counter(d) - Counter(e)).values()) == 1]
    one = geometric_histogram_cost(epsilon=epsilon, r=r, tv=law.tv)
    true = worst(of, pairs, 2 * epsilon)
    assert true <= 2 * one.delta - one.delta**2 + 1e-12
    assert true <= group_privacy(one, rows=2).delta


@pytest.mark.untraced
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("above_floor", [0, 1, 4])
def test_the_untruncated_histogram_costs_exactly_its_tail(k, above_floor):
    epsilon0 = 0.9
    law = noise_laws.discrete_laplace(epsilon0)
    of = mechanism_b(law, k=k, threshold=k + above_floor)
    true = worst(of, neighbours(["a", "b"], range(5)), epsilon0)
    promised = laplace_histogram_cost(epsilon0=epsilon0, k=k, threshold=k + above_floor).delta
    assert 0.99 * promised <= true <= promised + (1 + math.exp(epsilon0)) * law.tv


@cache
def discrete_tail(whole, epsilon0):
    """Pr{L > whole} of discrete Laplace noise."""
    return float(stats.dlaplace.sf(whole, epsilon0))


def released(model, *, k, gamma, epsilon0, dummies=0, tail=discrete_tail):
    """Mechanism 1 with Privacy Test 2 (def:randprivacytest) on one candidate, word for word.

    ``model[seed][y]`` is Pr{y = M(seed)}; a dummy's candidate always fails.
    """

    def range_of(probability):
        return math.floor(-math.log(probability) / math.log(gamma) + 1e-12)

    def of(table):
        law: dict[object, float] = defaultdict(float)
        for seed in table:
            for y, p in model[seed].items():
                mine = range_of(p)
                others = (model[d].get(y, 0.0) for d in table)
                plausible = sum(q > 0 and range_of(q) == mine for q in others)
                passes = tail(k - plausible - 1, epsilon0)  # Pr{L ≥ k - k'}
                law[y] += p * passes / (len(table) + dummies)
        if dummies or table:
            law[NOTHING] = 1.0 - math.fsum(law.values())
        return law

    return of


# Seeds keep one attribute and draw another: the prefix model, γ = 1 whatever was asked for.
PREFIX = {x: {(x, 0): 0.3, (x, 1): 0.7} for x in "abc"}
# Any other model: probabilities of one candidate differ, within a range and across ranges.
ANY = {
    "a": {0: 0.5, 1: 0.25, 2: 0.25},
    "b": {0: 0.26, 1: 0.7, 2: 0.04},
    "c": {1: 0.5, 2: 0.1, 3: 0.4},
}


def parameters_of(model):
    for k, t, epsilon0 in product([2, 3, 5], [1, 2, 4], [0.2, 1.0]):
        if t < k:
            yield {"k": k, "t": t, "epsilon0": epsilon0, "gamma": 1.0 if model is PREFIX else 2.0}


def settings_of(test, model):
    return {
        "k": test["k"],
        "epsilon0": test["epsilon0"],
        "gamma": 4.0 if model is PREFIX else test["gamma"],
    }


@pytest.mark.parametrize("model", [PREFIX, ANY], ids=["prefix", "any"])
def test_dummy_seeds_keep_the_promise_on_every_outcome_and_every_size(model):
    """Theorem 4′, on U ∪ {⊥}, n = 0 … 6."""
    for test in parameters_of(model):
        dummies = math.ceil(test["t"] / test["gamma"])
        of = released(model, **settings_of(test, model), dummies=dummies)
        for n in range(7):
            promised = candidate_cost(**test, n_min=n)
            true = worst(of, neighbours(model, [n]), promised.epsilon)
            assert true <= promised.delta + 1e-15
            if test["t"] == 1 and model is PREFIX:
                assert true >= 0.99 * promised.delta


@pytest.mark.parametrize("model", [PREFIX, ANY], ids=["prefix", "any"])
def test_the_tight_theorem_keeps_its_promise_on_sets_of_records(model):
    """Theorem 1′, on Y ⊆ U, n = 1 … 6; discrete noise."""
    for test in parameters_of(model):
        of = released(model, **settings_of(test, model))

        def records(table, of=of):
            return {y: p for y, p in of(table).items() if y != NOTHING}

        for n in range(1, 7):
            promised = released_record_cost_tight(**test, n_min=n)
            true = worst(records, neighbours(model, [n]), promised.epsilon)
            assert true <= promised.delta + 1e-15
            if test["t"] == 1 and model is PREFIX:
                assert true >= 0.99 * promised.delta
            if n >= test["k"] and test["gamma"] > 1:
                assert true <= released_record_cost(**test).delta


def test_the_tight_theorem_holds_for_continuous_noise_with_half_the_tail():
    def tail(whole, epsilon0):
        return stats.laplace.sf(whole + 1, scale=1 / epsilon0)

    for test in parameters_of(PREFIX):
        of = released(PREFIX, **settings_of(test, PREFIX), tail=tail)

        def records(table, of=of):
            return {y: p for y, p in of(table).items() if y != NOTHING}

        promised = released_record_cost_tight(**test, n_min=3, noise="continuous")
        assert worst(records, neighbours(PREFIX, [3]), promised.epsilon) <= promised.delta + 1e-15


def test_these_checks_notice_a_missing_dummy_and_the_continuous_constant():
    """What would be printed without dummies, or with ½ for the tail of whole noise, is false."""
    test = {"k": 3, "t": 1, "epsilon0": 0.2, "gamma": 1.0}
    promised = candidate_cost(**test, n_min=6)

    alone = released(PREFIX, k=3, gamma=4.0, epsilon0=2.0)
    paper = candidate_cost(k=3, t=1, epsilon0=2.0, n_min=6)
    crowd = ("a",) * 12
    assert worst(alone, [(crowd, (*crowd, "b"))], paper.epsilon) > 2 * paper.delta

    of = released(PREFIX, k=3, gamma=4.0, epsilon0=0.2, dummies=1)
    halved = promised.delta * 0.5 * (1 + math.exp(-0.2))
    assert threshold_tail(epsilon0=0.2, distance=2, noise="continuous") < threshold_tail(
        epsilon0=0.2, distance=2
    )
    assert worst(of, neighbours(PREFIX, [6]), promised.epsilon) > halved


def stated(cost, *, odd):
    """The worst mechanism that is (ε, δ): four outcomes, told apart by the parity of a part."""
    e = math.exp(cost.epsilon)
    law = [cost.delta, (1 - cost.delta) * e / (1 + e), (1 - cost.delta) / (1 + e), 0.0]
    return dict(enumerate(law if odd else law[::-1]))


def split(parts):
    """Deal n records by lot, release each part by its mechanism; the law of all outputs."""
    left = 1 - math.fsum(p for p, _ in parts)
    shares = [*(p for p, _ in parts), left]

    def of(table):
        joint: dict[tuple, float] = defaultdict(float)
        for dealt in product(range(len(shares)), repeat=len(table)):
            chance = math.prod(shares[j] for j in dealt)
            outputs = [stated(c, odd=dealt.count(j) % 2) for j, (_, c) in enumerate(parts)]
            for outcome, probability in independent(outputs).items():
                joint[outcome] += chance * probability
        return joint

    return of


@pytest.mark.parametrize(
    "parts",
    [
        [(0.3, Guarantee(epsilon=1.0, delta=0.01))],
        [(0.187, Guarantee(epsilon=1.5, delta=0.02)), (0.492, Guarantee(epsilon=0.4, delta=0.1))],
        [(0.5, Guarantee(epsilon=2.0)), (0.5, Guarantee(epsilon=0.3, delta=0.05))],
        [(0.2, Guarantee(epsilon=0.5, delta=0.01))] * 3,
    ],
)
def test_a_random_split_costs_what_theorem_10_says(parts):
    promised = random_partition(parts)
    pairs = [(("d",) * n, ("d",) * (n + 1)) for n in range(4)]
    true = worst(split(parts), pairs, promised.epsilon)
    assert true <= promised.delta + 1e-12
    if len(parts) == 1:
        assert true >= 0.99 * promised.delta


def test_the_epsilon_of_a_random_split_is_attained_and_exceeds_the_maximum():
    """the review, section 5 (ii): randomized response with ε = 3 in two parts, p = 0.09."""
    rate = (math.e - 1) / (math.e**3 - 1)
    parts = [(rate, Guarantee(epsilon=3.0))] * 2
    of = split(parts)
    before, after = of(()), of(("d",))
    loss = max(math.log(after[o] / before[o]) for o in before if before[o] > 0)
    assert 1.4898 < loss <= random_partition(parts).epsilon <= loss + 1e-9
