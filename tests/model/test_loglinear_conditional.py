"""Log-linear conditionals: integer weights by the definition, draws by their exact law."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import definitions
from chance import assert_distribution
from deniable.errors import InvariantError
from deniable.model import effect_tables
from deniable.model import loglinear_conditional as module
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.randomness import Keyed
from worlds import (
    codes_of,
    count_records,
    draw_by_words,
    exact_rows,
    loglinear_conditionals,
    plain_attribute,
    property_test,
    records_of,
)

pytestmark = pytest.mark.slow


@st.composite
def conditionals(draw):
    groups = draw(st.lists(st.integers(1, 4), max_size=3))
    return draw(loglinear_conditionals(values=draw(st.integers(1, 6)), groups=groups))


def small():
    """Six values in four bins, of which one has weight 0 and one an empty value; three parents."""
    rng = np.random.default_rng(3)
    effects = [rng.integers(-9_000, 9_000, (groups, 4)) for groups in (2, 3, 2)]
    return LogLinearConditional(
        base=np.array([0, -3_000, -300_000, 2_500], dtype=np.int32),
        effects=tuple(effect.astype(np.int32) for effect in effects),
        bins=np.array([0, 1, 1, 1, 2, 3]),
        within=np.array([2**32, 2**30, 0, 3 * 2**30, 2**32, 2**32]),
    )


CONFIGURATIONS = list(product(range(2), range(3), range(2)))


def groups_of(configurations, times=1):
    """Columns of the parents' groups; each configuration the same number of times."""
    rows = np.repeat(np.array(configurations, dtype=np.intp), times, axis=0)
    return [np.ascontiguousarray(column) for column in rows.T]


def all_groups(conditional):
    """Every configuration of the parents, with its groups; one record if there are no parents."""
    rows = exact_rows(conditional)
    groups = [np.array(column, dtype=np.intp) for column in zip(*rows, strict=True)]
    return rows, groups


def logarithm(p: Fraction) -> float:
    return math.log(p.numerator) - math.log(p.denominator) if p else -math.inf


# Weights


def test_a_power_of_one_half_is_its_definition_in_sixty_digits():
    """All 4,096 of them: rounded to the nearest integer, none of them a tie."""
    powers = module._weights_by_deficit()[:4096].tolist()
    expected = [
        definitions.loglinear_distribution([0, -f], [], [0, 1], [1, 1]) for f in range(0, 4096, 5)
    ]
    for f, (first, second) in zip(range(0, 4096, 5), expected, strict=True):
        assert second / first == Fraction(powers[f], 2**30)
    assert powers[0] == 2**30
    assert np.all(np.diff(powers) < 0)


@property_test
@given(conditionals())
def test_the_logarithms_are_those_of_the_exact_weights(conditional):
    """All values given all configurations; each logarithm to 1e-13."""
    rows, groups = all_groups(conditional)
    found = conditional.log_distribution(groups, len(rows))
    for distribution, row in zip(rows.values(), found, strict=True):
        assert sum(distribution) == 1
        np.testing.assert_allclose(row, [logarithm(p) for p in distribution], atol=1e-13)
    of_weights = conditional.distribution(groups, len(rows))
    for distribution, row in zip(rows.values(), of_weights, strict=True):
        # Two roundings of doubles.
        np.testing.assert_allclose(row, [float(p) for p in distribution], rtol=2.0**-51)
    for value in range(conditional.values):
        values = np.full(len(rows), value)
        own = conditional.log_probability(groups, values)
        np.testing.assert_allclose(own, found[:, value], atol=1e-13)


def test_probabilities_sum_to_one_given_every_configuration():
    found = small().log_distribution(groups_of(CONFIGURATIONS), len(CONFIGURATIONS))
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, atol=1e-14)


