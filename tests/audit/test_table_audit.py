"""An audit of a table: power on a leak, none where there is much noise, resumption, bad input."""

import json
import math
import stat

import pytest

from audited_tables import COLOURS, HOLDOUT, NOISE, PLACES, SCHEMA, TABLE, quick_audit
from command_line import runner
from deniable.audit import retraining, table_audit
from deniable.errors import ConfigError, DataError, OutputError, VerificationError
from deniable.model.pairwise import measure

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """Audits without noise and with much of it, in their folders."""
    made = {}
    for name, epsilon in (("leak", math.inf), ("noise", 0.01)):
        folder = tmp_path_factory.mktemp("audits") / name
        made[name] = (quick_audit(folder, epsilon, mode="seedless"), folder)
    return made


def success(report, attack="noisy counts", group="most_exposed"):
    return report.document()["sections"]["membership"]["attacks"][attack][group]


def test_a_leak_is_seen_by_both_attacks(audits):
    report, _ = audits["leak"]
    assert success(report)["auc"]["estimate"] == 1
    assert success(report, "learned from answers")["auc"]["interval"][0] > 0.5
    assert "is visible" in report.findings[0]
    assert report.within  # nothing was promised


def test_much_noise_leaves_no_evidence(audits):
    """False alarms of the verdict: less than once in a thousand for fresh keys."""
    report, _ = audits["noise"]
    assert report.within
    for attack in ("noisy counts", "learned from answers"):
        low, high = success(report, attack)["auc"]["interval"]
        assert low < 0.5 < high + 0.1


def test_the_report_is_internal_and_shows_no_cell(audits):
    report, folder = audits["leak"]
    assert report.edition == "internal"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    page = (folder / "audit.html").read_text(encoding="utf-8")
    assert "Internal edition" in page
    assert not [word for word in (*COLOURS, *PLACES) if word in page]
    assert "attack failed" not in page
    assert "No evidence of" in page
    written = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(report.document()))
    saved = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    assert saved["table"] not in (folder / "audit.json").read_text(encoding="utf-8") + page
    assert list(written["sections"]) == ["membership", "singling_out", "attribute_inference"]


def test_an_interrupted_audit_resumes(audits, monkeypatch, tmp_path):
    finished, folder = audits["leak"]
    calls = []

    def interrupted(audited, queries, number):
        calls.append(number)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return retraining.retrain_with_coins(audited, queries, number)

    monkeypatch.setattr(table_audit, "count_cores", lambda: 1)
    monkeypatch.setattr(table_audit, "retrain_with_coins", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quick_audit(tmp_path / "out", mode="seedless")
    # A thread may still be measuring: what it saves is kept too.
    saved = {file.name for file in (tmp_path / "out" / "cells").iterdir()}
    assert {"coins_0.json", "coins_2.json"} <= saved
    assert not (tmp_path / "out" / "audit.html").exists()
    before = len(calls)
    resumed = quick_audit(tmp_path / "out", mode="seedless")
    assert 1 <= len(calls) - before <= 7
    assert resumed.document() == finished.document()
    assert (folder / "audit.html").read_bytes() == (tmp_path / "out" / "audit.html").read_bytes()


def test_a_folder_of_other_settings_is_refused(audits):
    _, folder = audits["leak"]
    with pytest.raises(OutputError, match="other settings"):
        quick_audit(folder, epsilon=2.0, mode="seedless")


def test_a_planted_leak_exceeds_the_promise(monkeypatch, tmp_path):
    """Noise that is planned and not added: the audit says so, with the exit code of a failure."""
    add_noise = measure.add_noise

    def add_nothing(rng, counts, law, **named):
        return counts, add_noise(rng, counts, law, **named)[1]

    monkeypatch.setattr(measure, "add_noise", add_nothing)
    report = quick_audit(tmp_path / "out", epsilon=0.5, mode="seedless")
    assert not report.within
    assert "more than the guarantee allows" in report.headline
    with pytest.raises(VerificationError, match="Membership") as error:
        report.require()
    assert error.value.exit_code == 1


def test_modes_with_seeds_are_attacked_by_their_records(tmp_path):
    report = quick_audit(
        tmp_path / "out", mode="tested", omega="2", k=20, records=200, holdout=None
    )
    sections = report.document()["sections"]
    assert "released prefixes" in sections["membership"]["attacks"]
    assert sections["membership"]["within"] is None  # nothing is promised of the seeds


def test_too_few_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="too few rows"):
        table_audit.audit_table(TABLE.head(100), SCHEMA, out=tmp_path / "out")
    with pytest.raises(DataError, match="the holdout has too few rows"):
        table_audit.audit_table(TABLE, SCHEMA, out=tmp_path / "out", holdout=HOLDOUT.head(10))
    assert not (tmp_path / "out").exists()


def test_a_holdout_that_overlaps_is_refused(tmp_path):
    with pytest.raises(DataError, match="rows of the table"):
        table_audit.audit_table(TABLE, SCHEMA, out=tmp_path / "out", holdout=TABLE, noise=NOISE)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wrong", [{"runs": 2}, {"targets": 3}, {"records": -1}])
def test_sizes_that_show_nothing_are_refused(wrong, tmp_path):
    with pytest.raises(ConfigError):
        table_audit.audit_table(TABLE, SCHEMA, out=tmp_path / "out", **wrong)


def test_the_command_says_what_is_wrong_without_a_cell(monkeypatch, capsys, tmp_path):
    run = runner(monkeypatch, capsys, tmp_path)
    table, schema = tmp_path / "table.csv", tmp_path / "schema.toml"
    schema.write_text(SCHEMA.text(), encoding="utf-8")
    TABLE.head(300).with_columns(place=TABLE["place"].head(300) + "wards").write_csv(table)
    result = run("audit", table, "--schema", schema, "--out", tmp_path / "out")
    assert result.code == 2
    assert "place" in result.err
    assert "wards" not in result.out + result.err
    TABLE.head(20).write_csv(table)
    result = run("audit", table, "--schema", schema, "--out", tmp_path / "out")
    assert result.code == 2
    assert "at least 250" in result.err
