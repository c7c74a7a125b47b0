"""Scatter plot of the strength of relations: real against released, one point per pair."""

from collections.abc import Sequence

from deniable.evaluation.relations import Association
from deniable.evaluation.svg_plots import PALE, RELEASED_FILL, line, svg_image, text, ticks
from deniable.html import Markup, tag

_SIZE = 340.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 40.0, 22.0, 12.0, 38.0


def draw_scatter(associations: Sequence[Association], *, strong: float) -> Markup:
    """Draw the strength of each association in real rows and in released records.

    On the diagonal the two are equal; below it strength was lost. Pairs that are strong in real
    rows are filled, the others are hollow.

    Args:
        associations: The points.
        strong: Strength above which an association is strong.
    """
    shown = sorted(associations, key=lambda each: max(each.real, each.released))
    high = max((max(each.real, each.released) for each in shown), default=0.0) or 1.0
    high = min(1.0, high * 1.05)
    floor, end = _SIZE - _BOTTOM, _SIZE - _RIGHT

    def place(real: float, released: float) -> tuple[float, float]:
        return _LEFT + (end - _LEFT) * real / high, floor - (floor - _TOP) * released / high

    drawn = [
        text(2, 12, "strength in released records", font_size=10),
        text(end, _SIZE - 6, "strength in real rows", text_anchor="end"),
    ]
    for value in ticks(high):
        x, y = place(value, value)
        drawn.append(line(_LEFT, y, end, y, stroke="#ddd"))
        drawn.append(line(x, _TOP, x, floor, stroke="#ddd"))
        drawn.append(text(_LEFT - 4, y + 4, f"{value:g}", text_anchor="end", font_size=10))
        drawn.append(text(x, floor + 14, f"{value:g}", text_anchor="middle", font_size=10))
    drawn.append(line(*place(0, 0), *place(high, high), stroke=PALE, stroke_dasharray="4 3"))
    # The strongest last, so that weak pairs do not cover them.
    drawn += [_point(each, place(each.real, each.released), strong) for each in shown]
    return svg_image(
        drawn,
        width=_SIZE,
        height=_SIZE,
        label="Strength of associations in real rows and in released records",
    )


def _point(each: Association, at: tuple[float, float], strong: float) -> Markup:
    words = f"{' × '.join(each.names)}: real {each.real:.2f}, released {each.released:.2f}"
    fill = RELEASED_FILL if each.real > strong else "#fff"
    return tag(
        "circle", tag("title", words), cx=at[0], cy=at[1], r=3, fill=fill, fill_opacity=0.7,
        stroke=RELEASED_FILL, stroke_width=0.8,
    )  # fmt: skip
