"""Report sections: the numbers and sentences for given findings."""

from dataclasses import replace

import pytest

from deniable.evaluation.distinguishability import measure_distinguishability
from deniable.evaluation.report_sections import (
    distances_section,
    distinguishability_section,
    method_section,
)

pytestmark = pytest.mark.slow


def test_distances_state_whether_the_reference_was_held_out(internal):
    findings = internal[0].findings
    assert "no held-out table was given" in distances_section(findings)
    held_out = distances_section(replace(findings, held_out=True))
    assert "no held-out table" not in held_out
    assert "that the release was not learnt from" in held_out


def test_the_pairs_with_the_largest_distances_are_listed(internal):
    findings = internal[0].findings
    text = distances_section(findings)
    listed = findings.distances["pairs"]["released"].worst(10)
    places = [text.index(" × ".join(names)) for names, _ in listed]
    assert places == sorted(places)


def test_distinguishability_states_how_many_records_were_used(tables, little):
    found = measure_distinguishability(tables, little)
    text = distinguishability_section(found)
    assert f"trained on {found.rounds['released'].trained_on:,} records" in text
    assert text.count("<tr>") == 2


def test_the_method_has_the_size_of_every_table(internal):
    findings = internal[0].findings
    text = method_section(findings)
    assert f"{findings.records:,}" in text
    assert "at most 500 rows" in text
    assert "5 trees" in text
