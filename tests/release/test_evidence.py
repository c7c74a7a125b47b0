"""Noisy counts on their way to disk and back: nothing is lost, nothing else is taken."""

import math
from dataclasses import replace

import numpy as np
import pytest

import deniable
from deniable.errors import ArtefactError, InvariantError, VerificationError
from deniable.model.pairs import Measured
from deniable.model.parameters import TableCounts
from deniable.randomness import Keyed
from deniable.release.evidence import (
    arrays_of,
    computer,
    describe,
    read_evidence,
    read_groups,
)
from deniable.release.trust import _require_chosen


@pytest.fixture(scope="module", params=[1.0, math.inf], ids=["noise", "no noise"])
def artefact(request, small_table, small_schema):
    """Values and pairs; with noise some of them were looked at again."""
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
    arrays = arrays_of(artefact.evidence, artefact.network)
    described = describe(artefact.evidence, names)
    return read_evidence(described, names, taken(arrays)), arrays, described


def test_values_and_pairs_come_back_as_they_were(artefact):
    there, _, _ = round_trip(artefact)
    here = artefact.evidence
    assert isinstance(there, Measured)
    assert (there.sigmas, there.sigma, there.sigma_again) == (
        here.sigmas, here.sigma, here.sigma_again,
    )  # fmt: skip
    assert (there.ratio, there.looks) == (here.ratio, here.looks)
    for one, two in ((here.values, there.values), (here.bins, there.bins)):
        assert all(map(np.array_equal, one, two))
    for one, two in ((here.pairs, there.pairs), (here.again, there.again)):
        assert list(one) == list(two)
        assert all(np.array_equal(one[pair], two[pair]) for pair in one)


def test_what_was_looked_at_again_is_kept(artefact):
    """All looks together are those that were paid for; without noise there are none."""
    here = artefact.evidence
    paid = {spend["what"]: spend["moved"] for spend in artefact.certificate.spends}
    assert sum(here.looks.values()) == paid.get("second look at pairs", 0)
    assert len(here.pairs) == paid["pairs of attributes"]


def test_the_computer_that_fitted_is_told_and_kept(artefact):
    there, _, described = round_trip(artefact)
    assert artefact.evidence.fitted_with == ""
    assert described["fitted_with"] == computer() == there.fitted_with
    assert describe(there, artefact.schema.names) == described


def test_groups_come_back_as_they_were(artefact, of_tables):
    parents = artefact.network.graph.parents
    assert any(parents)
    groups = read_groups(
        artefact.evidence, parents, taken(arrays_of(artefact.evidence, artefact.network))
    )
    for one, two in zip(groups, artefact.network.groups, strict=True):
        assert all(map(np.array_equal, one, two))
    assert read_groups(of_tables.evidence, parents, taken({})) == ()


def test_counts_of_tables_come_back_as_they_were(of_tables):
    there, arrays, described = round_trip(of_tables)
    assert isinstance(there, TableCounts)
    assert described["kind"] == "tables"
    assert set(arrays) == {f"counts_{i}" for i in range(5)}
    assert all(map(np.array_equal, there.tables, of_tables.evidence.tables))


def test_nothing_but_noisy_counts_and_groups_is_stored(artefact):
    """No other array may leave: whatever is stored is in the ledger, or follows from what is."""
    _, arrays, _ = round_trip(artefact)
    kinds = {name.partition("_")[0] for name in arrays}
    assert kinds <= {"values", "bins", "groups", "pair", "again"}


def test_counts_of_no_known_kind_are_refused(artefact):
    _, arrays, described = round_trip(artefact)
    with pytest.raises(ArtefactError, match="no known kind"):
        read_evidence({**described, "kind": "exact"}, artefact.schema.names, taken(arrays))


def test_counts_that_do_not_fit_are_refused(artefact):
    _, arrays, described = round_trip(artefact)
    names = artefact.schema.names
    for name, array in (
        ("values_0", arrays["values_0"][:-1]),
        ("bins_0", arrays["bins_0"][:-1]),
        ("pair_0_1", arrays["pair_0_1"][:, :-1]),
    ):
        with pytest.raises(InvariantError, match="do not fit"):
            read_evidence(described, names, taken({**arrays, name: array}))
    with pytest.raises(InvariantError, match="do not fit"):
        read_evidence({**described, "sigmas": [1.0]}, names, taken(arrays))


def test_bins_and_looks_that_do_not_follow_from_noisy_counts_are_refused(small_table, small_schema):
    """They could carry something exact: the model fitted to them would follow from them."""
    learnt = deniable.learn(small_table, small_schema, mode="seedless", noise=Keyed(3))
    measured = learnt.evidence
    _require_chosen(measured, small_schema)
    joined = tuple(np.zeros_like(groups) for groups in measured.bins)
    pairs = {pair: np.array([[int(t.sum())]]) for pair, t in measured.pairs.items()}
    again = {pair: np.array([[int(t.sum())]]) for pair, t in measured.again.items()}
    with pytest.raises(VerificationError, match="bins"):
        _require_chosen(replace(measured, bins=joined, pairs=pairs, again=again), small_schema)
    first = next(iter(measured.looks))
    elsewhere = {**dict.fromkeys(measured.looks, 0), first: sum(measured.looks.values())}
    with pytest.raises(VerificationError, match="second look"):
        _require_chosen(replace(measured, looks=elsewhere), small_schema)
