"""Kept prefixes combined with the model: the model's pairs, the seeds' higher orders."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import assert_distribution
from deniable.arrays import CODE
from deniable.config import Config
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.pairwise.fit import fit_network
from deniable.pipeline.api import generate, learn
from deniable.randomness import Keyed
from deniable.release import prefix_distribution as module
from deniable.release.prefix_distribution import combine_prefixes, draw_prefix_pool
from deniable.release.seed_histogram import KeptPrefixes
from deniable.schema.schema import Schema
from deniable.verification.verify import verify
from worlds import plain_attribute, property_test

SIZES = (2, 3, 2)
CELLS = list(product(*map(range, SIZES)))


def network_of(rng: np.random.Generator, sizes=SIZES) -> Network:
    """Each attribute depends on all before it; the order is the schema's, reversed."""
    m = len(sizes)
    order = tuple(reversed(range(m)))
    parents = tuple(tuple(range(i + 1, m)) for i in range(m))
    attributes = tuple(plain_attribute(f"x{i}", size) for i, size in enumerate(reversed(sizes)))
    rows = [int(np.prod([attributes[j].size for j in chosen], dtype=int)) for chosen in parents]
    shares = [rng.dirichlet(np.full(a.size, 4.0), n) for a, n in zip(attributes, rows, strict=True)]
    tables = tuple(map(ConditionalTable, shares))
    return Network(attributes, Graph(parents), order, tables)


def kept_of(counts: dict, records: int) -> KeptPrefixes:
    listed = sorted(counts)
    return KeptPrefixes(
        prefixes=np.array(listed, dtype=CODE).reshape(len(listed), -1),
        counts=np.array([counts[prefix] for prefix in listed], dtype=np.int64),
        records=records,
    )


def dense(combined) -> np.ndarray:
    """The probabilities of all prefixes, as an array with an axis for each attribute."""
    found = np.zeros(SIZES)
    found[tuple(combined.prefixes.T)] = combined.weights / combined.weights.sum()
    return found


def model_of(network: Network) -> np.ndarray:
    codes = np.array([list(reversed(cell)) for cell in CELLS], dtype=CODE)
    return np.exp(network.log_probability(codes)).reshape(SIZES)


@pytest.mark.slow
@property_test
@given(key=st.integers(0, 2**32), kept=st.integers(1, len(CELLS)), records=st.integers(1, 900))
def test_the_combined_distribution_is_the_nearest_with_the_models_two_way_tables(
    key, kept, records
):
    """Nearest in relative entropy: it has those tables, and its ratio to the mixture is a product
    of functions of two attributes, so that the third-order differences of its logarithm are 0."""
    rng = np.random.default_rng(key)
    network = network_of(rng)
    chosen = rng.choice(len(CELLS), kept, replace=False)
    counts = {CELLS[at]: int(rng.integers(20, 90)) for at in chosen}
    with patch.object(module, "_MAX_ROUNDS", 3_000):  # counts at random are far from any model
        combined = dense(combine_prefixes(network, kept_of(counts, records), {}))
    model = model_of(network)
    for pair in combinations(range(3), 2):
        (other,) = set(range(3)) - set(pair)
        assert np.abs(combined.sum(other) - model.sum(other)).max() < 2e-5
    total = max(records, sum(counts.values()))
    mixed = np.array([counts.get(cell, 0) / total for cell in CELLS]).reshape(SIZES)
    is_kept = mixed > 0
    rest = max((1 - mixed.sum()) / max(model[~is_kept].sum(), 1e-9), 0.01)
    mixed[~is_kept] = rest * model[~is_kept]
    ratio = np.log(combined) - np.log(mixed)
    third_order = np.diff(np.diff(np.diff(ratio, axis=0), axis=1), axis=2)
    # Each is a sum of eight logarithms of probabilities, which are rounded to 2^-40.
    assert np.abs(third_order).max() < 8 * 2.0**-40 / combined.min() + 1e-9


