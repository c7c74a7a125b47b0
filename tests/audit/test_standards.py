"""The map from parts of a report to guidance."""

from deniable.audit.standards import standards_section


def test_every_part_leads_to_all_four_documents():
    page = standards_section({"Singling out": ["singling out"], "Presence": ["membership"]})
    for words in ("ICO", "27559", "28/2024", "800-226", "motivated intruder", "8.2.3"):
        assert words in page
    assert page.count("<tr>") == 3  # the head and two lines
    assert "no certificate" in page
