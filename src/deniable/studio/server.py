"""Serve the studio on this computer until it is stopped."""

import errno
import html
import os
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import uvicorn

from deniable.errors import ConfigError, DataError
from deniable.files import require_regular_file
from deniable.studio.access_guard import Access, local_name
from deniable.studio.root_folder import RootFolder
from deniable.studio.run_process import RunControl
from deniable.studio.run_screen import run_state
from deniable.studio.run_store import RunStore
from deniable.studio.web_app import make_app
from deniable.studio.workspace import Workspace

LOCAL = "127.0.0.1"
# Connections that wait to be accepted.
_BACKLOG = 128
# Free ports that are tried: another program may have the same port under the other address.
_MAX_TRIES = 20


def open_workspace(table: Path | None, root: Path | None, access: Access) -> Workspace:
    """Open the folder that the studio works in.

    Args:
        table: The table to begin with.
        root: The folder; None: that of the table, or the current one.
        access: The access control of the studio.

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
        root: The folder that the studio may read.
        host: The address to bind to.
        port: The port; 0: any free one.
        opens_browser: Whether to open the link in a browser.
        announce: Prints a line on the terminal.

    Raises:
        ConfigError: The address cannot be bound to, or the folder not used.
    """
    with ExitStack() as stack:
        bound = [stack.enter_context(each) for each in listen(host, port)]
        name = local_name() if host == LOCAL else ""
        access = Access(host, bound[0].getsockname()[1], name)
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
        if name:
            announce(
                "If your browser does not find this address, use Firefox or a browser made from "
                "Chromium, or start again with --host localhost."
            )
        announce("Stop it with Ctrl-C; runs that have begun go on.")
        if opens_browser:
            webbrowser.open(stack.enter_context(link_page(link)))
        with suppress(KeyboardInterrupt):  # a stop is no failure
            uvicorn.Server(settings).run(sockets=bound)
        running = count_running(space)
        goes_on = f" Runs that go on: {running}; start it again to see them." if running else ""
        announce(f"The studio has stopped.{goes_on}")


def count_running(space: Workspace) -> int:
    """Count the runs that go on."""
    return sum(run_state(space.store.status(run)) == "running" for run in space.store.all())


@contextmanager
def link_page(link: str) -> Iterator[str]:
    """Write a page that leads to the link, readable by this user alone; yield its address.

    All users of a computer see the command lines of its programs, so the link must not be in that
    of the browser.
    """
    with tempfile.TemporaryDirectory(prefix="deniable-studio-", ignore_cleanup_errors=True) as made:
        page = Path(made) / "open.html"
        to = html.escape(link)
        text = (
            f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0;url={to}"><title>deniable studio</title>'
            f'<p><a href="{to}">Open the studio</a>'
        )
        file = os.open(page, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as opened:
            opened.write(text)
        yield page.as_uri()


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen on an address; for a local one, on both of the addresses that names lead to.

    Browsers may try ::1 first: another program there would get our link and cookie.

    Raises:
        ConfigError: The address, or the port, cannot be used.
    """
    if host not in (LOCAL, "localhost"):
        return [_bind(host, port)]
    for _ in range(_MAX_TRIES):
        first = _bind(LOCAL, port)
        try:
            return [first, _bind("::1", first.getsockname()[1])]
        except ConfigError as fault:
            if getattr(fault.__context__, "errno", None) != errno.EADDRINUSE:
                return [first]  # no IPv6 here: no other program can listen there either
            first.close()
            if port:
                raise
    raise ConfigError("no free port was found; choose one with --port")


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        raise ConfigError(f"{host} cannot be used: this computer has no such network") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except (OSError, OverflowError) as fault:
        bound.close()
        why = getattr(fault, "strerror", None) or "no such port"
        raise ConfigError(f"{host}:{port} cannot be used ({why}); choose another --port") from None
    return bound
