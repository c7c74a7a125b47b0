"""The protocol of generative models: every model of ours has its methods, and its law is one."""

import dataclasses
import inspect
from itertools import product

import numpy as np
import pytest

from deniable.config import Config
from deniable.counting.local import LocalRows
from deniable.model.learnt_model import LearntModel
from deniable.model.pairwise.fit import fit_network
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.parameters import TableCounts
from deniable.model.protocol import GenerativeModel
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.learn_model import learn_model
from deniable.pipeline.run_plan import Run, plan_run
from deniable.privacy.ledger import PARTS
from deniable.randomness import Keyed
from own_model import SetModel
from perturbation_model import PerturbationModel
from worlds import codes_of, small_world

METHODS = ("propose", "log_probability")


@pytest.mark.parametrize("model", [NetworkModel, PerturbationModel, SetModel])
@pytest.mark.parametrize("method", METHODS)
def test_models_have_the_methods_and_parameters_of_the_protocol(model, method):
    expected = inspect.signature(getattr(GenerativeModel, method))
    assert inspect.signature(getattr(model, method)) == expected


def test_the_protocol_has_no_other_methods():
    """A third method would be one more that users have to write."""
    public = [name for name in vars(GenerativeModel) if not name.startswith("_")]
    assert sorted(public) == sorted(METHODS)


def models() -> list[GenerativeModel]:
    """One of each, over the same three attributes."""
    network, _ = small_world()
    names = [attribute.name for attribute in network.attributes]
    marginals = [np.full(attribute.size, 1 / attribute.size) for attribute in network.attributes]
    return [
        NetworkModel(network, (1, 2)),
        PerturbationModel.of(network.attributes, stay=0.3, step=1.5),
        SetModel.of(names, [names[:1], names[1:]], marginals),
    ]


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_log_probability_is_a_law_under_which_every_candidate_is_possible(model):
    universe = codes_of(list(product(range(4), range(2), range(3))), 3)
    logs = model.log_probability(universe, universe)
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1, atol=1e-12)
    candidates = model.propose(universe, Keyed(5).at("candidates"))
    assert candidates.shape == universe.shape
    assert np.isfinite(np.diagonal(model.log_probability(candidates, universe))).all()


def learnt(schema, codes, **options) -> tuple[LearntModel, Run]:
    config = Config.assemble({"mode": "seedless", **options})
    run = Run(schema=schema, config=config, plan=plan_run(schema, config), randomness=Keyed(3))
    return learn_model(dict.fromkeys(map(str, PARTS), LocalRows(codes)), run), run


def test_the_network_is_post_processing_of_the_evidence(small_schema, small_codes):
    """Fitted again from the noisy counts, without the table: the same network, to the bit."""
    model, run = learnt(small_schema, small_codes)
    assert isinstance(model.evidence, PairwiseMeasurements)
    again = fit_network(
        model.evidence, small_schema.attributes, max_cost=run.config.max_configurations
    )
    assert again.graph == model.network.graph
    assert again.order == model.network.order
    for one, two in zip(again.tables, model.network.tables, strict=True):
        np.testing.assert_array_equal(one.probabilities, two.probabilities)


@pytest.mark.parametrize(
    ("estimator", "kind"), [("pairs", PairwiseMeasurements), ("norm-sub", TableCounts)]
)
def test_each_estimator_has_its_own_evidence_and_the_spends_of_its_plan(
    small_schema, small_codes, estimator, kind
):
    model, run = learnt(small_schema, small_codes, estimator=estimator)
    assert isinstance(model.evidence, kind)
    assert [spend.what for spend in model.spends] == [s.what for s in run.plan.privacy.spends]


def test_without_noise_the_number_of_seeds_is_the_number_of_rows(small_schema, small_codes):
    for estimator in ("pairs", "norm-sub"):
        exact, _ = learnt(small_schema, small_codes, estimator=estimator, epsilon=float("inf"))
        noisy, _ = learnt(small_schema, small_codes, estimator=estimator)
        assert exact.seed_count == 2_000
        assert noisy.seed_count != 2_000


def test_a_model_is_a_value_and_its_repr_has_no_counts(small_schema, small_codes):
    model, _ = learnt(small_schema, small_codes, epsilon=float("inf"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.seed_count = 5  # type: ignore[misc]  # it is frozen: that is the point
    assert "evidence" not in repr(model)
    assert "array(" not in repr(model)
