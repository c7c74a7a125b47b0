"""Messages of libraries on standard error: withheld, because they may quote cells.

Rust prints a panic of polars to file descriptor 2 before Python can see it; Python itself prints
exceptions that cannot be raised, as in a thread or a destructor, warnings, and what is logged
without a handler. All contain whatever the library puts into its message. Errors of this package
do not go this way, and nothing is withheld from them.
"""

import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from deniable.cli.terminal import print_error

# File descriptor of standard error.
_STDERR = 2
_NOTE = (
    "A library printed a message, which is not shown, as it may quote the table. "
    "DENIABLE_DEBUG=1 shows it; it is then confidential."
)


@contextmanager
def withheld_messages() -> Iterator[None]:
    """Withhold what libraries print on standard error; report at the end that there was something.

    ``sys.stderr`` still reaches standard error. If the environment sets DENIABLE_DEBUG, nothing is
    withheld.
    """
    if os.environ.get("DENIABLE_DEBUG"):
        yield
        return
    heard: list[bool] = []
    with _unprinted_exceptions(heard), _unprinted_warnings(heard), _redirected_descriptor(heard):
        yield
    if heard:
        print_error(_NOTE)


@contextmanager
def _unprinted_exceptions(heard: list[bool]) -> Iterator[None]:
    """Note exceptions that Python would print with their messages."""

    def note(*_: object) -> None:
        heard.append(True)

    before = sys.excepthook, sys.unraisablehook, threading.excepthook
    sys.excepthook = sys.unraisablehook = threading.excepthook = note
    try:
        yield
    finally:
        sys.excepthook, sys.unraisablehook, threading.excepthook = before


class _NotingHandler(logging.Handler):
    """Handler that only notes that something was logged."""

    def __init__(self, heard: list[bool]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - it may quote cells
        self._heard.append(True)


@contextmanager
def _unprinted_warnings(heard: list[bool]) -> Iterator[None]:
    """Note warnings, and messages that are logged without a handler or that a handler fails on."""

    def note(*_: object, **__: object) -> None:
        heard.append(True)

    before = warnings.showwarning, logging.lastResort, logging.Handler.handleError
    warnings.showwarning, logging.lastResort = note, _NotingHandler(heard)
    logging.Handler.handleError = note  # type: ignore[method-assign]
    try:
        yield
    finally:
        warnings.showwarning, logging.lastResort = before[:2]
        logging.Handler.handleError = before[2]  # type: ignore[method-assign]


@contextmanager
def _redirected_descriptor(heard: list[bool]) -> Iterator[None]:
    """Redirect file descriptor 2 into a pipe; ``sys.stderr`` still writes to where it did."""
    stream = sys.stderr
    try:
        if stream is None or stream.fileno() != _STDERR:
            raise io.UnsupportedOperation
    except (OSError, ValueError):  # another stream is in its place, as in tests
        yield
        return
    with suppress(OSError, ValueError):
        stream.flush()
    kept = os.dup(_STDERR)
    reader, writer = os.pipe()
    # What does not fit into the pipe is lost; no writer waits for a reader.
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    os.dup2(writer, _STDERR)
    os.close(writer)
    sys.stderr = os.fdopen(
        kept, "w", buffering=1, encoding=stream.encoding, errors=stream.errors, closefd=False
    )
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        sys.stderr = stream
        os.dup2(kept, _STDERR)
        os.close(kept)
        with suppress(BlockingIOError):
            if os.read(reader, 1):
                heard.append(True)
        os.close(reader)
