"""Manifests of version 0.1: their fixed texts are translated, nothing else."""

import pytest

from deniable.release.manifest import ASSUMPTIONS, not_covered
from deniable.verification.earlier_versions import with_current_texts

OLD_ASSUMPTIONS = [
    "the schema is public knowledge: it was not read off this table, or somebody confirmed it",
    "the options were fixed before anybody looked at the table",
    "noise came from the operating system's CSPRNG, as whole numbers, and nobody saw it",
]
OLD_NOT_COVERED = [
    "several rows of one person: the unit is a row",
    "what the schema says, where it was read off the data",
    "anything else made from the same table, an evaluation against it included: costs add up",
    "that a table is refused because a cell does not fit its schema: then correct the schema from "
    "what everybody may know",
    "side channels such as run times, and the computer the table is on",
]


def manifest(mode: str, **more):
    document = {
        "version": "0.1.0",
        "mode": mode,
        "parameters": {},
        "guarantee": {"sentence": "S.", "epsilon": 1.0, "assumptions": OLD_ASSUMPTIONS},
        "spends": [{"what": "second look at pairs", "moved": 4}],
        "not_covered": OLD_NOT_COVERED,
    }
    return {**document, **more}


@pytest.mark.parametrize("mode", ["one-shot", "seedless", "tested", "randomized"])
def test_fixed_texts_become_those_of_today(mode):
    current = with_current_texts(manifest(mode))
    assert current["guarantee"]["assumptions"] == list(ASSUMPTIONS)
    assert current["not_covered"] == not_covered(None, mode)
    assert current["spends"] == [{"what": "remeasured pairs of attributes", "moved": 4}]
    assert current["guarantee"]["epsilon"] == 1.0


def test_a_forged_text_stays_as_it_is():
    forged = manifest("seedless", not_covered=["nothing at all"])
    assert with_current_texts(forged)["not_covered"] == ["nothing at all"]


def test_phrases_of_a_sentence_are_translated():
    said = "This is not differential privacy: somebody who knows the other rows may learn."
    old = manifest("tested", guarantee={"sentence": said, "assumptions": []})
    assert "an adversary who knows" in with_current_texts(old)["guarantee"]["sentence"]
    said = "Schema and k were fixed in advance; so."
    cases: list[tuple[dict, str]] = [({}, said), ({"draft": {}}, "k was fixed in advance; so.")]
    for parameters, expected in cases:
        old = manifest(
            "one-shot", parameters=parameters, guarantee={"sentence": said, "assumptions": []}
        )
        assert with_current_texts(old)["guarantee"]["sentence"] == expected


def test_a_manifest_of_today_is_returned_unchanged():
    today = manifest("seedless", version="0.2.0")
    assert with_current_texts(today) is today
