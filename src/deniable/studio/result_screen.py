"""The fifth screen: a release, its certificate, its verdict, its use; the zip, and more records."""

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from deniable.errors import ConfigError, DataError
from deniable.release.untrusted_files import MAX_TEXT_BYTES
from deniable.studio.access_guard import REPORT_POLICY
from deniable.studio.equivalent_command import (
    evaluate_command,
    paste_text,
    verify_command,
)
from deniable.studio.more_records import form_content
from deniable.studio.plan_consequences import certificate_words
from deniable.studio.release_view import ReleaseView, read_release, steps_on, table_of
from deniable.studio.root_folder import PathError
from deniable.studio.run_store import Step
from deniable.studio.workspace import Call, Page, Redirect, Reply, Stream, address
from deniable.studio.zip_stream import list_files, zip_blocks, zip_records

# What the files of a release are for, by the beginning of their path.
_FILES = (
    ("synthetic.", "the records"),
    ("manifest.json", "the certificate"),
    ("schema.toml", "what each column may hold"),
    ("artefact/artefact.json", "the model: it makes more records"),
    ("artefact/tables", "its tables"),
    ("artefact/manifest.json", "its certificate"),
    ("artefact/schema.toml", "its schema"),
)
_REPORT_PAGES = ("report.html", "audit.html")


def show_result(call: Call) -> Reply:
    """Show a release."""
    path = call.query.get("release", "").strip("/")
    release = read_release(call.space, path)
    table = table_of(call.space, path)
    return Page("result.html", _content(call, release, table))


def _content(call: Call, release: ReleaseView, table: str) -> dict[str, Any]:
    path, root = release.path, call.space.root
    running = [run for run, status in steps_on(call.space, path) if status.state == "running"]
    checks = [verify_command(path)]
    if table and release.records_file:
        checks.append(evaluate_command(table, path, release.records_file))
    return {
        **form_content(call, release),
        "release": release,
        "table": table,
        "schema": schema_of(call, path),
        "running": running[0] if running else None,
        "files": [(each, _file_words(each)) for each in list_files(release.manifest)],
        "words": certificate_words(release.manifest),
        "danger": release.danger,
        "command": paste_text(root.path, *checks),
        "has_report": bool(release.metrics),
        "report": f"{path}.internal/report/report.html",
    }


def _file_words(name: str) -> str:
    """What a file of a release is for; "" for one that is not known here."""
    return next((words for start, words in _FILES if name.startswith(start)), "")


def schema_of(call: Call, path: str) -> str:
    """The schema that a release of the studio was made with; "" if it is not known."""
    return next(
        (run.schema for run in call.space.store.all() if run.kind == "release" and run.out == path),
        "",
    )


def start_check(call: Call) -> Reply:
    """Start to verify a release, or to measure how useful it is."""
    path = call.form.get("release", "").strip("/")
    release = read_release(call.space, path)
    table = table_of(call.space, path)
    what = call.form.get("what", "verify")
    if what == "measure":
        if not table:
            raise ConfigError("the table of this release is not known here; use deniable evaluate")
        arguments = evaluate_command(table, path, release.records_file)
        step = Step(name="Measure how useful it is", arguments=arguments)
    else:
        against = table if what == "against" else ""
        step = Step(name="Check it", arguments=verify_command(path, against=against))
    run = call.space.store.create(kind="check", table=table, schema=path, out="", steps=(step,))
    call.space.control.begin(run)
    return Redirect(address(f"/run/{run.id}"))


def download(call: Call) -> Reply:
    """Send a release, or a file of more records with its manifest, as one zip."""
    if records := call.query.get("records", "").strip("/"):
        return Stream(
            blocks=zip_records(call.space.root, records),
            kind="application/zip",
            headers=_attachment(f"{PurePosixPath(records).name}.zip"),
        )
    path = call.query.get("release", "").strip("/")
    return Stream(
        blocks=zip_blocks(call.space.root, path),
        kind="application/zip",
        headers=_attachment(f"{PurePosixPath(path).name}.zip"),
    )


def show_report(call: Call) -> Reply:
    """Send the page of an evaluation or an audit, to be shown in a frame."""
    path = call.parts["path"]
    if PurePosixPath(path).name not in _REPORT_PAGES:
        raise PathError("only reports and audits are shown here")
    with call.space.root.open(path) as file, open(file, "rb", closefd=False) as opened:
        content = opened.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise DataError("this report is too large to be shown here; open its file")
    return Stream(
        blocks=iter([content]),
        kind="text/html; charset=utf-8",
        headers={"content-security-policy": REPORT_POLICY},
    )


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
