"""Noisy counts and distributions in an artefact: they round-trip, and nothing else is stored."""

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import deniable
from deniable.errors import ArtefactError, InvariantError
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.pairwise.three_way_effects import TripleEffect, TripleParents
from deniable.model.paper.parameters import TableCounts
from deniable.randomness import Keyed
from deniable.release.artefact_arrays import (
    conditional_arrays,
    describe_computer,
    describe_evidence,
    evidence_arrays,
    read_conditional,
    read_evidence,
    read_groups,
)
from deniable.release.atomic_files import encode_json, pack_npz
from deniable.schema.schema import Schema
from worlds import plain_attribute


@pytest.fixture(scope="module", params=[1.0, math.inf], ids=["noise", "no noise"])
def artefact(request, small_table, small_schema):
    """One-way tables, interactions and two-way tables; without noise, no interactions."""
    return deniable.learn(
        small_table, small_schema, mode="seedless", epsilon=request.param, noise=Keyed(3)
    )


@pytest.fixture(scope="module")
def of_triples():
    """Three columns, one of which is the parity of the others."""
    draws = np.random.default_rng(5).integers(0, 2, (4_000, 2))
    columns = {"x0": draws[:, 0], "x1": draws[:, 1], "x2": draws.sum(axis=1) % 2}
    schema = Schema(tuple(plain_attribute(f"x{i}", 2) for i in range(3)))
    table = pl.DataFrame({name: [f"{name}{v}" for v in own] for name, own in columns.items()})
    return deniable.learn(table, schema, mode="seedless", epsilon=3.0, noise=Keyed(3))


@pytest.fixture(scope="module")
def of_tables(small_table, small_schema):
    return deniable.learn(
        small_table, small_schema, mode="seedless", estimator="norm-sub", noise=Keyed(3)
    )


def taken(arrays):
    def take(name, dtype):
        assert arrays[name].dtype == dtype
        return arrays[name]

    return take


def round_trip(artefact):
    names = artefact.schema.names
    arrays = evidence_arrays(artefact.evidence, artefact.network)
    described = describe_evidence(artefact.evidence, names)
    return read_evidence(described, names, taken(arrays)), arrays, described


def test_values_interactions_and_tables_round_trip(artefact):
    there, _, _ = round_trip(artefact)
    here = artefact.evidence
    assert isinstance(there, PairwiseMeasurements)
    for name in ("value_sigmas", "interaction_sigmas", "table_sigma", "table_counts"):
        assert getattr(there, name) == getattr(here, name), name
    for name in ("values", "bins", "groups"):
        assert all(map(np.array_equal, getattr(here, name), getattr(there, name))), name
    for name in ("interactions", "tables"):
        ours, theirs = getattr(here, name), getattr(there, name)
        assert list(ours) == list(theirs)
        assert all(np.array_equal(ours[pair], theirs[pair]) for pair in ours), name
    listed = {part.name for part in fields(PairwiseMeasurements)}
    assert there.three_way is None is here.three_way
    assert len(listed) == 11, "a part that is added is compared above or below"


def test_three_way_interactions_round_trip(of_triples):
    here, (there, arrays, described) = of_triples.evidence, round_trip(of_triples)
    assert there.three_way.sigmas == here.three_way.sigmas
    assert len(there.three_way.sigmas) == 1
    for one, two in zip(there.three_way.groups, here.three_way.groups, strict=True):
        assert np.array_equal(one, two)
    for triple, table in here.three_way.interactions.items():
        assert np.array_equal(there.three_way.interactions[triple], table)
    assert sum(name.startswith("triple") for name in arrays) == 5
    changes = {
        "triplesigmas": lambda sigmas: sigmas - sigmas,
        "triples": lambda table: table[:-1],
        "triplegrouping_1": lambda groups: groups + 1,
    }
    for name, change in changes.items():
        wrong = {**arrays, name: change(arrays[name])}
        with pytest.raises(ArtefactError, match=r"impossible|number of cells|numbered from 0"):
            read_evidence(described, of_triples.schema.names, taken(wrong))
    missing = {**arrays, "triplesigmas": np.array([1.0, 1.0])}
    with pytest.raises(ArtefactError, match="pairs or triples"):
        read_evidence(described, of_triples.schema.names, taken(missing))


def test_what_is_read_is_described_and_stored_as_the_same_bytes(artefact, of_tables):
    for each in (artefact, of_tables):
        there, arrays, described = round_trip(each)
        again = evidence_arrays(there, each.network)
        assert encode_json(describe_evidence(there, each.schema.names)) == encode_json(described)
        assert pack_npz(again) == pack_npz(arrays)


