"""Real differences: all true ones together at their level, and words that say no more."""

import numpy as np
import pytest

from chance import assert_rate
from deniable.answers.query import ask_question, choose_cells
from deniable.answers.real_differences import (
    Difference,
    count_comparisons,
    describe_differences,
    find_differences,
)
from toy_artefacts import artefact_of, many, measure, toy_artefact, toy_codes

COLUMNS = ["colour", "sold"]


def cells_of(artefact, columns=COLUMNS, **more):
    question = ask_question(artefact, columns, by=dict.fromkeys(columns, "values"), **more)
    return choose_cells(question)[1]


def truths(codes):
    found = []
    for colour in range(4):
        inside = codes[:, 1] == colour
        found.append(codes[inside, 2].mean() - codes[~inside, 2].mean())
    return found


def test_without_noise_differences_are_those_of_the_table():
    cells = cells_of(toy_artefact(epsilon=float("inf")))
    found = find_differences(cells, comparisons=4)
    for each, truth in zip(found, truths(toy_codes()), strict=True):
        assert each.low == pytest.approx(truth, abs=1e-4)
        assert each.high == pytest.approx(truth, abs=1e-4)
        assert each.outcome == "yes"


@pytest.mark.untraced
@pytest.mark.slow
def test_all_differences_hold_together():
    """Bonferroni: at least 95 % of 300 artefacts state nothing wrong; false alarm 1e-6."""
    truth, asked, held = truths(toy_codes()), 0, 0
    for artefact in many():
        cells = cells_of(artefact)
        if cells is None:
            continue
        found = find_differences(cells, comparisons=4)
        asked += 1
        held += all(each.low <= own <= each.high for each, own in zip(found, truth, strict=True))
    assert asked > 250
    assert_rate(min(held, int(0.95 * asked)), asked, 0.95)


def test_two_groups_are_compared_once_and_many_with_all_others():
    assert count_comparisons(2, 2) == 1
    assert count_comparisons(2, 5) == 5
    assert count_comparisons(7, 5) == 35
    cells = cells_of(toy_artefact(), ["sold", "colour"])
    found = find_differences(cells, comparisons=4)
    assert len(found) == 4
    assert {(each.group, each.other) for each in found} == {("no", "yes")}


def test_a_small_group_is_too_few_to_say():
    codes = toy_codes().copy()
    codes[:, 1] = np.where(np.arange(len(codes)) < 790, codes[:, 1] % 3, 3)
    cells = cells_of(artefact_of(measure(5, np.asfortranarray(codes))))
    if cells is None or len(cells.selections[0].bands) < 4:
        pytest.skip("the rare value has no group of its own")
    found = find_differences(cells, comparisons=4)
    assert not found[3].has_rows
    assert not found[3].is_real


def difference(low, high, **more):
    return Difference(
        **{"group": "female", "other": "male", "outcome": "high", "low": low, "high": high, **more}
    )


def test_sentences_say_what_is_real_by_how_much_and_what_is_not_known():
    found = describe_differences(
        ["sex", "income"],
        [
            difference(-0.15, -0.12),
            difference(0.004, 0.01, group="x", other=""),
            difference(-0.01, 0.2),
            difference(-1, 1, group="Alaska", has_rows=False),
        ],
    )
    assert found == [
        'income "high" is less frequent with sex "female" than with sex "male": yes, by 12 to 15 '
        "points.",
        'income "high" is more frequent with sex "x" than in all other rows: yes, by 0.4 to 1.0 '
        "points.",
        'sex "Alaska": too few rows to say.',
        "1 other difference is within the noise: too small to say.",
    ]
    assert describe_differences(["a", "b"], []) == []
