"""Checkpoints: a cell is measured once, and a folder belongs to one set of settings."""

import json
import stat

import pytest

from deniable.errors import OutputError
from deniable.evaluation import checkpoints
from deniable.evaluation.checkpoints import CheckpointFolder, code_fingerprint, write_atomically


def test_a_cell_is_measured_once_and_then_loaded(tmp_path):
    calls = []

    def measure():
        calls.append(1)
        return {"accuracy": 0.5}

    for _ in range(2):
        folder = CheckpointFolder.open(tmp_path / "out", {"k": 50})
        assert folder.load_or_measure("release m-1 run 0", measure) == {"accuracy": 0.5}
    assert len(calls) == 1
    saved = tmp_path / "out" / "cells" / "release_m-1_run_0.json"
    assert json.loads(saved.read_text()) == {"cell": {"accuracy": 0.5}}


def test_a_failed_measurement_saves_nothing(tmp_path):
    folder = CheckpointFolder.open(tmp_path / "out", {})
    with pytest.raises(ZeroDivisionError):
        folder.load_or_measure("facts", lambda: 1 / 0)
    assert list((tmp_path / "out" / "cells").iterdir()) == []


def test_the_folder_is_accessible_to_its_owner_only(tmp_path):
    folder = CheckpointFolder.open(tmp_path / "out", {})
    folder.load_or_measure("facts", lambda: 1)
    for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_other_settings_and_other_files_are_refused(tmp_path):
    CheckpointFolder.open(tmp_path / "out", {"k": 50})
    with pytest.raises(OutputError, match="started with other settings"):
        CheckpointFolder.open(tmp_path / "out", {"k": 51})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="contains other files"):
        CheckpointFolder.open(tmp_path / "full", {})
    assert (tmp_path / "full" / "notes.txt").read_text() == "mine"


def test_the_fingerprint_changes_with_the_source(tmp_path, monkeypatch):
    module = tmp_path / "evaluation" / "checkpoints.py"
    module.parent.mkdir()
    module.write_text("one = 1\n")
    monkeypatch.setattr(checkpoints, "__file__", str(module))
    first = code_fingerprint()
    assert code_fingerprint() == first
    module.write_text("one = 2\n")
    assert code_fingerprint() != first


def test_an_atomic_write_replaces_a_file_and_leaves_no_temporary_one(tmp_path):
    path = tmp_path / "table3.csv"
    for content in (b"old", b"new"):
        write_atomically(path, content)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"{}", b"\xff"])
def test_a_damaged_cell_is_an_error_that_says_what_to_do(tmp_path, content):
    folder = CheckpointFolder.open(tmp_path / "out", {})
    folder.save("one", 1)
    (tmp_path / "out" / "cells" / "one.json").write_bytes(content)
    with pytest.raises(OutputError, match="delete it"):
        folder.load_or_measure("one", lambda: 2)
