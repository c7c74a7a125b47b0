"""The page: editions, modes of folders, the verdict, and nothing loaded or run."""

import json
import stat

import pytest

from deniable.audit.audit_report import (
    AuditReport,
    AuditSection,
    AuditTable,
    render_audit,
    write_audit,
)
from deniable.errors import VerificationError


def report(edition, within):
    section = AuditSection(
        name="presence",
        title="Presence <b>",
        words=("Found nothing.",),
        tables=(AuditTable(caption="Rates", head=("", "rate"), rows=[("all", "1 %")]),),
        within=within,
        results={"rate": 0.01},
    )
    return AuditReport(
        edition=edition,
        subject="table" if edition == "internal" else "mechanism",
        headline="Headline.",
        findings=["Found nothing."],
        guarantee="(1, 0)-private.",
        sections=[section],
        settings={"runs": 3},
    )


@pytest.mark.parametrize(("edition", "mode"), [("internal", 0o700), ("public", 0o755)])
def test_an_internal_report_is_its_owners(edition, mode, tmp_path):
    page = write_audit(report(edition, within=True), tmp_path / "out")
    assert page == tmp_path / "out" / "audit.html"
    assert stat.S_IMODE(page.parent.stat().st_mode) == mode
    others = stat.S_IMODE(page.stat().st_mode) & 0o077
    assert (others == 0) == (edition == "internal")
    document = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert document["format"] == "deniable audit 1"
    assert document["sections"]["presence"]["rate"] == 0.01
    assert document["edition"] == edition


def test_the_page_says_which_edition_it_is_and_why_there_is_no_distance_score():
    internal, public = (render_audit(report(e, within=True)) for e in ("internal", "public"))
    assert "Internal edition" in internal
    assert "Confidential" in internal
    assert "may be shared" in public
    assert "Confidential" not in public
    assert "no distance-to-closest-record score" in public
    assert "<script" not in public
    assert "How to read this page" not in public  # there is nothing to say here
    assert "Presence &lt;b&gt;" in public


@pytest.mark.parametrize("within", [True, None])
def test_what_is_within_passes(within):
    report("public", within=within).require()


def test_what_exceeds_the_promise_raises_the_error_of_exit_code_1():
    with pytest.raises(VerificationError, match="Presence <b>: an attack found more") as error:
        report("internal", within=False).require()
    assert error.value.exit_code == 1
