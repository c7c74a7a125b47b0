"""Plots with error bars: marks inside the picture, escaped labels, unknown estimates."""

import math
import re
from xml.etree import ElementTree

from deniable.evaluation.interval_plot import draw_intervals
from deniable.release.query_answer import Interval


def interval(estimate, low, high):
    return Interval(estimate=estimate, low=low, high=high)


def test_each_row_has_a_dot_within_its_bar():
    shares = [interval(0.2, 0.1, 0.3), interval(0.5, 0.45, 0.6)]
    drawn = ElementTree.fromstring(draw_intervals(["a", "b"], shares, title="t"))  # noqa: S314
    dots = [float(dot.get("cx", "")) for dot in drawn.iter() if dot.tag.endswith("circle")]
    bars = [
        (float(bar.get("x1", "")), float(bar.get("x2", "")))
        for bar in drawn.iter()
        if bar.get("stroke-width") == "1.6"
    ]
    assert len(dots) == len(bars) == 2
    for dot, (low, high) in zip(dots, bars, strict=True):
        assert low < dot < high <= 340
    assert dots[0] < dots[1]


def test_an_unknown_estimate_is_hollow_and_labels_are_escaped():
    drawn = draw_intervals(["<b>" + "x" * 40], [interval(math.nan, 0.0, 1.0)], title='"t"')
    assert "nan" not in drawn
    assert 'fill="#fff"' in drawn
    assert "<b>" not in drawn
    assert "…" in drawn
    assert re.search(r'aria-label="&quot;t&quot;"', drawn)


def test_no_rows_and_no_shares_are_drawn():
    assert "svg" in draw_intervals([], [], title="t")
    assert "svg" in draw_intervals(["a"], [interval(0.0, 0.0, 0.0)], title="t")
