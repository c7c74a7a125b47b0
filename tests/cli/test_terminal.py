"""Standard streams: literal text, any encoding, no failure."""

import errno
import io
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.cli.output import print_caution
from deniable.cli.terminal import (
    GuardedStream,
    escape,
    guarded_streams,
    print_error,
    print_line,
    unescaped_errors,
)

pytestmark = pytest.mark.slow

# A screen cleared, a title set, a line overwritten, text backwards, a byte that is no UTF-8.
HOSTILE = ["\x1b[2J", "\x1b]0;title\x07", "PASS\rFAIL", "\x9b31m", "\u202eslive", "\udcff", "a\nb"]


def stream_of(encoding="utf-8"):
    raw = io.BytesIO()
    return raw, io.TextIOWrapper(raw, encoding=encoding, newline="\n")


@pytest.mark.parametrize("text", HOSTILE)
def test_control_characters_are_shown_as_escapes(text):
    shown = escape(text)
    assert "\\" in shown
    assert all(unicodedata.category(each)[0] != "C" for each in shown)


@pytest.mark.parametrize(
    "text", ["wage [/h]", "speed [m/s]", ":warning:", "naïve ε\xa0≤ 3 日本 😀"]
)
def test_visible_text_is_printed_as_it_is(text):
    assert escape(text) == text


@given(st.text())
def test_no_text_reaches_the_terminal_with_a_control_character(text):
    raw, stream = stream_of()
    GuardedStream(stream).write(text)
    stream.flush()
    printed = raw.getvalue().decode()
    hidden = {unicodedata.category(each) for each in printed if each not in "\n\t"}
    assert not hidden & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", "? = 1 ? 2 ? ?"),
        ("latin-1", "? = 1 ± 2 ? é"),
        ("utf-8", "ε = 1 ± 2 日 é"),
    ],
)
def test_a_character_that_cannot_be_shown_is_replaced(encoding, shown):
    raw, stream = stream_of(encoding)
    guarded = GuardedStream(stream)
    guarded.write("ε = 1 ± 2 日 é")
    guarded.flush()
    assert raw.getvalue().decode(encoding) == shown
    assert guarded.encoding == encoding


class Failing(io.StringIO):
    """A stream that fails on every write."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def write(self, _text):
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "is_reported"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), False),
        (ValueError("I/O operation on closed file"), False),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EIO, "Input/output error"), True),
    ],
)
def test_a_stream_that_fails_is_abandoned(fault, is_reported):
    stream = GuardedStream(Failing(fault))
    assert stream.write("one") == 3
    stream.write("two")
    stream.flush()
    assert (stream.fault is fault) == is_reported
    assert not stream.isatty()


def test_a_closed_stream_takes_everything():
    stream = GuardedStream(None)
    assert stream.write("text") == 4
    stream.flush()
    assert (stream.fault, stream.isatty(), stream.encoding) == (None, False, "utf-8")
    assert stream.writable()
    with pytest.raises(OSError, match="closed"):
        stream.fileno()


def test_the_streams_are_guarded_and_then_what_they_were(monkeypatch, capsys):
    before = sys.stdout, sys.stderr
    with guarded_streams() as out:
        assert sys.stdout is out
        print_line("a\x1b[31m\nb")
        print_error("DataError: a\x1b\nb\n  c\x9b")
        unescaped_errors().write("\x1b[1A")
    assert (sys.stdout, sys.stderr) == before
    printed = capsys.readouterr()
    assert printed.out == "a\\x1b[31m\\nb\n"
    assert printed.err == "DataError: a\\x1b\\nb\n  c\\x9b\n\x1b[1A"
    monkeypatch.setattr(sys, "stderr", None)
    print_error("nowhere")
    assert unescaped_errors().write("x") == 1


@pytest.mark.parametrize(
    ("terminal", "variable", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_a_warning_is_red_on_a_terminal_only(monkeypatch, terminal, variable, coloured):
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("NO_COLOR", variable)
    monkeypatch.setattr(sys, "stdout", GuardedStream(shown))
    print_caution("ε = 20 \x1b[2J")
    assert ("\x1b[31m" in shown.getvalue()) == coloured
    assert shown.getvalue().endswith("\x1b[0m") == coloured
    assert "WARNING: ε = 20 \\x1b[2J" in shown.getvalue()  # only our own codes are
    before = shown.getvalue()
    print_caution("")
    assert shown.getvalue() == before
