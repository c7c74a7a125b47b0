"""Tables next to the paper's, from made-up measurements."""

import pytest

from deniable.reproduction.experiments import OMEGA_ROWS
from deniable.reproduction.page import (
    as_markdown,
    draw_figures,
    format_cell,
    page_body,
    printed_tables,
)
from deniable.reproduction.paper_statements import STATEMENT_HEADER, statements
from deniable.reproduction.tables import (
    attribute_rows,
    fact_rows,
    figure_rows,
    paper_numbers,
    penalty_rows,
    row_title,
    run_time_rows,
    setup_rows,
    table_rows,
)
from reproductions import FAR, NEAR, measured


def test_paper_toml_has_a_value_for_every_column():
    numbers = paper_numbers()
    for name, width in (("table3", 6), ("table4", 2), ("table5", 2)):
        assert set(OMEGA_ROWS) | {"reals", "marginals"} <= set(numbers[name])
        assert {len(row) for row in numbers[name].values()} == {width}
    assert numbers["table5"]["m"] == [0.623, 0.589]
    assert numbers["table2"]["unique_share"] == pytest.approx(1_022_718 / 1_494_974, abs=5e-4)


def test_a_table_has_the_mean_over_runs_next_to_the_papers_value(cells):
    cells["release m ours run 1"] = measured(0.65, 0.75, 0.6, NEAR)
    row = next(row for row in table_rows("table3", cells) if row[:2] == ["m", "accuracy, forest"])
    paper = paper_numbers()["table3"]["m"][1]
    assert row[2:5] == [paper, 0.75, pytest.approx(0.7)]
    assert row[5] == pytest.approx(0.7 - paper)
    assert row[6:] == [0.65, 0.75]


def test_every_figure_has_its_data(cells):
    found = figure_rows(cells)
    assert [len(found[f"figure{n}"]) for n in (1, 2, 3, 4, 5, 6)] == [4, 4, 15, 15, 7, 11]
    for head, *rows in found.values():
        assert {len(row) for row in rows} == {len(head)}
    age = found["figure1"][1]
    assert age[:3] == ["age", pytest.approx(0.4), pytest.approx(0.4)]
    assert found["figure6"][:2] == [
        ["row", "side", "k = 50", "k = 100"],
        ["ω = 3", "authors' formulas", 0.8, 0.6],
    ]
    assert run_time_rows(cells)[1] == ["ours", 2, 2, 15_000, "1.00", 10_000]
    assert row_title("m-6..m", cells) == "ω = 1 to 3"


def test_facts_and_setup_are_listed_next_to_the_papers(cells):
    assert ["k", "50", "50"] in setup_rows(cells)
    assert penalty_rows(cells)[1] == ["support vector machine", "1e-05"]
    assert ["unique", 1_022_718, 60] in fact_rows(cells)
    assert ["raw", 3_132_796, None] in fact_rows(cells)
    assert attribute_rows(cells)[0] == ["", "", "age", "ordered", None, 10]
    cells["facts"]["attributes"] = [{"name": "a", "kind": "integer", "size": 79}] * 11
    assert attribute_rows(cells)[0] == ["age", "numerical", "a", "integer", 80, 79]


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


# Statements of the paper against made-up measurements: each rule can hold, and can fail


def wrong(cells, side="ours"):
    """List where the paper's statements are false."""
    places = []
    for one in statements(cells):
        outcome = one.outcomes[side]
        assert outcome is not None, one.where
        if outcome[1] is False:
            places.append(one.where)
    return places


def test_statements_hold_for_results_like_the_papers(cells):
    made = statements(cells)
    assert len(made) == 19
    assert wrong(cells) == wrong(cells, "authors") == []
    assert {len(one.row()) for one in made} == {len(STATEMENT_HEADER)}


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("models ours 1", {"mean": [0.4, 0.4, 0.4]}, ["Figure 1", "Figure 1"]),
        ("models ours 0.1", {"mean": [0.5, 0.5, 0.5]}, ["Figure 1"]),
        ("models ours 0.1", {"mean": [0.7, 0.68, 0.7]}, ["Figure 1"]),
        ("models ours inf", {"mean": [0.7, 0.05, 0.7]}, ["Figure 2"]),
        ("models ours inf", {"mean": [0.9, 0.9, 0.9]}, ["Figure 1", "Figure 1", "Figure 2"]),
        (
            "release m ours run 0",
            measured(0.75, 0.75, 0.6, FAR),
            ["Figure 4"],
        ),
        ("release m-6..m ours run 0", measured(0.4, 0.75, 0.6, NEAR), ["Section 6.3"]),
        ("release m-6..m ours run 0", measured(0.75, 0.74, 0.6, NEAR), ["Section 6.3"]),
        ("release m-6..m ours run 0", measured(0.75, 0.70, 0.6, NEAR), ["Section 6.3"] * 2),
        ("release m-6..m ours run 0", measured(0.75, 0.75, 0.71, NEAR), ["Section 6.4"]),
        ("release marginals ours run 0", measured(0.5, 0.6, 0.72, FAR), ["Section 6.4"]),
    ],
)
def test_statements_fail_for_results_unlike_the_papers(cells, name, value, where):
    cells[name] = value
    found = wrong(cells)
    assert found == where
    assert wrong(cells, "authors") == []


def test_statements_about_single_columns_can_fail(cells):
    far = {"attributes": [10 * value for value in NEAR], "pairs": NEAR}
    cells["release m-1 ours run 0"]["boxes"] = far
    assert wrong(cells) == ["Figure 3", "Figure 3"]
    cells["release m-1 ours run 0"]["boxes"] = {"attributes": NEAR, "pairs": NEAR}
    cells["release m-2 ours run 0"]["boxes"] = {"attributes": NEAR, "pairs": NEAR}
    assert wrong(cells) == ["Section 6.2"]  # marginals win for no ω


def test_statements_about_run_time_and_pass_rates_can_fail(cells):
    slow = {"records": 10_000, "learning": 10.0, "generation": 300.0}
    cells["pace ours"] = {"cores": 2, "instances": [slow]}
    assert wrong(cells) == ["Figure 5", "Figure 5"]
    cells["pace ours"] = {"cores": 1, "instances": [slow | {"generation": 3.0}]}
    assert wrong(cells) == []
    cells["passing ours"]["m-6..m"] = [{"k": 50, "passed": 0.3}, {"k": 100, "passed": 0.4}]
    assert wrong(cells) == ["Section 6.5", "Figure 6"]


def test_statements_without_measurements_are_left_out(cells):
    """A target of three classes has no linear classifiers."""
    for name in [name for name in cells if " run 0" in name]:
        cells[name]["table4"] = []
        cells[name].pop("private", None)
    claims = [one.claim for one in statements(cells)]
    assert len(claims) == 17
    assert not any("LR" in words or "SVM" in words for words in claims)
