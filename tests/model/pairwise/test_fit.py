"""Fitted networks: every row is a distribution, close to the data, and reproducible."""

import math
from dataclasses import replace
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings

from deniable.counting.local import count
from deniable.model.bayesian_network import ConditionalTable
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise import loglinear
from deniable.model.pairwise.attribute_fit import _divide_effects, _parent_evidence
from deniable.model.pairwise.denoise import denoise_tables, table_weights
from deniable.model.pairwise.fit import _FitsAhead, fit_network, refit_network
from deniable.model.pairwise.loglinear import LogLinear
from deniable.model.pairwise.measure import measure_pairwise, measure_tables, with_bins
from deniable.model.pairwise.record_pool import Parent, RecordPool, pool_records
from deniable.privacy.pairwise_budget import pair_noise
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute
from worlds import codes_of, plain_attribute, property_test, worlds

pytestmark = pytest.mark.slow

# A fit takes some hundredths of a second.
few = settings(property_test, max_examples=12)


def measure(attributes, codes, *, mu=math.inf, key=1, workers=1):
    laws = pair_noise([a.size for a in attributes], mu_values=mu, mu_pairs=mu)
    rng = Keyed(key).at("noise")
    measured, _ = measure_pairwise(
        rng,
        partial(count, attributes, codes, workers=workers),
        lambda binned: partial(count, binned, codes, workers=workers),
        attributes,
        laws,
    )
    if not laws.table_count:
        return measured
    weights = table_weights(measured, attributes, laws, targets=())
    counter = partial(count, with_bins(attributes, measured.bins), codes, workers=workers)
    return measure_tables(rng, counter, measured, weights, laws)[0]


def parts_of(table):
    """The numbers of a conditional distribution, of either kind."""
    if isinstance(table, ConditionalTable):
        return [table.probabilities]
    return [table.base, *table.effects, table.bins, table.within]


def assert_equal_networks(one, two):
    assert (one.graph, one.order) == (two.graph, two.order)
    for here, there in zip(one.tables, two.tables, strict=True):
        pairs = zip(parts_of(here), parts_of(there), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in pairs)


def fit(attributes, codes, *, max_cost=1_000, **more):
    return fit_network(measure(attributes, codes, **more), attributes, max_cost=max_cost)


ATTRIBUTES = (
    plain_attribute("a", 4),
    plain_attribute("b", 4),
    Attribute(name="c", kind="categorical", values=("u", "v"), missing=("?",)),
    plain_attribute("d", 3),
)
UNIVERSE = codes_of(list(product(*(range(a.size) for a in ATTRIBUTES))), 4)


def correlated(rows=5_000, key=8):
    """b depends on a, c and d depend on both, each with some randomness."""
    rng = np.random.default_rng(key)
    a = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    b = np.where(rng.random(rows) < 0.7, (a + 1) % 4, rng.integers(0, 4, rows))
    c = np.where(rng.random(rows) < 0.6, (a + b) % 3, rng.integers(0, 3, rows))
    d = np.where(rng.random(rows) < 0.6, (b > 1) + (c > 0), rng.integers(0, 3, rows))
    return codes_of(np.stack([a, b, c, d], axis=1).tolist(), 4)


def independent(rows=5_000, key=8):
    rng = np.random.default_rng(key)
    return codes_of(
        np.stack([rng.integers(0, a.size, rows) for a in ATTRIBUTES], axis=1).tolist(), 4
    )


def pair_shares(codes, weights):
    """The two-way distributions of weighted records."""
    shares = {}
    for i, j in combinations(range(len(ATTRIBUTES)), 2):
        table = np.zeros((ATTRIBUTES[i].size, ATTRIBUTES[j].size))
        np.add.at(table, (codes[:, i], codes[:, j]), weights)
        shares[i, j] = table / table.sum()
    return shares


def of_model(network):
    """The exact two-way distributions of a network: sums over all possible records."""
    return pair_shares(UNIVERSE, np.exp(network.log_probability(UNIVERSE)))


def of_table(codes):
    return pair_shares(codes, np.ones(len(codes)))


def distance(one, two):
    """The mean total variation distance of all pairs."""
    return np.mean([0.5 * np.abs(one[pair] - two[pair]).sum() for pair in one])