def test_measured_pairs_are_those_of_the_ledger(artefact):
    """With noise, the interactions of all pairs; the number of tables is that which was paid."""
    here = artefact.evidence
    paid = {spend["what"]: spend["moved"] for spend in artefact.certificate.spends}
    # Without three-way interactions, their budget pays for further tables: 15 in a hundred.
    further = 6 if "three-way interactions" in paid else 0
    assert sum(here.table_counts.values()) == paid["pairs of attributes"] + further
    assert len(here.interactions) == (10 if "interactions of pairs" in paid else 0)
    assert bool(here.interactions) == (here.table_sigma > 0)


def test_evidence_of_one_attribute_has_no_pairs(small_table, small_schema):
    schema = replace(small_schema, columns=small_schema.columns[:1])
    alone = deniable.learn(small_table.select("years"), schema, mode="seedless", noise=Keyed(3))
    there, arrays, _ = round_trip(alone)
    assert (there.interactions, there.tables) == ({}, {})
    assert [arrays[name].size for name in ("interactions", "tables", "sigmas")] == [0, 0, 0]


def test_the_computer_that_fitted_the_model_is_stored(artefact):
    there, _, described = round_trip(artefact)
    assert artefact.evidence.fitted_with == ""
    assert described["fitted_with"] == describe_computer() == there.fitted_with
    assert describe_evidence(there, artefact.schema.names) == described


def test_groups_round_trip(artefact, of_tables):
    parents = artefact.network.graph.parents
    assert any(parents)
    groups = read_groups(
        artefact.evidence, parents, taken(evidence_arrays(artefact.evidence, artefact.network))
    )
    for one, two in zip(groups, artefact.network.groups, strict=True):
        assert all(map(np.array_equal, one, two))
    assert read_groups(of_tables.evidence, parents, taken({})) == ()


def test_counts_of_tables_round_trip(of_tables):
    there, arrays, described = round_trip(of_tables)
    assert isinstance(there, TableCounts)
    assert described["kind"] == "tables"
    assert set(arrays) == {f"counts_{i}" for i in range(5)}
    assert all(map(np.array_equal, there.tables, of_tables.evidence.tables))


def test_nothing_but_noisy_counts_and_groups_is_stored(artefact):
    """Every stored array is in the ledger, or follows from arrays that are."""
    _, arrays, _ = round_trip(artefact)
    kinds = {name.partition("_")[0] for name in arrays}
    derived = {"bins", "grouping", "groups", "sigmas"}
    assert kinds == {"values", "interactions", "tables"} | derived


def test_counts_of_an_unknown_kind_are_refused(artefact):
    _, arrays, described = round_trip(artefact)
    with pytest.raises(ArtefactError, match="an unknown kind"):
        read_evidence({**described, "kind": "exact"}, artefact.schema.names, taken(arrays))


@pytest.mark.parametrize("name", ["values_0", "bins_0", "grouping_0", "tables"])
def test_counts_of_inconsistent_shapes_are_refused(artefact, name):
    _, arrays, described = round_trip(artefact)
    for other in (arrays[name][:-1], np.append(arrays[name], arrays[name][-1:])):
        with pytest.raises((ArtefactError, InvariantError), match=r"shapes|number of cells"):
            read_evidence(described, artefact.schema.names, taken({**arrays, name: other}))


def test_another_number_of_deviations_is_refused(artefact):
    _, arrays, described = round_trip(artefact)
    names = artefact.schema.names
    with pytest.raises(InvariantError, match="have different shapes"):
        read_evidence({**described, "sigmas": [1.0]}, names, taken(arrays))
    more = np.append(arrays["sigmas"], 1.0)
    with pytest.raises(ArtefactError, match="another number of"):
        read_evidence(described, names, taken({**arrays, "sigmas": more}))


def test_another_list_of_pairs_is_refused(artefact):
    """A pair less, or of attributes in other bins: the cells do not add up."""
    _, arrays, described = round_trip(artefact)
    for listed in (described["tables"][1:], [*described["tables"][1:], ["boats", "pet", 1]][:1]):
        with pytest.raises(ArtefactError, match="another number of cells"):
            read_evidence({**described, "tables": listed}, artefact.schema.names, taken(arrays))


