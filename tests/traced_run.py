"""Run ``deniable`` and trace its calls: the modules entered, and the deepest chain of calls.

    python traced_run.py RESULT.json ARGUMENTS…

A chain counts the functions of the package that are active at once. Comprehensions and lambdas are
part of the function they are written in. What runs while a module is imported is not counted, nor
what imports a library: to look up a name of polars, which is imported on first use, is no call.
The randomness of the operating system is replaced, so that two runs take the same path.
"""

import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import deniable
from deniable.__main__ import run

# Modules of the package that only import others, named as in a chain.
IMPORTERS = {"library_imports.py"}


class Tracer:
    """Profile function that records modules and the deepest chain of calls."""

    def __init__(self, package: str) -> None:
        self._package = package
        self.modules: set[str] = set()
        self.deepest: list[str] = []

    def __call__(self, frame: FrameType, event: str, _arg: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self._package):
            return
        chain = list(self._chain(frame))
        if chain[0][0] in IMPORTERS or any(name == "<module>" for _, name in chain):
            return
        self.modules.add(chain[0][0])
        named = [f"{module}:{name}" for module, name in chain if not name.endswith(">")]
        if len(named) > len(self.deepest):
            self.deepest = named[::-1]

    def _chain(self, frame: FrameType | None) -> Iterator[tuple[str, str]]:
        """Yield the module and the name of each function of the package, the innermost first."""
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(self._package):
                yield code.co_filename.removeprefix(self._package), code.co_qualname
            frame = frame.f_back


def main() -> int:
    result, *sys.argv[1:] = sys.argv[1:]
    os.urandom = random.Random(1).randbytes  # noqa: S311 - repeatable, for a test
    tracer = Tracer(f"{Path(deniable.__file__).parent}{os.sep}")
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    code = run()
    sys.setprofile(None)
    threading.setprofile(None)
    found = {"modules": sorted(tracer.modules), "deepest": tracer.deepest}
    Path(result).write_text(json.dumps(found), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
