"""The command ``studio``: the whole workflow in a browser."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from deniable.cli.terminal import print_line
from deniable.errors import ConfigError

_LOCAL = "127.0.0.1"
_NEEDED = ("jinja2", "starlette", "uvicorn")

Port = Annotated[
    int | None,
    typer.Option(
        min=0, max=65_535, metavar="<int>", help="Port. [any free one]", show_default=False
    ),
]


def studio(
    table: Annotated[
        Path | None,
        typer.Argument(help="Table to begin with. [choose one in the browser]", show_default=False),
    ] = None,
    *,
    root: Annotated[
        Path | None,
        typer.Option(
            help="Folder that the studio may read. [that of the table, or the current one]",
            show_default=False,
        ),
    ] = None,
    port: Port = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = _LOCAL,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link, but open no browser.")
    ] = False,
) -> None:
    """Open a local web page that leads from a table to a release.

    It runs the same commands as this program, and shows each of them. The link works in one
    browser, once. Runs go on if the page is closed, or the studio is stopped.
    """
    _require_what_it_needs()
    from deniable.studio.server import serve

    _warn_of(host)
    serve(
        table,
        root=root,
        host=host,
        port=port or 0,
        opens_browser=not no_browser,
        announce=print_line,
    )


def _warn_of(host: str) -> None:
    """Describe the risk of an address other than the default."""
    if host == "localhost":
        print_line(
            "WARNING: under this name your browser sends its cookie to every server on this "
            "computer. Do not open pages of other users' servers while the studio runs."
        )
    elif host != _LOCAL:
        print_line(
            f"WARNING: {host} may be reached from other computers, and the connection is not "
            "encrypted: others on the network can read your table. Use an SSH tunnel instead."
        )


def _require_what_it_needs() -> None:
    """Refuse to start where the extra is not installed, or the system lacks file locks."""
    if sys.platform == "win32":
        raise ConfigError("the studio needs Linux or macOS; on Windows, run it in WSL")
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the studio needs {', '.join(missing)}: install it with pip install 'deniable[studio]'"
        )
