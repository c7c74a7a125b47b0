"""report.html: one file that opens anywhere, without a network, and prints; and metrics.json."""

from collections.abc import Sequence
from pathlib import Path

from deniable.evaluation.guarantee import Claim
from deniable.evaluation.likeness import RULES, Verdict
from deniable.evaluation.markup import Markup, paragraph, section, table, tag
from deniable.evaluation.metrics import DISCLOSURE, Metrics
from deniable.evaluation.plots import draw_marginal
from deniable.evaluation.prose import (
    about_distances,
    about_game,
    about_groups,
    about_learning,
    about_measuring,
    about_pairs,
)
from deniable.release.records import staged_folder, write_files, write_json

# Nothing is fetched from anywhere, and no script runs, whatever a name in a schema may say.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(metrics: Metrics, folder: Path) -> None:
    """Write report.html and metrics.json to a new folder: both, or neither.

    The folder of an internal edition can be opened by its owner only.
    """
    mode = 0o700 if metrics.edition == "internal" else 0o777
    with staged_folder(Path(folder), mode=mode) as stage:
        write_files(stage, {"report.html": render(metrics).encode()})
        write_json(stage / "metrics.json", metrics.document())


def render(metrics: Metrics) -> str:
    """Return the report as HTML."""
    return page("What these records are worth", _body(metrics))


def page(title: str, body: Sequence[Markup]) -> str:
    """Return a whole HTML file that needs nothing else."""
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<link rel="icon" href="data:,">'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}{tag("title", title)}'
        f"<style>{style}</style></head>\n<body>{tag('main', *body)}</body></html>\n"
    )


def _body(metrics: Metrics) -> list[Markup]:
    found = metrics.findings
    head = [
        paragraph(f"{metrics.edition.capitalize()} edition", class_=f"edition {metrics.edition}"),
        tag("h1", "What these records are worth"),
    ]
    if found is None:
        return [
            *head,
            _about_public(metrics),
            _about_claim(metrics.claim),
            _about_columns(metrics),
            _footer(metrics),
        ]
    return [
        *head,
        _about_verdict(found.verdict),
        paragraph(DISCLOSURE, class_="warning"),
        _about_claim(metrics.claim),
        about_distances(found),
        *([about_pairs(found.distances)] if "pairs" in found.distances else []),
        _about_columns(metrics),
        *([about_learning(found.learning)] if found.learning is not None else []),
        about_game(found.game),
        about_groups(found.groups),
        about_measuring(found, records=metrics.records),
        _footer(metrics),
    ]


def _about_public(metrics: Metrics) -> Markup:
    return tag(
        "div",
        paragraph(f"{metrics.records:,} records, and what may be said about them to everybody."),
        paragraph(
            "This edition holds nothing that was learnt from the confidential table beyond the "
            "manifest and the records it is about. How near they are to the real rows is not "
            "said: to measure that is itself a disclosure, which no guarantee covers. Who may see "
            "the table can read the internal edition.",
        ),
    )


def _about_verdict(verdict: Verdict) -> Markup:
    return tag(
        "div",
        paragraph(f"{verdict.grade.capitalize()}. {verdict.headline}", class_="grade"),
        tag("ul", [tag("li", finding) for finding in verdict.findings]),
        paragraph(RULES, class_="note"),
        class_=f"verdict {verdict.grade}",
    )


def _about_claim(claim: Claim | None) -> Markup:
    if claim is None:
        words = (
            "There is no manifest beside the records: nothing is known of what they may give away "
            "about a row of the table. Treat them like the table itself."
        )
        return section("What is guaranteed", paragraph(words, class_="warning"))
    parts = [paragraph(claim.sentence, class_="quote")]
    if claim.failures:
        parts.append(
            tag(
                "div",
                paragraph("Verification objects, so do not rely on this:"),
                tag("ul", [tag("li", failure) for failure in claim.failures]),
                class_="warning",
            )
        )
    else:
        parts.append(paragraph("The manifest was checked by a second accountant: it holds."))
    facts = [("mode", claim.mode), ("ε", _say(claim.epsilon)), ("δ", f"{claim.delta:g}")]
    facts += [
        (name, _say(claim.parameters[name])) for name in ("k", "omega") if name in claim.parameters
    ]
    parts.append(table(["", "value"], facts, left=2))
    if claim.not_covered:
        parts.append(paragraph("Not covered:"))
        parts.append(tag("ul", [tag("li", words) for words in claim.not_covered]))
    return section("What is guaranteed", *parts)


def _say(value: object) -> str:
    if value is None:
        return "no limit"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _about_columns(metrics: Metrics) -> Markup:
    is_public = metrics.findings is None
    keys = [tag("span", "released", class_="released")]
    if not is_public:
        keys = [tag("span", "real", class_="real"), *keys]
    drawn = [
        tag("figure", tag("h3", marginal.name), draw_marginal(marginal))
        for marginal in metrics.marginals
    ]
    words = "What every column of the records holds" + ("." if is_public else ", beside real rows.")
    return section(
        "Columns",
        paragraph(words + " The figure at a bar is the share of released records."),
        tag("div", keys, class_="key"),
        tag("div", drawn, class_="many"),
    )


def _footer(metrics: Metrics) -> Markup:
    document = metrics.document()
    return tag("footer", f"deniable {document['version']}. The same numbers are in metrics.json.")
