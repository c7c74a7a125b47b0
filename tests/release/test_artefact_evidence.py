"""Noisy counts in an artefact: they round-trip, and nothing else is stored."""

import math

import numpy as np
import pytest

import deniable
from deniable.errors import ArtefactError, InvariantError
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.parameters import TableCounts
from deniable.randomness import Keyed
from deniable.release.artefact_evidence import (
    describe_computer,
    describe_evidence,
    evidence_arrays,
    read_evidence,
    read_groups,
)


@pytest.fixture(scope="module", params=[1.0, math.inf], ids=["noise", "no noise"])
def artefact(request, small_table, small_schema):
    """Values and pairs; with noise, some pairs are remeasured."""
    return deniable.learn(
        small_table, small_schema, mode="seedless", epsilon=request.param, noise=Keyed(3)
    )


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


def test_values_and_pairs_round_trip(artefact):
    there, _, _ = round_trip(artefact)
    here = artefact.evidence
    assert isinstance(there, PairwiseMeasurements)
    assert (there.value_sigmas, there.pair_sigma, there.remeasured_sigma) == (
        here.value_sigmas, here.pair_sigma, here.remeasured_sigma,
    )  # fmt: skip
    assert (there.ratio, there.remeasure_counts) == (here.ratio, here.remeasure_counts)
    for one, two in ((here.values, there.values), (here.bins, there.bins)):
        assert all(map(np.array_equal, one, two))
    for ours, theirs in ((here.pairs, there.pairs), (here.remeasured, there.remeasured)):
        assert list(ours) == list(theirs)
        assert all(np.array_equal(ours[pair], theirs[pair]) for pair in ours)


def test_remeasured_pairs_are_stored(artefact):
    """Their number is the ledger's; without noise there are none."""
    here = artefact.evidence
    paid = {spend["what"]: spend["moved"] for spend in artefact.certificate.spends}
    assert sum(here.remeasure_counts.values()) == paid.get("remeasured pairs of attributes", 0)
    assert len(here.pairs) == paid["pairs of attributes"]


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
    assert kinds <= {"values", "bins", "groups", "pair", "again"}


def test_counts_of_an_unknown_kind_are_refused(artefact):
    _, arrays, described = round_trip(artefact)
    with pytest.raises(ArtefactError, match="an unknown kind"):
        read_evidence({**described, "kind": "exact"}, artefact.schema.names, taken(arrays))


def test_counts_of_inconsistent_shapes_are_refused(artefact):
    _, arrays, described = round_trip(artefact)
    names = artefact.schema.names
    for name, array in (
        ("values_0", arrays["values_0"][:-1]),
        ("bins_0", arrays["bins_0"][:-1]),
        ("pair_0_1", arrays["pair_0_1"][:, :-1]),
    ):
        with pytest.raises(InvariantError, match="have different shapes"):
            read_evidence(described, names, taken({**arrays, name: array}))
    with pytest.raises(InvariantError, match="have different shapes"):
        read_evidence({**described, "sigmas": [1.0]}, names, taken(arrays))
