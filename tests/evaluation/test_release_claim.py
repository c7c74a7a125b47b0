"""The claim of a manifest: read, verified, and rejected if it is wrong."""

import json
import math
import shutil
from dataclasses import replace

import pytest

import deniable
from deniable.data.codec import Codec
from deniable.errors import ConfigError
from deniable.evaluation.effort import Effort
from deniable.evaluation.estimates import Estimates, estimates_section, find_estimates
from deniable.evaluation.evaluate import evaluate
from deniable.evaluation.release_claim import find_released, read_claim
from deniable.evaluation.report import render
from deniable.pipeline.api import generate, synthesize
from deniable.release import generation, record_parts
from deniable.release.artefact import load
from deniable.verification import record_checks
from toy_artefacts import SCHEMA, artefact_of, measure, toy_artefact, toy_codes

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
    assert held.claim is not None
    assert written.claim is not None
    assert replace(held.claim, is_written=True) == written.claim
    assert (held.claim.holds, written.claim.holds) == (False, True)
    guarantee = held.document()["guarantee"]
    assert isinstance(guarantee, dict)
    assert guarantee["verified"] is False
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


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimates") / "release"
    frame = Codec(SCHEMA).decode(toy_codes())
    deniable.synthesize(frame, SCHEMA, records=300, mode="seedless", epsilon=4.0).write(folder)
    return folder / "synthetic.csv"


def test_a_public_report_has_a_table_of_shares_and_says_what_noise_hides(released, tmp_path):
    out = tmp_path / "report"
    deniable.evaluate(None, released, SCHEMA, out=out, edition="public")
    page = (out / "report.html").read_text()
    assert "The table, with error bars" in page
    assert "stands out" in page
    document = json.loads((out / "metrics.json").read_text())
    answers = document["estimates"]["columns"]
    assert [answer["columns"] for answer in answers] == [[name] for name in SCHEMA.names]
    assert document["estimates"]["bounds"]
    assert page.count("<tr>") > sum(len(answer["cells"]) for answer in answers)


def test_only_a_verified_release_is_described(released, tmp_path):
    claim = read_claim(released)
    assert claim is not None
    assert find_estimates(released, claim) is not None
    assert find_estimates(released, replace(claim, failures=("hash: wrong",))) is None
    assert find_estimates(Codec(SCHEMA).decode(toy_codes()), claim) is None
    # Generated records have a manifest, but no artefact next to them.
    assert find_estimates(tmp_path / "records.csv", claim) is None


def test_what_is_shown_does_not_depend_on_noise():
    one, two = (Estimates.of(artefact_of(measure(key))).columns for key in (1, 2))
    labels = [[[cell.labels for cell in answer.cells] for answer in found] for found in (one, two)]
    assert labels[0] == labels[1]
    # Ten bands of equally many codes, by the schema alone.
    assert labels[0][0][:2] == [("0 to 3",), ("4 to 7",)]


@pytest.mark.parametrize("epsilon", [0.05, float("inf")])
def test_much_and_no_noise_are_described_too(epsilon):
    found = Estimates.of(toy_artefact(epsilon=epsilon))
    assert len(found.columns) == 4
    assert bool(found.bounds) == (epsilon < 1)
    page = estimates_section(found)
    assert "nan" not in page
    json.dumps(found.document(), allow_nan=False)


def test_the_paper_s_model_has_no_estimates():
    frame = Codec(SCHEMA).decode(toy_codes())
    graph: dict[str, list[str]] = {name: [] for name in SCHEMA.names}
    paper = deniable.learn(frame, SCHEMA, mode="seedless", graph=graph)
    assert Estimates.of(paper) == Estimates(columns=(), bounds=())
