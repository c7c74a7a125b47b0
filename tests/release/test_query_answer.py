"""QueryAnswer: frames and JSON, names that collide, numbers that are not finite."""

import json
import math

import polars as pl

from deniable.release.query_answer import AnswerCell, Interval, NumberSummary, QueryAnswer


def interval(estimate=1.0, low=0.0, high=2.0):
    return Interval(estimate=estimate, low=low, high=high)


def answer(columns, within=None):
    cell = AnswerCell(
        labels=("x",) * len(columns), count=interval(), share=interval(math.nan), within=within
    )
    number = NumberSummary(
        column="a", group="", statistic="mean", value=interval(), text=("1", "0", "2")
    )
    return QueryAnswer(
        columns=columns,
        measured=True,
        basis="b",
        rows=interval(),
        cells=(cell,),
        numbers=(number,),
    )


def test_an_interval_is_clipped_at_both_ends():
    assert interval(-1.0, -2.0, 5.0).clip(0.0, 1.0) == interval(0.0, 0.0, 1.0)


def test_numbers_that_are_not_finite_are_null():
    assert interval(math.nan, -math.inf, math.inf).document() == {
        "estimate": None,
        "low": None,
        "high": None,
    }
    document = json.loads(answer(("a",)).to_json())
    assert document["cells"][0]["share"] == {"estimate": None, "low": 0.0, "high": 2.0}
    assert document["cells"][0]["within"] is None


def test_a_frame_has_a_row_for_each_cell():
    frame = answer(("a", "b"), within=interval()).frame()
    measures = [f"{m}{end}" for m in ("count", "share", "within") for end in ("", "_low", "_high")]
    assert frame.columns == ["a", "b", *measures, "note"]
    assert frame.dtypes == [pl.String] * 2 + [pl.Float64] * 9 + [pl.String]
    assert frame["share"].to_list() == [None]


def test_columns_of_the_table_keep_their_names():
    frame = answer(("count", "note")).frame()
    assert frame.columns[:3] == ["count", "note", "count_"]
    assert frame.columns[-1] == "note_"


def test_means_and_quantiles_have_a_frame_of_their_own():
    frame = answer(("a",)).numbers_frame()
    assert frame.row(0) == ("a", "", "mean", 1.0, 0.0, 2.0, "")
