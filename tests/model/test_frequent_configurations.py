"""Look-up tables of frequent configurations change no draw, and are made only where they pay."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.model import frequent_configurations as module
from deniable.model.bayesian_network import ConditionalTable, Network, empty_codes
from deniable.model.frequent_configurations import FrequentConfigurations, InverseTables
from deniable.model.graph import Graph
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
    return np.minimum(rng.geometric(0.3, records) - 1, configurations - 1)


def words_at_bounds(records, key, weights=None):
    """Random words, of which most are within a few units of the bound of an interval or bin."""
    rng, words = np.random.default_rng(key), Keyed(key).at("records").half_words(records).copy()
    some = records // 3
    moved = rng.integers(-2, 3, records)
    words[:some] = (words[:some] >> 25 << 25) + moved[:some]
    if weights is not None:
        cumulative = np.cumsum(weights, axis=0)
        own = np.arange(records)
        chosen = cumulative[rng.integers(0, len(weights), records), own]
        bounds = [int(c) * 2**32 // int(t) for c, t in zip(chosen, cumulative[-1], strict=True)]
        near = np.clip(np.array(bounds) + moved, 0, 2**32 - 1).astype(np.uint32)
        words[some : 2 * some] = near[some : 2 * some]
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
    # The last words of all are left to others.
    assert len(known) > 0.95 * len(own)
    # The comparison can fail: a bound that is off by one changes draws.
    later = np.minimum(tables.bounds, 2**32 - 2) + np.uint32(1)
    wrong = replace(tables, bounds=later)
    assert wrong.find(own, words)[0][known].tolist() != expected[known].tolist()


@property_test
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 9, 127, 128, 129, 300]), st.booleans())
def test_bounds_are_exact_however_many_bins_and_however_small(key, bins, zeros):
    """To the last word, also at the bounds of intervals and of bins, many of them with weight 0."""
    weights_of = random_weights(key, bins=bins, zeros=zeros)
    tables = InverseTables.of(weights_of, np.repeat(np.arange(12), 2))
    own = np.random.default_rng(key).integers(0, 12, 300)
    words = words_at_bounds(300, key, weights_of(own))
    bins_found, unknown = tables.find(own, words)
    known = np.setdiff1d(np.arange(300), unknown)
    expected = invert_weights(weights_of(own), words)
    assert bins_found[known].tolist() == expected[known].tolist()
    # All configurations have a table. Only the last word is left to others.
    assert set(words[unknown].tolist()) <= {2**32 - 1}


@pytest.mark.parametrize("log2_slots", [1, 3])
def test_configurations_that_share_a_slot_are_told_apart(monkeypatch, log2_slots):
    monkeypatch.setattr(module, "_LOG2_SLOTS", log2_slots)
    weights_of = random_weights(2)
    tables = InverseTables.of(weights_of, random_configurations(3, 5_000))
    assert len(tables.configurations) <= 2**log2_slots
    own = random_configurations(4, 5_000)
    words = words_at_bounds(5_000, 5)
    bins, unknown = tables.find(own, words)
    assert {*own[unknown].tolist()} >= {*range(12)} - {*tables.configurations.tolist()}
    known = np.setdiff1d(np.arange(5_000), unknown)
    expected = invert_weights(weights_of(own), words)
    assert bins[known].tolist() == expected[known].tolist()


def test_batches_do_not_matter(monkeypatch):
    weights_of, sample = random_weights(9), random_configurations(9, 5_000)
    whole = InverseTables.of(weights_of, sample)
    monkeypatch.setattr(module, "_CONFIGURATIONS_PER_BATCH", 5)
    parts = InverseTables.of(weights_of, sample)
    assert parts.bounds.tolist() == whole.bounds.tolist()
    assert parts.guide.tolist() == whole.guide.tolist()


def test_the_most_frequent_configurations_have_tables(monkeypatch):
    monkeypatch.setattr(module, "_MAX_CONFIGURATIONS", 2)
    tables = InverseTables.of(random_weights(2), random_configurations(3, 5_000))
    assert set(tables.configurations.tolist()) == {0, 1}


def test_a_configuration_that_occurs_once_has_no_table():
    tables = InverseTables.of(random_weights(2), np.array([3, 3, 3, 5, 7, 7]))
    assert set(tables.configurations.tolist()) == {3, 7}


def test_tables_that_few_records_would_use_are_not_made(monkeypatch):
    monkeypatch.setattr(module, "_MAX_CONFIGURATIONS", 1)
    monkeypatch.setattr(module, "_MIN_COVERAGE", 0.4)
    assert InverseTables.of(random_weights(2), random_configurations(3, 5_000)) is None


def test_tables_are_made_from_the_first_large_draw(monkeypatch):
    monkeypatch.setattr(module, "_SAMPLE_RECORDS", 600)
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
    monkeypatch.setattr(module, "_SAMPLE_RECORDS", 1_000)
    with_tables, made = draw()
    assert made == [True, True]
    assert np.array_equal(with_tables, plain)
