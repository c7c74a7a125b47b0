"""SVG plots of a report: bar charts, box plots, line charts and dot plots.

Plots are readable without colour: real is an outline or a dark line, released is filled. Sizes are
in pixels for the width of a phone; CSS scales a plot with its column. No scripts, no web fonts.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from deniable.evaluation.marginals import Marginal
from deniable.html import Markup, tag

_WIDTH = 340.0
INK, PALE, RELEASED_FILL = "#222", "#767676", "#0b62a4"
_FONT = "system-ui, sans-serif"
# Dash patterns, so that lines differ without colour.
_DASHES = (None, "6 3", "2 3", "8 3 2 3", "12 4", "1 4", "4 2 1 2")
_COLOURS = ("#0b62a4", "#b35900", "#222222", "#7a3b8f", "#00705a", "#a02c2c", "#767676")


def svg_image(content: Sequence[Markup], *, width: float, height: float, label: str) -> Markup:
    """Build an SVG image with an accessible name."""
    return tag(
        "svg",
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
        font_family=_FONT,
        font_size=11,
    )


def text(x: float, y: float, words: str, **style: object) -> Markup:
    """Build a line of text."""
    return tag("text", words, x=x, y=y, **({"fill": INK} | style))


def line(x1: float, y1: float, x2: float, y2: float, **style: object) -> Markup:
    """Build a straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **({"stroke": INK} | style))