@pytest.mark.parametrize("records", [1, 4_095, 4_096, 4_097, 10_000])
def test_batches_do_not_matter_without_parents_too(records):
    alone = LogLinearConditional(
        base=np.array([0, -100], dtype=np.int32),
        effects=(),
        bins=np.array([0, 1]),
        within=np.array([2**32, 2**32]),
    )
    found = alone.log_distribution([], records)
    assert found.shape == (records, 2)
    assert (found == found[0]).all()
    values = np.arange(records) % 2
    np.testing.assert_array_equal(alone.log_probability([], values), found[0][values])
    words = Keyed(1).at("records").half_words(2 * records).reshape(records, 2)
    assert set(draw_by_words(alone, [], words).tolist()) <= {0, 1}
    drawn = alone.draw_systematic([], np.arange(records), Keyed(2).at("records"))
    share = 1 / (1 + 2 ** (-100 / 4096))
    assert np.count_nonzero(drawn == 0) == pytest.approx(records * share, abs=1)


# Draws


def draws_by_hand(conditional, rows, words):
    """The value of one draw, in integers: the bin at ⌊total · word / 2^32⌋, then the value."""
    bins, within = conditional.bins.tolist(), conditional.within.tolist()
    shares = [sum(p for p, b in zip(rows, bins, strict=True) if b == own) for own in set(bins)]
    # The weights themselves: the largest is 2^30.
    weights = [share / max(shares) * 2**30 for share in shares]
    place, bin_ = sum(weights) * int(words[0]) // 2**32, 0
    while place >= weights[bin_]:
        place, bin_ = place - weights[bin_], bin_ + 1
    rest = int(words[1])
    for value, own in enumerate(bins):
        if own == bin_:
            if rest < within[value]:
                return value
            rest -= within[value]
    raise AssertionError("weights within a bin must sum to 2^32")


EDGES = np.array([0, 1, 2**30 - 1, 2**30, 2**31, 2**32 - 2, 2**32 - 1], dtype=np.uint32)


@property_test
@given(conditionals(), st.integers(0, 2**32))
def test_a_draw_is_the_inverse_of_its_words_to_the_last_unit(conditional, key):
    rows, groups = all_groups(conditional)
    rng = np.random.default_rng(key)
    edges = np.array(list(product(EDGES, EDGES)), dtype=np.uint32)
    words = np.concatenate([edges, rng.integers(0, 2**32, (20, 2), dtype=np.uint32)])
    for at, exact in enumerate(rows.values()):
        own = [np.full(len(words), group[at]) for group in groups]
        expected = [draws_by_hand(conditional, exact, pair) for pair in words.tolist()]
        assert draw_by_words(conditional, own, words).tolist() == expected


@pytest.mark.parametrize("precise", [False, True])
def test_draws_have_the_exact_law(precise):
    """12 configurations, 20,000 draws each; false-alarm rate 1e-6 each, fixed key."""
    conditional, times = small(), 20_000
    groups, rng = groups_of(CONFIGURATIONS, times), Keyed(9).at("records")
    number = len(groups[0])
    if precise:
        drawn = conditional.draw_precise(groups, rng.random(number), rng.half_words(number))
    else:
        drawn = draw_by_words(conditional, groups, rng.half_words(2 * number).reshape(number, 2))
    for part, exact in zip(drawn.reshape(-1, times), exact_rows(conditional).values(), strict=True):
        assert_distribution(Counter(part.tolist()), dict(enumerate(exact)))
        # A bin too unlikely, and an empty value of a bin that is drawn.
        assert exact[4] == exact[2] == 0
        assert not set(part.tolist()) & {2, 4}


def test_precise_draws_are_those_of_words_at_the_same_place():
    """A uniform number of 32 bits falls into the same bin as the word itself."""
    conditional = small()
    groups, rng = groups_of(CONFIGURATIONS, 500), Keyed(4).at("records")
    words = rng.half_words(2 * len(groups[0])).reshape(-1, 2)
    precise = conditional.draw_precise(groups, words[:, 0] * 2.0**-32, words[:, 1])
    assert precise.tolist() == draw_by_words(conditional, groups, words).tolist()


