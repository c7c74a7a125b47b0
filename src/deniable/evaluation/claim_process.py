"""Verify a release in a process of its own, while the report is measured.

A process, not a thread: both train or fit models, and change the threads of BLAS while they do,
which are the same for all of a process. The last digits of a fit, which verification compares,
depend on them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deniable.evaluation.release_claim import ReleaseClaim, find_released, read_claim
from deniable.workers import count_cores

# Bytes of records from which a process pays: it takes about as long to start as these to verify.
_MIN_BYTES = 2**20


@contextmanager
def reading_claim(synthetic: object) -> Iterator[Callable[[], ReleaseClaim | None]]:
    """Start to read and verify the claim of records; yield what waits for it and returns it.

    Small releases, and all if there is a single core, are verified where the claim is asked for.
    """
    if not _is_worth_a_process(synthetic):
        yield lambda: read_claim(synthetic)
        return
    with _start(str(synthetic)) as process:
        try:
            yield lambda: _wait_for(process, synthetic)
        finally:
            process.kill()


def _is_worth_a_process(synthetic: object) -> bool:
    if count_cores() < 2 or not sys.executable or not isinstance(synthetic, str | Path):
        return False
    files = find_released(Path(synthetic)) or (Path(synthetic),)
    return sum(file.stat().st_size for file in files if file.is_file()) >= _MIN_BYTES


def _start(synthetic: str) -> "subprocess.Popen[bytes]":
    """Start this module as a program that finds the same packages as this process."""
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(  # noqa: S603 - arguments are a list; no shell reads them
        [sys.executable, "-P", "-m", __name__, synthetic],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    )


def _wait_for(process: "subprocess.Popen[bytes]", synthetic: object) -> ReleaseClaim | None:
    """Wait for the claim; read it here if the process could not, whatever the reason."""
    written, _ = process.communicate()
    if process.returncode:
        return read_claim(synthetic)
    found: dict[str, Any] | None = json.loads(written)
    if found is None:
        return None
    # JSON has no tuples.
    for name in ("not_covered", "failures"):
        found[name] = tuple(found[name])
    return ReleaseClaim(**found)


def main() -> None:
    """Write the claim of the records in the first argument, as JSON."""
    claim = read_claim(sys.argv[1])
    sys.stdout.write(json.dumps(None if claim is None else asdict(claim)))


if __name__ == "__main__":
    main()