@pytest.mark.parametrize("name", ["bins_1", "grouping_1"])
@pytest.mark.parametrize(
    ("place", "value", "said"),
    [(0, -1, "from 0"), (-1, 2**62, "from 0"), (0, 2, "without gaps")],
)
def test_bins_and_groups_are_numbered_from_0_without_gaps(artefact, name, place, value, said):
    _, arrays, described = round_trip(artefact)
    other = arrays[name].copy()
    other[place] = value
    with pytest.raises(ArtefactError, match=said):
        read_evidence(described, artefact.schema.names, taken({**arrays, name: other}))


@pytest.mark.parametrize("sigma", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("name", ["sigmas", "table_sigma", "interactions"])
def test_impossible_noise_is_refused(artefact, name, sigma):
    _, arrays, described = round_trip(artefact)
    if name == "interactions":
        arrays = {**arrays, "sigmas": np.full(10, sigma)}
    else:
        wrong = [sigma] * 5 if name == "sigmas" else sigma
        described = {**described, name: wrong}
    with pytest.raises(ArtefactError, match="impossible"):
        read_evidence(described, artefact.schema.names, taken(arrays))


# Conditional distributions


BINS = np.array([0, 0, 1, 2])
GROUPS = (np.array([0, 1, 1]), np.array([0, 1, 2]))


def log_linear() -> LogLinearConditional:
    """Three bins of four values, given a parent in two groups and one in three."""
    rng = np.random.default_rng(4)
    effects = [rng.normal(size=(2, 3)), rng.normal(size=(3, 3))]
    shares = np.array([0.3, 0.7, 1.0, 1.0])
    parents = TripleParents(
        first=0,
        second=1,
        first_groups=np.arange(GROUPS[0].max() + 1),
        second_groups=np.zeros(GROUPS[1].max() + 1, dtype=np.intp),
        child_groups=np.array([0, 1, 1]),
    )
    triple = TripleEffect(parents=parents, effect=rng.normal(size=(GROUPS[0].max() + 1, 2)))
    return LogLinearConditional.of(rng.normal(size=3), effects, BINS, shares, triples=[triple])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("jointparents_2", lambda parents: parents[:-1]),
        ("jointparents_2", lambda parents: parents[::-1]),
        ("jointparents_2", lambda parents: parents + 1),
        ("jointparents_2", lambda parents: parents - 1),
        ("jointgroups_2", lambda groups: groups[:-1]),
        ("jointgroups_2", lambda groups: groups + 1),
        ("jointgroups_2", lambda groups: groups - 1),
        ("jointgroups_2", lambda groups: groups + 10**6),
        ("jointeffects_2", lambda effects: effects[:-1]),
        ("jointeffects_2", lambda effects: np.append(effects, np.int32(0))),
        ("jointeffects_2", lambda effects: effects[:, None]),
        ("jointeffects_2", lambda effects: effects * 0 + 2**20 + 1),
    ],
)
def test_effects_of_pairs_of_parents_that_do_not_fit_are_refused(network, name, change):
    arrays = conditional_arrays(network)
    wrong = "pairs of parents do not fit|different shapes|invalid bins or weights"
    with pytest.raises((ArtefactError, InvariantError), match=wrong):
        read({**arrays, name: np.ascontiguousarray(change(arrays[name]))})


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


def joint_parts(table):
    """All numbers of the effects of pairs of parents."""
    return [
        np.asarray(getattr(each, name))
        for each in table.joint
        for name in ("first", "second", "first_groups", "second_groups", "effects")
    ]


def test_every_kind_of_distribution_round_trips(network):
    arrays = conditional_arrays(network)
    assert set(arrays) == {
        "probabilities_0",
        *(f"{name}_{i}" for name in ("base", "effects", "within") for i in (1, 2)),
        *(f"joint{name}_{i}" for name in ("parents", "groups", "effects") for i in (1, 2)),
    }
    table = read(arrays, 0, None, ())
    assert np.array_equal(table.probabilities, network.tables[0].probabilities)
    for i, bins, groups in ((1, np.arange(3), ()), (2, BINS, GROUPS)):
        here, there = network.tables[i], read(arrays, i, bins, groups)
        assert isinstance(here, LogLinearConditional)
        assert len(here.effects) == len(there.effects) == len(groups)
        assert len(here.joint) == len(there.joint) == (i == 2)
        parts = [
            (each.base, each.within, each.bins, *each.effects, *joint_parts(each))
            for each in (here, there)
        ]
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
        **{f"joint{name}_0": np.empty(0, dtype=np.intp) for name in ("parents", "groups")},
        "jointeffects_0": np.empty(0, dtype=np.int32),
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
