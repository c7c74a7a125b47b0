"""What an outsider can say: verify's verdict, and bounds as sentences."""

import json
import math

import polars as pl
import pytest

import deniable
from audited_tables import COLOURS, PLACES, SCHEMA, TABLE
from deniable.audit.audit_report import render_audit
from deniable.audit.release_audit import audit_release
from deniable.errors import ConfigError, OutputError


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """One release of each promise."""
    folder = tmp_path_factory.mktemp("releases")
    made = {
        "promised": {"mode": "seedless", "epsilon": 1.0},
        "none": {"mode": "seedless", "epsilon": math.inf},
        "tested": {"mode": "tested", "omega": "2", "k": 20},
    }
    for name, options in made.items():
        deniable.synthesize(TABLE, SCHEMA, records=50, **options).write(folder / name)
    return folder


def test_a_guarantee_is_stated_as_what_an_attacker_finds(releases, tmp_path):
    report = audit_release(releases / "promised", out=tmp_path / "out")
    assert report.within
    assert "An attacker who allows 1 % false alarms finds at most 2.72 % of the rows." in (
        report.findings
    )
    document = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    bounds = document["sections"]["bounds"]
    assert bounds["true_positives"]["0.01"] == pytest.approx(math.e / 100, rel=1e-2)
    assert bounds["true_positives"]["0.01"] <= math.e / 100 + 1e-9
    assert bounds["auc"] == pytest.approx(math.e / (1 + math.e), rel=1e-2)
    assert [part.name for part in report.sections] == ["verification", "bounds"]
    assert "It is about the presence of one input row." in report.sections[1].words[1]
    with pytest.raises(OutputError):
        audit_release(releases / "promised", out=tmp_path / "out")


def test_a_delta_that_means_nothing_is_in_the_headline(tmp_path):
    options = {"mode": "seedless", "delta": 0.02, "accept_large_delta": True}
    deniable.synthesize(TABLE, SCHEMA, records=50, **options).write(tmp_path / "out")
    report = audit_release(tmp_path / "out")
    assert "No meaningful guarantee" in report.headline
    assert "No meaningful guarantee" in report.guarantee


def test_the_public_page_shows_no_cell(releases):
    page = render_audit(audit_release(releases / "promised"))
    assert not [word for word in (*COLOURS, *PLACES) if word in page]
    assert "Public edition" in page


def test_nothing_promised_is_said_and_not_for_sharing(releases, tmp_path):
    report = audit_release(releases / "none", out=tmp_path / "out")
    assert report.edition == "internal"
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
    assert report.within  # it matches its manifest
    assert "does not promise" in report.headline
    assert "may find every row" in report.findings[1]


def test_of_tested_records_the_seeds_are_spoken_of(releases):
    report = audit_release(releases / "tested")
    assert "at least 20 rows are equally plausible seeds" in report.findings[1]
    assert "presence of a row is not hidden" in report.findings[1]


def test_a_changed_release_fails(releases, tmp_path):
    changed = tmp_path / "changed"
    changed.mkdir()
    for file in (releases / "tested").iterdir():
        (changed / file.name).write_bytes(file.read_bytes())
    frame = pl.read_csv(changed / "synthetic.csv")
    frame.head(40).write_csv(changed / "synthetic.csv")
    report = audit_release(changed)
    assert not report.within
    assert report.edition == "public"
    assert [part.name for part in report.sections] == ["verification"]
    with pytest.raises(deniable.DeniableError, match="does not match its manifest") as error:
        report.require()
    assert error.value.exit_code == 1


def test_what_is_no_release_is_refused(tmp_path):
    (tmp_path / "table.csv").write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="--schema"):
        audit_release(tmp_path / "table.csv")
