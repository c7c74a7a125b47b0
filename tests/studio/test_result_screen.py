"""The fifth screen: what may leave, what stays, the zip, and more records."""

import io
import json
import os
import shutil
import zipfile

import pytest

from deniable.errors import ArtefactError
from deniable.pipeline import api
from deniable.studio.checked_files import is_unchanged, state_of_files
from deniable.studio.release_view import latest_verdict, read_release
from deniable.studio.root_folder import PathError, RootFolder
from deniable.studio.run_store import RunRecord, Step
from deniable.studio.zip_stream import list_files, zip_blocks
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


def test_moved_columns_stand_before_the_grade(released, folder):
    """They are exact: below the mark of what stays inside."""
    report = folder / "out.internal" / "report"
    report.mkdir(exist_ok=True)
    verdict = {"grade": "fair", "headline": "Check details."}
    document = {"moved": {"columns": {"x": 0.3, "a<b": 0.0061}}, "verdict": verdict}
    (report / "metrics.json").write_text(json.dumps(document))
    page = text_of(released.get("/result", release="out"))
    words = "what stands in the table: x (30.0 %), a&lt;b (0.6 %)."
    assert page.index("Everything below is measured") < page.index(words) < page.index("Fair.")
    document["moved"] = {"columns": {}}
    (report / "metrics.json").write_text(json.dumps(document))
    assert "no value for many cells" not in released.get("/result", release="out")


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


# A release as it is shown: from files that anyone may have written


def test_a_release_has_its_certificate_and_its_records(released):
    view = read_release(released.space, "out")
    assert view.claims_privacy
    assert view.guarantee["epsilon"] <= 1
    assert view.records.columns == ("years", "trade", "home", "boats", "pet")
    assert view.artefact == "out/artefact"
    assert view.verdict == {}


def test_the_newest_verdict_counts(released):
    for passed in (False, True):
        record_verdict(released, "out", passed=passed)
    newest = released.space.store.all()[0]
    wanted = released.space.store.status(newest)[0].result["passed"]
    assert latest_verdict(released.space, "out")[0]["passed"] == wanted


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "tested"},
        {"mode": "other"},
        {"guarantee": {"epsilon": "inf"}},
        {"guarantee": {"epsilon": True}},
        {"guarantee": {"epsilon": 20.0, "delta": 1e-9, "sentence": "", "assumptions": []}},
        {"guarantee": {"epsilon": 1.0, "delta": 1e-3, "sentence": "", "assumptions": []}},
        {"guarantee": 3},
    ],
)
def test_a_pass_alone_does_not_make_it_public(released, folder, change):
    path = folder / "out" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    record_verdict(released, "out")
    view = read_release(released.space, "out")
    assert view.has_passed
    assert not view.may_publish


def test_a_verdict_without_checks_is_no_pass(released):
    run = record_verdict(released, "out")
    end_step(released, run, 0, output='{"passed": true, "checks": []}')
    assert not read_release(released.space, "out").may_publish


def test_why_a_check_or_a_measurement_failed_is_kept(released):
    view = read_release(released.space, "out")
    assert view.faults == {"verify": "", "evaluate": ""}
    for command in ("verify", "evaluate"):
        step = Step(name="x", arguments=(command, "out"))
        run = record_release(released, "", kind="check", schema="out", steps=(step,))
        end_step(released, run, 0, code=2, errors=f"DataError: {command}\n")
    view = read_release(released.space, "out")
    assert view.faults == {"verify": "DataError: verify", "evaluate": "DataError: evaluate"}


@pytest.mark.parametrize("text", ["[]", "{", "3", "{}", '{"format": "other"}'])
def test_a_manifest_that_is_none_is_an_error(released, folder, text):
    (folder / "out" / "manifest.json").write_text(text)
    with pytest.raises(ArtefactError):
        read_release(released.space, "out")


@pytest.mark.parametrize("metrics", ["[]", "{", "3"])
def test_damaged_metrics_are_shown_as_none(released, folder, metrics):
    (folder / "out.internal" / "report" / "metrics.json").write_text(metrics)
    assert read_release(released.space, "out").metrics == {}


def test_an_audit_next_to_the_report_is_found(released, folder):
    audit = folder / "out.internal" / "audit"
    audit.mkdir()
    (audit / "audit.json").write_text('{"format": "deniable audit 1"}')
    assert read_release(released.space, "out").audits == ["out.internal/audit/audit.html"]


# A zip that is made while it is sent: the files of the manifest, and no other

