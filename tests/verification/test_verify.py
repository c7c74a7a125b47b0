"""verify: releases of every mode pass, every change is detected, nothing confidential is shown."""

import json
from copy import deepcopy
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import polars as pl
import pytest

from command_line import runner
from deniable.errors import ConfigError, VerificationError
from deniable.evaluation.release_claim import read_claim
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.api import generate, learn
from deniable.randomness import Keyed
from deniable.release.artefact import load
from deniable.release.atomic_files import encode_json, file_hash
from deniable.release.manifest import add_checksum
from deniable.schema.schema import Schema
from deniable.verification.claims import Check
from deniable.verification.verify import VerificationReport, verify
from releases import FEW, ROWS, SCHEMA, TABLE, USUAL, failing, forged, make
from tampering import Release, changes, undetected

pytestmark = pytest.mark.slow

# The report


def test_a_report_is_short_and_names_what_failed():
    passed = Check(name="cost", passed=True, explanation="a long sentence " * 50)
    failed = Check(name="files", passed=False, explanation="another one " * 50)
    inexact = Check(name="tables", passed=True, explanation="nearly", exact=False)
    report = VerificationReport(checks=(passed, passed), unknown=("much",) * 20)
    assert repr(report) == "<VerificationReport: passed, 2 checks>"
    assert repr(VerificationReport(checks=(passed, failed))) == (
        "<VerificationReport: FAILED, 2 checks, failed: files>"
    )
    nearly = VerificationReport(checks=(passed, inexact))
    assert repr(nearly) == "<VerificationReport: NOT VERIFIED EXACTLY, 2 checks>"
    assert repr(replace(nearly, accept_other_platform=True)).startswith(
        "<VerificationReport: passed"
    )


# Every mode

MODES = {
    "one-shot": {},
    "one-shot, omega given": {"omega": "2"},
    "one-shot, all drawn": {"omega": "4"},
    "one-shot, k = 1": {"k": 1},
    "one-shot, split": {"data_use": "split", "estimator": "norm-sub"},
    "one-shot, Parquet": {"file_format": "parquet"},
    "one-shot, graph given": {"graph": {"years": ["trade"]}},
    "one-shot, norm-sub": {"estimator": "norm-sub"},
    "one-shot, drawn": {"estimator": "norm-sub", "parameters": "drawn"},
    "one-shot, clip": {"estimator": "clip", "alpha": 0.5},
    "seedless": {"mode": "seedless"},
    "seedless, split": {"mode": "seedless", "data_use": "split", "estimator": "norm-sub"},
    "tested": {"mode": "tested"},
    "tested, range": {"mode": "tested", "omega": "2-4"},
    "tested, hidden": {"mode": "tested", "omega": "2-3", "omega_known": False},
    "tested, split": {"mode": "tested", "data_use": "split", "estimator": "clip"},
    "tested, paper": {"mode": "tested", "profile": "paper", "omega": "2-3"},
    "randomized": FEW,
    "randomized, hidden": {**FEW, "omega": "2-3", "omega_known": False, "epsilon": 4.0},
    "randomized, norm-sub": {**FEW, "estimator": "norm-sub"},
    "randomized, split": {**FEW, "data_use": "split", "estimator": "norm-sub"},
    "randomized, paper": {**FEW, "profile": "paper", "omega": "2-3"},
    "without noise": {"epsilon": float("inf")},
}


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_a_release_of_every_mode_passes(tmp_path, options):
    report = verify(make(tmp_path, **options), against=TABLE)
    report.require()
    assert report.passed
    assert len(report.checks) >= 5


def test_an_artefact_and_the_files_generated_from_it_pass(tmp_path):
    artefact = learn(TABLE, SCHEMA, **USUAL)
    artefact.save(tmp_path / "artefact")
    verify(tmp_path / "artefact", against=TABLE).require()
    for name in ("records.csv", "records.csv.gz", "records.parquet"):
        generate(load(tmp_path / "artefact"), 100, key=1).write_file(tmp_path / name)
        verify(tmp_path / name).require()
        verify(tmp_path / f"{name}.manifest.json").require()


def test_records_of_a_users_own_model_pass(tmp_path):
    network = learn(TABLE, SCHEMA, **USUAL).network
    own = NetworkModel(network, (2,))
    folder = make(tmp_path, mode="tested", model=own, records=20)
    report = verify(folder, against=TABLE)
    report.require()
    assert "total cost" not in [check.name for check in report.checks]


