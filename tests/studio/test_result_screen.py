"""The fifth screen: what may leave, what stays, the zip, and more records."""

import io
import shutil
import zipfile

import pytest

from deniable.pipeline import api
from deniable.studio.run_store import RunRecord, Step
from deniable.verification.verify import verify
from measured_release import without_training
from studio_client import end_step, record_release, record_verdict, text_of


def marks_of(page):
    """What a page says of the release: its colours, its marks, its main button."""
    public = page.partition("Everything below is measured on real rows")[0]
    found = {
        "box": 'class="box public"' in public,
        "words": "May be published." in public,
        "tags": public.count('class="mark public"'),
        "button": 'class="button primary"' in public,
    }
    return found, public.count('class="mark stays"')


def test_all_marks_and_the_button_follow_one_verdict(released, folder):
    green = {"box": True, "words": True, "tags": 2, "button": True}
    red = {"box": False, "words": False, "tags": 0, "button": False}
    assert marks_of(released.get("/result", release="out")) == (red, 2)
    run = record_verdict(released, "out")
    page = released.get("/result", release="out")
    assert marks_of(page) == (green, 0)
    assert "<b>fine</b>" not in page
    released.space.store.forget(run)
    run = record_verdict(released, "out", passed=False)
    assert marks_of(released.get("/result", release="out")) == (red, 2)
    released.space.store.forget(run)
    record_verdict(released, "out")
    with (folder / "out" / "synthetic.csv").open("a") as file:
        file.write("20,tinsmith,windmill,1,axolotl\n")
    page = released.get("/result", release="out")
    assert marks_of(page) == (red, 2)
    assert "Changed since it was verified: verify again." in text_of(page)
    assert "PASS" not in text_of(page)


def test_mode_tested_is_marked_as_what_stays(released, folder):
    path = folder / "out" / "manifest.json"
    path.write_text(path.read_text().replace('"one-shot"', '"tested"'))
    record_verdict(released, "out")
    found, stays = marks_of(released.get("/result", release="out"))
    assert not any(found.values())
    assert stays == 2


def test_why_it_was_not_measured_is_shown(released):
    step = Step(name="Measure", arguments=("evaluate", "table.csv"))
    run = record_release(released, "", kind="check", schema="out", steps=(step,))
    end_step(released, run, 0, code=2, errors="DataError: <b> no\n")
    assert "DataError: &lt;b&gt; no" in released.get("/result", release="out")


def test_internal_files_in_a_release_are_not_in_its_zip(released, folder):
    inner = folder / "out" / "second.internal"
    inner.mkdir()
    (inner / "run.json").write_text("secret")
    reply = released.client.get("/download", params={"release": "out"})
    with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
        assert not any("internal" in name for name in archive.namelist())
    assert "second.internal" not in released.get("/result", release="out")


def test_a_folder_with_some_manifest_is_no_release(released, folder):
    (folder / "app").mkdir()
    (folder / "app" / "manifest.json").write_text('{"name": "app"}')
    (folder / "app" / "secret.csv").write_text("secret")
    for page in ("/result", "/download"):
        assert released.client.get(page, params={"release": "app"}).status_code == 422


def test_the_zip_is_the_release_and_verifies(released, tmp_path):
    reply = released.client.get("/download", params={"release": "out"})
    assert reply.headers["content-disposition"].endswith("out.zip")
    with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"out"}
        assert not any("internal" in name for name in archive.namelist())
        archive.extractall(tmp_path / "unpacked")
    assert verify(tmp_path / "unpacked" / "out").passed


def test_an_internal_folder_is_not_downloaded(released, folder):
    (folder / "out.internal" / "manifest.json").write_text("{}")
    reply = released.client.get("/download", params={"release": "out.internal"})
    assert reply.status_code == 403


@pytest.mark.parametrize("path", ["../out", "absent", "", ".deniable-studio", "table.csv"])
def test_what_is_no_release_is_a_clear_page(released, path):
    for page in ("/result", "/download"):
        reply = released.client.get(page, params={"release": path})
        assert reply.status_code in (403, 404, 422)
        assert "bug" not in reply.text


