"""Link from an evaluation report to the audit page that lies next to it."""

from pathlib import Path
from urllib.parse import quote

from deniable.errors import ArtefactError
from deniable.evaluation.html import Markup, section, tag
from deniable.evaluation.metrics import Edition
from deniable.release.untrusted_files import read_json

AUDIT_FORMAT = "deniable audit 1"
AUDIT_PAGE, AUDIT_DOCUMENT = "audit.html", "audit.json"


def find_audit(folder: Path, edition: Edition) -> Path | None:
    """Find the page of an audit in a folder next to that of the report; None if there is none.

    A public report leads to a public audit only: the other one is confidential.
    """
    for document in sorted(folder.resolve().parent.glob(f"*/{AUDIT_DOCUMENT}")):
        page = document.with_name(AUDIT_PAGE)
        try:
            found = read_json(document)
        except ArtefactError:
            continue
        if not isinstance(found, dict) or found.get("format") != AUDIT_FORMAT:
            continue
        if page.is_file() and (edition == "internal" or found.get("edition") == "public"):
            return page
    return None


def audit_section(page: Path) -> Markup:
    """Build a section that links to an audit page, relative to a report in a folder next to it."""
    address = f"../{quote(page.parent.name)}/{page.name}"
    words = "Attacks on the releases, next to what the guarantee allows: "
    return section("Audit", tag("p", words, tag("a", "the audit report", href=address), "."))
