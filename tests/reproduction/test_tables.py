"""Tables next to the paper's, from made-up measurements."""

import pytest

from deniable.reproduction.experiments import OMEGA_ROWS
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
from reproductions import NEAR, measured


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
