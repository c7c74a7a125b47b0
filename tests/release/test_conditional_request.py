"""Requests of ``Artefact.generate``: they reach the answers, and plain ones do not."""

import inspect
from typing import get_type_hints

import pytest

from deniable.answers.conditional_release import generate_conditional
from deniable.errors import ConfigError
from deniable.release.artefact import load
from deniable.release.conditional_request import ConditionalRequest


def test_every_argument_of_a_request_is_one_of_the_answer():
    own = set(inspect.signature(generate_conditional).parameters)
    assert own == {"artefact", "records", "key", "workers", *get_type_hints(ConditionalRequest)}


def test_a_request_is_answered(artefact):
    found = load(artefact).generate(30, where="years >= 50", key=1)
    assert found["years"].min() >= 50
    plain = load(artefact).generate(30, key=1)
    assert load(artefact).generate(30, where=None, given=None, key=1).equals(plain)


def test_plain_records_need_a_number(artefact):
    with pytest.raises(ConfigError, match="records = None"):
        load(artefact).generate()
