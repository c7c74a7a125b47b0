"""Identifier columns: what is taken for one, and what must not be."""

import numpy as np
import polars as pl
import pytest

from deniable.drafting.draft import draft_schema
from drafted_columns import draft_column, fields_of, notes_of

RNG = np.random.default_rng(4)


def many(values, n=200):
    return [str(value) for value in RNG.choice(values, n)]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("id", [str(x) for x in RNG.choice(10**6, 100, replace=False)]),
        ("row", [str(x) for x in range(1000, 1100)]),
        ("reference", [f"K-{x:06d}" for x in RNG.choice(10**6, 100, replace=False)]),
        ("customerId", [f"c{x}" for x in range(100)]),
    ],
)
def test_a_unique_key_is_an_identifier(name, cells):
    found = draft_column(cells, name)
    assert found.kind == "identifier"
    assert "identifier" in notes_of(found)
    assert not found.is_modelled


@pytest.mark.parametrize("make", ["{}", "K{:06d}"])
@pytest.mark.parametrize("each", [1, 3])
def test_an_identifier_that_is_often_empty_gets_a_note(make, each):
    cells = [make.format(x) for x in range(1_000, 1_100)] * each
    full = draft_column(cells, "reply_id")
    gaps = draft_column([*cells, *[""] * 7 * len(cells)], "reply_id")
    assert (full.kind, gaps.kind) == ("identifier", "identifier")
    assert "empty" not in notes_of(full)
    assert "88% of its cells are empty, but every record will have one" in notes_of(gaps)


def test_new_identifiers_have_the_format_of_the_old_ones():
    assert fields_of(draft_column([f"P{x:05d}" for x in range(100)], "id"))["format"] == "P{:05d}"
    uuids = [f"{x:08x}-0000-4000-8000-{x:012x}" for x in range(100)]
    assert fields_of(draft_column(uuids))["format"] == "uuid"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("income", [str(x) for x in RNG.choice(10**5, 100, replace=False)]),
        ("region_id", many(range(10))),
        ("postcode", [f"{x:05d}" for x in RNG.integers(500, 600, 300)]),
        ("x", [str(x) for x in RNG.normal(size=100)]),
    ],
)
def test_a_measurement_is_not_an_identifier(name, cells):
    assert draft_column(cells, name).is_modelled


@pytest.mark.parametrize(
    ("name", "persons", "rows"),
    [("patient_id", 150, 400), ("patient", 400, 1_600), ("x", 400, 1_600)],
)
def test_several_rows_of_a_person_are_noticed(name, persons, rows):
    found = draft_column([f"P{x:05d}" for x in RNG.integers(0, persons, rows)], name)
    assert found.kind == "identifier"
    assert "unit" in notes_of(found)


def test_codes_of_several_shapes_are_not_persons():
    """Course numbers: some have a letter before or after, and a few are very frequent."""
    one_each = [form.format(x) for x in range(1, 200) for form in ("{}", "{}A", "M{}", "C{}BL")]
    found = draft_column([*one_each, *["199"] * 60, *["596"] * 60], "course_num")
    assert found.kind == "text"
    assert fields_of(found)["values"] == ["199", "596"]
    alike = [f"K{x}" for x in range(1, 800)]
    assert "unit" in notes_of(draft_column([*alike, *["K7"] * 60, *["K596"] * 60], "reference"))


def test_numbers_that_repeat_as_those_of_persons_are_asked_about():
    persons = np.repeat(np.arange(100_000, 100_600), 5)
    draft = draft_column([str(x) for x in persons], "hh")
    assert draft.is_modelled, "it may be a measurement"
    assert draft.may_be_unit
    assert "persons" in notes_of(draft)


@pytest.mark.parametrize(
    "numbers",
    [
        np.random.default_rng(1).normal(5000, 60, 3000).astype(int),
        np.random.default_rng(2).integers(0, 90, 3000),
        np.random.default_rng(3).exponential(300, 3000).astype(int),
    ],
)
def test_numbers_of_a_measurement_are_not_asked_about(numbers):
    assert not draft_column([str(x) for x in numbers], "x").may_be_unit


SITES = np.repeat(RNG.choice(900, 40, replace=False) * 100_000, 50)
UNIQUE = {
    "drawn without repetition": RNG.choice(60_000, 1_500, replace=False) + 400_000,
    "running within sites": SITES + np.tile(np.arange(50), 40) + 1,
    "every fifth": 10_000 + 5 * np.arange(2_000),
    "with a few repeats": np.append(RNG.choice(50_000, 1_500, replace=False), [7, 7, 9, 9]),
}


@pytest.mark.parametrize("name", UNIQUE)
def test_numbers_that_never_coincide_are_identifiers_whatever_their_header(name):
    """A made-up patient number: equal numbers would be expected of any measurement."""
    found = draft_column([str(x) for x in UNIQUE[name]], "pnr")
    assert found.kind == "identifier"
    assert "If it is a measurement" in notes_of(found)


@pytest.mark.parametrize("rows", [200, 1_500, 30_000])
@pytest.mark.parametrize("spread", [300, 5_000, 60_000])
def test_a_measurement_that_is_seldom_equal_stays_a_number(rows, spread):
    for numbers in (
        RNG.normal(20 * spread, spread, rows),
        RNG.integers(0, 5 * spread, rows),
        RNG.exponential(spread, rows),
    ):
        assert draft_column([str(int(x)) for x in numbers], "weight").is_modelled


def test_numbers_of_another_column_of_keys_are_identifiers_too():
    keys = RNG.choice(90_000_000, 600, replace=False) + 10_000_000
    frame = pl.DataFrame(
        {
            "patient_id": keys,
            "mother": [*RNG.choice(keys, 500), *[None] * 100],
            "partner": [*map(str, RNG.permutation(keys))],
            "row_id": np.arange(600),
            "age": RNG.integers(0, 90, 600),
            "amount": RNG.choice(90_000_000, 600),
            "tags": [["a"]] * 600,
        }
    )
    drafts = {draft.name: draft for draft in draft_schema(frame).attributes}
    kinds = {name: draft.kind for name, draft in drafts.items()}
    keys_of = {name for name, kind in kinds.items() if kind == "identifier"}
    assert keys_of == {"patient_id", "mother", "partner", "row_id", "tags"}
    assert kinds["age"] == "integer", "small numbers are among row numbers by chance"
    assert kinds["amount"] == "integer"
    assert "unit" in notes_of(drafts["mother"])
