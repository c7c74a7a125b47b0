"""Words of the report on a table: they follow the numbers, and never call an attack a failure."""

import math

import pytest

from audited_tables import audited_table, made_up_results
from deniable.audit.audit_report import render_audit
from deniable.audit.table_sections import table_report

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
        posterior=None,
        known_seeds=None,
    )


@pytest.mark.slow
def test_the_verdict_follows_the_numbers():
    exceeded, within, leak = report(4.0, 0.5), report(0.3, 3.0), report(4.0, math.inf)
    assert leak.within
    assert leak.headline == "Membership is visible, and nothing is promised about it."
    assert not exceeded.within
    assert "more than the guarantee allows" in exceeded.findings[0]
    assert "That is more than promised" in exceeded.findings[1]
    assert within.within
    assert "is within the bound" in within.findings[0]
    page = render_audit(within)
    assert "allowed by (ε, δ)" in page
    assert "tenth of exposure" in page
