r"""Standard output and standard error: literal text, any encoding, and no failure that matters.

Text from outside (names of columns, manifests, paths) may hold escape codes that rewrite what a
terminal shows. Every character that is not visible is printed as an escape such as \x1b. A
character that the terminal cannot show becomes "?". A reader that went away is no error.
"""

import errno
import io
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

# Categories of characters that are not visible: control, format (such as a change of direction),
# surrogates (bytes of a path that are not UTF-8), separators of lines and paragraphs.
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")


# Codes that change the colour of a terminal.
_RED, _DEFAULT_COLOUR = "\x1b[31m", "\x1b[0m"


def escape(text: str, *, keep: str = "") -> str:
    r"""Show characters that are not visible as escapes, except those of ``keep``.

    >>> print(escape("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    if text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode() if _is_hidden(each) and each not in keep else each
        for each in text
    )


def _is_hidden(character: str) -> bool:
    return not character.isprintable() and unicodedata.category(character) in _INVISIBLE


class GuardedStream(io.TextIOBase):
    """A standard stream that prints literally and never fails.

    Attributes:
        fault: Why the stream could not be written to; None as long as it could, or if its reader
            went away.
        is_used: Whether anything was written to it.
    """

    def __init__(self, stream: TextIO | None, *, escaped: bool = True) -> None:
        self._stream = stream
        self._escaped = escaped
        self._is_open = stream is not None
        self.fault: OSError | None = None
        self.is_used = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def writable(self) -> bool:
        """A stream can be written to, even if what is written gets lost."""
        return True

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream is not None and self._is_open and self._stream.isatty()

    def fileno(self) -> int:
        """The number of the file, by which the size of a terminal is found."""
        if self._stream is None:
            raise io.UnsupportedOperation("closed")
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Write a text: lines and tabs as they are, other control characters as escapes."""
        shown = escape(text, keep="\n\t") if self._escaped else text
        self.is_used = self.is_used or bool(text)
        with self._guard() as stream:
            stream.write(shown.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if it can be written to."""
        with self._guard() as stream:
            stream.flush()

    @property
    def unguarded(self) -> TextIO | None:
        """The stream behind this one."""
        return self._stream

    @contextmanager
    def _guard(self) -> Iterator[TextIO]:
        """Yield the stream; if it fails, abandon it."""
        if self._stream is None or not self._is_open:
            yield io.StringIO()
            return
        try:
            yield self._stream
        except (OSError, ValueError) as fault:
            self._is_open = False
            if isinstance(fault, OSError) and fault.errno != errno.EPIPE:
                self.fault = fault
            _discard_rest(self._stream)


def _discard_rest(stream: TextIO) -> None:
    """Discard buffered output: the interpreter would fail to write it when it exits."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


@contextmanager
def guarded_streams() -> Iterator[GuardedStream]:
    """Guard standard output and standard error; yield the former."""
    before = sys.stdout, sys.stderr
    out, err = GuardedStream(sys.stdout), GuardedStream(sys.stderr)
    sys.stdout, sys.stderr = out, err
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


def unescaped_errors() -> TextIO:
    """Standard error for a progress bar, which moves the cursor by control codes."""
    stream = sys.stderr.unguarded if isinstance(sys.stderr, GuardedStream) else sys.stderr
    return cast("TextIO", GuardedStream(stream, escaped=False))


def open_missing_streams() -> None:
    """Open closed standard streams as the null device.

    Else the next file that is opened gets the number of standard error, and messages of native
    libraries would be written into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def print_line(text: str = "") -> None:
    """Print one line on standard output; a line break in the text is shown as an escape."""
    sys.stdout.write(escape(text) + "\n")
    sys.stdout.flush()


@contextmanager
def red_output() -> Iterator[None]:
    """Print what the block prints in red on a terminal, unless the variable NO_COLOR is set."""
    out = sys.stdout
    if os.environ.get("NO_COLOR") or not out.isatty():
        yield
        return
    codes = GuardedStream(out.unguarded if isinstance(out, GuardedStream) else out, escaped=False)
    codes.write(_RED)
    try:
        yield
    finally:
        codes.write(_DEFAULT_COLOUR)
        codes.flush()


def print_error(text: str) -> None:
    """Print an error on standard error: its first line, then its details, which are indented."""
    if sys.stderr is not None:
        sys.stderr.write("\n  ".join(map(escape, text.split("\n  "))) + "\n")
        sys.stderr.flush()
