"""More records: the request as a command, its mark, its check, and what is impossible."""

import io
import json
import re
import shutil
import zipfile
from types import SimpleNamespace

import pytest

from deniable.answers.conditional_release import generate_conditional
from deniable.release.artefact import load
from deniable.studio.checked_files import state_of_files
from deniable.studio.more_records import records_path
from deniable.studio.run_store import RunRecord
from deniable.studio.workspace import Call
from deniable.verification.verify import verify
from studio_client import end_step, record_verdict, text_of

pytestmark = pytest.mark.slow


@pytest.fixture
def started(released):
    """The runs that were asked for; none is started. The release has passed its check."""
    record_verdict(released, "out")
    found: list[RunRecord] = []
    released.space.control.begin = found.append
    return found


ARTEFACT = ("generate", "out/artefact")


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"records": "1,500"}, ("--records", "1500", "--out", "out-more-1.csv")),
        (
            {"records": "5", "format": "parquet"},
            ("--records", "5", "--out", "out-more-1.parquet"),
        ),
        (
            {"records": "5", "where": "years >= 30\r\nand years < 50 "},
            ("--records", "5", "--where=years >= 30 and years < 50", "--out", "out-more-1.csv"),
        ),
    ],
)
def test_a_request_is_the_command_that_is_shown_and_is_checked(released, started, fields, asked):
    shown = released.post("/more/command", release="out", **fields)
    released.post("/more", release="out", **fields)
    [run] = started
    make, check = (each.arguments for each in run.steps)
    assert make == (*ARTEFACT, *asked)
    assert check == ("verify", run.out, "--artefact", "out/artefact")
    assert run.out == asked[-1]
    assert run.table == ""
    assert f"deniable verify {run.out} --artefact out/artefact" in text_of(f"<main {shown}")
    assert "May be published." in shown


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"records": "0"}, "whole number"),
        ({"records": "x"}, "whole number"),
        ({"records": ""}, "whole number"),
        ({"records": "9" * 30}, "whole number"),
        ({"records": "9" * 12}, "need at least"),
        ({"records": "5", "where": "yeers > 3"}, "did you mean"),
        ({"records": "5", "where": "trade ="}, "expected a value"),
    ],
)
def test_what_is_impossible_is_told_at_once_and_not_started(
    released, started, monkeypatch, fields, words
):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    shown = released.post("/more/command", release="out", **fields)
    assert "These records are not possible." in shown
    assert words in shown
    assert "May be published." not in shown
    reply = released.client.post("/more", data={"release": "out", **fields})
    assert reply.status_code in (403, 404, 422)
    assert started == []


def test_the_commands_that_are_started_make_records_that_pass(
    released, folder, started, deniable, monkeypatch
):
    released.post("/more", release="out", records="40", where="years >= 30")
    monkeypatch.chdir(folder)
    for at, step in enumerate(started[0].steps):
        result = deniable(*step.arguments, "--json")
        assert result.code == 0, result.err
        end_step(released, started[0].id, at, output=result.out)
    lines = (folder / "out-more-1.csv").read_text().splitlines()[1:]
    assert len(lines) == 40
    assert all(int(line.split(",")[0]) >= 30 for line in lines)
    assert "where years &gt;= 30; " in released.get("/result", release="out")


@pytest.fixture
def made(released, folder, started):
    """A file of more records with a run that has made it, and has not checked it yet."""
    released.post("/more", release="out", records="50", where="years >= 30")
    artefact = load(folder / "out" / "artefact")
    generate_conditional(artefact, 50, where="years >= 30").write_file(folder / "out-more-1.csv")
    end_step(released, started[0].id, 0)
    return started[0].id


def check(studio, run, *, passed):
    """Write the files of the check of more records."""
    verdict = json.dumps({"passed": passed, "checks": [], "unknown": []})
    end_step(studio, run, 1, code=0 if passed else 1, output=verdict)
    state = json.dumps(state_of_files(studio.space.root.path / "out-more-1.csv"))
    (studio.space.store.folder(run) / "1.files").write_text(state)