def without_edges(shares):
    """The two-way distributions under independence."""
    return {pair: np.outer(t.sum(axis=1), t.sum(axis=0)) for pair, t in shares.items()}


def test_without_noise_the_model_has_the_pairs_of_the_table():
    """A distance of a few percent; without edges it would be a sixth or more."""
    codes = correlated()
    truth = of_table(codes)
    far = distance(of_model(fit(ATTRIBUTES, codes)), truth)
    alone = distance(without_edges(truth), truth)
    assert alone > 0.15
    assert far < 0.03
    assert far < alone / 5


def test_with_little_noise_the_model_is_nearer_than_one_without_edges():
    codes = correlated()
    truth = of_table(codes)
    alone = distance(without_edges(truth), truth)
    for key in range(3):
        assert distance(of_model(fit(ATTRIBUTES, codes, mu=1.0, key=key)), truth) < alone / 2


def test_all_parents_agree_on_what_an_attribute_is_fitted_to(monkeypatch):
    """Targets with different column sums are out of reach: effects would grow without use."""
    seen = []

    def remember(share, evidence, weights, **more):
        seen.append((share, evidence, weights.sum()))
        return loglinear.fit_loglinear(share, evidence, weights, **more)

    monkeypatch.setattr("deniable.model.pairwise.attribute_fit.fit_loglinear", remember)
    fit(ATTRIBUTES, correlated(rows=300), mu=0.5)
    assert max(len(evidence) for _, evidence, _ in seen) > 1, "so that two could disagree"
    for share, evidence, records in seen:
        for each in evidence:
            np.testing.assert_allclose(each.target.sum(axis=0), records * share, rtol=1e-4)


def test_a_group_that_the_pool_has_no_record_of_is_fitted_to_finite_counts(monkeypatch):
    seen = []

    def remember(share, evidence, weights, **more):
        seen.extend(evidence)
        return loglinear.fit_loglinear(share, evidence, weights, **more)

    monkeypatch.setattr("deniable.model.pairwise.attribute_fit.fit_loglinear", remember)
    monkeypatch.setattr("deniable.model.pairwise.record_pool._POOL_RECORDS", 4)
    network = fit(ATTRIBUTES, correlated())
    assert any((np.bincount(e.groups, minlength=len(e.target)) == 0).any() for e in seen)
    assert all(np.isfinite(e.target).all() and (e.target > 0).all() for e in seen)
    assert not np.isnan(network.log_probability(UNIVERSE)).any()


def test_noise_creates_no_dependence():
    """Independent attributes under noise that drowns every cell of a pair: the model stays nearer
    to independence than the noisy tables, and never far from it. Three fixed keys."""
    codes = independent()
    for key in range(3):
        measured = measure(ATTRIBUTES, codes, mu=0.05, key=key)
        network = fit_network(measured, ATTRIBUTES, max_cost=1_000)
        shares = of_model(network)
        own = distance(shares, without_edges(shares))
        noisy = {
            pair: np.maximum(table, 0) / np.maximum(table, 0).sum()
            for pair, table in measured.tables.items()
        }
        theirs = np.mean(
            [0.5 * np.abs(t - np.outer(t.sum(axis=1), t.sum(axis=0))).sum() for t in noisy.values()]
        )
        assert own < theirs / 2
        assert own < 0.1


def rare_origin(rows=30_000, key=3):
    """One row of fifty has an origin whose schooling is lower; the other origins do not differ."""
    rng = np.random.default_rng(key)
    origin = rng.choice(3, rows, p=[0.94, 0.04, 0.02])
    schooling = np.where(
        (origin == 2) & (rng.random(rows) < 0.7), rng.integers(0, 2, rows), rng.integers(0, 8, rows)
    )
    return codes_of(np.stack([origin, schooling], axis=1).tolist(), 2)


def test_a_large_effect_of_a_rare_value_is_not_shrunk_by_the_small_ones_of_frequent_values():
    """The mean effect of the pair is near 0; that of the cell itself stands out from the noise."""
    attributes = (plain_attribute("origin", 3), plain_attribute("schooling", 8))
    codes = rare_origin()
    real = float(np.mean(codes[codes[:, 0] == 2, 1] < 2))
    kept = []
    for key in range(12):
        table = fit(attributes, codes, mu=0.03, key=key).tables[1].probabilities
        kept.append((table[2, :2].sum() - 0.25) / (real - 0.25))
    assert np.mean(kept) > 0.85  # 0.68 with the mean effect of the pair alone


