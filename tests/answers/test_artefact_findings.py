"""What an artefact says of its table: chosen by public facts, all comparisons counted."""

import json

import pytest

from deniable.answers.artefact_findings import describe_artefact
from toy_artefacts import SCHEMA, artefact_of, measure, toy_artefact


def test_every_column_and_the_last_one_by_all_others():
    found = describe_artefact(toy_artefact(epsilon=8.0))
    assert [answer.columns[0] for answer in found.columns] == list(SCHEMA.names)
    assert found.target == "price"
    assert {own.column for own in found.groups} | set(found.not_counted) == {
        "size",
        "colour",
        "sold",
    }
    # Ten bands of equally many codes, by the schema alone.
    assert [cell.labels[0] for cell in found.columns[0].cells][:2] == ["0 to 3", "4 to 7"]
    json.dumps(found.document(), allow_nan=False)


def test_what_is_shown_does_not_depend_on_noise():
    one, two = (describe_artefact(artefact_of(measure(key))) for key in (1, 2))
    labels = [
        [[cell.labels for cell in answer.cells] for answer in found.columns] for found in (one, two)
    ]
    assert labels[0] == labels[1]


def test_all_comparisons_are_counted():
    found = describe_artefact(toy_artefact(epsilon=8.0), target="sold")
    assert found.target == "sold"
    assert found.comparisons == sum(len(own.differences) for own in found.groups)
    assert len(found.groups) > 1
    colour = next(own for own in found.groups if own.column == "colour")
    assert colour.outcome == "yes"
    assert len(colour.shares) == len(colour.labels)
    # More comparisons, wider intervals.
    alone = toy_artefact(epsilon=8.0).query(["colour", "sold"])
    assert len(colour.sentences) <= len(alone.differences) + 1


def test_missing_is_not_the_shown_outcome():
    found = describe_artefact(toy_artefact(epsilon=8.0), target="price")
    assert all(own.outcome != "missing" for own in found.groups)


@pytest.mark.parametrize("epsilon", [0.05, float("inf")])
def test_little_and_no_noise_are_described_too(epsilon):
    found = describe_artefact(toy_artefact(epsilon=epsilon))
    assert len(found.columns) == 4
