"""Measurements: what is counted, its sensitivity to one record, and its noise."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import assert_distribution, assert_rate
from deniable.counting.local import count
from deniable.errors import InvariantError
from deniable.model.pairwise import measure
from deniable.model.pairwise.measure import (
    PairwiseMeasurements,
    apportion,
    estimate_records,
    measure_pairwise,
    remeasure,
    to_distribution,
    value_distributions,
    with_bins,
)
from deniable.model.pairwise.one_way import sum_groups
from deniable.privacy import noise_laws
from deniable.privacy.ledger import Ledger
from deniable.privacy.pairwise_budget import (
    PAIRS_SPEND,
    REMEASURE_SPEND,
    STRENGTH_SPEND,
    pair_noise,
)
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from worlds import codes_of, plain_attribute, property_test, worlds

pytestmark = pytest.mark.slow

EXACT = noise_laws.exact()
few = settings(property_test, max_examples=30)


def without_noise(attributes, *, choose=None):
    """No noise; with ``choose``, that many of the strongest pairs are measured."""
    sizes = [attribute.size for attribute in attributes]
    exactly = pair_noise(sizes, mu_values=math.inf, mu_pairs=math.inf)
    return exactly if choose is None else replace(exactly, strength=EXACT, measured=choose)


def learnt(attributes, codes, noise, *, values_of=None, key=1, ratio=1.0):
    """Measure one table; or one-way tables of one and two-way tables of another."""
    first = codes if values_of is None else values_of
    return measure_pairwise(
        Keyed(key).at("noise"),
        partial(count, attributes, first, workers=1),
        lambda binned: partial(count, binned, codes, workers=1),
        attributes,
        noise,
        ratio=ratio,
    )


def counted(codes, bins, i, j):
    """The table of a pair in bins, record by record."""
    table = np.zeros((bins[i].max() + 1, bins[j].max() + 1), dtype=np.int64)
    for row in codes.tolist():
        table[bins[i][row[i]], bins[j][row[j]]] += 1
    return table


@few
@given(worlds(least=2))
def test_without_noise_every_count_is_what_is_in_the_table(world):
    measured, _ = learnt(world.attributes, world.codes, without_noise(world.attributes))
    for i, attribute in enumerate(world.attributes):
        column = world.codes[:, i].tolist()
        assert measured.values[i].tolist() == [column.count(v) for v in range(attribute.size)]
    assert list(measured.pairs) == list(combinations(range(world.m), 2))
    for (i, j), table in measured.pairs.items():
        np.testing.assert_array_equal(table, counted(world.codes, measured.bins, i, j))
    assert measured.records == pytest.approx(len(world.codes))


@few
@given(worlds(least=1))
def test_a_missing_cell_is_a_bin_of_its_own_under_any_noise(world):
    """However much noise, and whatever the table: it is neither merged nor split."""
    loud = pair_noise([a.size for a in world.attributes], mu_values=0.05, mu_pairs=0.05)
    for noise in (without_noise(world.attributes), loud):
        measured, _ = learnt(world.attributes, world.codes, noise)
        for attribute, bins in zip(world.attributes, measured.bins, strict=True):
            assert len(bins) == attribute.size
            assert bins[0] == 0
            assert set(np.diff(bins).tolist()) <= {0, 1}
            if attribute.missing_code is not None:
                assert (bins == bins[attribute.missing_code]).sum() == 1


# Sensitivity to one record

SMALL = (
    plain_attribute("a", 2),
    Attribute(name="b", kind="categorical", values=("u", "v"), missing=("?",)),
    plain_attribute("c", 2),
    plain_attribute("d", 1),
)
RECORDS = list(product(*(range(attribute.size) for attribute in SMALL)))
# All tables of none or one record, every eighth of two, and larger ones.
TABLES = [
    *((), *((record,) for record in RECORDS)),
    *list(combinations_with_replacement(RECORDS, 2))[::8],
    *(RECORDS, RECORDS * 3, [RECORDS[4]] * 9),
]
# One-way tables, for bins that do not depend on the table whose pairs are counted.
KNOWN = codes_of([*RECORDS, *RECORDS[:5], (0, 2, 1, 0)], 4)


class Spy:
    """Records every exact number before noise is added, and its spend."""

    def __init__(self):
        self.calls = []

    def __call__(self, rng, counts, law, *, what, part, sensitivity=1, moved=1):
        self.calls.append((what, counts.ravel().copy(), sensitivity, moved))
        return add_noise(
            rng, counts, law, what=what, part=part, sensitivity=sensitivity, moved=moved
        )


add_noise = measure.add_noise


def exact_numbers(records, noise, monkeypatch, *, values_of=None):
    spy = Spy()
    monkeypatch.setattr(measure, "add_noise", spy)
    learnt(SMALL, codes_of(list(records), 4), noise, values_of=values_of)
    return spy.calls


@pytest.mark.parametrize("choose", [None, 1, 3])
def test_one_record_moves_no_number_further_than_it_is_charged_for(monkeypatch, choose):
    """Many small tables, all records that can be added. What is noised later may depend on what
    was noised before, so values are fixed where pairs are looked at."""
    noise = without_noise(SMALL, choose=choose)
    largest: Counter[str] = Counter()
    for records in TABLES:
        here = exact_numbers(records, noise, monkeypatch, values_of=KNOWN)
        values = exact_numbers(records, noise, monkeypatch)[: len(SMALL)]
        for more in RECORDS:
            there = exact_numbers([*records, more], noise, monkeypatch, values_of=KNOWN)
            values_there = exact_numbers([*records, more], noise, monkeypatch)[: len(SMALL)]
            # Which pairs are counted follows from noisy scores; these have no noise here.
            chosen = here[len(SMALL) :], there[len(SMALL) :]
            if choose is not None:
                chosen = chosen[0][:1], chosen[1][:1]
            for one, two in zip((*values, *chosen[0]), (*values_there, *chosen[1]), strict=True):
                change = np.abs(two[1] - one[1])
                what, sensitivity, moved = one[0], one[2], one[3]
                assert two[2:] == (sensitivity, moved)
                assert change.max(initial=0) <= sensitivity, what
                assert (change**2).sum() <= moved * sensitivity**2, what
                largest[what] = max(largest[what], int((change**2).sum()))
    # The charge is tight: some record moves as much as is charged for.
    assert largest.pop(STRENGTH_SPEND, 6) == 6
    assert largest.pop(PAIRS_SPEND, 6) == 6
    assert set(largest.values()) == {1}
    assert len(largest) == len(SMALL)


def test_pairs_that_were_chosen_move_by_one_cell_each(monkeypatch):
    """The same for selected pairs: the selection is fixed by numbers that are already noisy."""
    noise = without_noise(SMALL, choose=2)
    fixed = [(0, 1), (1, 2)]

    def choose_the_same(rng, count, listed, scores, law):
        strength = np.array([float(pair in fixed) for pair in listed])
        return strength, measured(rng, count, listed, scores, law)[1]

    measured = measure._score_pairs
    monkeypatch.setattr(measure, "_score_pairs", choose_the_same)
    for records in TABLES:
        for more in RECORDS:
            before, _ = learnt(SMALL, codes_of(list(records), 4), noise, values_of=KNOWN)
            after, _ = learnt(SMALL, codes_of([*records, more], 4), noise, values_of=KNOWN)
            assert list(before.pairs) == list(after.pairs) == fixed
            for pair in fixed:
                change = after.pairs[pair] - before.pairs[pair]
                assert sorted(change[change != 0].tolist()) == [1]


def remeasured_once(attributes, codes, measured, weights, noise, *, key=1):
    binned = with_bins(attributes, measured.bins)
    counter = partial(count, binned, codes, workers=1)
    return remeasure(Keyed(key).at("noise"), counter, measured, weights, noise)


def test_a_record_moves_one_cell_of_every_remeasured_table_by_one(monkeypatch):
    """Whichever pairs were measured again: that is computed from noisy numbers."""
    noise = replace(without_noise(SMALL), remeasurements=5)
    measured, _ = learnt(SMALL, KNOWN, without_noise(SMALL))
    for weights in ({(0, 1): 3.0, (1, 2): 2.0}, {(0, 2): 1.0}, dict.fromkeys(measured.pairs, 1.0)):
        for records, more in product(TABLES, RECORDS):
            spy = Spy()
            monkeypatch.setattr(measure, "add_noise", spy)
            for table in (records, [*records, more]):
                remeasured_once(SMALL, codes_of(list(table), 4), measured, weights, noise)
            (what, one, sensitivity, moved), (_, two, *_) = spy.calls
            change = two - one
            assert (what, sensitivity, moved) == (REMEASURE_SPEND, 1, 5)
            assert sorted(change[change != 0].tolist()) == [1] * 5


# Noise


def wide_table(rows=4_000, size=20, m=4, key=5):
    rng = np.random.default_rng(key)
    codes = rng.integers(0, size, (rows, m)).astype(np.uint16)
    return tuple(plain_attribute(f"x{i}", size) for i in range(m)), np.asfortranarray(codes)


def assert_law(differences, law):
    """Differences have the frequencies of the law; those rarer than 1e-4 are pooled."""
    expected = {z: float(law.probability(z)) for z in range(-law.r, law.r + 1)}
    expected = {z: p for z, p in expected.items() if p > 1e-4}
    tally = Counter(differences)
    seen = {z: tally[z] for z in expected}
    rest = len(differences) - sum(seen.values())
    assert_distribution({**seen, "rare": rest}, {**expected, "rare": 1 - sum(expected.values())})


def test_every_count_of_values_and_pairs_has_the_noise_that_is_paid_for():
    """60 runs, about 144,000 cells of pairs; false-alarm rate 1e-6 each, fixed keys."""
    attributes, codes = wide_table()
    of_values = [noise_laws.rounded_gaussian(sigma) for sigma in (1.5, 2.0, 2.5, 3.0)]
    noise = replace(
        without_noise(attributes), values=tuple(of_values), pairs=noise_laws.rounded_gaussian(4.0)
    )
    exactly, _ = learnt(attributes, codes, without_noise(attributes))
    of_pairs: list[int] = []
    of_each: list[list[int]] = [[] for _ in attributes]
    for key in range(60):
        measured, spends = learnt(attributes, codes, noise, key=key)
        for i, table in enumerate(measured.values):
            of_each[i] += (table - exactly.values[i]).tolist()
        for (i, j), table in measured.pairs.items():
            of_pairs += (table - counted(codes, measured.bins, i, j)).ravel().tolist()
    assert_law(of_pairs, noise.pairs)
    for differences, law in zip(of_each, of_values, strict=True):
        assert_law(differences, law)
    assert {spend.what: dict(spend.law.parameters)["sigma"] for spend in spends} == {
        **{f"values of x{i}": sigma for i, sigma in enumerate((1.5, 2.0, 2.5, 3.0))},
        PAIRS_SPEND: 4.0,
    }


def dependent_table():
    """x0 and x1 are equal; the others are independent, all combinations equally frequent."""
    records = [(a, a, b, c) for a, b, c in product(range(3), repeat=3)] * 40
    return tuple(plain_attribute(f"x{i}", 3) for i in range(4)), codes_of(records, 4)


def test_without_noise_the_strongest_pair_is_counted():
    attributes, codes = dependent_table()
    measured, _ = learnt(attributes, codes, without_noise(attributes, choose=1))
    assert list(measured.pairs) == [(0, 1)]


def test_the_choice_of_pairs_has_the_noise_that_is_paid_for():
    """Without noise one of six pairs would always be chosen. Its distance from independence is
    1,440 and that of the others 0, so that it comes first with the probability that its noise
    leaves it there. 1,500 runs, false-alarm rate 1e-6, fixed keys."""
    attributes, codes = dependent_table()
    sigma = 1_000.0
    noise = replace(
        without_noise(attributes, choose=1), strength=noise_laws.rounded_gaussian(sigma)
    )
    # ∫ φ(x) Φ(x + 1,440 / σ)^5 dx
    grid = np.linspace(-12, 12, 200_001)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    below = np.cumsum(density) * (grid[1] - grid[0])
    others = np.interp(grid + 1_440 / sigma, grid, below)
    chance = float((density * others**5).sum() * (grid[1] - grid[0]))
    assert 0.3 < chance < 0.7
    runs = 1_500
    first = sum(
        list(learnt(attributes, codes, noise, key=key)[0].pairs) == [(0, 1)] for key in range(runs)
    )
    assert_rate(first, runs, chance)


def test_every_remeasured_table_has_independent_noise():
    """What is kept is the sum of a pair's looks: of 9 its noise has 9 times the variance, and its
    square in units of that a mean of 1. 40 runs; 7 deviations, about 1e-11, fixed keys."""
    attributes, codes = wide_table()
    law = noise_laws.rounded_gaussian(5.0)
    noise = replace(without_noise(attributes), remeasured=law, remeasurements=10)
    first, _ = learnt(attributes, codes, without_noise(attributes))
    squares: dict[int, list[float]] = {1: [], 9: []}
    for key in range(40):
        weights = {(0, 1): 9.0, (2, 3): 1.0}
        measured, (spend,) = remeasured_once(attributes, codes, first, weights, noise, key=key)
        assert measured.remeasure_counts == {(0, 1): 9, (2, 3): 1}
        for pair, looks in measured.remeasure_counts.items():
            beyond = measured.remeasured[pair] - looks * counted(codes, measured.bins, *pair)
            squares[looks] += (beyond.ravel() ** 2 / (looks * noise.remeasured.variance)).tolist()
    for found in squares.values():
        assert abs(np.mean(found) - 1) < 7 * np.sqrt(2 / len(found))
    assert dict(spend.law.parameters)["sigma"] == 5.0
    assert spend.moved == 10


def test_all_tables_of_a_pair_are_weighted_by_inverse_variance():
    """One of σ = 2 and three of σ = 4, 100, 130, 100 and 130: 4/7 of the first, 1/7 of each."""
    measured = PairwiseMeasurements(
        values=(np.array([100]), np.array([100])),
        bins=(np.array([0]), np.array([0])),
        pairs={(0, 1): np.array([[100]])},
        remeasured={(0, 1): np.array([[360]])},
        remeasure_counts={(0, 1): 3},
        value_sigmas=(1.0, 1.0),
        pair_sigma=2.0,
        remeasured_sigma=4.0,
    )
    counts, sigma = measured.counts((0, 1))
    assert counts[0, 0] == pytest.approx(4 / 7 * 100 + 1 / 7 * 360)
    assert 1 / sigma**2 == pytest.approx(1 / 4 + 3 / 16)
    once = replace(measured, remeasured={}, remeasure_counts={})
    assert once.counts((0, 1)) == (pytest.approx(100), 2.0)


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


@pytest.mark.parametrize("choose", [None, 2])
def test_spends_are_those_of_the_plan(choose):
    attributes, codes = dependent_table()
    noise = without_noise(attributes, choose=choose)
    _, spends = learnt(attributes, codes, noise)
    Ledger(tuple(spends)).require_equal(noise.spends([a.name for a in attributes]))


def test_a_single_attribute_has_no_pairs():
    attributes, codes = dependent_table()
    measured, spends = learnt(attributes[:1], codes[:, :1], without_noise(attributes[:1]))
    assert measured.pairs == {}
    assert [spend.what for spend in spends] == ["values of x0"]


# Post-processing of noisy counts


def test_the_least_noisy_table_decides_the_number_of_records():
    sure, unsure = np.array([500, 510]), np.array([100] * 9)
    assert estimate_records([sure, unsure], [0.5, 50.0]) == pytest.approx(1010, abs=1)
    assert estimate_records([sure, unsure], [50.0, 0.5]) == pytest.approx(900, abs=1)
    assert estimate_records([-sure], [1.0]) == 1.0


def test_noisy_counts_become_a_distribution():
    noisy = np.array([40, -7, 12, 0, 3])
    share = to_distribution(noisy, 50.0)
    assert share.sum() == pytest.approx(1)
    assert (share >= 0).all()
    np.testing.assert_allclose(to_distribution(np.array([1, 2, 5]), 8.0), [1 / 8, 2 / 8, 5 / 8])


def test_only_the_values_of_numbers_are_smoothed_and_missing_cells_are_not():
    """Noise of σ = 30 on 16 values of 100: flat if neighbours are meaningful."""
    noisy = 100 + np.tile([20, -20, 10, -10], 4)
    gone = np.append(noisy, 900)
    number = Attribute(name="n", kind="integer", values=range(16))
    with_gaps = replace(number, missing=("?",), groups=())
    listed = plain_attribute("c", 16)
    tables = (noisy, gone, noisy)
    smoothed, gaps, plain = value_distributions((number, with_gaps, listed), tables, (30.0,) * 3)
    np.testing.assert_allclose(smoothed, 1 / 16)
    assert np.ptp(gaps[:-1]) == pytest.approx(0)
    assert gaps[-1] > 4 * gaps[0]
    assert np.argmax(plain) % 4 == 0
    assert np.ptp(plain) > 0.01
    exactly = value_distributions((number,), (noisy,), (0.0,))[0]
    np.testing.assert_allclose(exactly, noisy / noisy.sum())


def test_bins_follow_from_the_noisy_values_alone():
    """Two tables for pairs, one for values: the same bins."""
    attributes, codes = wide_table(rows=300, size=40)
    noise = pair_noise([40] * 4, mu_values=0.5, mu_pairs=0.5)
    one, _ = learnt(attributes, codes, noise, values_of=codes)
    two, _ = learnt(attributes, codes[:10], noise, values_of=codes)
    for here, there in zip(one.bins, two.bins, strict=True):
        np.testing.assert_array_equal(here, there)
        assert here.max() + 1 < 40, "so that something was merged"


def test_more_noise_makes_fewer_bins():
    attributes, codes = wide_table(rows=2_000, size=60)
    bins = []
    for mu in (20.0, 1.0, 0.2):
        measured, _ = learnt(attributes, codes, pair_noise([60] * 4, mu_values=mu, mu_pairs=mu))
        bins.append(sum(int(groups.max()) + 1 for groups in measured.bins))
    assert bins == sorted(bins, reverse=True)
    assert bins[0] > bins[-1]


def test_tables_of_different_shapes_are_a_bug():
    attributes, codes = dependent_table()
    measured, _ = learnt(attributes, codes, without_noise(attributes))
    fields = {name: getattr(measured, name) for name in PairwiseMeasurements.__dataclass_fields__}
    for change in (
        {"value_sigmas": measured.value_sigmas[1:]},
        {"values": measured.values[1:]},
        {"bins": (measured.bins[0][1:], *measured.bins[1:])},
        {"pairs": {(0, 1): measured.pairs[0, 1][:, 1:]}},
    ):
        with pytest.raises(InvariantError, match="have different shapes"):
            PairwiseMeasurements(**{**fields, **change})


def test_counts_are_not_in_the_repr():
    attributes, codes = dependent_table()
    measured, _ = learnt(attributes, codes, without_noise(attributes))
    assert "array" not in repr(measured)
    assert sum_groups(measured.bins[0], measured.values[0].astype(float)).sum() == len(codes)
