"""How learning grows: its time by the number of columns, and by the number of rows.

    python benchmarks/growth.py [--columns 10 20 40 70 100] [--at-rows 300000]
                                [--rows 30000 100000 300000 1000000] [--at-columns 40]

Learns from simulated tables whose columns depend on each other, with the default options, encoding
included; planning, which reads no row, is made before. Prints the times with the exponents fitted
to them, and draws docs/img/growth.svg. A table has m²/2 pairs of columns, each counted in n rows.
"""

import argparse
from pathlib import Path

import numpy as np
from common import ROOT, simulate, timed

import deniable as dn
from deniable.data.codec import Codec
from deniable.evaluation.svg_plots import INK, PALE, RELEASED_FILL, line, svg_image, text
from deniable.html import Markup, tag

PICTURE = ROOT / "docs" / "img" / "growth.svg"
WIDTH, HEIGHT, PANEL, GAP = 720.0, 300.0, 290.0, 60.0
LEFT, TOP, FLOOR, INSET = 50.0, 44.0, 248.0, 24.0
# Seconds that an axis of time is marked at.
ROUND = [step * 10.0**power for power in range(-3, 5) for step in (1, 2, 5)]


def learning_time(columns, rows, repeats):
    schema, codes = simulate(columns, rows)
    table = Codec(schema).decode(codes)
    dn.plan(schema)
    (seconds,) = timed(lambda: dn.learn(table, schema), repeats=repeats)
    print(f"  {columns:4} columns x {rows:9,} rows   {seconds:8.2f} s", flush=True)
    return seconds


def exponent(sizes, seconds):
    """Return the slope of the times, both axes as logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def sweep(sizes, measure):
    """Return the times of growing sizes, and say how they grow."""
    seconds = [measure(size) for size in sizes]
    steps = [exponent(sizes[i : i + 2], seconds[i : i + 2]) for i in range(len(sizes) - 1)]
    print(f"  fitted exponent {exponent(sizes, seconds):.2f}; step by step:", end=" ")
    print(", ".join(f"{step:.2f}" for step in steps))
    return seconds


def panel(at, sizes, seconds, title, *, law, times):
    """Draw times over sizes, both as logarithms, and how they would grow by that law."""
    left = LEFT + at * (PANEL + GAP)
    lowest, highest = times[0], times[-1]

    def place(size, time):
        across = np.log(size / sizes[0]) / np.log(sizes[-1] / sizes[0])
        up = np.log(time / lowest) / np.log(highest / lowest)
        return left + INSET + (PANEL - 2 * INSET) * float(across), FLOOR - (FLOOR - TOP) * float(up)

    drawn = [text(left, 20, title, font_size=13, font_weight="600")]
    for time in times:
        _, y = place(sizes[0], time)
        drawn.append(line(left, y, left + PANEL, y, stroke="#ddd"))
        drawn.append(text(left - 6, y + 4, f"{time:,g} s", text_anchor="end"))
    for size in sizes:
        x, _ = place(size, lowest)
        drawn.append(line(x, FLOOR, x, FLOOR + 4, stroke=PALE))
        drawn.append(text(x, FLOOR + 18, f"{size:,}", text_anchor="middle"))
    return [*drawn, *reference(place, sizes, seconds, law, lowest), *curve(place, sizes, seconds)]


def reference(place, sizes, seconds, law, lowest):
    """Draw a dashed line of that slope through the last point, as far down as the axis goes."""
    (name, power), last = law, seconds[-1]
    start = max(sizes[0], sizes[-1] * (lowest / last) ** (1 / power))
    (x1, y1), (x2, y2) = place(start, last * (start / sizes[-1]) ** power), place(sizes[-1], last)
    x, y = (x1 + x2) / 2 + 8, (y1 + y2) / 2 + 14
    return [
        line(x1, y1, x2, y2, stroke=PALE, stroke_dasharray="5 4", stroke_width=1.2),
        text(x, y, f"as {name}", fill=PALE),
    ]


def curve(place, sizes, seconds):
    points = [place(*point) for point in zip(sizes, seconds, strict=True)]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    drawn = [tag("polyline", points=corners, fill="none", stroke=RELEASED_FILL, stroke_width=2)]
    for (x, y), time in zip(points, seconds, strict=True):
        drawn.append(tag("circle", cx=x, cy=y, r=3.5, fill=RELEASED_FILL, stroke="#fff"))
        drawn.append(text(x, y - 9, f"{time:.2g}", text_anchor="middle", fill=INK))
    return drawn


def draw(by_columns, by_rows, options):
    """Return the picture: one panel for columns, one for rows, one scale of time for both."""
    all_times = [*by_columns, *by_rows]
    # With room below the first point and for a number above the last.
    fits = [t for t in ROUND if t < 0.8 * min(all_times)][-1:]
    times = fits + [t for t in ROUND if fits[0] < t < 1.3 * max(all_times)]
    times.append(ROUND[ROUND.index(times[-1]) + 1])
    first = f"Learning: m columns, {options.at_rows:,} rows"
    second = f"Learning: n rows, {options.at_columns} columns"
    note = "Both axes are logarithms. Dashed: growth with m², or with n, from the last point."
    drawn = [
        tag("rect", x=0, y=0, width=WIDTH, height=HEIGHT, fill="#fff"),
        *panel(0, options.columns, by_columns, first, law=("m²", 2), times=times),
        *panel(1, options.rows, by_rows, second, law=("n", 1), times=times),
        text(LEFT, HEIGHT - 10, note, fill=PALE),
    ]
    return svg_image(
        drawn, width=WIDTH, height=HEIGHT, label="Learning time by columns and by rows"
    )


def save(drawn: Markup, path: Path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawn + "\n", encoding="utf-8")
    print(f"drew {path}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 20, 40, 70, 100])
    parser.add_argument("--at-rows", type=int, default=300_000)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[30_000, 100_000, 300_000, 1_000_000]
    )
    parser.add_argument("--at-columns", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    print("learning time by the number of columns")
    by_columns = sweep(
        options.columns, lambda m: learning_time(m, options.at_rows, options.repeats)
    )
    print("learning time by the number of rows")
    by_rows = sweep(options.rows, lambda n: learning_time(options.at_columns, n, options.repeats))
    save(draw(by_columns, by_rows, options), options.picture)


if __name__ == "__main__":
    main()
