"""Serve the studio on this computer until it is stopped."""

import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn

from deniable.errors import ConfigError, DataError
from deniable.files import require_regular_file
from deniable.studio.access_guard import Access
from deniable.studio.root_folder import RootFolder
from deniable.studio.run_process import RunControl
from deniable.studio.run_screen import run_state
from deniable.studio.run_store import RunStore
from deniable.studio.web_app import make_app
from deniable.studio.workspace import Workspace

LOCAL = "127.0.0.1"
# Connections that wait to be accepted.
_BACKLOG = 128


def open_workspace(table: Path | None, root: Path | None, access: Access) -> Workspace:
    """Open the folder that the studio works in.

    Args:
        table: The table to begin with.
        root: The folder; None: that of the table, or the current one.
        access: Who may talk to the studio.

    Raises:
        ConfigError: The folder is not there, or cannot be written to.
        DataError: The table is not there, or not in the folder.
    """
    if table is not None:
        require_regular_file(table, DataError)
    folder = RootFolder(root or (table.parent if table is not None else Path()))
    first = ""
    if table is not None:
        # The parent's links are resolved, as those of the root are; the table must not be one.
        first = folder.relative(table.parent.resolve() / table.name)
        folder.locate(first)
    store = RunStore(folder.path)
    store.prepare()
    control = RunControl(folder.path, store)
    return Workspace(root=folder, store=store, control=control, access=access, first_table=first)


def serve(
    table: Path | None,
    *,
    root: Path | None,
    host: str,
    port: int,
    opens_browser: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve the studio until SIGINT or SIGTERM.

    Args:
        table: The table to begin with.
        root: The folder that pages may look at.
        host: The address to bind to.
        port: The port; 0: any free one.
        opens_browser: Whether to open the link in a browser.
        announce: Prints a line on the terminal.

    Raises:
        ConfigError: The address cannot be bound to, or the folder not used.
    """
    with _bind(host, port) as bound:
        access = Access(host, bound.getsockname()[1])
        space = open_workspace(table, root, access)
        settings = uvicorn.Config(
            make_app(space, lambda link: announce(f"A new link, for one browser: {link}")),
            # No log: addresses name files, and a traceback may quote the table.
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=3,
        )
        link = access.new_link()
        announce(f"Studio of {space.root.path}")
        announce(f"Open this link in your browser; it works once: {link}")
        announce("Stop it with Ctrl-C; runs that have begun go on.")
        if opens_browser:
            webbrowser.open(link)
        with suppress(KeyboardInterrupt):  # a stop is no failure
            uvicorn.Server(settings).run(sockets=[bound])
        running = count_running(space)
        goes_on = f" Runs that go on: {running}; start it again to see them." if running else ""
        announce(f"The studio has stopped.{goes_on}")


def count_running(space: Workspace) -> int:
    """Count the runs that go on."""
    return sum(run_state(space.store.status(run)) == "running" for run in space.store.all())


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except (OSError, OverflowError) as fault:
        bound.close()
        why = getattr(fault, "strerror", None) or "no such port"
        raise ConfigError(f"{host}:{port} cannot be used ({why}); choose another --port") from None
    return bound
