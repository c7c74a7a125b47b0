"""Draw the pictures of docs/how-it-works.md, as SVG.

python tools/draw_pictures.py

Colours follow the theme of the page. Alone, as an image, a picture follows the system's.
"""

import math
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

import numpy as np
import polars as pl

from deniable.demo import demo_schema, demo_table
from deniable.pipeline.api import plan

FOLDER = Path(__file__).parents[1] / "docs" / "img"

_LIGHT = "--ink:#1f2933;--soft:#5b6572;--line:#8b95a3;--paper:#ffffff;--a:#2f6fae;--a2:#dceaf7;--b:#b65d17;--b2:#fbe7d3;--c:#1f7a5a;--c2:#d7efe4;--d:#c9ced6"
_DARK = "--ink:#e6e9ee;--soft:#aab3bf;--line:#7c8795;--paper:#16191d;--a:#7fb5ea;--a2:#1d3650;--b:#eda35f;--b2:#4a2f17;--c:#6fcfa6;--c2:#16402f;--d:#4a525d"
STYLE = (
    f".dn{{{_LIGHT}}}"
    f"@media(prefers-color-scheme:dark){{.dn{{{_DARK}}}}}"
    f'body[data-theme="light"] .dn{{{_LIGHT}}}'
    f'body[data-theme="dark"] .dn{{{_DARK}}}'
    ".dn text{font-family:system-ui,sans-serif;font-size:14px;fill:var(--ink)}"
    ".dn .soft{fill:var(--soft);font-size:12.5px}.dn .bold{font-weight:600}"
    ".dn .mono{font-family:ui-monospace,monospace;font-size:12.5px}"
    ".dn .a{fill:var(--a2);stroke:var(--a)}.dn .b{fill:var(--b2);stroke:var(--b)}"
    ".dn .c{fill:var(--c2);stroke:var(--c)}.dn .p{fill:var(--paper);stroke:var(--line)}"
    ".dn .d{fill:var(--d);stroke:var(--d)}"
    ".dn .line{stroke:var(--line);fill:none;stroke-width:1.6}"
    ".dn .wall{stroke:var(--b);fill:none;stroke-width:2;stroke-dasharray:6 5}"
    ".dn .bar{fill:var(--a2);stroke:var(--a)}.dn .dot{fill:var(--b)}.dn .err{stroke:var(--b)}"
)


def text(x: float, y: float, words: str, *, kind: str = "", anchor: str = "start") -> str:
    """Write a line of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def lines(
    x: float, y: float, words: Iterable[str], *, kind: str = "", anchor: str = "start"
) -> str:
    """Write lines of text, one below the other."""
    return "".join(
        text(x, y + 19 * i, each, kind=kind, anchor=anchor) for i, each in enumerate(words)
    )


def box(
    x: float, y: float, width: float, height: float, *, kind: str, words: Iterable[str] = ()
) -> str:
    """Draw a rounded box with its words in the middle; the first line is bold."""
    words = list(words)
    top = y + height / 2 + 5 - 9.5 * (len(words) - 1)
    inner = "".join(
        text(x + width / 2, top + 19 * i, each, kind="soft" if i else "bold", anchor="middle")
        for i, each in enumerate(words)
    )
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>{inner}'


def arrow(*points: tuple[float, float]) -> str:
    """Draw a line through the points, with a head at the last one."""
    (x1, y1), (x2, y2) = points[-2:]
    size = np.hypot(x2 - x1, y2 - y1)
    dx, dy = 9 * (x2 - x1) / size, 9 * (y2 - y1) / size
    head = f"M{x2 - dx - dy / 2:.1f} {y2 - dy + dx / 2:.1f}L{x2:g} {y2:g}L{x2 - dx + dy / 2:.1f} {y2 - dy - dx / 2:.1f}"
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="{path}{head}" class="line"/>'


def wall(x: float, top: float, bottom: float) -> str:
    """Draw the line that only noisy numbers cross."""
    return f'<path d="M{x:g} {top:g}V{bottom:g}" class="wall"/>'


def picture(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """Assemble a picture."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" class="dn" '
        f'role="img" aria-label="{escape(title)}" style="width:100%;max-width:{width}px;height:auto">'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def draw_pipeline() -> str:
    """From the table to records: what is confidential, and what may leave."""
    parts = [
        text(125, 22, "confidential", kind="soft", anchor="middle"),
        text(560, 22, "may be published", kind="soft", anchor="middle"),
        box(20, 40, 210, 62, kind="b", words=["table", "people.csv"]),
        box(20, 150, 210, 62, kind="b", words=["exact counts", "columns, pairs, prefixes"]),
        arrow((125, 102), (125, 148)),
        box(300, 40, 190, 62, kind="p", words=["schema.toml", "public knowledge"]),
        arrow((300, 71), (232, 71)),
        wall(265, 116, 300),
        text(265, 320, "noise, once: here ε is spent", kind="soft", anchor="middle"),
        arrow((230, 181), (298, 181)),
        box(300, 150, 190, 62, kind="a", words=["noisy counts", "every number of them"]),
        arrow((490, 181), (538, 181)),
        box(540, 150, 170, 62, kind="a", words=["artefact", "network + prefixes"]),
        arrow((625, 212), (625, 258)),
        box(540, 260, 170, 62, kind="c", words=["records", "as many as you like"]),
        box(540, 40, 170, 62, kind="p", words=["manifest.json", "the certificate"]),
        arrow((625, 150), (625, 104)),
        box(300, 240, 190, 52, kind="p", words=["deniable verify", "recomputes it all"]),
        arrow((538, 206), (492, 248)),
    ]
    return picture(
        730, 340, "From a confidential table, through noise, to an artefact and records", parts
    )


