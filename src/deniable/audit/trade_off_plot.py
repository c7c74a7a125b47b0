"""Plot of a measured trade-off curve next to the allowed one: true against false positives."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from deniable.audit.attack_bounds import CurvePoint
from deniable.audit.trade_off import AllowedRates
from deniable.evaluation.html import Markup, tag
from deniable.evaluation.svg_plots import (
    INK,
    PALE,
    RELEASED_FILL,
    line,
    short_percent,
    svg_image,
    text,
    ticks,
)

_SIZE = 340.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 46.0, 22.0, 20.0, 38.0
# Height of a line of the legend.
_ROW = 16.0
_DASHES = (None, "6 3", "2 3")
# False-positive rates at which allowed curves are drawn: denser at both ends.
_GRID = (1 - np.cos(np.linspace(0, np.pi, 101))) / 2


def draw_trade_off(points: Sequence[CurvePoint], allowed: Mapping[str, AllowedRates]) -> Markup:
    """Draw true against false positives: what was measured, and what is allowed."""
    return _draw(points, allowed, "true positives", lambda rate, _: rate, least=1.0)


def draw_advantage(points: Sequence[CurvePoint], allowed: Mapping[str, AllowedRates]) -> Markup:
    """Draw true less false positives, which shows curves near the diagonal apart."""
    return _draw(
        points,
        allowed,
        "true less false positives",
        lambda rate, false_positives: rate - false_positives,
        least=0.02,
    )


def _draw(
    points: Sequence[CurvePoint],
    allowed: Mapping[str, AllowedRates],
    up: str,
    height_of: Callable[[float, float], float],
    *,
    least: float,
) -> Markup:
    curves = {name: _curve(rates, height_of) for name, rates in allowed.items()}
    heights = [h for curve in curves.values() for _, h in curve]
    heights += [height_of(p.true_positives[0], p.false_positives[0]) for p in points]
    high = max([least, *heights]) * (1.0 if least == 1.0 else 1.05)
    floor, end = _SIZE - _BOTTOM, _SIZE - _RIGHT

    def place(across: float, height: float) -> tuple[float, float]:
        inside = min(max(height, 0.0), high)
        return _LEFT + (end - _LEFT) * across, floor - (floor - _TOP) * inside / high

    drawn = [
        text(2, 12, up, font_size=10),
        text(end, _SIZE - 6, "false positives", text_anchor="end"),
    ]
    for value in ticks(high):
        _, y = place(0, value)
        drawn.append(line(_LEFT, y, end, y, stroke="#ddd"))
        drawn.append(text(_LEFT - 4, y + 4, short_percent(value), text_anchor="end", font_size=10))
    for value in ticks(1.0):
        x, _ = place(value, 0)
        drawn.append(text(x, floor + 14, short_percent(value), text_anchor="middle", font_size=10))
    for at, curve in enumerate(curves.values()):
        drawn.append(_polyline([place(*point) for point in curve], at))
    for point in points:
        drawn += _point(point, place, height_of)
    drawn += _legend(list(curves), top=_SIZE)
    label = f"{up} by false positives: measured, {', '.join(curves)}"
    return svg_image(drawn, width=_SIZE, height=_SIZE + _ROW * (len(curves) + 1), label=label)


def _curve(
    allowed: AllowedRates, height_of: Callable[[float, float], float]
) -> list[tuple[float, float]]:
    rates = allowed(_GRID)
    return [
        (float(x), height_of(float(rate), float(x))) for x, rate in zip(_GRID, rates, strict=True)
    ]


def _polyline(corners: Sequence[tuple[float, float]], at: int) -> Markup:
    return tag(
        "polyline",
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners),
        fill="none",
        stroke=INK if at == 0 else PALE,
        stroke_width=1.5,
        stroke_dasharray=_DASHES[at % len(_DASHES)],
    )


def _point(
    point: CurvePoint,
    place: Callable[[float, float], tuple[float, float]],
    height_of: Callable[[float, float], float],
) -> list[Markup]:
    """One threshold: a disc at the observed rates, a line to the bounds of both."""
    (seen, above), (found, below) = point.false_positives, point.true_positives
    words = (
        f"{short_percent(round(seen, 4))} false, {short_percent(round(found, 4))} true positives"
    )
    x, y = place(seen, height_of(found, seen))
    bound_x, bound_y = place(above, height_of(below, above))
    return [
        line(x, y, bound_x, bound_y, stroke=RELEASED_FILL, stroke_opacity=0.4),
        tag("circle", tag("title", words), cx=x, cy=y, r=3, fill=RELEASED_FILL),
    ]


def _legend(names: Sequence[str], *, top: float) -> list[Markup]:
    drawn = [
        tag("circle", cx=_LEFT + 17, cy=top + 4, r=3, fill=RELEASED_FILL),
        text(_LEFT + 42, top + 8, "measured; the line leads to both bounds"),
    ]
    for at, name in enumerate(names):
        y = top + _ROW * (at + 1)
        drawn.append(_polyline([(_LEFT, y + 4), (_LEFT + 34, y + 4)], at))
        drawn.append(text(_LEFT + 42, y + 8, name))
    return drawn
