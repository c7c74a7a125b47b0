"""Graphs: merit and cost by the formulas, greedy search by trying everything, orders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import definitions
from deniable.counting.contingency import count_cells
from deniable.errors import ConfigError
from deniable.model.graph import Graph, check_order, cost, drawing_order, learn_graph, merit
from deniable.model.paper.correlation import (
    Correlations,
    correlations_from_entropies,
    measure_entropies,
)
from deniable.privacy.entropy_scale import EntropyScale
from worlds import codes_of, graphs, plain_attribute, property_test, schemas, tables

pytestmark = pytest.mark.slow


@st.composite
def correlations(draw, m):
    """Any correlations in [0, 1]: noise leaves them no more structure than symmetry."""
    number = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)
    with_parent = draw(hnp.arrays(np.float64, (m, m), elements=number))
    between = draw(hnp.arrays(np.float64, (m, m), elements=number))
    between = np.triu(between, 1) + np.triu(between, 1).T
    np.fill_diagonal(with_parent, 0)
    return Correlations(np.zeros(m), with_parent, between)


@st.composite
def searches(draw):
    """A schema, correlations (of a table, or any at all), and a limit of the cost."""
    schema = draw(schemas(least=2))
    if draw(st.booleans()):
        found = draw(correlations(len(schema)))
    else:
        codes = codes_of(draw(tables(schema, least=2, most=30)), len(schema))
        measured = measure_entropies(
            lambda queries: [count_cells(schema, codes, query) for query in queries],
            schema,
            EntropyScale(rows_max=100, bits=4),
        )
        found = correlations_from_entropies(
            schema, {query: float(s) for query, s in measured.items()}
        )
    return schema, found, draw(st.integers(1, 20))


def as_functions(found: Correlations):
    """Return corr(x_i, bkt x_j) and corr(x_j, x_k) as the definitions take them."""
    return (
        lambda i, j: float(found.with_parent[i, j]),
        lambda j, k: float(found.between[j, k]),
    )


def buckets(schema):
    return [len(set(attribute.groups)) for attribute in schema]


@property_test
@given(st.data(), st.integers(2, 5))
def test_merit_is_that_of_the_paper(data, m):
    found = data.draw(correlations(m))
    i = data.draw(st.integers(0, m - 1))
    parents = data.draw(st.lists(st.sampled_from([j for j in range(m) if j != i]), unique=True))
    expected = definitions.merit(i, parents, *as_functions(found))
    assert merit(i, parents, found) == pytest.approx(expected, rel=1e-12, abs=0)


def test_merit_by_hand():
    """(0.6 + 0.8) / √(2 + 2·0.5): both ordered pairs of the two parents count."""
    found = Correlations(
        np.zeros(3),
        np.array([[0, 0.6, 0.8], [0, 0, 0], [0, 0, 0]]),
        np.array([[0, 0, 0], [0, 0, 0.5], [0, 0.5, 0]]),
    )
    assert merit(0, [1, 2], found) == pytest.approx(1.4 / 3**0.5)


@property_test
@given(schemas(), st.data())
def test_cost_is_the_product_of_the_buckets(schema, data):
    parents = data.draw(st.lists(st.integers(0, len(schema) - 1), unique=True))
    assert cost(parents, schema) == definitions.cost(parents, buckets(schema))


@property_test
@given(searches())
def test_learn_graph_is_the_literal_greedy_search(search):
    schema, found, max_cost = search
    graph = learn_graph(found, schema, max_cost=max_cost)
    predicts, between = as_functions(found)
    ends = definitions.greedy_graphs(predicts, between, buckets(schema), max_cost=max_cost)
    assert graph.parents in ends


@property_test
@given(searches())
def test_a_learnt_graph_is_acyclic_and_within_its_cost(search):
    schema, found, max_cost = search
    parents = learn_graph(found, schema, max_cost=max_cost).parents
    assert not definitions.has_cycle(parents)
    assert all(definitions.cost(chosen, buckets(schema)) <= max_cost for chosen in parents)


@property_test
@given(schemas(least=2), st.data())
def test_max_cost_one_is_the_baseline_of_marginals(schema, data):
    """A parent of one bucket costs nothing, but in a real table it also predicts nothing."""
    codes = codes_of(data.draw(tables(schema, least=2, most=30)), len(schema))
    measured = measure_entropies(
        lambda queries: [count_cells(schema, codes, query) for query in queries],
        schema,
        EntropyScale(rows_max=100, bits=4),
    )
    found = correlations_from_entropies(schema, {query: float(s) for query, s in measured.items()})
    assert learn_graph(found, schema, max_cost=1) == Graph.without_edges(len(schema))


def test_ties_go_to_the_attribute_then_the_parent_named_first():
    """All correlations equal, one parent each at most: 1 → 0, then 2 → 1 as 0 → 1 is closed."""
    schema = [plain_attribute(f"x{i}", 2) for i in range(3)]
    half = np.full((3, 3), 0.5) - 0.5 * np.eye(3)
    graph = learn_graph(Correlations(np.zeros(3), half, half), schema, max_cost=2)
    assert graph.parents == ((1,), (2,), ())


def test_no_correlation_no_edge():
    schema = [plain_attribute(f"x{i}", 2) for i in range(3)]
    nothing = np.zeros((3, 3))
    found = Correlations(np.zeros(3), nothing, nothing)
    assert learn_graph(found, schema, max_cost=100) == Graph.without_edges(3)


def test_a_redundant_parent_is_not_added():
    """Twins predict no more than one of them: score 2c / √(2 + 2) = c, so nothing is gained."""
    schema = [plain_attribute(f"x{i}", 2) for i in range(3)]
    predicts = np.array([[0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]])
    between = np.array([[0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    graph = learn_graph(Correlations(np.zeros(3), predicts, between), schema, max_cost=100)
    assert graph.parents == ((1,), (), ())


@property_test
@given(st.integers(1, 6).flatmap(graphs), st.data())
def test_drawing_order_is_a_linear_extension(drawn, data):
    parents, _ = drawn
    entropies = data.draw(st.lists(st.floats(-9, 9), min_size=len(parents), max_size=len(parents)))
    order = drawing_order(Graph(parents), np.array(entropies))
    assert definitions.is_drawing_order(order, parents)
    assert check_order(Graph(parents), order) == order
    for place in range(len(order)):
        free = [i for i in order[place:] if set(parents[i]) <= set(order[:place])]
        assert entropies[order[place]] == min(entropies[i] for i in free)


@property_test
@given(st.integers(1, 5).flatmap(graphs), st.data())
def test_check_order_accepts_linear_extensions_and_nothing_else(drawn, data):
    parents, own = drawn
    assert check_order(Graph(parents), own) == own
    other = data.draw(st.permutations(own))
    if definitions.is_drawing_order(other, parents):
        assert check_order(Graph(parents), other) == tuple(other)
    else:
        with pytest.raises(ConfigError, match="before one of its parents"):
            check_order(Graph(parents), other)


@pytest.mark.parametrize("order", [(), (0,), (0, 0), (0, 1, 2), (1, 2)])
def test_check_order_wants_every_attribute_once(order):
    with pytest.raises(ConfigError, match="every attribute once"):
        check_order(Graph.without_edges(2), order)


@property_test
@given(st.integers(1, 4), st.data())
def test_a_graph_is_acyclic_or_refused(m, data):
    every = st.sets(st.integers(0, m - 1)).map(sorted).map(tuple)
    parents = tuple(data.draw(every) for _ in range(m))
    if definitions.has_cycle(parents):
        with pytest.raises(ConfigError):
            Graph(parents)
    else:
        assert Graph(parents).parents == parents


@pytest.mark.parametrize("parents", [((2, 1), (), ()), ((1, 1), (), ()), ((3,), (), ()), ((0,),)])
def test_a_graph_lists_other_attributes_ascending_and_once(parents):
    with pytest.raises(ConfigError, match="name other attributes, each once"):
        Graph(parents)


def test_a_graph_from_names():
    graph = Graph.from_names(["a", "b", "c"], {"c": ["b", "a"], "b": ["a"]})
    assert graph.parents == ((), (0,), (0, 1))


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"z": []}, '"z", which the schema does not describe'),
        ({"a": ["z"]}, '"z", which the schema does not describe'),
        ({"a": ["a"]}, '"a" itself as a parent'),
        ({"a": ["b", "b"]}, "or one twice"),
        ({"a": ["b"], "b": ["a"]}, "cycle"),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, "cycle"),
    ],
)
def test_invalid_graphs_from_names_are_refused(parents, message):
    with pytest.raises(ConfigError, match=message):
        Graph.from_names(["a", "b", "c"], parents)
