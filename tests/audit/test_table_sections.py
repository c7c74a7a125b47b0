"""Words of the report on a table: they follow the numbers, and never call an attack a failure."""

import math

import pytest

from audited_tables import RUNS, TARGETS, audited_table, made_up_results
from deniable.audit.audit_report import render_audit
from deniable.audit.inference_attacks import AttackComparison
from deniable.audit.membership_results import LEARNED, RATIO
from deniable.audit.table_sections import inference_sections, table_report

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
