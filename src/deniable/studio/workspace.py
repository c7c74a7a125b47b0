"""Workspace: the state that all screens share, their requests and their replies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from deniable.studio.access_guard import Access
from deniable.studio.root_folder import RootFolder
from deniable.studio.run_process import RunControl
from deniable.studio.run_store import RunStore


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """State that all screens share.

    Attributes:
        root: The folder that the studio may read.
        store: The runs on disk.
        control: The processes of the runs.
        access: The access control of the studio.
        first_table: The table that the studio was started with; "" if none.
    """

    root: RootFolder
    store: RunStore
    control: RunControl
    access: Access
    first_table: str = ""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, as a screen sees it.

    Attributes:
        space: The workspace.
        query: The fields of the address; a repeated one is joined by line breaks.
        form: The fields of a form, likewise.
        parts: Parts of the path, by name.
        is_partial: Whether only a part of the page is wanted.
        trigger: The name of the field that caused a partial request.
    """

    space: Workspace
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    is_partial: bool = False
    trigger: str = ""


@dataclass(frozen=True)
class Page:
    """A rendered template.

    Attributes:
        template: The file of the template.
        content: Its variables.
        status: The status of the reply.
        headers: Further headers.
    """

    template: str
    content: Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Redirect:
    """Another page of the studio."""

    address: str


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A reply that is sent while it is made.

    Attributes:
        blocks: Its bytes.
        kind: Its media type.
        headers: Further headers.
    """

    blocks: Iterator[bytes]
    kind: str
    headers: Mapping[str, str] = field(default_factory=dict)


Reply = Page | Redirect | Stream


def address(path: str, /, **query: str | int) -> str:
    """Write an address of the studio; empty fields are left out."""
    given = {name: str(value) for name, value in query.items() if value != ""}
    return quote(path) + (f"?{urlencode(given)}" if given else "")
