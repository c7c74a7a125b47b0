"""Look-up tables of frequent configurations change no draw, and are made only where they pay."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model import frequent_configurations as module
from deniable.model import guided_search as guided
from deniable.model.bayesian_network import ConditionalTable, Network, empty_codes
from deniable.model.frequent_configurations import (
    FrequentConfigurations,
    InverseTables,
    bound_codes,
)
from deniable.model.graph import Graph
from deniable.model.guided_search import GuidedSearch
from deniable.model.loglinear_conditional import LogLinearConditional, invert_weights
from deniable.randomness import Keyed
from worlds import plain_attribute, property_test


def random_conditional(key, *, groups=(3, 4), bins=9, values=12):
    """Effects of moderate size; the last bins have several values."""
    rng = np.random.default_rng(key)
    shares = rng.dirichlet([1.0] * values)
    own = np.minimum(np.arange(values), bins - 1)
    effects = [rng.normal(0, 1.5, (size, bins)) for size in groups]
    return LogLinearConditional.of(rng.normal(0, 1, bins), effects, own, shares)


def random_weights(key, *, bins=9, configurations=12, zeros=False):
    """Weights by configuration, the largest of each 2^30; with zeros, many are 0 or small."""
    rng = np.random.default_rng(key)
    scale = 40 if zeros else 3
    logarithms = -rng.exponential(scale, (bins, configurations))
    logarithms -= logarithms.max(axis=0)
    weights = (np.exp2(logarithms) * 2**30).astype(np.int64)
    return lambda own: weights[:, own]


def random_configurations(key, records, configurations=12):
    """Uneven, so that some configurations are frequent."""
    rng = np.random.default_rng(key)
    return np.minimum(rng.geometric(0.3, records) - 1, configurations - 1).astype(np.uint32)


def words_at_bounds(records, key, weights=None):
    """Random words, of which most are within a few units of the bound of an interval or bin."""
    rng, words = np.random.default_rng(key), Keyed(key).at("records").half_words(records).copy()
    some = records // 4
    moved = rng.integers(-2, 3, records)
    words[:some] = (words[:some] >> 25 << 25) + moved[:some]
    words[some : 2 * some] = (words[some : 2 * some] >> 17 << 17) + moved[some : 2 * some]
    if weights is not None:
        cumulative = np.cumsum(weights, axis=0)
        own = np.arange(records)
        chosen = cumulative[rng.integers(0, len(weights), records), own]
        bounds = [int(c) * 2**32 // int(t) for c, t in zip(chosen, cumulative[-1], strict=True)]
        # Half of them one code away: that is as close as a word's bin can be known.
        moved[::2] += 2**17 * rng.choice([-1, 1], len(moved[::2]))
        near = np.clip(np.array(bounds) + moved, 0, 2**32 - 1).astype(np.uint32)
        words[2 * some : 3 * some] = near[2 * some : 3 * some]
    words[-5:] = [0, 1, 2**32 - 3, 2**32 - 2, 2**32 - 1]
    return words


def test_no_draw_changes_of_a_known_configuration():
    weights_of, sample = random_weights(1), random_configurations(1, 5_000)
    tables = InverseTables.of(weights_of, sample)
    assert tables is not None
    own = random_configurations(2, 20_000)
    words = words_at_bounds(20_000, 3, weights_of(own))
    bins, unknown = tables.find(own, words)
    known = np.setdiff1d(np.arange(20_000), unknown)
    expected = invert_weights(weights_of(own), words)
    assert bins[known].tolist() == expected[known].tolist()
    # Only words with the code of a bound are left to others: an eighth was made to have one.
    assert 0.8 < len(known) / len(own) < 0.9
    # The comparison can fail: a code that is off by one changes draws.
    for wrong in (
        replace(tables, guide=tables.guide + (tables.guide & 511 < 255)),
        replace(tables, bounds=tables.bounds + np.uint16(1)),
    ):
        found, unknown = wrong.find(own, words)
        known = np.setdiff1d(np.arange(20_000), unknown)
        assert found[known].tolist() != expected[known].tolist()


@property_test
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 9, 126, 127, 128, 129, 300]), st.booleans())
def test_bins_are_exact_however_many_and_however_small(key, bins, zeros):
    """To the last word, also at the bounds of intervals and of bins, many of them with weight 0."""
    weights_of = random_weights(key, bins=bins, zeros=zeros)
    tables = InverseTables.of(weights_of, np.repeat(np.arange(12, dtype=np.uint32), 2))
    own = np.random.default_rng(key).integers(0, 12, 300).astype(np.uint32)
    words = words_at_bounds(300, key, weights_of(own))
    bins_found, unknown = tables.find(own, words)
    known = np.setdiff1d(np.arange(300), unknown)
    expected = invert_weights(weights_of(own), words)
    assert bins_found[known].tolist() == expected[known].tolist()
    # All configurations have a table. Only words with the code of a bound are left to others.
    cumulative = np.cumsum(weights_of(own), axis=0)
    codes = bound_codes(cumulative)[:, unknown]
    assert (codes == words[unknown] >> 17).any(axis=0).all()


@property_test
@given(st.lists(st.integers(0, 2**45 // 4), min_size=1, max_size=4), st.integers(1, 2**45 // 8))
def test_a_bound_is_within_the_words_of_its_code(before, last):
    cumulative = np.cumsum([*before, last], dtype=np.int64)
    codes = bound_codes(cumulative[:, None])[:, 0].tolist()
    total = int(cumulative[-1])
    for code, own in zip(codes, cumulative[:-1].tolist(), strict=True):
        # The smallest word with ⌊total · word / 2^32⌋ ≥ own.
        bound = -(-own * 2**32 // total)
        assert code << 17 <= bound <= (code + 1) << 17


@property_test
@given(st.integers(1, 2**17 - 1), st.integers(-1, 1), st.integers(1, 2**12))
def test_a_bound_at_the_end_of_a_code_too(code, moved, factor):
    """Totals and cumulative weights whose quotient is nearly, or exactly, a multiple of 2^-15."""
    total = 2**15 * factor + moved
    own = min(code % 2**15 * factor + moved, total)
    cumulative = np.array([[max(own, 0)], [total]])
    [[found]] = bound_codes(cumulative).tolist()
    bound = -(-max(own, 0) * 2**32 // total)
    assert found << 17 <= bound <= (found + 1) << 17


def test_configurations_of_64_bits_are_told_apart_by_their_high_bits():
    low = random_configurations(1, 5_000)
    high = low.astype(np.uint64) << np.uint64(40)
    weights_of = random_weights(1)
    tables = InverseTables.of(lambda own: weights_of(own >> np.uint64(40)), high)
    words = words_at_bounds(5_000, 2)
    assert tables.positions.slots.dtype == np.uint64
    bins, unknown = tables.find(high, words)
    known = np.setdiff1d(np.arange(5_000), unknown)
    expected = invert_weights(weights_of(low), words)
    assert len(known) > 4_900
    assert bins[known].tolist() == expected[known].tolist()
    assert len(tables.find(high + np.uint64(2**39), words)[1]) == 5_000


@pytest.mark.parametrize("log2_slots", [2, 3])
def test_configurations_that_share_a_slot_are_told_apart(monkeypatch, log2_slots):
    monkeypatch.setattr(module, "_LOG2_SLOTS", log2_slots)
    monkeypatch.setattr(module, "_LOG2_CONFIGURATIONS", 2)
    weights_of = random_weights(2)
    tables = InverseTables.of(weights_of, random_configurations(3, 5_000))
    known_ones = configurations_of(tables)
    assert 0 < len(known_ones) <= 2**log2_slots
    own = random_configurations(4, 5_000)
    words = words_at_bounds(5_000, 5)
    bins, unknown = tables.find(own, words)
    assert {*own[unknown].tolist()} >= {*range(12)} - known_ones
    known = np.setdiff1d(np.arange(5_000), unknown)
    expected = invert_weights(weights_of(own), words)
    assert bins[known].tolist() == expected[known].tolist()


def configurations_of(tables, configurations=12):
    """The configurations that have a table."""
    positions = tables.positions.positions(np.arange(configurations, dtype=np.uint32))
    known = np.flatnonzero(positions < len(tables.bounds))
    assert sorted(positions[known].tolist()) == list(range(len(tables.bounds)))
    return set(known.tolist())


def test_batches_do_not_matter(monkeypatch):
    weights_of, sample = random_weights(9), random_configurations(9, 5_000)
    whole = InverseTables.of(weights_of, sample)
    monkeypatch.setattr(module, "_CONFIGURATIONS_PER_BATCH", 5)
    parts = InverseTables.of(weights_of, sample)
    assert parts.bounds.tolist() == whole.bounds.tolist()
    assert parts.guide.tolist() == whole.guide.tolist()


def test_the_most_frequent_configurations_have_tables(monkeypatch):
    monkeypatch.setattr(module, "_LOG2_CONFIGURATIONS", 1)
    tables = InverseTables.of(random_weights(2), random_configurations(3, 5_000))
    assert configurations_of(tables) == {0, 1}


def test_a_configuration_that_occurs_once_has_no_table():
    tables = InverseTables.of(random_weights(2), np.array([3, 3, 3, 5, 7, 7], dtype=np.uint32))
    assert configurations_of(tables) == {3, 7}


def test_tables_that_few_records_would_use_are_not_made(monkeypatch):
    monkeypatch.setattr(module, "_LOG2_CONFIGURATIONS", 0)
    monkeypatch.setattr(module, "_MIN_COVERAGE", 0.4)
    assert InverseTables.of(random_weights(2), random_configurations(3, 5_000)) is None


def test_tables_are_made_from_the_first_large_draw(monkeypatch):
    monkeypatch.setattr(module, "_MIN_SAMPLE_RECORDS", 600)
    draws = FrequentConfigurations(random_weights(4))
    for number, (records, is_made) in enumerate([(500, 0), (599, 0), (700, 1), (10, 1)]):
        tables = draws.tables(random_configurations(number, records))
        assert (tables is not None) == is_made


def test_records_of_a_network_are_the_same_with_tables(monkeypatch):
    """Two log-linear distributions, the second given the first."""
    attributes = tuple(
        plain_attribute(name, size) for name, size in zip("abcd", (3, 4, 12, 12), strict=True)
    )
    rows = np.random.default_rng(7).dirichlet([1.0] * 4, 3)
    tables = (
        ConditionalTable(np.full((1, 3), 1 / 3)),
        ConditionalTable(rows),
        random_conditional(7),
        random_conditional(8, groups=(3, 4, 12)),
    )
    graph = Graph(((), (0,), (0, 1), (0, 1, 2)))

    def draw():
        network = Network(attributes, graph, (0, 1, 2, 3), tables)
        codes = empty_codes(5_000, attributes)
        for block in range(3):
            network.draw(codes, Keyed(7).at("records", block), kept=0, method="independent")
        return codes, [each.frequent._tables is not None for each in network._samplers.values()]

    plain, made = draw()
    assert made == [False, False]
    monkeypatch.setattr(module, "_MIN_SAMPLE_RECORDS", 1_000)
    with_tables, made = draw()
    assert made == [True, True]
    assert np.array_equal(with_tables, plain)


@property_test
@given(
    st.lists(st.integers(0, 2**40), min_size=1, max_size=40),
    st.sampled_from([1, 2, 3, 64, 4096]),
    st.integers(0, 2**32),
)
def test_the_guide_changes_no_result(weights, intervals, key):
    """Also at every end, and one below it."""
    ends = np.cumsum([*weights, 1])
    numbers = np.random.default_rng(key).integers(0, ends[-1], 200)
    numbers = np.clip(np.concatenate([numbers, ends - 1, ends]), 0, ends[-1] - 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guided, "_MAX_INTERVALS", intervals)
        search = GuidedSearch.of(ends)
    assert len(search.guide) <= intervals
    expected = np.searchsorted(ends, numbers, side="right")
    assert search.find(numbers).tolist() == expected.tolist()


def test_most_numbers_need_no_search():
    search = GuidedSearch.of(np.cumsum(np.full(99, 2**32)))
    assert (search.guide >= 0).mean() > 0.95


@pytest.mark.parametrize("total", [1, 2, 4095, 4096, 4097, 2**46])
def test_the_guide_covers_all_numbers(total):
    search = GuidedSearch.of(np.array([total]))
    assert len(search.guide) == (total - 1 >> search.shift) + 1 <= 4096
    assert search.find(np.array([0, total - 1])).tolist() == [0, 0]
    assert search.find(np.empty(0, dtype=np.int64)).tolist() == []
