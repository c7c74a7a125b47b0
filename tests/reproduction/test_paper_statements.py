"""Statements of the paper against made-up measurements: each rule can hold, and can fail."""

import pytest

from deniable.reproduction.paper_statements import STATEMENT_HEADER, statements
from reproductions import FAR, NEAR, measured


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
