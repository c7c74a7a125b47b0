"""The commands query and audit: what they print and write, what they refuse, their exit codes."""

import json
import stat

import polars as pl
import pytest

from command_line import runner
from deniable.audit import mechanism, release_audit, table_audit
from deniable.audit.audit_report import AuditReport, AuditSection
from deniable.cli.query_command import _split_columns
from toy_artefacts import toy_artefact

# The command ``query``: what it prints and writes, and what it refuses


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("query") / "artefact"
    toy_artefact(epsilon=8.0).save(folder)
    return folder


def test_a_table_is_printed_with_its_intervals(run, saved):
    found = run("query", saved, "--columns", "colour,sold", "--by", "colour: values")
    assert found.code == 0
    assert "95 % intervals for the table" in found.out
    assert "within colour" in found.out
    assert "[" in found.out


def test_numbers_and_bands_are_printed(run, saved):
    found = run("query", saved, "--columns", "size", "--by", "size: 20", "--sampling-error")
    assert "0 to 19" in found.out
    assert "the population" in found.out
    assert "quantile 0.5" in found.out


def test_the_model_answers_for_three_columns(run, saved):
    found = run("query", saved, "--columns", "colour, sold, price")
    assert "No intervals" in found.out
    assert "Model only, no interval" in found.out
    assert "[" not in found.out


def test_json_is_one_object_and_quiet_is_quiet(run, saved):
    arguments = ("query", saved, "--columns", "size", "--where", 'colour = "red"')
    document = run(*arguments, "--json").json
    assert document["columns"] == ["size"]
    assert document["where"] == 'colour = "red"'
    assert run(*arguments, "--quiet").out == ""


@pytest.mark.parametrize("name", ["answer.csv", "answer.parquet", "answer.json"])
def test_an_answer_is_written_to_a_file(run, saved, tmp_path, name):
    out = tmp_path / name
    assert run("query", saved, "--columns", "colour", "--out", out).code == 0
    if name.endswith("json"):
        assert len(json.loads(out.read_text())["cells"]) == 4
    else:
        frame = pl.read_csv(out) if name.endswith("csv") else pl.read_parquet(out)
        assert frame["colour"].to_list() == ["red", "green", "blue", "grey"]
    again = run("query", saved, "--columns", "colour", "--out", out)
    assert again.complains(2, "exists")


def test_answers_of_a_confidential_artefact_are_private(run, tmp_path):
    toy_artefact(epsilon=float("inf")).save(tmp_path / "exact")
    out = tmp_path / "answer.csv"
    found = run("query", tmp_path / "exact", "--columns", "colour", "--out", out)
    assert "confidential" in found.out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--columns", "colours"), 'did you mean "colour"'),
        (("--columns", ""), "--columns"),
        (("--columns", "colour,,sold"), "--columns"),
        (("--columns", "colour", "--by", "colour"), "column: rule"),
        (("--columns", "colour", "--where", "colour ~ 3"), "condition"),
        (("--columns", "colour", "--out", "a.txt"), "must end in .csv"),
    ],
)
def test_bad_questions_are_refused(run, saved, arguments, words):
    assert run("query", saved, *arguments).complains(2, words)


def test_a_folder_that_is_no_artefact_is_refused(run, tmp_path):
    assert run("query", tmp_path, "--columns", "a").complains(2, "not an artefact")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("colour", ["colour"]),
        ("colour, sold", ["colour", "sold"]),
        ('"a, b",sold', ["a, b", "sold"]),
    ],
)
def test_names_are_split_at_commas_outside_quotes(text, names):
    assert _split_columns(text, toy_artefact()) == names


# The command ``audit``: which audit it runs, what it refuses, and its exit codes


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
