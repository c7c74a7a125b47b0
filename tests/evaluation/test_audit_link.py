"""The link from a report to an audit: the page next to it, and never a confidential one."""

import json

import pytest

from deniable.evaluation.audit_link import AUDIT_FORMAT, audit_section, find_audit


def put_audit(folder, edition, page="<html></html>", **other):
    folder.mkdir()
    document = {"format": AUDIT_FORMAT, "edition": edition, **other}
    (folder / "audit.json").write_text(json.dumps(document), encoding="utf-8")
    if page is not None:
        (folder / "audit.html").write_text(page, encoding="utf-8")


@pytest.mark.parametrize(
    ("audit", "report", "found"),
    [
        ("internal", "internal", True),
        ("public", "internal", True),
        ("public", "public", True),
        ("internal", "public", False),
    ],
)
def test_a_public_report_leads_to_a_public_audit_only(audit, report, found, tmp_path):
    put_audit(tmp_path / "the audit", audit)
    page = find_audit(tmp_path / "report", report)
    assert (page is not None) == found
    if page is not None:
        assert 'href="../the%20audit/audit.html"' in audit_section(page)


def test_what_is_no_audit_is_not_linked(tmp_path):
    put_audit(tmp_path / "a", "public", page=None)
    put_audit(tmp_path / "b", "public", format="something else")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "audit.json").write_text("not JSON", encoding="utf-8")
    (tmp_path / "c" / "audit.html").write_text("", encoding="utf-8")
    assert find_audit(tmp_path / "report", "internal") is None
