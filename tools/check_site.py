"""Check the built documentation site, without a network: links, anchors, and no foreign resources.

python tools/check_site.py docs/_build/html
"""

import re
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements that load what they refer to, and the attribute that names it. A link is only followed.
_LOADED = {"audio": "src", "embed": "src", "iframe": "src", "img": "src", "link": "href",
           "object": "data", "script": "src", "source": "src", "use": "href", "video": "src"}  # fmt: skip
_CSS_LOAD = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """Anchors, links and loaded resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element is or refers to."""
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if _LOADED.get(tag) in given:
            self.loaded.append(given[_LOADED[tag]])
        sources = given.get("srcset", "").split(",")
        self.loaded += [source.split()[0] for source in sources if source.strip()]
        self.loaded += _CSS_LOAD.findall(given.get("style", ""))


def is_foreign(target: str) -> bool:
    """Whether a target is on another host."""
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp")


def faults_of_page(name: str, pages: Mapping[str, Page], root: Path) -> Iterator[str]:
    """Yield the faults of one page."""
    page = pages[name]
    for target in page.loaded:
        if is_foreign(target):
            yield f"{name}: loads {target}"
    for target in [*page.links, *page.loaded]:
        parts = urlsplit(target)
        if is_foreign(target) or parts.scheme in ("mailto", "data"):
            continue
        path = ((root / name).parent / unquote(parts.path)).resolve() if parts.path else root / name
        if not path.is_file():
            yield f"{name}: {target} leads nowhere"
            continue
        inner = path.relative_to(root.resolve()).as_posix() if parts.path else name
        anchor = unquote(parts.fragment)
        if anchor and inner in pages and anchor not in pages[inner].anchors:
            yield f"{name}: {target} has no such anchor"


def faults_of_site(root: Path) -> list[str]:
    """Return all faults of the site in ``root``; a folder without pages is a fault."""
    pages = {
        path.relative_to(root).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.html"))
    }
    faults = [fault for name in pages for fault in faults_of_page(name, pages, root)]
    for path in sorted(root.rglob("*.css")):
        for target in _CSS_LOAD.findall(path.read_text(encoding="utf-8")):
            faults += [f"{path.relative_to(root).as_posix()}: loads {target}"]
    return faults if pages else [f"{root}: no page"]


def main(folder: str) -> int:
    faults = faults_of_site(Path(folder))
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    sys.stderr.write(f"{folder}: {len(faults)} faults\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