def test_noise_from_a_test_source_claims_nothing(tmp_path):
    folder = make(tmp_path, noise=Keyed(1))
    report = verify(folder)
    report.require()
    assert "the release is confidential" in report.unknown[0]
    document = json.loads((folder / "manifest.json").read_bytes())
    document["guarantee"]["sentence"] = "All is private."
    (folder / "manifest.json").write_bytes(encode_json(add_checksum(document)))
    assert failing(verify(folder)) == ["sentence"]


def test_a_file_without_a_claim_has_only_its_hash_checked(tmp_path):
    artefact = learn(TABLE, SCHEMA, noise=Keyed(1), **USUAL)
    generate(artefact, 100, key=1).write_file(tmp_path / "records.csv")
    report = verify(tmp_path / "records.csv")
    report.require()
    assert [check.name for check in report.checks] == ["records.csv.manifest.json", "files"]


@pytest.fixture(scope="module")
def long_release(tmp_path_factory) -> Release:
    """A release with enough records that one seed more or less changes them."""
    folder = tmp_path_factory.mktemp("long")
    some = {"omega": "2", "key": 7, "records": 20_000, "estimator": "norm-sub"}
    return Release(make(folder, **some, rows_max=100))


def test_the_unchanged_release_passes_and_has_kept_prefixes(long_release):
    verify(long_release.folder).require()
    artefact = load(long_release.folder / "artefact")
    assert len(artefact.histogram.counts) >= 3
    # So the noisy total affects the generated records.
    assert artefact.histogram.records > artefact.histogram.counts.sum()
    assert not long_release.is_detected({})


@pytest.mark.untraced
def test_every_changed_entry_of_the_manifest_is_detected(release):
    """Every number, text and list entry, one at a time."""
    assert undetected(release, "manifest.json") == []


@pytest.mark.untraced
def test_a_changed_entry_of_the_artefacts_manifest_is_detected(release):
    """Every fifth entry, with corrected hashes."""
    assert undetected(release, "artefact/manifest.json", step=5) == []


@pytest.mark.untraced
def test_every_changed_entry_of_the_artefact_is_detected(long_release):
    """Including the noisy total of seeds, which changes the generated records."""
    assert undetected(long_release, "artefact/artefact.json") == []


# Undetectable when changed in both manifests: nothing else depends on them. None of them makes the
# guarantee stronger.
UNKNOWABLE = {
    *(".parameters.epsilon up", ".parameters.max_cost + 1", ".parameters.omega_known"),
    *(".parameters.max_cost - 1", ".parameters.rows_max + 1", ".parameters.rows_max - 1"),
}
# A relative change of 1e-4 is below the precision of six digits and the accountant's grid.
TOO_SMALL = (".epsilon up", ".sigma up")
# Files differ between the manifests; of four attributes' counts, only one is tried.
ALIKE = (".files", ".spends[3].", ".spends[4].", ".spends[5].")


@pytest.mark.untraced
def test_a_change_in_both_manifests_is_detected_by_the_numbers(release):
    """The two copies agree, so only the second accountant and the files can detect it."""
    outer, inner = release.document("manifest.json"), release.document("artefact/manifest.json")
    generated = {name: outer["parameters"][name] for name in ("records", "key")}
    passed = set()
    for place, other in changes({**inner, "files": {}}):
        if place.startswith(ALIKE) or (place.endswith(TOO_SMALL) and ".spends" in place):
            continue
        document = deepcopy(other)
        parameters = document.get("parameters")
        if isinstance(parameters, dict):
            document["parameters"] = parameters | generated
        both = {
            "manifest.json": encode_json(document | {"files": outer["files"]}),
            "artefact/manifest.json": encode_json(other | {"files": inner["files"]}),
        }
        if not release.is_detected(both):
            passed.add(place)
    assert passed <= UNKNOWABLE, passed


@pytest.mark.untraced
@pytest.mark.parametrize(
    "name",
    [
        *("manifest.json", "schema.toml", "synthetic.csv", "artefact/manifest.json"),
        *("artefact/artefact.json", "artefact/schema.toml", "artefact/tables.npz"),
    ],
)
def test_a_changed_byte_is_detected_in_every_file(long_release, name):
    """Forty bytes across the file, with corrected hashes.

    One exception: noisy counts of a configuration whose total is not positive. They affect no
    table and no record.
    """
    content = long_release.files[name]
    before = load(long_release.folder / "artefact")
    for at in np.linspace(0, len(content) - 1, 40).astype(int).tolist():
        other = bytearray(content)
        other[at] ^= 1
        if long_release.is_detected({name: bytes(other)}):
            continue
        assert name == "artefact/tables.npz", f"byte {at}"
        (long_release.folder / name).write_bytes(bytes(other))
        after = load(long_release.folder / "artefact")
        (long_release.folder / name).write_bytes(content)
        assert np.array_equal(after.histogram.prefixes, before.histogram.prefixes)
        assert np.array_equal(after.histogram.counts, before.histogram.counts)
        pairs = zip(after.network.tables, before.network.tables, strict=True)
        assert all(np.array_equal(a.probabilities, b.probabilities) for a, b in pairs)


