"""Values, bins, roundness and constraints given evidence, compared with plain records.

Plain records that satisfy the evidence have the law that is asked for. A two-sample chi-square
test on each group of columns has a false alarm in 10^6, with fixed keys."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from deniable import Schema
from deniable.answers import completed_records, conditional_records, inference
from deniable.answers.case_evidence import CaseEvidence, Factor
from deniable.answers.completed_records import _distinct_cases
from deniable.answers.conditional_records import InferenceTally
from deniable.answers.conditional_release import generate_conditional
from deniable.pipeline import api

pytestmark = pytest.mark.slow

PLAIN = 200_000


@pytest.fixture(scope="module")
def plain(rich):
    return rich.generate(PLAIN, key=1)


def p_value(one, two, columns):
    """The p-value of the hypothesis that both have the same law in these columns together."""
    both = pl.concat([f.select(columns).with_columns(of=i) for i, f in enumerate((one, two))])
    coarse = [
        (pl.col(c) // 25 if c == "age" else pl.col(c) // 100 if c == "pay" else pl.col(c))
        for c in columns
    ]
    counts = (
        both.with_columns(coarse)
        .group_by(columns)
        .agg(a=(pl.col("of") == 0).sum(), b=(pl.col("of") == 1).sum())
    )
    table = counts.select("a", "b").to_numpy()
    common = table.sum(axis=1) >= 20
    table = np.vstack([table[common], table[~common].sum(axis=0)])
    table = table[table.sum(axis=1) > 0]
    return stats.chi2_contingency(table).pvalue


CONDITIONS = [
    # A bin is cut.
    ("age >= 33 and age < 47", (pl.col("age") >= 33) & (pl.col("age") < 47)),
    # Roundness: 300 is the multiple of 100 in its bin, 310 to 350 are mostly multiples of 10.
    ("pay in (300, 310, 311, 350)", pl.col("pay").is_in([300, 310, 311, 350])),
    ("pay > 455 and smoker = true", (pl.col("pay") > 455) & pl.col("smoker")),
    ("pay is missing", pl.col("pay").is_null()),
    (
        'town = "elsewhere" and weight < 3.3',
        (pl.col("town") == "elsewhere") & (pl.col("weight") < 3.3),
    ),
]


@pytest.mark.parametrize(("where", "holds"), CONDITIONS)
def test_records_given_a_condition_have_the_law_of_plain_records_that_satisfy_it(
    rich, plain, where, holds
):
    expected = plain.filter(holds)
    found = rich.generate(20_000, where=where, key=2)
    assert found.filter(holds).height == 20_000
    assert expected.height > 300
    for columns in (["grade", "smoker"], ["town", "age"], ["pay", "smoker"], ["age", "pay"]):
        assert p_value(expected, found, columns) > 1e-6
    if "in (300" in where:
        one, two = (f.select(pl.col("pay").cast(pl.String).alias("v")) for f in (expected, found))
        assert p_value(one, two, ["v"]) > 1e-6


GIVEN = [
    ({"pay": [310]}, pl.col("pay") == 310),
    ({"smoker": [True], "grade": ["fair"]}, pl.col("smoker") & (pl.col("grade") == "fair")),
    ({"town": ["Bonn"], "smoker": [True]}, (pl.col("town") == "Bonn") & pl.col("smoker")),
]


@pytest.mark.parametrize(("row", "holds"), GIVEN)
def test_completed_rows_have_the_law_of_plain_records_with_these_cells(rich, plain, row, holds):
    expected = plain.filter(holds)
    found = rich.generate(given=pl.DataFrame(row), records_each=20_000, key=3)
    assert found.filter(holds).height == 20_000
    assert expected.height > 200
    for columns in (["grade", "smoker"], ["town", "age"], ["pay", "smoker"], ["age", "pay"]):
        assert p_value(expected, found, columns) > 1e-6


def test_another_law_is_found(rich, plain):
    """The condition only cut out of plain records: earlier columns would not follow."""
    wrong = plain.with_columns(pl.lit(310).alias("pay"))
    found = rich.generate(given=pl.DataFrame({"pay": [310]}), records_each=20_000, key=3)
    assert p_value(wrong, found, ["town", "age"]) < 1e-6


BOUNDS_SCHEMA = """
format = 1
rows_max = 5_000
[[attribute]]
name = "a"
type = "integer"
min = 0
max = {last}
bins = {{ width = {width} }}
[[attribute]]
name = "b"
type = "integer"
min = 0
max = {last}
bins = {{ width = {width} }}
[[constraint]]
at_most = ["a", "b"]
"""


def bounded(width, bins):
    """An artefact of two binned columns a <= b, where a constraint cuts through bins."""
    last = width * bins - 1
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, last + 1, (4_000, 2)), axis=1)
    table = pl.DataFrame(ends, schema=["a", "b"])
    schema = Schema.parse(BOUNDS_SCHEMA.format(last=last, width=width))
    return api.learn(table, schema, epsilon=float("inf"), mode="seedless", estimator="clip")


def bin_p_value(one, two):
    bins = (pl.col("a") // 10 * 100 + pl.col("b") // 10).alias("v")
    return p_value(one.select(bins), two.select(bins), ["v"])


def test_bins_that_a_constraint_and_the_request_cut_have_the_law_of_plain_records():
    artefact = bounded(10, 4)
    plain = artefact.generate(200_000, key=1)
    expected = plain.filter((pl.col("b") <= 25) & (pl.col("a") >= 15))
    release = generate_conditional(artefact, 20_000, where="b <= 25 and a >= 15", key=2)
    found = release.frame()
    assert expected.height > 3_000
    assert found.filter((pl.col("a") >= 15) & (pl.col("b") <= 25) & (pl.col("a") <= pl.col("b")))[
        "a"
    ].len() == len(found)
    assert bin_p_value(expected, found) > 1e-6
    for column in ("a", "b"):
        assert p_value(expected.select(v=column), found.select(v=column), ["v"]) > 1e-6
    assert release.tally.document() == {"method": "nearly exact", "cuts_constrained_bins": True}
    expected = plain.filter(pl.col("b") == 21)
    found = artefact.generate(given=pl.DataFrame({"b": [21]}), records_each=20_000, key=2)
    assert p_value(expected.select(v="a"), found.select(v="a"), ["v"]) > 1e-6
    # A condition at the edges of bins cuts none.
    release = generate_conditional(artefact, 200, where="b <= 29 and a >= 10", key=2)
    assert (release.frame()["a"] >= 10).all()
    assert release.tally.document() == {"method": "exact"}


def test_a_request_that_few_values_of_its_bins_satisfy_is_met():
    artefact = bounded(10_000, 2)
    found = artefact.generate(20, where="a >= 9998 and b <= 9999", key=2)
    assert (found["a"] >= 9_998).all()
    assert (found["b"] <= 9_999).all()
    assert (found["a"] <= found["b"]).all()
    found = artefact.generate(given=pl.DataFrame({"a": [9_999]}), where="b <= 9999", key=2)
    assert found["b"].to_list() == [9_999]


def test_rows_come_back_in_their_order_whatever_the_size_of_blocks(rich, monkeypatch):
    rows = pl.DataFrame({"age": list(range(40)), "smoker": [i > 20 or None for i in range(40)]})
    for block, each in ((16, 3), (4, 10)):
        monkeypatch.setattr(completed_records, "_RECORDS_PER_BLOCK", block)
        release = generate_conditional(rich, given=rows, records_each=each, key=4, workers=2)
        found = release.frame()
        assert found["age"].to_list() == [i for i in range(40) for _ in range(each)]
        assert found["id"].to_list() == [f"P{i:05d}" for i in range(1, 40 * each + 1)]
        assert found["smoker"].gather_every(each).to_list()[21:] == [True] * 19


def test_progress_counts_records(rich, monkeypatch):
    monkeypatch.setattr(completed_records, "_RECORDS_PER_BLOCK", 10)
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


@pytest.mark.parametrize("exact", [True, False])
def test_blocks_are_as_long_as_asked_for_and_do_not_depend_on_workers(rich, monkeypatch, exact):
    monkeypatch.setattr(conditional_records, "_RECORDS_PER_BLOCK", 500)
    monkeypatch.setattr(inference, "_MAX_ENTRIES", 2**22 if exact else 1)
    request = {"where": "weight >= 3.3 and age > 20", "key": 4}
    one = generate_conditional(rich, 1_700, workers=1, **request)
    two = generate_conditional(rich, 1_700, workers=2, **request)
    frames = list(one.source.frames(InferenceTally(), lambda *_: None))
    assert [len(frame) for frame in frames] == [500, 500, 500, 200]
    assert one.frame().equals(two.frame())
    assert one.tally.is_exact is exact
    assert ("total_variation" in one.tally.document()) is not exact


def test_errors_of_blocks_are_averaged_over_cases():
    tally = InferenceTally()
    assert tally.document() == {"method": "exact"}
    tally.add(InferenceTally(1, 0.02, is_exact=False))
    tally.add(InferenceTally(3, 0.0, is_exact=True))
    assert tally.document() == {"method": "selected states", "total_variation": 0.005}