def shown_mark(studio):
    page = studio.get("/result", release="out").partition("More records")[2]
    before, _, after = page.partition("out-more-1.csv</code>")
    return re.findall('class="mark ([a-z]+)"', before)[-1], after.partition("</p>")[0]


def test_more_records_may_leave_once_they_passed_and_as_long_as_they_are_unchanged(
    released, folder, made
):
    mark, words = shown_mark(released)
    assert (mark, "is being checked" in words) == ("stays", True)
    check(released, made, passed=False)
    assert shown_mark(released)[0] == "stays"
    assert "do not publish it" in shown_mark(released)[1]
    check(released, made, passed=True)
    mark, words = shown_mark(released)
    assert mark == "public"
    assert "where years &gt;= 30; checked: PASS" in words
    # The verdict on these records is none on the release.
    assert "All 2 checks passed" in released.get("/result", release="out")
    with (folder / "out-more-1.csv").open("a") as file:
        file.write("x\n")
    mark, words = shown_mark(released)
    assert (mark, "changed since it was checked" in words) == ("stays", True)


def test_more_records_of_a_release_that_may_not_leave_stay(released, made):
    check(released, made, passed=True)
    for run in released.space.store.all():
        if run.kind == "check":
            released.space.store.forget(run.id)
    assert shown_mark(released)[0] == "stays"


def test_records_that_stay_inside_by_their_name_are_neither_marked_nor_sent(released, folder, made):
    check(released, made, passed=True)
    for end in ("", ".manifest.json"):
        (folder / f"out-more-1.csv{end}").rename(folder / f"more.csv.internal{end}")
    released.space.store.change(made, out="more.csv.internal")
    state = json.dumps(state_of_files(folder / "more.csv.internal"))
    (released.space.store.folder(made) / "1.files").write_text(state)
    page = released.get("/result", release="out").partition("More records")[2]
    line = page.partition("more.csv.internal</code> <small>where years &gt;= 30; checked: PASS")[0]
    assert re.findall('class="mark ([a-z]+)"', line)[-1] == "stays"
    reply = released.client.get("/download", params={"records": "more.csv.internal"})
    assert reply.status_code == 403


@pytest.mark.usefixtures("made")
def test_more_records_are_sent_with_their_manifest(released, tmp_path):
    reply = released.client.get("/download", params={"records": "out-more-1.csv"})
    with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
        names = ["out-more-1/out-more-1.csv", "out-more-1/out-more-1.csv.manifest.json"]
        assert archive.namelist() == names
        archive.extractall(tmp_path / "unpacked")
    assert verify(tmp_path / "unpacked" / "out-more-1" / "out-more-1.csv").passed


def test_only_records_with_their_own_manifest_are_sent(released, folder):
    shutil.copy(folder / "table.csv", folder / "other.csv")
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    for listed in ({}, {"synthetic.csv": "0"}, {"other.csv": "0", "table.csv": "0"}):
        text = json.dumps({**manifest, "files": listed})
        (folder / "other.csv.manifest.json").write_text(text)
        reply = released.client.get("/download", params={"records": "other.csv"})
        assert reply.status_code == 422
    assert released.client.get("/download", params={"records": "table.csv"}).status_code == 404


def test_no_name_is_used_twice(released, folder, started):
    call = Call(space=released.space)
    released.post("/more", release="out", records="5")
    (folder / "out-more-2.csv").touch()
    assert started[0].out == "out-more-1.csv"
    assert records_path(call, "out") == "out-more-3.csv"


def test_a_mode_without_an_artefact_makes_no_more(released, folder, started):
    shutil.rmtree(folder / "out" / "artefact")
    assert "This mode keeps no model" in released.get("/result", release="out")
    data = {"release": "out", "records": "5"}
    assert released.client.post("/more", data=data).status_code == 422
    assert started == []
