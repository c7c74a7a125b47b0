"""Relations: the figures are those of the literal definitions; lost relations are found."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

import relation_definitions as slow
from deniable.evaluation.reference_tables import EvaluationTables, independent_columns
from deniable.evaluation.relations import (
    Association,
    Relations,
    measure_relations,
)
from deniable.randomness import Keyed
from deniable.schema.attribute import Attribute

ATTRIBUTES = (
    Attribute(name="years", kind="integer", values=range(20, 90)),
    Attribute(name="pay", kind="integer", values=range(2_000), missing=("?",)),
    Attribute(name="hours", kind="integer", values=range(60)),
    Attribute(name="trade", kind="categorical", values=tuple("abcdefghijklmnop")),
    Attribute(name="home", kind="categorical", values=("flat", "house", "none")),
    Attribute(name="constant", kind="categorical", values=("x", "y")),
)


def rows_of(count, seed):
    """Dependent columns: rare trades, a frequent number, missing cells, a forbidden combination."""
    rng = np.random.default_rng(seed)
    trade = np.minimum(rng.geometric(0.25, count) - 1, 15)
    home = np.where(trade == 0, rng.choice(2, count), 2 - (rng.random(count) < 0.6))
    years = np.clip(rng.normal(20 + 4 * home, 12, count).astype(int), 0, 69)
    hours = np.where(
        rng.random(count) < 0.4, 40, np.clip(rng.binomial(59, 0.5, count) + home, 0, 59)
    )
    pay = np.clip(20 * years + 5 * hours + rng.normal(0, 200, count).astype(int), 0, 1_999)
    pay = np.where(rng.random(count) < 0.1, 2_000, pay)
    columns = [years, pay, hours, trade, home, np.zeros(count, dtype=int)]
    return np.asfortranarray(np.stack(columns, axis=1).astype(np.uint16))


def values_of(codes):
    """The same rows for the slow definitions; the constant column has no relations."""
    found = {}
    for at, attribute in enumerate(ATTRIBUTES[:5]):
        if attribute.is_numeric:
            found[attribute.name] = [
                None if code == attribute.missing_code else float(attribute.values[code])
                for code in codes[:, at].tolist()
            ]
        else:
            found[attribute.name] = [attribute.values[code] for code in codes[:, at].tolist()]
    return found


@pytest.fixture(scope="module")
def compared():
    """Real rows, held-out rows, and records of which some columns were drawn anew."""
    real, holdout, released = rows_of(700, 1), rows_of(400, 2), rows_of(500, 3)
    released[:, 2] = independent_columns(real, 500, Keyed(1).at("records"))[:, 2]
    half = released[:250]
    half[:] = independent_columns(real, 250, Keyed(2).at("records"))
    return real, holdout, released


@pytest.fixture(scope="module")
def found(compared):
    real, holdout, released = compared
    tables = EvaluationTables.of(real, released, holdout, key=0)
    return measure_relations(ATTRIBUTES, tables, real, key=0)


def test_the_figures_are_those_of_the_definitions(compared, found):
    real, holdout, released = map(values_of, compared)
    tables = EvaluationTables.of(compared[0], compared[2], compared[1], key=0)
    mixed = values_of(tables.marginals)
    for measured, other in (
        (found.released, released),
        (found.reals, real),
        (found.independent, mixed),
    ):
        expected = slow.figures(real, holdout, other)
        assert asdict(measured) == pytest.approx(expected, abs=1e-9)
    assert found.released.impossible > 0.01
    assert 0 < found.released.correlations_kept < 0.7 < found.reals.correlations_kept


def test_without_held_out_rows_the_reference_is_the_table_and_halves_are_the_ceiling(compared):
    real, _, released = compared
    tables = EvaluationTables.of(real, released, None, key=0)
    found = measure_relations(ATTRIBUTES, tables, real, key=0)
    first, second = map(values_of, tables.ceiling)
    expected = slow.figures(values_of(real), values_of(real), values_of(released))
    assert asdict(found.released) == pytest.approx(expected, abs=1e-9)
    halves = slow.figures(values_of(real), second, first)
    halves["impossible"] = 0.0  # every combination of a half is one of the table
    assert asdict(found.reals) == pytest.approx(halves, abs=1e-9)


def test_a_copy_keeps_everything_and_independent_columns_nothing(compared):
    real, holdout, _ = compared
    copy = measure_relations(
        ATTRIBUTES, EvaluationTables.of(real, real, holdout, key=0), real, key=0
    )
    assert copy.kept == pytest.approx(1)
    assert copy.released == copy.reals
    assert copy.sample.bound == "above"
    mixed = independent_columns(real, 700, Keyed(3).at("records"))
    none = measure_relations(
        ATTRIBUTES, EvaluationTables.of(real, mixed, holdout, key=0), real, key=0
    )
    assert none.kept is not None
    assert none.kept < 0.15
    assert none.lost
    assert not none.well_kept


def test_lost_and_kept_relations_are_the_strongest_first(found):
    strengths = {"a": (0.2, 0.05), "b": (0.9, 0.4), "c": (0.5, 0.45), "d": (0.1, 0.0)}
    strengths |= {"e": (0.6, 0.4), "f": (0.7, 0.72), "g": (0.82, 0.97), "h": (0.02, 0.5)}
    strengths |= {"i": (0.2, 0.9)}  # exaggerated, not lost
    relations = replace(
        found,
        associations=tuple(
            Association(names=(name, "x"), real=real, released=released, limit=real + 0.1)
            for name, (real, released) in strengths.items()
        ),
    )
    assert [each.names[0] for each in relations.strong] == [*"bgfecai"]
    assert [each.names[0] for each in relations.lost] == ["b", "a"]
    assert [each.names[0] for each in relations.well_kept] == ["f", "c"]
    assert [each.names[0] for each in relations.exaggerated] == ["i", "h", "g"]


@pytest.mark.parametrize(
    ("real", "released", "kept"),
    [(0.5, 0.5, 1), (0.5, 0.25, 0.5), (0.5, 0.65, 0.7), (0.2, 0.8, -1)],
)
def test_an_exaggeration_counts_as_much_as_a_loss(real, released, kept):
    association = Association(names=("a", "b"), real=real, released=released, limit=real + 0.1)
    assert association.kept == pytest.approx(kept)


def with_kept(found, *, correlations=5, **kept):
    """The same relations with other kept shares; independent columns keep nothing."""
    names = ("associations_kept", "correlations_kept", "gaps_kept")
    return replace(
        found,
        correlations=correlations,
        released=replace(found.released, **dict(zip(names, kept["released"], strict=True))),
        reals=replace(found.reals, **dict(zip(names, kept["reals"], strict=True))),
        independent=replace(found.independent, **dict.fromkeys(names, 0.0)),
    )


@pytest.mark.parametrize(
    ("released", "reals", "correlations", "kept"),
    [
        ((0.4, 0.8, 0.6), (1, 1, 1), 5, 0.6),
        ((0.4, 0.8, 0.6), (0.8, 0.8, 0.6), 5, (0.5 + 1 + 1) / 3),  # as a share of real rows
        ((0.4, 0.8, 0.6), (1, 1, 1), 2, 0.5),  # two correlations are left out
        ((0.4, None, None), (1, None, None), 0, 0.4),
        ((-0.5, 1.0, 0.5), (1, 1, 1), 5, 0.5),  # reversed is nothing, not less
        ((0.1, 0.1, 0.1), (0.3, 0.3, 0.3), 5, 0.2),  # as a share of at least a half
        ((0.05, 0.05, 0.05), (0.05, 0.05, 0.05), 5, None),  # real rows that keep nothing
    ],
)
def test_the_kept_share_is_the_mean_of_three(found, released, reals, correlations, kept):
    relations = with_kept(found, released=released, reals=reals, correlations=correlations)
    assert relations.kept == (None if kept is None else pytest.approx(kept))


def test_nothing_is_kept_or_lost_if_nothing_is_strong():
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, 60, 4_000), rng.integers(0, 3, 4_000), rng.integers(0, 2, 4_000)]
    codes = np.asfortranarray(np.stack(columns, axis=1).astype(np.uint16))
    attributes = (ATTRIBUTES[2], ATTRIBUTES[4], ATTRIBUTES[5])
    tables = EvaluationTables.of(codes, codes[::-1], None, key=0)
    found = measure_relations(attributes, tables, codes, key=0)
    assert found.strong == ()
    assert found.kept is None
    assert found.released.associations_kept is None


def test_a_table_without_numbers_has_associations_only(compared):
    real, holdout, released = (codes[:, 3:5] for codes in compared)
    tables = EvaluationTables.of(real, released, holdout, key=0)
    found = measure_relations(ATTRIBUTES[3:5], tables, real, key=0)
    assert len(found.associations) == 1
    released_figures = asdict(found.released)
    assert [name for name, value in released_figures.items() if value is None] == [
        *("correlation_error", "correlations_kept", "gap_error", "gaps_kept")
    ]
    by_real_rows = found.reals.associations_kept
    assert by_real_rows is not None
    assert found.kept is not None
    assert found.released.associations_kept is not None
    assert found.independent.associations_kept is not None
    released = found.released.associations_kept / by_real_rows
    by_chance = found.independent.associations_kept / by_real_rows
    assert found.kept == pytest.approx((released - by_chance) / (1 - by_chance))


def pair_of(rows, seed, noise):
    """Two columns of six values: the second is the first, but for a share of other values."""
    rng = np.random.default_rng(seed)
    one = rng.integers(0, 6, rows)
    two = np.where(rng.random(rows) < noise, rng.integers(0, 6, rows), one)
    return np.asfortranarray(np.stack([one, two], axis=1).astype(np.uint16))


@pytest.mark.parametrize(
    ("noise", "is_exaggerated"), [(0.03, True), (0.18, False), (0.5, False), (0.15, False)]
)
def test_a_relation_is_exaggerated_beyond_chance_only(noise, is_exaggerated):
    """From 0.82 to 0.97 in 2,000 rows; a difference of 0.03 or less is none."""
    values = tuple("abcdef")
    attributes = [Attribute(name=n, kind="categorical", values=values) for n in "xy"]
    real, released = pair_of(2_000, 1, 0.18), pair_of(2_000, 2, noise)
    for holdout in (None, pair_of(2_000, 3, 0.18)):
        tables = EvaluationTables.of(real, released, holdout, key=0)
        found = measure_relations(attributes, tables, real, key=0)
        assert bool(found.exaggerated) == is_exaggerated
        if is_exaggerated:
            assert found.exaggerated[0].released > 0.95
            assert found.exaggerated[0].real < 0.85
            assert not found.well_kept
        listed: Any = found.document()["associations"]
        assert listed[0]["exaggerated"] == is_exaggerated


def test_real_rows_never_exaggerate_real_rows():
    """False alarms over 40 tables of 300 rows: none."""
    attributes = [Attribute(name=n, kind="categorical", values=tuple("abcdef")) for n in "xy"]
    for seed in range(40):
        noise = 0.1 + seed / 50
        real, released = pair_of(300, seed, noise), pair_of(300, seed + 500, noise)
        tables = EvaluationTables.of(real, released, None, key=0)
        assert not measure_relations(attributes, tables, real, key=0).exaggerated


def test_one_column_has_no_relations(compared):
    real, holdout, released = compared
    tables = EvaluationTables.of(real[:, 5:], released[:, 5:], holdout[:, 5:], key=0)
    assert measure_relations(ATTRIBUTES[5:], tables, real[:, 5:], key=0) is None


def test_the_document_has_every_pair(found):
    document = found.document()
    assert len(document["associations"]) == 10
    assert document["kept"] == found.kept
    assert document["sample_equivalent"]["fraction"] == found.sample.fraction
    assert document["strong"] == {
        "associations": len(found.strong),
        "correlations": found.correlations,
    }
    assert isinstance(found, Relations)
    assert "years" not in repr(found)
