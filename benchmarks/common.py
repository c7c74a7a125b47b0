"""What the benchmarks share: timing, tiling, a simulated table, limits."""

import compileall
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import deniable as dn
from deniable.data.table_io import read_codes

ROOT = Path(__file__).parents[1]
TABLE = ROOT.parent / "shared" / "data" / "acs24" / "acs24_table1.csv.gz"
SCHEMA = ROOT / "examples" / "acs24" / "schema.toml"
DENIABLE = Path(sys.executable).parent / "deniable"
OMEGA, K = 9, 50

# Packages that commands load. This machine may forbid to write bytecode while they run.
_LOADED = (
    *("charset_normalizer", "dateutil", "deniable", "joblib", "narwhals", "numpy", "pandas"),
    *("polars", "psutil", "pyarrow", "rich", "scipy", "sklearn", "threadpoolctl", "typer"),
    "typing_extensions",
)

# How many values the columns of a simulated table have, in turn.
_SIZES = (9, 5, 2, 16, 7, 3, 24, 4)


def timed(*actions, repeats=3, clock=time.perf_counter):
    """Return the best of a few runs of each action, in seconds; they take turns."""
    best = [float("inf")] * len(actions)
    for _ in range(repeats):
        for at, action in enumerate(actions):
            start = clock()
            action()
            best[at] = min(best[at], clock() - start)
    return best


def spent(*command):
    """Return processor and wall seconds of a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def compile_installed():
    """Compile what the commands load, as an installation leaves it, unless it is compiled."""
    for name in _LOADED:
        found = find_spec(name)
        if found is None or found.origin is None:
            continue
        if found.submodule_search_locations is None:
            compileall.compile_file(found.origin, quiet=2)
        else:
            compileall.compile_dir(Path(found.origin).parent, quiet=2, workers=0)


def tile(codes, rows):
    """Return so many rows: the table again and again."""
    return np.asfortranarray(codes[np.arange(rows) % len(codes)])


def read_or_simulate(table, schema):
    """Return a schema and the codes of its table; of a simulated one if the table is not there."""
    if table.exists():
        read = dn.Schema.read(schema)
        return read, read_codes(table, read)[0]
    print(f"{table} is not there: a simulated table instead")
    return simulate(11, 1_300_000)


def simulate(columns, rows, key=1):
    """Return the schema and the codes of a table whose columns depend on each other.

    Each column follows one of the eight before it in six rows of ten, and is drawn by itself in
    the others.
    """
    rng = np.random.default_rng(key)
    sizes = [_SIZES[i % len(_SIZES)] for i in range(columns)]
    codes = np.empty((rows, columns), dtype=np.uint16, order="F")
    for i, size in enumerate(sizes):
        codes[:, i] = np.minimum(rng.geometric(2 / size, rows), size) - 1
        if i:
            before = codes[:, rng.integers(max(0, i - 8), i)]
            codes[:, i] = np.where(rng.random(rows) < 0.6, before % size, codes[:, i])
    return dn.Schema.parse(_described(sizes)), codes


def _described(sizes):
    lines = ["format = 1", "rows_max = 1_000_000"]
    for i, size in enumerate(sizes):
        values = [f"v{value}" for value in range(size)]
        lines += ["[[attribute]]", f'name = "c{i}"', 'type = "categorical"', f"values = {values}"]
    return "\n".join(lines)


class Limits:
    """Says of each number whether it keeps its limit, and whether all did."""

    def __init__(self) -> None:
        self.broken = 0

    def at_most(self, what, value, most):
        """Say a number that must not be larger."""
        self._say(what, value, f"at most {most:,.7g}", value <= most)

    def at_least(self, what, value, least):
        """Say a number that must not be smaller."""
        self._say(what, value, f"at least {least:,.7g}", value >= least)

    def _say(self, what, value, limit, kept):
        self.broken += not kept
        print(f"  {what:56} {value:12,.2f}   {limit:19} {'' if kept else 'BROKEN'}", flush=True)

    def exit(self):
        """End with exit code 1 if a limit was broken."""
        if self.broken:
            sys.exit(f"limits broken: {self.broken}; see the lines that say BROKEN")