def test_the_largest_uniform_number_is_within_the_last_bin():
    conditional, last = small(), np.array([1 - 2.0**-53] * len(CONFIGURATIONS))
    groups = groups_of(CONFIGURATIONS)
    words = np.full(len(last), 2**32 - 1, dtype=np.uint32)
    assert set(conditional.draw_precise(groups, last, words).tolist()) == {5}


@pytest.mark.parametrize("joined", [1, 4, 6, 1024])
@pytest.mark.parametrize("batch", [1, 7, 4096, 10**6])
def test_draws_do_not_depend_on_batches_or_on_parents_looked_up_together(
    monkeypatch, joined, batch
):
    groups = groups_of(CONFIGURATIONS, 10)
    words = Keyed(2).at("records").half_words(2 * len(groups[0])).reshape(-1, 2)
    values = np.arange(len(words)) % 6
    expected = draw_by_words(small(), groups, words), small().log_probability(groups, values)
    monkeypatch.setattr(effect_tables, "_MAX_CONFIGURATIONS", joined)
    monkeypatch.setattr(module, "_RECORDS_PER_BATCH", batch)
    other = small()
    other.prepare()
    assert len(other.tables) == {1: 3, 4: 2, 6: 2, 1024: 1}[joined]
    assert draw_by_words(other, groups, words).tobytes() == expected[0].tobytes()
    assert other.log_probability(groups, values).tobytes() == expected[1].tobytes()
    parts = [draw_by_words(other, [g[at : at + 11] for g in groups], words[at : at + 11])
             for at in range(0, len(words), 11)]  # fmt: skip
    assert np.concatenate(parts).tobytes() == expected[0].tobytes()


def test_draws_of_a_known_key_do_not_change():
    """Integers only: the same on every computer, and in every version of the format."""
    groups = groups_of(CONFIGURATIONS, 2)
    words = Keyed(1).at("records").half_words(48).reshape(24, 2)
    assert draw_by_words(small(), groups, words).tolist() == [
        *(0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0),
        *(5, 5, 5, 5, 1, 0, 1, 0, 0, 3, 1, 3),
    ]


@pytest.mark.parametrize("bins", [2, 256, 257, 300])
def test_a_bin_is_found_however_many_there_are(bins):
    """Each bin has the same weight, so that the threshold is known."""
    conditional = LogLinearConditional(
        base=np.zeros(bins, dtype=np.int32),
        effects=(),
        bins=np.arange(bins),
        within=np.full(bins, 2**32),
    )
    middles = ((np.arange(bins) + 0.5) * 2**32 / bins).astype(np.uint32)
    words = np.stack([middles, np.zeros_like(middles)], axis=1)
    drawn = [
        draw_by_words(conditional, [np.zeros(1, dtype=np.intp)], word[None, :]) for word in words
    ]
    assert np.concatenate(drawn).tolist() == list(range(bins))


# Rounding a model to integers


def test_a_rounded_model_is_near_the_model():
    """Units of 2^-12 to base 2: each logarithm within 2^-13 · ln 2, four of them."""
    rng = np.random.default_rng(7)
    base, effects = rng.normal(size=4), [rng.normal(size=(groups, 4)) for groups in (2, 3, 2)]
    bins = np.array([0, 0, 1, 2, 2, 2, 3])
    shares = np.array([0.3, 0.7, 1.0, 0.5, 0.25, 0.25, 1.0])
    rounded = LogLinearConditional.of(base, effects, bins, shares)
    for configuration in CONFIGURATIONS:
        logits = base + sum(e[g] for e, g in zip(effects, configuration, strict=True))
        expected = np.exp(logits) / np.exp(logits).sum()
        groups = groups_of([configuration])
        found = rounded.log_distribution(groups, 1)[0]
        wanted = np.log(expected[bins] * shares)
        np.testing.assert_allclose(found, wanted, atol=8 * 2**-13 * math.log(2))
    assert (np.add.reduceat(rounded.within, [0, 2, 3, 6]) == 2**32).all()


