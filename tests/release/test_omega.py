"""--omega auto: as many attributes are kept as most seeds can share with enough others."""

from collections import Counter

import numpy as np
import pytest

from deniable.model.graph import Graph
from deniable.model.network import ConditionalTable, Network, empty_codes
from deniable.randomness import Keyed
from deniable.release.omega import choose_omega
from worlds import plain_attribute, records_of, small_world


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
def test_of_uniform_bits_the_length_is_kept_that_leaves_each_prefix_enough(length):
    """A prefix of ℓ bits has 2^-ℓ of the rows; twice the threshold is asked for, and 1.4 given."""
    threshold, m = 50, 6
    records = round(1.4 * 2 * threshold * 2**length)
    assert choose_omega(uniform_network(m), records=records, threshold=threshold) == m - length


@pytest.mark.parametrize(("rare", "omega"), [(0.05, 1), (0.2, 2)])
def test_nine_in_ten_seeds_are_most(rare, omega):
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
def test_it_is_its_definition(records):
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


def test_more_rows_never_keep_less_and_a_higher_threshold_never_more():
    network = uniform_network(6)
    by_records = [choose_omega(network, records=2**n, threshold=20) for n in range(16)]
    assert by_records == sorted(by_records, reverse=True)
    by_threshold = [choose_omega(network, records=10_000, threshold=2**n) for n in range(16)]
    assert by_threshold == sorted(by_threshold)
    assert len(set(by_records)) > 2
