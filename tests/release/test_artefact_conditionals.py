"""Conditional distributions in an artefact: they round-trip, and impossible ones are refused."""

from typing import Any

import numpy as np
import pytest

from deniable.errors import ArtefactError, InvariantError
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.release.artefact_conditionals import conditional_arrays, read_conditional
from worlds import plain_attribute

BINS = np.array([0, 0, 1, 2])
GROUPS = (np.array([0, 1, 1]), np.array([0, 1, 2]))


def log_linear() -> LogLinearConditional:
    """Three bins of four values, given a parent in two groups and one in three."""
    rng = np.random.default_rng(4)
    effects = [rng.normal(size=(2, 3)), rng.normal(size=(3, 3))]
    shares = np.array([0.3, 0.7, 1.0, 1.0])
    return LogLinearConditional.of(rng.normal(size=3), effects, BINS, shares)


@pytest.fixture
def network() -> Network:
    """Two attributes without parents, one of them log-linear, and one that depends on both."""
    attributes = tuple(plain_attribute(f"x{i}", size) for i, size in enumerate((3, 3, 4)))
    bare = LogLinearConditional.of(np.zeros(3), (), np.arange(3), np.ones(3))
    table = ConditionalTable(np.array([[0.5, 0.25, 0.25]]))
    graph = Graph(((), (), (0, 1)))
    return Network(attributes, graph, (0, 1, 2), (table, bare, log_linear()), ((), (), GROUPS))


def read(arrays: dict[str, Any], i: int = 2, bins: Any = BINS, groups: Any = GROUPS) -> Any:
    def take(name: str, dtype: Any) -> Any:
        assert arrays[name].dtype == dtype
        return arrays[name]

    return read_conditional(i, bins=bins, groups=groups, take=take)


def test_every_kind_of_distribution_round_trips(network):
    arrays = conditional_arrays(network)
    assert set(arrays) == {
        *("probabilities_0", "base_1", "effects_1", "within_1"),
        *("base_2", "effects_2", "within_2"),
    }
    table = read(arrays, 0, None, ())
    assert np.array_equal(table.probabilities, network.tables[0].probabilities)
    for i, bins, groups in ((1, np.arange(3), ()), (2, BINS, GROUPS)):
        here, there = network.tables[i], read(arrays, i, bins, groups)
        assert isinstance(here, LogLinearConditional)
        assert len(here.effects) == len(there.effects) == len(groups)
        parts = [(each.base, each.within, each.bins, *each.effects) for each in (here, there)]
        for ours, theirs in zip(*parts, strict=True):
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)


def test_what_is_read_is_stored_as_the_same_arrays(network):
    arrays = conditional_arrays(network)
    read_again = (
        read(arrays, 0, None, ()),
        read(arrays, 1, np.arange(3), ()),
        read(arrays),
    )
    again = Network(network.attributes, network.graph, network.order, read_again, network.groups)
    stored = conditional_arrays(again)
    assert list(stored) == list(arrays)
    assert all(stored[name].tobytes() == arrays[name].tobytes() for name in arrays)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("effects_2", lambda effects: effects[:-1]),
        ("effects_2", lambda effects: effects[:-3]),
        ("effects_2", lambda effects: np.append(effects, np.int32(0))),
        ("effects_2", lambda effects: effects[:0]),
        ("effects_2", lambda effects: effects[:, None]),
        ("effects_2", lambda effects: effects[0]),
        ("base_2", lambda base: base[:-1]),
        ("base_2", lambda base: base[:0]),
        ("base_2", lambda base: base[:, None]),
        ("base_2", lambda base: base[0]),
    ],
)
def test_effects_of_another_size_are_refused(network, name, change):
    arrays = conditional_arrays(network)
    with pytest.raises(ArtefactError, match="do not fit its parents"):
        read({**arrays, name: np.asarray(change(arrays[name]))})


def test_effects_of_a_distribution_without_parents_are_refused(network):
    arrays = conditional_arrays(network)
    with pytest.raises(ArtefactError, match="do not fit its parents"):
        read({**arrays, "effects_1": np.zeros(3, dtype=np.int32)}, 1, np.arange(3), ())


@pytest.mark.parametrize("name", ["base_2", "effects_2"])
@pytest.mark.parametrize("value", [2**20 + 1, -(2**20) - 1, 2**31 - 1, -(2**31)])
def test_logarithms_that_could_overflow_are_refused(network, name, value):
    """The smallest integer too, whose absolute value is not representable."""
    arrays = conditional_arrays(network)
    other = arrays[name].copy()
    other[0] = value
    with pytest.raises(InvariantError, match="invalid bins or weights"):
        read({**arrays, name: other})


def test_logarithms_whose_sum_could_overflow_are_refused():
    """1,100 parents of the largest effects: differences of the sums need more than 32 bits."""
    parents, largest = 1_100, 2**20
    arrays: dict[str, Any] = {
        "base_0": np.zeros(2, dtype=np.int32),
        "effects_0": np.tile(np.array([largest, -largest], dtype=np.int32), 2 * parents),
        "within_0": np.full(2, 2**32, dtype=np.int64),
    }
    groups = (np.arange(2),) * parents
    with pytest.raises(InvariantError, match="invalid bins or weights"):
        read(arrays, 0, np.arange(2), groups)
    arrays["effects_0"] //= 2
    assert len(read(arrays, 0, np.arange(2), groups).effects) == parents


@pytest.mark.parametrize(
    "within",
    [
        [2**31, 2**31 + 1, 2**32, 2**32],
        [2**31, 2**31, 2**32, 2**32 - 1],
        [-1, 2**32 + 1, 2**32, 2**32],
        [2**63 - 1, 2**63 - 1, 2**32, 2**32],
        [-(2**63), -(2**63) + 2**32, 2**32, 2**32],
        [0, 0, 0, 0],
    ],
)
def test_weights_that_are_not_those_of_a_distribution_are_refused(network, within):
    arrays = conditional_arrays(network)
    with pytest.raises(InvariantError, match="invalid bins or weights"):
        read({**arrays, "within_2": np.array(within, dtype=np.int64)})


@pytest.mark.parametrize("within", [np.full(3, 2**32), np.full((4, 1), 2**32), np.array(2**32)])
def test_weights_of_another_shape_are_refused(network, within):
    arrays = conditional_arrays(network)
    with pytest.raises(InvariantError, match="different shapes"):
        read({**arrays, "within_2": within})


@pytest.mark.parametrize("bins", [[0, 0, 1, 1], [1, 1, 2, 2], [0, 2, 2, 2], [0, 1, 0, 2]])
def test_bins_that_do_not_ascend_are_refused(network, bins):
    with pytest.raises(InvariantError, match="invalid bins or weights"):
        read(conditional_arrays(network), bins=np.array(bins))
