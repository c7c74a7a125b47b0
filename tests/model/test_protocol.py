"""The protocol of generative models: every model of ours has its methods, and its law is one."""

import inspect
from itertools import product

import numpy as np
import pytest

from deniable.model.protocol import GenerativeModel
from deniable.model.seed_based import NetworkModel
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
