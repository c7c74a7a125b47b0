"""The paper's model: a graph that is given or learnt, its tables, and the number of seeds."""

import pytest

import deniable
from deniable.errors import ConfigError, InvariantError
from deniable.pipeline import learn_paper_model
from small_runs import INF, MODES, NOISE, synthesize


@pytest.mark.parametrize("mode", MODES)
def test_a_given_graph_is_used_and_not_paid_for(small_table, small_schema, mode):
    graph = {"pet": ["home"], "boats": ["home", "pet"]}
    release = synthesize(small_table, small_schema, mode, 5, graph=graph, epsilon=INF)
    whats = {spend["what"] for spend in release.certificate.spends}
    assert not whats & {"entropies", "number of records"}
    assert release.certificate.parameters["graph"] == "given"
    if release.artefact is not None:
        parents = release.artefact.network.graph.parents
        assert parents == ((), (), (), (2, 4), (2,))


def test_a_given_order_is_the_one_that_is_drawn_in(small_table, small_schema):
    order = ["home", "pet", "boats", "years", "trade"]
    artefact = deniable.learn(
        small_table, small_schema, graph={"pet": ["home"]}, order=order, epsilon=INF, omega="3"
    )
    assert [small_schema.names[i] for i in artefact.network.order] == order
    assert artefact.histogram.length == 2


def test_a_graph_without_edges_is_the_paper_s_marginals(small_table, small_schema):
    artefact = deniable.learn(small_table, small_schema, graph={}, epsilon=INF, mode="seedless")
    assert artefact.network.graph.parents == ((),) * 5


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"graph": {"stranger": []}}, "stranger"),
        ({"graph": {"pet": ["stranger"]}}, "stranger"),
        ({"graph": {"pet": ["pet"]}}, "itself"),
        ({"graph": {"pet": ["home"], "home": ["pet"]}}, "cycle"),
        ({"graph": {}, "order": ["pet"]}, "every attribute once"),
        ({"graph": {}, "order": ["pet"] * 5}, "every attribute once"),
        ({"graph": {}, "order": ["stranger", "home", "boats", "trade", "years"]}, "stranger"),
        (
            {"graph": {"pet": ["home"]}, "order": ["pet", "home", "boats", "trade", "years"]},
            "before one of its parents",
        ),
    ],
)
def test_a_structure_that_cannot_be_is_refused(small_table, small_schema, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        deniable.learn(small_table, small_schema, epsilon=INF, **options)


@pytest.mark.parametrize("graph", [None, {"pet": ["home"]}])
def test_the_number_of_seeds_is_estimated_from_noisy_numbers(small_table, small_schema, graph):
    """With a given graph nothing but tables is counted: the smallest one has the least noise."""
    options = {"mode": "one-shot", "k": 20, "omega": "3", "estimator": "norm-sub", "graph": graph}
    exact = deniable.learn(small_table, small_schema, epsilon=INF, **options)
    assert exact.histogram.records == 2_000
    noisy = deniable.learn(small_table, small_schema, noise=NOISE, **options)
    assert noisy.histogram.records != 2_000
    if graph is not None:
        smallest = min(noisy.evidence.tables, key=lambda table: table.size)
        assert noisy.histogram.records == smallest.sum()


def test_a_stage_that_drops_a_spend_stops_everything(small_table, small_schema, monkeypatch):
    learn_correlations = learn_paper_model.learn_correlations

    def forget(*args):
        correlations, records, spends = learn_correlations(*args)
        return correlations, records, spends[:1]

    monkeypatch.setattr(learn_paper_model, "learn_correlations", forget)
    with pytest.raises(InvariantError, match="ledger does not equal the plan"):
        synthesize(small_table, small_schema, "seedless", 5, estimator="norm-sub")
