"""Measurements: what is counted, its sensitivity to one record, and its noise."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from chance import assert_distribution, assert_no_shared_noise
from deniable.counting.local import count
from deniable.errors import InvariantError
from deniable.model.pairwise import measure
from deniable.model.pairwise.measure import (
    PairwiseMeasurements,
    measure_pairwise,
    measure_tables,
    scaled_interactions,
    with_bins,
)
from deniable.model.pairwise.one_way import sum_groups
from deniable.privacy import noise_laws
from deniable.privacy.ledger import Ledger
from deniable.privacy.pairwise_budget import (
    INTERACTIONS_SPEND,
    MAX_GROUPS,
    PAIRS_SPEND,
    TARGET_WEIGHT,
    gaussian_sigma,
    pair_noise,
    three_way_spend,
)
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from worlds import Spy, codes_of, plain_attribute, property_test, worlds

pytestmark = pytest.mark.slow

few = settings(property_test, max_examples=30)


def noise_of(attributes, mu=math.inf):
    return pair_noise([attribute.size for attribute in attributes], mu_values=mu, mu_pairs=mu)


def learnt(attributes, codes, noise, *, values_of=None, key=1, targets=()):
    """Measure one table; or one-way tables of one and interactions of another."""
    first = codes if values_of is None else values_of
    return measure_pairwise(
        Keyed(key).at("noise"),
        partial(count, attributes, first, workers=1),
        lambda binned: partial(count, binned, codes, workers=1),
        attributes,
        noise,
        targets=targets,
    )


def tables_of(attributes, codes, measured, weights, noise, *, key=1):
    counter = partial(count, with_bins(attributes, measured.bins), codes, workers=1)
    return measure_tables(Keyed(key).at("noise"), counter, measured, weights, noise)


def counted(codes, bins, i, j):
    """The table of a pair in bins, record by record."""
    table = np.zeros((bins[i].max() + 1, bins[j].max() + 1), dtype=np.int64)
    for row in codes.tolist():
        table[bins[i][row[i]], bins[j][row[j]]] += 1
    return table


def in_groups(measured):
    """The group of each code, by attribute."""
    return [groups[bins] for groups, bins in zip(measured.groups, measured.bins, strict=True)]


def literal_interactions(table):
    """q_ij = ab · (n_ij - mean of the row - mean of the column + mean of all), in fractions."""
    (a, b), n = table.shape, table.tolist()
    rows = [Fraction(sum(row), b) for row in n]
    columns = [Fraction(sum(row[j] for row in n), a) for j in range(b)]
    mean = Fraction(sum(map(sum, n)), a * b)
    return [[a * b * (n[i][j] - rows[i] - columns[j] + mean) for j in range(b)] for i in range(a)]


@few
@given(worlds(least=2, loglinear=False))
def test_without_noise_every_count_is_what_is_in_the_table(world):
    noise = noise_of(world.attributes)
    measured, _ = learnt(world.attributes, world.codes, noise)
    for i, attribute in enumerate(world.attributes):
        column = world.codes[:, i].tolist()
        assert measured.values[i].tolist() == [column.count(v) for v in range(attribute.size)]
    pairs = list(combinations(range(world.m), 2))
    weights = dict.fromkeys(pairs, 1.0)
    measured, _ = tables_of(world.attributes, world.codes, measured, weights, noise)
    assert measured.table_counts == dict.fromkeys(pairs, 1)
    for (i, j), table in measured.tables.items():
        np.testing.assert_array_equal(table, counted(world.codes, measured.bins, i, j))
    assert measured.records == pytest.approx(len(world.codes))
    assert measured.interactions == {}


@few
@given(worlds(least=1, loglinear=False))
def test_a_missing_cell_is_a_bin_and_a_group_of_its_own_under_any_noise(world):
    """However much noise, and whatever the table: it is neither merged nor split."""
    for noise in (noise_of(world.attributes), noise_of(world.attributes, 0.05)):
        measured, _ = learnt(world.attributes, world.codes, noise)
        for attribute, bins, groups in zip(
            world.attributes, measured.bins, in_groups(measured), strict=True
        ):
            assert len(bins) == attribute.size
            assert bins[0] == 0
            assert set(np.diff(bins).tolist()) <= {0, 1}
            if attribute.missing_code is not None:
                assert (bins == bins[attribute.missing_code]).sum() == 1
                assert (groups == groups[attribute.missing_code]).sum() == 1


# Interactions: what they are, and how far one record moves them


small_tables = st.tuples(st.integers(1, 8), st.integers(1, 8)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 10**6), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@property_test
@given(small_tables)
def test_interactions_are_the_doubly_centred_table_times_its_cells(listed):
    table = np.array(listed, dtype=np.int64)
    assert scaled_interactions(table).tolist() == literal_interactions(table)


@pytest.mark.parametrize("a", range(2, MAX_GROUPS + 1))
@pytest.mark.parametrize("b", [2, 3, 8, 16])
def test_one_record_in_any_cell_moves_interactions_by_what_lemma_11_states(a, b):
    """‖Δq‖² = (ab)² (1 - 1/a)(1 - 1/b), whatever the cell and the table; all numbers move."""
    table = np.random.default_rng(a * b).integers(0, 900, (a, b))
    for cell in product(range(a), range(b)):
        more = table.copy()
        more[cell] += 1
        change = scaled_interactions(more) - scaled_interactions(table)
        lemma = (a * b) ** 2 * (1 - Fraction(1, a)) * (1 - Fraction(1, b))
        assert int((change**2).sum()) == lemma == a * b * (a - 1) * (b - 1)
        assert np.count_nonzero(change) == a * b


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
# One-way tables, for bins and groups that do not depend on the table whose pairs are counted.
KNOWN = codes_of([*RECORDS, *RECORDS[:5], (0, 2, 1, 0)], 4)


def exact_numbers(records, noise, monkeypatch, *, values_of=None, targets=()):
    spy = Spy()
    monkeypatch.setattr(measure, "add_noise", spy)
    codes = codes_of(list(records), 4)
    _, spends = learnt(SMALL, codes, noise, values_of=values_of, targets=targets)
    return spy.calls, spends


@pytest.mark.parametrize("targets", [(), (1,), (0, 2)])
def test_one_record_moves_no_number_further_than_it_is_charged_for(monkeypatch, targets):
    """Many small tables, all records that can be added. What is noised later may depend on what
    was noised before, so values are fixed where interactions are looked at. The squares of all
    changes, each over σ² of the noise that was drawn, are what the ledger states."""
    noise = noise_of(SMALL, 3.0)
    compared = 0
    for records in TABLES:
        here, spends = exact_numbers(records, noise, monkeypatch, values_of=KNOWN, targets=targets)
        (stated,) = [spend for spend in spends if spend.what == INTERACTIONS_SPEND]
        for more in RECORDS:
            larger = [*records, more]
            there, _ = exact_numbers(larger, noise, monkeypatch, values_of=KNOWN, targets=targets)
            pairs = list(zip(here[len(SMALL) :], there[len(SMALL) :], strict=True))
            cost = 0.0
            for (spend, one), (same, two) in pairs:
                assert spend == same
                assert spend.what == "interactions"
                cost += float(((two - one) ** 2).sum()) / gaussian_sigma(spend.law) ** 2
            # Exactly what is stated, for every table and every record: nothing is left over.
            assert stated.mu**2 * (1 - 1e-12) <= cost <= stated.mu**2
            compared += len(pairs) > 0
    assert compared == len(TABLES) * len(RECORDS)


def test_one_record_moves_one_count_of_every_attribute_by_one(monkeypatch):
    """The same tables and records. Values come before interactions, which do not change them."""
    noise = noise_of(SMALL, 3.0)
    of_values: Counter[str] = Counter()
    for records in TABLES:
        here, _ = exact_numbers(records, noise, monkeypatch)
        for more in RECORDS:
            there, _ = exact_numbers([*records, more], noise, monkeypatch)
            values = zip(here[: len(SMALL)], there[: len(SMALL)], strict=True)
            for (spend, one), (_, two) in values:
                assert sorted(np.abs(two - one)[two != one].tolist()) == [1]
                of_values[spend.what] += 1
    assert len(of_values) == len(SMALL)
    assert set(of_values.values()) == {len(TABLES) * len(RECORDS)}


def test_a_record_moves_one_cell_of_every_two_way_table_by_one(monkeypatch):
    """Whichever pairs were chosen: that is computed from noisy numbers."""
    noise = replace(noise_of(SMALL), table_count=5)
    measured, _ = learnt(SMALL, KNOWN, noise)
    every = dict.fromkeys(combinations(range(4), 2), 1.0)
    for weights in ({(0, 1): 3.0, (1, 2): 2.0}, {(0, 2): 1.0}, every):
        for records, more in product(TABLES, RECORDS):
            spy = Spy()
            monkeypatch.setattr(measure, "add_noise", spy)
            for table in (records, [*records, more]):
                tables_of(SMALL, codes_of(list(table), 4), measured, weights, noise)
            (spend, one), (_, two) = spy.calls
            change = two - one
            assert (spend.what, spend.sensitivity, spend.l0_sensitivity) == (PAIRS_SPEND, 1, 5)
            assert sorted(change[change != 0].tolist()) == [1] * 5


# Noise


def wide_table(rows=4_000, size=20, m=4, key=5):
    rng = np.random.default_rng(key)
    codes = rng.integers(0, size, (rows, m)).astype(np.uint16)
    return tuple(plain_attribute(f"x{i}", size) for i in range(m)), np.asfortranarray(codes)


def assert_law(differences, law):
    """Differences have the frequencies of the law; those rarer than 1e-4 are pooled."""
    expected = {z: float(law.probability(z)) for z in range(-law.radius, law.radius + 1)}
    expected = {z: p for z, p in expected.items() if p > 1e-4}
    tally = Counter(differences)
    seen = {z: tally[z] for z in expected}
    rest = len(differences) - sum(seen.values())
    assert_distribution({**seen, "rare": rest}, {**expected, "rare": 1 - sum(expected.values())})


@pytest.mark.untraced
def test_every_count_of_values_and_tables_has_the_noise_that_is_paid_for():
    """60 runs, about 144,000 cells of pairs; false-alarm rate 1e-6 each, fixed keys."""
    attributes, codes = wide_table()
    of_values = [noise_laws.rounded_gaussian(sigma) for sigma in (1.5, 2.0, 2.5, 3.0)]
    noise = replace(
        noise_of(attributes), values=tuple(of_values), tables=noise_laws.rounded_gaussian(4.0)
    )
    exactly, _ = learnt(attributes, codes, noise_of(attributes))
    weights = dict.fromkeys(combinations(range(4), 2), 1.0)
    of_pairs: list[int] = []
    of_each: list[list[int]] = [[] for _ in attributes]
    for key in range(60):
        measured, spends = learnt(attributes, codes, noise, key=key)
        measured, more = tables_of(attributes, codes, measured, weights, noise, key=1_000 + key)
        for i, table in enumerate(measured.values):
            of_each[i] += (table - exactly.values[i]).tolist()
        for (i, j), table in measured.tables.items():
            of_pairs += (table - counted(codes, measured.bins, i, j)).ravel().tolist()
    assert_law(of_pairs, noise.tables)
    for differences, law in zip(of_each, of_values, strict=True):
        assert_law(differences, law)
    assert {spend.what: gaussian_sigma(spend.law) for spend in [*spends, *more]} == {
        **{f"values of x{i}": sigma for i, sigma in enumerate((1.5, 2.0, 2.5, 3.0))},
        PAIRS_SPEND: 4.0,
    }


@pytest.mark.untraced
@pytest.mark.parametrize("targets", [(), (3,)])
def test_interactions_have_the_noise_that_is_paid_for(targets):
    """Noise over the σ of its pair, which is that of the entry divided by shapes and weights. 75
    runs of six pairs; each σ by the squares, 7 deviations, about 1e-11, so that one that is 15 %
    too small or too large is noticed; that they are Gaussian by
    ten intervals of equal probability, and that no two cells, of one pair or of two, share their
    noise, false-alarm rate 1e-6 each; fixed keys."""
    attributes, codes = wide_table(rows=3_000, size=6)
    noise = noise_of(attributes, 0.7)
    scores: dict[tuple[int, int], list[float]] = {}
    laws: dict[tuple[int, int], noise_laws.Law] = {}
    for key in range(75):
        measured, spends = learnt(attributes, codes, noise, key=key, targets=targets)
        groups = in_groups(measured)
        numbers = [int(own.max()) + 1 for own in groups]
        stated = spends[-1].l0_sensitivity / gaussian_sigma(spends[-1].law) ** 2
        weight = {pair: 4 if set(pair) & set(targets) else 1 for pair in measured.interactions}
        costs = {(i, j): (1 - 1 / numbers[i]) * (1 - 1 / numbers[j]) for i, j in weight}
        total = sum(weight[pair] * costs[pair] for pair in costs)
        for (i, j), noisy in measured.interactions.items():
            exact = scaled_interactions(counted(codes, groups, i, j))
            sigma = noisy.size * math.sqrt(total / weight[i, j] / stated)
            scores.setdefault((i, j), []).extend(((noisy - exact) / sigma).ravel().tolist())
            assert measured.interaction_sigmas[i, j] * noisy.size == pytest.approx(sigma)
            laws[i, j] = noise_laws.rounded_gaussian(sigma)
    assert len(scores) == 6
    for found in scores.values():
        assert abs(np.mean(np.square(found)) - 1) < 7 * np.sqrt(2 / len(found))
    columns = {pair: np.reshape(found, (75, -1)) for pair, found in scores.items()}
    of_cells = [laws[pair] for pair, own in columns.items() for _ in range(own.shape[1])]
    assert_no_shared_noise(np.hstack(list(columns.values())), of_cells)
    tenths = np.floor(10 * ndtr(np.concatenate(list(scores.values())))).astype(int)
    assert_distribution(Counter(tenths.tolist()), dict.fromkeys(range(10), 0.1))


def dependent_table():
    """x0 and x1 are equal; the others are independent, all combinations equally frequent."""
    records = [(a, a, b, c) for a, b, c in product(range(3), repeat=3)] * 40
    return tuple(plain_attribute(f"x{i}", 3) for i in range(4)), codes_of(records, 4)


def test_every_two_way_table_has_independent_noise():
    """What is kept is the sum of a pair's tables: of 9 its noise has 9 times the variance, and its
    square in units of that a mean of 1. 40 runs; 7 deviations, about 1e-11, fixed keys."""
    attributes, codes = wide_table()
    law = noise_laws.rounded_gaussian(5.0)
    noise = replace(noise_of(attributes), tables=law, table_count=10)
    first, _ = learnt(attributes, codes, noise_of(attributes))
    squares: dict[int, list[float]] = {1: [], 9: []}
    for key in range(40):
        weights = {(0, 1): 9.0, (2, 3): 1.0}
        measured, (spend,) = tables_of(attributes, codes, first, weights, noise, key=key)
        assert measured.table_counts == {(0, 1): 9, (2, 3): 1}
        for pair, number in measured.table_counts.items():
            beyond = measured.tables[pair] - number * counted(codes, measured.bins, *pair)
            squares[number] += (beyond.ravel() ** 2 / (number * law.variance)).tolist()
    for found in squares.values():
        assert abs(np.mean(found) - 1) < 7 * np.sqrt(2 / len(found))
    assert gaussian_sigma(spend.law) == 5.0
    assert spend.l0_sensitivity == 10


def test_the_tables_of_a_pair_are_averaged():
    measured = PairwiseMeasurements(
        values=(np.array([100, 20]), np.array([100, 20])),
        bins=(np.array([0, 1]), np.array([0, 1])),
        groups=(np.array([0, 1]), np.array([0, 1])),
        interactions={(0, 1): np.array([[8, -8], [-8, 8]])},
        tables={(0, 1): np.array([[360, 1], [2, 3]])},
        table_counts={(0, 1): 4},
        value_sigmas=(1.0, 1.0),
        interaction_sigmas={(0, 1): 3.0},
        table_sigma=4.0,
    )
    table, sigma = measured.table((0, 1))
    assert table.tolist() == [[90, 0.25], [0.5, 0.75]]
    assert sigma == 2.0
    assert measured.interaction((0, 1)).tolist() == [[2, -2], [-2, 2]]


@pytest.mark.parametrize("mu", [math.inf, 1.0, 1e-5])
def test_spends_are_those_of_the_plan(mu):
    """With interactions, without any noise, and with too much of it for interactions."""
    attributes, codes = dependent_table()
    noise = noise_of(attributes, mu)
    measured, spends = learnt(attributes, codes, noise)
    weights = dict.fromkeys(combinations(range(4), 2), 1.0)
    _, more = tables_of(attributes, codes, measured, weights, noise)
    if noise.reserved_count:
        spends.append(three_way_spend(4, noise.three_way))
    Ledger((*spends, *more)).require_equal(noise.spends([a.name for a in attributes]))
    assert (measured.interactions != {}) == (mu == 1.0)


@pytest.mark.parametrize("mu", [math.inf, 1.0])
def test_a_single_attribute_has_no_pairs(mu):
    attributes, codes = dependent_table()
    measured, spends = learnt(attributes[:1], codes[:, :1], noise_of(attributes[:1], mu))
    assert measured.tables == measured.interactions == {}
    assert [spend.what for spend in spends] == ["values of x0"]


def test_attributes_of_one_group_have_no_interactions_and_the_others_their_share():
    attributes, codes = wide_table(rows=500, size=3)
    attributes = (*attributes[:3], plain_attribute("x3", 1))
    codes = codes.copy(order="F")
    codes[:, 3] = 0
    measured, spends = learnt(attributes, codes, noise_of(attributes, 1.0))
    assert list(measured.interactions) == [(0, 1), (0, 2), (1, 2)]
    spent = sum((2 / 3) ** 2 / sigma**2 for sigma in measured.interaction_sigmas.values())
    assert spent == pytest.approx(spends[-1].mu ** 2)


def test_pairs_with_a_target_have_half_the_sigma():
    attributes, codes = wide_table(rows=500, size=3)
    measured, _ = learnt(attributes, codes, noise_of(attributes, 1.0), targets=[2])
    plain = measured.interaction_sigmas[0, 1]
    for pair, sigma in measured.interaction_sigmas.items():
        factor = math.sqrt(TARGET_WEIGHT) if 2 in pair else 1
        assert sigma * factor == pytest.approx(plain)


# Bins and groups


def test_bins_and_groups_follow_from_the_noisy_values_alone():
    """Two tables for pairs, one for values: the same bins."""
    attributes, codes = wide_table(rows=300, size=40)
    noise = noise_of(attributes, 0.5)
    one, _ = learnt(attributes, codes, noise, values_of=codes)
    two, _ = learnt(attributes, codes[:10], noise, values_of=codes)
    for here, there in zip((*one.bins, *one.groups), (*two.bins, *two.groups), strict=True):
        np.testing.assert_array_equal(here, there)
    assert one.interaction_sigmas == two.interaction_sigmas
    for here in one.bins:
        assert here.max() + 1 < 40, "so that something was merged"


def test_more_noise_makes_fewer_bins():
    attributes, codes = wide_table(rows=2_000, size=60)
    bins = []
    for mu in (20.0, 1.0, 0.2):
        measured, _ = learnt(attributes, codes, noise_of(attributes, mu))
        bins.append(sum(int(groups.max()) + 1 for groups in measured.bins))
    assert bins == sorted(bins, reverse=True)
    assert bins[0] > bins[-1]


def test_tables_of_different_shapes_are_a_bug():
    attributes, codes = dependent_table()
    noise = noise_of(attributes, 1.0)
    measured, _ = learnt(attributes, codes, noise)
    measured, _ = tables_of(attributes, codes, measured, {(0, 1): 1.0}, noise)
    fields = {name: getattr(measured, name) for name in PairwiseMeasurements.__dataclass_fields__}
    changes: list[dict[str, object]] = [
        {"value_sigmas": measured.value_sigmas[1:]},
        {"values": measured.values[1:]},
        {"bins": (measured.bins[0][1:], *measured.bins[1:])},
        {"groups": (measured.groups[0][1:], *measured.groups[1:])},
        {"tables": {(0, 1): measured.tables[0, 1][:, 1:]}},
        {"table_counts": {}},
        {"interactions": {**measured.interactions, (0, 1): measured.interactions[0, 1][1:]}},
        {"interaction_sigmas": {}},
    ]
    for change in changes:
        with pytest.raises(InvariantError, match="have different shapes"):
            PairwiseMeasurements(**{**fields, **change})


def test_counts_are_not_in_the_repr():
    attributes, codes = dependent_table()
    measured, _ = learnt(attributes, codes, noise_of(attributes))
    assert "array" not in repr(measured)
    assert sum_groups(measured.bins[0], measured.values[0].astype(float)).sum() == len(codes)