def test_extreme_logarithms_are_clipped_and_rounding_stays_in_the_bin():
    base, thirds = np.array([0.0, -1e9]), np.full(6, 1 / 3)
    bins = np.array([0, 0, 0, 1, 1, 1])
    rounded = LogLinearConditional.of(base, [np.array([[1e9, -1e9]])], bins, thirds)
    assert rounded.base.tolist() == [0, -(2**20)]
    assert rounded.effects[0].tolist() == [[2**20, -(2**20)]]
    assert rounded.within[:3].sum() == rounded.within[3:].sum() == 2**32
    assert np.ptp(rounded.within) <= 2


def test_cells_are_the_stored_logarithms():
    assert small().cells == 4 + (2 + 3 + 2) * 4


VALID = {
    "base": np.zeros(2, dtype=np.int32),
    "effects": (np.zeros((3, 2), dtype=np.int32),),
    "bins": np.array([0, 0, 1]),
    "within": np.array([2**31, 2**31, 2**32]),
}


@pytest.mark.parametrize(
    "change",
    [
        {"base": np.zeros((2, 1), dtype=np.int32)},
        {"base": np.zeros(0, dtype=np.int32)},
        {"effects": (np.zeros((3, 3), dtype=np.int32),)},
        {"effects": (np.zeros(2, dtype=np.int32),)},
        {"effects": (np.zeros((0, 2), dtype=np.int32),)},
        {"bins": np.array([0, 1])},
        {"bins": np.array([0, 0, 0])},
        {"bins": np.array([1, 0, 1])},
        {"bins": np.array([0, 0, 2])},
        {"bins": np.array([0, 1, 0])},
        {"within": np.array([2**31, 2**31, 2**32 - 1])},
        {"within": np.array([2**31, 2**31 + 1, 2**32])},
        {"within": np.array([-1, 2**32 + 1, 2**32])},
        {"base": np.array([2**20 + 1, 0], dtype=np.int32)},
        {"effects": (np.full((3, 2), -(2**20) - 1, dtype=np.int32),)},
    ],
)
def test_invalid_parts_are_refused(change):
    LogLinearConditional(**VALID)
    with pytest.raises(InvariantError, match="log-linear distribution"):
        LogLinearConditional(**{**VALID, **change})


# In a network


def mixed_network():
    """A table, then a log-linear conditional with two parents, then a table that depends on it."""
    attributes = (plain_attribute("a", 2), plain_attribute("b", 3), plain_attribute("c", 6))
    fourth = plain_attribute("d", 2)
    rng = np.random.default_rng(8)
    rows = [rng.dirichlet([1.0] * size, n) for size, n in ((2, 1), (3, 2), (2, 6))]
    whole = small()
    of_two = LogLinearConditional(whole.base, whole.effects[:2], whole.bins, whole.within)
    first, second, last = (ConditionalTable(table) for table in rows)
    graph = Graph(((), (0,), (0, 1), (2,)))
    tables = (first, second, of_two, last)
    return Network((*attributes, fourth), graph, (0, 1, 2, 3), tables)


UNIVERSE = codes_of(list(product(range(2), range(3), range(6), range(2))), 4)


@pytest.mark.parametrize("method", ["independent", "precise", "systematic"])
def test_records_of_a_mixed_network_have_the_law_of_all_its_factors(method):
    """All 72 records at once; false-alarm rate 1e-6, fixed key. Systematic ones are nearer."""
    network = mixed_network()
    probabilities = np.exp(network.log_probability(UNIVERSE))
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    codes = codes_of([(0, 0, 0, 0)] * 100_000, 4)
    network.draw(codes, Keyed(5).at("records"), kept=0, method=method)
    expected = dict(zip(records_of(UNIVERSE), probabilities.tolist(), strict=True))
    assert_distribution(count_records(codes), expected)


def test_a_network_refuses_a_log_linear_conditional_of_another_shape():
    network = mixed_network()
    wrong = (*network.tables[:2], small(), network.tables[3])
    with pytest.raises(InvariantError, match="does not have the shape"):
        Network(network.attributes, network.graph, network.order, wrong)
    with pytest.raises(InvariantError, match="has no table"):
        network._table(2)
