"""The plot of a trade-off curve: well-formed, accessible, and within its frame."""

from xml.etree import ElementTree

import numpy as np
import pytest

from deniable.audit.attack_bounds import CurvePoint
from deniable.audit.trade_off import allowed_by_mu
from deniable.audit.trade_off_plot import draw_advantage, draw_trade_off

POINTS = [
    CurvePoint((0.1, 0.15), (0.2, 0.14)),
    CurvePoint((0.5, 0.58), (0.6, 0.52)),
    CurvePoint((0.9, 0.94), (0.88, 0.83)),  # below the diagonal
]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("draw", [draw_trade_off, draw_advantage])
def test_points_and_curves_are_inside_the_plot(draw):
    drawn = draw(POINTS, {"allowed": lambda rates: allowed_by_mu(rates, mu=0.4)})
    image = ElementTree.fromstring(drawn)  # noqa: S314 - our own output
    assert "measured" in image.get("aria-label", "")
    discs = [each for each in image.iter(f"{SVG}circle") if each.find(f"{SVG}title") is not None]
    assert len(discs) == len(POINTS)
    curve = next(image.iter(f"{SVG}polyline")).get("points", "").split()
    corners = np.array([list(map(float, corner.split(","))) for corner in curve])
    assert len(corners) == 101
    places = [(float(disc.get("cx", "")), float(disc.get("cy", ""))) for disc in discs]
    for x, y in [*corners.tolist(), *places]:
        assert 40 <= x <= 340
        assert 20 <= y <= 303


def test_the_allowed_curve_starts_and_ends_in_the_corners():
    drawn = draw_trade_off([], {"allowed": lambda rates: allowed_by_mu(rates, mu=0.4)})
    image = ElementTree.fromstring(drawn)  # noqa: S314 - our own output
    curve = next(image.iter(f"{SVG}polyline")).get("points", "").split()
    assert curve[0] == "46.0,302.0"
    assert curve[-1] == "320.0,22.0"
