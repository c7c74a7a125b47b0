"""Which noisy counts answer: never those that formed the cells, or chose the table."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import deniable
from deniable.answers.cell_bands import Bands
from deniable.answers.fresh_counts import PairwiseCounts, estimate_rows, measured_tables
from deniable.data.codec import Codec
from deniable.errors import ArtefactError
from toy_artefacts import SCHEMA, artefact_of, measure, toy_artefact, toy_codes, true_table

RNG = np.random.default_rng(9)


def by_source(artefact, columns):
    return {table.source: table for table in measured_tables(artefact, columns)}


def same(one, two):
    return np.allclose(one.estimate.cells, two.estimate.cells)


@pytest.fixture(scope="module")
def measured():
    return measure(7)


def disturbed(tables):
    """The same tables with other interactions, and the same margins."""
    return {pair: table + _swap(table.shape) for pair, table in tables.items()}


def _swap(shape):
    """Integers whose rows and columns sum to 0."""
    change = np.zeros(shape, dtype=np.int64)
    change[0, 0] = change[1, 1] = 500
    change[0, 1] = change[1, 0] = -500
    return change


def test_values_are_answered_by_one_way_counts_alone(measured):
    other = replace(
        measured, tables=disturbed(measured.tables), interactions={}, interaction_sigmas={}
    )
    one, two = (by_source(artefact_of(each), [0])["one-way counts"] for each in (measured, other))
    assert same(one, two)


def test_groups_are_answered_by_interactions_whether_or_not_the_pair_has_a_table(measured):
    """One-way counts formed the groups, and interactions chose the pairs with tables."""
    pair = next(pair for pair in measured.tables if pair in measured.interactions)
    other = replace(
        measured,
        tables=disturbed(measured.tables),
        values=tuple(own + 99 for own in measured.values),
    )
    one, two = (by_source(artefact_of(each), pair)["interactions"] for each in (measured, other))
    assert same(one, two)
    moved = {p: q + _swap(q.shape) for p, q in measured.interactions.items()}
    three = by_source(artefact_of(replace(measured, interactions=moved)), pair)["interactions"]
    assert not same(one, three)


def test_bins_are_answered_by_two_way_tables_alone(measured):
    """Not by the one-way counts that formed the bins, nor by what chose the pair."""
    pair = next(iter(measured.tables))
    other = replace(
        measured,
        interactions={p: q + _swap(q.shape) for p, q in measured.interactions.items()},
        values=tuple(own + 99 for own in measured.values),
    )
    for columns in (pair, pair[:1]):
        one, two = (by_source(artefact_of(e), columns)["two-way tables"] for e in (measured, other))
        assert same(one, two)


def test_a_pair_may_be_asked_for_in_either_order(measured):
    artefact = artefact_of(measured)
    one, two = measured_tables(artefact, [0, 1])[0], measured_tables(artefact, [1, 0])[0]
    assert np.allclose(one.estimate.cells, two.estimate.cells.T)
    weights = RNG.standard_normal(one.estimate.shape)
    assert np.isclose(one.estimate.variance(weights), two.estimate.variance(weights.T))
    assert [own.tolist() for own in one.parts] == [own.tolist() for own in two.parts[::-1]]


def test_a_column_without_any_two_way_table_has_no_counts_of_bins(measured):
    without = {pair: table for pair, table in measured.tables.items() if 0 not in pair}
    counts = {pair: measured.table_counts[pair] for pair in without}
    other = PairwiseCounts(replace(measured, tables=without, table_counts=counts))
    assert other.bins(0) is None
    assert other.groups_of((0, 1)) is None
    assert other.bins_of((0, 1)) is None


def test_without_noise_every_answer_is_the_table():
    exact = toy_artefact(epsilon=float("inf"))
    for columns in [(i,) for i in range(4)] + list(combinations(range(4), 2)):
        for table in measured_tables(exact, columns):
            bands = [
                Bands.of_parts(SCHEMA.attributes[column], parts)
                for column, parts in zip(columns, table.parts, strict=True)
            ]
            truth = true_table(columns, bands).reshape(table.estimate.shape)
            assert np.allclose(np.sort(table.estimate.cells, axis=None), np.sort(truth, axis=None))
            assert table.estimate.variance(np.ones(truth.shape)) < 1e-6


@pytest.mark.parametrize("epsilon", [1.0, float("inf")])
def test_rows_are_estimated_from_the_counts_of_any_estimator(epsilon):
    frame = Codec(SCHEMA).decode(toy_codes())
    graph = {"size": ["price"], "colour": ["size", "sold"], "sold": [], "price": ["sold"]}
    paper = deniable.learn(frame, SCHEMA, epsilon=epsilon, mode="seedless", graph=graph)
    for artefact in (paper, toy_artefact(epsilon=epsilon)):
        assert estimate_rows(artefact) == pytest.approx(800, abs=1e-6 if epsilon > 1 else 200)
    assert measured_tables(paper, [0]) == []


def test_an_impossible_part_of_the_rows_is_refused():
    frame = Codec(SCHEMA).decode(toy_codes())
    graph: dict[str, list[str]] = {name: [] for name in SCHEMA.names}
    paper = deniable.learn(frame, SCHEMA, epsilon=1.0, mode="seedless", graph=graph)
    parameters = {**paper.certificate.parameters, "fractions": {"parameters": 0.0}}
    hidden = replace(paper, certificate=replace(paper.certificate, parameters=parameters))
    with pytest.raises(ArtefactError, match="fraction"):
        estimate_rows(hidden)