@pytest.mark.parametrize("name", ["synthetic.csv", "artefact/tables.npz", "schema.toml"])
def test_a_changed_file_is_detected_by_its_hash(release, name):
    (release.folder / name).write_bytes(release.files[name] + b"\n")
    try:
        report = verify(release.folder)
    finally:
        (release.folder / name).write_bytes(release.files[name])
    assert "files" in failing(report)


def test_missing_and_unlisted_files_are_detected(tmp_path):
    folder = make(tmp_path)
    (folder / "notes.txt").write_text("hello")
    assert failing(verify(folder)) == ["files"]
    (folder / "notes.txt").unlink()
    (folder / "link").symlink_to(folder / "schema.toml")
    assert failing(verify(folder)) == ["files"]
    (folder / "link").unlink()
    (folder / "synthetic.csv").unlink()
    assert failing(verify(folder)) == ["files", "records"]
    (folder / "schema.toml").unlink()
    assert failing(verify(folder)) == ["schema.toml"]


@pytest.mark.parametrize(
    "name", ["a folder/", "artefact/a folder/", ".DS_Store", "_SUCCESS", "artefact/.DS_Store"]
)
def test_a_file_or_an_empty_folder_that_does_not_belong_there_is_named(tmp_path, name):
    """A name alone can say something; and what is not listed in the manifest is not verified."""
    folder = make(tmp_path)
    added = folder / name
    if name.endswith("/"):
        added.mkdir()
    else:
        added.write_bytes(b"")
    report = verify(folder)
    assert failing(report) == ["files"]
    [explanation] = [check.explanation for check in report.failed]
    assert name.strip("/") in explanation


def test_an_artefact_may_have_no_folder_either(tmp_path):
    home = make(tmp_path) / "artefact"
    assert verify(home).passed
    (home / "a folder").mkdir()
    assert failing(verify(home)) == ["files"]


def written_by(version, path):
    """Let another version have written a manifest: its checksum is right."""
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_bytes(encode_json(add_checksum({**document, "version": version})))


@pytest.mark.parametrize("made_by", ["0.3.0", "0.1.0", "0.40.1", "1.4.0", "0.3." + "1" * 28])
def test_a_release_of_another_version_is_not_verified_and_the_version_is_named(tmp_path, made_by):
    folder = make(tmp_path)
    written_by(made_by, folder / "manifest.json")
    report = verify(folder)
    assert failing(report) == ["manifest.json"]
    assert f"pip install deniable=={made_by}" in report.failed[0].explanation
    written_by(made_by, folder / "artefact" / "manifest.json")
    assert failing(verify(folder / "artefact")) == ["manifest.json"]


NO_VERSIONS = ["", "0", "0.3.0; rm -rf /", None, 4, "0.3." + "1" * 29, "0." * 500 + "1", "0.٣.0"]


@pytest.mark.parametrize("made_by", NO_VERSIONS)
def test_a_version_that_is_none_is_refused_and_not_repeated(tmp_path, made_by):
    folder = make(tmp_path)
    written_by(made_by, folder / "manifest.json")
    report = verify(folder)
    assert failing(report) == ["manifest.json"]
    assert "states no version" in report.failed[0].explanation
    assert len(report.failed[0].explanation) < 100


def test_another_release_of_the_same_series_verifies(tmp_path):
    series = version("deniable").rpartition(".")[0]
    home = make(tmp_path) / "artefact"
    written_by(f"{series}.99", home / "manifest.json")
    assert verify(home).passed


# Incomplete and invalid releases


def test_the_report_lists_what_it_cannot_verify_without_the_table(tmp_path):
    report = verify(make(tmp_path, mode="tested"))
    assert any("--against" in sentence for sentence in report.unknown)
    assert any("max_cost" in sentence for sentence in report.unknown)
    seedless = verify(make(tmp_path / "seedless", mode="seedless"))
    assert not any("--against" in sentence for sentence in seedless.unknown)


