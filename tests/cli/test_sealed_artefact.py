"""Records are generated only from an artefact whose manifest holds."""

import json
import shutil
from pathlib import Path

import pytest

from deniable.cli.sealed_artefact import load_sealed
from deniable.errors import ArtefactError
from deniable.release.atomic_files import encode_json, file_hash
from deniable.release.manifest import add_checksum


@pytest.fixture
def copy(artefact, tmp_path):
    return shutil.copytree(artefact, tmp_path / "copy")


def cheaper(folder, *, sealed):
    """Claim a tenth of ε wherever the manifest has it, in its sentence too."""
    path = folder / "manifest.json"
    text = path.read_text()
    epsilon = json.loads(text)["guarantee"]["epsilon"]
    document = json.loads(text.replace(repr(epsilon), "0.0997"))
    path.write_bytes(encode_json(add_checksum(document) if sealed else document))


def test_an_artefact_as_it_was_saved_is_loaded(artefact):
    assert load_sealed(artefact).epsilon <= 1.0


@pytest.mark.parametrize("sealed", [False, True])
def test_records_of_an_edited_epsilon_are_neither_made_nor_sealed(deniable, copy, sealed):
    """With a correct checksum, it is the ledger that contradicts the claim."""
    cheaper(copy, sealed=sealed)
    with pytest.raises(ArtefactError, match="total cost" if sealed else "checksum"):
        load_sealed(copy)
    result = deniable("generate", copy, "--records", 5, "--out", "r.csv")
    assert result.complains(2, "ArtefactError")
    assert list(Path.cwd().iterdir()) == []


def bomb(folder, name, raw):
    (folder / name).write_bytes(raw)
    path = folder / "manifest.json"
    if name != "manifest.json":
        document = json.loads(path.read_text())
        document["files"][name] = file_hash(folder / name)
        path.write_bytes(encode_json(add_checksum(document)))


DEEP = b"[" * 200_000


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("artefact.json", DEEP),
        ("artefact.json", b'{"a":' * 200_000),
        ("artefact.json", b'{"format": ' + b"9" * 100_000 + b"}"),
        ("manifest.json", DEEP),
        ("manifest.json", b'{"format": "deniable manifest 1", "files": ' + DEEP),
        ("schema.toml", b"format = 1\nx = " + DEEP),
        ("schema.toml", b"format = " + b"9" * 100_000),
        ("tables.npz", b"PK\x03\x04" + b"\xff" * 1_000),
    ],
)
def test_a_bomb_ends_with_2(deniable, copy, name, raw):
    bomb(copy, name, raw)
    result = deniable("generate", copy, "--records", 5, "--out", "r.csv")
    assert result.complains(2, "ArtefactError")
    assert list(Path.cwd().iterdir()) == []
    assert deniable("verify", copy, "--quiet").complains(1, "VerificationError")


@pytest.mark.parametrize("value", [10**38, -(10**38), 2**62])
def test_a_huge_number_of_seeds_ends_with_2(deniable, copy, value):
    facts = json.loads((copy / "artefact.json").read_text())
    facts["seeds"][0]["records"] = value
    bomb(copy, "artefact.json", encode_json(facts))
    result = deniable("generate", copy, "--records", 5, "--out", "r.csv")
    assert result.complains(2, "ArtefactError", "too large")
