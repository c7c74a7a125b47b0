"""The scatter plot of strengths: well formed, bounded, and readable without colour."""

import re
from xml.etree import ElementTree

import pytest

from deniable.evaluation.relations import Association
from deniable.evaluation.scatter_plot import draw_scatter
from deniable.evaluation.svg_plots import RELEASED_FILL

SVG = "{http://www.w3.org/2000/svg}"


def parsed(associations):
    picture = draw_scatter(associations, strong=0.15)
    assert not re.search(r"\b(nan|inf)\b", picture)
    return ElementTree.fromstring(picture)  # noqa: S314 - it was made here


def association(real, released, name="a < b"):
    return Association(names=(name, "c"), real=real, released=released)


@pytest.mark.parametrize(
    "points", [[], [(0, 0)], [(1, 1), (0, 1), (1, 0)], [(0.2, 0.01), (0.1, 0.3)]]
)
def test_a_picture_is_well_formed_and_its_points_are_inside(points):
    root = parsed([association(*point) for point in points])
    assert root.get("aria-label")
    _, _, width, height = map(float, root.get("viewBox").split())
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == len(points)
    for circle in circles:
        assert 0 <= float(circle.get("cx")) <= width
        assert 0 <= float(circle.get("cy")) <= height


def test_a_kept_strength_is_on_the_diagonal_and_a_loss_below():
    root = parsed([association(0.8, 0.8), association(0.8, 0.4)])
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
    root = parsed([association(0.5, 0.2, "strong"), association(0.1, 0.2, "weak")])
    found = {circle[0].text: circle.get("fill") for circle in root.iter(f"{SVG}circle")}
    assert found == {
        "strong × c: real 0.50, released 0.20": RELEASED_FILL,
        "weak × c: real 0.10, released 0.20": "#fff",
    }


def test_strong_pairs_are_drawn_above_weak_ones():
    """What is drawn last is on top."""
    root = parsed([association(0.9, 0.1, "strong"), association(0.1, 0.1, "weak")])
    assert [circle[0].text.split()[0] for circle in root.iter(f"{SVG}circle")] == ["weak", "strong"]
