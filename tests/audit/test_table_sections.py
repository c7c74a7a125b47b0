"""The report of an audit: editions, modes of folders, and words that follow the numbers."""

import json
import math
import stat

import pytest

from audited_tables import RUNS, TARGETS, audited_table, made_up_results
from deniable.audit.audit_report import (
    AuditReport,
    AuditSection,
    AuditTable,
    render_audit,
    write_audit,
)
from deniable.audit.inference_attacks import AttackComparison
from deniable.audit.membership_results import LEARNED, RATIO
from deniable.audit.table_sections import inference_sections, table_report
from deniable.errors import VerificationError

AUDITED = audited_table(range(20), mode="seedless")


def report(shift, epsilon):
    found = made_up_results(shift, epsilon)
    return table_report(
        AUDITED,
        found.targets,
        settings={"runs": 30},
        membership=found,
        guarantee="What is promised.",
        comparisons=[],
    )


@pytest.mark.slow
def test_the_verdict_follows_the_numbers():
    exceeded, within, leak = report(4.0, 0.5), report(0.3, 3.0), report(4.0, math.inf)
    assert leak.within
    assert leak.headline == "Membership is visible, and nothing is promised about it."
    assert not exceeded.within
    assert "more than the guarantee allows" in exceeded.findings[0]
    assert within.within
    assert "is within the bound" in within.findings[0]
    page = render_audit(within)
    assert "allowed by (ε, δ)" in page


def test_results_are_given_for_all_targets_and_for_the_most_exposed():
    found = made_up_results(1.0, math.inf)
    assert list(found.trials) == [RATIO, LEARNED]
    written = found.document()["attacks"][RATIO]
    assert sum(written["all"]["trials"].values()) == RUNS * TARGETS
    assert sum(written["most_exposed"]["trials"].values()) == RUNS * 10


def comparison(name, low, high, *, is_column=False):
    return AttackComparison(
        name=name,
        is_column=is_column,
        table=0.3 + (low + high) / 2,
        control=0.3,
        attempts=(1000, 1000),
        interval=(low, high),
    )


def test_attacks_without_evidence_are_said_to_show_none():
    comparisons = [
        comparison("singling out", -0.02, 0.03),
        comparison("attribute inference", 0.86, 0.9),
        comparison("colour", -0.1, 0.1, is_column=True),
    ]
    sections = inference_sections(comparisons)
    singling, inferring = sections
    assert singling.words[0].startswith("No evidence of singling out")
    assert inferring.words[0].startswith("There is evidence of attribute inference")
    assert [row[0] for row in inferring.tables[0].rows] == ["attribute inference", "colour"]
    assert inferring.results["columns"][0]["name"] == "colour"
    assert not [part for part in sections if "failed" in " ".join(part.words)]


def test_a_comparison_with_other_rows_gives_no_verdict():
    """(ε, δ) bounds what the presence of one row changes; a holdout may differ for any reason."""
    (part,) = inference_sections([comparison("singling out", 0.9, 1.0)])
    assert part.within is None
    assert part.words[0].startswith("There is evidence of singling out")


def report_of(edition, within):
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
    page = write_audit(report_of(edition, within=True), tmp_path / "out")
    assert page == tmp_path / "out" / "audit.html"
    assert stat.S_IMODE(page.parent.stat().st_mode) == mode
    others = stat.S_IMODE(page.stat().st_mode) & 0o077
    assert (others == 0) == (edition == "internal")
    document = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert document["format"] == "deniable audit 1"
    assert document["sections"]["presence"]["rate"] == 0.01
    assert document["edition"] == edition


def test_the_page_says_which_edition_it_is_and_why_there_is_no_distance_score():
    internal, public = (render_audit(report_of(e, within=True)) for e in ("internal", "public"))
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
    report_of("public", within=within).require()


def test_what_exceeds_the_promise_raises_the_error_of_exit_code_1():
    with pytest.raises(VerificationError, match="Presence <b>: an attack found more") as error:
        report_of("internal", within=False).require()
    assert error.value.exit_code == 1