def test_a_release_without_a_guarantee_stays_inside(released, folder, small_table, small_schema):
    api.synthesize(small_table, small_schema, records=20, epsilon=float("inf"), omega="3").write(
        folder / "open"
    )
    words = text_of(released.get("/result", release="open"))
    assert "Confidential, stays inside. Its manifest claims no privacy" in words
    assert "May be published." not in words


def test_the_report_is_shown_in_a_frame_without_scripts(released):
    page = released.get("/result", release="out")
    assert 'src="/view/out.internal/report/report.html"' in page
    assert "sandbox=" in page
    reply = released.client.get("/view/out.internal/report/report.html")
    policy = reply.headers["content-security-policy"]
    assert "sandbox" in policy
    assert "script" not in policy.replace("allow-scripts", "X")
    assert "frame-ancestors 'self'" in policy
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "out/manifest.json",
        "table.csv",
        "../report.html",
        ".deniable-studio/report.html",
        "%2e%2e/%2e%2e/report.html",
        "absent/report.html",
    ],
)
def test_only_reports_below_the_root_are_shown(released, path):
    assert released.client.get(f"/view/{path}").status_code in (403, 404)


def test_a_report_that_is_a_link_is_refused(released, folder, tmp_path):
    (tmp_path / "secret.html").write_text("secret")
    report = folder / "out.internal" / "report" / "report.html"
    report.unlink()
    report.symlink_to(tmp_path / "secret.html")
    reply = released.client.get("/view/out.internal/report/report.html")
    assert reply.status_code == 403
    assert "secret" not in reply.text


def begun(studio):
    found: list[RunRecord] = []
    studio.space.control.begin = found.append
    return found


def test_checks_are_the_commands_that_are_shown(released):
    started = begun(released)
    for what in ("verify", "against", "measure"):
        released.post("/check", release="out", what=what)
    assert [run.steps[0].arguments for run in started] == [
        ("verify", "out"),
        ("verify", "out", "--against", "table.csv"),
        (
            *("evaluate", "table.csv", "out/synthetic.csv", "--schema", "out/schema.toml"),
            *("--out", "out.internal/report"),
        ),
    ]


def test_a_release_of_an_unknown_table_cannot_be_measured_here(released):
    for run in released.space.store.all():
        released.space.store.forget(run.id)
    data = {"release": "out", "what": "measure"}
    assert released.client.post("/check", data=data).status_code == 422


def test_what_a_check_found_in_the_table_is_marked(released):
    record_verdict(released, "out")
    verdict = released.get("/result", release="out").partition("Certificate")[0]
    assert 'class="mark stays"' not in verdict
    against = record_verdict(released, "out", against="table.csv")
    for run in released.space.store.all():  # those of one second are in no order
        if run.kind == "check" and run.id != against:
            released.space.store.forget(run.id)
    page = released.get("/result", release="out")
    assert 'Verdict <span class="mark stays">' in page
    assert "also read your table" in page
    assert "May be published." in page


def test_an_artefact_alone_is_shown_and_makes_records(released):
    page = released.get("/result", release="out/artefact")
    assert "differentially private" in text_of(page)
    started = begun(released)
    released.post("/more", release="out/artefact", records="7")
    assert started[0].steps[0].arguments == (
        *("generate", "out/artefact", "--records", "7", "--out", "out/artefact-more-1.csv"),
    )


def test_a_release_is_measured_by_one_click(released, folder, deniable, monkeypatch):
    """The command that is started makes the report that the page shows."""
    started = begun(released)
    shutil.rmtree(folder / "out.internal" / "report")
    assert "It has not been measured yet." in released.get("/result", release="out")
    released.post("/check", release="out", what="measure")
    monkeypatch.chdir(folder)
    with without_training():
        assert deniable(*started[0].steps[0].arguments, "--quiet").code == 0
    page = released.get("/result", release="out")
    assert 'src="/view/out.internal/report/report.html"' in page
