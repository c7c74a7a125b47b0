"""Messages of libraries: none is shown, and that there was one is said."""

import logging
import os
import subprocess
import sys
import warnings
from textwrap import indent

import pytest

from deniable.cli.library_messages import withheld_messages

pytestmark = pytest.mark.slow

MARK = "Zxqvort"
OWN = "an error of our own\n"
# What a library may do during a command. The program is in a process of its own, for its streams.
MESSAGES = {
    "descriptor": f"os.write(2, b'{MARK}')",
    "more than a pipe holds": f"os.write(2, b'{MARK}' * 10**6)",
    "panic": """
late = pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date)
try:
    late.to_frame().select(pl.all().dt.to_string("%Y"))
except pl.exceptions.PanicException:
    pass
""",
    "thread": f"""
def fail():
    raise ValueError("{MARK}")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
""",
    "destructor": f"""
class Broken:
    def __del__(self):
        raise ValueError("{MARK}")
Broken()
""",
    "printed exception": f"""
try:
    raise ValueError("{MARK}")
except ValueError:
    sys.excepthook(*sys.exc_info())
""",
    "warning": f"warnings.warn('{MARK}')",
    "log without a handler": f"logging.getLogger('library').warning('{MARK}')",
    "log with a broken handler": f"""
logger = logging.getLogger("library")
logger.addHandler(logging.StreamHandler())
logger.warning("%d", "{MARK}")
""",
}
PROGRAM = """
import logging, os, sys, threading, warnings
import polars as pl
from deniable import __main__ as program

def run():
{message}
    sys.stderr.write("an error of our own\\n")
    return 3

program.run = run
program.main()
"""


def end_of(message: str, **environment: str) -> tuple[int, str]:
    inherited = {key: value for key, value in os.environ.items() if key != "DENIABLE_DEBUG"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(message=indent(message, "    "))],
        capture_output=True,
        text=True,
        check=False,
        env={**inherited, **environment},
        timeout=60,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_of_a_library_is_withheld_and_an_error_of_ours_is_not(case):
    code, printed = end_of(MESSAGES[case])
    own, note = printed.splitlines(keepends=True)
    assert (code, own) == (3, OWN)
    assert note.startswith("A library printed a message, which is not shown")


@pytest.mark.parametrize("case", MESSAGES)
def test_on_request_everything_is_shown(case):
    code, printed = end_of(MESSAGES[case], DENIABLE_DEBUG="1")
    assert code == 3
    assert printed.endswith(OWN)
    assert ("panicked" if case == "panic" else MARK) in printed


def test_without_a_message_nothing_is_added():
    assert end_of("pass") == (3, OWN)


def test_a_stream_that_is_not_standard_error_is_left_alone(capsys):
    with withheld_messages():
        assert sys.stderr.write("seen")
    assert capsys.readouterr().err == "seen"


def test_hooks_and_streams_are_put_back(capfd):
    hooks, stream = (sys.excepthook, sys.unraisablehook), sys.stderr
    shown = warnings.showwarning, logging.lastResort, logging.Handler.handleError
    with withheld_messages():
        os.write(2, b"unseen")
        assert sys.excepthook is not hooks[0]
    assert (sys.excepthook, sys.unraisablehook) == hooks
    assert (warnings.showwarning, logging.lastResort, logging.Handler.handleError) == shown
    assert sys.stderr is stream
    os.write(2, b"seen")
    assert capfd.readouterr().err.endswith("seen")
