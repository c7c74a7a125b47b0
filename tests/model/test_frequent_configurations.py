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
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.randomness import Keyed
from worlds import loglinear_conditionals, plain_attribute, property_test


def random_conditional(key, *, groups=(3, 4), bins=9, values=12):
    """Effects of moderate size; the last bins have several values."""
    rng = np.random.default_rng(key)
    shares = rng.dirichlet([1.0] * values)
    own = np.minimum(np.arange(values), bins - 1)
    effects = [rng.normal(0, 1.5, (size, bins)) for size in groups]
    return LogLinearConditional.of(rng.normal(0, 1, bins), effects, own, shares)


def random_groups(key, records, sizes=(3, 4)):
    rng = np.random.default_rng(key)
    # Uneven, so that some configurations are frequent.
    return [np.minimum(rng.geometric(0.5, records) - 1, size - 1) for size in sizes]


def words_at_bounds(records, key):
    """Random words, of which most are within a few units of the bound of an interval."""
    rng = Keyed(key).at("records")
    words = rng.half_words(2 * records).reshape(records, 2)
    bounds = (words[:, 0] >> 24 << 24) + (words[:, 1] % 5) - 2
    words[: records * 3 // 4, 0] = bounds[: records * 3 // 4]
    return words


@st.composite
def conditionals(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return draw(loglinear_conditionals(values=draw(st.integers(1, 6)), groups=sizes))


@property_test
@given(conditionals(), st.integers(0, 2**32))
def test_tables_draw_what_the_distribution_draws(conditional, key):
    """To the last record, also at the bounds of intervals, where a bin is about to end."""
    sizes = [len(effect) for effect in conditional.effects]
    sample = random_groups(key, 200, sizes)
    tables = InverseTables.of(conditional, sample)
    groups, words = random_groups(key + 1, 500, sizes), words_at_bounds(500, key)
    assert tables.draw(groups, words).tolist() == conditional.draw(groups, words).tolist()


def test_most_intervals_are_decided_and_a_wrong_entry_changes_draws():
    """The comparison above can fail: with an entry for each mixed interval, it does."""
    conditional, sample = random_conditional(1), random_groups(1, 5_000)
    tables = InverseTables.of(conditional, sample)
    assert tables is not None
    of_configurations = tables.bins.reshape(-1, 256)
    assert len(of_configurations) == 12
    mixed = of_configurations == 255
    assert 0 < mixed.mean() < 9 / 256
    groups, words = random_groups(2, 20_000), words_at_bounds(20_000, 3)
    expected = conditional.draw(groups, words)
    assert np.array_equal(tables.draw(groups, words), expected)
    before = np.where(mixed, np.roll(of_configurations, 1, axis=1), of_configurations)
    wrong = replace(tables, bins=before.ravel())
    assert not np.array_equal(wrong.draw(groups, words), expected)


def test_batches_do_not_matter(monkeypatch):
    conditional = random_conditional(9)
    tables = InverseTables.of(conditional, random_groups(9, 5_000))
    groups, words = random_groups(10, 1_000), words_at_bounds(1_000, 10)
    monkeypatch.setattr(module, "_RECORDS_PER_BATCH", 300)
    assert np.array_equal(tables.draw(groups, words), conditional.draw(groups, words))


@pytest.mark.parametrize("log2_slots", [1, 3])
def test_configurations_that_share_a_slot_are_told_apart(monkeypatch, log2_slots):
    monkeypatch.setattr(module, "_LOG2_SLOTS", log2_slots)
    conditional = random_conditional(2)
    tables = InverseTables.of(conditional, random_groups(3, 5_000))
    assert len(tables.bins) <= 2**log2_slots * 256
    groups, words = random_groups(4, 5_000), words_at_bounds(5_000, 5)
    assert np.array_equal(tables.draw(groups, words), conditional.draw(groups, words))


def test_the_most_frequent_configurations_have_tables(monkeypatch):
    monkeypatch.setattr(module, "_MAX_CONFIGURATIONS", 2)
    tables = InverseTables.of(random_conditional(2), random_groups(3, 5_000))
    # Groups 0 and 0, then one of those that have half of its share.
    kept = set(tables.numbers[tables.numbers >= 0].tolist())
    assert 0 in kept
    assert kept <= {0, 1, 4, 8}


def test_tables_that_few_records_would_use_are_not_made(monkeypatch):
    monkeypatch.setattr(module, "_MAX_CONFIGURATIONS", 1)
    monkeypatch.setattr(module, "_MIN_COVERAGE", 0.3)
    assert InverseTables.of(random_conditional(2), random_groups(3, 5_000)) is None


def test_tables_are_made_after_many_records_from_a_large_draw(monkeypatch):
    monkeypatch.setattr(module, "_MIN_RECORDS", 1_000)
    monkeypatch.setattr(module, "_MIN_SAMPLE", 600)
    draws = FrequentConfigurations(random_conditional(4))
    for number, (records, is_made) in enumerate([(700, 0), (500, 0), (700, 1), (10, 1)]):
        tables = draws.tables(random_groups(number, records), records)
        assert (tables is not None) == is_made


@pytest.mark.parametrize(
    ("conditional", "groups"),
    [
        (random_conditional(5, bins=256, values=300), (3, 4)),
        (random_conditional(5, groups=()), ()),
        (random_conditional(5, groups=(2**16,) * 4, bins=2, values=2), (2**16,) * 4),
    ],
    ids=["too many bins", "no parents", "numbers of 64 bits"],
)
def test_where_tables_cannot_be_made_there_are_none(monkeypatch, conditional, groups):
    monkeypatch.setattr(module, "_MIN_RECORDS", 0)
    monkeypatch.setattr(module, "_MIN_SAMPLE", 1)
    draws = FrequentConfigurations(conditional)
    assert draws.tables(random_groups(6, 100, groups), 100) is None


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
        return codes, [each._tables is not None for each in network._frequent.values()]

    plain, made = draw()
    assert made == [False, False]
    monkeypatch.setattr(module, "_MIN_RECORDS", 6_000)
    monkeypatch.setattr(module, "_MIN_SAMPLE", 1_000)
    with_tables, made = draw()
    assert made == [True, True]
    assert np.array_equal(with_tables, plain)
