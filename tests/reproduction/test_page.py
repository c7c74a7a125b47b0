"""The page and the Markdown of a reproduction, from made-up measurements."""

import pytest

from deniable.reproduction.page import (
    as_markdown,
    draw_figures,
    format_cell,
    page_body,
    printed_tables,
)


def test_the_page_and_the_markdown_have_every_table(cells):
    text = as_markdown(cells, "About.")
    page = "".join(page_body(cells, draw_figures(cells), "About."))
    assert text.startswith("About.\n")
    for title, head, rows, _ in printed_tables(cells):
        assert f"**{title}**" in text
        assert rows
        assert {len(row) for row in rows} == {len(head)}
    assert "statements are true here" in page
    assert page.count("<svg") == 11
    bars = {
        line.count(" | ") for line in text.splitlines() if line.startswith("| ω = 3 | accuracy")
    }
    assert bars == {6}


def test_false_statements_are_listed_in_the_summary(cells):
    introduction, figures = "", draw_figures(cells)
    assert "False:" not in "".join(page_body(cells, figures, introduction))
    cells["passing ours"]["m-6..m"] = [{"k": 50, "passed": 0.3}, {"k": 100, "passed": 0.2}]
    page = "".join(page_body(cells, figures, introduction))
    assert "With our default model, 18 of the paper&#x27;s 19 statements are true here." in page
    assert "False: at k = 100 more than half of the candidates pass" in page


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "50.0\N{NO-BREAK SPACE}%"), (1_494_974, "1,494,974"), (None, "")]
)
def test_shares_are_percentages_and_counts_have_commas(value, text):
    assert format_cell(value) == text


def test_a_bar_in_a_cell_is_escaped_in_markdown(cells):
    cells["setup"] = {"a|b": "1"}
    assert "| a\\|b |" in as_markdown(cells, "")
