"""Seed histogram: compared with noise on every cell of the domain. Choice of ω: its definition."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import assert_rate
from deniable.arrays import CODE
from deniable.counting.local import distinct_prefixes
from deniable.counting.prefix_counts import PrefixCounts
from deniable.errors import ConfigError, InvariantError
from deniable.model.bayesian_network import ConditionalTable, Network, empty_codes
from deniable.model.graph import Graph
from deniable.privacy.ledger import Spend
from deniable.privacy.noise_laws import exact, truncated_geometric
from deniable.randomness import Keyed
from deniable.release.seed_histogram import (
    KeptPrefixes,
    choose_omega,
    learn_histogram,
    longest_listed,
    require_listed,
)
from worlds import (
    codes_of,
    plain_attribute,
    property_test,
    records_of,
    schemas,
    small_world,
    tables,
)

pytestmark = pytest.mark.slow

KEY = 5
LAW = truncated_geometric(0.7, 3)


class Listed:
    """A stream of given words, so that a test knows which cell gets which word."""

    def __init__(self, words):
        self._words = list(words)

    def words(self, size):
        taken, self._words = self._words[:size], self._words[size:]
        return np.array(taken, dtype=np.uint64)


def prefix_counts(seeds, order, length, sizes):
    """All prefixes, from the seeds themselves: not by way of their sorted combinations."""
    counts = PrefixCounts.of(seeds, order, [length], sizes)
    return distinct_prefixes(seeds, counts, 0, length)


def learn(rng, table, sizes, order, length, *, k, law=LAW, records=100):
    seeds = codes_of(table, len(sizes))
    counts = prefix_counts(seeds, order, length, sizes)
    return learn_histogram(rng, counts, k=k, law=law, records=records)


def kept_by_definition(words, table, sizes, order, length, *, k):
    """Mechanism B as Theorem 7.1 reads it: noise on **every** cell, keep where c + Z ≥ k + r.

    ``words`` gives the word of a cell; the cell's own, whoever else has how many.
    """
    kept = {}
    for cell in product(*[range(sizes[i]) for i in order[:length]]):
        c = sum(tuple(record[i] for i in order[:length]) == cell for record in table)
        noisy = c + int(LAW.table.draw(Listed([words[cell]]), 1)[0])
        if noisy >= k + LAW.radius:
            kept[cell] = noisy
    return kept


@st.composite
def situations(draw):
    schema = draw(schemas(least=2, most=3))
    table = draw(tables(schema, most=30))
    order = draw(st.permutations(range(len(schema))))
    length = draw(st.integers(1, len(schema)))
    key = draw(st.integers(0, 2**32))
    k = draw(st.integers(1, 6))
    return [a.size for a in schema], table, tuple(order), length, key, k


@property_test
@given(situations())
def test_the_kept_prefixes_are_those_of_dense_noise(situation):
    """Same word, same cell: also the cells of 0 … k - 1 seeds get noise, and never get through."""
    sizes, table, order, length, key, k = situation
    cells = list(product(*[range(sizes[i]) for i in order[:length]]))
    words = dict(zip(cells, Keyed(key).at("noise").words(len(cells)).tolist(), strict=True))
    shared = Counter(tuple(record[i] for i in order[:length]) for record in table)
    frequent = [cell for cell in cells if shared[cell] >= k]

    rng = Listed(words[cell] for cell in frequent)
    level, _ = learn(rng, table, sizes, order, length, k=k)

    found = dict(zip(map(tuple, level.prefixes.tolist()), level.counts.tolist(), strict=True))
    assert found == kept_by_definition(words, table, sizes, order, length, k=k)


@property_test
@given(situations())
def test_every_kept_prefix_has_k_seeds_and_its_count_is_within_r(situation):
    """Theorem 7.3: with certainty."""
    sizes, table, order, length, key, k = situation
    level, _ = learn(Keyed(key).at("noise"), table, sizes, order, length, k=k)
    shared = Counter(tuple(record[i] for i in order[:length]) for record in table)
    for prefix, noisy in zip(level.prefixes.tolist(), level.counts.tolist(), strict=True):
        assert shared[tuple(prefix)] >= k
        assert abs(noisy - shared[tuple(prefix)]) <= LAW.radius
        assert noisy >= k + LAW.radius


@property_test
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(situation, random):
    """the review 9, 10b: same words, rows in another order, the same histogram, rows ascending."""
    sizes, table, order, length, key, k = situation
    turned = list(table)
    random.shuffle(turned)
    a, _ = learn(Keyed(key).at("noise"), table, sizes, order, length, k=k)
    b, _ = learn(Keyed(key).at("noise"), turned, sizes, order, length, k=k)
    assert a.prefixes.tolist() == b.prefixes.tolist()
    assert a.counts.tolist() == b.counts.tolist()
    assert a.prefixes.tolist() == sorted(a.prefixes.tolist())


@pytest.mark.parametrize("count", range(12))
def test_a_prefix_is_kept_with_the_probability_of_the_table_of_noise(count):
    """Pr{c + Z ≥ k + r} if c ≥ k, else never: 20,000 cells of equal count, 1e-6."""
    k, cells = 4, 20_000
    values = np.repeat(np.arange(cells), count)
    seeds = np.asfortranarray(np.stack([values // 256, values % 256], axis=1).astype(CODE))
    counts = prefix_counts(seeds, (0, 1), 2, (256, 256))
    rng = Keyed(KEY).at("noise", count)
    histogram, _ = learn_histogram(rng, counts, k=k, law=LAW, records=1)
    chance = sum(
        LAW.probability(z)
        for z in range(-LAW.radius, LAW.radius + 1)
        if count + z >= k + LAW.radius
    )
    assert (chance == 0) == (count < k)
    assert_rate(len(histogram.counts), cells, float(chance))


def test_that_assertion_notices_a_threshold_one_too_low():
    k, cells, count = 4, 20_000, 6
    values = np.repeat(np.arange(cells), count)
    seeds = np.asfortranarray(np.stack([values // 256, values % 256], axis=1).astype(CODE))
    counts = prefix_counts(seeds, (0, 1), 2, (256, 256))
    histogram, _ = learn_histogram(Keyed(KEY).at("noise"), counts, k=k, law=LAW, records=1)
    lower = sum(
        LAW.probability(z)
        for z in range(-LAW.radius, LAW.radius + 1)
        if count + z >= k - 1 + LAW.radius
    )
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_rate(len(histogram.counts), cells, float(lower))


def test_without_noise_every_prefix_of_k_seeds_is_kept_with_its_count():
    table = [(0, 0)] * 3 + [(0, 1)] * 2 + [(1, 1)]
    level, spent = learn(
        Keyed(KEY).at("noise"), table, (2, 2), (1, 0), 2, k=2, law=exact(), records=6
    )
    assert level.prefixes.tolist() == [[0, 0], [1, 0]]  # in the order of σ: second column first
    assert level.counts.tolist() == [3, 2]
    assert spent == Spend(what="seed prefixes", part="seeds", law=exact())
    assert level.records == 6


def test_no_seeds_keep_nothing():
    level, spent = learn(Keyed(KEY).at("noise"), [], (2, 3), (0, 1), 2, k=1, records=7)
    assert level.prefixes.shape == (0, 2)
    assert spent.l0_sensitivity == 1


# Validation


@pytest.mark.parametrize(
    ("prefixes", "counts"),
    [
        (np.zeros(2, dtype=CODE), [1, 1]),  # not rows
        (np.zeros((2, 1), dtype=CODE), [1]),  # one count missing
        (np.zeros((1, 1), dtype=CODE), [0]),  # nobody there
        (np.zeros((1, 1), dtype=CODE), [-2]),
    ],
)
def test_invalid_kept_prefixes_are_refused(prefixes, counts):
    with pytest.raises(InvariantError, match="kept prefix"):
        KeptPrefixes(prefixes=prefixes, counts=np.array(counts, dtype=np.int64), records=1)


# Length


@pytest.mark.parametrize(
    ("sizes", "longest"),
    [
        ([2] * 20, 16),
        ([2] * 5, 5),
        ([256, 256, 2, 2], 2),
        ([256, 257, 2, 2], 1),
        ([1] * 30, 30),
        ([2] * 2**10, 12),  # times the number of all attributes
        ([2**16, 2], 1),
        ([2**16] * 2**10, 1),  # a single attribute always
    ],
)
def test_the_longest_prefix_that_can_be_listed(sizes, longest):
    assert longest_listed(sizes) == longest
    require_listed(longest, sizes)


def test_a_prefix_that_cannot_be_listed_is_refused_with_what_can_be_done():
    why = r"--omega 4: the 17 attributes .* 131,072 combinations.*--omega auto, or 5 or more"
    with pytest.raises(ConfigError, match=why):
        require_listed(17, [2] * 21)


def test_a_chosen_prefix_is_not_longer_than_allowed():
    network = uniform_network(6)
    chosen = [choose_omega(network, records=10**6, threshold=1, max_length=n) for n in (1, 3, 9)]
    assert chosen == [5, 3, 1]


def uniform_network(m, values=2):
    """Independent attributes, each value equally likely."""
    attributes = tuple(plain_attribute(f"x{i}", values) for i in range(m))
    table = ConditionalTable(np.full((1, values), 1 / values))
    return Network(attributes, Graph.without_edges(m), tuple(range(m)), (table,) * m)


def skewed_network(rare):
    """Two attributes: of the first, a share of ``rare`` has a value of its own."""
    attributes = (plain_attribute("a", 2), plain_attribute("b", 2), plain_attribute("c", 2))
    tables = [[1.0, 0.0], [1 - rare, rare], [0.5, 0.5]]
    conditionals = tuple(ConditionalTable(np.array([row])) for row in tables)
    return Network(attributes, Graph.without_edges(3), (0, 1, 2), conditionals)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_omega_of_uniform_bits_keeps_the_longest_frequent_prefix(length):
    """A prefix of ℓ bits has 2^-ℓ of the rows; twice the threshold is asked for, and 1.4 given."""
    threshold, m = 50, 6
    records = round(1.4 * 2 * threshold * 2**length)
    assert choose_omega(uniform_network(m), records=records, threshold=threshold) == m - length


@pytest.mark.parametrize(("rare", "omega"), [(0.05, 1), (0.2, 2)])
def test_omega_needs_frequent_prefixes_for_nine_seeds_in_ten(rare, omega):
    """Rare values spoil a length only if more than one seed in ten has one."""
    assert choose_omega(skewed_network(rare), records=10_000, threshold=1_100) == omega


@pytest.mark.parametrize("records", [-5, 0, 1, 10])
def test_at_least_one_attribute_is_kept_however_few_the_rows(records):
    assert choose_omega(uniform_network(4), records=records, threshold=50) == 3


def test_at_least_one_attribute_is_drawn_however_many_the_rows():
    assert choose_omega(uniform_network(4), records=10**9, threshold=1) == 1


def test_a_single_attribute_is_drawn():
    assert choose_omega(uniform_network(1), records=10**6, threshold=1) == 1


@pytest.mark.parametrize("records", [40, 100, 400, 2_000, 20_000])
def test_omega_is_its_definition(records):
    """Word for word, by a Counter, on a network with a graph, an order and buckets."""
    network, model = small_world()
    threshold = 10
    drawn = empty_codes(2**15, network.attributes)
    network.draw(drawn, Keyed(1).at("candidates"), kept=0)
    longest = 1
    for length in (1, 2):
        prefixes = [tuple(r[i] for i in model.order[:length]) for r in records_of(drawn)]
        shared = Counter(prefixes)
        good = sum(shared[p] * records / 2**15 >= 2 * threshold for p in prefixes)
        longest = length if good >= 0.9 * 2**15 else longest
    assert choose_omega(network, records=records, threshold=threshold) == 3 - longest


def test_omega_is_monotone_in_rows_and_threshold():
    network = uniform_network(6)
    by_records = [choose_omega(network, records=2**n, threshold=20) for n in range(16)]
    assert by_records == sorted(by_records, reverse=True)
    by_threshold = [choose_omega(network, records=10_000, threshold=2**n) for n in range(16)]
    assert by_threshold == sorted(by_threshold)
    assert len(set(by_records)) > 2
