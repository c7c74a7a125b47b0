"""Verify files of records: options that go together, and facts in their manifests."""

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