@pytest.mark.parametrize(
    ("options", "asked", "word"),
    [
        ({"omega": "3", "epsilon": 8.0}, True, "kept attribute values"),
        ({"k": ROWS}, False, "noisy counts"),
        ({"omega": "4"}, False, "noisy counts"),
        ({"mode": "seedless"}, False, "noisy counts"),
        ({"mode": "tested"}, True, "kept attribute values"),
        (FEW, False, "threshold was random"),
    ],
)
def test_a_table_that_shows_nothing_is_not_called_checked(tmp_path, options, asked, word):
    """Unless something is asked of the table, what it could not show stays unknown."""
    folder = make(tmp_path, **options)
    assert any(word in sentence for sentence in verify(folder).unknown)
    report = verify(folder, against=TABLE)
    assert any("in the table" in check.name for check in report.checks) == asked
    assert any(word in sentence for sentence in report.unknown) != asked
    assert any("nothing was checked" in sentence for sentence in report.unknown) != asked


@pytest.fixture
def deniable(monkeypatch, capsys, tmp_path):
    """The command line, in this process."""
    return runner(monkeypatch, capsys, tmp_path)


def test_the_command_needs_consent_to_a_release_of_another_platform(deniable, tmp_path):
    """Exit code 1, or 0 with a last line that repeats it."""
    other = Release(make(tmp_path, mode="tested", file_format="parquet"))
    assert deniable("verify", other.folder).code == 0
    path = other.folder / "synthetic.parquet"
    pl.read_parquet(path).write_parquet(path, compression="gzip")

    def change(document):
        document["parameters"]["writer"] = "polars 0.20.1"
        document["files"]["synthetic.parquet"] = file_hash(path)

    forged(other.folder, change)
    found = deniable("verify", other.folder)
    assert found.code == 1
    assert "INEXACT  records" in found.out
    assert found.out.splitlines()[-1] == "NOT VERIFIED EXACTLY"
    assert "--accept-other-platform" in found.err
    accepted = deniable("verify", other.folder, "--accept-other-platform")
    assert (accepted.code, accepted.err) == (0, "")
    assert accepted.out.splitlines()[-1] == "PASS, but NOT VERIFIED EXACTLY"
    as_json = deniable("verify", other.folder, "--accept-other-platform", "--json").json
    assert (as_json["passed"], as_json["exact"]) == (True, False)
    assert read_claim(path).failures[0].startswith("records: ")


def test_what_a_model_of_tables_does_not_show_is_named(tmp_path):
    drawn = {"estimator": "norm-sub", "parameters": "drawn"}
    unknown = verify(make(tmp_path, **drawn)).unknown
    assert any("they were drawn" in sentence for sentence in unknown)
    assert any("entropies" in sentence for sentence in unknown)


def test_a_path_without_a_release_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="neither"):
        verify(tmp_path / "nowhere")
    (tmp_path / "records.csv").write_text("a\n1\n")
    with pytest.raises(ConfigError, match=r"has no records\.csv\.manifest\.json"):
        verify(tmp_path / "records.csv")
    (tmp_path / "records.csv.manifest.json").write_text("[]\n")
    with pytest.raises(ConfigError, match="artefact"):
        verify(tmp_path / "records.csv", against=TABLE)
    with pytest.raises(ConfigError, match="neither a release nor an artefact"):
        verify(tmp_path)
    (tmp_path / "manifest.json").write_text("[]\n")
    assert failing(verify(tmp_path)) == ["manifest.json", "schema.toml"]


def test_an_unreadable_artefact_is_detected(tmp_path):
    folder = make(tmp_path)
    (folder / "artefact" / "tables.npz").write_bytes(b"PK")
    report = verify(folder)
    assert {"files", "artefact", "artefact's manifest"} == set(failing(report))


def test_the_error_lists_every_failed_check(tmp_path):
    folder = make(tmp_path)
    (folder / "notes.txt").write_text("hello")
    with pytest.raises(VerificationError, match=r"does not match its manifest.*\n  files: "):
        verify(folder).require()


def test_a_schema_in_another_form_is_detected(tmp_path):
    folder = make(tmp_path, mode="tested")
    path = folder / "schema.toml"
    path.write_text(path.read_text() + "# public\n")
    assert failing(verify(folder)) == ["schema.toml", "files"]
    drafted = replace(SCHEMA.attributes[0], confirmed=False)
    Schema((drafted, *SCHEMA.attributes[1:]), rows_max=SCHEMA.rows_max).write(path)
    assert failing(verify(folder)) == ["files", "schema in manifest"]
