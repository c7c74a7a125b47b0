"""Write the evaluation report: a self-contained report.html, and metrics.json."""

from collections.abc import Sequence
from pathlib import Path

from deniable.evaluation.estimates import estimates_section
from deniable.evaluation.metrics import DISCLOSURE, Findings, Metrics
from deniable.evaluation.relations_section import relations_section
from deniable.evaluation.release_claim import ReleaseClaim
from deniable.evaluation.report_sections import (
    adjusted_section,
    distances_section,
    distinguishability_section,
    method_section,
    ml_efficacy_section,
    subgroups_section,
)
from deniable.evaluation.svg_plots import draw_marginal
from deniable.evaluation.verdict import GRADING_RULES, Verdict
from deniable.html import Markup, paragraph, section, table, tag
from deniable.release.atomic_files import staged_folder, write_files, write_json

# The page loads nothing and runs no script, even if a name in the schema contains HTML.
_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_TITLE = "Evaluation of released records"
_GUARANTEE_TITLE = "Privacy guarantee"
_PUBLIC = (
    "This report may be shared. It uses only the manifest of the released records and their "
    "artefact, not the confidential table. It does not show how close the records are to the real "
    "rows: measuring that is itself a disclosure, and no privacy guarantee covers it."
)


def write_report(metrics: Metrics, folder: Path) -> None:
    """Write report.html and metrics.json to a new folder: both, or neither.

    An internal edition is accessible to its owner only.
    """
    confidential = metrics.edition == "internal"
    page = render(metrics)
    with staged_folder(Path(folder), confidential=confidential) as stage:
        write_files(stage, {"report.html": page.encode()})
        write_json(stage / "metrics.json", metrics.document())


def render(metrics: Metrics) -> str:
    """Render the report as an HTML page."""
    return html_page(_TITLE, [*_report_body(metrics), _footer(metrics)])


def html_page(title: str, body: Sequence[Markup]) -> str:
    """Build a self-contained HTML page."""
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_SECURITY_POLICY}">'
        '<link rel="icon" href="data:,">'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}{tag("title", title)}'
        f"<style>{style}</style></head>\n<body>{tag('main', *body)}</body></html>\n"
    )


def _report_body(metrics: Metrics) -> list[Markup]:
    found = metrics.findings
    head = [
        paragraph(f"{metrics.edition.capitalize()} edition", class_=f"edition {metrics.edition}"),
        tag("h1", _TITLE),
    ]
    if found is None:
        return [
            *head,
            paragraph(_PUBLIC),
            _guarantee_section(metrics.claim),
            *([] if metrics.estimates is None else [estimates_section(metrics.estimates)]),
        ]
    return [
        *head,
        _verdict_section(found.verdict),
        paragraph(DISCLOSURE, class_="warning"),
        *adjusted_section(found.adjusted),
        *(
            [relations_section(found.relations, records=found.records)]
            if found.relations is not None
            else []
        ),
        _guarantee_section(metrics.claim),
        distances_section(found),
        _columns_section(found),
        *([ml_efficacy_section(found.learning)] if found.learning is not None else []),
        distinguishability_section(found.game),
        subgroups_section(found.groups),
        method_section(found),
    ]


def _verdict_section(verdict: Verdict) -> Markup:
    return tag(
        "div",
        paragraph(f"{verdict.grade.capitalize()}. {verdict.headline}", class_="grade"),
        tag("ul", [tag("li", finding) for finding in verdict.findings]),
        paragraph(GRADING_RULES, class_="note"),
        class_=f"verdict {verdict.grade}",
    )


def _guarantee_section(claim: ReleaseClaim | None) -> Markup:
    if claim is None:
        words = (
            "There is no manifest next to the records, so no privacy guarantee is known. They may "
            "disclose rows of the real table. Treat them like the table itself."
        )
        return section(_GUARANTEE_TITLE, paragraph(words, class_="warning"))
    parts = [paragraph(claim.sentence, class_="quote")]
    if claim.failures:
        parts.append(
            tag(
                "div",
                paragraph("Verification failed. Do not rely on this guarantee:"),
                tag("ul", [tag("li", failure) for failure in claim.failures]),
                class_="warning",
            )
        )
    elif not claim.is_written:
        words = (
            "Not verified: these records are in memory. Write the release, and run deniable verify."
        )
        parts.append(paragraph(words, class_="warning"))
    else:
        parts.append(
            paragraph(
                "Verification passed: a second, independent calculation confirms this statement."
            )
        )
    facts = [("mode", claim.mode), ("ε", _format_value(claim.epsilon)), ("δ", f"{claim.delta:g}")]
    facts += [
        (name, _format_value(claim.parameters[name]))
        for name in ("k", "omega")
        if name in claim.parameters
    ]
    parts.append(table(["", "value"], facts, left=2))
    if claim.not_covered:
        parts.append(paragraph("The guarantee does not cover:"))
        parts.append(tag("ul", [tag("li", exception) for exception in claim.not_covered]))
    return section(_GUARANTEE_TITLE, *parts)


def _format_value(value: object) -> str:
    if value is None:
        return "no limit"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _columns_section(found: Findings) -> Markup:
    keys = [tag("span", "real", class_="real"), tag("span", "released", class_="released")]
    drawn = [
        tag("figure", tag("h3", marginal.name), draw_marginal(marginal))
        for marginal in found.marginals
    ]
    return section(
        "Columns",
        paragraph(
            "The distribution of each column, real and released. The number next to a bar is the "
            "share of released records."
        ),
        tag("div", keys, class_="key"),
        tag("div", drawn, class_="many"),
    )


def _footer(metrics: Metrics) -> Markup:
    document = metrics.document()
    return tag("footer", f"deniable {document['version']}. The same numbers are in metrics.json.")
