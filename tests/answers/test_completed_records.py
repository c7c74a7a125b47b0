"""Completed rows in blocks: the order of records, repetition, progress, and equal cases."""

import numpy as np
import polars as pl
import pytest

from deniable.answers import completed_records as module
from deniable.answers.case_evidence import CaseEvidence, Factor
from deniable.answers.completed_records import _distinct_cases
from deniable.answers.conditional_records import InferenceTally
from deniable.answers.conditional_release import generate_conditional

pytestmark = pytest.mark.slow


def test_rows_come_back_in_their_order_whatever_the_size_of_blocks(rich, monkeypatch):
    rows = pl.DataFrame({"age": list(range(40)), "smoker": [i > 20 or None for i in range(40)]})
    for block, each in ((16, 3), (4, 10)):
        monkeypatch.setattr(module, "_RECORDS_PER_BLOCK", block)
        release = generate_conditional(rich, given=rows, records_each=each, key=4, workers=2)
        found = release.frame()
        assert found["age"].to_list() == [i for i in range(40) for _ in range(each)]
        assert found["id"].to_list() == [f"P{i:05d}" for i in range(1, 40 * each + 1)]
        assert found["smoker"].gather_every(each).to_list()[21:] == [True] * 19


def test_progress_counts_records(rich, monkeypatch):
    monkeypatch.setattr(module, "_RECORDS_PER_BLOCK", 10)
    seen = []
    release = generate_conditional(rich, given=pl.DataFrame({"age": [5] * 25}), key=4)
    list(release.source.frames(InferenceTally(), lambda *report: seen.append(report)))
    assert seen == [("records", done, 25) for done in (0, 10, 20, 25)]


def test_equal_rows_are_one_case():
    codes = np.array([[1, 0], [0, 5], [1, 9]], dtype=np.uint16)
    evidence = CaseEvidence(codes=codes, given=frozenset({0}))
    first, case_of = _distinct_cases(evidence)
    assert (first.tolist(), case_of.tolist()) == ([1, 0], [1, 0, 1])
    factor = Factor(attribute=1, table=np.ones((2, 2)), rows=np.array([0, 0, 1]))
    evidence = CaseEvidence(codes=codes, given=frozenset({0}), factors=(factor,))
    assert len(_distinct_cases(evidence)[0]) == 3
    assert len(_distinct_cases(CaseEvidence(codes=codes))[0]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_patterns_of_filled_cells_may_differ_from_row_to_row(rich, seed):
    rng = np.random.default_rng(seed)
    whole = rich.generate(60, key=seed).drop("id", "months", "country")
    holes = [
        pl.when(pl.Series(rng.random(60) < 0.6)).then(pl.col(c)).alias(c) for c in whole.columns
    ]
    given = whole.with_columns(holes)
    found = rich.generate(given=given, key=1)
    for name in given.columns:
        filled = given[name].is_not_null()
        assert found[name].filter(filled).equals(given[name].filter(filled))