def parity_of(length: int, counts: int = 1_000) -> dict:
    return {cell: counts for cell in product((0, 1), repeat=length) if sum(cell) % 2 == 0}


def independent_network(m: int) -> Network:
    attributes = tuple(plain_attribute(f"x{i}", 2) for i in range(m))
    tables = (ConditionalTable(np.full((1, 2), 0.5)),) * m
    return Network(attributes, Graph(((),) * m), tuple(range(m)), tables)


def test_a_parity_that_no_pair_shows_is_carried_by_the_kept_prefixes():
    """All pairs are independent, as the model has it; the last value follows from the others."""
    combined = combine_prefixes(independent_network(5), kept_of(parity_of(4), 8_000), {})
    share = combined.weights / combined.weights.sum()
    even = combined.prefixes.sum(axis=1) % 2 == 0
    # A hundredth of the model's probability is left to the prefixes that were not kept.
    assert share[even] == pytest.approx(1 / 8, rel=0.01)
    assert combined.distance == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("length", [1, 2])
def test_one_or_two_attributes_have_the_models_distribution(length):
    """Which knows them better: noisy counts of kept prefixes change nothing."""
    kept = kept_of({(0,) * length: 900, (1,) * length: 50}, 1_000)
    combined = combine_prefixes(independent_network(4), kept, {})
    assert combined.weights / combined.weights.sum() == pytest.approx(0.5**length, abs=1e-5)
    assert combined.distance < 1e-5


def test_prefixes_that_the_constraints_exclude_are_not_drawn_even_if_they_were_kept():
    masks = {(0, 2): np.array([[True, False], [True, True]])}
    counts = {(0, 0, 1): 500, (1, 1, 1): 200, (0, 1, 0): 300}
    combined = combine_prefixes(independent_network(4), kept_of(counts, 1_500), masks)
    assert not ((combined.prefixes[:, 0] == 0) & (combined.prefixes[:, 2] == 1)).any()
    assert (0, 1, 0) in set(map(tuple, combined.prefixes.tolist()))


def test_nothing_is_combined_without_kept_prefixes():
    network, kept = independent_network(4), kept_of(parity_of(3), 4_000)
    empty = KeptPrefixes(prefixes=np.zeros((0, 3), dtype=CODE), counts=np.zeros(0, int), records=9)
    assert combine_prefixes(network, empty, {}) is None
    assert combine_prefixes(network, kept, {}) is not None


@pytest.mark.parametrize(("records", "counted"), [(40, 16), (16, 16), (3, 16)])
def test_without_adjustment_kept_prefixes_have_their_noisy_shares(records, counted):
    """And the others what is left, as the model divides it; a hundredth of it where nothing is."""
    counts = {(0, 0): 10, (0, 1): 1, (1, 1): 5}
    combined = combine_prefixes(independent_network(3), kept_of(counts, records), {}, adjust=False)
    assert combined.prefixes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    left = max(1 - counted / records, 0.01 / 4)
    shares = np.array([10, 1, 0, 5]) / max(records, counted)
    expected = np.where(shares > 0, shares, left)
    np.testing.assert_allclose(combined.weights / 2**40, expected, atol=2.0**-40)


def test_attributes_of_one_value_are_allowed():
    network = independent_network(3)
    single = (plain_attribute("s", 1), *network.attributes)
    tables = (ConditionalTable(np.ones((1, 1))), *network.tables)
    network = Network(single, Graph(((),) * 4), (0, 1, 2, 3), tables)
    for length in (1, 2, 3):
        kept = kept_of({(0,) * length: 40}, 100)
        assert combine_prefixes(network, kept, {}).length == length


