"""Requests of ``Artefact.generate``: one without content is a plain call."""

from deniable.release.artefact import load


def test_a_request_for_nothing_is_a_plain_call(artefact):
    plain = load(artefact).generate(30, key=1)
    assert load(artefact).generate(30, where=None, given=None, key=1).equals(plain)