@few
@given(worlds(least=1, loglinear=False))
def test_every_table_holds_distributions_in_which_nothing_is_impossible(world):
    """Under any noise, for tables of any size, an empty one too; the order is one of the graph's,
    which a network checks itself."""
    for codes, mu in ((world.codes, math.inf), (world.codes, 0.3), (world.codes[:0], 0.3)):
        for max_cost in (1_000, 1):
            network = fit(world.attributes, codes, mu=mu, max_cost=max_cost)
            logarithms = network.log_probability(world.universe)
            assert np.isfinite(logarithms).all()
            assert np.exp(logarithms).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("max_cost", [1, 3, 10, 50])
def test_parents_of_too_many_configurations_make_a_log_linear_conditional(max_cost):
    """Never fewer parents: the graph is the same, and so is the model but for rounding."""
    measured = measure(ATTRIBUTES, correlated())
    network = fit_network(measured, ATTRIBUTES, max_cost=max_cost)
    by_tables = fit_network(measured, ATTRIBUTES, max_cost=1_000)
    assert network.graph == by_tables.graph
    kinds = set()
    for table, groups in zip(network.tables, network.groups, strict=True):
        configurations = math.prod(int(group.max()) + 1 for group in groups)
        assert isinstance(table, LogLinearConditional) == (configurations > max_cost)
        kinds.add(type(table))
    assert kinds == {ConditionalTable, LogLinearConditional} if max_cost < 50 else kinds
    one, two = (n.log_probability(UNIVERSE) for n in (network, by_tables))
    np.testing.assert_allclose(one, two, atol=0.01)


