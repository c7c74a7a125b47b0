"""Manifests of versions before 0.3: they verify by the rules of their version, and no others."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deniable.demo import demo_table
from deniable.release.atomic_files import encode_json
from deniable.release.manifest import ASSUMPTIONS, add_checksum, not_covered
from deniable.verification.claims import PAIR_SPENDS
from deniable.verification.earlier_versions import (
    earlier_pair_stages,
    measures_pairs_twice,
    with_current_texts,
)
from deniable.verification.manifest_spend import ManifestSpend
from deniable.verification.verify import verify
from releases import failing

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


def manifest(mode: str, **more: Any) -> dict[str, Any]:
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
    for version in ("0.2.0", "0.3.0", "1.0.0"):
        today = manifest("seedless", version=version)
        assert with_current_texts(today) is today


@pytest.mark.parametrize(
    ("version", "earlier"),
    [("0.1.0", True), ("0.2.0", True), ("0.2.7", True), ("0.3.0", False), ("0.20.0", False)],
)
def test_versions_before_0_3_measured_pairs_twice(version, earlier):
    assert measures_pairs_twice({"version": version}) == earlier
    assert not measures_pairs_twice({})


# Files of earlier versions: the embedded table is of 0.1 and measured all pairs; the other one is
# of 0.2 and chose 16 of 55 pairs by their strength.

FILES = {"0.1": demo_table(), "0.2": Path(__file__).with_name("of_version_0_2.csv")}


@pytest.fixture(params=list(FILES.values()), ids=list(FILES))
def earlier(request, tmp_path) -> Path:
    """A copy of a file of an earlier version, with its manifest."""
    for name in (request.param.name, f"{request.param.name}.manifest.json"):
        shutil.copyfile(request.param.with_name(name), tmp_path / name)
    return tmp_path / request.param.name


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> list[str]:
    """Edit the manifest of a file, correct its checksum, and list the checks that fail."""
    written = path.with_name(f"{path.name}.manifest.json")
    document = json.loads(written.read_text(encoding="utf-8"))
    edit(document)
    written.write_bytes(encode_json(add_checksum(document)))
    return failing(verify(path))


def pair_spends(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [spend for spend in document["spends"] if spend["part"] == "parameters"]


def test_files_of_earlier_versions_verify(earlier):
    """All checks that a file allows: its hash, and everything about its manifest."""
    report = verify(earlier)
    report.require()
    names = {check.name for check in report.checks}
    assert {"files", "ledger", "noise", "cost of each spend", "total cost"} <= names
    document = json.loads(earlier.with_name(f"{earlier.name}.manifest.json").read_text())
    assert len(pair_spends(document)) == (3 if document["version"] == "0.2.0" else 2)
    assert change(earlier, dict) == [], "an edit that changes nothing"


def test_an_earlier_manifest_that_claims_to_be_of_today_is_refused(earlier):
    assert "ledger" in change(earlier, lambda document: document.update(version="0.3.0"))


@pytest.mark.parametrize("at", [0, -1])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_another_split_of_an_earlier_budget_is_refused(earlier, at, factor):
    def edit(document):
        law = pair_spends(document)[at]["law"]
        law["sigma"] *= factor

    assert "noise" in change(earlier, edit)


@pytest.mark.parametrize("at", [0, 1, -1])
@pytest.mark.parametrize("step", [-1, 1])
def test_another_number_of_earlier_pairs_is_refused(earlier, at, step):
    """Fewer pairs with the same noise would cost less."""

    def edit(document):
        pair_spends(document)[at]["moved"] += step

    assert "ledger" in change(earlier, edit)


@pytest.mark.parametrize("at", [0, -1])
def test_a_missing_earlier_stage_is_refused(earlier, at):
    def edit(document):
        document["spends"].remove(pair_spends(document)[at])

    assert "ledger" in change(earlier, edit)


def test_a_stage_of_today_is_refused_in_an_earlier_manifest(earlier):
    def edit(document):
        pair_spends(document)[0]["what"] = PAIR_SPENDS[0]

    assert "ledger" in change(earlier, edit)


def test_less_noise_than_an_earlier_claim_needs_is_refused(earlier):
    def edit(document):
        for spend in pair_spends(document):
            spend["law"]["sigma"] *= 0.9

    assert {"cost of each spend", "total cost"} <= set(change(earlier, edit))


def test_a_changed_file_of_an_earlier_version_is_refused(earlier):
    earlier.write_bytes(earlier.read_bytes() + b"\n")
    assert failing(verify(earlier))[0] == "files"


def test_an_earlier_run_without_noise_measured_all_pairs():
    law = {"law": {"name": "exact"}, "sensitivity": 1, "times": 1, "each": None}
    cost = {"epsilon": 0.0, "delta": 0.0}
    entry = {"what": "pairs of attributes", "part": "parameters", **law, "moved": 55, **cost}
    document = json.loads(FILES["0.2"].with_name(f"{FILES['0.2'].name}.manifest.json").read_text())
    spend = ManifestSpend.parse({name: entry[name] for name in document["spends"][0]})
    stages = earlier_pair_stages([spend], 11, 1_000)
    assert stages == {"pairs of attributes": 55, "remeasured pairs of attributes": 220}
