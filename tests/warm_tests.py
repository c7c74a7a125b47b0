"""Run tests against another copy of the source, each in a fork of a process that is warm.

    python tests/warm_tests.py < requests

A request is one line of JSON: the folder of the source, the test, the file for what pytest prints.
The answer is one line, pytest's exit code. Start and imports of libraries cost several times what
most tests cost, so that they are done once. What is tested is in no process before the fork, and
no library that starts threads is: a fork has but one of them.
"""

import gc
import importlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

import hypothesis
import pytest

# All that tests import, but for polars, pandas and pyarrow, which start threads.
LIBRARIES = (
    *("dp_accounting", "dp_accounting.pld", "hypothesis.extra.numpy", "mpmath", "numpy", "rich"),
    *("scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.special", "scipy.stats"),
    *("sklearn.linear_model", "sklearn.metrics", "threadpoolctl", "typer.core"),
)
# A test that hangs ends after so many seconds, by a signal: that is no failed test.
PATIENCE = 240


def _run(source: str, test: str, output: str) -> int:
    """Run a test in this process, which must be a fork, and return pytest's exit code."""
    signal.alarm(PATIENCE)
    with Path(output).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["PYTHONPATH"] = source
    sys.path.insert(0, source)
    # One failure is all that is asked for: no smaller example of it, no long explanation.
    seek = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("seek", phases=seek, database=None, print_blob=False)
    hypothesis.settings.load_profile("seek")
    # Its plugin would parse the whole source before any test, also before those without it.
    plain = ["--assert=plain", "--tb=short", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
    code = pytest.main(["-q", "-x", *plain, test])
    loaded = Path(sys.modules["deniable"].__file__ or "")
    return int(code) if loaded.is_relative_to(source) else -1


def main() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    # pytest collects garbage several times a run: not among what is here before the fork.
    gc.collect()
    gc.freeze()
    for request in sys.stdin:
        if "deniable" in sys.modules or threading.active_count() > 1:
            raise SystemExit("a fork would share what is tested, or lose a thread")
        child = os.fork()
        if not child:
            code = 70
            try:
                code = _run(**json.loads(request)) % 256
            finally:
                sys.stdout.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
