"""Checks of released records: changed cells, damaged files, and the confidential table."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from deniable.errors import DataError, VerificationError
from deniable.pipeline.api import generate, learn
from deniable.release.atomic_files import encode_json, file_hash
from deniable.release.manifest import add_checksum
from deniable.verification import record_checks
from deniable.verification import verify as verify_module
from deniable.verification.verify import verify
from releases import SCHEMA, TABLE, USUAL, failing, make
from tampering import Release

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parquet(tmp_path_factory) -> Release:
    fast = {"key": 7, "max_cost": 12, "omega": "2"}
    return Release(make(tmp_path_factory.mktemp("parquet"), file_format="parquet", **fast))


# Verify one folder after another, and print after each whether it passed.
VERIFY = """
import sys
from deniable.verification.verify import verify
for folder in sys.argv[1:]:
    print(int(verify(folder).passed), flush=True)
"""


def verdicts(folders: list[Path]) -> list[bool]:
    """Whether each folder passes, in another process: a damaged Parquet file may crash it.

    Where it crashes, it has not passed, and another process goes on with the next folder.
    """
    passed: list[bool] = []
    while len(passed) < len(folders):
        words = [sys.executable, "-c", VERIFY, *map(str, folders[len(passed) :])]
        run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)
        passed += [line == "1" for line in run.stdout.split()]
        if len(passed) < len(folders):
            assert run.returncode != 0
            passed.append(False)
    return passed


def changed_bytes(content: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    for at in np.linspace(0, len(content) - 1, number).astype(int).tolist():
        other = bytearray(content)
        other[at] ^= 1
        yield at, bytes(other)


@pytest.mark.untraced
def test_a_changed_byte_of_a_parquet_file_is_detected(parquet, tmp_path):
    """Bytes across the file, its statistics and its footer, with a corrected hash."""
    name, folders = "synthetic.parquet", [parquet.folder]
    document = parquet.document("manifest.json")
    for at, other in changed_bytes(parquet.files[name], 12):
        folder = tmp_path / str(at)
        shutil.copytree(parquet.folder, folder)
        (folder / name).write_bytes(other)
        document["files"][name] = file_hash(folder / name)
        (folder / "manifest.json").write_bytes(encode_json(add_checksum(document)))
        folders.append(folder)
    assert verdicts(folders) == [True] + [False] * 12, [folder.name for folder in folders]


def test_a_damaged_parquet_file_is_detected_by_its_hash_and_not_read(parquet):
    """For bytes across the file, in this process."""
    path = parquet.folder / "synthetic.parquet"
    content = parquet.files["synthetic.parquet"]
    try:
        for at, other in changed_bytes(content, 12):
            path.write_bytes(other)
            found = {check.name: check.explanation for check in verify(parquet.folder).failed}
            assert set(found) == {"files", "records"}, f"byte {at}"
            assert "was not read" in found["records"]
    finally:
        path.write_bytes(content)


def test_a_parquet_file_of_another_polars_version_is_compared_by_values(parquet, tmp_path):
    """Bytes may differ, on request; values and metadata may not."""
    document = parquet.document("manifest.json")
    document["parameters"]["writer"] = "polars 0.20.1"
    frame = pl.read_parquet(parquet.folder / "synthetic.parquet")
    row = TABLE.row(0)
    written = {
        "same": (frame, {"compression": "gzip"}),
        "turned": (frame[::-1], {}),
        "with metadata": (frame, {"metadata": {"note": str(row)}}),
        "with columns": (frame.with_columns(more=pl.lit(str(row))), {}),
    }
    for name, (other, options) in written.items():
        other.write_parquet(tmp_path / f"{name}.parquet", **options)
        changed = {"synthetic.parquet": (tmp_path / f"{name}.parquet").read_bytes()}
        assert parquet.is_detected(changed), name
        report = parquet.report(changed, manifest=document)
        assert not report.passed, name
        assert (failing(report) == []) == (name == "same"), name
        accepted = parquet.report(changed, manifest=document, accept_other_platform=True)
        assert accepted.passed == (name == "same"), name
    inexact = {check.name for check in accepted.inexact}
    assert inexact <= {"records", "regenerated records"}


def test_a_parquet_file_of_another_writer_that_hides_bytes_is_detected(parquet):
    """Bytes before the footer that no value refers to."""
    content = parquet.files["synthetic.parquet"]
    footer = int.from_bytes(content[-8:-4], "little") + 8
    hidden = content[:-footer] + b"Doe,40,50," * 3_000 + content[-footer:]
    document = parquet.document("manifest.json")
    document["parameters"]["writer"] = "polars 0.20.1"
    changed = {"synthetic.parquet": hidden}
    report = parquet.report(changed, manifest=document, accept_other_platform=True)
    assert failing(report) == ["records", "regenerated records"]


def test_a_generated_parquet_file_with_unknown_metadata_is_detected(tmp_path):
    file = tmp_path / "a.parquet"
    generate(learn(TABLE, SCHEMA, **USUAL), 100, key=1).write_file(file)
    verify(file).require()
    pl.read_parquet(file).write_parquet(file, metadata={"note": "a real row"})
    manifest = tmp_path / "a.parquet.manifest.json"
    document = json.loads(manifest.read_bytes())
    document["files"][file.name] = file_hash(file)
    manifest.write_bytes(encode_json(add_checksum(document)))
    assert failing(verify(file)) == ["records"]


def test_changed_cells_of_a_parquet_file_are_detected(tmp_path):
    """Including a value outside the range, which a reader would normally clip."""
    folder = make(tmp_path, file_format="parquet")
    frame = pl.read_parquet(folder / "synthetic.parquet")
    row = frame["years"].arg_max()
    outside = frame.with_columns(
        years=pl.when(pl.int_range(pl.len()) == row).then(99).otherwise(pl.col("years"))
    )
    swapped = frame.select(reversed(frame.columns))
    for changed, check_name in (
        (outside, "records"),
        (swapped, "records"),
        (frame[::-1], "regenerated"),
    ):
        other = Release(folder)
        changed.write_parquet(folder / "synthetic.parquet")
        document = other.document("manifest.json")
        document["files"]["synthetic.parquet"] = file_hash(folder / "synthetic.parquet")
        (folder / "manifest.json").write_bytes(encode_json(add_checksum(document)))
        assert [name for name in failing(verify(folder)) if check_name in name]


def test_a_file_that_the_artefact_gives_byte_by_byte_is_not_written_a_second_time(
    release, monkeypatch
):
    """It is in the form that deniable writes. Any other file is written again from its cells."""

    def refuse(*_arguments, **_options):
        raise VerificationError("written a second time")

    monkeypatch.setattr(record_checks, "check_written_form", refuse)
    found = {check.name: check for check in verify(release.folder).checks}
    assert found["records"].passed
    assert found["regenerated records"].passed
    monkeypatch.setattr(verify_module, "check_regenerated", refuse)
    found = {check.name: check for check in verify(release.folder).checks}
    assert found["records"].explanation == "written a second time"


def test_changed_generated_records_are_detected(tmp_path):
    artefact = learn(TABLE, SCHEMA, **USUAL)
    for name in ("a.csv", "a.parquet"):
        file, manifest = tmp_path / name, tmp_path / f"{name}.manifest.json"
        generate(artefact, 100, key=1).write_file(file)
        document = json.loads(manifest.read_bytes())
        frame = generate(artefact, 99, key=1).frame()
        frame.write_csv(file) if name.endswith("csv") else frame.write_parquet(file)
        assert failing(verify(file)) == ["files", "records"]
        document["files"][name] = file_hash(file)
        manifest.write_bytes(encode_json(add_checksum(document)))
        assert failing(verify(file)) == ["records"]


def test_kept_prefixes_shared_by_too_few_rows_are_detected(tmp_path):
    folder = make(tmp_path, estimator="norm-sub")
    report = verify(folder, against=TABLE.head(5))
    assert failing(report) == ["kept prefixes in the table"]
    other = verify(folder, against=pl.concat([TABLE, TABLE]))
    assert failing(other) == ["kept prefixes in the table"]
    assert "by more than noise can" in other.failed[0].explanation
    for value in SCHEMA.attributes[0].values:
        assert str(value) not in report.failed[0].explanation


def test_with_a_split_the_noise_is_not_compared_with_the_table(tmp_path):
    folder = make(tmp_path, data_use="split", estimator="norm-sub")
    verify(folder, against=pl.concat([TABLE, TABLE])).require()


def test_records_that_fail_the_deniability_test_are_detected(tmp_path):
    folder = make(tmp_path, mode="tested", omega="2")
    assert failing(verify(folder, against=TABLE.head(5))) == ["deniability test in the table"]


def test_a_table_that_does_not_fit_the_schema_is_a_data_error(tmp_path):
    folder = make(tmp_path)
    with pytest.raises(DataError):
        verify(folder, against=TABLE.drop("home"))


def test_a_manifest_that_claims_very_many_records_is_refused_at_once():
    """No name is made for each part that they would have."""
    claims = SimpleNamespace(parameters={"records": 10**15})
    with pytest.raises(VerificationError, match="a part is missing"):
        record_checks.require_all_parts(["part-00000.csv"], claims)


def test_the_writer_is_in_the_manifest_for_parquet_only(release, parquet):
    assert "writer" not in release.document("manifest.json")["parameters"]
    assert "writer" in parquet.document("manifest.json")["parameters"]

    def add(document):
        document["parameters"]["writer"] = "polars 2.1.0"

    document = release.document("manifest.json")
    add(document)
    assert release.is_detected({"manifest.json": encode_json(document)})
