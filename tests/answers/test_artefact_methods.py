"""Methods of an artefact that a higher layer computes: they reach it, with all their arguments."""

import inspect
from typing import get_type_hints

import pytest

import deniable
from deniable.answers.conditional_release import generate_conditional
from deniable.answers.query import query
from deniable.errors import ConfigError
from deniable.release.artefact import Artefact, ConditionalRequest, load


def test_every_argument_of_a_request_is_one_of_the_answer():
    own = set(inspect.signature(generate_conditional).parameters)
    assert own == {"artefact", "records", "key", "workers", *get_type_hints(ConditionalRequest)}


def test_every_argument_of_a_question_is_one_of_the_answer():
    own = set(inspect.signature(query).parameters) - {"artefact"}
    assert own == set(inspect.signature(Artefact.query).parameters) - {"self"}


def test_a_request_is_answered(artefact):
    found = load(artefact).generate(30, where="years >= 50", key=1)
    assert found["years"].min() >= 50


def test_a_request_for_nothing_is_a_plain_call(artefact):
    plain = load(artefact).generate(30, key=1)
    assert load(artefact).generate(30, where=None, given=None, key=1).equals(plain)


def test_a_question_is_answered(artefact):
    found = load(artefact).query("years", where="years >= 50")
    assert deniable.query(load(artefact), "years", where="years >= 50") == found
    assert found.columns == ("years",)
    assert all(cell.count.low <= cell.count.estimate <= cell.count.high for cell in found.cells)


def test_plain_records_need_a_number(artefact):
    with pytest.raises(ConfigError, match="records = None"):
        load(artefact).generate()
