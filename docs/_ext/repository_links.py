"""Links of documents to files of the repository, on the site.

A document is also read in the repository, where ``../examples/own_model.py`` is a link. On the site
every link to a document leads to its page; a file without a page is shown by its path. A picture
that was drawn by tools/ becomes part of the page, so that its colours follow the theme.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
# Documents outside docs/, and the pages that include them.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "benchmarks/utility.md": "benchmarks-utility.md",
    "docs/adr": "decisions.md",
}
# In the first line of a picture with the colours of the theme.
_INLINE = 'class="dn"'
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|/)([^)#\s]+)(#[^)\s]*)?\)")


def rewrite_links(text: str, folder: Path) -> str:
    """Rewrite the links of a document of ``folder`` to pages of the site, from its root."""

    def rewrite(link: re.Match[str]) -> str:
        mark, label, target, anchor = link.groups(default="")
        path = (folder / target).resolve()
        if not path.exists() or not path.is_relative_to(REPOSITORY):
            return link.group()
        name = path.relative_to(REPOSITORY).as_posix()
        if name in PAGES:
            return f"[{label}](/{PAGES[name]}{anchor})"
        if mark and path.suffix == ".svg" and _INLINE in path.read_text(encoding="utf-8"):
            return f":::{{container}} picture\n```{{raw}} html\n:file: {path}\n```\n:::"
        if path.is_relative_to(DOCS):
            return f"{mark}[{label}](/{path.relative_to(DOCS).as_posix()}{anchor})"
        return f"`{name}`" if label in (target, name) else f"{label} (`{name}`)"

    return _LINK.sub(rewrite, text)


def _rewrite_page(app: "Sphinx", docname: str, source: list[str]) -> None:
    source[0] = rewrite_links(source[0], Path(app.env.doc2path(docname)).parent)


def _rewrite_included(_app: "Sphinx", path: Path, _parent: str, source: list[str]) -> None:
    # The path is relative to the source folder of the site.
    source[0] = rewrite_links(source[0], (DOCS / path).resolve().parent)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _rewrite_page)
    app.connect("include-read", _rewrite_included)
    return {"parallel_read_safe": True}