@pytest.mark.parametrize("stratified", [True, False])
def test_prefixes_are_drawn_by_their_weights(stratified):
    """False-alarm rate 1e-6, fixed key; stratified draws scatter less than independent ones."""
    combined = combine_prefixes(
        network_of(np.random.default_rng(3)), kept_of({(0, 2, 1): 9}, 20), {}
    )
    drawn = combined.draw(40_000, Keyed(2).at("records"), stratified=stratified)
    total = int(combined.weights.sum())
    listed = zip(map(tuple, combined.prefixes.tolist()), combined.weights, strict=True)
    law = {prefix: int(weight) / total for prefix, weight in listed}
    assert_distribution(Counter(map(tuple, drawn.tolist())), law)


def test_the_rest_is_fitted_again_only_where_prefixes_differ_from_the_model(monkeypatch):
    network = independent_network(5)
    carrying = kept_of(parity_of(4), 8_000)
    as_model = kept_of(dict.fromkeys(product((0, 1), repeat=4), 500), 8_000)
    pool = draw_prefix_pool(network, carrying, {})
    assert pool is not None
    assert (pool.sum(axis=1) % 2 == 0).mean() > 0.99
    assert draw_prefix_pool(network, as_model, {}) is None
    assert draw_prefix_pool(network, None, {}) is None
    monkeypatch.setattr(module, "_MAX_FITTED_ATTRIBUTES", 4)
    assert draw_prefix_pool(network, carrying, {}) is None


def parity_table(rows: int) -> tuple[pl.DataFrame, Schema]:
    """Three fair coins, their parity, and a number that follows each of the four."""
    rng = np.random.default_rng(8)
    coins = rng.integers(0, 2, (rows, 3))
    columns = np.column_stack([coins, coins.sum(axis=1) % 2])
    number = rng.binomial(6, 0.1 + 0.2 * columns.sum(axis=1))
    names = ["a", "b", "c", "parity", "number"]
    frame = pl.DataFrame(np.column_stack([columns, number]), schema=names)
    described = [
        f'[[attribute]]\nname = "{name}"\ntype = "integer"\nmin = 0\nmax = {most}\n'
        for name, most in zip(names, [1, 1, 1, 1, 6], strict=True)
    ]
    return frame, Schema.parse("format = 1\n" + "".join(described))


@pytest.mark.slow
def test_records_keep_a_parity_and_the_pairs_of_what_follows_it():
    """8,000 rows at ε = 20 are as clear as 160,000 at ε = 1. Seedless records do not know it."""
    frame, schema = parity_table(8_000)
    agree, means = {}, {}
    for mode in ("one-shot", "seedless"):
        options = {"omega": "1"} if mode == "one-shot" else {}
        artefact = learn(frame, schema, mode=mode, epsilon=20.0, noise=Keyed(1), **options)
        records = generate(artefact, 8_000, key=3).frame()
        coins = records.select("a", "b", "c").sum_horizontal()
        agree[mode] = float((coins % 2 == records["parity"]).mean())
        means[mode] = records.group_by("parity").agg(pl.col("number").mean()).sort("parity")
    real = frame.group_by("parity").agg(pl.col("number").mean()).sort("parity")
    assert agree["one-shot"] > 0.98
    assert 0.4 < agree["seedless"] < 0.6
    gap = np.abs(means["one-shot"]["number"].to_numpy() - real["number"].to_numpy()).max()
    assert gap < 0.05


@pytest.mark.slow
def test_a_model_that_was_not_fitted_to_the_kept_prefixes_does_not_verify(tmp_path):
    """``verify`` chooses ω with the first fit and compares the model with the second."""
    frame, schema = parity_table(8_000)
    artefact = learn(frame, schema, epsilon=20.0)
    assert artefact.omega == 1
    artefact.save(tmp_path / "artefact")
    verify(tmp_path / "artefact").require()
    first = fit_network(artefact.evidence, schema.attributes, max_cost=Config().max_configurations)
    replace(artefact, network=first).save(tmp_path / "first")
    assert [check.name for check in verify(tmp_path / "first").failed] == ["model"]
