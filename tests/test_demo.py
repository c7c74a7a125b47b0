"""The embedded table, and the command that shows all of it."""

import gzip
import json
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import polars as pl
import pytest

import deniable.demo
from deniable import __main__ as program
from deniable import verify
from deniable.cli import commands
from deniable.data.table_io import read_codes
from deniable.demo import demo_schema, demo_table
from deniable.release.atomic_files import file_hash

pytestmark = pytest.mark.slow

RECORDS = 10_000


@pytest.fixture(scope="module")
def codes():
    return read_codes(demo_table(), demo_schema())[0]


@pytest.fixture
def demo(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["deniable", "demo", *args])
        code = program.run()
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def few_rows(tmp_path, monkeypatch):
    """Part of the table, and few records: for what does not depend on them."""
    part = tmp_path / "few.csv.gz"
    with gzip.open(demo_table(), "rb") as whole:
        part.write_bytes(gzip.compress(b"".join(islice(whole, 301))))
    monkeypatch.setattr(deniable.demo, "demo_table", lambda: part)
    monkeypatch.setattr(commands, "_DEMO_RECORDS", 200)
    return 200


def test_the_table_is_small_and_has_enough_records(codes):
    assert len(codes) >= 30_000
    assert demo_table().stat().st_size < 1_000_000


def test_the_table_fits_its_schema_and_uses_it(codes):
    """Every record is encoded; no attribute is constant; all descriptions are confirmed."""
    schema = demo_schema()
    assert codes.shape[1] == len(schema.names)
    assert (codes < schema.sizes).all()
    assert all(len(set(column.tolist())) > 1 for column in codes.T)
    assert all(attribute.confirmed for attribute in schema.attributes)


def test_the_schema_of_some_columns_describes_these_columns():
    some = demo_schema("income", "age")
    assert some.names == ("age", "income")
    assert set(some.columns) < set(demo_schema().columns)
    assert some.rows_max == demo_schema().rows_max


def test_the_table_is_a_release_of_ours_and_has_its_manifest():
    """Synthetic people: the certificate states their privacy cost."""
    manifest = json.loads(Path(f"{demo_table()}.manifest.json").read_text())
    assert manifest["files"] == {demo_table().name: file_hash(demo_table())}
    assert manifest["guarantee"]["epsilon"] <= 1.0
    assert manifest["guarantee"]["delta"] <= 1e-9
    assert "differentially private" in manifest["guarantee"]["sentence"]
    [check] = verify(demo_table()).failed
    assert f"deniable {manifest['version']} wrote it" in check.explanation


def test_the_embedded_table_is_part_of_the_repository():
    """What git ignores is neither in a clone nor, by hatchling's rules, in a wheel."""
    root = Path(__file__).parents[1]
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        pytest.skip("not a clone")
    files = [path for path in demo_table().parent.iterdir() if path.is_file()]
    asked = [git, "-C", str(root), "check-ignore", *map(str, files)]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    assert answer.stdout == ""


def test_the_package_brings_the_files_along():
    folder = demo_table().parent
    assert folder.name == "demo"
    assert {"census.csv.gz", "schema.toml"} <= {path.name for path in folder.iterdir()}


def test_demo_says_where_results_are_and_what_is_guaranteed(demo):
    code, out, err = demo("--out", "there")
    assert (code, err) == (0, "")
    assert "there" in out
    assert "there/manifest.json" in out
    assert "confidential: there.internal/report/report.html" in " ".join(out.split())
    assert "(ε, δ)-differentially private" in " ".join(out.split())
    frame = pl.read_csv("there/synthetic.csv", null_values=[""])
    assert frame.height == RECORDS
    assert frame.columns == list(demo_schema().names)
    manifest = json.loads(Path("there/manifest.json").read_text())
    assert manifest["guarantee"]["epsilon"] <= 1.0
    assert "".join(manifest["guarantee"]["sentence"].split()) in "".join(out.split())
    # It keeps seeds, else it would show the seedless mode under another name.
    facts = json.loads(Path("there/artefact/artefact.json").read_text())
    assert facts["seeds"][0]["length"] >= 1
    assert facts["mode"] == "one-shot"


def test_demo_with_json_is_one_object_and_quiet_is_quiet(demo, few_rows):
    code, out, err = demo("--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["records"], answer["folder"]) == (few_rows, "demo")
    assert demo("--quiet", "--out", "again") == (0, "", "")


def test_demo_does_not_overwrite(demo):
    Path("demo").mkdir()
    Path("demo/mine").write_text("x")
    code, out, err = demo()
    assert (code, out) == (2, "")
    assert "demo exists and is not empty" in err
    assert [path.name for path in Path("demo").iterdir()] == ["mine"]
