"""The network: probabilities by Eq. 2, most likely values by the full joint, draws by their law."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import definitions
from chance import assert_distribution, implied
from deniable.errors import ConfigError, InvariantError
from deniable.model import bayesian_network as module
from deniable.model.bayesian_network import Conditional, ConditionalTable, DrawMethod, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.randomness import Keyed
from worlds import (
    codes_of,
    count_records,
    plain_attribute,
    property_test,
    records_of,
    small_world,
    worlds,
)

pytestmark = pytest.mark.slow


def logarithm(p: Fraction) -> float:
    return math.log(p) if p > 0 else -math.inf


@property_test
@given(worlds())
def test_log_probability_is_that_of_the_paper(world):
    """``eq:gm:model``; 4 terms, each logarithm to 1e-15: the sum to 1e-12."""
    expected = [logarithm(definitions.record_probability(world.model, x)) for x in world.table]
    np.testing.assert_allclose(world.network.log_probability(world.codes), expected, atol=1e-12)


@property_test
@given(worlds())
def test_distributions_are_those_whose_logarithms_log_distribution_has(world):
    for i in range(world.m):
        found = world.network.distribution(world.codes, i)
        logarithms = world.network.log_distribution(world.codes, i)
        np.testing.assert_allclose(found, np.exp(logarithms), rtol=1e-12)


@property_test
@given(worlds(most=3))
def test_probabilities_of_all_records_sum_to_one(world):
    probabilities = np.exp(world.network.log_probability(world.universe))
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)


@property_test
@given(worlds())
def test_log_terms_are_the_factors_in_the_drawing_order(world):
    terms = world.network.log_terms(world.codes)
    for x, row in zip(world.table, terms, strict=True):
        expected = [logarithm(world.model.factor(i, x[i], x)) for i in world.model.order]
        np.testing.assert_allclose(row, expected, atol=1e-14)


@property_test
@given(worlds(), st.booleans())
def test_the_most_likely_value_is_that_of_the_full_joint(world, one_at_a_time):
    """By brute force over the joint; values equal in double precision may be swapped."""
    with pytest.MonkeyPatch.context() as patch:
        if one_at_a_time:
            patch.setattr(module, "_MAX_LIKELIHOOD_CELLS", 1)
        for i in range(world.m):
            best = world.network.most_likely(world.codes, i)
            assert best.dtype == world.codes.dtype
            for x, value in zip(world.table, best.tolist(), strict=True):
                joint = definitions.most_likely_values(world.model, x, i)
                assert joint[value] >= max(joint) * (1 - Fraction(1, 10**12))


def test_ties_go_to_the_first_value():
    attributes = [plain_attribute("x", 3), plain_attribute("y", 2)]
    half = ConditionalTable(np.full((1, 2), 0.5))
    third = ConditionalTable(np.array([[0.2, 0.4, 0.4]]))
    network = Network(tuple(attributes), Graph.without_edges(2), (0, 1), (third, half))
    codes = codes_of([(2, 1)], 2)
    assert network.most_likely(codes, 0).tolist() == [1]
    assert network.most_likely(codes, 1).tolist() == [0]
    assert codes.tolist() == [[2, 1]]


def test_the_most_likely_values_of_no_records():
    network = small_world()[0]
    assert network.most_likely(codes_of([], 3), 0).tolist() == []


def draw_many(
    *, kept: int, method: DrawMethod = "precise", trials: int = 120_000
) -> tuple[Counter, dict]:
    """Count the records drawn from one seed; also compute their exact probabilities."""
    network, model = small_world()
    seed = (3, 1, 2)
    codes = codes_of([seed] * trials, 3)
    network.draw(codes, Keyed(21).at("candidates"), kept=kept, method=method)
    expected = {
        y: definitions.synthesis_probability(model, y, seed, 3 - kept) for y in model.universe()
    }
    return count_records(codes), expected


@pytest.mark.untraced
@pytest.mark.parametrize("together", [1, 4, 8, 512])
@pytest.mark.parametrize("method", ["independent", "precise"])
@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_draws_have_the_law_of_synthesis(kept, method, together, monkeypatch):
    """``eq:gm:seedbased_synthesis``, all records at once; false-alarm rate 1e-6, fixed key.

    However many attributes are drawn by one word.
    """
    monkeypatch.setattr(module, "_MAX_BUNDLE_SIZE", together)
    assert_distribution(*draw_many(kept=kept, method=method))


@property_test
@given(worlds(loglinear=False), st.data())
def test_attributes_drawn_together_have_the_product_of_their_tables(world, data):
    """Every combination, given the attributes it depends on, exactly."""
    network, kept = world.network, data.draw(st.integers(0, world.m - 1))
    drawn = network.order[kept:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_BUNDLE_SIZE", data.draw(st.sampled_from([1, 4, 16, 512])))
        patch.setattr(module, "_MAX_BUNDLE_CELLS", data.draw(st.sampled_from([8, 64, 2**14])))
        plan = network._sampling_plan(kept, None)
    assert [i for draw in plan.drawn for i in draw.bundle.attributes] == list(drawn)
    assert [i for bundle in plan.kept for i in bundle.attributes] == list(network.order[:kept])
    bundles = [*plan.kept, *(draw.bundle for draw in plan.drawn)]
    numbers = [bundle.indices(world.universe) for bundle in bundles]
    terms = network.log_terms(world.universe)
    for place, draw in enumerate(plan.drawn, start=len(plan.kept)):
        begins = sum((added[numbers[at]] for at, added in draw.given), np.zeros(1, dtype=np.intp))
        rows, rest = np.divmod(begins, draw.alias.values)
        assert not rest.any()
        places = [network.order.index(i) for i in draw.bundle.attributes]
        expected = np.exp(terms[:, places].sum(axis=1))
        found = implied(draw.alias)[rows, numbers[place]]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_attributes_are_drawn_together_if_they_fit_one_small_table():
    """Twelve of two values are 4,096 combinations; a thirteenth would be one too many."""
    chain = tuple(() if i == 0 else (i - 1,) for i in range(15))
    attributes = tuple(plain_attribute(f"x{i}", 2) for i in range(15))
    half = np.full((2, 2), 0.5)
    tables = tuple(ConditionalTable(half[: 1 if i == 0 else 2]) for i in range(15))
    network = Network(attributes, Graph(chain), tuple(range(15)), tables)
    assert network._bundle_groups(network.order) == (tuple(range(12)), (12, 13, 14))
    assert network._bundle_groups(network.order[2:]) == (tuple(range(2, 14)), (14,))


def test_any_number_of_attributes_of_one_value_are_drawn():
    number = 80
    attributes = tuple(plain_attribute(f"x{i}", 1) for i in range(number))
    graph = Graph(tuple(() if i == 0 else (i - 1,) for i in range(number)))
    tables = (ConditionalTable(np.ones((1, 1))),) * number
    codes = codes_of([(0,) * number] * 5, number)
    network = Network(attributes, graph, tuple(range(number)), tables)
    network.draw(codes, Keyed(1).at("candidates"), kept=0, method="independent")
    assert not codes.any()


def test_systematic_records_are_in_random_order():
    """Five records get five values, in random order: one must not reveal the next."""
    fifth = ConditionalTable(np.full((1, 5), 0.2))
    network = Network((plain_attribute("x", 5),), Graph.without_edges(1), (0,), (fifth,))
    first: Counter = Counter()
    for key in range(10_000):
        codes = codes_of([(0,)] * 5, 1)
        network.draw(codes, Keyed(key).at("records"), kept=0, method="systematic")
        values = codes[:, 0].tolist()
        if values.count(0) == 1:
            first[values.index(0)] += 1
    assert first.total() > 5_000
    assert_distribution(first, dict.fromkeys(range(5), 0.2))


def test_systematic_draws_cover_independent_attributes_too():
    """Three of ten values each and no edges: all 1,000 combinations among 64,000 records.

    Independent draws would miss 64 each by 8 in the mean square; these by less than half of that.
    """
    tenth = (ConditionalTable(np.full((1, 10), 0.1)),) * 3
    attributes = tuple(plain_attribute(name, 10) for name in "xyz")
    network = Network(attributes, Graph.without_edges(3), (0, 1, 2), tenth)
    codes = codes_of([(0, 0, 0)] * 64_000, 3)
    network.draw(codes, Keyed(2).at("records"), kept=0, method="systematic")
    counts = np.array(list(count_records(codes).values()))
    assert len(counts) == 1_000
    assert np.sqrt(((counts - 64) ** 2).mean()) < 4


@pytest.mark.parametrize("is_log_linear", [False, True])
def test_systematic_draws_meet_the_dependence_on_the_strongest_parent(is_log_linear):
    """Of the records with each value of it, each value is drawn as often as expected, up to 3.

    The first attribute decides most. The second, with many values, decides little, but was drawn
    last: records in its order would have a remainder for each of its values.
    """
    strong, weak = np.array([[4, 1, 1, 1], [1, 1, 1, 4]]), np.ones((40, 4))
    weak[::2, 0] = 1.3
    weights = strong[:, None, :] * weak[None, :, :]
    table: Conditional = ConditionalTable((weights / weights.sum(-1, keepdims=True)).reshape(80, 4))
    if is_log_linear:
        table = LogLinearConditional.of(
            np.full(4, 0.25), (np.log(strong), np.log(weak)), np.arange(4), np.ones(4)
        )
    attributes = tuple(
        plain_attribute(name, size) for name, size in zip("xyz", (2, 40, 4), strict=True)
    )
    even = (ConditionalTable(np.full((1, 2), 0.5)), ConditionalTable(np.full((1, 40), 0.025)))
    graph, groups = Graph(((), (), (0, 1))), ((), (), (np.arange(2), np.arange(40)))
    network = Network(attributes, graph, (0, 1, 2), (*even, table), groups)
    for key in range(5):
        codes = codes_of([(0, 0, 0)] * 5_000, 3)
        network.draw(codes, Keyed(key).at("records"), kept=0, method="systematic")
        own = weights[codes[:, 0], codes[:, 1]]
        expected = own / own.sum(axis=1, keepdims=True)
        for x in (0, 1):
            of_x = codes[:, 0] == x
            drawn = np.bincount(codes[of_x, 2], minlength=4)
            assert np.abs(drawn - expected[of_x].sum(axis=0)).max() < 3


def test_that_assertion_notices_one_kept_attribute_too_many():
    counts, _ = draw_many(kept=1)
    _, expected = draw_many(kept=0)
    with pytest.raises(AssertionError, match="below the false-alarm limit"):
        assert_distribution(counts, expected)


@property_test
@given(worlds(), st.data())
def test_draws_keep_what_they_should_and_are_possible(world, data):
    kept = data.draw(st.integers(0, world.m))
    codes = world.codes.copy(order="F")
    world.network.draw(codes, Keyed(4).at("candidates"), kept=kept)
    for seed, y in zip(world.table, records_of(codes), strict=True):
        assert definitions.synthesis_probability(world.model, y, seed, world.m - kept) > 0


@pytest.mark.parametrize(
    "rows",
    [
        [[0.5, 0.4]],
        [[1.5, -0.5]],
        [[float("nan"), 1.0]],
        [[0.5, 0.5], [1.0, 1.0]],
        [0.5, 0.5],
    ],
)
def test_a_conditional_table_holds_distributions(rows):
    with pytest.raises(InvariantError, match="must be a distribution"):
        ConditionalTable(np.array(rows))


def test_a_network_refuses_tables_of_another_shape_and_orders_of_another_graph():
    network, _ = small_world()
    with pytest.raises(InvariantError, match="does not have the shape"):
        Network(network.attributes, network.graph, network.order, network.tables[::-1])
    with pytest.raises(ConfigError, match="before one of its parents"):
        Network(network.attributes, network.graph, (0, 1, 2), network.tables)


def test_a_network_wants_a_table_for_every_attribute():
    network, _ = small_world()
    with pytest.raises(InvariantError):
        Network(network.attributes, network.graph, network.order, network.tables[:2])
