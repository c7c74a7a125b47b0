"""Values, bins, roundness and constraints given evidence, compared with plain records.

Plain records that satisfy the evidence have the law that is asked for. A two-sample chi-square
test on each group of columns has a false alarm in 10^6, with fixed keys.
"""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from deniable import Schema
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