def ticks(high: float, *, intervals: int = 5) -> list[float]:
    """Return round axis values from 0 to at most ``high``, with at most ``intervals`` steps.

    >>> ticks(0.23)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    if high <= 0:
        return [0.0]
    rough = high / intervals
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    return [round(i * step, 12) for i in range(int(high / step + 1e-9) + 1)]


def short_percent(share: float) -> str:
    """Format a share as a short percentage for an axis.

    >>> short_percent(0.025).split()
    ['2.5', '%']
    """
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


def draw_marginal(marginal: Marginal) -> Markup:
    """Draw the distribution of a column: real as an outline, released filled."""
    if marginal.is_number and len(marginal.labels) > 8:
        return _draw_steps(marginal)
    return _draw_bars(marginal)


def _draw_bars(marginal: Marginal) -> Markup:
    """Draw horizontal bars, a pair per value, labelled with the released share."""
    row, right = 24.0, 46.0
    left = _label_width(marginal.labels, 21)
    high = max(*marginal.real, *marginal.released, 1e-9)
    scale = (_WIDTH - left - right) / high
    drawn = []
    for at, (label, share, other) in enumerate(
        zip(marginal.labels, marginal.released, marginal.real, strict=True)
    ):
        y = at * row
        drawn.append(text(left - 6, y + 15, _truncate(label, 21), text_anchor="end"))
        drawn.append(_outline(left, y + 2, other * scale, 9.0))
        drawn.append(_filled(left, y + 12, share * scale, 9.0))
        end = left + max(share, other) * scale + 4
        drawn.append(text(end, y + 16, short_percent(round(share, 3)), fill=PALE, font_size=10))
    height = row * len(marginal.labels) + 2
    return svg_image(drawn, width=_WIDTH, height=height, label=f"Distribution of {marginal.name}")


def _outline(x: float, y: float, width: float, height: float) -> Markup:
    return tag(
        "rect", x=x, y=y, width=max(width, 0.5), height=height, fill="#fff", stroke=INK,
        stroke_width=1,
    )  # fmt: skip


def _filled(x: float, y: float, width: float, height: float) -> Markup:
    return tag("rect", x=x, y=y, width=max(width, 0.5), height=height, fill=RELEASED_FILL)


def _draw_steps(marginal: Marginal) -> Markup:
    """Draw a numeric distribution as a step plot: released as an area, real as a line."""
    left, top, bottom, height = 38.0, 8.0, 22.0, 150.0
    high = max(*marginal.real, *marginal.released, 1e-9) * 1.05
    step = (_WIDTH - left - 8) / len(marginal.labels)
    floor = height - bottom

    def y(share: float) -> float:
        return floor - (floor - top) * share / high

    drawn = []
    for share in ticks(high, intervals=4):
        drawn.append(line(left, y(share), _WIDTH - 8, y(share), stroke="#ddd"))
        drawn.append(
            text(left - 4, y(share) + 4, short_percent(share), text_anchor="end", font_size=10)
        )
    corners = _step_points(marginal.released, left, step, y)
    path = f"M{left:.1f},{floor:.1f} L{corners} L{_WIDTH - 8:.1f},{floor:.1f} Z"
    drawn.append(tag("path", d=path, fill=RELEASED_FILL, fill_opacity=0.55))
    corners = _step_points(marginal.real, left, step, y)
    drawn.append(tag("path", d=f"M{corners}", fill="none", stroke=INK, stroke_width=1.5))
    for at, anchor, words in _axis_labels(marginal.labels):
        drawn.append(text(left + step * at, height - 6, words, text_anchor=anchor))
    return svg_image(drawn, width=_WIDTH, height=height, label=f"Distribution of {marginal.name}")


def _axis_labels(labels: Sequence[str]) -> list[tuple[float, str, str]]:
    """Place the labels of a numeric axis: both ends, and the middle if there is room."""
    first, last = labels[0].partition(" to ")[0], labels[-1].rpartition(" to ")[2]
    middle = labels[len(labels) // 2].partition(" to ")[0]
    found = [(0.0, "start", first), (float(len(labels)), "end", last)]
    if max(map(len, (first, middle, last))) <= 12:
        found.append((len(labels) // 2 + 0.0, "middle", middle))
    return found


def _step_points(
    shares: Sequence[float], left: float, step: float, y: Callable[[float], float]
) -> str:
    """Compute the corner points of a step plot."""
    corners = []
    for at, share in enumerate(shares):
        corners += [f"{left + at * step:.1f},{y(share):.1f}"]
        corners += [f"{left + (at + 1) * step:.1f},{y(share):.1f}"]
    return " ".join(corners)


def draw_box_plots(
    rows: Mapping[str, tuple[float, float, float, float, float]], *, greatest: float | None = None
) -> Markup:
    """Draw box plots, one per row: whiskers from minimum to maximum, boxes between quartiles.

    Plots with the same ``greatest`` value share a scale.
    """
    left, row, top = 14.0, 46.0, 4.0
    most = max(five[4] for five in rows.values()) if greatest is None else greatest
    high = most * 1.02 or 1.0
    height = top + row * len(rows) + 22

    def x(share: float) -> float:
        return left + (_WIDTH - left - 18) * share / high

    drawn = []
    for share in ticks(high, intervals=5):
        drawn.append(line(x(share), top, x(share), height - 20, stroke="#ddd"))
        drawn.append(text(x(share), height - 6, short_percent(share), text_anchor="middle"))
    for at, (name, five) in enumerate(rows.items()):
        y = top + at * row + 30
        drawn.append(text(left - 6, y - 15, name, font_weight="600"))
        drawn += _draw_box(tuple(map(x, five)), y, filled=at == 0)
    return svg_image(drawn, width=_WIDTH, height=height, label=f"Box plots: {', '.join(rows)}")


def _draw_box(five: tuple[float, ...], y: float, *, filled: bool) -> list[Markup]:
    low, q1, median, q3, high = five
    fill, mark = (RELEASED_FILL, "#fff") if filled else ("#fff", INK)
    return [
        line(low, y, high, y),
        line(low, y - 5, low, y + 5),
        line(high, y - 5, high, y + 5),
        tag("rect", x=q1, y=y - 8, width=max(q3 - q1, 1.0), height=16, fill=fill, stroke=INK),
        line(median, y - 8, median, y + 8, stroke=mark, stroke_width=2.5),
    ]


def draw_lines(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    across: str,
    up: str,
    as_percent: bool = False,
    points_only: bool = False,
) -> Markup:
    """Draw curves or points on common axes, with a legend; dashes distinguish the curves."""
    left, top, height, row = 54.0, 22.0, 220.0, 16.0
    points = [point for line_ in lines.values() for point in line_]
    right = max((px for px, _ in points), default=1.0) or 1.0
    high = (max((py for _, py in points), default=1.0) or 1.0) * 1.05
    floor = height - 36

    def place(px: float, py: float) -> tuple[float, float]:
        return left + (_WIDTH - left - 14) * px / right, floor - (floor - top) * py / high

    drawn = [text(2, 12, up, font_size=10), text(_WIDTH, height - 6, across, text_anchor="end")]
    for share in ticks(high):
        _, y = place(0, share)
        words = short_percent(share) if as_percent else f"{share:,.4g}"
        drawn.append(line(left, y, _WIDTH - 14, y, stroke="#ddd"))
        drawn.append(text(left - 4, y + 4, words, text_anchor="end", font_size=10))
    for value in ticks(right):
        x, _ = place(value, 0)
        drawn.append(text(x, floor + 14, f"{value:,.4g}", text_anchor="middle", font_size=10))
    for at, (name, values) in enumerate(lines.items()):
        placed = [place(*point) for point in values]
        drawn += _draw_curve(placed, at, points_only=points_only)
        y = height + row * at + 8
        drawn += _draw_curve([(left, y - 4), (left + 34, y - 4)], at, points_only=points_only)
        drawn.append(text(left + 42, y, name))
    label = f"{up} by {across}: {', '.join(lines)}"
    return svg_image(drawn, width=_WIDTH, height=height + row * len(lines) + 4, label=label)


def _draw_curve(
    placed: Sequence[tuple[float, float]], at: int, *, points_only: bool
) -> list[Markup]:
    colour = _COLOURS[at % len(_COLOURS)]
    if points_only:
        fill = colour if at % 2 == 0 else "#fff"
        return [tag("circle", cx=x, cy=y, r=3, fill=fill, stroke=colour) for x, y in placed]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    return [
        tag(
            "polyline",
            points=corners,
            fill="none",
            stroke=colour,
            stroke_width=2,
            stroke_dasharray=_DASHES[at % len(_DASHES)],
        )
    ]


def draw_dots(rows: Sequence[str], series: Mapping[str, Sequence[float]]) -> Markup:
    """Draw a dot plot: one row per name, one mark per series, each series with its own shape."""
    row, top = 22.0, 16.0 + 16.0 * len(series)
    left = _label_width(rows, 18)
    values = [value for of in series.values() for value in of]
    low, high = min(0.0, *values), max(*values, 1e-9) * 1.02
    height = top + row * len(rows) + 20

    def x(share: float) -> float:
        return left + (_WIDTH - left - 16) * (share - low) / (high - low)

    drawn = []
    # No negative axis label if it would overlap the label of zero.
    below = [-share for share in ticks(-low, intervals=3)[1:]] if -low > high / 10 else []
    for share in below + ticks(high, intervals=3 if below else 5):
        drawn.append(line(x(share), top - 6, x(share), height - 18, stroke="#ddd"))
        drawn.append(text(x(share), height - 4, short_percent(share), text_anchor="middle"))
    for at, name in enumerate(rows):
        drawn.append(text(left - 6, top + row * at + 12, _truncate(name, 18), text_anchor="end"))
    for at, (name, of) in enumerate(series.items()):
        drawn.append(_mark(left, 12.0 + 16 * at, at))
        drawn.append(text(left + 12, 16.0 + 16 * at, name))
        drawn += [_mark(x(value), top + row * i + 8, at) for i, value in enumerate(of)]
    label = f"By {', '.join(rows)}: {', '.join(series)}"
    return svg_image(drawn, width=_WIDTH, height=height, label=label)


def _mark(x: float, y: float, at: int) -> Markup:
    """Build a mark: disc, ring, diamond, square, cross or vertical bar."""
    colour = _COLOURS[at % len(_COLOURS)]
    style: dict[str, object] = {"fill": "none", "stroke": colour, "stroke_width": 1.6}
    if at % 6 in (0, 1):
        fill = colour if at % 6 == 0 else "#fff"
        return tag("circle", cx=x, cy=y, r=4, **(style | {"fill": fill}))
    paths = (
        f"M{x:.1f},{y - 5:.1f} l5,5 l-5,5 l-5,-5 Z",
        f"M{x - 4:.1f},{y - 4:.1f} h8 v8 h-8 Z",
        f"M{x - 4:.1f},{y - 4:.1f} l8,8 m0,-8 l-8,8",
        f"M{x:.1f},{y - 6:.1f} v12",
    )
    return tag("path", d=paths[at % 6 - 2], **style)


def _label_width(labels: Sequence[str], longest: int) -> float:
    """Estimate the width of the longest label, truncated to ``longest`` characters."""
    return 16.0 + 6.0 * min(longest, max(map(len, labels), default=0))


def _truncate(words: str, longest: int) -> str:
    return words if len(words) <= longest else words[: longest - 1] + "…"
