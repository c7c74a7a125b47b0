"""HTML and SVG elements, of pages and of notebooks. Text is escaped unless it is markup already."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape


class Markup(str):
    """Text that is already HTML or SVG."""

    __slots__ = ()


# Content of an element.
Content = str | Iterable["Content"]


def tag(name: str, *content: Content, **attributes: object) -> Markup:
    """Build an element. ``class_`` means class, ``stroke_width`` means stroke-width.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(map(_text, content))
    if not inner and name in {"rect", "line", "path", "polyline", "circle"}:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{inner}</{name}>")


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _text(content: Content) -> str:
    if isinstance(content, Markup):
        return content
    return escape(content) if isinstance(content, str) else "".join(map(_text, content))


def table(
    head: Sequence[Content], rows: Iterable[Sequence[Content]], *, caption: str = "", left: int = 1
) -> Markup:
    """Build a table that scrolls horizontally on narrow screens.

    Args:
        head: Column titles.
        rows: Cells, row by row.
        caption: Caption of the table.
        left: Number of leading text columns; the others are numbers, aligned right.
    """

    def cell(kind: str, at: int, content: Content) -> Markup:
        return tag(kind, content, class_=None if at < left else "number")

    top = tag("tr", [cell("th", at, title) for at, title in enumerate(head)])
    body = [tag("tr", [cell("td", at, value) for at, value in enumerate(row)]) for row in rows]
    drawn = tag("table", tag("thead", top), tag("tbody", body), aria_label=caption or None)
    # The caption is outside the scrolling frame, so that it always stays visible.
    above = [tag("p", caption, class_="caption")] if caption else []
    return tag("div", above, tag("div", drawn, class_="scroll"), class_="table")


def section(title: str, *content: Content) -> Markup:
    """Build a section with a heading."""
    return tag("section", tag("h2", title), *content)


def paragraph(*content: Content, class_: str | None = None) -> Markup:
    """Build a paragraph."""
    return tag("p", *content, class_=class_)


def figure(picture: Markup, caption: str) -> Markup:
    """Build a figure with a caption."""
    return tag("figure", picture, tag("figcaption", caption))


def notebook_summary(title: str, facts: Mapping[str, object], *more: Content) -> Markup:
    """Build what a notebook shows of an object: a title, a table of facts, and more below.

    It has no colours of its own, so that it can be read on a light and on a dark page.
    """
    rows = [tag("tr", tag("th", name), tag("td", str(fact))) for name, fact in facts.items()]
    return tag("div", tag("p", tag("b", title)), tag("table", tag("tbody", rows)), *more)