def test_an_attribute_depends_on_all_it_is_known_to_depend_on():
    """Twenty independent parents of three values: 3^20 configurations, drawn by their effects.

    In the pool nearly every record has its own configuration. Its columns must be independent all
    the same, or the effects are those of other parents.
    """
    rng = np.random.default_rng(6)
    parents = rng.integers(0, 3, (30_000, 20))
    child = np.clip((parents.sum(axis=1) + rng.integers(-9, 10, 30_000)) // 5, 0, 7)
    attributes = [plain_attribute(f"x{i}", 3) for i in range(20)] + [plain_attribute("y", 8)]
    codes = codes_of(np.column_stack([parents, child]).tolist(), 21)
    network = fit(attributes, codes, max_cost=12_000)
    assert network.graph.parents[20] == tuple(range(20))
    assert isinstance(network.tables[20], LogLinearConditional)
    drawn = codes_of([(0,) * 21] * 30_000, 21)
    network.draw(drawn, Keyed(1).at("records"), kept=0, method="independent")
    sums, of_drawn = (rows[:, :20].sum(axis=1) for rows in (codes, drawn))
    for low, high in ((0, 14), (15, 25), (26, 40)):
        real = codes[(low <= sums) & (sums <= high), 20]
        found = drawn[(low <= of_drawn) & (of_drawn <= high), 20]
        assert found.mean() == pytest.approx(real.mean(), abs=0.25)


@pytest.mark.parametrize("mu", [math.inf, 0.3])
def test_a_missing_cell_of_a_parent_is_a_group_of_its_own(mu):
    """Missing differs from its neighbouring bin, however rare it is."""
    rng = np.random.default_rng(4)
    years = Attribute(name="years", kind="integer", values=range(40), missing=("?",))
    child = [plain_attribute(f"x{i}", 60) for i in range(2)]
    first = np.where(rng.random(4_000) < 0.01, 40, rng.integers(0, 40, 4_000))
    others = [(first + rng.integers(0, 20, 4_000)) % 60 for _ in child]
    codes = codes_of(np.stack([first, *others], axis=1).tolist(), 3)
    network = fit((years, *child), codes, mu=mu)
    seen = 0
    for parents, groups in zip(network.graph.parents, network.groups, strict=True):
        for parent, group in zip(parents, groups, strict=True):
            if parent == 0:
                seen += 1
                assert (group == group[40]).sum() == 1
                assert len(group) == 41
    assert seen > 0


@pytest.mark.parametrize("max_cost", [1_000, 3])
def test_a_fit_is_the_same_every_time_and_with_any_number_of_workers(max_cost):
    codes = correlated()
    first, *others = [
        fit(ATTRIBUTES, codes, mu=1.0, workers=workers, max_cost=max_cost) for workers in (1, 1, 3)
    ]
    for other in others:
        assert_equal_networks(first, other)


@pytest.mark.parametrize("length", [None, 2])
def test_fits_that_start_ahead_give_the_same_network_as_one_after_the_other(monkeypatch, length):
    """With much noise, few of eight columns seem to depend on the one before them."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 3, (4_000, 4))
    other = np.where(rng.random((4_000, 4)) < 0.7, first, rng.integers(0, 3, (4_000, 4)))
    attributes = [plain_attribute(f"x{i}", 3) for i in range(8)]
    measured = measure(attributes, codes_of(np.hstack([first, other]).tolist(), 8), mu=0.05)
    prefixes = None if length is None else rng.integers(0, 3, (pool_records(8), length))
    ahead = []
    start = _FitsAhead.start

    def counted_start(fits, drawn, end):
        start(fits, drawn, end)
        ahead.append(len(fits.started) - drawn)

    monkeypatch.setattr(_FitsAhead, "start", counted_start)
    together = fit_network(measured, attributes, max_cost=100, prefixes=prefixes)
    assert max(ahead) > 1
    monkeypatch.setattr(
        _FitsAhead, "start", lambda fits, drawn, _end: start(fits, drawn, drawn + 1)
    )
    assert_equal_networks(
        together, fit_network(measured, attributes, max_cost=100, prefixes=prefixes)
    )


@pytest.mark.parametrize("max_cost", [1_000, 3])
def test_nothing_but_the_noisy_counts_decides_the_network(max_cost):
    """Rows in another order, counted with the same noise."""
    codes = correlated()
    turned = np.asfortranarray(codes[np.random.default_rng(1).permutation(len(codes))])
    one, two = (fit(ATTRIBUTES, rows, mu=1.0, max_cost=max_cost) for rows in (codes, turned))
    assert_equal_networks(one, two)


def test_values_inside_a_bin_keep_their_shares():
    """A hundred values, many merged: each still has about its own probability."""
    attributes = (plain_attribute("a", 100), plain_attribute("b", 2))
    rng = np.random.default_rng(6)
    a = np.minimum(rng.geometric(0.05, 20_000) - 1, 99)
    b = (rng.random(20_000) < 0.2 + 0.006 * a).astype(int)
    codes = codes_of(np.stack([a, b], axis=1).tolist(), 2)
    measured = measure(attributes, codes)
    assert measured.bins[0].max() < 99, "some values are merged"
    network = fit_network(measured, attributes, max_cost=1_000)
    universe = codes_of(list(product(range(100), range(2))), 2)
    shares = np.exp(network.log_probability(universe)).reshape(100, 2)
    table = np.zeros((100, 2))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1 / len(codes))
    assert 0.5 * np.abs(shares.sum(axis=1) - table.sum(axis=1)).sum() < 0.01
    assert 0.5 * np.abs(shares - table).sum() < 0.05


# Another computer


@pytest.mark.parametrize("max_cost", [1_000, 3])
def test_a_network_refitted_given_its_own_tables_is_the_same(max_cost):
    """A table exactly; the units of a log-linear conditional are rounded to 2^-12."""
    measured = measure(ATTRIBUTES, correlated(), mu=1.0)
    network = fit_network(measured, ATTRIBUTES, max_cost=max_cost)
    again = refit_network(measured, network, max_cost=max_cost)
    assert (again.graph, again.order) == (network.graph, network.order)
    one, two = (n.log_probability(UNIVERSE) for n in (network, again))
    if max_cost == 1_000:
        assert_equal_networks(network, again)
    np.testing.assert_allclose(one, two, atol=0.02)


@pytest.mark.parametrize("max_cost", [1_000, 3])
def test_given_earlier_tables_other_rounding_changes_each_table_alone(monkeypatch, max_cost):
    """The first table has no parents, so its change is that of one fit."""
    measured = measure(ATTRIBUTES, correlated(), mu=1.0)
    network = fit_network(measured, ATTRIBUTES, max_cost=max_cost)
    sums = loglinear._row_sums
    monkeypatch.setattr(loglinear, "_row_sums", lambda shares: sums(shares) * np.float32(1 + 1e-6))
    near = refit_network(measured, network, max_cost=max_cost)
    for i in range(4):
        one, two = (np.exp(n.log_distribution(UNIVERSE, i)) for n in (network, near))
        assert np.abs(one - two).max() < 0.02


def test_given_prefixes_later_attributes_have_their_two_way_tables_with_them():
    """Pairs of a, b and c are independent, but c is their parity; d follows a and, where all are
    1, b and c too. Fitted to records that have the parity, d has the measured pairs with it."""
    binary = [plain_attribute(name, 2) for name in "abc"]
    attributes = (*binary, plain_attribute("d", 4))
    rng = np.random.default_rng(4)
    first = rng.integers(0, 2, (20_000, 2))
    parity = first.sum(axis=1) % 2
    d = rng.binomial(3, 0.1 + 0.2 * first.sum(axis=1) + 0.3 * parity)
    codes = codes_of(np.column_stack([first, parity, d]).tolist(), 4)
    measured = measure(attributes, codes)
    prefixes = codes[: pool_records(4), :3]
    off = {}
    for name, start in (("model", None), ("seeds", prefixes)):
        network = fit_network(measured, attributes, max_cost=1_000, prefixes=start)
        drawn = codes.copy(order="F")
        network.draw(drawn, Keyed(5).at("records"), kept=3)
        shares = [np.bincount(rows[:, 1] * 4 + rows[:, 3]) / len(rows) for rows in (drawn, codes)]
        off[name] = np.abs(shares[0] - shares[1]).sum() / 2
    assert off["seeds"] < 0.015 < off["model"]


def test_prefixes_do_not_change_their_own_distributions():
    measured = measure(ATTRIBUTES, UNIVERSE)
    prefixes = np.zeros((pool_records(4), 2), dtype=UNIVERSE.dtype)
    one = fit_network(measured, ATTRIBUTES, max_cost=1_000)
    two = fit_network(measured, ATTRIBUTES, max_cost=1_000, prefixes=prefixes)
    for i in one.order[:2]:
        assert [a.tobytes() for a in parts_of(one.tables[i])] == [
            b.tobytes() for b in parts_of(two.tables[i])
        ]


def test_effects_of_finer_groups_and_more_parents_are_the_same_model():
    """Parents are attributes 1 and 4 of four and three bins; 2 is new, and 4 gets finer groups."""
    rng = np.random.default_rng(3)
    parents = (
        Parent(attribute=1, groups=np.array([0, 0, 1, 1]), group_count=2),
        Parent(attribute=4, groups=np.array([1, 0, 1]), group_count=2),
    )
    fitted = LogLinear(base=rng.normal(size=3), effects=tuple(rng.normal(size=(2, 2, 3))))
    groups = {1: parents[0].groups, 2: np.array([0, 1]), 4: np.array([2, 1, 0])}
    divided = _divide_effects(fitted, parents, groups)
    for one, two, four in product(range(4), range(2), range(3)):
        own = [np.array([groups[j][bin_]]) for j, bin_ in ((1, one), (2, two), (4, four))]
        before = [np.array([p.groups[bin_]]) for p, bin_ in zip(parents, (one, four), strict=True)]
        np.testing.assert_array_equal(divided.logits(own), fitted.logits(before))


def test_a_penalty_grows_with_the_noise_beyond_that_at_epsilon_1():
    """All of it but the minimum, half a record."""
    codes, two = codes_of([(i % 4, i % 4) for i in range(6_000)], 2), ATTRIBUTES[:2]
    tables = denoise_tables(measure(two, codes, mu=0.3), two)
    pool = RecordPool.empty(64, 2)
    parent = Parent(attribute=0, groups=np.arange(len(tables.bins[0])), group_count=4)
    found = pool.configurations([parent], tables.masks.allowed(1, [0], pool.pieces))
    usual, noisier = (
        _parent_evidence(replace(tables, relative_noise=noise), 1, [parent], found)[0][0].penalty
        for noise in (1.0, 5.0)
    )
    assert usual.min() > 0.5
    np.testing.assert_allclose(noisier - 0.5, 5 * (usual - 0.5), rtol=1e-9)