def _mode(
    x: float, y: float, name: str, path: list[tuple[str, list[str]]], promise: list[str]
) -> list[str]:
    """Draw one mode: its boxes from left to right, and what it promises."""
    parts = [text(x, y + 16, name, kind="bold")]
    left = x
    for (kind, words), width in zip(path, (92, 132, 80), strict=True):
        if left > x:
            parts.append(arrow((left - 18, y + 59), (left - 1, y + 59)))
        parts.append(box(left, y + 28, width, 62, kind=kind, words=words))
        left += width + 18
    parts.append(lines(x, y + 112, promise, kind="soft"))
    return parts


def draw_modes() -> str:
    """The four modes: what they take from real rows, and what they promise."""
    parts = [
        *_mode(10, 0, "one-shot (default)", [("b", ["rows"]), ("a", ["prefix counts", "+ noise, once"]), ("c", ["records"])],
               ["(ε, δ) for any number of records, and", "at least k rows behind every copied prefix"]),
        *_mode(390, 0, "seedless", [("b", ["rows"]), ("a", ["model", "+ noise"]), ("c", ["records"])],
               ["(ε, δ) for any number of records;", "nothing is copied"]),
        *_mode(10, 175, "tested (the paper)", [("b", ["a real row"]), ("p", ["candidate", "k rows alike?"]), ("c", ["record"])],
               ["plausible deniability of each record;", "not differential privacy for the rows"]),
        *_mode(390, 175, "randomized (the paper, repaired)", [("b", ["a row", "or a dummy"]), ("p", ["candidate", "k + noise alike?"]), ("c", ["record"])],
               ["(ε, δ) that grows with every record:", "for a few records only"]),
    ]  # fmt: skip
    return picture(740, 335, "The four modes: one-shot, seedless, tested, randomized", parts)


COLUMNS = ("sex", "income", "schooling", "age", "hours")


def _record(x: float, y: float, values: tuple[str, ...], copied: int) -> list[str]:
    """Draw a record: copied columns in one colour, drawn ones in another."""
    return [
        f'<rect x="{x + 112 * i:g}" y="{y:g}" width="106" height="32" rx="4" class="{"b" if i < copied else "a"}"/>'
        + text(x + 112 * i + 53, y + 21, value, kind="mono", anchor="middle")
        for i, value in enumerate(values)
    ]


def draw_prefix() -> str:
    """What a prefix is: the columns that a record copies; the rest is drawn from the network."""
    seed, record = (
        ("Female", "low", "Bachelor", "41", "38"),
        ("Female", "low", "High school", "29", "40"),
    )
    parts = [
        *(text(143 + 112 * i, 22, name, kind="soft", anchor="middle") for i, name in enumerate(COLUMNS)),
        text(10, 55, "real row", kind="bold"),
        *_record(90, 34, seed, copied=2),
        arrow((143, 68), (143, 128)), arrow((255, 68), (255, 128)),
        text(162, 102, "copied", kind="soft"),
        text(10, 151, "record", kind="bold"),
        *_record(90, 130, record, copied=2),
        *(f'<path d="M{143 + 112 * i} 164C{143 + 112 * i} 200 {243 + 112 * i} 200 {243 + 112 * i} 168" class="line"/>' for i in (1, 2, 3)),
        '<path d="M90 74h216" class="wall"/>',
        text(90, 222, "the prefix: m - ω columns", kind="soft"),
        text(640, 222, "drawn by the network: ω columns, each given earlier ones", kind="soft", anchor="end"),
    ]  # fmt: skip
    return picture(
        670, 236, "A record copies a prefix of a real row and draws the other columns", parts
    )


