"""The command ``audit``: which audit it runs, what it refuses, and its exit codes."""

import json

import pytest

from command_line import runner
from deniable.audit import mechanism, release_audit, table_audit
from deniable.audit.audit_report import AuditReport, AuditSection


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    return runner(monkeypatch, capsys, tmp_path)


def report_with(*, within):
    section = AuditSection(name="x", title="A case", words=("w",), within=within)
    return AuditReport(
        edition="public",
        subject="mechanism",
        headline="A headline",
        findings=("a finding",),
        guarantee="a promise",
        sections=(section,),
    )


@pytest.fixture
def calls(monkeypatch):
    found = []
    for module, name in (
        (mechanism, "audit_mechanism"),
        (table_audit, "audit_table"),
        (release_audit, "audit_release"),
    ):

        def audit(*given, name=name, **settings):
            found.append((name, given, settings))
            return report_with(within=settings.get("plant") is None)

        monkeypatch.setattr(module, name, audit)
    return found


def test_the_arguments_choose_the_audit(run, calls, tmp_path):
    assert run("audit", "--mechanism", "--epsilon", 2, "--runs", 9).code == 0
    assert (
        run("audit", "t.csv", "--schema", "s.toml", "--out", tmp_path, "--holdout", "h").code == 0
    )
    assert run("audit", "release").code == 0
    assert [name for name, _, _ in calls] == ["audit_mechanism", "audit_table", "audit_release"]
    assert calls[0][2]["epsilon"] == 2
    assert calls[0][2]["runs"] == 9


@pytest.mark.usefixtures("calls")
def test_exceeding_the_promise_is_exit_code_1(run):
    found = run("audit", "--mechanism", "--plant", "half-noise")
    assert found.code == 1
    assert "A headline" in found.out
    assert "A case" in found.err
    found = run("audit", "--mechanism", "--plant", "half-noise", "--json")
    assert found.code == 1
    assert json.loads(found.out)["within"] is False
    assert run("audit", "--mechanism", "--quiet").out == ""


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("t.csv", "--mechanism"),
        ("--mechanism", "--holdout", "h.csv"),
        ("--mechanism", "--schema", "s.toml"),
        ("t.csv", "--schema", "s.toml"),
        ("t.csv", "--schema", "s.toml", "--out", "o", "--plant", "half-noise"),
        ("release", "--runs", 5),
        ("release", "--holdout", "h.csv"),
        ("--mechanism", "--runs", 0),
    ],
)
def test_options_of_another_audit_are_refused(run, arguments):
    found = run("audit", *arguments)
    assert found.code == 2
    assert found.err


def test_an_interrupted_audit_says_whether_its_parts_are_kept(run, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mechanism, "audit_mechanism", interrupted)
    for out in (["--out", "folder"], ["--out=folder"]):
        found = run("audit", "--mechanism", *out)
        assert found.code == 130
        assert "finished parts are kept" in found.err
    assert "nothing was written" in run("audit", "--mechanism").err
