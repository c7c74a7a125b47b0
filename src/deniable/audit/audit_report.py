"""The audit report: a self-contained audit.html and audit.json, in two editions.

The public edition is of a mechanism or a release and shows nothing of a table. The internal one is
of a table, and its folder is accessible to its owner only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from deniable.errors import VerificationError
from deniable.evaluation.checkpoints import write_atomically
from deniable.evaluation.metrics import Edition
from deniable.evaluation.report import html_page
from deniable.html import Markup, paragraph, section, table, tag
from deniable.release.atomic_files import as_output_error, encode_json

AuditSubject = Literal["mechanism", "table", "release"]

AUDIT_FORMAT = "deniable audit 1"
AUDIT_PAGE, AUDIT_DOCUMENT = "audit.html", "audit.json"

_TITLES: Mapping[AuditSubject, str] = {
    "mechanism": "Audit of the mechanism",
    "table": "Audit of a table",
    "release": "Audit of a release",
}
_EDITION_WORDS: Mapping[Edition, str] = {
    "internal": (
        "Confidential: the attacks were run on real rows, and their results disclose something "
        "about them. No privacy guarantee covers this page. Store it with the table."
    ),
    "public": (
        "This page shows nothing of any confidential table, and may be shared. It was made without "
        "reading one."
    ),
}
_NO_DISTANCES = (
    "There is no distance-to-closest-record score on this page, and there will be none. It "
    "compares how near synthetic and other real rows are to the table. A release can copy rare "
    "rows and keep a good score, because the many ordinary rows decide it; and a release without "
    "any privacy can pass. Attacks that know whether they were right show more."
)


@dataclass(frozen=True, kw_only=True)
class AuditTable:
    """One table of a section: titles, and rows of text.

    Attributes:
        caption: Caption of the table.
        head: Column titles.
        rows: Cells, row by row; numbers are formatted already.
        left: Number of leading text columns.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


@dataclass(frozen=True, kw_only=True)
class AuditSection:
    """One part of an audit: plain words, then tables and plots.

    Attributes:
        name: Key of the results in audit.json.
        title: Heading.
        words: Paragraphs, the finding first.
        tables: The numbers, with intervals.
        figures: Plots with their captions, as markup.
        within: Whether everything found is within the promise; None if nothing is promised.
        results: The numbers, for audit.json.
        fault: Message if the promise is exceeded: what is wrong, and what to do.
    """

    name: str
    title: str
    words: Sequence[str]
    tables: Sequence[AuditTable] = ()
    figures: Sequence[Markup] = ()
    within: bool | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    fault: str = (
        "an attack found more than the guarantee allows; do not release, and report this as "
        "SECURITY.md describes"
    )


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The result of an audit: the page, and its JSON form.

    Attributes:
        edition: "internal" if it was measured on real rows, else "public".
        subject: What was audited.
        headline: The result in one sentence.
        findings: The most important results, one sentence each.
        guarantee: The promise that was attacked, in words.
        sections: All parts.
        settings: The options of the audit, for audit.json.
        reading: How to read the page, in paragraphs; nothing if it needs no explanation.
    """

    edition: Edition
    subject: AuditSubject
    headline: str
    findings: Sequence[str]
    guarantee: str
    sections: Sequence[AuditSection]
    settings: Mapping[str, Any] = field(default_factory=dict)
    reading: Sequence[str] = ()

    @property
    def within(self) -> bool:
        """Whether no part exceeds the promise."""
        return all(part.within is not False for part in self.sections)

    def require(self) -> None:
        """Raise an error if a part exceeds the promise.

        Raises:
            VerificationError: An attack found more than the guarantee allows; the message names
                the parts.
        """
        exceeded = [part for part in self.sections if part.within is False]
        if exceeded:
            raise VerificationError("\n  ".join(f"{part.title}: {part.fault}" for part in exceeded))

    def document(self) -> dict[str, Any]:
        """Return the JSON form of audit.json."""
        return {
            "format": AUDIT_FORMAT,
            "version": version("deniable"),
            "edition": self.edition,
            "subject": self.subject,
            "within": self.within,
            "headline": self.headline,
            "findings": list(self.findings),
            "guarantee": self.guarantee,
            "settings": dict(self.settings),
            "sections": {
                part.name: {
                    "title": part.title,
                    "within": part.within,
                    **part.results,
                }
                for part in self.sections
            },
        }


def write_audit(report: AuditReport, folder: Path) -> Path:
    """Write audit.html and audit.json into a folder, each atomically; return the page's path.

    A new folder of an internal edition is accessible to its owner only.
    """
    with as_output_error(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700 if _is_internal(report) else 0o777)
        if _is_internal(report):
            folder.chmod(0o700)
        write_atomically(folder / AUDIT_DOCUMENT, encode_json(report.document()))
        write_atomically(folder / AUDIT_PAGE, render_audit(report).encode())
    return folder / AUDIT_PAGE


def _is_internal(report: AuditReport) -> bool:
    return report.edition == "internal"


def render_audit(report: AuditReport) -> str:
    """Render the report as an HTML page."""
    title = _TITLES[report.subject]
    body = [
        paragraph(f"{report.edition.capitalize()} edition", class_=f"edition {report.edition}"),
        tag("h1", title),
        _headline(report),
        paragraph(
            _EDITION_WORDS[report.edition], class_="warning" if _is_internal(report) else None
        ),
        section("The promise", paragraph(report.guarantee, class_="quote")),
        *_reading(report),
        *(_render_section(part) for part in report.sections),
        section("What this page leaves out", paragraph(_NO_DISTANCES)),
        tag("footer", f"deniable {version('deniable')}. The same numbers are in {AUDIT_DOCUMENT}."),
    ]
    return html_page(title, body)


def _reading(report: AuditReport) -> list[Markup]:
    words = [paragraph(each) for each in report.reading]
    return [section("How to read this page", words)] if words else []


def _headline(report: AuditReport) -> Markup:
    return tag(
        "div",
        paragraph(report.headline, class_="grade"),
        tag("ul", [tag("li", finding) for finding in report.findings]),
        class_="verdict" if report.within else "verdict poor",
    )


def _render_section(part: AuditSection) -> Markup:
    return section(
        part.title,
        [paragraph(words) for words in part.words],
        [table(t.head, t.rows, caption=t.caption, left=t.left) for t in part.tables],
        tag("div", list(part.figures), class_="side-by-side") if part.figures else [],
    )
