"""SVG plots: well formed, named, and readable without colour."""

import re
from xml.etree import ElementTree

import pytest

from deniable.evaluation.marginals import Marginal
from deniable.evaluation.svg_plots import (
    RELEASED_FILL,
    draw_box_plots,
    draw_dots,
    draw_lines,
    draw_marginal,
    ticks,
)

SVG = "{http://www.w3.org/2000/svg}"
FIVE = (0.0, 0.1, 0.2, 0.3, 0.5)


def marginal(number, labels):
    share = (1 / labels,) * labels
    return Marginal(
        name="a < b",
        is_number=number,
        labels=tuple(f"v<{i}" for i in range(labels)),
        released=share,
        real=share,
    )


def parsed(picture):
    return ElementTree.fromstring(picture)  # noqa: S314 - it was made here


PICTURES = {
    "bars": draw_marginal(marginal(number=False, labels=4)),
    "stairs": draw_marginal(marginal(number=True, labels=30)),
    "boxes": draw_box_plots({"Released": FIVE, "Real": FIVE}),
    "lines": draw_lines({"x": [(0, 0), (1, 2)], "y": [(0, 1)]}, across="k", up="share"),
    "points": draw_lines({"x": [(5, 3)]}, across="n", up="s", points_only=True),
    "dots": draw_dots(["a", "b"], {"x": [0.1, -0.2], "y": [0.3, 0.4], "z": [0.0, 0.1]}),
    "nothing": draw_box_plots({"Equal": (0.0,) * 5}),
}


@pytest.mark.parametrize("picture", PICTURES.values(), ids=list(PICTURES))
def test_a_picture_is_well_formed_named_and_finite(picture):
    root = parsed(picture)
    assert root.tag == f"{SVG}svg"
    assert root.get("aria-label")
    assert not re.search(r"\b(nan|inf)\b", picture)
    _, _, width, height = map(float, root.get("viewBox").split())
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x")) <= width
        assert 0 <= float(text.get("y")) <= height


def test_released_is_filled_and_real_is_an_outline():
    """They differ without colour: one is solid, the other hollow."""
    root = parsed(PICTURES["bars"])
    fills = [box.get("fill") for box in root.iter(f"{SVG}rect")]
    assert fills == ["#fff", RELEASED_FILL] * 4


def test_lines_differ_in_their_dashes():
    curves = {f"c{i}": [(0, 0), (1, 1)] for i in range(6)}
    root = parsed(draw_lines(curves, across="x", up="y"))
    dashes = {line.get("stroke-dasharray") for line in root.iter(f"{SVG}polyline")}
    assert len(dashes) == 6


def test_marks_differ_in_their_shapes():
    series = {f"s{i}": [0.1 * i] for i in range(6)}
    text = draw_dots(["row"], series)
    shapes = set(re.findall(r"circle|l5,5|h8 v8|l8,8|v12", text))
    assert len(shapes) == 5
    assert 'fill="#fff"' in text


@pytest.mark.parametrize("high", [0.003, 0.2, 1.0, 7, 12_345])
def test_ticks_are_few_round_and_within(high):
    found = ticks(high)
    assert found[0] == 0
    assert 3 <= len(found) <= 6
    assert found[-1] <= high
