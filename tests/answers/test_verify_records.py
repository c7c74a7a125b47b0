"""Files of records are verified: options, facts, and generated again: the same bytes."""

import json

import polars as pl
import pytest

from deniable import verify
from deniable.answers.conditional_release import generate_conditional
from deniable.errors import ConfigError
from deniable.pipeline import api
from deniable.release.manifest import add_checksum

pytestmark = pytest.mark.slow

GIVEN = pl.DataFrame({"age": ["44", "", "70"], "town": ["Jena", "Bonn", ""]})


def failed(report):
    return [check.name for check in report.failed]


def test_options_that_do_not_go_together_are_refused(rich, rich_folder, tmp_path):
    api.generate(rich, 20, key=3).write_file(tmp_path / "r.csv")
    with pytest.raises(ConfigError, match="for a file of records"):
        verify(rich_folder, artefact=rich_folder)
    with pytest.raises(ConfigError, match="--given needs --artefact"):
        verify(tmp_path / "r.csv", given=GIVEN)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("inference", {"method": "exact", "more": 1}),
        ("given", {"columns": ["age"], "public": False, "records_each": 1, "more": 1}),
        ("balance", {"grade": [0.5, 0.4, 0.3]}),
    ],
)
def test_invalid_facts_in_a_manifest_fail(rich, tmp_path, name, value):
    path = generate_conditional(rich, given=GIVEN, key=2).write_file(tmp_path / "r.csv")
    manifest = path.with_name(f"{path.name}.manifest.json")
    document = json.loads(manifest.read_text())
    document["parameters"][name] = value
    manifest.write_text(json.dumps(add_checksum(document), indent=2, ensure_ascii=False) + "\n")
    assert "parameters" in failed(verify(path))


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet"])
def test_completed_rows_are_generated_again_with_the_given_rows(rich, rich_folder, tmp_path, name):
    release = generate_conditional(rich, given=GIVEN, records_each=5, key=2)
    path = release.write_file(tmp_path / name)
    without = verify(path, artefact=rich_folder)
    assert without.passed
    assert any("given rows are not at hand" in text for text in without.unknown)
    report = verify(path, artefact=rich_folder, given=GIVEN)
    assert report.passed
    assert "regenerated records" in [check.name for check in report.checks]
    other = GIVEN.with_columns(pl.Series("age", ["45", "", "70"]))
    assert failed(verify(path, artefact=rich_folder, given=other)) == ["regenerated records"]
    assert failed(verify(path, artefact=rich_folder, given=GIVEN.head(2))) == [
        "regenerated records"
    ]


@pytest.mark.parametrize(
    "request_", [{"where": "age >= 33"}, {"balance": "grade: 0.2, 0.3, 0.5", "where": "age < 50"}]
)
def test_conditions_and_shares_are_generated_again(rich, rich_folder, tmp_path, request_):
    path = generate_conditional(rich, 300, key=2, **request_).write_file(tmp_path / "r.csv")
    assert verify(path, artefact=rich_folder).passed
    without = verify(path)
    assert without.passed
    assert any("use --artefact" in text for text in without.unknown)
    manifest = tmp_path / "r.csv.manifest.json"
    document = json.loads(manifest.read_text())
    document["parameters"]["where"] = "age >= 34"
    manifest.write_text(json.dumps(add_checksum(document), indent=2, ensure_ascii=False) + "\n")
    assert not verify(path, artefact=rich_folder).passed


def test_plain_records_are_generated_again(rich, rich_folder, tmp_path):
    api.generate(rich, 200, key=3).write_file(tmp_path / "r.csv")
    assert verify(tmp_path / "r.csv", artefact=rich_folder).passed
    lines = (tmp_path / "r.csv").read_text().splitlines()
    (tmp_path / "r.csv").write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]) + "\n")
    assert not verify(tmp_path / "r.csv", artefact=rich_folder).passed
