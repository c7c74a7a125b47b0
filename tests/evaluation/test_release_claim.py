"""The claim of a manifest: read, verified, and rejected if it is wrong."""

import json
import math
import shutil
from dataclasses import replace

import pytest

from deniable.errors import ConfigError
from deniable.evaluation.effort import Effort
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.release_claim import find_released, read_claim
from deniable.evaluation.report import render
from deniable.pipeline.api import generate, synthesize
from deniable.release import generation, record_parts
from deniable.release.artefact import load
from deniable.verification import record_checks

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(release, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(release, folder)
    return folder


def test_a_release_comes_with_its_sentence(release):
    claim = read_claim(release / "synthetic.csv")
    manifest = json.loads((release / "manifest.json").read_text())
    assert claim.sentence == manifest["guarantee"]["sentence"]
    assert claim.epsilon == manifest["guarantee"]["epsilon"] <= 1
    assert claim.failures == ()
    assert claim.holds
    assert claim.document()["verified"] is True


def test_generated_records_have_a_manifest_of_their_own(release, tmp_path):
    file = tmp_path / "more.csv"
    generate(load(release / "artefact"), 50, key=1).write_file(file)
    assert read_claim(file).holds


def test_a_release_in_memory_is_measured_as_its_folder_is_but_not_verified(
    small_files, small_schema, small_table, tmp_path
):
    release = synthesize(small_files / "table.csv", small_schema, records=300, rows_max=2_000)
    release.write(tmp_path / "out")
    effort = Effort(runs=1, rows=50, trees=2, game=20)
    held = evaluate(small_table, release, small_schema, effort=effort)
    written = evaluate(small_table, tmp_path / "out", small_schema, effort=effort)
    assert held.findings.document() == written.findings.document()
    assert replace(held.claim, is_written=True) == written.claim
    assert (held.claim.holds, written.claim.holds) == (False, True)
    assert held.document()["guarantee"]["verified"] is False
    assert "Not verified: these records are in memory" in render(held)
    assert "Not verified" not in render(written)
    with pytest.raises(ConfigError, match="these have none: write the release first"):
        evaluate(None, release, small_schema, edition="public")


def test_without_a_manifest_there_is_no_claim(release, tmp_path, small_table):
    shutil.copy(release / "synthetic.csv", tmp_path / "alone.csv")
    assert read_claim(tmp_path / "alone.csv") is None
    assert read_claim(small_table) is None


def test_a_manifest_that_claims_less_than_was_spent_fails(copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["guarantee"]["epsilon"] = 0.1
    (copy / "manifest.json").write_text(json.dumps(manifest))
    claim = read_claim(copy / "synthetic.csv")
    assert not claim.holds
    assert any("cost" in failure for failure in claim.failures)


def test_a_manifest_of_another_file_fails(copy):
    with (copy / "synthetic.csv").open("a") as file:
        file.write("20,tinsmith,windmill,0,axolotl\n")
    assert read_claim(copy / "synthetic.csv").failures == (
        "the manifest describes another file than this synthetic.csv",
    )


@pytest.mark.parametrize(
    "text", ["{", "{}", "[]", '{"guarantee": 1}', "[" * 200_000, '{"guarantee": ' + "9" * 99_999]
)
def test_an_unreadable_manifest_fails(copy, text):
    (copy / "manifest.json").write_text(text)
    claim = read_claim(copy / "synthetic.csv")
    assert not claim.holds
    assert "not a manifest" in claim.failures[0]


def test_without_noise_nothing_is_claimed(small_files, small_schema, tmp_path):
    folder = tmp_path / "exact"
    release = synthesize(small_files / "table.csv", small_schema, records=50, epsilon=math.inf)
    release.write(folder)
    claim = read_claim(folder / "synthetic.csv")
    assert claim.epsilon is None
    assert not claim.holds
    assert claim.document()["epsilon"] == "inf"


def test_a_release_in_parts_is_one_claim(release, tmp_path, monkeypatch):
    for module in (generation, record_parts, record_checks):
        monkeypatch.setattr(module, "BLOCK", 100)
    folder = tmp_path / "parts"
    generate(load(release / "artefact"), 250, key=1).write(folder, parts=True)
    assert read_claim(folder).holds
    assert read_claim(release).sentence == read_claim(folder).sentence
    assert [path.name for path in find_released(folder)] == [f"part-0000{n}.csv" for n in range(3)]
    assert find_released(tmp_path) == ()
    (folder / "part-00001.csv").write_bytes((folder / "part-00000.csv").read_bytes())
    expected = "the manifest describes another file than this part-00001.csv"
    assert read_claim(folder).failures == (expected,)


def test_a_release_in_parts_is_evaluated(release, tmp_path, small_schema, monkeypatch):
    """Its parts and one file with the same records have the same public report."""
    for module in (generation, record_parts, record_checks):
        monkeypatch.setattr(module, "BLOCK", 100)
    made = generate(load(release / "artefact"), 250, key=1)
    made.write(tmp_path / "parts", parts=True)
    found = evaluate(None, tmp_path / "parts", small_schema, edition="public")
    made.write(tmp_path / "whole")
    whole = evaluate(None, tmp_path / "whole" / "synthetic.csv", small_schema, edition="public")
    assert found.estimates is not None
    assert found.document() == whole.document()
