"""Plot of estimates with error bars: a row for each, a dot with its interval."""

import math
from collections.abc import Callable, Sequence

from deniable.evaluation.html import Markup, tag
from deniable.evaluation.svg_plots import (
    INK,
    RELEASED_FILL,
    line,
    short_percent,
    svg_image,
    text,
    ticks,
)
from deniable.release.query_answer import Interval

_WIDTH, _ROW, _RIGHT, _BOTTOM = 340.0, 20.0, 14.0, 22.0
_MAX_LABEL = 22


def draw_intervals(labels: Sequence[str], shares: Sequence[Interval], *, title: str) -> Markup:
    """Draw shares as dots with their intervals; a hollow dot if noise allows any share.

    Args:
        labels: A label of each row.
        shares: The share of each row.
        title: The accessible name of the plot.
    """
    left = 16.0 + 6.3 * min(_MAX_LABEL, max(map(len, labels), default=0))
    high = max((share.high for share in shares), default=0.0)
    high = min(1.0, max(high, 1e-3) * 1.04)
    height = _ROW * len(labels) + _BOTTOM + 4

    def x(share: float) -> float:
        return left + (_WIDTH - left - _RIGHT) * min(max(share / high, 0.0), 1.0)

    drawn = []
    for tick in ticks(high, intervals=4):
        drawn.append(line(x(tick), 2, x(tick), height - _BOTTOM, stroke="#ddd"))
        words = short_percent(tick)
        drawn.append(text(x(tick), height - 6, words, text_anchor="middle", font_size=10))
    for at, (label, share) in enumerate(zip(labels, shares, strict=True)):
        drawn += _row(label, share, left, 4 + _ROW * (at + 0.5), x)
    return svg_image(drawn, width=_WIDTH, height=height, label=title)


def _row(
    label: str, share: Interval, left: float, y: float, x: Callable[[float], float]
) -> list[Markup]:
    short = label if len(label) <= _MAX_LABEL else label[: _MAX_LABEL - 1] + "…"
    low, high = x(share.low), x(share.high)
    known = math.isfinite(share.estimate)
    words = f"{label}: {short_percent(share.low)} to {short_percent(share.high)}"
    middle = x(share.estimate) if known else (low + high) / 2
    return [
        text(left - 6, y + 4, short, text_anchor="end"),
        line(low, y, high, y, stroke=INK, stroke_width=1.6),
        line(low, y - 4, low, y + 4, stroke=INK),
        line(high, y - 4, high, y + 4, stroke=INK),
        tag(
            "circle", tag("title", words), cx=middle, cy=y, r=3.4, stroke=RELEASED_FILL,
            fill=RELEASED_FILL if known else "#fff",
        ),
    ]  # fmt: skip