FORMAT = "deniable manifest 1"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root" / "sub" / "rel"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.csv").write_bytes(os.urandom(600_000))
    (folder / "inner" / "é.txt").write_text("x" * 100_000)
    (folder / "note.txt").write_text("no")
    (folder / "second.internal").mkdir()
    (folder / "second.internal" / "run.json").write_text("no")
    found = RootFolder(tmp_path / "root")
    write_manifest(found, "a.csv", "inner/é.txt")
    return found


def write_manifest(root, *names, form=FORMAT):
    document = {"format": form, "files": dict.fromkeys(names, "0")}
    (root.path / "sub" / "rel" / "manifest.json").write_text(json.dumps(document))


def test_the_zip_has_what_the_manifest_lists_under_one_folder(root):
    blocks = list(zip_blocks(root, "sub/rel"))
    assert len(blocks) > 2  # it is not held in memory
    with zipfile.ZipFile(io.BytesIO(b"".join(blocks))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["rel/a.csv", "rel/inner/é.txt", "rel/manifest.json"]
        assert archive.read("rel/a.csv") == (root.path / "sub/rel/a.csv").read_bytes()


def test_a_link_is_refused_before_the_first_block(root, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (root.path / "sub" / "rel" / "z.csv").symlink_to(tmp_path / "secret")
    write_manifest(root, "a.csv", "z.csv")
    with pytest.raises(PathError):
        zip_blocks(root, "sub/rel")


def test_a_missing_file_and_a_folder_are_refused_before_the_first_block(root):
    write_manifest(root, "a.csv", "z.csv")
    with pytest.raises(FileNotFoundError):
        zip_blocks(root, "sub/rel")
    write_manifest(root, "inner")
    with pytest.raises(PathError):
        zip_blocks(root, "sub/rel")


@pytest.mark.parametrize(
    "name", ["second.internal/run.json", "../x", "/etc/passwd", ".hidden", "a//b", "", "X.INTERNAL"]
)
def test_a_listing_that_leaves_the_release_is_refused(root, name):
    write_manifest(root, "a.csv", name)
    with pytest.raises(ArtefactError):
        zip_blocks(root, "sub/rel")


def test_an_internal_folder_is_refused_at_any_depth(root):
    rel = root.path / "sub" / "rel"
    rel.rename(rel.with_name("rel.internal"))
    with pytest.raises(PathError, match="stays inside"):
        zip_blocks(root, "sub/rel.internal")
    with pytest.raises(PathError, match="stays inside"):
        zip_blocks(root, "sub/rel.internal/inner")


@pytest.mark.parametrize("manifest", [[], {}, {"files": {}}, {"format": FORMAT, "files": []}])
def test_another_manifest_is_no_release(manifest):
    with pytest.raises(ArtefactError):
        list_files(manifest)


def test_files_are_listed_by_their_path():
    assert list_files({"format": FORMAT, "files": {"b": "0", "a/c": "0"}}) == [
        *("a/c", "b", "manifest.json"),
    ]


@pytest.fixture
def release(made_release, tmp_path):
    shutil.copytree(made_release / "out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def state(release):
    return json.loads(json.dumps(state_of_files(release)))


def append(path):
    with path.open("a") as file:
        file.write("x")


def swap(path):
    """Change content, and restore size and time of writing."""
    before = path.stat()
    text = path.read_bytes()
    path.write_bytes(text[:-2] + b"0\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda out: append(out / "synthetic.csv"),
        lambda out: swap(out / "synthetic.csv"),
        lambda out: append(out / "manifest.json"),
        lambda out: append(out / "artefact" / "schema.toml"),
        lambda out: (out / "schema.toml").unlink(),
        lambda out: (out / "extra.csv").write_text("x"),
        shutil.rmtree,
    ],
)
def test_a_change_is_noticed(release, state, change):
    assert is_unchanged(release, state)
    change(release)
    assert not is_unchanged(release, state)


def test_the_same_content_with_another_time_is_unchanged(release, state):
    for path in (release / "synthetic.csv", release / "manifest.json"):
        os.utime(path, ns=(1, 1))
    assert is_unchanged(release, state)


def test_the_same_content_as_a_link_is_changed(release, state, tmp_path):
    shutil.move(release / "synthetic.csv", tmp_path / "moved.csv")
    (release / "synthetic.csv").symlink_to(tmp_path / "moved.csv")
    assert not is_unchanged(release, state)


@pytest.mark.parametrize("state", [{}, {"manifest": ""}, {"manifest": "0", "files": {}}])
def test_an_unknown_state_is_a_change(release, state):
    assert not is_unchanged(release, state)
