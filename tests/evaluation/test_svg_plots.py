"""HTML and SVG: escaped, well formed, named, and readable without colour."""

import re
from xml.etree import ElementTree

import pytest

from deniable.evaluation.marginals import Marginal
from deniable.evaluation.relations import Association
from deniable.evaluation.scatter_plot import draw_scatter
from deniable.evaluation.svg_plots import (
    RELEASED_FILL,
    draw_box_plots,
    draw_dots,
    draw_lines,
    draw_marginal,
    ticks,
)
from deniable.html import Markup, figure, section, table, tag

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


def scatter(associations):
    picture = draw_scatter(associations, strong=0.15)
    assert not re.search(r"\b(nan|inf)\b", picture)
    return ElementTree.fromstring(picture)  # noqa: S314 - it was made here


def association(real, released, name="a < b"):
    return Association(names=(name, "c"), real=real, released=released, limit=real + 0.1)


@pytest.mark.parametrize(
    "points", [[], [(0, 0)], [(1, 1), (0, 1), (1, 0)], [(0.2, 0.01), (0.1, 0.3)]]
)
def test_a_picture_is_well_formed_and_its_points_are_inside(points):
    root = scatter([association(*point) for point in points])
    assert root.get("aria-label")
    _, _, width, height = map(float, root.get("viewBox").split())
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == len(points)
    for circle in circles:
        assert 0 <= float(circle.get("cx")) <= width
        assert 0 <= float(circle.get("cy")) <= height


def test_a_kept_strength_is_on_the_diagonal_and_a_loss_below():
    root = scatter([association(0.8, 0.8), association(0.8, 0.4)])
    (diagonal,) = [each for each in root.iter(f"{SVG}line") if each.get("stroke-dasharray")]
    x1, y1, x2, y2 = (float(diagonal.get(name)) for name in ("x1", "y1", "x2", "y2"))
    below, on = sorted(
        (
            float(circle.get("cy")) - (y1 + (y2 - y1) * (float(circle.get("cx")) - x1) / (x2 - x1))
            for circle in root.iter(f"{SVG}circle")
        ),
        reverse=True,
    )
    assert on == pytest.approx(0, abs=0.02)
    assert below > 50  # SVG counts down


def test_strong_pairs_are_filled_and_named():
    root = scatter([association(0.5, 0.2, "strong"), association(0.1, 0.2, "weak")])
    found = {circle[0].text: circle.get("fill") for circle in root.iter(f"{SVG}circle")}
    assert found == {
        "strong × c: real 0.50, released 0.20": RELEASED_FILL,
        "weak × c: real 0.10, released 0.20": "#fff",
    }


def test_strong_pairs_are_drawn_above_weak_ones():
    """What is drawn last is on top."""
    root = scatter([association(0.9, 0.1, "strong"), association(0.1, 0.1, "weak")])
    assert [circle[0].text.split()[0] for circle in root.iter(f"{SVG}circle")] == ["weak", "strong"]


def test_text_is_escaped_and_markup_is_not():
    assert tag("p", "<", Markup("<b>x</b>"), title='"') == '<p title="&quot;">&lt;<b>x</b></p>'
    assert tag("line", x1=1.0, stroke_width=0.25) == '<line x1="1" stroke-width="0.25"/>'
    assert "&lt;i&gt;" in table(["<i>"], [["x"]])


def test_columns_after_the_text_columns_are_numbers():
    text = table(["name", "kind", "count"], [["a", "b", "3"]], left=2)
    assert text.count('class="number"') == 2
    assert '<td class="number">3</td>' in text


def test_the_caption_is_outside_the_scrolling_frame():
    text = table(["a"], [["b"]], caption="Counts < 5")
    assert text.index("Counts &lt; 5</p>") < text.index('class="scroll"')
    assert 'aria-label="Counts &lt; 5"' in text
    assert "caption" not in table(["a"], [["b"]])


def test_sections_and_figures_escape_their_titles():
    assert section("a & b", "c") == "<section><h2>a &amp; b</h2>c</section>"
    assert figure(Markup("<svg></svg>"), "x > y").endswith(
        "<figcaption>x &gt; y</figcaption></figure>"
    )