def draw_k_rows() -> str:
    """Why k rows stand behind a record: all rows with its prefix could be its source."""
    parts = [text(10, 18, "rows of the table", kind="soft"), text(470, 18, "records", kind="soft")]
    groups = [("Female, low", 7, True), ("Male, high", 5, True), ("Female, high", 2, False)]
    y = 32.0
    for name, rows, kept in groups:
        height = 19 * rows
        for row in range(rows):
            kind = "b" if kept else "d"
            parts.append(
                f'<rect x="10" y="{y + 19 * row:g}" width="150" height="15" rx="3" class="{kind}"/>'
            )
        middle = y + height / 2
        parts += [
            text(172, middle + 5, name, kind="bold"),
            text(290, middle + 5, f"{rows} rows", kind="soft"),
        ]
        if kept:
            parts += [
                arrow((350, middle), (462, middle)),
                box(
                    465,
                    middle - 24,
                    245,
                    48,
                    kind="c",
                    words=[f"{name}, …", f"each of {rows} is as likely its source"],
                ),
            ]
        else:
            parts.append(
                lines(
                    360,
                    middle - 3,
                    ["fewer than k = 4: never copied;", "such records come from the model"],
                    kind="soft",
                )
            )
        y += height + 20
    parts.append(
        text(
            10,
            y + 6,
            "With k = 50, the default, at least 50 rows have every copied combination.",
            kind="soft",
        )
    )
    return picture(720, int(y) + 16, "At least k rows share every copied prefix", parts)


def draw_noise() -> str:
    """Counts of a column next to the noise that they get, at several ε."""
    rows = 3_000
    schema = demo_schema()
    column = "occupation"
    counts = (
        pl.read_csv(demo_table(), n_rows=rows)[column].value_counts(sort=True)["count"].to_numpy()
    )
    rng = np.random.default_rng(4)  # a picture of noise, not noise
    parts = []
    for at, epsilon in enumerate((0.1, 0.3, 1.0, 3.0)):
        spends = plan(schema, epsilon=epsilon, rows_max=rows).privacy.spends
        sigma = next(
            math.sqrt(each.law.variance) for each in spends if each.what == f"values of {column}"
        )
        parts += _noisy_bars(
            30 + 360 * (at % 2),
            20 + 205 * (at // 2),
            counts,
            sigma=sigma,
            rng=rng,
            title=f"ε = {epsilon:g}",
        )
    parts.append(
        text(
            30,
            438,
            f"People by occupation in a table of {rows:,} rows of eleven columns: bars are exact counts, dots what is released.",
            kind="soft",
        )
    )
    return picture(740, 450, "Exact counts and noisy counts of a column at four values of ε", parts)


def _noisy_bars(
    x: float, y: float, counts: np.ndarray, *, sigma: float, rng: np.random.Generator, title: str
) -> list[str]:
    """Draw one panel: bars, and dots at what the noise makes of them, within the panel."""
    top, height, step = float(counts.max()) * 1.25, 150.0, 13.0
    noisy = np.clip(counts + rng.normal(0, sigma, len(counts)), -0.1 * top, top)
    parts = [
        text(x, y + 8, title, kind="bold"),
        text(x + 325, y + 8, f"noise ± {sigma:.0f}", kind="soft", anchor="end"),
    ]
    for i, (count, shown) in enumerate(zip(counts, noisy, strict=True)):
        bar = height * count / top
        parts.append(
            f'<rect x="{x + step * i:g}" y="{y + 20 + height - bar:.1f}" width="10" height="{bar:.1f}" class="bar"/>'
        )
        parts.append(
            f'<circle cx="{x + step * i + 5:g}" cy="{y + 20 + height - height * shown / top:.1f}" r="3.2" class="dot"/>'
        )
    parts.append(f'<path d="M{x:g} {y + 20 + height:g}h325" class="line"/>')
    return parts


PICTURES: dict[str, Callable[[], str]] = {
    "pipeline.svg": draw_pipeline,
    "modes.svg": draw_modes,
    "prefix.svg": draw_prefix,
    "k-rows.svg": draw_k_rows,
    "noise.svg": draw_noise,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8", newline="\n")
